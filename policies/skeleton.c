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
 * in the list once; no two neighbours are free. The other hooks are in frag/policy.h.
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

/* Optional; once per text on the command line: rules that the table cannot express. FRAG_EUSAGE. */
static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->segment_bytes % UNIT)
		return FRAG_USAGE(err, "segment is %" PRIu64 " bytes; give a multiple of 512",
				  p->segment_bytes);
	return 0;
}

/* below, with its hooks */
static const struct frag_heap_index list;

/* Compulsory. Copy what you keep of env. 0 and *out, or an error with nothing left behind. */
static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_heap_create(env, sizeof(*s), &list, "policy skeleton", out, err));
	s = *out;
	s->params = params;
	return 0;
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
 * Compulsory. 0 and *out (all but stream and requested), FRAG_OOM (a result: leave err alone), or
 * an error. Either way the state is sound afterwards and the call may be repeated.
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

/* Compulsory; once per granted block, when its memory may be used again. An error if memory was
 * given back to the device and that failed; the block is free all the same. */
static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block);

	(void)err;
	list_put(s, frag_heap_give_merged(&s->heap, p, list_cut, s));
	return 0;
}

/* ---- check: every free piece is in the list once, and nothing else is ---- */

static bool merged(void *ctx, const struct frag_piece *p)
{
	(void)ctx;
	return !frag_piece_free_next(p);
}

/* Optional, but write it: the tests call it after every event. FRAG_ECHECK and what is broken. */
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

const struct frag_policy_ops frag_policy_skeleton = {
	.abi = FRAG_POLICY_ABI,
	.name = "skeleton",
	.summary = "first fit over segments, split exactly",
	.source = "cufrag",
	.trims = "wholly free segments",
	.flags = FRAG_POLICY_HIDDEN | FRAG_POLICY_LINEAR,
	FRAG_POLICY_PARAMS(struct params), /* the table, and its size */
	.validate = validate,
	.create = create,
	.alloc = alloc,
	.free = release,
	/* the hooks of the heap: free_requested, visit, and what it needs of a device */
	FRAG_HEAP_OPS,
	.destroy = frag_heap_op_destroy, /* gives everything back, also while blocks are live */
	.trim = frag_heap_op_trim,	 /* optional: empty_cache */
	.usage = frag_heap_op_usage,	 /* optional: counters, very often asked for */
	.check = check,
};
