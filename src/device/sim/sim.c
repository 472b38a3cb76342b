/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated card: opens, closes, describes itself and counts physical memory. The parts are in
 * sim_malloc.c, sim_vmm.c, sim_managed.c, sim_mempool.c and sim_fence.c; addresses come from
 * sim_place.c, prices from cost.c.
 *
 * The driver clears returned memory in the background, and hands out cleared memory first. A
 * program that takes and returns memory faster than the card clears it waits in the calls that take
 * memory. Time advances with the driver's own calls and, unless the card is idle (work_idle), with
 * recorded time.
 *
 * Invariant: used_bytes is the sum of what the parts and libraries (occupy) hold, at most
 * capacity_bytes, which is the card without the CUDA context.
 */
#include <frag/device.h>

#include "sim.h"

#include <stdio.h>

/* The card of the bundled recordings: H200, driver 580.159.04, with a context. */
#define H200_TOTAL 150109880320ull
#define H200_CONTEXT 552402944ull

/* ---- clearing ------------------------------------------------------------------- */

static void clear_until_now(struct sim *sim)
{
	struct sim_clear *c = &sim->clear;
	uint64_t now = sim->dev->driver_ns + (sim->cfg.work_idle ? 0 : sim->dev->now_ns);

	if (now <= c->at_ns)
		return;
	c->dirty_bytes -= (double)(now - c->at_ns) * c->bytes_per_ns;
	c->dirty_bytes = FRAG_MAX(c->dirty_bytes, 0.0);
	c->at_ns = now;
}

/* How long a call waits that takes `bytes`, which are free but perhaps not cleared. */
static uint64_t wait_for_clear(struct sim *sim, uint64_t bytes)
{
	struct sim_clear *c = &sim->clear;
	double clear, wait;

	if (c->dirty_bytes <= 0)
		return 0;
	clear_until_now(sim);
	clear = (double)(sim->capacity_bytes - sim->used_bytes) - c->dirty_bytes;
	if ((double)bytes <= clear)
		return 0;
	wait = ((double)bytes - clear) / c->bytes_per_ns;
	c->dirty_bytes -= (double)bytes - clear;
	c->at_ns += (uint64_t)wait;
	return (uint64_t)wait;
}

/* The capacity is what other processes leave, but not below what is used. */
static void share(struct sim *sim, uint64_t asked_bytes)
{
	uint64_t room = sim->cfg.total_bytes - sim->cfg.context_bytes, others;

	if (FRAG_LIKELY(!sim->others))
		return;
	others = sim->others(sim->others_ctx, sim->used_bytes, asked_bytes);
	sim->capacity_bytes = FRAG_MAX(sim->used_bytes, room - FRAG_MIN(room, others));
}

void frag_sim_give(struct sim *sim, uint64_t bytes)
{
	FRAG_ASSERT(sim->used_bytes >= bytes);
	sim->used_bytes -= bytes;
	share(sim, 0);
	if (sim->clear.bytes_per_ns <= 0)
		return;
	if (sim->dev)
		clear_until_now(sim);
	sim->clear.dirty_bytes += (double)bytes;
}

static int take(struct sim *sim, uint64_t bytes, uint64_t *ns)
{
	if (FRAG_UNLIKELY(bytes > sim->capacity_bytes))
		return FRAG_OOM;
	if (FRAG_UNLIKELY(bytes > sim->capacity_bytes - sim->used_bytes)) {
		/* the driver evicts managed memory for an ordinary allocation, too */
		uint64_t held = sim->used_bytes - sim->managed.usage.resident_bytes;

		if (bytes > sim->capacity_bytes - held)
			return FRAG_OOM;
		frag_sim_managed_evict(sim, bytes, ns);
		if (bytes > sim->capacity_bytes - sim->used_bytes)
			return FRAG_OOM; /* memory that is being populated does not evict itself */
	}
	*ns += wait_for_clear(sim, bytes);
	sim->used_bytes += bytes;
	return 0;
}

int frag_sim_take(struct sim *sim, uint64_t bytes, uint64_t *ns)
{
	share(sim, bytes);
	if (!take(sim, bytes, ns))
		return 0;
	share(sim, 0);
	return FRAG_OOM;
}

static int sim_make_ready(void *priv, uint64_t given_back_bytes, struct frag_err *err)
{
	struct sim *sim = priv;

	(void)given_back_bytes, (void)err;
	sim->clear.dirty_bytes = 0;
	return 0;
}

/* ---- the card ------------------------------------------------------------------- */

void frag_sim_close(void *priv)
{
	struct sim *sim = priv;

	frag_sim_mempools_release(sim);
	frag_sim_managed_release(sim);
	frag_sim_vmm_release(sim);
	frag_sim_malloc_release(sim);
	frag_sim_fence_release(sim);
	frag_simplace_release(&sim->place);
	frag_host_free(sim);
}

void frag_sim_info(void *priv, struct frag_device_info *out)
{
	const struct sim *sim = priv;

	*out = (struct frag_device_info){
		.total_bytes = sim->cfg.total_bytes,
		.context_bytes = sim->cfg.context_bytes,
		.granule_bytes = FRAG_PAGE,
		.can = FRAG_CAN_MALLOC | FRAG_CAN_VMM | FRAG_CAN_ASYNC | FRAG_CAN_MANAGED,
		.modelled = true,
	};
	snprintf(out->name, sizeof(out->name), "%s", sim->cfg.name);
}

int frag_sim_mem_info(void *priv, uint64_t *free_bytes, uint64_t *total_bytes, uint64_t *ns,
		      struct frag_err *err)
{
	struct sim *sim = priv;

	(void)err;
	share(sim, 0);
	*free_bytes = sim->capacity_bytes - sim->used_bytes;
	*total_bytes = sim->cfg.total_bytes;
	*ns = frag_sim_cost(sim, FRAG_CALL_MEM_INFO, 0);
	return 0;
}

uint64_t frag_sim_reserved(void *priv)
{
	return ((const struct sim *)priv)->used_bytes;
}

static const struct frag_device_ops sim_ops = {
	.name = "sim",
	.summary = "simulated card: capacity, 2 MiB pages, driver placement, modelled costs",
	FRAG_DEVICE_OPS(frag_sim),
	.make_ready = sim_make_ready,
};

/* Bytes cleared per nanosecond; 0 = all at once. */
static double clear_rate(const struct frag_cost *cost)
{
	uint64_t ns = frag_cost_ns(cost, FRAG_COST_CLEAR, FRAG_GIB);

	return ns ? (double)FRAG_GIB / (double)ns : 0;
}

/* Fills in the caller's unset fields. */
static int fill_in(struct frag_sim_config *cfg, struct frag_err *err)
{
	if (!cfg->name)
		cfg->name = "sim";
	if (!cfg->total_bytes)
		cfg->total_bytes = H200_TOTAL;
	if (cfg->context_bytes == UINT64_MAX)
		cfg->context_bytes = H200_CONTEXT;
	if (cfg->context_bytes <= cfg->total_bytes)
		return 0;
	return FRAG_USAGE(err,
			  "a context of %llu bytes does not fit a card of %llu; raise --capacity "
			  "or lower --context",
			  (unsigned long long)cfg->context_bytes,
			  (unsigned long long)cfg->total_bytes);
}

int frag_sim_open(const struct frag_sim_config *cfg, struct frag_device **out, struct frag_err *err)
{
	struct frag_sim_config full = *cfg;
	struct sim *sim;
	int rc;

	FRAG_TRY(fill_in(&full, err));
	FRAG_TRY_CALLOC(sim, 1, "simulated card", err);
	sim->cfg = full;
	sim->cost = full.cost ? full.cost : frag_cost_builtin();
	sim->capacity_bytes = full.total_bytes - full.context_bytes;
	sim->clear.bytes_per_ns = clear_rate(sim->cost);
	frag_sim_malloc_init(sim);
	frag_sim_vmm_init(sim);
	frag_simarena_init(&sim->managed.heap, true);
	rc = frag_simplace_init(&sim->place, full.local_bytes, err)
		     ?: frag_dev_open(&sim_ops, sim, out, err);
	sim->place.host = full.host;
	sim->place.host_ctx = full.host_ctx;
	if (rc) {
		frag_sim_close(sim);
		return rc;
	}
	sim->dev = *out;
	return 0;
}

/* pre: a simulated device. */
static struct sim *own(const struct frag_device *dev)
{
	FRAG_ASSERT(dev->ops == &sim_ops);
	return dev->priv;
}

void frag_sim_local(struct frag_device *dev, uint64_t bytes, uint64_t behind)
{
	frag_simplace_local(&own(dev)->place, bytes, behind);
}

void frag_sim_share(struct frag_device *dev, frag_sim_others_fn others, void *ctx)
{
	own(dev)->others = others;
	own(dev)->others_ctx = ctx;
}

void frag_sim_hold(struct frag_device *dev, uint64_t bytes)
{
	struct piece *forever;

	(void)frag_simplace_cut(&own(dev)->place, bytes, &forever, NULL);
}

void frag_sim_hold_mapped(struct frag_device *dev, uint64_t bytes)
{
	frag_simplace_map(&own(dev)->place, bytes);
}

frag_addr_t frag_sim_host_take(struct frag_device *dev, uint64_t bytes)
{
	return frag_simplace_host_take(&own(dev)->place, bytes);
}

void frag_sim_host_give(struct frag_device *dev, frag_addr_t addr, uint64_t bytes)
{
	frag_simplace_host_give(&own(dev)->place, addr, bytes);
}

uint64_t frag_sim_occupy(struct frag_device *dev, uint64_t bytes)
{
	struct sim *sim = own(dev);
	uint64_t ns = 0;

	if (!frag_sim_take(sim, bytes, &ns))
		return bytes;
	bytes = sim->capacity_bytes - sim->used_bytes;
	sim->used_bytes += bytes;
	return bytes;
}

void frag_sim_vacate(struct frag_device *dev, uint64_t bytes)
{
	frag_sim_give(own(dev), bytes);
}
