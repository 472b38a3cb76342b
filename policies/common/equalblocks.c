/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks, slots and queues of equalblocks.h. */
#include "equalblocks.h"

struct chunk;

struct slot {
	struct slot *next; /* in a queue */
	struct chunk *chunk;
	uint32_t stream; /* of its last request */
	uint8_t state;	 /* enum frag_block_state */
};

/* chunk->head */
struct chunk {
	struct frag_chunk *of;
	uint64_t number; /* in order of age */
	uint64_t free_count;
	uint64_t lowest; /* first slot that can be free, in a pool without queues */
	struct slot slots[];
};

struct queue {
	struct slot *first, *last;
	uint64_t count;
};

static bool queue_fits(const void *list, uint64_t bytes)
{
	(void)bytes; /* never above the block size */
	return ((const struct queue *)list)->count;
}

/* Appends `count` linked slots. */
static void queue_put(struct queue *q, struct slot *first, struct slot *last, uint64_t count)
{
	if (!count)
		return;
	*(q->last ? &q->last->next : &q->first) = first;
	q->last = last;
	q->count += count;
}

static void queue_merge(void *self, void **own, void **other)
{
	struct queue *tail = *other;

	(void)self;
	queue_put(*own, tail->first, tail->last, tail->count);
	*tail = (struct queue){ 0 };
}

static const struct frag_streams_ops queue_ops = {
	.bytes = sizeof(struct queue),
	.fits = queue_fits,
	.merge = queue_merge,
};

static struct slot *slot_of(const struct frag_block *b)
{
	return (struct slot *)(uintptr_t)b->handle;
}

static struct frag_equal *pool_of(const struct slot *s)
{
	return s->chunk->of->owner;
}

static bool is_idle(const struct frag_equal *e, const struct chunk *c)
{
	return e->gives_back && c->free_count == e->chunk_blocks;
}

static int grow(struct frag_equal *e, uint32_t stream, struct queue *q, struct frag_err *err)
{
	FRAG_AUTO_FREE struct chunk *room =
		frag_host_calloc(1, sizeof(*room) + e->chunk_blocks * sizeof(struct slot));
	struct chunk *c = room;

	if (!c || frag_bset_reserve(&e->open, e->chunks_count + 1))
		return frag_fail_nomem(err, "blocks of a pool");
	FRAG_TRY(frag_upstream_take(e->up, e->block_bytes * e->chunk_blocks, stream, &c->of, err));
	c->of->owner = e;
	c->of->head = FRAG_GIVE(room);
	c->number = e->numbers_count++;
	c->free_count = e->chunk_blocks;
	for (uint64_t i = 0; i < e->chunk_blocks; i++) {
		c->slots[i] =
			(struct slot){ .chunk = c, .stream = stream, .state = FRAG_STATE_FREE };
		if (q)
			queue_put(q, &c->slots[i], &c->slots[i], 1);
	}
	if (!q)
		frag_bset_insert(&e->open, c->number, 0, c);
	e->chunks_count++;
	e->idle_count += e->gives_back;
	return 0;
}

static int start(struct frag_equal *e, struct frag_err *err)
{
	struct queue *q = e->queues ? frag_streams_get(&e->streams, 0, err) : NULL;

	if (e->queues && !q)
		return FRAG_ENOMEM;
	return e->chunks_count ? 0 : grow(e, 0, q, err);
}

/* From the front of the queue of a stream; *out NULL: there is none. */
static int take_first(struct frag_equal *e, uint32_t stream, struct slot **out,
		      enum frag_class *cls, struct frag_err *err)
{
	struct queue *q = frag_streams_get(&e->streams, stream, err);
	void *from;

	if (!q)
		return FRAG_ENOMEM;
	if (FRAG_UNLIKELY(!q->count)) {
		FRAG_TRY(frag_streams_steal(&e->streams, stream, e->block_bytes, &from, err));
		if (from) {
			q = from;
		} else {
			FRAG_TRY(grow(e, stream, q, err));
			*cls = FRAG_CLASS_GROW;
		}
	}
	*out = q->first;
	q->first = q->first->next;
	if (!q->first)
		q->last = NULL;
	q->count--;
	return 0;
}

/* The lowest of the newest chunk that has one. */
static int take_lowest(struct frag_equal *e, uint32_t stream, struct slot **out,
		       enum frag_class *cls, struct frag_err *err)
{
	struct frag_bset_node *at = frag_bset_last(&e->open);
	struct chunk *c;

	if (FRAG_UNLIKELY(!at)) {
		FRAG_TRY(grow(e, stream, NULL, err));
		at = frag_bset_last(&e->open);
		*cls = FRAG_CLASS_GROW;
	}
	c = at->value;
	while (c->slots[c->lowest].state != FRAG_STATE_FREE)
		c->lowest++;
	*out = &c->slots[c->lowest];
	if (c->free_count == 1)
		frag_bset_erase_at(&e->open, at);
	return 0;
}

static int alloc(struct frag_equal *e, uint32_t stream, struct frag_block *out,
		 struct frag_err *err)
{
	enum frag_class cls = FRAG_CLASS_HIT;
	struct slot *s;

	FRAG_TRY(e->queues ? take_first(e, stream, &s, &cls, err)
			   : take_lowest(e, stream, &s, &cls, err));
	e->idle_count -= is_idle(e, s->chunk);
	s->chunk->free_count--;
	s->state = FRAG_STATE_LIVE;
	s->stream = stream;
	e->live_count++;
	out->addr = s->chunk->of->addr + (uint64_t)(s - s->chunk->slots) * e->block_bytes;
	out->granted = e->block_bytes;
	out->handle = (uintptr_t)s;
	out->cls = (uint8_t)cls;
	return 0;
}

void frag_equal_free_requested(const struct frag_block *block)
{
	struct slot *s = slot_of(block);

	FRAG_ASSERT(s->state == FRAG_STATE_LIVE);
	s->state = FRAG_STATE_WAITING;
	pool_of(s)->live_count--;
	pool_of(s)->waiting_count++;
}

void frag_equal_free(const struct frag_block *block)
{
	struct slot *s = slot_of(block);
	struct chunk *c = s->chunk;
	struct frag_equal *e = pool_of(s);

	FRAG_ASSERT(s->state != FRAG_STATE_FREE);
	--*(s->state == FRAG_STATE_LIVE ? &e->live_count : &e->waiting_count);
	s->state = FRAG_STATE_FREE;
	s->next = NULL;
	if (e->queues)
		queue_put(e->streams.list[s->stream], s, s, 1);
	else if (!c->free_count)
		frag_bset_insert(&e->open, c->number, 0, c);
	c->lowest = FRAG_MIN(c->lowest, (uint64_t)(s - c->slots));
	c->free_count++;
	e->idle_count += is_idle(e, c);
}

int frag_equal_give_back(struct frag_equal *e, struct frag_err *err)
{
	struct frag_bset_node *at = frag_bset_first(&e->open);
	int rc = 0;

	while (!rc && at) {
		struct chunk *c = at->value;
		uint64_t number = c->number;
		bool gone = false;

		if (is_idle(e, c)) {
			rc = frag_upstream_give(e->up, c->of, &gone, err);
			if (!gone)
				return rc;
			frag_bset_erase(&e->open, number, 0);
			frag_host_free(c);
			e->chunks_count--;
			e->idle_count--;
		}
		at = frag_bset_lower(&e->open, number + 1, 0);
	}
	return rc;
}

/* ---- looking at it ---------------------------------------------------------------- */

void frag_equal_inside(const struct frag_chunk *chunk, const struct frag_visitor *v)
{
	const struct frag_equal *e = chunk->owner;
	const struct chunk *c = chunk->head;
	uint64_t releasable = is_idle(e, c) ? e->block_bytes : 0;

	for (uint64_t i = 0; i < e->chunk_blocks; i++)
		v->block(v->ctx, chunk->addr + i * e->block_bytes, e->block_bytes,
			 (enum frag_block_state)c->slots[i].state, releasable);
}

static void usage(const struct frag_equal *e, struct frag_usage *out)
{
	uint64_t blocks = e->chunks_count * e->chunk_blocks;
	uint64_t free_count = blocks - e->live_count - e->waiting_count;

	out->allocated_bytes += e->live_count * e->block_bytes;
	out->waiting_bytes += e->waiting_count * e->block_bytes;
	out->free_bytes += free_count * e->block_bytes;
	out->releasable_bytes += e->idle_count * e->chunk_blocks * e->block_bytes;
	out->non_releasable_bytes +=
		(free_count - e->idle_count * e->chunk_blocks) * e->block_bytes;
	out->blocks_count += blocks;
	if (free_count)
		out->largest_free_bytes = FRAG_MAX(out->largest_free_bytes, e->block_bytes);
}

/* Counts the free slots of a chunk that are where they are looked for. */
static uint64_t findable(const struct frag_equal *e, const struct chunk *c)
{
	uint64_t n = 0;

	if (!e->queues && c->free_count && !frag_bset_has(&e->open, c->number, 0, c))
		return 0;
	for (uint64_t i = 0; i < e->chunk_blocks; i++)
		n += c->slots[i].state == FRAG_STATE_FREE && (e->queues || i >= c->lowest);
	return n;
}

static int check(const struct frag_equal *e, struct frag_err *err)
{
	uint64_t open = 0, free_count = 0, listed = 0;
	bool sound = true;

	for (struct frag_chunk *of = frag_upstream_first(e->up); of;
	     of = frag_upstream_next(e->up, of)) {
		const struct chunk *c = of->owner == e ? of->head : NULL;

		if (!c)
			continue;
		sound &= findable(e, c) == c->free_count;
		open += !e->queues && c->free_count;
		free_count += c->free_count;
	}
	for (uint32_t i = 0; i < e->streams.count; i++) {
		const struct queue *q = e->streams.list[i];

		for (const struct slot *s = q ? q->first : NULL; s; s = s->next)
			listed += s->state == FRAG_STATE_FREE;
	}
	if (sound && open == frag_bset_count(&e->open) && (!e->queues || listed == free_count))
		return 0;
	return frag_fail(err, FRAG_ECHECK, "a free block of %llu bytes is in no list",
			 (unsigned long long)e->block_bytes);
}

/* ---- several ---------------------------------------------------------------------- */

struct frag_equal *frag_equals_add(struct frag_equals *s, struct frag_upstream *up,
				   uint64_t block_bytes, uint64_t chunk_blocks, bool queues)
{
	struct frag_equal *e = &s->pool[s->count++];

	*e = (struct frag_equal){
		.up = up, .block_bytes = block_bytes, .chunk_blocks = chunk_blocks, .queues = queues
	};
	frag_bset_init(&e->open);
	frag_streams_init(&e->streams, &queue_ops, e, up->a.env.dev);
	return e;
}

int frag_equals_start(struct frag_equals *s, struct frag_err *err)
{
	for (; s->started_count < s->count; s->started_count++)
		FRAG_TRY(start(&s->pool[s->started_count], err));
	return 0;
}

int frag_equals_alloc(struct frag_equals *s, const struct frag_request *req, struct frag_block *out,
		      struct frag_err *err)
{
	struct frag_equal *e = s->pool;

	while (req->bytes > e->block_bytes)
		e++;
	return alloc(e, req->stream, out, err);
}

void frag_equals_usage(const struct frag_equals *s, struct frag_usage *out)
{
	for (uint32_t i = 0; i < s->count; i++)
		usage(&s->pool[i], out);
}

int frag_equals_check(const struct frag_equals *s, struct frag_err *err)
{
	for (uint32_t i = 0; i < s->count; i++)
		FRAG_TRY(check(&s->pool[i], err));
	return 0;
}

void frag_equals_release(struct frag_equals *s)
{
	for (struct frag_equal *e = s->pool; e < s->pool + s->count; e++) {
		for (struct frag_chunk *c = frag_upstream_first(e->up); c;
		     c = frag_upstream_next(e->up, c))
			if (c->owner == e)
				frag_host_free(c->head);
		frag_bset_release(&e->open);
		frag_streams_release(&e->streams);
	}
}

/* ---- a policy around one ---------------------------------------------------------- */

static struct frag_equals *set_of(void *self)
{
	return &((struct frag_equal_policy *)self)->set;
}

int frag_equal_op_alloc(void *self, const struct frag_request *req, struct frag_block *out,
			struct frag_err *err)
{
	struct frag_equals *s = set_of(self);
	bool starts = s->pool->queues && !s->started_count;

	if (!frag_equals_serve(s, req->bytes))
		return FRAG_OOM;
	if (FRAG_UNLIKELY(starts))
		FRAG_TRY(frag_equals_start(s, err));
	FRAG_TRY(frag_equals_alloc(s, req, out, err));
	if (FRAG_UNLIKELY(starts))
		out->cls = FRAG_CLASS_GROW;
	return 0;
}

int frag_equal_op_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	(void)self;
	(void)err;
	frag_equal_free(block);
	return 0;
}

void frag_equal_op_free_requested(void *self, const struct frag_block *block)
{
	(void)self;
	frag_equal_free_requested(block);
}

static void op_release(void *self)
{
	frag_equals_release(set_of(self));
}

static void op_inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	(void)self;
	frag_equal_inside(c, v);
}

static void op_usage(void *self, struct frag_usage *out)
{
	frag_equals_usage(set_of(self), out);
}

static int op_check(void *self, struct frag_err *err)
{
	return frag_equals_check(set_of(self), err);
}

int frag_equal_op_create(const struct frag_policy_env *env, const struct frag_equal_params *p,
			 bool queues, void **self, struct frag_err *err)
{
	static const struct frag_upstream_parts parts = {
		sizeof(struct frag_equal_policy), op_release, op_inside, op_usage, op_check,
	};

	FRAG_TRY(frag_upstream_create(env, p->upstream, &parts, self, err));
	frag_equals_add(set_of(*self), *self, p->block_bytes, p->chunk_blocks, queues);
	return 0;
}
