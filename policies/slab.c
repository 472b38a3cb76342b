/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab: size classes after jemalloc; small ones from slabs, large ones in whole pages.
 *
 * Rules (jemalloc/jemalloc, include/jemalloc/internal/sc.h, src/arena.c and extent.c, 5.3),
 * scaled to a GPU: unit 512 B instead of 16, page 2 MiB instead of 4 KiB.
 *  - Classes: unit, 2, 3, 4 units, then four per doubling: 2^b + n * 2^(b-2), n = 1..4. A
 *    request is served by the smallest class that holds it (loss below 20 %, above 4
 *    units).
 *  - Small, up to slab-max: slots of a slab. A slab is one page, cut into floor(page /
 *    class) slots; what is left of the page stays unused. The lowest free slot of the
 *    slab with the lowest address among those of the class with free slots is used; when
 *    there is none, a new page is taken. (In the source the oldest slab, the address only
 *    decides between slabs of one age.) A slab whose last slot is freed goes back to the
 *    free pages at once.
 *  - Large: the class in whole pages, as one extent.
 *  - Extents of free pages: the smallest that fits, the lowest address among equals, cut
 *    exactly, the low part is used. They merge with free neighbours at once.
 *  - Growth: a segment of max(pages, grow) from the device; if it refuses, of the pages
 *    alone.
 *  - Segments of free pages only are given back on trim, and, after waiting for pending
 *    frees and looking again, before the policy says out of memory. (jemalloc's timed decay
 *    has no meaning in a trace.)
 *
 * Structure: common/bestfit for extents, slab/sizeclass for slots. A slab is a live extent with
 * a record. The handle of a block is its extent, or, with bit 0 set, its slab; the slot
 * follows from the address.
 *
 * Invariants: a slab is current, in the set of its class (some slots free), or neither
 * (full); no slab is empty.
 */
#include "bestfit.h"
#include "slab/sizeclass.h"

#include <inttypes.h>

struct params {
	uint64_t unit, page, slab_max, grow;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("unit", struct params, unit, 512, 16, 64 * FRAG_KIB,
		       "smallest class, bytes, a power of two", .unit = FRAG_OPT_POW2),
	FRAG_OPT_BYTES("page", struct params, page, 2 * FRAG_MIB, 64 * FRAG_KIB, FRAG_GIB,
		       "size of a slab and unit of large blocks, bytes, a power of two",
		       .unit = FRAG_OPT_POW2),
	FRAG_OPT_BYTES("slab-max", struct params, slab_max, FRAG_MIB, 16, FRAG_GIB,
		       "largest class that is served from slabs, bytes, at most half a page",
		       .tune = "64K,256K,512K,1M"),
	FRAG_OPT_BYTES("grow", struct params, grow, 32 * FRAG_MIB, 0, 1ull << 50,
		       "smallest segment taken from the device, bytes; 0 = as needed",
		       .tune = "0,32M,128M,512M"),
	FRAG_OPT_END,
};

struct self {
	struct frag_best pages; /* first. A slab is one live piece of it: link[0] is its record */
	const struct params *params;
	unsigned unit_log2;
	struct frag_sc_class *classes; /* the small ones, ascending */
	uint32_t classes_count;
	/* of all slabs; slots: live or waiting */
	size_t slabs_count, slots_count;
	uint64_t live_bytes, waiting_bytes;
};

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->page / p->unit > FRAG_SC_SLOTS_MAX || p->page < 4 * p->unit)
		return FRAG_USAGE(
			err, "a page holds %" PRIu64 " units; choose page and unit for 4 to 4096",
			p->page / p->unit);
	if (p->slab_max > p->page / 2)
		return FRAG_USAGE(err, "slab-max is above half a page; give at most %" PRIu64,
				  p->page / 2);
	return 0;
}

/* ---- create and destroy ------------------------------------------------------------------ */

static uint64_t units_of(const struct self *s, uint64_t bytes)
{
	return (bytes + s->params->unit - 1) >> s->unit_log2;
}

static int make_classes(struct self *s)
{
	uint32_t i, n = 0;

	while (frag_sc_units(n) << s->unit_log2 <= s->params->slab_max)
		n++;
	s->classes = frag_host_calloc(n, sizeof(s->classes[0]));
	if (!s->classes)
		return FRAG_ENOMEM;
	for (i = 0; i < n; i++)
		frag_sc_class_init(&s->classes[i], frag_sc_units(i) << s->unit_log2,
				   s->params->page, &s->pages.nodes);
	s->classes_count = n;
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_best_create(env, sizeof(*s), NULL, "policy slab", out, err));
	s = *out;
	s->params = params;
	s->unit_log2 = frag_log2(s->params->unit);
	if (!make_classes(s))
		return 0;
	frag_best_op_destroy(s);
	return frag_fail_nomem(err, "policy slab");
}

static bool is_slab(const struct frag_piece *p)
{
	return !frag_piece_is_free(p) && p->link[0];
}

static struct frag_sc_slab *slab_in(const struct frag_piece *p)
{
	return (void *)p->link[0];
}

static void destroy(void *self)
{
	struct self *s = self;
	struct frag_piece *p;
	size_t i;

	for (i = 0; i < s->pages.heap.segs_count; i++)
		for (p = s->pages.heap.segs[i]->first; p; p = p->next)
			if (is_slab(p))
				frag_host_free(slab_in(p));
	frag_host_free(s->classes);
	frag_best_op_destroy(s);
}

/* ---- extents -------------------------------------------------------------------- */

/*
 * An extent of `bytes`, whole pages, live, link[0] NULL. May call env->sync, so that `release` runs
 * inside. The sets of the classes hold slabs, each a piece, and share the nodes of the free ones.
 */
static int take_pages(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		      uint8_t *cls, struct frag_err *err)
{
	uint64_t usual = frag_round_up(FRAG_MAX(bytes, s->params->grow), s->params->page);
	struct frag_heap_growth g = { bytes, usual, bytes, stream, frag_best_find };
	struct frag_piece *p;

	FRAG_CHECK_ALLOC(!frag_best_reserve(&s->pages, 0, 2), "free extents", err);
	p = frag_best_find(s, bytes);
	*cls = FRAG_CLASS_HIT;
	if (!p) {
		FRAG_TRY(frag_heap_make_room(&s->pages.heap, &g, &p, cls, err));
		FRAG_CHECK_ALLOC(!frag_best_reserve(&s->pages, 0, 2), "free extents", err);
	}
	frag_best_take(&s->pages, p, bytes, cls);
	p->link[0] = NULL;
	frag_heap_take(&s->pages.heap, p);
	*out = p;
	return 0;
}

static void give_pages(struct self *s, struct frag_piece *p)
{
	frag_best_put(s, frag_heap_give_merged(&s->pages.heap, p, frag_best_cut, s));
}

/* ---- small blocks --------------------------------------------------------------- */

/* Makes a slab with free slots the current one; a new one if there is none. */
static int next_slab(struct self *s, struct frag_sc_class *c, uint32_t stream, uint8_t *cls,
		     struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_sc_slab *l = NULL;
	struct frag_piece *p = NULL;
	int rc;

	if (frag_sc_next(c))
		return 0;
	l = frag_sc_slab_new(c);
	FRAG_CHECK_ALLOC(l, "policy slab", err);
	rc = take_pages(s, s->params->page, stream, &p, cls, err);
	if (rc >= 0 &&
	    frag_sc_next(c)) { /* it waited for frees, and slots of this class came back */
		if (!rc)
			give_pages(s, p);
		return 0;
	}
	if (rc)
		return rc;
	l->piece = p;
	p->link[0] = (void *)l;
	c->current = FRAG_GIVE(l);
	s->slabs_count++;
	return 0;
}

static int alloc_small(struct self *s, struct frag_sc_class *c, uint32_t stream,
		       struct frag_block *out, struct frag_err *err)
{
	struct frag_sc_slab *l = c->current;

	out->cls = FRAG_CLASS_HIT;
	if (FRAG_UNLIKELY(!l || !l->free_count)) {
		FRAG_TRY(next_slab(s, c, stream, &out->cls, err));
		l = c->current;
	}
	s->slots_count++;
	s->live_bytes += c->bytes;
	out->addr = l->piece->addr + frag_sc_take_slot(l) * c->bytes;
	out->granted = c->bytes;
	out->handle = (uintptr_t)l | 1;
	return 0;
}

static void free_small(struct self *s, struct frag_sc_slab *l, frag_addr_t addr)
{
	uint32_t slot = frag_sc_slot_at(l, addr);
	struct frag_piece *p = l->piece;

	if (FRAG_UNLIKELY(frag_sc_unwait_slot(l, slot)))
		s->waiting_bytes -= l->class->bytes;
	else
		s->live_bytes -= l->class->bytes;
	s->slots_count--;
	if (FRAG_LIKELY(!frag_sc_put_slot(l, slot)))
		return;
	frag_host_free(l);
	s->slabs_count--;
	give_pages(s, p);
}

/* ---- hooks ---------------------------------------------------------------------- */

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p;
	uint64_t bytes;
	uint32_t i;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	i = frag_sc_index(units_of(s, FRAG_MAX(req->bytes, 1)));
	if (i < s->classes_count)
		return alloc_small(s, &s->classes[i], req->stream, out, err);
	bytes = frag_round_up(frag_sc_units(i) << s->unit_log2, s->params->page);
	FRAG_TRY(take_pages(s, bytes, req->stream, &p, &out->cls, err));
	frag_piece_grant(p, out);
	return 0;
}

/* The slab of a small block, NULL for a large one. */
static struct frag_sc_slab *slab_of(const struct frag_block *block)
{
	return block->handle & 1 ? (void *)(uintptr_t)(block->handle & ~1ull) : NULL;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_sc_slab *l = slab_of(block);

	(void)err;
	if (l)
		free_small(s, l, block->addr);
	else
		give_pages(s, (void *)(uintptr_t)block->handle);
	return 0;
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct self *s = self;
	struct frag_sc_slab *l = slab_of(block);

	if (!l) {
		frag_heap_wait(&s->pages.heap, (void *)(uintptr_t)block->handle);
	} else if (frag_sc_wait_slot(l, frag_sc_slot_at(l, block->addr))) {
		s->live_bytes -= l->class->bytes;
		s->waiting_bytes += l->class->bytes;
	}
}

static void visit(void *self, const struct frag_visitor *v)
{
	struct self *s = self;
	const struct frag_piece *p;
	size_t i;

	frag_heap_sort(&s->pages.heap);
	for (i = 0; i < s->pages.heap.segs_count; i++) {
		const struct frag_seg *seg = s->pages.heap.segs[i];

		if (v->segment)
			v->segment(v->ctx, seg->addr, seg->bytes, seg->stream);
		for (p = seg->first; v->block && p; p = p->next) {
			if (is_slab(p))
				frag_sc_visit(slab_in(p), v);
			else
				v->block(v->ctx, p->addr, p->bytes, (enum frag_block_state)p->state,
					 frag_seg_is_idle(seg) ? p->bytes : 0);
		}
	}
}

/* The heap sees slabs as live pieces; what is unused in them is free, but not releasable. */
static void usage(void *self, struct frag_usage *out)
{
	struct self *s = self;
	uint64_t slab_bytes = s->slabs_count * s->params->page;
	uint64_t unused = slab_bytes - s->live_bytes - s->waiting_bytes;

	frag_best_op_usage(s, out);
	out->allocated_bytes += s->live_bytes - slab_bytes;
	out->waiting_bytes += s->waiting_bytes;
	out->free_bytes += unused;
	out->non_releasable_bytes += unused;
	out->blocks_count += s->slots_count - s->slabs_count;
}

/* ---- check ---------------------------------------------------------------------- */

/* All slabs are sound, and the sets have nothing else. */
static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	size_t in_sets = 0, count = 0;

	for (size_t i = 0; i < s->pages.heap.segs_count; i++)
		for (const struct frag_piece *p = s->pages.heap.segs[i]->first; p; p = p->next)
			if (is_slab(p) && !frag_sc_is_sound(slab_in(p), &in_sets))
				return frag_fail(err, FRAG_ECHECK, "slab at 0x%llx is broken",
						 (unsigned long long)p->addr);
	for (size_t i = 0; i < s->classes_count; i++)
		count += frag_bset_count(&s->classes[i].partial);
	if (in_sets != count)
		return frag_fail(err, FRAG_ECHECK,
				 "the set of slabs has entries that are not slabs");
	return frag_best_op_check(s, err);
}

const struct frag_policy_ops frag_policy_slab = {
	.name = "slab",
	.summary = "jemalloc size classes: slabs of one page, large blocks in whole pages",
	.source = "jemalloc/jemalloc include/jemalloc/internal/sc.h, src/arena.c (5.3)",
	.trims = "wholly free pages",
	.checked = "jemalloc 5.3.0, its classes, the library",
	.needs = FRAG_CAN_MALLOC,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	FRAG_POLICY_HOOKS,
	.free_requested = free_requested,
	.trim = frag_heap_op_trim,
	FRAG_POLICY_LOOKS,
};
