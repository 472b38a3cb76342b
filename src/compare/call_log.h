/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call logs: one replay with every driver call written down, for --against-sim. The addresses in a log
 * of a real card can be played to a simulated one, which then hands out the same.
 *
 * Ownership: a log owns its lists and its result until frag_call_log_release.
 */
#ifndef FRAG_SESSION_CALL_LOG_H
#define FRAG_SESSION_CALL_LOG_H

#include "replay/address_log.h"
#include "session.h"

struct logged_call {
	uint8_t kind;
	int8_t result; /* 0, FRAG_OOM, or -1 */
	uint64_t bytes;
	uint64_t ns; /* modelled or measured */
	uint64_t reserved_bytes;
	uint64_t pause_ns; /* of the host since the call before; 0 on a simulated card */
};

struct call_log {
	struct logged_call *calls;
	size_t count, cap;
	size_t replayed; /* of them, before the policy was destroyed */
	struct address_log addresses;
	const struct frag_device *dev; /* while it is recorded */
	uint64_t ns;		       /* of all calls before the current one */
	uint64_t returned_ns; /* when the last one came back, on the host clock; 0: none has */
	const struct call_log *real; /* its pauses go to the simulated card; or NULL */
	bool short_of_memory;
	struct frag_device_info card; /* as it was when the replay began */
	struct frag_result result;
	struct frag_dev_observed observed;
};

/* Replays on `dev` and closes it. Errors are those of the task: task->err. */
int frag_call_log_record(struct frag_session *s, struct frag_session_task *task,
			 struct frag_device *dev, struct call_log *t);
/* The pause hook of a simulated card (ctx: the log that is being recorded from it). */
uint64_t frag_call_log_pause(void *ctx, enum frag_call call);
/* Index of the first call that is not the same in both; SIZE_MAX: none. */
size_t frag_call_log_difference(const struct call_log *a, const struct call_log *b);
void frag_call_log_release(struct call_log *t);

#endif
