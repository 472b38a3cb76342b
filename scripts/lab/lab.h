/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laboratory: replays on a real card beside the simulated one (lab.c), and a cost profile made of them (lab_profile.c).
 *
 * Ownership: a log owns its calls, addresses and result until lab_log_release.
 */
#ifndef FRAG_LAB_H
#define FRAG_LAB_H

#include <frag/replay.h>

#include "answer/textbuf.h"
#include "replay/address_log.h"

struct lab_call {
	uint8_t kind;
	int8_t result; /* 0, FRAG_OOM, or -1 */
	uint64_t bytes, ns;
	uint64_t pause_ns; /* of the host since the call before; 0 on a simulated card */
};

/* One replay with every driver call written down. */
struct lab_log {
	struct lab_call *calls;
	size_t count, cap;
	size_t replayed; /* of them, before the policy was destroyed */
	struct address_log addresses;
	const struct frag_device *dev; /* while it is recorded */
	uint64_t ns;		       /* of all calls before the current one */
	uint64_t returned_ns; /* when the last one came back, on the host clock; 0: none has */
	const struct lab_log *real; /* its pauses go to the simulated card; or NULL */
	bool short_of_memory;
	struct frag_device_info card; /* as it was when the replay began */
	struct frag_result result;
	struct frag_dev_observed observed;
};
/* Index of the first call that is not the same in both; SIZE_MAX: none. */
size_t lab_difference(const struct lab_log *a, const struct lab_log *b);

/* Measured and modelled time of the parts of a cost profile, in all rounds of all replays. The process gives it back. */
struct lab_scale;
int lab_scale_create(const struct frag_cost *cost, struct lab_scale **out, struct frag_err *err);
/* Adds a round of a replay: its calls on the real card, and on a simulated one with the same addresses. */
int lab_scale_add(struct lab_scale *s, const struct lab_log *real, const struct lab_log *sim,
		  struct frag_err *err);
/* How long the card takes to clear memory. */
int lab_scale_clear(struct lab_scale *s, struct frag_device *dev, struct frag_err *err);
/* The profile file: each part times measured over modelled. card: what it was measured on. */
void lab_scale_profile(struct lab_scale *s, const char *card, struct frag_text *out);

#endif
