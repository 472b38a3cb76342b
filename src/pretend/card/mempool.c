/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaMallocAsync on the pretended cards: pools of the simulated device
 * (src/device/sim/sim_mempool.c), a default one for each card and those of the program. Blocks lie
 * in the zone of reservations; streams are small numbers there. The release threshold is read at a
 * pool's first block. A freed block counts as free from the moment, on the modelled clock, when its
 * stream has done its work; until then the pool moves none of its pages.
 */
#include "card.h"

#include <stdlib.h>

#include <frag/device.h>

#define UNIT_BYTES 512u
#define STREAMS_MAX 256u

/* enum cudaMemPoolAttr */
enum { RELEASE_THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

struct pool {
	int device;
	uint64_t id; /* of the simulated device; 0: not used yet */
	uint64_t threshold;
	uint64_t used_bytes; /* as requested */
	uint64_t reserved_high, used_high;
};

static struct pool defaults[PRETEND_CARDS_MAX];
static struct pool *current[PRETEND_CARDS_MAX];
static void *streams[STREAMS_MAX];
static uint32_t streams_count;

static uint32_t number_of(void *stream)
{
	for (uint32_t i = 0; i < streams_count; i++)
		if (streams[i] == stream)
			return i;
	if (streams_count == STREAMS_MAX)
		return 0;
	streams[streams_count] = stream;
	return streams_count++;
}

static struct pool *default_of(int device)
{
	defaults[device].device = device;
	return &defaults[device];
}

static struct pool *current_of(int device)
{
	return current[device] ? current[device] : default_of(device);
}

static uint64_t reserved_by(const struct pool *p)
{
	struct frag_mempool_usage now = { 0 };

	if (p->id)
		frag_dev_mempool_usage(frag_pretend_sim(p->device), p->id, &now);
	return now.reserved_bytes;
}

static void wait_for(void *stream, bool all)
{
	PRETEND_LOCKED;
	struct frag_device *sim = frag_pretend_sim(frag_pretend_device());

	if (all)
		frag_dev_sync_all(sim, NULL);
	else
		frag_dev_sync(sim, number_of(stream), NULL);
}

/* pre: locked. */
static int take(struct pool *p, void **out, uint64_t bytes, void *stream)
{
	const struct frag_mempool_attr attr = { p->threshold, true, true, true };
	struct frag_device *sim = frag_pretend_sim(p->device);
	uint64_t units = frag_round_up(bytes, UNIT_BYTES);
	frag_addr_t addr;

	*out = NULL;
	if (!bytes)
		return PRETEND_INVALID_VALUE;
	frag_pretend_mark_begun();
	frag_pretend_streams_begin();
	frag_pretend_pools_wait = wait_for;
	sim->now_ns = frag_pretend_now();
	if ((!p->id && frag_dev_mempool_create(sim, &attr, &p->id, NULL)) ||
	    frag_dev_mempool_alloc(sim, p->id, units, number_of(stream), &addr, NULL))
		return PRETEND_OUT_OF_MEMORY;
	*out = frag_pretend_out(p->device, PRETEND_RESERVATIONS, addr);
	if (frag_pretend_owner(*out) != p->device ||
	    !frag_pretend_range_put(*out, bytes, p->device)) {
		frag_dev_mempool_free(sim, p->id, addr, units, number_of(stream), NULL);
		*out = NULL;
		return PRETEND_OUT_OF_MEMORY;
	}
	frag_pretend_range_of(*out)->pool = p;
	p->used_bytes += bytes;
	p->used_high = FRAG_MAX(p->used_high, p->used_bytes);
	p->reserved_high = FRAG_MAX(p->reserved_high, reserved_by(p));
	return PRETEND_OK;
}

bool frag_pretend_pool_give(void *at, void *stream)
{
	const struct pretend_range *r = frag_pretend_range_of(at);
	struct pool *p = r && r->base == (uintptr_t)at ? r->pool : NULL;
	struct frag_device *sim;
	uint64_t bytes;
	int device;

	if (!p || !frag_pretend_range_take(at, &bytes, &device))
		return false;
	sim = frag_pretend_sim(device);
	sim->now_ns = frag_pretend_done(stream);
	frag_dev_mempool_free(sim, p->id, frag_pretend_in(device, PRETEND_RESERVATIONS, at),
			      frag_round_up(bytes, UNIT_BYTES), number_of(stream), NULL);
	p->used_bytes -= bytes;
	frag_pretend_forget(at, bytes);
	return true;
}

static int allocate(struct pool *own, void **out, uint64_t bytes, void *stream)
{
	PRETEND_LOCKED;

	return take(own ? own : current_of(frag_pretend_device()), out, bytes, stream);
}

PRETEND_VALUE(int, cuMemAllocAsync, (void **out, size_t bytes, void *stream),
	      allocate(NULL, out, bytes, stream))
PRETEND_VALUE(int, cuMemAllocFromPoolAsync, (void **out, size_t bytes, void *pool, void *stream),
	      allocate(pool, out, bytes, stream))
PRETEND_ENTRY(int, cuMemFreeAsync, (void *p, void *stream))
{
	PRETEND_LOCKED;

	return !p || frag_pretend_pool_give(p, stream) ? PRETEND_OK : PRETEND_INVALID_VALUE;
}

/* ---- pools ------------------------------------------------------------------------- */

PRETEND_ANSWER(cuDeviceGetDefaultMemPool, (void **out, int device), *out = default_of(device))
PRETEND_ANSWER(cuDeviceGetMemPool, (void **out, int device), *out = current_of(device))
PRETEND_ENTRY(int, cuDeviceSetMemPool, (int device, void *pool))
{
	PRETEND_LOCKED;

	current[device] = pool;
	return PRETEND_OK;
}
/* A pool of the current card; the location in the properties is ignored. */
PRETEND_ENTRY(int, cuMemPoolCreate, (struct pool * *out, const void *properties))
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return PRETEND_OUT_OF_MEMORY;
	(*out)->device = frag_pretend_device();
	return PRETEND_OK;
}
/* Keeps the struct: blocks may outlive their pool. */
PRETEND_ENTRY(int, cuMemPoolDestroy, (struct pool * p))
{
	PRETEND_LOCKED;

	if (p->id)
		frag_dev_mempool_destroy(frag_pretend_sim(p->device), p->id, NULL);
	if (current[p->device] == p)
		current[p->device] = NULL;
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cuMemPoolGetAttribute, (const struct pool *p, int which, void *value))
{
	PRETEND_LOCKED;
	const uint64_t all[] = { p->threshold, reserved_by(p), p->reserved_high, p->used_bytes,
				 p->used_high };

	if (which < RELEASE_THRESHOLD)
		*(int *)value = 1; /* all three kinds of reuse are on */
	else if (which <= USED_HIGH)
		*(uint64_t *)value = all[which - RELEASE_THRESHOLD];
	return which <= USED_HIGH ? PRETEND_OK : PRETEND_INVALID_VALUE;
}
/* A high-water mark is set to 0, which resets it to the current figure. */
PRETEND_ENTRY(int, cuMemPoolSetAttribute, (struct pool * p, int which, const void *value))
{
	PRETEND_LOCKED;

	if (which == RELEASE_THRESHOLD)
		p->threshold = *(const uint64_t *)value;
	else if (which == RESERVED_HIGH)
		p->reserved_high = reserved_by(p);
	else if (which == USED_HIGH)
		p->used_high = p->used_bytes;
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cuMemPoolTrimTo, (const struct pool *p, size_t keep_bytes))
{
	PRETEND_LOCKED;

	if (p->id)
		frag_dev_mempool_trim(frag_pretend_sim(p->device), p->id, keep_bytes, NULL);
	return PRETEND_OK;
}

PRETEND_RUNTIME(cudaMallocAsync, cuMemAllocAsync)
PRETEND_RUNTIME(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync)
PRETEND_RUNTIME(cudaFreeAsync, cuMemFreeAsync)
PRETEND_RUNTIME(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)
PRETEND_RUNTIME(cudaDeviceGetMemPool, cuDeviceGetMemPool)
PRETEND_RUNTIME(cudaDeviceSetMemPool, cuDeviceSetMemPool)
PRETEND_RUNTIME(cudaMemPoolCreate, cuMemPoolCreate)
PRETEND_RUNTIME(cudaMemPoolDestroy, cuMemPoolDestroy)
PRETEND_RUNTIME(cudaMemPoolGetAttribute, cuMemPoolGetAttribute)
PRETEND_RUNTIME(cudaMemPoolSetAttribute, cuMemPoolSetAttribute)
PRETEND_RUNTIME(cudaMemPoolTrimTo, cuMemPoolTrimTo)
