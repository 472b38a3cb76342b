/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory for operators that the CPU computes instead of a kernel. Fresh pages cost more than
 * most of the computing, so one area keeps its pages between operators. It lies below the cards,
 * because addresses in the host's own area are part of the model (host_space.c).
 *
 * Each block starts with a cache line that holds its length. Freeing the last block makes room at
 * once, the others when all are free.
 */
#include "nogpu.h"

#include <sys/mman.h>

#define AREA 0x0f0000000000ull
#define AREA_BYTES (4 * FRAG_GIB)
#define KEPT (64 * FRAG_MIB) /* while nothing is computed */
#define KEPT_IN_FULL (1 * FRAG_GIB)
#define LINE 64u
#define HUGE_PAGE (2 * FRAG_MIB)
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static char *area;
static uint64_t used, touched, live;

/* pre: locked. */
static bool open_area(void)
{
	void *p;

	if (area)
		return true;
	p = mmap((void *)(uintptr_t)AREA, AREA_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	madvise(p, AREA_BYTES, MADV_HUGEPAGE);
	area = p;
	return true;
}

void *frag_nogpu_bench_take(uint64_t bytes)
{
	uint64_t all = frag_round_up(bytes, LINE) + LINE;
	char *block = NULL;

	pthread_mutex_lock(&mutex);
	if (bytes < AREA_BYTES && open_area() && all <= AREA_BYTES - used) {
		block = area + used;
		*(uint64_t *)(void *)block = all;
		used += all;
		touched = FRAG_MAX(touched, used);
		live++;
	}
	pthread_mutex_unlock(&mutex);
	return block ? block + LINE : NULL;
}

bool frag_nogpu_bench_give(void *p)
{
	char *block = (char *)p - LINE;

	if ((uint64_t)(uintptr_t)p - AREA >= AREA_BYTES)
		return false;
	pthread_mutex_lock(&mutex);
	if (block + *(uint64_t *)(void *)block == area + used)
		used = (uint64_t)(block - area);
	if (!--live) {
		uint64_t kept = frag_nogpu_in_full() ? KEPT_IN_FULL : KEPT;

		if (touched > kept)
			frag_nogpu_forget(area + kept, touched - kept);
		touched = FRAG_MIN(touched, kept);
		used = 0;
	}
	pthread_mutex_unlock(&mutex);
	return true;
}

/* Makes the pages of a part of the card present, huge ones where they fit, for reading or writing
 * (how). */
static void populate(const void *p, uint64_t bytes, int how)
{
	uint64_t low = frag_round_up((uint64_t)(uintptr_t)p, HUGE_PAGE);
	uint64_t high = frag_round_down((uint64_t)(uintptr_t)p + bytes, HUGE_PAGE);
	void *at = (void *)(uintptr_t)low;

	if (high <= low || frag_nogpu_in_full()) /* else all pages are huge */
		return;
	madvise(at, high - low, MADV_HUGEPAGE);
	madvise(at, high - low, how);
	madvise(at, high - low,
		MADV_NOHUGEPAGE); /* as the rest of the card, so that it stays one mapping */
}

void frag_nogpu_bench_ready(void *p, uint64_t bytes)
{
	populate(p, bytes, MADV_POPULATE_WRITE);
}

void frag_nogpu_bench_reads(const void *p, uint64_t bytes)
{
	populate(p, bytes, MADV_POPULATE_READ);
}
