/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random calls on a rig, the same for the same seed: allocs of all sizes on
 * four streams, frees at once and late, trims, synchronisations, marks. Stack
 * policies are driven in stack order.
 */
#ifndef FRAG_TESTS_SCRIPT_H
#define FRAG_TESTS_SCRIPT_H

#include "rig.h"

struct script {
	uint64_t rng;
	unsigned slots;	    /* at most this many blocks at a time */
	bool plain;	    /* one stream, no pools, no late frees, no trims */
	uint64_t max_bytes; /* of a request */
};

void script_init(struct script *s, uint64_t seed, unsigned slots);
/* splitmix64 */
uint64_t script_random(struct script *s);
/* A size from 1 B to s->max_bytes: small ones are frequent. */
uint64_t script_size(struct script *s);
/* The next call. Returns its result; allocs that meet FRAG_OOM return 0 (that is no failure). */
int script_step(struct script *s, struct rig *r);

/*
 * Many calls on an open rig, with the policy's check after each and a walk now and then. failures:
 * every few calls one of the next driver calls fails. What is live in the end stays so. Returns 0,
 * or the first error that nobody asked for (in r->err).
 */
int script_soak(struct script *s, struct rig *r, unsigned steps, bool failures);

#endif
