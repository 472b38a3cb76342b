/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the driver puts segments and reservations: a model of driver 580.159.04 on an H200, fitted
 * to 31 recorded cudaMalloc histories and 9 of expandable segments (one step ahead of a recording,
 * it predicts 95 % of the addresses after the first 100 events; it misses gaps that the host
 * process opened). In a process that does nothing else it is exact, for 7,790 random cudaMallocs
 * recorded after the fit. Policies depend only on the order of addresses.
 *
 * Segments. Address space comes in chunks: aligned to 32 MiB, as long as the request that opened
 * the chunk, rounded up to 32 MiB. A request first looks for a hole in existing chunks
 * (sim_arena.h). If none fits, a chunk is opened at the top end of the highest free gap that is at
 * least 30 MiB longer than the chunk (the driver asks the kernel for room to align), else directly
 * below the lowest chunk. So new segments of 20 MiB and more descend in steps of 32 MiB, and 2 MiB
 * ones fill the tails upwards. A chunk that becomes empty is unmapped at once and becomes a gap.
 *
 * Local memory, the stacks of all threads that can run at once, moves to a new chunk when a kernel
 * needs more of it than any before; the old place becomes a hole, which new segments fill upwards.
 * How much a kernel needs is not known here (src/pretend/card/local.c). Recorded addresses already
 * include this.
 *
 * The host process takes from the same space, and leaves gaps, too. Without a GPU the simulated
 * card learns both (struct frag_sim_config, host); a recording's gaps of this kind show in its
 * addresses only.
 *
 * Reservations go upwards from 0x302000000 (one GPU in the process), lengths rounded to 32 MiB; the
 * lowest hole that fits is reused (an assumption: no recording returned a reservation).
 *
 * Recorded addresses may lie anywhere. A required address gets a chunk of exactly its length,
 * because the end of the real chunk is unknown and the next required address may follow directly. A
 * suggested address gets a chunk by the rule above, so that the rule can continue after the last
 * suggestion; it is declined if it does not fit. Space skipped by a required address below the
 * lowest chunk belongs to the host and is not used.
 *
 * Invariants: chunks, spans and gaps never overlap, adjacent gaps are merged, and no gap ends at
 * `top` or begins at `low`. The slab always holds a free node for every open chunk and span, so
 * freeing needs no memory.
 */
#include "sim_place.h"

#include <frag/device.h>

#define GRAIN (32 * FRAG_MIB)
/* Room for alignment: a gap must be this much longer than the chunk. */
#define SLACK (GRAIN - FRAG_PAGE)
#define RESERVE_BASE 0x302000000ull
/* Base of the chunk of the CUDA context in a fresh process, below what the host had before. */
#define CONTEXT_BASE (FRAG_SIM_HOST - GRAIN)
/* Local memory of the context of an H100 or H200. */
#define LOCAL_BYTES (414 * FRAG_MIB)
/* User addresses of x86-64 end here. */
#define ADDR_END (1ull << 47)

static struct chunk *chunk_of(const struct frag_tree_node *n)
{
	return n ? FRAG_TREE_OF(n, struct chunk, by_addr) : NULL;
}

/* ---- ranges: begin -> bytes, neighbours joined ------------------------------ */

static void range_insert(struct place *p, struct frag_tree *t, uint64_t begin, uint64_t end)
{
	struct frag_tree_node *n = frag_slab_alloc(&p->nodes);

	*n = (struct frag_tree_node){ .key = begin, .weight = end - begin };
	frag_tree_insert(t, n);
}

static void range_remove(struct place *p, struct frag_tree *t, struct frag_tree_node *n)
{
	frag_tree_remove(t, n);
	frag_slab_free(&p->nodes, n);
}

static inline uint64_t range_end(const struct frag_tree_node *n)
{
	return n->key + n->weight;
}

/* Adds [begin, end), which overlaps no range, and merges it with its neighbours. */
static void range_add(struct place *p, struct frag_tree *t, uint64_t begin, uint64_t end)
{
	struct frag_tree_node *left = frag_tree_floor(t, begin), *right = frag_tree_ceil(t, end, 0);

	if (right && right->key == end) {
		end = range_end(right);
		range_remove(p, t, right);
	}
	if (left && range_end(left) == begin)
		frag_tree_update(t, left, left->key, end - left->key);
	else
		range_insert(p, t, begin, end);
}

/* Removes [begin, end) from all ranges that it touches. Adds at most one node. */
static void range_cut(struct place *p, struct frag_tree *t, uint64_t begin, uint64_t end)
{
	struct frag_tree_node *n = frag_tree_floor(t, begin);

	if (!n || range_end(n) <= begin)
		n = frag_tree_ceil(t, begin, 0);
	while (n && n->key < end) {
		uint64_t key = n->key, last = range_end(n);

		/* the rest of a range keeps its node and its rank */
		if (key < begin)
			frag_tree_update(t, n, key, begin - key);
		else if (last > end)
			frag_tree_update(t, n, end, last - end);
		else
			range_remove(p, t, n);
		if (key < begin && last > end)
			range_insert(p, t, end, last);
		if (last >= end)
			return;
		n = frag_tree_ceil(t, begin, 0);
	}
}

/* ---- chunks ----------------------------------------------------------------- */

/* Is [addr, end) free of chunks and reservations? */
static bool is_free(const struct place *p, frag_addr_t addr, frag_addr_t end)
{
	const struct chunk *c = chunk_of(frag_tree_floor(&p->chunks, end - 1));
	const struct frag_tree_node *n = frag_tree_floor(&p->spans, end - 1);

	return !(c && c->addr + c->bytes > addr) && !(n && range_end(n) > addr);
}

/* Reserves host memory for one more chunk or span, now and when it is freed. */
static int reserve_nodes(struct place *p, struct frag_err *err)
{
	if (!frag_simarena_reserve(&p->arena) ||
	    frag_slab_reserve(&p->nodes, p->chunks_open + p->spans_open + 8))
		return frag_fail_nomem(err, "address space of the simulated card");
	return 0;
}

static struct chunk *chunk_put(struct place *p, frag_addr_t addr, frag_addr_t end)
{
	struct chunk *c = frag_simarena_open(&p->arena, addr, end - addr);

	c->by_addr.key = addr;
	c->by_addr.weight = 0;
	frag_tree_insert(&p->chunks, &c->by_addr);
	p->chunks_open++;
	return c;
}

static struct chunk *chunk_open(struct place *p, frag_addr_t addr, frag_addr_t end)
{
	range_cut(p, &p->gaps, addr, end);
	p->low = FRAG_MIN(p->low, addr);
	return chunk_put(p, addr, end);
}

/* What was taken becomes a gap, or open space again if it was the lowest. */
static void give_back(struct place *p, frag_addr_t addr, frag_addr_t end)
{
	struct frag_tree_node *lowest;

	range_add(p, &p->gaps, addr, end);
	lowest = frag_tree_first(&p->gaps);
	if (lowest->key == p->low) {
		p->low = range_end(lowest);
		range_remove(p, &p->gaps, lowest);
	}
}

static void chunk_close(struct place *p, struct chunk *c)
{
	frag_addr_t addr = c->addr, end = c->addr + c->bytes;

	frag_tree_remove(&p->chunks, &c->by_addr);
	frag_simarena_close(&p->arena, c);
	p->chunks_open--;
	give_back(p, addr, end);
}

/*
 * What a context holds: 8 MiB at its base, and local memory below 64 MiB under it: 414 of 416, so
 * that one 2 MiB segment fits after it.
 */
static void place_context(struct place *p)
{
	struct chunk *c = chunk_open(p, CONTEXT_BASE, CONTEXT_BASE + GRAIN);

	frag_simarena_cut(&p->arena, c, 8 * FRAG_MIB);
	c = chunk_open(p, CONTEXT_BASE - 64 * FRAG_MIB - frag_round_up(p->local_bytes, GRAIN),
		       CONTEXT_BASE - 64 * FRAG_MIB);
	p->local = frag_simarena_cut(&p->arena, c, p->local_bytes);
}

int frag_simplace_init(struct place *p, uint64_t local_bytes, struct frag_err *err)
{
	*p = (struct place){ .low = CONTEXT_BASE + GRAIN,
			     .top = RESERVE_BASE,
			     .local_bytes = frag_round_up(local_bytes ?: LOCAL_BYTES, FRAG_PAGE) };
	frag_simarena_init(&p->arena, false);
	frag_slab_init(&p->nodes, sizeof(struct frag_tree_node));
	if (reserve_nodes(p, err) || frag_slab_reserve(&p->arena.pieces, 8) ||
	    frag_slab_reserve(&p->arena.chunks, 2)) {
		frag_simplace_release(p);
		return frag_fail_nomem(err, "address space of the simulated card");
	}
	return 0;
}

void frag_simplace_release(struct place *p)
{
	frag_simarena_release(&p->arena);
	frag_slab_release(&p->nodes);
}

/* Base of a new chunk, 0 = no address space. */
static frag_addr_t fresh_base(struct place *p, uint64_t bytes)
{
	struct frag_tree_node *n = frag_tree_last_fit(&p->gaps, bytes + SLACK);

	if (n)
		return frag_round_down(range_end(n) - bytes, GRAIN);
	for (;;) {
		frag_addr_t base;

		if (p->low < p->top || p->low - p->top < bytes + GRAIN)
			return 0;
		base = frag_round_down(p->low - bytes, GRAIN);
		n = frag_tree_floor(&p->spans, p->low - 1);
		if (!n || range_end(n) <= base)
			return base;
		p->low = n->key; /* a recorded reservation is in the way */
	}
}

static void start(struct place *p)
{
	if (!p->started && !p->chunks_open)
		place_context(p); /* not if addresses are recorded: they include the real context */
	p->started = true;
}

/* FRAG_OOM: address space exhausted; FRAG_ENOMEM. */
static int fresh_chunk(struct place *p, uint64_t bytes, struct chunk **out, struct frag_err *err)
{
	uint64_t span = frag_round_up(bytes, GRAIN);
	frag_addr_t base;

	if (p->host)
		p->host(p->host_ctx);
	FRAG_TRY(reserve_nodes(p, err));
	base = fresh_base(p, span);
	if (!base)
		return FRAG_OOM;
	*out = chunk_open(p, base, base + span);
	return 0;
}

int frag_simplace_cut(struct place *p, uint64_t bytes, struct piece **out, struct frag_err *err)
{
	struct chunk *c;

	FRAG_TRY(reserve_nodes(p, err));
	if (bytes > ADDR_END)
		return FRAG_OOM;
	start(p);
	bytes = frag_round_up(bytes, FRAG_PAGE);
	c = frag_simarena_find(&p->arena, bytes);
	if (!c)
		FRAG_TRY(fresh_chunk(p, bytes, &c, err));
	*out = frag_simarena_cut(&p->arena, c, bytes);
	return 0;
}

frag_addr_t frag_simplace_host_take(struct place *p, uint64_t bytes)
{
	struct frag_tree_node *n = frag_tree_last_fit(&p->gaps, bytes);
	frag_addr_t end = n ? range_end(n) : p->low;

	if (reserve_nodes(p, NULL) || (!n && (p->low < p->top || p->low - p->top < bytes + GRAIN)))
		return 0;
	if (n)
		range_cut(p, &p->gaps, end - bytes, end);
	else
		p->low = end - bytes;
	return end - bytes;
}

void frag_simplace_host_give(struct place *p, frag_addr_t addr, uint64_t bytes)
{
	if (!reserve_nodes(p, NULL))
		give_back(p, addr, addr + bytes);
}

/* End of the last 32 MiB step that [.., end) touches, or `end` if that is not free. */
static frag_addr_t step_end(const struct place *p, frag_addr_t end)
{
	frag_addr_t line = frag_round_up(end, GRAIN);

	return line > end && is_free(p, end, line) ? line : end;
}

/* The chunk for a suggested address, like the driver's, so that its rule can continue there. */
static struct chunk *chunk_for_wish(struct place *p, struct chunk *c, frag_addr_t addr,
				    frag_addr_t end)
{
	frag_addr_t last;

	if (!c)
		return is_free(p, addr, end) ? chunk_open(p, addr, step_end(p, end)) : NULL;
	last = c->addr + c->bytes;
	if (end <= last || !is_free(p, last, end))
		return c;
	/* the chunk is longer than seen so far */
	end = step_end(p, end);
	if (frag_simarena_extend(&p->arena, c, end - last))
		range_cut(p, &p->gaps, last, end);
	return c;
}

int frag_simplace_claim(struct place *p, frag_addr_t addr, uint64_t bytes, bool wish,
			struct piece **out, struct frag_err *err)
{
	frag_addr_t end = addr + frag_round_up(bytes, FRAG_PAGE);
	struct chunk *c;

	FRAG_TRY(reserve_nodes(p, err));
	if (!addr || end <= addr)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaMalloc: no segment of %llu bytes fits at 0x%llx",
				 (unsigned long long)bytes, (unsigned long long)addr);
	c = chunk_of(frag_tree_floor(&p->chunks, addr));
	if (c && c->addr + c->bytes <= addr)
		c = NULL;
	if (wish)
		c = chunk_for_wish(p, c, addr, end);
	else if (!c)
		c = is_free(p, addr, end) ? chunk_open(p, addr, end) : NULL;
	*out = c ? frag_simarena_cut_at(&p->arena, c, addr, end - addr) : NULL;
	if (*out)
		return 0;
	return frag_fail(err, FRAG_EDEVICE,
			 "cudaMalloc: the given address 0x%llx (%llu bytes) overlaps live memory",
			 (unsigned long long)addr, (unsigned long long)bytes);
}

void frag_simplace_give(struct place *p, struct piece *piece)
{
	struct chunk *c = piece->chunk;

	if (frag_simarena_give(&p->arena, piece))
		chunk_close(p, c);
}

void frag_simplace_local(struct place *p, uint64_t bytes, uint64_t behind)
{
	struct piece *before;
	struct chunk *c;

	if (reserve_nodes(p, NULL))
		return; /* only addresses: without memory it stays in place */
	start(p);
	before = p->local;
	bytes = frag_round_up(bytes, FRAG_PAGE);
	if (!before || bytes <= p->local_bytes || fresh_chunk(p, bytes + behind, &c, NULL))
		return;
	p->local = frag_simarena_cut(&p->arena, c, bytes);
	p->local_bytes = bytes;
	if (behind)
		frag_simarena_cut(&p->arena, c, frag_round_up(behind, FRAG_PAGE));
	frag_simplace_give(p, before);
}

/* ---- reservations ----------------------------------------------------------- */

static void span_open(struct place *p, frag_addr_t addr, frag_addr_t end)
{
	range_insert(p, &p->spans, addr, end);
	p->spans_open++;
	if (addr >= p->low) { /* a recorded one far above */
		range_cut(p, &p->gaps, addr, end);
		return;
	}
	range_cut(p, &p->span_gaps, addr, end);
	if (addr > p->top)
		range_add(p, &p->span_gaps, p->top, addr);
	p->top = FRAG_MAX(p->top, end);
}

/* Base of a new reservation above all others, 0 = no address space. */
static frag_addr_t span_base(struct place *p, uint64_t bytes)
{
	for (;;) {
		struct frag_tree_node *n;

		if (p->low < p->top || p->low - p->top < bytes + GRAIN)
			return 0;
		n = frag_tree_floor(&p->spans, p->top + bytes - 1);
		if (!n || range_end(n) <= p->top)
			return p->top;
		p->top = range_end(n); /* a recorded reservation far above */
	}
}

int frag_simplace_reserve(struct place *p, uint64_t bytes, frag_addr_t *out, struct frag_err *err)
{
	struct frag_tree_node *n;

	FRAG_TRY(reserve_nodes(p, err));
	if (bytes > ADDR_END)
		return FRAG_OOM;
	bytes = frag_round_up(bytes, GRAIN);
	n = frag_tree_first_fit(&p->span_gaps, bytes);
	*out = n ? n->key : span_base(p, bytes);
	if (!*out)
		return FRAG_OOM;
	span_open(p, *out, *out + bytes);
	return 0;
}

int frag_simplace_reserve_at(struct place *p, frag_addr_t addr, uint64_t bytes,
			     struct frag_err *err)
{
	FRAG_TRY(reserve_nodes(p, err));
	if (!addr || addr + bytes <= addr || !is_free(p, addr, addr + bytes))
		return frag_fail(err, FRAG_EDEVICE,
				 "cuMemAddressReserve: 0x%llx (%llu bytes) overlaps live memory",
				 (unsigned long long)addr, (unsigned long long)bytes);
	span_open(p, addr, addr + bytes);
	return 0;
}

void frag_simplace_unreserve(struct place *p, frag_addr_t addr)
{
	struct frag_tree_node *n = frag_tree_find(&p->spans, addr, 0);
	frag_addr_t end;

	FRAG_ASSERT(n != NULL);
	end = range_end(n);
	range_remove(p, &p->spans, n);
	p->spans_open--;
	if (end > p->top)
		return;
	range_add(p, &p->span_gaps, addr, end);
	n = frag_tree_floor(&p->span_gaps, UINT64_MAX);
	if (range_end(n) == p->top) { /* the highest one is gone */
		p->top = n->key;
		range_remove(p, &p->span_gaps, n);
	}
}

/* ---- what is mapped ---- */

/* Where no hole between segments is left, a step of address space opens among the reservations, whose rest later segments use. */
void frag_simplace_map(struct place *p, uint64_t bytes)
{
	struct chunk *c;
	frag_addr_t at;

	if (reserve_nodes(p, NULL))
		return; /* only addresses */
	start(p);
	c = frag_simarena_find(&p->arena, bytes);
	if (!c && !frag_simplace_reserve(p, bytes, &at, NULL))
		c = chunk_put(p, at, at + frag_round_up(bytes, GRAIN));
	if (c)
		frag_simarena_cut(&p->arena, c, bytes);
}
