/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program recorded at two to eight values of a parameter (its batch size, a length): the
 * trace that it would leave at another value.
 *
 * The requests of the recordings are matched one by one, in order; frees follow the request that
 * they end. The size of a matched request is a law of the value: constant, c n, c n^2, c + d n, or
 * a polynomial of second order (which four have to meet), whichever comes first of those that meet every
 * recording exactly. Where
 * none does, or only one recording has the request, the law is not known; then two bounds
 * stand for it: what it was at the nearest recording, and in proportion to n from
 * there on. Order, streams, pools and lives are those of the recording that is nearest above (else the largest).
 *
 * So a prediction is exact to the byte if the program makes the same requests at the new value and
 * all laws are known. What it cannot know: kernels that take other temporary storage from a
 * certain size on.
 */
#ifndef FRAG_PLAN_SCALE_H
#define FRAG_PLAN_SCALE_H

#include <frag/error.h>
#include <frag/trace.h>

#define FRAG_SCALING_PARTS 8u
#define FRAG_SCALING_MAX ((1u << 24) - 1)

enum frag_scaling_law {
	FRAG_SCALING_CONSTANT,
	FRAG_SCALING_LINEAR,
	FRAG_SCALING_SQUARE,
	FRAG_SCALING_AFFINE,
	FRAG_SCALING_QUADRATIC,
	FRAG_SCALING_UNKNOWN, /* no law meets all recordings */
	FRAG_SCALING_ONCE,    /* the request is in one recording only */
	FRAG_SCALING_LAWS
};
/* "constant", "c n", …: as tables show it. */
const char *frag_scaling_law_name(enum frag_scaling_law law);

/* Where a law is not known: the least or the most that is likely. */
enum frag_scaling_bound { FRAG_SCALING_LOW, FRAG_SCALING_HIGH };

/* One device at one value. */
struct frag_scaling_part {
	const struct frag_trace_dev *dev;
	uint64_t value; /* from 1 to FRAG_SCALING_MAX, ascending in a list */
};

struct frag_scaling {
	const struct frag_trace_dev *base; /* borrowed */
	uint64_t values[FRAG_SCALING_PARTS];
	size_t count, base_part;
	uint64_t *
		sizes; /* [requests of base][count], UINT64_MAX = that recording does not have it */
	uint64_t requests;
	uint64_t laws[FRAG_SCALING_LAWS];      /* how many requests */
	uint64_t law_bytes[FRAG_SCALING_LAWS]; /* what these ask for in base, in all */
	/* by recording, as compared with base: requests that one of the two does not have, and those that
	 * end at another place, which is looked at where all requests are the same */
	uint64_t unmatched[FRAG_SCALING_PARTS], moved[FRAG_SCALING_PARTS];
};

/* Matches all parts with part number `base`. Errors: FRAG_EINPUT where two recordings have nothing in
 * common from some request on, or began late, or were refused memory; FRAG_ENOMEM. */
int frag_scaling_make(const struct frag_scaling_part *parts, size_t count, size_t base,
		      struct frag_scaling *out, struct frag_err *err);
void frag_scaling_release(struct frag_scaling *s);
/* Is `value` exact as far as the recordings tell: those around it (beyond the last: all) have one
 * sequence of requests and frees, and a law for each size that more of them meet than it takes to find one. */
bool frag_scaling_exact(const struct frag_scaling *s, uint64_t value);

/*
 * The device at `value`: base with other sizes. Everything but the events is base's own and
 * borrowed; there is no evidence. Errors: FRAG_EINPUT if a size leaves what traces hold; FRAG_ENOMEM.
 */
int frag_scaling_dev(const struct frag_scaling *s, uint64_t value, enum frag_scaling_bound bound,
		     struct frag_trace_dev *out, struct frag_err *err);
void frag_scaling_dev_release(struct frag_trace_dev *dev);

/* The size of one request at `value` (scale_law.c); sizes as in struct frag_scaling. A law that gives
 * a fraction is rounded up. UINT64_MAX: more than can be said. */
uint64_t frag_scaling_size(const uint64_t *values, const uint64_t *sizes, size_t count, size_t base,
			   uint64_t value, enum frag_scaling_bound bound,
			   enum frag_scaling_law *law);

#endif
