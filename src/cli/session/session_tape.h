/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tapes: one replay with every driver call written down, for --against-sim. The addresses on a tape
 * of a real card can be played to a simulated one, which then hands out the same.
 *
 * Ownership: a tape owns its lists and its result until tape_release.
 */
#ifndef FRAG_CLI_SESSION_TAPE_H
#define FRAG_CLI_SESSION_TAPE_H

#include "replay/address_tape.h"
#include "session.h"

struct tape_call {
	uint8_t kind;
	int8_t result; /* 0, FRAG_OOM, or -1 */
	uint64_t bytes;
	uint64_t ns; /* modelled or measured */
	uint64_t reserved_bytes;
	uint64_t pause_ns; /* of the host since the call before; 0 on a simulated card */
};

struct tape {
	struct tape_call *calls;
	size_t count, cap;
	size_t replayed; /* of them, before the policy was destroyed */
	struct address_tape addresses;
	const struct frag_device *dev; /* while it is recorded */
	uint64_t ns;		       /* of all calls before the current one */
	uint64_t returned_ns;	 /* when the last one came back, on the host clock; 0: none has */
	const struct tape *real; /* whose pauses a simulated card is told, or NULL */
	bool short_of_memory;
	struct frag_device_info card; /* as it was when the replay began */
	struct frag_result result;
	struct frag_dev_witness witness;
};

/* Replays on `dev` and closes it. Errors are those of the task: task->err. */
int frag_tape_record(struct frag_session *s, struct frag_pool_task *task, struct frag_device *dev,
		     struct tape *t);
/* The pause hook of a simulated card (ctx: the tape that is being recorded from it). */
uint64_t frag_tape_pause(void *ctx, enum frag_call call);
/* Index of the first call that is not the same in both; SIZE_MAX: none. */
size_t frag_tape_difference(const struct tape *a, const struct tape *b);
void frag_tape_release(struct tape *t);

#endif
