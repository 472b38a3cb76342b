/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a pool takes its chunks from: the device, or another policy (RMM and
 * Umpire resources compose: binning over a pool over the device).
 *
 * chunk: one allocation from the upstream. A pool cuts it up and keeps what it
 * needs to know about it in `head` and `owner`.
 *
 * Structure: chunks are objects of a slab, indexed by address. Over another
 * policy the chunks are live blocks of that policy; visit and usage replace them
 * by what the pool has made of them, so that both still cover every byte once.
 *
 * Ownership: chunks belong to the upstream and are borrowed until
 * frag_upstream_give or frag_upstream_close. Pools put the struct first in their
 * own state, so that the frag_upstream_op_… functions fit into a policy's table.
 */
#ifndef FRAG_COMMON_UPSTREAM_H
#define FRAG_COMMON_UPSTREAM_H

#include "adaptor.h"
#include "bset.h"
#include "pieces.h"

/* No card has more; larger requests are refused before sums can overflow. */
#define FRAG_UPSTREAM_MAX (1ull << 48)

struct frag_chunk {
	frag_addr_t addr;	 /* aligned */
	uint64_t bytes;		 /* what the pool may use */
	struct frag_block block; /* as the upstream gave it: addr, granted, handle */
	void *owner, *head;	 /* the pool's own; NULL at first */
	uint32_t stream;
};

struct frag_upstream_parts;

struct frag_upstream {
	struct frag_adaptor a; /* no inner policy: the device */
	const struct frag_upstream_parts *parts;
	struct frag_slab chunks;
	struct frag_bset by_addr; /* (block.addr, 0) -> chunk */
	uint64_t bytes;		  /* sum over the chunks */
	uint64_t granted;	  /* sum over the chunks of what the upstream counts for them */
	struct frag_slab pieces;  /* of pools that cut their chunks into pieces */
	uint64_t live_bytes, waiting_bytes; /* of these */
	size_t slack_count; /* parts of chunks, before or behind, that the pool cannot use */
};

/* What a policy over an upstream adds; self is its state, of `bytes`, the upstream first. */
struct frag_upstream_parts {
	size_t bytes;
	void (*release)(void *self); /* before the chunks go */
	/* Reports the blocks of one chunk by v->block, gapless. */
	void (*inside)(void *self, const struct frag_chunk *chunk, const struct frag_visitor *v);
	/* Adds what is inside the chunks. */
	void (*usage)(void *self, struct frag_usage *out);
	int (*check)(void *self, struct frag_err *err);
};
/*
 * Zeroed state with its upstream open. text: a policy, or "device"; what stands behind the
 * policy's name in a specification goes before it. Errors: those of the inner policy.
 */
int frag_upstream_create(const struct frag_policy_env *env, const char *text,
			 const struct frag_upstream_parts *parts, void **self,
			 struct frag_err *err);
/* A chunk of `bytes` > 0. 0, FRAG_OOM (also where the process limit would be exceeded) or an
 * error; nothing has changed unless 0. O(log chunks). */
int frag_upstream_take(struct frag_upstream *up, uint64_t bytes, uint32_t stream,
		       struct frag_chunk **out, struct frag_err *err);
/* The same, with `alignment` asked on top, so that addr can be a multiple of it. */
int frag_upstream_take_aligned(struct frag_upstream *up, uint64_t bytes, uint64_t alignment,
			       uint32_t stream, struct frag_chunk **out, struct frag_err *err);
/* Gives a chunk back. *gone says whether it did go; with an error it may have, too. */
int frag_upstream_give(struct frag_upstream *up, struct frag_chunk *chunk, bool *gone,
		       struct frag_err *err);
/* First chunk in address order, and the one behind; NULL at the end. */
struct frag_chunk *frag_upstream_first(const struct frag_upstream *up);
struct frag_chunk *frag_upstream_next(const struct frag_upstream *up,
				      const struct frag_chunk *chunk);

/* A free piece that is the whole of a new chunk. pre: the slab has a spare object. */
static inline struct frag_piece *frag_chunk_piece(struct frag_upstream *up, struct frag_chunk *c)
{
	struct frag_piece *p = frag_slab_alloc(&up->pieces);

	*p = (struct frag_piece){ .addr = c->addr,
				  .bytes = c->bytes,
				  .chunk = c,
				  .stream = c->stream,
				  .state = FRAG_STATE_FREE };
	c->head = p;
	return p;
}

/* A hook, for handles that are pieces. */
void frag_pieces_free_requested(void *self, const struct frag_block *block);
/* Walks the pieces of one chunk; a free whole chunk counts as releasable if `gives_back`. */
void frag_chunk_visit(const struct frag_chunk *c, const struct frag_visitor *v, bool gives_back);
/* For `check`: as frag_heap_check, for the pieces of the chunks of `owner`. */
int frag_chunks_check(const struct frag_upstream *up, const void *owner, size_t indexed,
		      bool (*index)(void *ctx, const struct frag_piece *p), void *ctx,
		      struct frag_err *err);

static inline size_t frag_upstream_count(const struct frag_upstream *up)
{
	return frag_bset_count(&up->by_addr);
}

static inline bool frag_upstream_is_device(const struct frag_upstream *up)
{
	return !up->a.inner.policy.ops;
}

/* For a table of operations. */
/* Segments of the device, and in them what the parts report. */
void frag_upstream_op_visit(void *self, const struct frag_visitor *v);
void frag_upstream_op_usage(void *self, struct frag_usage *out);
/* The parts' check, and the inner policy's. */
int frag_upstream_op_check(void *self, struct frag_err *err);
/* Gives every chunk back. */
void frag_upstream_op_destroy(void *self);
#define FRAG_UPSTREAM_OPS \
	.needs = FRAG_CAN_MALLOC, .destroy = frag_upstream_op_destroy, \
	.synced = frag_adaptor_synced, .mark = frag_adaptor_mark, .visit = frag_upstream_op_visit, \
	.check = frag_upstream_op_check, .usage = frag_upstream_op_usage

/* What all resources of RMM say of themselves. */
#define FRAG_UPSTREAM_RMM \
	.trims = "nothing of its own: RMM keeps memory until the resource is destroyed; its " \
		 "upstream is trimmed", \
	.checked = "RMM 26.08 (2026-07-02), compiled", .trim = frag_adaptor_trim

/* The option that names it. */
#define FRAG_UPSTREAM_OPT(params, field, def) \
	FRAG_OPT_STRING("upstream", params, field, def, \
			"source of chunks: device, or a policy in parentheses")

#endif
