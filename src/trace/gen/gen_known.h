/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces whose bounds are known, made from a seed: the same bytes on every machine. For policies
 * that are to be compared where the answer is known beforehand.
 */
#ifndef FRAG_TRACE_GEN_KNOWN_H
#define FRAG_TRACE_GEN_KNOWN_H

#include <frag/trace.h>

/* The names of all kinds, and then repeat, which gen_repeat.h makes; NULL at the end. */
extern const char *const frag_known_kinds[];

/* kind: a number in that list, not that of repeat. scale: 1 to 1000; requests and live bytes grow with it.
 * *online_bytes: Robson's bound for any policy that does not know the future; 0: not of this kind. Errors:
 * FRAG_ENOMEM. */
int frag_known_make(unsigned kind, uint64_t seed, uint64_t scale, uint64_t *online_bytes,
		    struct frag_trace **out, struct frag_err *err);

#endif
