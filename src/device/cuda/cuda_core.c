/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the core for a measurement.
 *
 * Measured on virtual machines with an H200: every driver call, an event and a plain system call
 * too, takes 1.4 times as long for seconds at a time on one core and not on another (a cudaMalloc
 * of 4 MiB 34 or 48 us, nothing in between), whatever the card does and at a constant clock rate,
 * because the core's other hardware thread is busy with other work. By itself, a program stays on
 * its core. So before a measurement, all cores are timed, and the fastest is kept until the device
 * is closed.
 */
#include "cuda_internal.h"

#include <stdlib.h>

#define PAIRS 5u
#define CORES_MAX 32u /* most cores timed, of those that the program may use */

/* cudaMalloc and cudaFree of 4 MiB: the median of a few after a warm-up. 0: failed. */
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

/* Times every step-th usable core. Returns the fastest; CPU_SETSIZE: all failed. */
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

	/* without room on the card for timing, the program stays on its current core */
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
