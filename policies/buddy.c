/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buddy: binary buddy system over arenas taken from the device.
 *
 * Rules (Knuth, TAOCP volume 1, section 2.5):
 *  - A request becomes a block of 2^k bytes, k = ceil(log2(max(request,
 *    min-block))). It takes a free block of the smallest order >= k; among those
 *    the one with the lowest address (order=address) or the one that became
 *    free last (order=lifo). The block is halved down to k; the lower half goes
 *    on, the upper halves become free.
 *  - A freed block merges with its buddy, the other half of the block they came
 *    from, while that is free and whole. Arenas are never merged.
 *  - Growth: an arena of max(2^k, arena). Where the device or the limit refuses
 *    that much, half of it, and so on down to 2^k, so that what is left of the card
 *    is covered by a descending series of arenas.
 *  - capacity=N: no growth; the first request takes N bytes as a descending series
 *    of powers of two (the binary digits of N).
 *  - An arena that is one free block is given back on trim, and before the
 *    policy says out of memory; with give-back=free as soon as it is free, with
 *    give-back=never not before the end. capacity=N never gives back.
 *  - Before it says out of memory it waits for pending frees, if there are any.
 *
 * Structure: common/bestfit for arenas and blocks. Sizes are powers of two, so best fit with the
 * lowest address, or the latest, among equals is the rule of the search.
 * Invariants: every block has a size of 2^k and lies at a multiple of it in its arena; no two
 * buddies are free.
 */
#include "bestfit.h"

#define ORDER_MAX 55u /* of a block */

enum order_rule { ORDER_ADDRESS, ORDER_LIFO };
enum give_back_rule { GIVE_BACK_TRIM, GIVE_BACK_FREE, GIVE_BACK_NEVER };

struct params {
	uint64_t min_block, arena, capacity, order, give_back;
};

static const char *const order_words[] = { "address", "lifo", NULL };
static const char *const give_back_words[] = { "trim", "free", "never", NULL };

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("min-block", struct params, min_block, 512, 256, FRAG_GIB,
		       "smallest block, bytes, a power of two", .unit = FRAG_OPT_POW2),
	FRAG_OPT_BYTES("arena", struct params, arena, FRAG_GIB, 4096, 1ull << 50,
		       "size of an arena, bytes, a power of two", .unit = FRAG_OPT_POW2,
		       .tune = "32M,128M,512M,1G,4G"),
	FRAG_OPT_BYTES("capacity", struct params, capacity, 0, 0, 1ull << 50,
		       "take this many bytes at first use, and never more; 0 = grow as needed"),
	FRAG_OPT_ENUM("order", struct params, order, ORDER_ADDRESS, order_words,
		      "which free block of a size is used: the lowest, or the one freed last"),
	FRAG_OPT_ENUM("give-back", struct params, give_back, GIVE_BACK_TRIM, give_back_words,
		      "when a wholly free arena goes back to the device"),
	FRAG_OPT_END,
};

struct self {
	struct frag_best best; /* first: its hooks are used as they are */
	const struct params *params;
	bool covered; /* capacity: taken */
};

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->arena < p->min_block)
		return FRAG_USAGE(err, "arena is below min-block; raise arena or lower min-block");
	return 0;
}

/* The other half of the block that p comes from, if it is whole and free. */
static struct frag_piece *buddy_of(const struct frag_piece *p)
{
	bool upper = (p->addr - p->seg->addr) & p->bytes;
	struct frag_piece *q = upper ? frag_piece_free_prev(p) : frag_piece_free_next(p);

	return q && q->bytes == p->bytes ? q : NULL;
}

static bool are_buddies(const struct frag_piece *p, const struct frag_piece *next)
{
	return buddy_of(p) == next;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	static const struct frag_best_rules rules = { .merges = are_buddies };
	struct self *s;

	FRAG_TRY(frag_best_create(env, sizeof(*s), &rules, "policy buddy", out, err));
	s = *out;
	s->params = params;
	s->best.latest = s->params->order == ORDER_LIFO;
	s->best.heap.gives_back = s->params->give_back != GIVE_BACK_NEVER && !s->params->capacity;
	return 0;
}

/* ---- arenas ---------------------------------------------------------------------------- */

/* capacity=N: the binary digits of N, largest first. Stops at the first refusal. */
static int cover(struct self *s, uint32_t stream, struct frag_err *err)
{
	uint64_t left = s->params->capacity;
	struct frag_piece *p;
	int rc = 0;

	s->covered = true;
	while (!rc && left >= s->params->min_block) {
		uint64_t bytes = 1ull << frag_log2(left);

		rc = frag_best_grow(&s->best, bytes, stream, &p, err);
		left -= bytes;
	}
	return rc;
}

/* An arena for a block, smaller than usual if need be. */
static int grow(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		struct frag_err *err)
{
	uint64_t size = FRAG_MAX(bytes, s->params->arena);
	int rc = frag_best_grow(&s->best, size, stream, p, err);

	for (; rc == FRAG_OOM && size > bytes; rc = frag_best_grow(&s->best, size, stream, p, err))
		size /= 2;
	return rc;
}

/* ---- hooks ----------------------------------------------------------------------------- */

/* When nothing free fits. */
static int make_room(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		     uint8_t *cls, struct frag_err *err)
{
	struct frag_heap *h = &s->best.heap;
	int rc = FRAG_OOM;

	*cls = FRAG_CLASS_GROW;
	if (!s->params->capacity) {
		rc = grow(s, bytes, stream, p, err);
	} else if (!s->covered) {
		rc = cover(s, stream, err);
		*p = frag_best_find(s, bytes);
		if (rc >= 0)
			rc = *p ? 0 : FRAG_OOM;
	}
	if (rc != FRAG_OOM)
		return rc;
	*cls = FRAG_CLASS_RELEASE;
	if (h->env.sync) {
		h->env.sync(h->env.sync_ctx);
		*p = frag_best_find(s, bytes);
		if (*p)
			return 0;
	}
	if (!h->gives_back || !h->idle_count)
		return FRAG_OOM;
	FRAG_TRY(frag_heap_drop_idle(h, err));
	return grow(s, bytes, stream, p, err);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = s->params->min_block;
	struct frag_piece *p;

	if (req->bytes > 1ull << ORDER_MAX)
		return FRAG_OOM;
	if (req->bytes > bytes)
		bytes = 2ull << frag_log2(req->bytes - 1);
	/* arenas that cover the capacity, and halves: one of each order */
	FRAG_CHECK_ALLOC(!frag_best_reserve(&s->best, 0, 2 * ORDER_MAX), "policy buddy", err);
	p = frag_best_find(s, bytes);
	out->cls = FRAG_CLASS_HIT;
	if (FRAG_UNLIKELY(!p))
		FRAG_TRY(make_room(s, bytes, req->stream, &p, &out->cls, err));
	frag_best_cut(s, p);
	if (p->bytes > bytes && out->cls == FRAG_CLASS_HIT)
		out->cls = FRAG_CLASS_SPLIT;
	while (p->bytes > bytes)
		frag_best_put(s, frag_heap_split(&s->best.heap, p, p->bytes / 2));
	frag_heap_grant(&s->best.heap, p, out);
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block), *buddy;

	frag_heap_give(&s->best.heap, p);
	while ((buddy = buddy_of(p)) != NULL) {
		frag_best_cut(s, buddy);
		p = buddy == p->prev ? buddy : p;
		frag_heap_join(&s->best.heap, p);
	}
	frag_best_put(s, p);
	if (s->params->give_back == GIVE_BACK_FREE && s->best.heap.gives_back &&
	    frag_seg_is_idle(p->seg))
		return frag_heap_drop_idle(&s->best.heap, err);
	return 0;
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct self *s = self;

	(void)pool;
	return s->best.heap.gives_back ? frag_heap_drop_idle(&s->best.heap, err) : 0;
}

const struct frag_policy_ops frag_policy_buddy = {
	.name = "buddy",
	.summary = "power-of-two blocks in arenas, merged on free",
	.source = "Knuth, The Art of Computer Programming, volume 1, 2.5",
	.trims = "wholly free arenas, unless give-back=never",
	FRAG_BEST_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	.free = release,
	.trim = trim,
};
