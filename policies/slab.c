/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab: size classes after jemalloc; small ones from slabs, large ones in whole pages.
 *
 * Rules (jemalloc/jemalloc, include/jemalloc/internal/sc.h, src/arena.c and extent.c, 5.3; policies.md
 * 12.2), scaled to a GPU: unit 512 B instead of 16, page 2 MiB instead of 4 KiB.
 *  - Classes: unit, 2, 3, 4 units, then four per doubling: 2^b + n * 2^(b-2), n = 1..4.
 *    A request is served by the smallest class that holds it (loss below 20 %, above 4 units).
 *  - Small, up to slab-max: slots of a slab. A slab is one page, cut into floor(page / class) slots;
 *    what is left of the page stays unused. The lowest free slot of the current slab of the class is used.
 *    When that is full, the slab with free slots at the lowest address becomes the current one;
 *    when there is none, a new page is taken.
 *    A slab whose last slot is freed goes back to the free pages at once, also the current one.
 *  - Large: the class in whole pages, as one extent.
 *  - Extents of free pages: the smallest that fits, the lowest address among equals, cut exactly,
 *    the low part is used. They merge with free neighbours at once.
 *  - Growth: a segment of max(pages, grow) from the device; if it refuses, of the pages alone.
 *  - Segments of free pages only are given back on trim, and, after waiting for pending
 *    frees and looking again, before the policy says out of memory. (jemalloc's timed decay has no
 *    meaning in a trace.)
 *
 * Structure: common/segheap for segments and extents, one ordered set of the free extents. A slab is
 * a live extent with a record: a bit per free slot, a summary bit per word of them. Per class
 * the current slab and an ordered set of the others that have free slots.
 * The handle of a block is its extent, or, with bit 0 set, its slab; the slot follows from the address.
 *
 * Invariants: free extents are in the set and have no free neighbour; a slab is current, in the set of its
 * class (some slots free), or neither (full); no slab is empty.
 */
#include "bset.h"
#include "segheap.h"

#include <inttypes.h>

struct params {
	uint64_t unit, page, slab_max, grow;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("unit", struct params, unit, 512, 16, 64 * FRAG_KIB,
		       "smallest class, bytes, a power of two"),
	FRAG_OPT_BYTES("page", struct params, page, 2 * FRAG_MIB, 64 * FRAG_KIB, FRAG_GIB,
		       "size of a slab and unit of large blocks, bytes, a power of two"),
	{ .type = FRAG_OPT_T_BYTES, .key = "slab-max", .offset = offsetof(struct params, slab_max),
	  .def = FRAG_MIB, .min = 16, .max = FRAG_GIB,
	  .help = "largest class that is served from slabs, bytes, at most half a page",
	  .tune = "64K,256K,512K,1M" },
	{ .type = FRAG_OPT_T_BYTES, .key = "grow", .offset = offsetof(struct params, grow),
	  .def = 32 * FRAG_MIB, .min = 0, .max = 1ull << 50,
	  .help = "smallest segment taken from the device, bytes; 0 = as needed",
	  .tune = "0,32M,128M,512M" },
	FRAG_OPT_END,
};

#define SLOTS_MAX 4096u /* per slab: one summary word over 64 words of bits */

/* A page of slots. In host memory behind it: `free`, then `waiting`, a bit per slot each. */
struct slab {
	struct frag_piece *piece;
	struct class *class;
	uint64_t summary; /* bit w: word w of `free` is not 0 */
	uint32_t free_count;
	uint32_t waiting_count;
	uint64_t bits[]; /* [2 * class->words] */
};

struct class {
	uint64_t bytes;
	uint32_t slots, words; /* per slab */
	struct slab *current, *spare; /* spare: a record to use again */
	struct frag_bset partial;     /* (0, address): not current, with free slots */
};

struct self {
	const struct params *params;
	unsigned unit_log2;
	struct class *classes; /* the small ones, ascending */
	uint32_t classes_count;
	struct frag_bset_pool nodes;
	struct frag_bset extents; /* free ones */
	struct frag_heap heap;	  /* a slab is one live piece of it: link[0] is its record */
	size_t slabs_count, small_count; /* slots that are live or waiting */
	uint64_t slab_bytes, small_live_bytes, small_waiting_bytes;
};

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (!frag_is_pow2(p->unit))
		return frag_fail(err, FRAG_EUSAGE, "unit is %" PRIu64 ", not a power of two",
				 p->unit);
	if (!frag_is_pow2(p->page))
		return frag_fail(err, FRAG_EUSAGE, "page is %" PRIu64 ", not a power of two",
				 p->page);
	if (p->page / p->unit > SLOTS_MAX || p->page < 4 * p->unit)
		return frag_fail(err, FRAG_EUSAGE,
				 "a page holds %" PRIu64 " units; choose page and unit for 4 to 4096",
				 p->page / p->unit);
	if (p->slab_max > p->page / 2)
		return frag_fail(err, FRAG_EUSAGE,
				 "slab-max is above half a page; give at most %" PRIu64,
				 p->page / 2);
	return 0;
}

/* ---- size classes --------------------------------------------------------------------- */

/* Number of the smallest class that holds n units. pre: n > 0. */
static uint32_t class_of(uint64_t n)
{
	unsigned b;

	if (n <= 4)
		return (uint32_t)n - 1;
	b = frag_log2(n - 1);
	/* fifths to eighths of 2^(b-2) */
	return 4 * (b - 2) + (uint32_t)((n - 1) >> (b - 2));
}

/* Units of class i. */
static uint64_t class_units(uint32_t i)
{
	return i < 4 ? i + 1 : (uint64_t)(i % 4 + 5) << (i / 4 - 1);
}

static uint64_t units_of(const struct self *s, uint64_t bytes)
{
	return (bytes + s->params->unit - 1) >> s->unit_log2;
}

/* ---- create and destroy ------------------------------------------------------------------ */

static int make_classes(struct self *s)
{
	uint64_t bytes;
	uint32_t i, n = 0;

	while (class_units(n) << s->unit_log2 <= s->params->slab_max)
		n++;
	s->classes = frag_host_calloc(n, sizeof(s->classes[0]));
	if (!s->classes)
		return FRAG_ENOMEM;
	for (i = 0; i < n; i++) {
		bytes = class_units(i) << s->unit_log2;
		s->classes[i].bytes = bytes;
		s->classes[i].slots = (uint32_t)(s->params->page / bytes);
		s->classes[i].words = (s->classes[i].slots + 63) / 64;
		frag_bset_init_shared(&s->classes[i].partial, &s->nodes);
	}
	s->classes_count = n;
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s = frag_host_calloc(1, sizeof(*s));

	if (!s)
		return frag_fail_nomem(err, "policy slab");
	s->params = params;
	s->unit_log2 = frag_log2(s->params->unit);
	frag_bset_pool_init(&s->nodes);
	frag_bset_init_shared(&s->extents, &s->nodes);
	if (make_classes(s)) {
		frag_host_free(s);
		return frag_fail_nomem(err, "policy slab");
	}
	frag_heap_init(&s->heap, env, true);
	*out = s;
	return 0;
}

static bool is_slab(const struct frag_piece *p)
{
	return !frag_piece_is_free(p) && p->link[0];
}

static struct slab *slab_in(const struct frag_piece *p)
{
	return (void *)p->link[0];
}

static void destroy(void *self)
{
	struct self *s = self;
	struct frag_piece *p;
	size_t i;

	for (i = 0; i < s->heap.segs_count; i++)
		for (p = s->heap.segs[i]->first; p; p = p->next)
			if (is_slab(p))
				frag_host_free(slab_in(p));
	for (i = 0; i < s->classes_count; i++)
		frag_host_free(s->classes[i].spare);
	frag_heap_release(&s->heap);
	frag_bset_pool_release(&s->nodes);
	frag_host_free(s->classes);
	frag_host_free(s);
}

/* ---- extents of pages ---------------------------------------------------------------------- */

static void put_extent(void *self, struct frag_piece *p)
{
	struct self *s = self;

	frag_bset_insert(&s->extents, p->bytes, p->addr, p);
}

static void cut_extent(void *self, struct frag_piece *p)
{
	struct self *s = self;

	frag_bset_erase(&s->extents, p->bytes, p->addr);
}

static struct frag_piece *find_extent(const struct self *s, uint64_t bytes)
{
	struct frag_bset_pos at = frag_bset_lower(&s->extents, bytes, 0);

	return at.leaf ? frag_bset_value(at) : NULL;
}

/* Sets hold free extents and slabs, each a piece: two more cover one split and one segment. */
static int reserve(struct self *s)
{
	if (FRAG_UNLIKELY(s->nodes.limit < s->heap.pieces_count + 2) &&
	    frag_bset_pool_reserve(&s->nodes, s->heap.pieces_count + 2))
		return FRAG_ENOMEM;
	return frag_heap_reserve(&s->heap, 2);
}

static int give_back(struct self *s, struct frag_err *err)
{
	static const struct frag_heap_index extents = { cut_extent, put_extent };

	return frag_heap_drop_idle(&s->heap, &extents, s, err);
}

static int grow(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		struct frag_err *err)
{
	uint64_t usual = frag_round_up(FRAG_MAX(bytes, s->params->grow), s->params->page);
	int rc = frag_heap_grow(&s->heap, usual, stream, out, err);

	if (rc == FRAG_OOM && bytes < usual)
		rc = frag_heap_grow(&s->heap, bytes, stream, out, err);
	if (!rc)
		put_extent(s, *out);
	return rc;
}

/* When no free extent fits. 0 and *out, FRAG_OOM or an error. */
static int make_room(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		     enum frag_class *cls, struct frag_err *err)
{
	int rc = grow(s, bytes, stream, out, err);

	*cls = FRAG_CLASS_GROW;
	if (rc != FRAG_OOM)
		return rc;
	*cls = FRAG_CLASS_RELEASE;
	if (s->heap.env.sync) {
		s->heap.env.sync(s->heap.env.sync_ctx);
		*out = find_extent(s, bytes);
		if (*out)
			return 0;
	}
	if (!s->heap.idle_count)
		return FRAG_OOM;
	FRAG_TRY(give_back(s, err));
	return grow(s, bytes, stream, out, err);
}

/* An extent of exactly `bytes`, whole pages, live. */
static int take_extent(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		       enum frag_class *cls, struct frag_err *err)
{
	struct frag_piece *p;

	if (reserve(s))
		return frag_fail_nomem(err, "policy slab");
	p = find_extent(s, bytes);
	*cls = FRAG_CLASS_HIT;
	if (!p) {
		FRAG_TRY(make_room(s, bytes, stream, &p, cls, err));
		if (reserve(s))
			return frag_fail_nomem(err, "policy slab");
	}
	cut_extent(s, p);
	if (p->bytes > bytes) {
		put_extent(s, frag_heap_split(&s->heap, p, bytes));
		if (*cls == FRAG_CLASS_HIT)
			*cls = FRAG_CLASS_SPLIT;
	}
	p->link[0] = NULL;
	frag_heap_take(&s->heap, p);
	*out = p;
	return 0;
}

static void give_extent(struct self *s, struct frag_piece *p)
{
	struct frag_piece *q;

	frag_heap_give(&s->heap, p);
	q = frag_piece_free_next(p);
	if (q) {
		cut_extent(s, q);
		frag_heap_join(&s->heap, p);
	}
	q = frag_piece_free_prev(p);
	if (q) {
		cut_extent(s, q);
		frag_heap_join(&s->heap, q);
		p = q;
	}
	put_extent(s, p);
}

/* ---- slabs ------------------------------------------------------------------------------------ */

static uint64_t *waiting_bits(struct slab *l)
{
	return l->bits + l->class->words;
}

/* A fresh slab for a class, all slots free. */
static int new_slab(struct self *s, struct class *c, uint32_t stream, struct slab **out,
		    enum frag_class *cls, struct frag_err *err)
{
	struct slab *l = c->spare;
	uint32_t w;

	if (!l)
		l = frag_host_alloc(sizeof(*l) + 2ul * c->words * sizeof(l->bits[0]));
	if (!l)
		return frag_fail_nomem(err, "policy slab");
	c->spare = l; /* kept if the page fails */
	*l = (struct slab){ .class = c, .free_count = c->slots };
	FRAG_TRY(take_extent(s, s->params->page, stream, &l->piece, cls, err));
	c->spare = NULL;
	for (w = 0; w < c->words; w++) {
		l->bits[w] = ~0ull;
		waiting_bits(l)[w] = 0;
	}
	if (c->slots % 64)
		l->bits[w - 1] = (1ull << c->slots % 64) - 1;
	l->summary = c->words == 64 ? ~0ull : (1ull << c->words) - 1;
	l->piece->link[0] = (void *)l;
	s->slabs_count++;
	s->slab_bytes += s->params->page;
	*out = l;
	return 0;
}

/* Gives an empty slab's page back to the extents. */
static void end_slab(struct self *s, struct slab *l)
{
	struct frag_piece *p = l->piece;

	s->slabs_count--;
	s->slab_bytes -= p->bytes;
	if (l->class->spare)
		frag_host_free(l);
	else
		l->class->spare = l;
	give_extent(s, p);
}

/* A slab that was full has a free slot now. The current one is the lowest of those with free slots. */
static void slab_not_full(struct class *c, struct slab *l)
{
	struct slab *cur = c->current;

	if (!cur || l->piece->addr > cur->piece->addr) {
		if (cur)
			frag_bset_insert(&c->partial, 0, l->piece->addr, l);
		else
			c->current = l;
		return;
	}
	if (cur->free_count)
		frag_bset_insert(&c->partial, 0, cur->piece->addr, cur);
	c->current = l;
}

/* Makes c->current a slab with a free slot. */
static int next_slab(struct self *s, struct class *c, uint32_t stream, enum frag_class *cls,
		     struct frag_err *err)
{
	struct frag_bset_pos at = frag_bset_first(&c->partial);

	c->current = NULL;
	if (!at.leaf)
		return new_slab(s, c, stream, &c->current, cls, err);
	c->current = frag_bset_value(at);
	frag_bset_erase_at(&c->partial, at);
	return 0;
}

static int alloc_small(struct self *s, struct class *c, uint32_t stream, struct frag_block *out,
		       struct frag_err *err)
{
	enum frag_class cls = FRAG_CLASS_HIT;
	struct slab *l = c->current;
	uint32_t w, slot;

	if (FRAG_UNLIKELY(!l || !l->free_count)) {
		FRAG_TRY(next_slab(s, c, stream, &cls, err));
		l = c->current;
	}
	w = (uint32_t)__builtin_ctzll(l->summary);
	slot = 64 * w + (uint32_t)__builtin_ctzll(l->bits[w]);
	l->bits[w] &= l->bits[w] - 1;
	if (!l->bits[w])
		l->summary &= l->summary - 1;
	l->free_count--;
	s->small_count++;
	s->small_live_bytes += c->bytes;
	out->addr = l->piece->addr + slot * c->bytes;
	out->granted = c->bytes;
	out->handle = (uintptr_t)l | 1;
	out->cls = (uint8_t)cls;
	return 0;
}

static uint32_t slot_of(const struct slab *l, frag_addr_t addr)
{
	return (uint32_t)(addr - l->piece->addr) / (uint32_t)l->class->bytes;
}

static void free_small(struct self *s, struct slab *l, frag_addr_t addr)
{
	uint32_t slot = slot_of(l, addr), w = slot / 64;
	uint64_t bit = 1ull << slot % 64, *waiting = waiting_bits(l) + w;
	struct class *c = l->class;

	if (FRAG_UNLIKELY(*waiting & bit)) {
		*waiting &= ~bit;
		l->waiting_count--;
		s->small_waiting_bytes -= c->bytes;
	} else {
		s->small_live_bytes -= c->bytes;
	}
	s->small_count--;
	l->bits[w] |= bit;
	l->summary |= 1ull << w;
	if (!l->free_count++ && l != c->current)
		slab_not_full(c, l);
	if (FRAG_LIKELY(l->free_count < c->slots))
		return;
	if (l == c->current)
		c->current = NULL;
	else
		frag_bset_erase(&c->partial, 0, l->piece->addr);
	end_slab(s, l);
}

/* ---- hooks ------------------------------------------------------------------------------------- */

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	enum frag_class cls;
	struct frag_piece *p;
	uint64_t bytes;
	uint32_t i;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	i = class_of(units_of(s, req->bytes));
	if (i < s->classes_count)
		return alloc_small(s, &s->classes[i], req->stream, out, err);
	bytes = frag_round_up(class_units(i) << s->unit_log2, s->params->page);
	FRAG_TRY(take_extent(s, bytes, req->stream, &p, &cls, err));
	out->addr = p->addr;
	out->granted = p->bytes;
	out->handle = (uintptr_t)p;
	out->cls = (uint8_t)cls;
	return 0;
}

/* The slab of a small block, NULL for a large one. */
static struct slab *slab_of(const struct frag_block *block)
{
	return block->handle & 1 ? (void *)(uintptr_t)(block->handle & ~1ull) : NULL;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct slab *l = slab_of(block);

	(void)err;
	if (l)
		free_small(s, l, block->addr);
	else
		give_extent(s, (void *)(uintptr_t)block->handle);
	return 0;
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct self *s = self;
	struct slab *l = slab_of(block);
	uint32_t slot;
	uint64_t *word, bit;

	if (!l) {
		frag_heap_wait(&s->heap, (void *)(uintptr_t)block->handle);
		return;
	}
	slot = slot_of(l, block->addr);
	word = waiting_bits(l) + slot / 64;
	bit = 1ull << slot % 64;
	if (*word & bit)
		return;
	*word |= bit;
	l->waiting_count++;
	s->small_live_bytes -= l->class->bytes;
	s->small_waiting_bytes += l->class->bytes;
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	(void)pool;
	return give_back(self, err);
}

static enum frag_block_state slot_state(struct slab *l, uint32_t slot)
{
	uint64_t bit = 1ull << slot % 64;

	if (l->bits[slot / 64] & bit)
		return FRAG_STATE_FREE;
	return waiting_bits(l)[slot / 64] & bit ? FRAG_STATE_WAITING : FRAG_STATE_LIVE;
}

/* Used slots one by one, runs of free ones (and the unused end of the page) as one block each. */
static void visit_slab(const struct frag_visitor *v, struct slab *l)
{
	uint64_t bytes = l->class->bytes;
	frag_addr_t at = l->piece->addr, end = at + l->piece->bytes, from = at;
	uint32_t slot;

	for (slot = 0; slot < l->class->slots; slot++, at += bytes) {
		enum frag_block_state state = slot_state(l, slot);

		if (state == FRAG_STATE_FREE)
			continue;
		if (from < at)
			v->block(v->ctx, from, at - from, FRAG_STATE_FREE, 0);
		v->block(v->ctx, at, bytes, state, 0);
		from = at + bytes;
	}
	if (from < end)
		v->block(v->ctx, from, end - from, FRAG_STATE_FREE, 0);
}

static void visit(void *self, const struct frag_visitor *v)
{
	struct self *s = self;
	const struct frag_piece *p;
	size_t i;

	frag_heap_sort(&s->heap);
	for (i = 0; i < s->heap.segs_count; i++) {
		const struct frag_seg *seg = s->heap.segs[i];

		if (v->segment)
			v->segment(v->ctx, seg->addr, seg->bytes, seg->stream);
		for (p = seg->first; v->block && p; p = p->next) {
			if (is_slab(p))
				visit_slab(v, slab_in(p));
			else
				v->block(v->ctx, p->addr, p->bytes,
					 (enum frag_block_state)p->state,
					 frag_seg_is_idle(seg) ? p->bytes : 0);
		}
	}
}

static void usage(void *self, struct frag_usage *out)
{
	struct self *s = self;
	struct frag_bset_pos at = frag_bset_last(&s->extents);
	uint64_t unused = s->slab_bytes - s->small_live_bytes - s->small_waiting_bytes;

	frag_heap_usage(&s->heap, at.leaf ? frag_bset_size(at) : 0, out);
	out->allocated_bytes += s->small_live_bytes - s->slab_bytes;
	out->waiting_bytes += s->small_waiting_bytes;
	out->free_bytes += unused;
	out->pinned_bytes += unused;
	out->blocks_count += s->small_count - s->slabs_count;
}

/* ---- check ------------------------------------------------------------------------------------------ */

struct sums {
	size_t slabs, slots, in_partial;
	uint64_t live_bytes, waiting_bytes;
};

static const char *check_slab(struct slab *l, struct sums *sum)
{
	const struct class *c = l->class;
	struct frag_bset_pos at = frag_bset_lower(&c->partial, 0, l->piece->addr);
	bool partial = at.leaf && frag_bset_value(at) == l;
	uint32_t slot, n[3] = { 0 }, w;

	for (slot = 0; slot < c->slots; slot++)
		n[slot_state(l, slot)]++;
	for (w = 0; w < c->words; w++)
		if ((l->summary >> w & 1) != !!l->bits[w])
			return "summary of a slab wrong";
	if (n[FRAG_STATE_FREE] != l->free_count || n[FRAG_STATE_WAITING] != l->waiting_count)
		return "counts of a slab wrong";
	if (l->free_count == c->slots)
		return "empty slab";
	if (partial != (l->free_count && l != c->current))
		return "slab not where it belongs";
	sum->slabs++;
	sum->in_partial += partial;
	sum->slots += n[FRAG_STATE_LIVE] + n[FRAG_STATE_WAITING];
	sum->live_bytes += n[FRAG_STATE_LIVE] * c->bytes;
	sum->waiting_bytes += n[FRAG_STATE_WAITING] * c->bytes;
	return NULL;
}

/* All slabs, and that the sets have nothing else. */
static const char *check_slabs(struct self *s)
{
	struct sums sum = { 0 };
	const struct frag_piece *p;
	const char *bad = NULL;
	size_t i;

	for (i = 0; i < s->heap.segs_count; i++)
		for (p = s->heap.segs[i]->first; p && !bad; p = p->next)
			if (is_slab(p))
				bad = check_slab(slab_in(p), &sum);
	for (i = 0; i < s->classes_count && !bad; i++) {
		bad = frag_bset_broken(&s->classes[i].partial);
		sum.in_partial -= frag_bset_count(&s->classes[i].partial);
	}
	if (bad)
		return bad;
	if (sum.in_partial)
		return "set of slabs with entries that are no slabs";
	if (sum.slabs != s->slabs_count || sum.slabs * s->params->page != s->slab_bytes ||
	    sum.slots != s->small_count || sum.live_bytes != s->small_live_bytes ||
	    sum.waiting_bytes != s->small_waiting_bytes)
		return "counters differ from the sums over the slabs";
	return NULL;
}

static bool indexed(void *ctx, const struct frag_piece *p)
{
	const struct self *s = ctx;
	struct frag_bset_pos at = frag_bset_lower(&s->extents, p->bytes, p->addr);

	return at.leaf && frag_bset_value(at) == p && !frag_piece_free_next(p);
}

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	const char *bad = frag_bset_broken(&s->extents);

	if (!bad && frag_bset_count(&s->extents) != s->heap.free_count)
		bad = "set of free extents with entries that are none";
	if (!bad)
		bad = check_slabs(s);
	if (bad)
		return frag_fail(err, FRAG_ECHECK, "%s", bad);
	return frag_heap_check(&s->heap, indexed, s, err);
}

const struct frag_policy_ops frag_policy_slab = {
	.abi = FRAG_POLICY_ABI,
	.name = "slab",
	.summary = "jemalloc size classes: slabs of one page, large blocks in whole pages",
	.source = "jemalloc/jemalloc include/jemalloc/internal/sc.h, src/arena.c (5.3)",
	.needs = FRAG_CAN_MALLOC,
	.opts = opts,
	.params_size = sizeof(struct params),
	.validate = validate,
	.create = create,
	.destroy = destroy,
	.alloc = alloc,
	.free = release,
	.free_requested = free_requested,
	.trim = trim,
	.visit = visit,
	.usage = usage,
	.check = check,
};
