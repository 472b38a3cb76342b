/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bookkeeping that most policies share: segments taken from the device by
 * cudaMalloc, each cut into pieces (pieces.h).
 *
 * Which free piece serves a request, when to split, merge and give back is
 * the policy's; it keeps its own index of free pieces (a bset, lists). The heap
 * keeps the chain, the counters and the walk.
 *
 * A segment without live or waiting pieces is idle.
 *
 * Invariants: those of its pieces; seg->live_count counts its pieces that are not free; the
 * counters are the sums over all pieces.
 *
 * Ownership: the heap owns segments, pieces and its copy of the environment.
 * Functions that need host memory ask for it first: when they fail, nothing has changed.
 */
#ifndef FRAG_COMMON_SEGHEAP_H
#define FRAG_COMMON_SEGHEAP_H

#include "environment.h"
#include "pieces.h"

struct frag_seg {
	frag_addr_t addr;
	uint64_t bytes;
	struct frag_piece *first;
	uint64_t tag;		/* the policy's */
	size_t index;		/* in heap->segs */
	struct frag_seg *chain; /* scratch of frag_heap_drop_idle */
	uint32_t live_count;	/* pieces that are not free */
	uint32_t stream;	/* that it was taken for */
	bool kept;		/* never given back by a trim: not counted as idle */
};

struct frag_heap {
	struct frag_policy_env env;
	struct frag_slab pieces, seg_slab;
	struct frag_seg **segs; /* all; in address order unless unsorted */
	size_t segs_count, segs_cap;
	bool unsorted;
	bool gives_back; /* a trim gives idle segments back; true at first */
	const struct frag_heap_index *index;
	void *index_ctx;
	struct frag_piece *left; /* of frag_heap_retire: the device failed to take them; link[0] */
	size_t pieces_count, free_count;
	uint64_t live_bytes, waiting_bytes, free_bytes;
	uint64_t idle_bytes; /* of these free: in idle segments */
	size_t idle_count;
};

/* How the heap tells a policy's index of free pieces. */
struct frag_heap_index {
	void (*cut)(void *ctx, struct frag_piece *p); /* take it out */
	void (*put)(void *ctx, struct frag_piece *p); /* put it in */
};

/* index (and its ctx): for frag_heap_drop_idle; NULL: see frag_heap_retire. */
void frag_heap_init(struct frag_heap *h, const struct frag_policy_env *env,
		    const struct frag_heap_index *index, void *ctx);
/* Zeroed state of a policy, of `bytes`: begins with its heap, is the ctx; `what`: for messages. */
int frag_heap_create(const struct frag_policy_env *env, size_t bytes,
		     const struct frag_heap_index *index, const char *what, void **out,
		     struct frag_err *err);
/* Gives every segment back, also those with live pieces, and all host memory. */
void frag_heap_release(struct frag_heap *h);

/* Larger requests are out of memory before they are rounded: the sums cannot overflow. */
#define FRAG_HEAP_REQUEST_MAX (1ull << 56)

/* Would `bytes` more be above the per-process limit (or beyond reason)? */
static inline bool frag_heap_over_limit(const struct frag_heap *h, uint64_t bytes)
{
	return bytes > 2 * FRAG_HEAP_REQUEST_MAX || frag_env_over_limit(&h->env, bytes);
}

/*
 * A segment of `bytes` from the device, as one free piece that is in no index
 * yet. 0, FRAG_OOM (refused by the device or over the limit), or an error.
 */
int frag_heap_grow(struct frag_heap *h, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		   struct frag_err *err);
/*
 * Gives an idle segment back. It must be one piece, out of the index. When the
 * device fails, the segment stays, idle, and the error is returned: put the piece
 * back into the index.
 */
int frag_heap_drop(struct frag_heap *h, struct frag_seg *seg, struct frag_err *err);

/*
 * For policies without an index (NULL) whose segments are one piece each: gives back the segment of
 * a free one. When the device fails, the error is returned, and frag_heap_drop_idle tries again.
 */
int frag_heap_retire(struct frag_heap *h, struct frag_piece *p, struct frag_err *err);

/*
 * Gives every idle segment back that is not kept, in address order; without an index only those
 * left by frag_heap_retire. A failure of the device stops it and is returned; what was not given
 * back is in the index.
 */
int frag_heap_drop_idle(struct frag_heap *h, struct frag_err *err);

/*
 * When no free piece fits: a segment of `usual`, or of `least` where the device refuses that; else
 * waits for pending frees and looks again; else gives idle segments back and asks once more. 0 and
 * a piece that is in the index, FRAG_OOM, or an error.
 */
struct frag_heap_growth {
	uint64_t bytes, usual, least; /* bytes: of the request */
	uint32_t stream;
	struct frag_piece *(*find)(const void *index_ctx, uint64_t bytes);
};
int frag_heap_make_room(struct frag_heap *h, const struct frag_heap_growth *g,
			struct frag_piece **out, uint8_t *cls, struct frag_err *err);

/* Host memory for `n` splits. 0 or FRAG_ENOMEM. */
static inline int frag_heap_reserve(struct frag_heap *h, size_t n)
{
	return FRAG_LIKELY(h->pieces.spare_count >= n) ? 0 : frag_slab_reserve(&h->pieces, n);
}

static inline bool frag_seg_is_idle(const struct frag_seg *seg)
{
	return !seg->live_count;
}

/* Marks an idle segment as one that a trim leaves alone. */
void frag_heap_keep(struct frag_heap *h, struct frag_seg *seg);

/* A segment became idle (sign 1) or stopped being so (-1). */
static inline void frag_heap_idle_(struct frag_heap *h, const struct frag_seg *seg, int sign)
{
	if (FRAG_UNLIKELY(seg->kept))
		return;
	h->idle_bytes += (uint64_t)sign * seg->bytes;
	h->idle_count += (size_t)sign;
}

/*
 * Cuts a free piece: p keeps the first `bytes`, the rest is returned, free.
 * pre: p is free, 0 < bytes < p->bytes, one split reserved.
 */
static inline struct frag_piece *frag_heap_split(struct frag_heap *h, struct frag_piece *p,
						 uint64_t bytes)
{
	struct frag_piece *rest = frag_piece_split(&h->pieces, p, bytes);

	h->pieces_count++;
	h->free_count++;
	return rest;
}

/* Free -> live. */
static inline void frag_heap_take(struct frag_heap *h, struct frag_piece *p)
{
	p->state = FRAG_STATE_LIVE;
	if (!p->seg->live_count++)
		frag_heap_idle_(h, p->seg, -1);
	h->free_count--;
	h->free_bytes -= p->bytes;
	h->live_bytes += p->bytes;
}

/* Free -> live, and what the program gets: everything of `out` but its class. */
static inline void frag_heap_grant(struct frag_heap *h, struct frag_piece *p,
				   struct frag_block *out)
{
	frag_heap_take(h, p);
	frag_piece_grant(p, out);
}

/* Live -> waiting: the program has let go of it. */
static inline void frag_heap_wait(struct frag_heap *h, struct frag_piece *p)
{
	if (p->state != FRAG_STATE_LIVE)
		return;
	p->state = FRAG_STATE_WAITING;
	h->live_bytes -= p->bytes;
	h->waiting_bytes += p->bytes;
}

/* Live or waiting -> free; neighbours are not merged. pre: p is not free. */
static inline void frag_heap_give(struct frag_heap *h, struct frag_piece *p)
{
	if (FRAG_LIKELY(p->state == FRAG_STATE_LIVE))
		h->live_bytes -= p->bytes;
	else
		h->waiting_bytes -= p->bytes;
	p->state = FRAG_STATE_FREE;
	if (!--p->seg->live_count)
		frag_heap_idle_(h, p->seg, 1);
	h->free_count++;
	h->free_bytes += p->bytes;
}

/* Makes p and its neighbour behind one piece, p; that one ends. pre: both free. */
static inline void frag_heap_join(struct frag_heap *h, struct frag_piece *p)
{
	frag_piece_join(&h->pieces, p);
	h->pieces_count--;
	h->free_count--;
}

/*
 * Live or waiting -> free, and one piece with its free neighbours, which cut takes out of the
 * policy's index first. The merged piece, in no index.
 */
static inline struct frag_piece *frag_heap_give_merged(struct frag_heap *h, struct frag_piece *p,
						       void (*cut)(void *ctx, struct frag_piece *p),
						       void *ctx)
{
	struct frag_piece *q;

	frag_heap_give(h, p);
	q = frag_piece_free_next(p);
	if (q) {
		cut(ctx, q);
		frag_heap_join(h, p);
	}
	q = frag_piece_free_prev(p);
	if (!q)
		return p;
	cut(ctx, q);
	frag_heap_join(h, q);
	return q;
}

/*
 * Hooks, as they are, of policies whose struct begins with its heap and whose handles
 * are the pieces. destroy: of a policy with no other memory; trim: frag_heap_drop_idle.
 */
void frag_heap_op_destroy(void *self);
int frag_heap_op_trim(void *self, uint16_t pool, struct frag_err *err);
void frag_heap_op_free_requested(void *self, const struct frag_block *block);
void frag_heap_op_visit(void *self, const struct frag_visitor *v);
/* Without the largest free block. */
void frag_heap_op_usage(void *self, struct frag_usage *out);
#define FRAG_HEAP_OPS \
	.needs = FRAG_CAN_MALLOC, .free_requested = frag_heap_op_free_requested, \
	.visit = frag_heap_op_visit

/* Hooks of policies whose blocks are the pieces. largest: 0 = not known. */
void frag_heap_usage(const struct frag_heap *h, uint64_t largest_free_bytes,
		     struct frag_usage *out);
/*
 * For `check`: as many pieces are free as are `indexed` or left, and each is in the policy's index,
 * as index(ctx, p) says, unless that is NULL. FRAG_ECHECK and a text.
 */
int frag_heap_check(const struct frag_heap *h, size_t indexed,
		    bool (*index)(void *ctx, const struct frag_piece *p), void *ctx,
		    struct frag_err *err);
/* Segments in address order; one of them as a visit shows it. */
void frag_heap_sort(struct frag_heap *h);
void frag_heap_visit_seg(const struct frag_heap *h, const struct frag_seg *seg,
			 const struct frag_visitor *v);

#endif
