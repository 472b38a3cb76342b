/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces whose bounds are known, made from a seed: the same bytes on every machine. For policies
 * that are to be compared where the answer is known beforehand.
 *
 * Structure: a generator is a row of the table in gen_known.c and a function that asks for blocks
 * and says when they are released. Events are sorted by time at the end, so a release is given
 * together with its request.
 */
#ifndef FRAG_TRACE_GEN_KNOWN_H
#define FRAG_TRACE_GEN_KNOWN_H

#include <frag/trace.h>

#include "trace/log/log.h"

/* What no replay needs to find out; 0: not known of this kind. */
struct frag_known_bounds {
	uint64_t online_bytes;	  /* the least for any policy that does not know the future */
	uint64_t first_fit_bytes; /* what first fit by address takes */
};

struct frag_maker {
	struct frag_log log; /* first */
	uint64_t random, scale, now_us, ids, lines;
	struct frag_known_bounds bounds;
	const struct frag_known *kind;
};

struct frag_known {
	const char *name;
	/* Errors: FRAG_ENOMEM. */
	int (*make)(struct frag_maker *m, struct frag_err *err);
};

/* The kinds in the order of help; the last has no name. */
extern const struct frag_known frag_known_kinds[];

/*
 * scale: 1 or more; requests and live bytes grow with it. Errors: FRAG_ENOMEM; FRAG_EINPUT if the
 * scale is too large for a trace.
 */
int frag_known_make(const struct frag_known *kind, uint64_t seed, uint64_t scale,
		    struct frag_known_bounds *bounds, struct frag_trace **out,
		    struct frag_err *err);

/* ---- for generators ---- */

#define FRAG_KNOWN_TICK_US 10u /* from one request to the next */

static inline uint64_t frag_maker_ticks(const struct frag_maker *m, uint64_t n)
{
	return m->now_us + n * FRAG_KNOWN_TICK_US;
}
/* A number below n, which is above 0. */
uint64_t frag_maker_below(struct frag_maker *m, uint64_t n);
/* Asks now, a tick after the request before. *id (may be NULL) names the block for release. */
int frag_maker_ask(struct frag_maker *m, uint64_t bytes, uint64_t stream, uint64_t *id,
		   struct frag_err *err);
/* The block is released at that time, or (waits) is in use by another stream until `until_us`. */
int frag_maker_release(struct frag_maker *m, uint64_t id, uint64_t at_us, uint64_t until_us,
		       struct frag_err *err);

int frag_known_robson(struct frag_maker *m, struct frag_err *err);

#endif
