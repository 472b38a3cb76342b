/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which core a measurement runs on.
 *
 * Measured on virtual machines with an H200: every driver call, an event and a plain system call too,
 * takes 1.4 times as long for seconds at a time on one core and not on another (a cudaMalloc
 * of 4 MiB 34 or 48 us, with nothing between), whatever the card does and at a clock that
 * does not change: the other hardware thread of the core works for somebody else. Left to
 * itself a program stays where it is. So all cores are asked before a measurement, and
 * the one that answers fastest is kept until the device is closed.
 */
#include "cuda_internal.h"

#include <stdlib.h>

#define PAIRS 5u
#define CORES_MAX 32u /* asked, of those that the program may run on */

/* cudaMalloc and cudaFree of 4 MiB: the median of a few after one that warms the core. 0: no answer. */
static uint64_t pair_ns(void)
{
	uint64_t ns[PAIRS + 1];

	for (unsigned i = 0; i <= PAIRS; i++) {
		uint64_t start = frag_clock_ns();
		void *ptr = NULL;

		if (frag_cuda_rt_check(cudaMalloc(&ptr, 2 * FRAG_PAGE), "", NULL) ||
		    frag_cuda_rt_check(cudaFree(ptr), "", NULL))
			return 0;
		ns[i] = frag_clock_ns() - start;
	}
	qsort(ns + 1, PAIRS, sizeof(*ns), frag_compare_u64);
	return ns[1 + PAIRS / 2];
}

static bool run_on(unsigned core)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(core, &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

/* Every step-th core that the program may use. Returns the fastest, CPU_SETSIZE: none answered. */
static unsigned fastest(struct cuda_core *k, unsigned step)
{
	unsigned best = CPU_SETSIZE, seen = 0;

	k->pair_ns = 0;
	for (unsigned core = 0; core < CPU_SETSIZE; core++) {
		uint64_t ns;

		if (!CPU_ISSET(core, &k->allowed) || seen++ % step || !run_on(core))
			continue;
		ns = pair_ns();
		if (ns && (!k->pair_ns || ns < k->pair_ns)) {
			k->pair_ns = ns;
			best = core;
		}
	}
	return best;
}

void frag_cuda_core_choose(struct cuda *c)
{
	struct cuda_core *k = &c->core;
	unsigned best, count;

	/* a card without room for the question is measured where the program happens to run */
	if (!frag_cuda_room(c, frag_cuda_held(c), 2 * FRAG_PAGE))
		return;
	if (!k->chosen && sched_getaffinity(0, sizeof(k->allowed), &k->allowed))
		return;
	k->chosen = true;
	count = (unsigned)CPU_COUNT(&k->allowed);
	best = fastest(k, (count + CORES_MAX - 1) / CORES_MAX);
	if (best == CPU_SETSIZE || !run_on(best))
		frag_cuda_core_release(c);
}

uint64_t frag_cuda_core_pair(struct cuda *c)
{
	if (!c->core.chosen || !frag_cuda_room(c, frag_cuda_held(c), 2 * FRAG_PAGE))
		return 0;
	return pair_ns();
}

void frag_cuda_core_release(struct cuda *c)
{
	if (c->core.chosen)
		(void)sched_setaffinity(0, sizeof(c->core.allowed), &c->core.allowed);
	c->core.chosen = false;
}
