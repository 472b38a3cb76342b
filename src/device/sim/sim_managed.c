/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory (cudaMallocManaged) on the simulated card, after the open kernel module nvidia-uvm
 * (uvm_perf_prefetch.c, uvm_pmm_gpu.c).
 *
 * An allocation takes only addresses. Memory becomes resident where the program touches or
 * prefetches it, in groups of 64 KiB inside blocks of 2 MiB; resident memory counts as reserved. A
 * touch that faults also fetches the largest subtree of the block's binary tree that is more than
 * 51 % resident (density prefetching); an explicit prefetch fetches only its range. If the card is
 * full, blocks are evicted whole, the one populated longest ago first: population moves a block to
 * the end of the queue, access to resident pages does not. The model assumes that everything is
 * written on the card, so an eviction moves every resident group to the host, and the next touch
 * moves it back; a group that was never populated is zeroed on the card and moves nothing.
 *
 * Requests of up to 2 MiB share regions of 2 MiB, as with cudaMalloc (measured).
 *
 * Invariants: the queue holds exactly the blocks with a resident group; usage.resident_bytes is the
 * sum over them and part of sim->used_bytes; the masks `resident` and `on_host` of a block are
 * disjoint.
 */
#include "sim.h"

#include "lib/links.h"
#include "uvm_groups.h"

#define LLU(x) ((unsigned long long)(x))

struct vblock {
	struct vblock *older, *newer; /* queue of populated blocks, oldest first */
	uint32_t resident, on_host;   /* bit per group */
};

/* A range of addresses: a large allocation, or a page for small ones. */
struct region {
	struct frag_tree_node node; /* key: address */
	uint64_t bytes;
	struct piece *piece;
	bool shared;	   /* by small requests */
	size_t used_count; /* blocks up to the last that was populated; the others are zeros */
	struct vblock blocks[];
};

static struct region *region_of(const struct frag_tree_node *n)
{
	return n ? FRAG_TREE_OF(n, struct region, node) : NULL;
}

void frag_sim_managed_release(struct sim *sim)
{
	struct sim_managed *m = &sim->managed;

	while (m->regions.root) {
		struct region *r = region_of(m->regions.root);

		frag_tree_remove(&m->regions, &r->node);
		frag_host_free(r);
	}
	frag_simarena_release(&m->heap);
	frag_addr_map_release(&m->small);
}

/* ---- residency -------------------------------------------------------------- */

/* Removes a block from the card without moving data. */
static uint64_t drop(struct sim *sim, struct vblock *b)
{
	uint64_t bytes = frag_uvm_count(b->resident) * UVM_GROUP;

	if (!bytes)
		return 0;
	FRAG_QUEUE_REMOVE(&sim->managed, b);
	b->resident = 0;
	sim->managed.usage.resident_bytes -= bytes;
	frag_sim_give(sim, bytes);
	return bytes;
}

static uint64_t moved(struct sim_managed *m, uint64_t ns)
{
	m->usage.moved_ns += ns;
	return ns;
}

void frag_sim_managed_evict(struct sim *sim, uint64_t bytes, uint64_t *ns)
{
	struct sim_managed *m = &sim->managed;

	while (sim->capacity_bytes - sim->used_bytes < bytes && m->oldest) {
		struct vblock *b = m->oldest;
		uint64_t out;

		b->on_host |= b->resident;
		out = drop(sim, b);
		m->usage.evictions++;
		m->usage.moved_out_bytes += out;
		*ns += moved(m, frag_sim_cost(sim, FRAG_COST_MANAGED_OUT, out));
	}
}

/* Price of populating groups, some from the host and some new. */
static uint64_t price(struct sim *sim, uint64_t in, uint64_t fresh, bool prefetch)
{
	uint64_t ns = 0;

	if (in) {
		ns += frag_sim_cost(sim, FRAG_COST_MANAGED_IN, in);
		ns += prefetch ? 0 : frag_sim_cost(sim, FRAG_COST_MANAGED_FAULT_IN, in);
		moved(&sim->managed, ns);
	}
	if (fresh) {
		ns += frag_sim_cost(sim, FRAG_COST_MANAGED_ZERO, fresh);
		ns += prefetch ? 0 : frag_sim_cost(sim, FRAG_COST_MANAGED_FAULT, fresh);
	}
	return ns;
}

/* Makes the groups `want` of a block with `valid` ones resident. FRAG_OOM: no room, and nothing can
 * be evicted. */
static int populate(struct sim *sim, struct vblock *b, uint32_t valid, uint32_t want, bool prefetch,
		    uint64_t *ns)
{
	struct sim_managed *m = &sim->managed;
	uint64_t bytes, in;

	want &= valid & ~b->resident;
	if (!want)
		return 0;
	if (!prefetch) {
		m->usage.faults += frag_uvm_count(want);
		want = frag_uvm_dense(valid, b->resident, want);
	}
	bytes = frag_uvm_count(want) * UVM_GROUP;
	/* out of the queue meanwhile, so that a block does not evict itself */
	if (b->resident)
		FRAG_QUEUE_REMOVE(m, b);
	if (frag_sim_take(sim, bytes, ns)) {
		if (b->resident)
			FRAG_QUEUE_ADD(m, b);
		return FRAG_OOM;
	}
	FRAG_QUEUE_ADD(m, b);
	in = frag_uvm_count(want & b->on_host) * UVM_GROUP;
	b->on_host &= ~want;
	b->resident |= want;
	m->usage.resident_bytes += bytes;
	m->usage.resident_peak_bytes =
		FRAG_MAX(m->usage.resident_peak_bytes, m->usage.resident_bytes);
	m->usage.moved_in_bytes += in;
	*ns += price(sim, in, bytes - in, prefetch);
	return 0;
}

/* Groups [first, end) of a region. */
static int bring_in(struct sim *sim, struct region *r, uint64_t first, uint64_t end, bool prefetch,
		    uint64_t *ns)
{
	while (first < end) {
		uint64_t block = first / UVM_GROUPS, low = first % UVM_GROUPS;
		uint64_t high = FRAG_MIN(end - block * UVM_GROUPS, UVM_GROUPS);
		uint32_t valid = frag_uvm_valid(frag_uvm_groups(r->bytes), block);

		r->used_count = FRAG_MAX(r->used_count, block + 1);
		FRAG_TRY(populate(sim, &r->blocks[block], valid, frag_uvm_mask(low, high), prefetch,
				  ns));
		first = block * UVM_GROUPS + high;
	}
	return 0;
}

int frag_sim_managed_touch(void *priv, frag_addr_t addr, uint64_t bytes, bool prefetch,
			   uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct region *r = region_of(frag_tree_floor(&sim->managed.regions, addr));
	uint64_t start, faults = sim->managed.usage.faults;
	int rc;

	*ns = 0;
	if (!r || !bytes || bytes > r->bytes || addr - r->node.key > r->bytes - bytes)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaMemPrefetchAsync: 0x%llx with %llu bytes is not managed "
				 "memory",
				 LLU(addr), LLU(bytes));
	start = addr - r->node.key;
	rc = bring_in(sim, r, start / UVM_GROUP, (start + bytes - 1) / UVM_GROUP + 1, prefetch, ns);
	/* a touch without room costs time, too */
	faults = sim->managed.usage.faults - faults;
	*ns += prefetch ? frag_sim_cost(sim, FRAG_CALL_PREFETCH, bytes)
			: frag_sim_cost(sim, FRAG_COST_MANAGED_TOUCH, faults * UVM_GROUP);
	return rc;
}

/* ---- allocations ------------------------------------------------------------ */

static int region_open(struct sim *sim, uint64_t bytes, bool shared, struct region **out,
		       struct frag_err *err)
{
	uint64_t count = bytes / FRAG_PAGE + (bytes % FRAG_PAGE > 0);
	struct region *r = NULL;
	int rc;

	if (bytes > 1ull << 47)
		return FRAG_OOM;
	r = frag_host_calloc(1, sizeof(*r) + count * sizeof(r->blocks[0]));
	FRAG_CHECK_ALLOC(r, "managed memory", err);
	rc = frag_simplace_cut(&sim->place, bytes, &r->piece, err);
	if (rc) {
		frag_host_free(r);
		return rc;
	}
	r->bytes = bytes;
	r->shared = shared;
	r->node.key = r->piece->addr;
	frag_tree_insert(&sim->managed.regions, &r->node);
	*out = r;
	return 0;
}

static void region_close(struct sim *sim, struct region *r)
{
	for (size_t i = 0; i < r->used_count; i++)
		drop(sim, &r->blocks[i]);
	frag_tree_remove(&sim->managed.regions, &r->node);
	frag_simplace_give(&sim->place, r->piece);
	frag_host_free(r);
}

static int alloc_small(struct sim *sim, uint64_t bytes, frag_addr_t *out, struct frag_err *err)
{
	struct sim_managed *m = &sim->managed;
	struct piece *p;

	FRAG_CHECK_ALLOC(frag_simarena_reserve(&m->heap) && !frag_addr_map_reserve(&m->small),
			 "managed memory", err);
	if (!frag_simheap_fits(&m->heap, bytes)) {
		struct region *r = NULL;

		FRAG_TRY(region_open(sim, FRAG_PAGE, true, &r, err));
		frag_simheap_open(&m->heap, r->node.key, r);
	}
	p = frag_simheap_cut(&m->heap, bytes);
	frag_addr_map_put(&m->small, p->addr, p);
	*out = p->addr;
	return 0;
}

int frag_sim_managed_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
			   struct frag_err *err)
{
	struct sim *sim = priv;
	struct region *r = NULL;

	*ns = frag_sim_cost(sim, FRAG_CALL_MANAGED, bytes);
	if (bytes <= FRAG_PAGE)
		return alloc_small(sim, bytes, out, err);
	FRAG_TRY(region_open(sim, bytes, false, &r, err));
	*out = r->node.key;
	return 0;
}

int frag_sim_managed_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_managed *m = &sim->managed;
	struct piece *p = frag_addr_map_take(&m->small, addr);
	struct region *r;

	*ns = 0;
	if (p)
		r = frag_simheap_give(&m->heap, p); /* NULL: other requests are left in it */
	else
		r = region_of(frag_tree_find(&m->regions, addr, 0));
	if (!p && (!r || r->shared))
		return frag_fail(err, FRAG_EDEVICE, "cudaFree: 0x%llx is not live managed memory",
				 LLU(addr));
	*ns = frag_sim_cost(sim, FRAG_CALL_MANAGED_FREE, r ? r->bytes : 0);
	if (r)
		region_close(sim, r);
	return 0;
}

void frag_sim_managed_usage(void *priv, struct frag_managed_usage *out)
{
	*out = ((const struct sim *)priv)->managed.usage;
}
