/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaMalloc and cudaFree of the simulated card.
 *
 * Requests of up to 2 MiB share pages (sim_heap.c): one that fits an open page
 * needs no new memory and costs a microsecond, one that opens a page costs
 * thirty. Bigger ones take whole pages of their own, at addresses by sim_place.c.
 * The place hook, where there is one, is asked first; a segment that it places takes
 * whole pages whatever its size.
 *
 * Invariant: every segment handed out is in `small` or in `big`, by address.
 */
#include "sim.h"

void frag_sim_malloc_init(struct sim *sim)
{
	frag_simheap_init(&sim->malloc.heap);
}

void frag_sim_malloc_release(struct sim *sim)
{
	frag_simheap_release(&sim->malloc.heap);
	frag_simmap_release(&sim->malloc.small);
	frag_simmap_release(&sim->malloc.big);
}

/* Whole pages, by the driver's rule or at *at (a wish: there if that is free). */
static int take_pages(struct sim *sim, uint64_t bytes, const frag_addr_t *at, bool wish,
		      struct piece **out, uint64_t *ns, struct frag_err *err)
{
	int rc;

	bytes = frag_round_up(bytes, FRAG_PAGE);
	FRAG_TRY(frag_sim_take(sim, bytes, ns));
	rc = at ? frag_simplace_claim(&sim->place, *at, bytes, wish, out, err)
		: frag_simplace_cut(&sim->place, bytes, out, err);
	if (rc)
		frag_sim_give(sim, bytes);
	return rc;
}

static void give_pages(struct sim *sim, struct piece *p)
{
	frag_sim_give(sim, p->bytes);
	frag_simplace_give(&sim->place, p);
}

static int take_big(struct sim *sim, uint64_t bytes, const frag_addr_t *at, bool wish,
		    frag_addr_t *out, uint64_t *ns, struct frag_err *err)
{
	struct piece *p = NULL;

	if (!frag_simmap_reserve(&sim->malloc.big))
		return frag_fail_nomem(err, "segments of the simulated card");
	FRAG_TRY(take_pages(sim, bytes, at, wish, &p, ns, err));
	*ns += frag_sim_cost(sim, FRAG_CALL_MALLOC, p->bytes);
	frag_simmap_put(&sim->malloc.big, p->addr, p);
	*out = p->addr;
	return 0;
}

/* What prices a request (or its free) that opens (or closes) a page, or does not. */
static unsigned small_price(uint64_t bytes, bool page, enum frag_call call)
{
	if (page && bytes == FRAG_PAGE)
		return call; /* a page of its own: the first column of the table */
	if (call == FRAG_CALL_MALLOC)
		return page ? FRAG_COST_MALLOC_PAGE : FRAG_COST_MALLOC_HIT;
	return page ? FRAG_COST_FREE_PAGE : FRAG_COST_FREE_HIT;
}

static int take_small(struct sim *sim, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		      struct frag_err *err)
{
	struct sim_malloc *m = &sim->malloc;
	bool hit = frag_simheap_fits(&m->heap, bytes);
	struct heap_piece *p;

	if (!frag_simheap_reserve(&m->heap) || !frag_simmap_reserve(&m->small))
		return frag_fail_nomem(err, "segments of the simulated card");
	if (!hit) {
		struct piece *page = NULL;

		FRAG_TRY(take_pages(sim, FRAG_PAGE, NULL, false, &page, ns, err));
		frag_simheap_open(&m->heap, page->addr, page);
	}
	*ns += frag_sim_cost(sim, small_price(bytes, !hit, FRAG_CALL_MALLOC), bytes);
	p = frag_simheap_cut(&m->heap, bytes);
	frag_simmap_put(&m->small, p->addr, p);
	*out = p->addr;
	return 0;
}

/* By the driver's own rule. */
static int take_own(struct sim *sim, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		    struct frag_err *err)
{
	if (bytes <= FRAG_PAGE)
		return take_small(sim, bytes, out, ns, err);
	return take_big(sim, bytes, NULL, false, out, ns, err);
}

int frag_sim_malloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		    struct frag_err *err)
{
	struct sim *sim = priv;
	frag_addr_t addr = 0;
	int rc;

	*ns = 0;
	rc = frag_sim_hook(sim, FRAG_CALL_MALLOC, bytes, &addr);
	if (bytes > sim->capacity_bytes) {
		rc = FRAG_OOM; /* also keeps roundings from overflowing */
	} else if (!rc || rc == FRAG_PLACE_WISH) {
		bool wish = rc == FRAG_PLACE_WISH;

		rc = take_big(sim, bytes, &addr, wish, out, ns, wish ? NULL : err);
		if (wish && rc < 0)
			rc = take_own(sim, bytes, out, ns, err);
	} else if (rc < 0) {
		rc = take_own(sim, bytes, out, ns, err);
	}
	if (rc)
		*ns = frag_sim_cost(sim, FRAG_COST_MALLOC_REFUSED, bytes);
	return rc;
}

static void free_small(struct sim *sim, struct heap_piece *p, uint64_t *ns)
{
	uint64_t bytes = (uint64_t)p->units * HEAP_UNIT;
	struct piece *page = frag_simheap_give(&sim->malloc.heap, p);

	*ns = frag_sim_cost(sim, small_price(bytes, page != NULL, FRAG_CALL_FREE), bytes);
	if (page)
		give_pages(sim, page);
}

int frag_sim_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct heap_piece *small = frag_simmap_take(&sim->malloc.small, addr);
	struct piece *big;

	*ns = 0;
	if (small) {
		free_small(sim, small, ns);
		return 0;
	}
	big = frag_simmap_take(&sim->malloc.big, addr);
	if (!big)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaFree: 0x%llx is not the start of a live segment",
				 (unsigned long long)addr);
	*ns = frag_sim_cost(sim, FRAG_CALL_FREE, big->bytes);
	give_pages(sim, big);
	return 0;
}
