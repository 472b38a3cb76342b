/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skeleton: first fit over segments taken from the device, split exactly, merged on free, idle
 * segments given back on trim. A complete policy to copy; docs/add-a-policy.md has the commands.
 *
 * Say here, in your own words, what the rules are and which file and version of which
 * project they come from. For this one:
 *  - a request is rounded up to 512 B;
 *  - it takes the first free piece that is big enough, in the order in which pieces
 *    became free, the latest first; what is left over stays free if it is 512 B or more;
 *  - when there is none, a segment is taken from the device: the rounded request,
 *    but at least the option `segment`;
 *  - a freed piece merges with its free neighbours in the segment;
 *  - when the device refuses, idle segments are given back and it is asked once more.
 *
 * Structure: common/segheap keeps segments and pieces and counts; the list of free pieces
 * is ours (the links of the pieces, `head` is the latest). Invariants: every free piece is
 * in the list once; no two neighbours are free.
 */
#include "segheap.h"

#include <inttypes.h>

#define UNIT 512u

/* Options are data: the table below fills this struct, and --help, range errors,
 * "did you mean" and the echo in reports all come from it. */
struct params {
	uint64_t segment_bytes;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("segment", struct params, segment_bytes, 32 * FRAG_MIB, UNIT, FRAG_GIB * 64,
		       "smallest segment taken from the device, bytes"),
	FRAG_OPT_END,
};

/* All state is in here: no globals and no static variables, instances run in parallel. */
struct self {
	struct frag_heap heap;	     /* first: its hooks are used as they are */
	const struct params *params; /* borrowed until destroy */
	struct frag_piece *head;
};

/*
 * Optional. When: after the options were parsed, once per text on the command line.
 * Returns: 0, or FRAG_EUSAGE and a message when options contradict each other or need a
 * rule the table cannot express.
 */
static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->segment_bytes % UNIT)
		return frag_fail(err, FRAG_EUSAGE,
				 "segment is %" PRIu64 " bytes; give a multiple of 512",
				 p->segment_bytes);
	return 0;
}

/* below, with its hooks */
static const struct frag_heap_index list;

/*
 * Compulsory. When: once per run, before anything else. env has the device, the limit
 * and the hooks; copy what you keep of it. Returns: 0 and *out, or an error with
 * nothing left behind.
 */
static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_heap_create(env, sizeof(*s), &list, "policy skeleton", out, err));
	s = *out;
	s->params = params;
	return 0;
}

/*
 * Compulsory. When: at the end, also after an error, also while blocks are live. Everything
 * taken from the device goes back; the engine compares it with its start.
 */
static void destroy(void *self)
{
	struct self *s = self;

	frag_heap_release(&s->heap);
	frag_host_free(s);
}

/* ---- the list of free pieces: link[0] towards the head, link[1] away from it ---- */

static void list_put(void *self, struct frag_piece *p)
{
	struct self *s = self;

	p->link[0] = NULL;
	p->link[1] = s->head;
	if (s->head)
		s->head->link[0] = p;
	s->head = p;
}

static void list_cut(void *self, struct frag_piece *p)
{
	struct self *s = self;

	if (p->link[0])
		p->link[0]->link[1] = p->link[1];
	else
		s->head = p->link[1];
	if (p->link[1])
		p->link[1]->link[0] = p->link[0];
}

/* For frag_heap_drop_idle, which gives idle segments back: on trim, and in grow. */
static const struct frag_heap_index list = { list_cut, list_put };

static struct frag_piece *find(const struct self *s, uint64_t bytes)
{
	struct frag_piece *p = s->head;

	while (p && p->bytes < bytes)
		p = p->link[1];
	return p;
}

/* A new segment as a free piece in the list. */
static int grow(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		struct frag_err *err)
{
	uint64_t want = FRAG_MAX(bytes, s->params->segment_bytes);
	int rc = frag_heap_grow(&s->heap, want, stream, out, err);

	if (rc == FRAG_OOM) {
		FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
		rc = frag_heap_grow(&s->heap, want, stream, out, err);
	}
	if (!rc)
		list_put(s, *out);
	return rc;
}

/*
 * Compulsory. When: for every request of the program; bytes > 0. Returns: 0 and *out,
 * or FRAG_OOM (a result: leave err alone), or an error. Either way the state is
 * sound afterwards and the call may be repeated.
 *  out->addr     where; blocks that are live together never overlap
 *  out->granted  bytes, at least the request
 *  out->handle   yours: comes back in free
 *  out->cls      how it was served; the latency tables are split by it
 */
static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = frag_round_up(req->bytes, UNIT);
	struct frag_piece *p = find(s, bytes);
	enum frag_class cls = FRAG_CLASS_HIT;

	if (req->bytes > FRAG_HEAP_REQUEST_MAX)
		return FRAG_OOM;
	if (!p) {
		FRAG_TRY(grow(s, bytes, req->stream, &p, err));
		cls = FRAG_CLASS_GROW;
	}
	/* host memory first: after this nothing can fail, so there is nothing to undo */
	FRAG_CHECK_ALLOC(!frag_heap_reserve(&s->heap, 1), "policy skeleton", err);
	list_cut(s, p);
	if (p->bytes > bytes) {
		list_put(s, frag_heap_split(&s->heap, p, bytes));
		if (cls == FRAG_CLASS_HIT)
			cls = FRAG_CLASS_SPLIT;
	}
	frag_heap_grant(&s->heap, p, out);
	out->cls = (uint8_t)cls;
	return 0;
}

/*
 * Compulsory. When: once per granted block, when its memory may be used again. Returns: 0,
 * or an error if memory was given back to the device and that failed; the block is free all
 * the same.
 */
static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block);

	(void)err;
	list_put(s, frag_heap_give_merged(&s->heap, p, list_cut, s));
	return 0;
}

/*
 * Optional. When: the program has let go of a block that another stream still uses; free
 * follows later. For policies with their own cross-stream rule; here it only tells
 * the walk that the bytes are waiting.
 */
static void free_requested(void *self, const struct frag_block *block)
{
	struct self *s = self;

	frag_heap_wait(&s->heap, frag_piece_of(block));
}

/*
 * Optional. When: the program called empty_cache. Returns: 0, or the device's error.
 * pool: 0 the default pools, else that private pool; a policy that knows no pools trims all.
 */
static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	(void)pool;
	return frag_heap_drop_idle(self, err);
}

/*
 * Optional. When: the engine has synchronised the device. A policy that defers frees or returns
 * memory at synchronisation does it here. This one has nothing to do.
 */
static int synced(void *self, struct frag_err *err)
{
	(void)self, (void)err;
	return 0;
}

/* Optional. When: a step of the program begins or ends. For policies that learn from steps. */
static void mark(void *self, bool begins)
{
	(void)self, (void)begins;
}

/*
 * Compulsory. When: at any time between calls, for metrics and charts. Segments in address
 * order, after each its blocks in address order, without gaps.
 */
static void visit(void *self, const struct frag_visitor *v)
{
	struct self *s = self;

	frag_heap_op_visit(&s->heap, v);
}

/*
 * Optional. When: very often. Must be O(1), from counters; leave the hook out if that is not
 * possible, then the engine walks. largest_free_bytes may be 0 = not known.
 */
static void usage(void *self, struct frag_usage *out)
{
	struct self *s = self;

	frag_heap_usage(&s->heap, 0, out);
}

/* ---- check: every free piece is in the list once, and nothing else is ---- */

static bool merged(void *ctx, const struct frag_piece *p)
{
	(void)ctx;
	return !frag_piece_free_next(p);
}

/*
 * Optional, but write it: the tests call it after every event. Returns: 0, or FRAG_ECHECK
 * and what is broken.
 */
static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	const struct frag_piece *p, *before = NULL;
	size_t n = 0;

	for (p = s->head; p; before = p, p = p->link[1], n++)
		if (!frag_piece_is_free(p) || p->link[0] != before || n > s->heap.free_count)
			return frag_fail(err, FRAG_ECHECK, "list of free pieces broken");
	return frag_heap_check(&s->heap, n, merged, s, err);
}

/*
 * Optional. When: at the end of a run. Statistics under the names that the source uses; they
 * appear in the JSON of the run.
 */
static void counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct self *s = self;

	fn(ctx, "free_pieces", (int64_t)s->heap.free_count);
}

const struct frag_policy_ops frag_policy_skeleton = {
	.abi = FRAG_POLICY_ABI,
	.name = "skeleton",
	.summary = "first fit over segments, split exactly",
	.source = "cufrag",
	.trims = "wholly free segments",
	.flags = FRAG_POLICY_HIDDEN | FRAG_POLICY_LINEAR,
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
	.synced = synced,
	.mark = mark,
	.visit = visit,
	.usage = usage,
	.check = check,
	.counters = counters,
};
