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

static int grow(struct frag_equal *e, uint32_t stream, struct frag_err *err)
{
	struct frag_slotpool *s = (struct frag_slotpool *)e;
	uint64_t words = (e->chunk_blocks + WORD_BITS - 1) / WORD_BITS;
	struct subpool *p = frag_host_calloc(1, sizeof(*p) + 2 * words * sizeof(p->free[0]));
	int rc = 0;

	if (!p || frag_bset_reserve(&s->open, e->chunks_count + 1))
		rc = frag_fail_nomem(err, "objects of a pool");
	if (!rc)
		rc = frag_upstream_take(e->up, e->block_bytes * e->chunk_blocks, stream, &p->chunk,
					err);
	if (rc) {
		frag_host_free(p);
		return rc;
	}
	p->chunk->owner = e;
	p->chunk->head = p;
	p->number = s->numbers_count++;
	e->chunks_count++;
	e->idle_count += e->gives_back;
	p->free_count = e->chunk_blocks;
	p->words_count = words;
	p->waits = p->free + words;
	for (uint64_t i = 0; i < words; i++)
		p->free[i] = UINT64_MAX;
	if (e->chunk_blocks % WORD_BITS)
		p->free[words - 1] = (1ull << e->chunk_blocks % WORD_BITS) - 1;
	frag_bset_insert(&s->open, p->number, 0, p);
	return 0;
}

static int start(struct frag_equal *e, struct frag_err *err)
{
	return e->chunks_count ? 0 : grow(e, 0, err);
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

static int alloc(struct frag_equal *e, uint32_t stream, struct frag_block *out,
		 struct frag_err *err)
{
	struct frag_slotpool *s = (struct frag_slotpool *)e;
	struct frag_bset_node *at = frag_bset_last(&s->open);
	enum frag_class cls = FRAG_CLASS_HIT;
	struct subpool *p;

	if (FRAG_UNLIKELY(!at)) {
		FRAG_TRY(grow(e, stream, err));
		at = frag_bset_last(&s->open);
		cls = FRAG_CLASS_GROW;
	}
	p = at->value;
	e->idle_count -= e->gives_back && p->free_count == e->chunk_blocks;
	out->addr = p->chunk->addr + take_lowest(p) * e->block_bytes;
	if (!p->free_count)
		frag_bset_erase_at(&s->open, at);
	e->live_count++;
	out->granted = e->block_bytes;
	out->handle = (uintptr_t)p;
	out->cls = (uint8_t)cls;
	return 0;
}

/* Sub-pool, word and bit of a block. */
static struct subpool *locate(const struct frag_equal *e, const struct frag_block *b,
			      uint64_t *word, uint64_t *bit)
{
	struct subpool *p = (struct subpool *)(uintptr_t)b->handle;
	uint64_t i = (b->addr - p->chunk->addr) / e->block_bytes;

	FRAG_ASSERT(i < e->chunk_blocks);
	*word = i / WORD_BITS;
	*bit = 1ull << i % WORD_BITS;
	return p;
}

static void free_requested(struct frag_equal *e, const struct frag_block *block)
{
	uint64_t word, bit;
	struct subpool *p = locate(e, block, &word, &bit);

	FRAG_ASSERT(!((p->free[word] | p->waits[word]) & bit));
	p->waits[word] |= bit;
	e->live_count--;
	e->waiting_count++;
}

static void release_object(struct frag_equal *e, const struct frag_block *block)
{
	struct frag_slotpool *s = (struct frag_slotpool *)e;
	uint64_t word, bit;
	struct subpool *p = locate(e, block, &word, &bit);

	FRAG_ASSERT(!(p->free[word] & bit));
	--*(p->waits[word] & bit ? &e->waiting_count : &e->live_count);
	p->waits[word] &= ~bit;
	p->free[word] |= bit;
	p->lowest = FRAG_MIN(p->lowest, word);
	if (!p->free_count++)
		frag_bset_insert(&s->open, p->number, 0, p);
	e->idle_count += e->gives_back && p->free_count == e->chunk_blocks;
}

int frag_slotpool_give_back(struct frag_slotpool *s, struct frag_err *err)
{
	struct frag_equal *e = &s->e;
	struct frag_bset_node *at = frag_bset_first(&s->open);
	int rc = 0;

	while (!rc && at) {
		struct subpool *p = at->value;
		uint64_t number = p->number;
		bool gone = false;

		if (p->free_count == e->chunk_blocks) {
			rc = frag_upstream_give(e->up, p->chunk, &gone, err);
			if (!gone)
				return rc;
			frag_bset_erase(&s->open, number, 0);
			frag_host_free(p);
			e->chunks_count--;
			e->idle_count--;
		}
		at = frag_bset_lower(&s->open, number + 1, 0);
	}
	return rc;
}

/* ---- looking at it ------------------------------------------------------------------ */

static enum frag_block_state state_of(const struct frag_chunk *c, uint64_t number)
{
	const struct subpool *p = c->head;
	uint64_t word = number / WORD_BITS, bit = 1ull << number % WORD_BITS;

	return p->free[word] & bit    ? FRAG_STATE_FREE
	       : p->waits[word] & bit ? FRAG_STATE_WAITING
				      : FRAG_STATE_LIVE;
}

static bool idle(const struct frag_chunk *c)
{
	return ((const struct subpool *)c->head)->free_count ==
	       ((const struct frag_equal *)c->owner)->chunk_blocks;
}

static int check_subpool(const struct frag_equal *e, const struct subpool *p, uint64_t *live,
			 uint64_t *waiting, struct frag_err *err)
{
	bool listed = frag_bset_has(&((const struct frag_slotpool *)e)->open, p->number, 0, p);
	uint64_t free_count = 0, waits = 0;

	for (uint64_t i = 0; i < p->words_count; i++) {
		free_count += (uint64_t)__builtin_popcountll(p->free[i]);
		waits += (uint64_t)__builtin_popcountll(p->waits[i]);
		if (p->free[i] & p->waits[i] || (i < p->lowest && p->free[i]))
			return frag_fail(err, FRAG_ECHECK, "bitmaps of sub-pool %llu disagree",
					 (unsigned long long)p->number);
	}
	if (free_count != p->free_count || free_count + waits > e->chunk_blocks ||
	    listed != (free_count > 0))
		return frag_fail(err, FRAG_ECHECK, "sub-pool %llu differs from its bitmap",
				 (unsigned long long)p->number);
	*waiting += waits;
	*live += e->chunk_blocks - free_count - waits;
	return 0;
}

static int check(struct frag_equal *e, uint64_t *live, uint64_t *waiting, struct frag_err *err)
{
	const char *broken = frag_bset_broken(&((const struct frag_slotpool *)e)->open);

	if (broken)
		return frag_fail(err, FRAG_ECHECK, "open sub-pools: %s", broken);
	for (struct frag_chunk *c = frag_upstream_first(e->up); c; c = frag_upstream_next(e->up, c))
		if (c->owner == e)
			FRAG_TRY(check_subpool(e, c->head, live, waiting, err));
	return 0;
}

static void release(struct frag_equal *e)
{
	frag_bset_release(&((struct frag_slotpool *)e)->open);
}

static const struct frag_equal_ops slot_ops = {
	.start = start,
	.alloc = alloc,
	.free_requested = free_requested,
	.free = release_object,
	.state = state_of,
	.idle = idle,
	.check = check,
	.release = release,
};

void frag_slotpool_init(struct frag_slotpool *s, struct frag_upstream *up, uint64_t object_bytes,
			uint64_t objects)
{
	*s = (struct frag_slotpool){ .e = { .ops = &slot_ops,
					    .up = up,
					    .block_bytes = object_bytes,
					    .chunk_blocks = objects } };
	frag_bset_init(&s->open);
}
