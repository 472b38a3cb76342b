/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sub-pools of slotpool.h.
 *
 * Invariants: a sub-pool is in `open` if and only if free_count > 0; bits past
 * the last object are never set; words below `lowest` have no free object. A waiting
 * object is not free.
 */
#include "slotpool.h"

#define WORD_BITS 64u

struct subpool {
	struct frag_chunk *chunk;
	uint64_t number; /* in order of age */
	uint64_t free_count;
	uint64_t lowest; /* first word that can have a bit set */
	uint64_t words_count;
	uint64_t *waits; /* bitmap, behind `free` */
	uint64_t free[]; /* bitmap */
};

void frag_slotpool_init(struct frag_slotpool *s, struct frag_upstream *up, uint64_t object_bytes,
			uint64_t objects)
{
	*s = (struct frag_slotpool){ .up = up, .object_bytes = object_bytes, .objects = objects };
	frag_bset_init(&s->open);
}

void frag_slotpool_release(struct frag_slotpool *s)
{
	struct frag_chunk *c;

	for (c = frag_upstream_first(s->up); c; c = frag_upstream_next(s->up, c))
		if (c->owner == s)
			frag_host_free(c->head);
	frag_bset_release(&s->open);
}

static int grow(struct frag_slotpool *s, uint32_t stream, struct frag_err *err)
{
	uint64_t words = (s->objects + WORD_BITS - 1) / WORD_BITS;
	struct subpool *p = frag_host_calloc(1, sizeof(*p) + 2 * words * sizeof(p->free[0]));
	int rc = 0;

	if (!p || frag_bset_reserve(&s->open, s->subpools_count + 1))
		rc = frag_fail_nomem(err, "objects of a pool");
	if (!rc)
		rc = frag_upstream_take(s->up, s->object_bytes * s->objects, stream, &p->chunk,
					err);
	if (rc) {
		frag_host_free(p);
		return rc;
	}
	p->chunk->owner = s;
	p->chunk->head = p;
	p->number = s->subpools_count++;
	p->free_count = s->objects;
	p->words_count = words;
	p->waits = p->free + words;
	for (uint64_t i = 0; i < words; i++)
		p->free[i] = UINT64_MAX;
	if (s->objects % WORD_BITS)
		p->free[words - 1] = (1ull << s->objects % WORD_BITS) - 1;
	frag_bset_insert(&s->open, p->number, 0, p);
	return 0;
}

int frag_slotpool_start(struct frag_slotpool *s, struct frag_err *err)
{
	return s->subpools_count ? 0 : grow(s, 0, err);
}

static uint64_t take_lowest(struct subpool *p)
{
	uint64_t i = p->lowest, bit;

	while (!p->free[i])
		i++;
	p->lowest = i;
	bit = (uint64_t)__builtin_ctzll(p->free[i]);
	p->free[i] &= p->free[i] - 1;
	p->free_count--;
	return i * WORD_BITS + bit;
}

int frag_slotpool_alloc(struct frag_slotpool *s, uint32_t stream, struct frag_block *out,
			struct frag_err *err)
{
	struct frag_bset_pos at = frag_bset_last(&s->open);
	enum frag_class cls = FRAG_CLASS_HIT;
	struct subpool *p;

	if (FRAG_UNLIKELY(!at.leaf)) {
		FRAG_TRY(grow(s, stream, err));
		at = frag_bset_last(&s->open);
		cls = FRAG_CLASS_GROW;
	}
	p = frag_bset_value(at);
	out->addr = p->chunk->addr + take_lowest(p) * s->object_bytes;
	if (!p->free_count)
		frag_bset_erase_at(&s->open, at);
	s->live_count++;
	out->granted = s->object_bytes;
	out->handle = (uintptr_t)p;
	out->cls = (uint8_t)cls;
	return 0;
}

/* Sub-pool, word and bit of a block. */
static struct subpool *locate(const struct frag_slotpool *s, const struct frag_block *b,
			      uint64_t *word, uint64_t *bit)
{
	struct subpool *p = (struct subpool *)(uintptr_t)b->handle;
	uint64_t i = (b->addr - p->chunk->addr) / s->object_bytes;

	FRAG_ASSERT(i < s->objects);
	*word = i / WORD_BITS;
	*bit = 1ull << i % WORD_BITS;
	return p;
}

void frag_slotpool_free_requested(struct frag_slotpool *s, const struct frag_block *block)
{
	uint64_t word, bit;
	struct subpool *p = locate(s, block, &word, &bit);

	FRAG_ASSERT(!((p->free[word] | p->waits[word]) & bit));
	p->waits[word] |= bit;
	s->live_count--;
	s->waiting_count++;
}

void frag_slotpool_free(struct frag_slotpool *s, const struct frag_block *block)
{
	uint64_t word, bit;
	struct subpool *p = locate(s, block, &word, &bit);

	FRAG_ASSERT(!(p->free[word] & bit));
	--*(p->waits[word] & bit ? &s->waiting_count : &s->live_count);
	p->waits[word] &= ~bit;
	p->free[word] |= bit;
	p->lowest = FRAG_MIN(p->lowest, word);
	if (!p->free_count++)
		frag_bset_insert(&s->open, p->number, 0, p);
}

/* ---- looking at it ------------------------------------------------------------------ */

void frag_slotpool_visit(const struct frag_chunk *c, const struct frag_visitor *v)
{
	const struct frag_slotpool *s = c->owner;
	const struct subpool *p = c->head;

	for (uint64_t i = 0; i < s->objects; i++) {
		uint64_t word = i / WORD_BITS, bit = 1ull << i % WORD_BITS;
		enum frag_block_state state = p->free[word] & bit    ? FRAG_STATE_FREE
					      : p->waits[word] & bit ? FRAG_STATE_WAITING
								     : FRAG_STATE_LIVE;

		v->block(v->ctx, c->addr + i * s->object_bytes, s->object_bytes, state, 0);
	}
}

void frag_slotpool_usage(const struct frag_slotpool *s, struct frag_usage *out)
{
	uint64_t objects = s->subpools_count * s->objects;
	uint64_t free_count = objects - s->live_count - s->waiting_count;

	out->allocated_bytes += s->live_count * s->object_bytes;
	out->waiting_bytes += s->waiting_count * s->object_bytes;
	out->free_bytes += free_count * s->object_bytes;
	out->non_releasable_bytes += free_count * s->object_bytes;
	out->blocks_count += objects;
	if (free_count)
		out->largest_free_bytes = FRAG_MAX(out->largest_free_bytes, s->object_bytes);
}

static int check_subpool(const struct frag_slotpool *s, const struct subpool *p, uint64_t *live,
			 uint64_t *waiting, struct frag_err *err)
{
	struct frag_bset_pos at = frag_bset_lower(&s->open, p->number, 0);
	bool listed = at.leaf && frag_bset_value(at) == p;
	uint64_t free_count = 0, waits = 0;

	for (uint64_t i = 0; i < p->words_count; i++) {
		free_count += (uint64_t)__builtin_popcountll(p->free[i]);
		waits += (uint64_t)__builtin_popcountll(p->waits[i]);
		if (p->free[i] & p->waits[i] || (i < p->lowest && p->free[i]))
			return frag_fail(err, FRAG_ECHECK, "bitmaps of sub-pool %llu disagree",
					 (unsigned long long)p->number);
	}
	if (free_count != p->free_count || free_count + waits > s->objects ||
	    listed != (free_count > 0))
		return frag_fail(err, FRAG_ECHECK, "sub-pool %llu differs from its bitmap",
				 (unsigned long long)p->number);
	*waiting += waits;
	*live += s->objects - free_count - waits;
	return 0;
}

int frag_slotpool_check(const struct frag_slotpool *s, struct frag_err *err)
{
	uint64_t live = 0, waiting = 0, count = 0;
	const char *broken = frag_bset_broken(&s->open);

	if (broken)
		return frag_fail(err, FRAG_ECHECK, "open sub-pools: %s", broken);
	for (struct frag_chunk *c = frag_upstream_first(s->up); c;
	     c = frag_upstream_next(s->up, c)) {
		if (c->owner != s)
			continue;
		FRAG_TRY(check_subpool(s, c->head, &live, &waiting, err));
		count++;
	}
	if (live != s->live_count || waiting != s->waiting_count || count != s->subpools_count)
		return frag_fail(err, FRAG_ECHECK,
				 "counters differ from the sub-pools of %llu bytes",
				 (unsigned long long)s->object_bytes);
	return 0;
}
