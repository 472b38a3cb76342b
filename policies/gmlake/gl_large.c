/* SPDX-License-Identifier: Apache-2.0 */
/* Large requests of `gmlake`: the order of the steps, by the code and by the paper. */
#include "gl.h"

#define LARGE_SEGMENT (20 * FRAG_MIB)
#define LARGE_SEGMENT_BELOW (10 * FRAG_MIB)

static void grant(struct gl *g, frag_addr_t addr, uint64_t bytes, void *object, unsigned kind,
		  enum frag_class cls, struct frag_block *out)
{
	g->live_bytes += bytes;
	out->addr = addr;
	out->granted = bytes;
	out->handle = (uintptr_t)object | kind;
	out->cls = (uint8_t)cls;
}

/* A free piece, out of its set: its first `bytes` are handed out, or all. */
static void take_piece(struct gl *g, struct gl_piece *p, uint64_t bytes, enum frag_class cls,
		       struct frag_block *out)
{
	if (p->bytes > bytes) {
		gl_free_insert(g, gl_split(g, p, bytes));
		cls = cls == FRAG_CLASS_HIT ? FRAG_CLASS_SPLIT : cls;
	}
	gl_use(g, p, NULL);
	grant(g, p->addr, p->bytes, p, GL_KIND_PIECE, cls, out);
}

static void grant_stitch(struct gl *g, struct gl_stitch *s, enum frag_class cls,
			 struct frag_block *out)
{
	grant(g, s->addr, s->used_pages * GL_PAGE, s, GL_KIND_STITCH, cls, out);
}

/* Address space above the bound goes; not the stitch that was just made. */
static int bound_stitches(struct gl *g, struct frag_err *err)
{
	if (g->stitched_bytes <= g->params->auto_gc)
		return 0;
	return g->paper ? gl_stitch_trim(g, err) : gl_collect(g, 2, 0, err);
}

/* 0 and granted, FRAG_OOM where stitching does not help, or an error. */
static int stitch(struct gl *g, uint32_t stream, uint64_t bytes, struct gl_piece *extra,
		  struct frag_block *out, struct frag_err *err)
{
	struct gl_stitch *s;
	int rc;

	if (!g->params->stitch || (!g->paper && bytes < g->frag_limit))
		return FRAG_OOM;
	FRAG_TRY(gl_stitch_make(g, stream, bytes, g->paper ? g->frag_limit : 0, extra, &s, err));
	if (!s)
		return FRAG_OOM;
	rc = bound_stitches(g, err);
	if (rc) {
		gl_stitch_free(g, s);
		return rc;
	}
	grant_stitch(g, s, FRAG_CLASS_STITCH, out);
	return 0;
}

/* A new segment; where address space is short, old stitches go, three times at most. */
static int new_seg(struct gl *g, uint32_t stream, uint64_t bytes, struct gl_piece **p,
		   struct frag_err *err)
{
	unsigned round;
	bool no_space;
	int rc;

	for (round = 0;; round++) {
		rc = gl_seg_new(g, stream, bytes, p, &no_space, err);
		if (rc != FRAG_OOM || !no_space || !g->stitches_count || round == 3)
			return rc;
		FRAG_TRY(gl_collect(g, round, bytes, err));
	}
}

/* A free stitched block that may serve the request, or NULL. */
static struct gl_stitch *find_stitch(const struct gl *g, uint32_t stream, uint64_t bytes)
{
	struct frag_bset_node *at = frag_bset_lower(&g->streams[stream].stitches, bytes, 0);
	double most = g->paper ? (double)bytes : g->params->reuse_limit * (double)bytes;

	if (!at || (double)at->by.key > most)
		return NULL;
	return at->value;
}

static int reuse_stitch(struct gl *g, struct gl_stitch *s, uint64_t bytes, struct frag_block *out,
			struct frag_err *err)
{
	FRAG_TRY(gl_stitch_take(g, s, (uint32_t)(bytes / GL_PAGE), err));
	g->reused_stitches++;
	grant_stitch(g, s, FRAG_CLASS_HIT, out);
	return 0;
}

static struct gl_piece *find_piece(const struct gl *g, uint32_t stream, uint64_t bytes)
{
	struct frag_bset_node *at = frag_bset_lower(&g->streams[stream].large, bytes, 0);

	return frag_bset_value(at);
}

/* ---- the rules of the code ---------------------------------------------------------------- */

static uint64_t segment_bytes(uint64_t bytes)
{
	return bytes < LARGE_SEGMENT_BELOW ? LARGE_SEGMENT : bytes;
}

static int code_grow(struct gl *g, uint32_t stream, uint64_t bytes, enum frag_class cls,
		     struct frag_block *out, struct frag_err *err)
{
	bool missing_only = g->params->realloc && g->params->stitch && bytes >= g->frag_limit;
	uint64_t have = missing_only ? g->streams[stream].large_bytes : 0, seg;
	struct gl_piece *p;

	if (have >= bytes)
		return FRAG_OOM;
	seg = segment_bytes(bytes - have);
	FRAG_TRY(new_seg(g, stream, seg, &p, err));
	if (seg >= bytes) {
		take_piece(g, p, bytes, cls, out);
		return 0;
	}
	gl_free_insert(g, p);
	return stitch(g, stream, bytes, NULL, out, err);
}

static int code_alloc(struct gl *g, uint32_t stream, uint64_t bytes, struct frag_block *out,
		      struct frag_err *err)
{
	struct gl_piece *p = find_piece(g, stream, bytes);
	uint64_t level = g->params->defrag_level;
	struct gl_stitch *s;
	int rc = FRAG_OOM;

	if (FRAG_LIKELY(p != NULL)) {
		gl_free_erase(g, p);
		take_piece(g, p, bytes, FRAG_CLASS_HIT, out);
		return 0;
	}
	s = find_stitch(g, stream, bytes);
	if (s)
		return reuse_stitch(g, s, bytes, out, err);
	if (level == 0)
		rc = stitch(g, stream, bytes, NULL, out, err);
	if (rc == FRAG_OOM)
		rc = code_grow(g, stream, bytes, FRAG_CLASS_GROW, out, err);
	if (rc == FRAG_OOM && level <= 1)
		rc = stitch(g, stream, bytes, NULL, out, err);
	if (rc != FRAG_OOM)
		return rc;
	FRAG_TRY(gl_release_all(g, err));
	rc = code_grow(g, stream, bytes, FRAG_CLASS_RELEASE, out, err);
	if (rc == FRAG_OOM && level <= 2)
		rc = stitch(g, stream, bytes, NULL, out, err);
	return rc;
}

/* ---- the rules of the paper --------------------------------------------------------------- */

/* S1 and S2; FRAG_OOM if neither applies. */
static int paper_find(struct gl *g, uint32_t stream, uint64_t bytes, struct frag_block *out,
		      struct frag_err *err)
{
	struct gl_piece *p = find_piece(g, stream, bytes);
	struct gl_stitch *s;

	if (!p || p->bytes != bytes) {
		s = find_stitch(g, stream, bytes);
		if (s)
			return reuse_stitch(g, s, bytes, out, err);
	}
	if (!p)
		return FRAG_OOM;
	if (p->bytes > bytes && p->bytes < g->frag_limit)
		bytes = p->bytes;
	if (p->bytes > bytes && g->params->stitch) {
		FRAG_TRY(gl_stitch_keep(g, p, err));
		FRAG_TRY(bound_stitches(g, err));
		FRAG_CHECK_ALLOC(!gl_room(g, 2), "policy gmlake", err);
	}
	gl_free_erase(g, p);
	take_piece(g, p, bytes, FRAG_CLASS_HIT, out);
	return 0;
}

/* S3 and S4. */
static int paper_grow(struct gl *g, uint32_t stream, uint64_t bytes, enum frag_class cls,
		      struct frag_block *out, struct frag_err *err)
{
	uint64_t have = g->params->stitch ? gl_stitch_sum(g, stream, g->frag_limit) : 0;
	struct gl_piece *p = NULL;
	int rc = FRAG_OOM;

	if (have >= bytes)
		rc = stitch(g, stream, bytes, NULL, out, err);
	if (rc != FRAG_OOM)
		return rc;
	if (have >= bytes)
		have = 0; /* no address space to stitch them */
	FRAG_TRY(new_seg(g, stream, bytes - have, &p, err));
	if (!have) {
		take_piece(g, p, bytes, cls, out);
		return 0;
	}
	gl_free_insert(g, p);
	return stitch(g, stream, bytes, p, out, err);
}

static int paper_alloc(struct gl *g, uint32_t stream, uint64_t bytes, struct frag_block *out,
		       struct frag_err *err)
{
	int rc = paper_find(g, stream, bytes, out, err);

	if (rc == FRAG_OOM)
		rc = paper_grow(g, stream, bytes, FRAG_CLASS_GROW, out, err);
	if (rc != FRAG_OOM)
		return rc;
	FRAG_TRY(gl_release_all(g, err));
	return paper_grow(g, stream, bytes, FRAG_CLASS_RELEASE, out, err);
}

int gl_large_alloc(struct gl *g, uint32_t stream, uint64_t bytes, struct frag_block *out,
		   struct frag_err *err)
{
	bytes = frag_round_up(bytes, GL_PAGE);
	return g->paper ? paper_alloc(g, stream, bytes, out, err)
			: code_alloc(g, stream, bytes, out, err);
}
