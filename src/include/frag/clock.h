/* SPDX-License-Identifier: Apache-2.0 */
/* The host's clock, for all timing. */
#ifndef FRAG_CLOCK_H
#define FRAG_CLOCK_H

#include <stdint.h>
#include <time.h>

/* ns since some moment in the past; never goes back. */
static inline uint64_t frag_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
