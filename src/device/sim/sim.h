/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated card, private to src/device/sim*.c.
 *
 * Physical memory is a number of bytes: pages are interchangeable, so only the sum matters. Each
 * part counts what it holds with frag_sim_take and frag_sim_give. All addresses come from
 * sim_place.h, so nothing overlaps.
 *
 * Ownership: struct sim is the back end's `priv`; the parts are values in it with their own init
 * and release. The functions below follow struct frag_device_ops.
 */
#ifndef FRAG_DEVICE_SIM_H
#define FRAG_DEVICE_SIM_H

#include "cost.h"
#include "sim_place.h"
#include "lib/addr_map.h"
#include "lib/slabs.h"
#include "lib/tree.h"

/* cudaMalloc (sim_malloc.c) */
struct sim_malloc {
	struct frag_addr_map small; /* address -> piece */
	struct frag_addr_map big;   /* address -> piece */
	struct arena heap;
	/* small segments at given addresses: address -> shared page */
	struct frag_addr_map given;
	struct frag_addr_map given_pages; /* its address -> the same */
	struct frag_slab given_slab;
};

/* virtual memory management (sim_vmm.c) */
struct sim_vmm {
	struct frag_tree ranges;   /* struct range by address */
	struct frag_tree mappings; /* struct mapping by address */
	struct frag_addr_map handles;
	struct frag_slab range_slab, mapping_slab, handle_slab;
	uint64_t last_handle;
};

/* cudaMallocManaged (sim_managed.c) */
struct sim_managed {
	struct frag_tree regions;	/* by address */
	struct frag_addr_map small;	/* address -> piece */
	struct arena heap;		/* regions cut for small requests */
	struct vblock *oldest, *newest; /* populated blocks, in order of population */
	struct frag_managed_usage usage;
};

/* cudaMemPool (sim_mempool.c) */
struct sim_mempools {
	struct sim_mempool *first;
	struct frag_addr_map by_id;
	uint64_t last_id;
};

/* work queued on streams (sim_fence.c) */
struct sim_fence {
	uint64_t *synced;	/* per stream: all fences up to this stamp are done */
	uint32_t streams_count; /* length of `synced` */
	uint64_t synced_all;
	uint64_t newest; /* greatest stamp so far */
};

/* Returned memory is cleared in the background before it can be used again (sim.c). */
struct sim_clear {
	double bytes_per_ns; /* 0 = at once */
	double dirty_bytes;
	uint64_t at_ns; /* time for which dirty_bytes holds */
};

struct sim {
	struct frag_sim_config cfg;
	const struct frag_device *dev; /* for now_ns */
	const struct frag_cost *cost;
	uint64_t capacity_bytes; /* total - context - what other processes hold */
	frag_sim_others_fn others;
	void *others_ctx;
	uint64_t used_bytes;
	struct sim_clear clear;
	struct place place;
	struct sim_malloc malloc;
	struct sim_vmm vmm;
	struct sim_managed managed;
	struct sim_fence fence;
	struct sim_mempools pools;
};

/*
 * Physical memory. take: 0 or FRAG_OOM. Evicts resident managed memory first if that helps. Adds to
 * *ns the price of eviction and of waiting for memory that is not cleared yet.
 */
int frag_sim_take(struct sim *sim, uint64_t bytes, uint64_t *ns);
void frag_sim_give(struct sim *sim, uint64_t bytes);

/* Asks the place hook: 0 = use *addr, FRAG_OOM = refused, -1 = own rule. */
static inline int frag_sim_hook(struct sim *sim, enum frag_call kind, uint64_t bytes,
				frag_addr_t *addr)
{
	return sim->cfg.place ? sim->cfg.place(sim->cfg.place_ctx, kind, bytes, addr) : -1;
}

static inline uint64_t frag_sim_cost(const struct sim *sim, unsigned item, uint64_t bytes)
{
	uint64_t ns = frag_cost_ns(sim->cost, item, bytes);

	if (FRAG_LIKELY(sim->cfg.host_ratio <= 0))
		return ns;
	return (uint64_t)((double)ns * frag_cost_host_times(item, bytes, sim->cfg.host_ratio));
}

/* Recorded time after which queued work is done; `usual`: if the card does not say. */
static inline uint64_t frag_sim_lag(const struct sim *sim, uint64_t usual)
{
	if (sim->cfg.work_idle)
		return 0;
	return sim->cfg.work_lag_ns ? sim->cfg.work_lag_ns : usual;
}

FRAG_DEVICE_DECLARE(frag_sim)

void frag_sim_malloc_init(struct sim *sim);
void frag_sim_malloc_release(struct sim *sim);

void frag_sim_vmm_init(struct sim *sim);
void frag_sim_vmm_release(struct sim *sim);

void frag_sim_managed_release(struct sim *sim);
/* Evicts populated blocks, oldest first, until `bytes` are free or none is left. */
void frag_sim_managed_evict(struct sim *sim, uint64_t bytes, uint64_t *ns);

void frag_sim_mempools_release(struct sim *sim);
/* After a synchronise, the frees of one stream (or all streams) are complete. */
void frag_sim_mempools_sync(struct sim *sim, uint32_t stream, bool whole_device, uint64_t *ns);

void frag_sim_fence_release(struct sim *sim);

#endif
