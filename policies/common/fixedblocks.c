/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots and lists of fixedblocks.h.
 *
 * Invariants: a slot is free if and only if it is in exactly one list; the
 * counters are those of the slots. The place of a slot in its array is the place
 * of its block in the chunk.
 */
#include "fixedblocks.h"

struct queue {
	struct frag_fixed_slot *first, *last;
	uint64_t count;
};

static bool queue_fits(const void *list, uint64_t bytes)
{
	(void)bytes; /* never above the block size */
	return ((const struct queue *)list)->count;
}

static void queue_append(struct queue *q, struct queue *tail)
{
	if (q->last)
		q->last->next = tail->first;
	else
		q->first = tail->first;
	if (tail->last)
		q->last = tail->last;
	q->count += tail->count;
	*tail = (struct queue){ 0 };
}

static void queue_merge(void *self, void **own, void **other)
{
	(void)self;
	queue_append(*own, *other);
}

static const struct frag_streams_ops queue_ops = {
	.bytes = sizeof(struct queue),
	.fits = queue_fits,
	.merge = queue_merge,
};

static void put(struct queue *q, struct frag_fixed_slot *s)
{
	s->state = FRAG_STATE_FREE;
	s->next = NULL;
	if (q->last)
		q->last->next = s;
	else
		q->first = s;
	q->last = s;
	q->count++;
}

static struct frag_fixed_slot *take(struct queue *q)
{
	struct frag_fixed_slot *s = q->first;

	q->first = s->next;
	if (!q->first)
		q->last = NULL;
	q->count--;
	return s;
}

static int grow(struct frag_fixed *f, uint32_t stream, struct queue *q, struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_fixed_slot *room = NULL;
	struct frag_fixed_slot *slots;
	struct frag_chunk *c;

	FRAG_TRY_CALLOC(room, f->e.chunk_blocks, "blocks of a chunk", err);
	FRAG_TRY(
		frag_upstream_take(f->e.up, f->e.block_bytes * f->e.chunk_blocks, stream, &c, err));
	c->owner = f;
	c->head = slots = FRAG_GIVE(room);
	for (uint64_t i = 0; i < f->e.chunk_blocks; i++) {
		slots[i].chunk = c;
		slots[i].stream = stream;
		put(q, &slots[i]);
	}
	f->e.chunks_count++;
	return 0;
}

static int start(struct frag_equal *e, struct frag_err *err)
{
	struct frag_fixed *f = (struct frag_fixed *)e;
	struct queue *q;

	if (f->started)
		return 0;
	q = frag_streams_get(&f->streams, 0, err);
	if (!q)
		return FRAG_ENOMEM;
	FRAG_TRY(grow(f, 0, q, err));
	f->started = true;
	return 0;
}

static int alloc(struct frag_equal *e, uint32_t stream, struct frag_block *out,
		 struct frag_err *err)
{
	struct frag_fixed *f = (struct frag_fixed *)e;
	enum frag_class cls = FRAG_CLASS_HIT;
	struct frag_fixed_slot *s;
	struct queue *q;
	void *from;

	if (FRAG_UNLIKELY(!f->started)) {
		FRAG_TRY(start(e, err));
		cls = FRAG_CLASS_GROW;
	}
	q = frag_streams_get(&f->streams, stream, err);
	if (FRAG_UNLIKELY(!q))
		return FRAG_ENOMEM;
	if (FRAG_UNLIKELY(!q->count)) {
		FRAG_TRY(frag_streams_steal(&f->streams, stream, e->block_bytes, &from, err));
		if (from) {
			q = from;
		} else {
			FRAG_TRY(grow(f, stream, q, err));
			cls = FRAG_CLASS_GROW;
		}
	}
	s = take(q);
	s->state = FRAG_STATE_LIVE;
	s->stream = stream;
	e->live_count++;
	out->addr = s->chunk->addr +
		    (uint64_t)(s - (struct frag_fixed_slot *)s->chunk->head) * e->block_bytes;
	out->granted = e->block_bytes;
	out->handle = (uintptr_t)s;
	out->cls = (uint8_t)cls;
	return 0;
}

static struct frag_fixed_slot *slot_of(const struct frag_block *b)
{
	return (struct frag_fixed_slot *)(uintptr_t)b->handle;
}

static void free_requested(struct frag_equal *e, const struct frag_block *block)
{
	struct frag_fixed_slot *s = slot_of(block);

	FRAG_ASSERT(s->state == FRAG_STATE_LIVE);
	s->state = FRAG_STATE_WAITING;
	e->live_count--;
	e->waiting_count++;
}

static void release_block(struct frag_equal *e, const struct frag_block *block)
{
	struct frag_fixed *f = (struct frag_fixed *)e;
	struct frag_fixed_slot *s = slot_of(block);

	FRAG_ASSERT(s->state != FRAG_STATE_FREE);
	--*(s->state == FRAG_STATE_LIVE ? &e->live_count : &e->waiting_count);
	put(f->streams.list[s->stream], s);
}

/* ---- looking at it ---------------------------------------------------------------- */

static enum frag_block_state state_of(const struct frag_chunk *c, uint64_t number)
{
	return (enum frag_block_state)((const struct frag_fixed_slot *)c->head)[number].state;
}

/* Blocks by state. */
static int count_states(const struct frag_equal *e, uint64_t *count, struct frag_err *err)
{
	for (struct frag_chunk *c = frag_upstream_first(e->up); c;
	     c = frag_upstream_next(e->up, c)) {
		const struct frag_fixed_slot *slots = c->head;

		for (uint64_t i = 0; c->owner == e && i < e->chunk_blocks; i++) {
			if (slots[i].chunk != c || slots[i].state > FRAG_STATE_FREE)
				return frag_fail(
					err, FRAG_ECHECK, "block %llu of chunk 0x%llx is broken",
					(unsigned long long)i, (unsigned long long)c->addr);
			count[slots[i].state]++;
		}
	}
	return 0;
}

static int check(struct frag_equal *e, uint64_t *live, uint64_t *waiting, struct frag_err *err)
{
	const struct frag_fixed *f = (struct frag_fixed *)e;
	uint64_t count[FRAG_STATE_FREE + 1] = { 0 }, listed = 0;

	FRAG_TRY(count_states(e, count, err));
	*live = count[FRAG_STATE_LIVE];
	*waiting = count[FRAG_STATE_WAITING];
	for (uint32_t i = 0; i < f->streams.count; i++) {
		const struct queue *q = f->streams.list[i];
		const struct frag_fixed_slot *s = q ? q->first : NULL, *last = NULL;
		uint64_t n = 0;

		/* a list longer than all free blocks together goes round */
		for (; s && n <= count[FRAG_STATE_FREE]; s = s->next, n++) {
			if (s->state != FRAG_STATE_FREE)
				return frag_fail(err, FRAG_ECHECK,
						 "a used block is in a free list");
			last = s;
		}
		if (q && (n != q->count || last != q->last))
			return frag_fail(err, FRAG_ECHECK, "free list of stream %u is broken", i);
		listed += n;
	}
	if (listed != count[FRAG_STATE_FREE])
		return frag_fail(err, FRAG_ECHECK, "a free block is in no list");
	return 0;
}

static void release(struct frag_equal *e)
{
	frag_streams_release(&((struct frag_fixed *)e)->streams);
}

static const struct frag_equal_ops fixed_ops = {
	.start = start,
	.alloc = alloc,
	.free_requested = free_requested,
	.free = release_block,
	.state = state_of,
	.check = check,
	.release = release,
};

void frag_fixed_init(struct frag_fixed *f, struct frag_upstream *up, uint64_t block_bytes,
		     uint64_t chunk_blocks)
{
	*f = (struct frag_fixed){ .e = { .ops = &fixed_ops,
					 .up = up,
					 .block_bytes =
						 frag_round_up(block_bytes, FRAG_FIXED_ALIGNMENT),
					 .chunk_blocks = chunk_blocks } };
	frag_streams_init(&f->streams, &queue_ops, f, up->env.dev);
}
