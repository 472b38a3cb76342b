/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaMalloc and cudaFree of the simulated card.
 *
 * Requests of up to 2 MiB share pages (sim_arena.h): a request that fits an open page needs no new
 * memory and costs a microsecond; one that opens a page costs thirty. Larger requests take whole
 * pages, at addresses from sim_place.c. The place hook, if there is one, is asked first. A
 * suggested address takes whole pages, whatever the size; small segments at required addresses
 * share their page.
 *
 * Invariant: every live segment is in `small`, `big` or `given`, by address.
 */
#include "sim.h"

/* A page at a given address with small segments at given addresses. */
struct given_page {
	struct piece *piece;
	uint64_t live_count;
};

void frag_sim_malloc_init(struct sim *sim)
{
	frag_simarena_init(&sim->malloc.heap, true);
	frag_slab_init(&sim->malloc.given_slab, sizeof(struct given_page));
}

void frag_sim_malloc_release(struct sim *sim)
{
	frag_simarena_release(&sim->malloc.heap);
	frag_addr_map_release(&sim->malloc.small);
	frag_addr_map_release(&sim->malloc.big);
	frag_addr_map_release(&sim->malloc.given);
	frag_addr_map_release(&sim->malloc.given_pages);
	frag_slab_release(&sim->malloc.given_slab);
}

/* Takes whole pages, by the driver's rule or at *at (a suggestion: there if it is free). */
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

	FRAG_CHECK_ALLOC(!frag_addr_map_reserve(&sim->malloc.big), "segments of the simulated card",
			 err);
	FRAG_TRY(take_pages(sim, bytes, at, wish, &p, ns, err));
	*ns += frag_sim_cost(sim, FRAG_CALL_MALLOC, p->bytes);
	frag_addr_map_put(&sim->malloc.big, p->addr, p);
	*out = p->addr;
	return 0;
}

/* A call after a pause finds the driver and the card asleep. */
static inline uint64_t pause_price(const struct sim *sim, enum frag_call call)
{
	if (FRAG_LIKELY(!sim->cfg.pause))
		return 0;
	return frag_sim_cost(sim, FRAG_COST_PAUSE, sim->cfg.pause(sim->cfg.pause_ctx, call));
}

/* The price items of a request (or its free) that opens (or closes) a page, or does not. */
static unsigned small_price(uint64_t bytes, bool page, enum frag_call call)
{
	if (page && bytes == FRAG_PAGE)
		return call; /* its own page: the first column of the table */
	if (call == FRAG_CALL_MALLOC)
		return page ? FRAG_COST_MALLOC_PAGE : FRAG_COST_MALLOC_HIT;
	return page ? FRAG_COST_FREE_PAGE : FRAG_COST_FREE_HIT;
}

static int take_small(struct sim *sim, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		      struct frag_err *err)
{
	struct sim_malloc *m = &sim->malloc;
	bool hit = frag_simheap_fits(&m->heap, bytes);
	struct piece *p;

	FRAG_CHECK_ALLOC(frag_simarena_reserve(&m->heap) && !frag_addr_map_reserve(&m->small),
			 "segments of the simulated card", err);
	if (!hit) {
		struct piece *page = NULL;

		FRAG_TRY(take_pages(sim, FRAG_PAGE, NULL, false, &page, ns, err));
		frag_simheap_open(&m->heap, page->addr, page);
	}
	*ns += frag_sim_cost(sim, small_price(bytes, !hit, FRAG_CALL_MALLOC), bytes);
	p = frag_simheap_cut(&m->heap, bytes);
	frag_addr_map_put(&m->small, p->addr, p);
	*out = p->addr;
	return 0;
}

/* ---- small ones at given addresses ------------------------------------------------ */

static bool is_small_given(frag_addr_t addr, uint64_t bytes)
{
	return bytes < FRAG_PAGE && addr % FRAG_PAGE + bytes <= FRAG_PAGE;
}

static int take_given(struct sim *sim, uint64_t bytes, frag_addr_t addr, uint64_t *ns,
		      struct frag_err *err)
{
	struct sim_malloc *m = &sim->malloc;
	frag_addr_t base = addr - addr % FRAG_PAGE;
	struct given_page *page = frag_addr_map_get(&m->given_pages, base);
	unsigned item = page ? FRAG_COST_MALLOC_HIT : FRAG_COST_MALLOC_PAGE;

	if (frag_slab_reserve(&m->given_slab, 1) || frag_addr_map_reserve(&m->given) ||
	    frag_addr_map_reserve(&m->given_pages))
		return frag_fail_nomem(err, "segments of the simulated card");
	if (frag_addr_map_get(&m->given, addr))
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaMalloc: a live segment is at the given address 0x%llx",
				 (unsigned long long)addr);
	if (!page) {
		struct piece *piece = NULL;

		FRAG_TRY(take_pages(sim, FRAG_PAGE, &base, false, &piece, ns, err));
		page = frag_slab_alloc(&m->given_slab);
		*page = (struct given_page){ .piece = piece };
		frag_addr_map_put(&m->given_pages, base, page);
	}
	page->live_count++;
	frag_addr_map_put(&m->given, addr, page);
	*ns += frag_sim_cost(sim, item, bytes);
	return 0;
}

/* The size is not stored, because the cost of a free hardly depends on it. */
static void free_given(struct sim *sim, struct given_page *page, uint64_t *ns)
{
	struct sim_malloc *m = &sim->malloc;

	page->live_count--;
	*ns += frag_sim_cost(sim, page->live_count ? FRAG_COST_FREE_HIT : FRAG_COST_FREE_PAGE, 0);
	if (page->live_count)
		return;
	frag_addr_map_take(&m->given_pages, page->piece->addr);
	give_pages(sim, page->piece);
	frag_slab_free(&m->given_slab, page);
}

/* ---- the calls -------------------------------------------------------------------- */

/* By the driver's own rule. */
static int take_own(struct sim *sim, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		    struct frag_err *err)
{
	if (bytes <= FRAG_PAGE)
		return take_small(sim, bytes, out, ns, err);
	return take_big(sim, bytes, NULL, false, out, ns, err);
}

int frag_sim_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	frag_addr_t addr = 0;
	int rc;

	*ns = 0;
	rc = frag_sim_hook(sim, FRAG_CALL_MALLOC, bytes, &addr);
	if (bytes > sim->capacity_bytes) {
		rc = FRAG_OOM; /* also prevents overflow in rounding */
	} else if (!rc && is_small_given(addr, bytes)) {
		rc = take_given(sim, bytes, addr, ns, err);
		*out = addr;
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
	*ns += pause_price(sim, FRAG_CALL_MALLOC);
	return rc;
}

static void free_small(struct sim *sim, struct piece *p, uint64_t *ns)
{
	uint64_t bytes = p->bytes;
	struct piece *page = frag_simheap_give(&sim->malloc.heap, p);

	*ns += frag_sim_cost(sim, small_price(bytes, page != NULL, FRAG_CALL_FREE), bytes);
	if (page)
		give_pages(sim, page);
}

int frag_sim_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct piece *small = frag_addr_map_take(&sim->malloc.small, addr);
	struct given_page *given;
	struct piece *big;

	*ns = pause_price(sim, FRAG_CALL_FREE);
	if (small) {
		free_small(sim, small, ns);
		return 0;
	}
	given = frag_addr_map_take(&sim->malloc.given, addr);
	if (given) {
		free_given(sim, given, ns);
		return 0;
	}
	big = frag_addr_map_take(&sim->malloc.big, addr);
	if (!big)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaFree: 0x%llx is not the start of a live segment",
				 (unsigned long long)addr);
	*ns += frag_sim_cost(sim, FRAG_CALL_FREE, big->bytes);
	give_pages(sim, big);
	return 0;
}
