/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces whose bounds are known, made from a seed: the same bytes on every machine. For policies
 * that are to be compared where the answer is known beforehand.
 */
#ifndef FRAG_TRACE_GEN_KNOWN_H
#define FRAG_TRACE_GEN_KNOWN_H

#include <frag/trace.h>

/* What no replay needs to find out; 0: not known of this kind. */
struct frag_known_bounds {
	uint64_t online_bytes;	  /* the least for any policy that does not know the future */
	uint64_t first_fit_bytes; /* what first fit by address takes */
};

/* The names of all kinds, and then repeat, which gen_repeat.h makes; NULL at the end. */
extern const char *const frag_known_kinds[];

/* kind: a number in that list, not that of repeat. scale: 1 to 1000; requests and live bytes grow with it. Errors:
 * FRAG_ENOMEM. */
int frag_known_make(unsigned kind, uint64_t seed, uint64_t scale, struct frag_known_bounds *bounds,
		    struct frag_trace **out, struct frag_err *err);

#endif
