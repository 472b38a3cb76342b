/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaMemPool on the simulated card: connects the model of sim_mempool_model.c with the card:
 * capacity, prices, addresses, and which streams have finished.
 *
 * Reuse across streams. Freed pieces go to the stream that freed them at once, to others after a
 * synchronise of that stream or of the device. With ReuseAllowOpportunistic, an allocation without
 * mapped idle memory also takes what was freed elsewhere at least PASSED_NS of recorded time ago
 * (or the card's configured lag), because the card has passed it by then (an assumption; recordings
 * do not say). With ReuseAllowInternalDependencies it takes all of it, but only as a last resort.
 * ReuseFollowEventDependencies has no effect, since replays carry no events.
 *
 * Every pool has its own window of addresses; the driver's is unlimited.
 */
#include "sim.h"
#include "sim_mempool.h"
#include "lib/links.h"

#define PASSED_NS 10000000u
/* Holes with unmapped pages cost only addresses, so a pool gets many times the card's size. */
#define WINDOW_CARDS 16u
#define WINDOW_UNIT (1024 * FRAG_GIB)

struct sim_mempool {
	struct pool model;
	struct frag_mempool_attr attr;
	frag_addr_t base;
	uint64_t id;
	uint64_t live_count;
	uint64_t reserved_peak_bytes, used_peak_bytes;
	bool destroyed; /* removed with its last live block */
	struct sim_mempool *prev, *next;
};

#define LLU(x) ((unsigned long long)(x))

static void pool_delete(struct sim *sim, struct sim_mempool *p)
{
	FRAG_UNLINK(sim->pools.first, p);
	frag_addr_map_take(&sim->pools.by_id, p->id);
	frag_simplace_unreserve(&sim->place, p->base);
	frag_sim_give(sim, p->model.pages * p->model.page_bytes);
	frag_simmempool_release(&p->model);
	frag_host_free(p);
}

void frag_sim_mempools_release(struct sim *sim)
{
	while (sim->pools.first)
		pool_delete(sim, sim->pools.first);
	frag_addr_map_release(&sim->pools.by_id);
}

static int find_pool(struct sim *sim, enum frag_call call, uint64_t id, struct sim_mempool **out,
		     struct frag_err *err)
{
	*out = frag_addr_map_get(&sim->pools.by_id, id);
	if (*out)
		return 0;
	return frag_fail(err, FRAG_EDEVICE, "%s: unknown or destroyed pool %llu",
			 frag_call_name(call), LLU(id));
}

static uint64_t keep_pages(const struct sim_mempool *p, uint64_t bytes)
{
	/* returns pages while the pool holds more than `bytes` */
	return bytes / p->model.page_bytes;
}

/* Accounts for returned pages: physical memory and the time to return it. */
static uint64_t given(struct sim *sim, const struct sim_mempool *p, uint64_t pages)
{
	uint64_t bytes = pages * p->model.page_bytes;

	if (!pages)
		return 0;
	frag_sim_give(sim, bytes);
	return frag_sim_cost(sim, FRAG_COST_ASYNC_RELEASE, bytes);
}

static int place_pool(struct sim *sim, struct sim_mempool *p, struct frag_err *err)
{
	uint64_t card = FRAG_MIN(sim->cfg.total_bytes, 1ull << 56);
	uint64_t window = frag_round_up(card * WINDOW_CARDS, WINDOW_UNIT);

	FRAG_TRY(frag_simmempool_init(&p->model, window, err));
	return frag_simplace_reserve(&sim->place, window, &p->base, err);
}

int frag_sim_mempool_create(void *priv, const struct frag_mempool_attr *attr, uint64_t *pool,
			    uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_mempools *all = &sim->pools;
	struct sim_mempool *p;
	int rc;

	*ns = frag_sim_cost(sim, FRAG_CALL_POOL_CREATE, 0);
	FRAG_CHECK_ALLOC(!frag_addr_map_reserve(&all->by_id), "pools", err);
	FRAG_TRY_CALLOC(p, 1, "pool", err);
	rc = place_pool(sim, p, err);
	if (rc) {
		frag_simmempool_release(&p->model);
		frag_host_free(p);
		return rc < 0 ? rc
			      : frag_fail(err, FRAG_EDEVICE,
					  "cudaMemPoolCreate: address space exhausted");
	}
	p->attr = *attr;
	p->id = ++all->last_id;
	FRAG_LINK_FIRST(all->first, p);
	frag_addr_map_put(&all->by_id, p->id, p);
	*pool = p->id;
	return 0;
}

int frag_sim_mempool_destroy(void *priv, uint64_t pool, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_mempool *p;

	*ns = frag_sim_cost(sim, FRAG_CALL_POOL_DESTROY, 0);
	FRAG_TRY(find_pool(sim, FRAG_CALL_POOL_DESTROY, pool, &p, err));
	if (p->destroyed)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaMemPoolDestroy: pool %llu was destroyed before", LLU(pool));
	*ns += frag_sim_cost(sim, FRAG_COST_ASYNC_RELEASE, p->model.takeable * p->model.page_bytes);
	p->destroyed = true;
	if (!p->live_count)
		pool_delete(sim, p);
	return 0;
}

/* One attempt; takes new pages from the card. */
static int attempt(struct sim *sim, struct sim_mempool *p, uint64_t bytes, uint32_t stream,
		   struct pool_passed passed, uint64_t *addr, uint64_t *ns, struct frag_err *err)
{
	uint64_t left = sim->capacity_bytes - sim->used_bytes + sim->managed.usage.resident_bytes;
	uint64_t page = p->model.page_bytes;
	struct pool_work work;
	int rc;

	FRAG_TRY(frag_simmempool_alloc(&p->model, bytes, stream, left / page, passed, addr, &work,
				       err));
	if (work.fresh_pages) {
		rc = frag_sim_take(sim, work.fresh_pages * page, ns);
		FRAG_ASSERT(!rc); /* no more than `left` was asked for */
		*ns += frag_sim_cost(sim, FRAG_COST_ASYNC_NEW, work.fresh_pages * page);
	}
	if (work.moved_pages)
		*ns += frag_sim_cost(sim, FRAG_COST_ASYNC_REMAP, work.moved_pages * page);
	return 0;
}

static uint64_t before(uint64_t now_ns, uint64_t lag_ns)
{
	if (!lag_ns)
		return UINT64_MAX;
	return now_ns > lag_ns ? now_ns - lag_ns : 0;
}

/* What the card has passed. For other streams the lag is an assumption. For the own stream it
 * counts only if configured (--work): then the pool takes new pages instead of moving some. */
static struct pool_passed passed_now(const struct sim *sim, const struct sim_mempool *p)
{
	uint64_t now = sim->dev->now_ns;

	return (struct pool_passed){
		.own_ns = before(now, frag_sim_lag(sim, 0)),
		.others_ns = p->attr.reuse_allow_opportunistic
				     ? before(now, frag_sim_lag(sim, PASSED_NS))
				     : 0,
	};
}

int frag_sim_mempool_alloc(void *priv, uint64_t pool, uint64_t bytes, uint32_t stream,
			   frag_addr_t *out, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_mempool *p;
	struct pool_passed all = { UINT64_MAX, UINT64_MAX };
	uint64_t addr;
	int rc;

	*ns = frag_sim_cost(sim, FRAG_CALL_ASYNC_MALLOC, bytes);
	FRAG_TRY(find_pool(sim, FRAG_CALL_ASYNC_MALLOC, pool, &p, err));
	if (p->destroyed)
		return frag_fail(err, FRAG_EDEVICE, "cudaMallocAsync: pool %llu is destroyed",
				 LLU(pool));
	rc = attempt(sim, p, bytes, stream, passed_now(sim, p), &addr, ns, err);
	if (rc == FRAG_OOM && p->attr.reuse_allow_internal_dependencies)
		rc = attempt(sim, p, bytes, stream, all, &addr, ns, err);
	if (rc)
		return rc;
	p->live_count++;
	p->used_peak_bytes = FRAG_MAX(p->used_peak_bytes, p->model.used_bytes);
	p->reserved_peak_bytes =
		FRAG_MAX(p->reserved_peak_bytes, p->model.pages * p->model.page_bytes);
	*out = p->base + addr;
	return 0;
}

int frag_sim_mempool_free(void *priv, uint64_t pool, frag_addr_t addr, uint32_t stream,
			  uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_mempool *p;
	uint64_t asked = 0;

	*ns = frag_sim_cost(sim, FRAG_CALL_ASYNC_FREE, 0);
	FRAG_TRY(find_pool(sim, FRAG_CALL_ASYNC_FREE, pool, &p, err));
	if (addr >= p->base)
		FRAG_TRY(frag_simmempool_free(&p->model, addr - p->base, stream, sim->dev->now_ns,
					      &asked, err));
	if (!asked)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaFreeAsync: 0x%llx is not live in pool %llu", LLU(addr),
				 LLU(pool));
	p->live_count--;
	if (p->destroyed && !p->live_count)
		pool_delete(sim, p);
	return 0;
}

int frag_sim_mempool_trim(void *priv, uint64_t pool, uint64_t keep_bytes, uint64_t *ns,
			  struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_mempool *p;

	*ns = frag_sim_cost(sim, FRAG_CALL_POOL_TRIM, 0);
	FRAG_TRY(find_pool(sim, FRAG_CALL_POOL_TRIM, pool, &p, err));
	*ns += given(sim, p, frag_simmempool_trim(&p->model, keep_pages(p, keep_bytes)));
	return 0;
}

void frag_sim_mempools_sync(struct sim *sim, uint32_t stream, bool whole_device, uint64_t *ns)
{
	for (struct sim_mempool *p = sim->pools.first; p; p = p->next) {
		uint64_t keep = keep_pages(p, p->attr.release_threshold);
		uint64_t pages = 0;

		if (!whole_device)
			pages = frag_simmempool_sync(&p->model, stream, keep);
		for (uint32_t i = 0; whole_device && i < p->model.order_count; i++)
			pages += frag_simmempool_sync(&p->model, p->model.order[i], keep);
		*ns += given(sim, p, pages);
	}
}

void frag_sim_mempool_usage(void *priv, uint64_t pool, struct frag_mempool_usage *out)
{
	struct sim *sim = priv;
	const struct sim_mempool *p = frag_addr_map_get(&sim->pools.by_id, pool);

	if (!p)
		return;
	*out = (struct frag_mempool_usage){
		.reserved_bytes = p->model.pages * p->model.page_bytes,
		.reserved_peak_bytes = p->reserved_peak_bytes,
		.used_bytes = p->model.used_bytes,
		.used_peak_bytes = p->used_peak_bytes,
	};
}
