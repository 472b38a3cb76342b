/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the whole state of `dali-vm`: visit, check, usage. */
#include "dali.h"

static bool is_held(const struct dali *d, const struct dali_region *r, frag_addr_t addr)
{
	return addr - r->base < r->blocks_count * d->block &&
	       r->blocks[(addr - r->base) / d->block].stage != DALI_NONE;
}

/* End of the stretch of held blocks that begins at addr. */
static frag_addr_t stretch_end(const struct dali *d, const struct dali_region *r, frag_addr_t addr)
{
	while (is_held(d, r, addr))
		addr += d->block;
	return addr;
}

static void visit_stretch(const struct dali *d, const struct frag_visitor *v,
			  const struct dali_piece *p, frag_addr_t at, frag_addr_t end)
{
	static const enum frag_block_state states[] = {
		[DALI_LIVE] = FRAG_STATE_LIVE,
		[DALI_WAITING] = FRAG_STATE_WAITING,
		[DALI_MAPPED] = FRAG_STATE_FREE,
		[DALI_HOLE] = FRAG_STATE_FREE,
	};

	if (v->segment)
		v->segment(v->ctx, at, end - at, 0);
	for (; v->block && p && p->addr < end; p = p->next) {
		frag_addr_t to = FRAG_MIN(dali_end(p), end);

		v->block(v->ctx, at, to - at, states[p->state],
			 p->state == DALI_MAPPED ? dali_whole(d, p) * d->block : 0);
		at = to;
	}
}

static void visit_region(const struct dali *d, const struct dali_region *r,
			 const struct frag_visitor *v)
{
	const struct dali_piece *p = r->first;
	size_t i;

	for (i = 0; i < r->blocks_count; i++) {
		frag_addr_t at = r->base + i * d->block, end;

		if (!is_held(d, r, at))
			continue;
		end = stretch_end(d, r, at);
		while (dali_end(p) <= at)
			p = p->next;
		visit_stretch(d, v, p, at, end);
		i = (end - r->base) / d->block;
	}
}

/* The region with the lowest base not below `from`; NULL if there is none. */
static const struct dali_region *region_from(const struct dali *d, frag_addr_t from)
{
	const struct dali_region *best = NULL;

	for (size_t i = 0; i < d->regions_count; i++)
		if (d->regions[i].base >= from && (!best || d->regions[i].base < best->base))
			best = &d->regions[i];
	return best;
}

void dali_visit(void *self, const struct frag_visitor *v)
{
	const struct dali *d = self;
	const struct dali_region *r;

	for (r = region_from(d, 0); r; r = region_from(d, r->base + 1))
		visit_region(d, r, v);
}

void dali_usage(void *self, struct frag_usage *out)
{
	const struct dali *d = self;
	uint64_t held = d->held_count * d->block;

	*out = (struct frag_usage){
		.allocated_bytes = d->live_bytes,
		.waiting_bytes = d->waiting_bytes,
		.free_bytes = held - d->live_bytes - d->waiting_bytes,
		.largest_free_bytes = frag_bset_largest(&d->mapped),
		.segments_count = d->stretches_count,
		.blocks_count = frag_slab_live(&d->pieces) - d->holes_count,
	};
	out->releasable_bytes = d->whole_blocks * d->block;
	out->non_releasable_bytes = out->free_bytes - out->releasable_bytes;
}

/* ---- check -------------------------------------------------------------------------------- */

struct tally {
	uint64_t bytes[DALI_OUT];
	uint64_t held, stretches;
	uint64_t whole_blocks;
	size_t pieces, mapped, whole, holes, runs;
};

/* The run that begins with p, if one does. */
static const char *check_run(const struct dali *d, const struct dali_piece *p, struct tally *t)
{
	const struct dali_piece *last = p;

	if (dali_is_free(p->prev) || (p->state == DALI_MAPPED && !dali_is_free(p->next)))
		return NULL;
	while (dali_is_free(last->next))
		last = last->next;
	t->runs++;
	if (p->run_last != last || !frag_bset_has(&d->runs, dali_end(last) - p->addr, p->addr, p) ||
	    !frag_bset_has(&d->runs_at, p->addr, 0, p))
		return "run not in its sets";
	return NULL;
}

static const char *check_blocks(const struct dali *d, const struct dali_region *r,
				const struct dali_piece *p)
{
	frag_addr_t at;

	if (p->state == DALI_HOLE)
		return (p->addr | p->bytes) & (d->block - 1) ? "hole is not whole blocks" : NULL;
	for (at = dali_floor(d, p->addr); at < dali_end(p); at += d->block)
		if (r->blocks[(at - r->base) / d->block].stage != DALI_OPEN)
			return "piece without memory";
	return NULL;
}

static const char *check_piece(const struct dali *d, const struct dali_region *r,
			       const struct dali_piece *p, struct tally *t)
{
	const char *bad = check_blocks(d, r, p);

	if (bad)
		return bad;
	if (!p->bytes || p->state >= DALI_OUT)
		return "piece without size or state";
	if (dali_is_free(p) && p->next && p->next->state == p->state)
		return "free neighbours of one kind";
	t->pieces++;
	t->bytes[p->state] += p->bytes;
	t->holes += p->state == DALI_HOLE;
	if (p->state == DALI_MAPPED) {
		t->mapped++;
		t->whole += dali_whole(d, p) > 0;
		t->whole_blocks += dali_whole(d, p);
		if (!frag_bset_has(&d->mapped, p->bytes, p->addr, p) ||
		    (dali_whole(d, p) && !frag_bset_has(&d->whole, p->addr, 0, p)))
			return "mapped piece not in its sets";
	}
	return dali_is_free(p) ? check_run(d, p, t) : NULL;
}

static const char *check_region(const struct dali *d, const struct dali_region *r, struct tally *t)
{
	const struct dali_piece *p, *prev = NULL;
	frag_addr_t at = r->base;
	const char *bad;
	size_t i;

	for (p = r->first; p; prev = p, p = p->next) {
		if (p->addr != at || p->prev != prev)
			return "chain of pieces broken";
		bad = check_piece(d, r, p, t);
		if (bad)
			return bad;
		at += p->bytes;
	}
	if (r->last != prev || at != r->base + r->blocks_count * d->block)
		return "pieces do not cover their region";
	for (i = 0; i < r->blocks_count; i++) {
		bool held = r->blocks[i].stage != DALI_NONE;

		t->held += held;
		t->stretches += held && !(i && r->blocks[i - 1].stage != DALI_NONE);
	}
	return NULL;
}

static const char *check_sums(const struct dali *d, const struct tally *t)
{
	const struct frag_bset *sets[] = { &d->mapped, &d->whole, &d->runs, &d->runs_at };
	const size_t counts[] = { t->mapped, t->whole, t->runs, t->runs };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(sets); i++) {
		const char *bad = frag_bset_broken(sets[i]);

		if (bad || frag_bset_count(sets[i]) != counts[i])
			return bad ? bad : "a set has too much in it";
	}
	if (t->bytes[DALI_LIVE] != d->live_bytes || t->bytes[DALI_WAITING] != d->waiting_bytes ||
	    t->held != d->held_count || t->stretches != d->stretches_count ||
	    t->holes != d->holes_count || t->whole_blocks != d->whole_blocks ||
	    t->pieces != frag_slab_live(&d->pieces))
		return "counters differ from the sums over the pieces";
	return NULL;
}

int dali_check(void *self, struct frag_err *err)
{
	const struct dali *d = self;
	struct tally t = { .held = 0 };
	const char *bad = NULL;

	for (size_t i = 0; i < d->regions_count && !bad; i++)
		bad = check_region(d, &d->regions[i], &t);
	if (!bad)
		bad = check_sums(d, &t);
	return bad ? frag_fail(err, FRAG_ECHECK, "dali-vm: %s", bad) : 0;
}
