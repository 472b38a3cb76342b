/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one program recorded at two to eight values of a parameter (its batch size, a length),
 * derives the trace at another value.
 *
 * The requests of the recordings are matched one by one, in order; frees follow their requests. The
 * size of a matched request is a law of the value n: constant, c n, c n^2, c + d n, or a
 * second-order polynomial (which must fit four recordings). The first law that fits every recording
 * exactly wins. If none does, or only one recording has the request, the law is unknown, and two
 * bounds replace it: the size at the nearest recording, and that size in proportion to n. Order,
 * streams, pools and lifetimes come from the nearest recording above (else the largest).
 *
 * So a prediction is exact to the byte if the program makes the same requests at the new value and
 * all laws are known. It cannot know of kernels that need other temporary storage from a certain
 * size on.
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
	FRAG_SCALING_UNKNOWN, /* no law fits all recordings */
	FRAG_SCALING_ONCE,    /* only one recording has the request */
	FRAG_SCALING_LAWS
};
/* Name of a law for tables: "constant", "c n", … */
const char *frag_scaling_law_name(enum frag_scaling_law law);

/* If the law is unknown: the least or the most that is likely. */
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
	uint64_t *sizes; /* [requests of base][count], UINT64_MAX = not in that recording */
	uint64_t requests;
	uint64_t laws[FRAG_SCALING_LAWS]; /* number of requests */
	/* by recording, compared with base: requests that only one of the two has, and requests
	 * that end at another place (checked only if all requests are the same) */
	uint64_t unmatched[FRAG_SCALING_PARTS], moved[FRAG_SCALING_PARTS];
};

/* Matches all parts with part `base`. Errors: FRAG_EINPUT if two recordings have nothing in common
 * from some request on, or a recording began late or was refused memory; FRAG_ENOMEM. */
int frag_scaling_make(const struct frag_scaling_part *parts, size_t count, size_t base,
		      struct frag_scaling *out, struct frag_err *err);
void frag_scaling_release(struct frag_scaling *s);
/* Is the prediction at `value` exact, as far as the recordings show? The recordings around it
 * (beyond the last: all) must have the same sequence of requests and frees, and a law for each size
 * that fits more recordings than are needed to find it. */
bool frag_scaling_exact(const struct frag_scaling *s, uint64_t value);

/*
 * The device at `value`: base with other sizes. Everything except the events is borrowed from base;
 * there is no evidence. Errors: FRAG_EINPUT if a size is too large for a trace; FRAG_ENOMEM.
 */
int frag_scaling_dev(const struct frag_scaling *s, uint64_t value, enum frag_scaling_bound bound,
		     struct frag_trace_dev *out, struct frag_err *err);
void frag_scaling_dev_release(struct frag_trace_dev *dev);

/* The size of one request at `value` (scale_law.c); sizes as in struct frag_scaling. Rounds
 * fractions up. UINT64_MAX: too large. */
uint64_t frag_scaling_size(const uint64_t *values, const uint64_t *sizes, size_t count, size_t base,
			   uint64_t value, enum frag_scaling_bound bound,
			   enum frag_scaling_law *law);

#endif
