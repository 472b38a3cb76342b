/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gmlake: GMLake, stitching of free pieces by a second mapping.
 *
 * Rules of variant=code (intelligent-machine-learning/glake, GMLake/src/CUDACachingAllocator.cpp
 * and GMLake/include/cuda_vmm_allocator.h, 2024, a fork of PyTorch 1.13):
 *  - Up to 1 MiB after rounding to 512 B: PyTorch's small pool. Segments of 2 MiB by cudaMalloc,
 *    best fit in the stream, any rest split off, merged on free.
 *  - Larger: rounded to 2 MiB. Segments of 20 MiB for less than 10 MiB, else of the size, of
 *    pages of 2 MiB that are created, mapped and made accessible each on its own.
 *  - Order for a large request: (1) best fit among the free pieces of the stream, the rest split
 *    off; (2) best fit among the free stitched blocks of the stream if it is at most reuse-limit
 *    times the request, of which only the first pages come into use; (3) stitch, if defrag-level
 *    is 0; (4) a new segment; (5) stitch, if it is at most 1; (6) wait for pending frees, give
 *    all idle segments back, a new segment; (7) stitch, if it is at most 2; (8) out of memory.
 *  - Stitch: only for at least frag-limit (512 MiB). Free pieces of the stream from the largest
 *    down until they suffice, the last one split; a new range of addresses, each page mapped and
 *    made accessible. Address space refused: two collections of old stitched blocks and two more
 *    tries.
 *  - A stitched block that shares a page with anything in use is broken and not found. Freed, it
 *    is kept; its pieces are freed and merge. It is unmapped when all stitched blocks together
 *    exceed auto-gc of address space (then all inactive ones go whose event is done, broken ones
 *    first, oldest first), when a segment under it is given back, or on trim.
 *  - Each free records an event.
 *  - realloc: the new segment is only as large as what is missing, and stitched with the rest.
 * Differs here: a segment stays while an active stitched block has pages in it that it does not
 * use (the source gives it back, though the mapping keeps its memory); realloc only applies from
 * frag-limit on (the source fails below it). Not modelled: max_split_size and
 * garbage_collection_threshold, both off by default.
 *
 * Rules of variant=paper (ASPLOS 2024, arXiv 2401.08156): large is 2 MiB and
 * more, segments are of just the size. S1: a free piece, else a free stitched block, of exactly
 * the size. S2: a larger free piece: below frag-limit (128 MiB) it is granted whole, else it is
 * split, and a stitched block over both parts keeps its size available. S3: pieces of frag-limit
 * and more that suffice are stitched. S4: a new segment for what is missing, stitched with them.
 * S5: out of memory, here after giving idle segments back once, as the PyTorch around it does.
 * Above auto-gc the least recently used inactive stitched blocks go.
 * Freed parts stay apart: nothing merges.
 *
 * Time: a change of a segment passes by every stitched block over it, so it is linear in those.
 * Structure and invariants: gmlake/gl.h.
 */
#include "gmlake/gl.h"

#define REUSE_LIMIT 10.0
#define SMALL_UNIT 512u
#define SMALL_SEGMENT (2 * FRAG_MIB)

static const char *const variant_words[] = { "code", "paper", NULL };

static const struct frag_opt opts[] = {
	FRAG_OPT_ENUM("variant", struct gl_params, variant, GL_CODE, variant_words,
		      "rules of the published code, or of the paper"),
	FRAG_OPT_BOOL("stitch", struct gl_params, stitch, 1,
		      "allow stitching (vmmDefragment in the code)"),
	FRAG_OPT_BYTES("frag-limit", struct gl_params, frag_limit, 0, 0, 1ull << 50,
		       "code: smallest request to stitch for; paper: smallest piece to stitch; "
		       "bytes; 0 = 512M (paper: 128M)",
		       .tune = "64M,128M,256M,512M,1G"),
	FRAG_OPT_DOUBLE("reuse-limit", struct gl_params, reuse_limit, REUSE_LIMIT, 1, 1e6,
			"code: largest stitched block to be reused, as a multiple of the request"),
	FRAG_OPT_UINT("defrag-level", struct gl_params, defrag_level, 0, 0, 3,
		      "code: stitch before a new segment (0), after it failed (1), after giving "
		      "back (2), never (3)"),
	FRAG_OPT_BYTES("auto-gc", struct gl_params, auto_gc, 1000 * FRAG_GIB, 0, UINT64_MAX,
		       "drop old stitched blocks above this much address space, bytes"),
	FRAG_OPT_BOOL("realloc", struct gl_params, realloc, 0,
		      "code: new segments only for what is missing, stitched with the rest"),
	FRAG_OPT_UINT("lag-us", struct gl_params, lag_us, 10000, 0, 1000000000,
		      "simulated card: queued work is done after this much recorded time, "
		      "microseconds"),
	FRAG_OPT_END,
};

static int validate(const void *params, struct frag_err *err)
{
	const struct gl_params *p = params;

	if (p->variant == GL_PAPER &&
	    (p->realloc || p->defrag_level || p->reuse_limit != REUSE_LIMIT))
		return FRAG_USAGE(err, "realloc, defrag-level and reuse-limit are for "
				       "variant=code");
	return 0;
}

static uint32_t stream_of(const void *self, const struct frag_piece *p)
{
	(void)self;
	return p->seg->stream;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	static const struct frag_best_rules small = { .set = stream_of };
	struct gl *g;

	FRAG_TRY_CALLOC(g, 1, "policy gmlake", err);
	g->env = *env;
	g->params = params;
	g->paper = g->params->variant == GL_PAPER;
	g->small_max = g->paper ? 2 * FRAG_MIB - 1 : FRAG_MIB;
	g->frag_limit = g->params->frag_limit;
	if (!g->frag_limit)
		g->frag_limit = g->paper ? 128 * FRAG_MIB : 512 * FRAG_MIB;
	frag_best_init(&g->small, env, &small);
	frag_slab_init(&g->pieces, sizeof(struct gl_piece));
	frag_bset_nodes_init(&g->nodes);
	frag_bset_init(&g->segs);
	*out = g;
	return 0;
}

static void destroy(void *self)
{
	struct gl *g = self;

	gl_drop_stitches(g);
	gl_drop_segs(g);
	frag_best_release(&g->small);
	frag_slab_release(&g->nodes);
	frag_slab_release(&g->pieces);
	FRAG_FREE(g->streams, g);
}

/* Host memory for whatever a request of this stream does first. */
static int reserve(struct gl *g, uint32_t stream)
{
	if (FRAG_UNLIKELY(stream >= g->streams_count)) {
		struct gl_stream *t = frag_host_realloc(g->streams, stream + 1ul, sizeof(*t));

		if (!t)
			return FRAG_ENOMEM;
		g->streams = t;
		while (g->streams_count <= stream) {
			t = &g->streams[g->streams_count++];
			*t = (struct gl_stream){ .large_bytes = 0 };
			frag_bset_init_shared(&t->large, &g->nodes);
			frag_bset_init_shared(&t->stitches, &g->nodes);
		}
	}
	return gl_room(g, 4) ?: frag_best_reserve(&g->small, stream, 2);
}

/* ---- small requests: PyTorch's small pool --------------------------------------------------- */

static int small_grow(struct gl *g, uint32_t stream, struct frag_piece **p, uint8_t *cls,
		      struct frag_err *err)
{
	int rc = frag_best_grow(&g->small, SMALL_SEGMENT, stream, p, err);

	*cls = FRAG_CLASS_GROW;
	if (rc == FRAG_OOM) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(gl_release_all(g, err));
		rc = frag_best_grow(&g->small, SMALL_SEGMENT, stream, p, err);
	}
	return rc;
}

static int small_alloc(struct gl *g, uint64_t bytes, uint32_t stream, struct frag_block *out,
		       struct frag_err *err)
{
	struct frag_piece *p;

	bytes = frag_round_up(FRAG_MAX(bytes, 1), SMALL_UNIT);
	p = frag_best_find_in(&g->small, stream, bytes);
	out->cls = FRAG_CLASS_HIT;
	if (FRAG_UNLIKELY(!p))
		FRAG_TRY(small_grow(g, stream, &p, &out->cls, err));
	frag_best_take(&g->small, p, bytes, &out->cls);
	frag_heap_grant(&g->small.heap, p, out);
	return 0;
}

/* ---- hooks -------------------------------------------------------------------------------- */

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct gl *g = self;

	if (FRAG_UNLIKELY(req->bytes > g->env.device_total_bytes))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!reserve(g, req->stream), "policy gmlake", err);
	if (req->bytes <= g->small_max)
		return small_alloc(g, req->bytes, req->stream, out, err);
	return gl_large_alloc(g, req->stream, req->bytes, out, err);
}

/* The event of a free. If the call failed there is none, and the block is not awaited. */
static int note_event(struct gl *g, uint32_t stream, struct gl_event *event, struct frag_err *err)
{
	*event = (struct gl_event){ .number = ++g->events };
	return g->paper ? 0 : frag_dev_fence_record(g->env.dev, stream, &event->fence, err);
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct gl *g = self;
	void *object = (void *)(uintptr_t)(block->handle & ~(uint64_t)GL_KIND_MASK);
	struct gl_event event;
	struct gl_stitch *s = object;
	struct gl_piece *p = object;
	int rc = note_event(g, block->stream, &event, err);
	bool waited;

	switch (block->handle & GL_KIND_MASK) {
	case GL_KIND_SMALL:
		frag_best_op_free(&g->small, block, NULL);
		return rc;
	case GL_KIND_PIECE:
		waited = p->state == FRAG_STATE_WAITING;
		p->event = event;
		gl_unuse(g, p);
		break;
	default:
		waited = s->state == GL_WAITING;
		s->event = event;
		gl_stitch_free(g, s);
	}
	*(waited ? &g->waiting_bytes : &g->live_bytes) -= block->granted;
	return rc;
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct gl *g = self;
	void *object = (void *)(uintptr_t)(block->handle & ~(uint64_t)GL_KIND_MASK);
	struct gl_stitch *s = object;
	struct gl_piece *p = object;

	switch (block->handle & GL_KIND_MASK) {
	case GL_KIND_SMALL:
		frag_heap_wait(&g->small.heap, object);
		return;
	case GL_KIND_PIECE:
		p->state = FRAG_STATE_WAITING;
		break;
	default:
		s->state = GL_WAITING;
	}
	g->live_bytes -= block->granted;
	g->waiting_bytes += block->granted;
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	(void)pool;
	FRAG_TRY(gl_release_all(self, err));
	return gl_collect(self, 2, 0, err);
}

static void counters(void *self, frag_counter_fn fn, void *ctx)
{
	const struct gl *g = self;

	fn(ctx, "made_stitches", (int64_t)g->made_stitches);
	fn(ctx, "reused_stitches", (int64_t)g->reused_stitches);
	fn(ctx, "stitched_bytes", (int64_t)g->stitched_bytes);
}

const struct frag_policy_ops frag_policy_gmlake = {
	.name = "gmlake",
	.summary = "GMLake: free pieces are stitched into one block by a second mapping",
	.source = "intelligent-machine-learning/glake GMLake/src/CUDACachingAllocator.cpp (2024); "
		  "ASPLOS 2024, arXiv 2401.08156",
	.trims = "wholly free segments, and stitched blocks that are free (empty_cache)",
	.checked = "the published code of 2024, read",
	.flags = FRAG_POLICY_LINEAR | FRAG_POLICY_STREAMS,
	.needs = FRAG_CAN_MALLOC | FRAG_CAN_VMM,
	FRAG_POLICY_PARAMS(struct gl_params),
	.validate = validate,
	FRAG_POLICY_HOOKS,
	.free_requested = free_requested,
	.trim = trim,
	.visit = gl_visit,
	.usage = gl_usage,
	.check = gl_check,
	.counters = counters,
};
