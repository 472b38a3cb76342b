/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that a case refuses, for explain and diagnose alike: those that were refused when
 * recorded and are refused again, and the first that the replay itself refuses, after which the
 * program would not go on. Under the recorded settings and no other limit, all that were recorded
 * count.
 */
#ifndef FRAG_EXPLAIN_REFUSALS_H
#define FRAG_EXPLAIN_REFUSALS_H

#include "case.h"

struct frag_refused_at {
	struct frag_refusal r;	 /* live_bytes: granted, and waiting for another stream */
	uint64_t reserved_bytes; /* then */
	uint64_t limit_bytes;	 /* what the process could have reserved */
};

struct frag_refusals {
	struct frag_refused_at list[FRAG_REFUSALS_KEPT]; /* by event */
	size_t count;
};

/* Errors: those of replays. */
int frag_refusals_find(const struct frag_case *c, struct frag_refusals *out, struct frag_err *err);

#endif
