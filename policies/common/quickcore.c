/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of quickcore.h; the policy around a pool is at the end. */
#include "quickcore.h"

int frag_quick_create(const struct frag_policy_env *env, const char *upstream,
		      const struct frag_quick_params *p, bool by_address,
		      const struct frag_upstream_parts *parts, void **self, struct frag_err *err)
{
	struct frag_quick *q;

	FRAG_TRY(frag_upstream_create(env, upstream, parts, self, err));
	q = *self;
	q->p = *p;
	q->by_address = by_address;
	frag_bset_init(&q->free);
	frag_bset_init(&q->whole);
	return 0;
}

void frag_quick_release(void *self)
{
	struct frag_quick *q = self;

	frag_bset_release(&q->free);
	frag_bset_release(&q->whole);
}

/* ---- free pieces ---------------------------------------------------------------------- */

/* Room for two pieces more; afterwards no insert fails. */
static int room(struct frag_quick *q, struct frag_err *err)
{
	size_t n = frag_slab_live(&q->up.pieces) + 2;

	if (frag_slab_reserve(&q->up.pieces, 2) || frag_bset_reserve(&q->free, n) ||
	    frag_bset_reserve(&q->whole, n))
		return frag_fail_nomem(err, "quickpool: pieces");
	return 0;
}

/* In `whole`. */
static uint64_t whole_key(const struct frag_quick *q, const struct frag_piece *p)
{
	return q->by_address ? 0 : p->bytes;
}

static void insert(struct frag_quick *q, struct frag_piece *p)
{
	p->state = FRAG_STATE_FREE;
	p->stamp = q->by_address ? p->addr : q->stamp++;
	frag_bset_insert(&q->free, p->bytes, p->stamp, p);
	if (frag_piece_is_whole(p)) {
		frag_bset_insert(&q->whole, whole_key(q, p), p->stamp, p);
		q->releasable_bytes += p->bytes;
	}
}

static void erase(struct frag_quick *q, struct frag_piece *p)
{
	frag_bset_erase(&q->free, p->bytes, p->stamp);
	if (frag_piece_is_whole(p)) {
		frag_bset_erase(&q->whole, whole_key(q, p), p->stamp);
		q->releasable_bytes -= p->bytes;
	}
}

static int give_back(struct frag_quick *q, struct frag_err *err)
{
	struct frag_bset_node *at;
	int rc = 0;

	while (!rc && (at = frag_bset_first(&q->whole))) {
		struct frag_piece *p = at->value;
		uint64_t bytes = p->bytes;
		bool gone;

		rc = frag_upstream_give(&q->up, p->chunk, &gone, err);
		if (!gone)
			return rc;
		erase(q, p);
		frag_slab_free(&q->up.pieces, p);
		q->actual_bytes -= bytes;
	}
	return rc;
}

/* ---- allocation ------------------------------------------------------------------------ */

static uint64_t rounded(const struct frag_quick *q, uint64_t bytes)
{
	return (FRAG_MAX(bytes, 1u) + q->p.alignment - 1) & ~(q->p.alignment - 1);
}

static int take(struct frag_quick *q, uint64_t bytes, uint32_t stream, struct frag_chunk **out,
		struct frag_err *err)
{
	int rc;

	q->growing = true;
	rc = frag_upstream_take_aligned(&q->up, bytes, q->p.alignment, stream, out, err);
	q->growing = false;
	return rc;
}

/* A new chunk; *cls says whether others had to go first. */
static int grow(struct frag_quick *q, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		enum frag_class *cls, struct frag_err *err)
{
	uint64_t size = FRAG_MAX(bytes, q->actual_bytes ? q->p.next : q->p.first);
	struct frag_chunk *c;
	int rc = take(q, size, stream, &c, err);

	*cls = FRAG_CLASS_GROW;
	if (rc == FRAG_OOM) {
		FRAG_TRY(give_back(q, err));
		rc = take(q, size, stream, &c, err);
		*cls = FRAG_CLASS_RELEASE;
	}
	if (rc)
		return rc;
	c->owner = q;
	q->actual_bytes += size;
	*out = frag_chunk_piece(&q->up, c);
	return 0;
}

static int core_alloc(struct frag_quick *q, uint64_t bytes, uint32_t stream,
		      struct frag_piece **out, enum frag_class *cls, struct frag_err *err)
{
	struct frag_bset_node *at;
	struct frag_piece *p;

	FRAG_TRY(room(q, err));
	at = frag_bset_lower(&q->free, bytes, 0);
	*cls = FRAG_CLASS_HIT;
	if (FRAG_LIKELY(at != NULL)) {
		p = at->value;
		erase(q, p);
	} else {
		FRAG_TRY(grow(q, bytes, stream, &p, cls, err));
	}
	p->state = FRAG_STATE_LIVE;
	p->stream = stream;
	if (p->bytes != bytes) {
		insert(q, frag_piece_split(&q->up.pieces, p, bytes));
		if (*cls == FRAG_CLASS_HIT)
			*cls = FRAG_CLASS_SPLIT;
	}
	q->up.live_bytes += bytes;
	q->aligned_hwm = FRAG_MAX(q->aligned_hwm, q->up.live_bytes + q->up.waiting_bytes);
	*out = p;
	return 0;
}

int frag_quick_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		     struct frag_err *err)
{
	struct frag_quick *q = self;
	enum frag_class cls;
	struct frag_piece *p;
	int rc = FRAG_OOM;

	if (FRAG_LIKELY(req->bytes <= FRAG_UPSTREAM_MAX))
		rc = core_alloc(q, rounded(q, req->bytes), req->stream, &p, &cls, err);
	if (FRAG_UNLIKELY(rc)) {
		q->size_lost |= q->by_address && rc == FRAG_OOM;
		return rc;
	}
	p->stream = req->stream;
	frag_piece_grant(p, out);
	out->cls = cls;
	return 0;
}

/* ---- heuristics ---------------------------------------------------------------------------- */

const char *const frag_coalesce_words[] = { "percent", "percent-hwm", "blocks", "blocks-hwm",
					    NULL };

/* The source reckons the threshold in single precision. */
static bool percent_reached(const struct frag_quick *q)
{
	uint64_t percent = q->p.coalesce.percent;

	if (!percent)
		return false;
	if (percent == 100)
		return q->actual_bytes == q->releasable_bytes && !q->size_lost;
	return q->releasable_bytes >= (uint64_t)((float)percent / 100.0f * (float)q->actual_bytes);
}

/* 0: do nothing; else the size to coalesce to. */
static uint64_t coalesce_size(const struct frag_quick *q)
{
	const struct frag_coalesce *c = &q->p.coalesce;
	bool by_percent = c->rule <= FRAG_COALESCE_PERCENT_HWM;
	bool hwm = c->rule == FRAG_COALESCE_PERCENT_HWM || c->rule == FRAG_COALESCE_BLOCKS_HWM;

	if (by_percent ? !percent_reached(q) : frag_bset_count(&q->whole) < c->blocks)
		return 0;
	return hwm ? q->aligned_hwm : q->actual_bytes;
}

/* ---- freeing --------------------------------------------------------------------------- */

static void core_free(struct frag_quick *q, struct frag_piece *p)
{
	*(p->state == FRAG_STATE_LIVE ? &q->up.live_bytes : &q->up.waiting_bytes) -= p->bytes;
	if (p->prev && p->prev->state == FRAG_STATE_FREE) {
		p = p->prev;
		erase(q, p);
		frag_piece_join(&q->up.pieces, p);
	}
	if (p->next && p->next->state == FRAG_STATE_FREE) {
		erase(q, p->next);
		frag_piece_join(&q->up.pieces, p);
	}
	insert(q, p);
}

/* Would the only releasable chunk go, and one like it come? The source does that without end. */
static bool rebuilds(const struct frag_quick *q, uint64_t size)
{
	uint64_t whole = q->releasable_bytes, kept = q->actual_bytes - whole, bytes;
	struct frag_bset_node *at;

	if (frag_bset_count(&q->whole) != 1 || size <= kept)
		return false;
	bytes = rounded(q, size - kept);
	at = frag_bset_lower(&q->free, bytes, 0);
	while (at && frag_piece_is_whole(at->value))
		at = frag_bset_next(&q->free, at);
	return !at && FRAG_MAX(bytes, kept ? q->p.next : q->p.first) == whole;
}

static int coalesce(struct frag_quick *q, uint64_t size, struct frag_err *err)
{
	enum frag_class cls;
	struct frag_piece *p;
	int rc;

	if (q->by_address ? frag_bset_count(&q->whole) <= 1
			  : !frag_bset_count(&q->whole) || frag_bset_count(&q->free) <= 1 ||
				    rebuilds(q, size))
		return 0;
	FRAG_TRY(give_back(q, err));
	if (q->actual_bytes >= size)
		return 0;
	rc = core_alloc(q, rounded(q, size - q->actual_bytes), 0, &p, &cls, err);
	if (!rc)
		core_free(q, p);
	return rc == FRAG_OOM ? 0 : rc; /* refused: the pool only stays smaller */
}

int frag_quick_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct frag_quick *q = self;
	uint64_t size;

	FRAG_ASSERT(frag_piece_of(block)->state != FRAG_STATE_FREE);
	core_free(q, frag_piece_of(block));
	/* an upstream that synchronises frees blocks of ours: not the moment to call it again */
	if (q->growing)
		return 0;
	size = coalesce_size(q);
	return size ? coalesce(q, size, err) : 0;
}

/* ---- looking at it ----------------------------------------------------------------------- */

void frag_quick_inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	frag_chunk_visit(c, v, ((const struct frag_quick *)self)->gives_back);
}

void frag_quick_usage(void *self, struct frag_usage *out)
{
	const struct frag_quick *q = self;
	uint64_t free_bytes = q->actual_bytes - q->up.live_bytes - q->up.waiting_bytes;
	uint64_t releasable = q->gives_back ? q->releasable_bytes : 0;

	out->allocated_bytes += q->up.live_bytes;
	out->waiting_bytes += q->up.waiting_bytes;
	out->free_bytes += free_bytes;
	out->releasable_bytes += releasable;
	out->non_releasable_bytes += free_bytes - releasable;
	out->blocks_count += frag_slab_live(&q->up.pieces);
	out->largest_free_bytes = FRAG_MAX(out->largest_free_bytes, frag_bset_largest(&q->free));
}

static bool indexed(void *self, const struct frag_piece *p)
{
	const struct frag_quick *q = self;

	return !frag_piece_free_next(p) && frag_bset_has(&q->free, p->bytes, p->stamp, p) &&
	       frag_bset_has(&q->whole, whole_key(q, p), p->stamp, p) == frag_piece_is_whole(p);
}

int frag_quick_check(void *self, struct frag_err *err)
{
	struct frag_quick *q = self;

	return frag_chunks_check(&q->up, q, frag_bset_count(&q->free), indexed, q, err);
}

/* ---- a policy around one ------------------------------------------------------------------- */

int frag_quick_op_trim(void *self, uint16_t pool, struct frag_err *err)
{
	/* it knows no private pools: an empty_cache of one is of all */
	FRAG_TRY(give_back(self, err));
	return frag_adaptor_trim(self, pool, err);
}

int frag_quick_op_create(const struct frag_policy_env *env, const void *params, bool by_address,
			 void **self, struct frag_err *err)
{
	static const struct frag_upstream_parts parts = {
		sizeof(struct frag_quick), frag_quick_release, frag_quick_inside,
		frag_quick_usage,	   frag_quick_check,
	};
	const struct frag_quick_policy_params *p = params;

	FRAG_TRY(frag_quick_create(env, p->upstream, &p->pool, by_address, &parts, self, err));
	((struct frag_quick *)*self)->gives_back = true;
	return 0;
}
