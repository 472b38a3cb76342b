/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pools of blocks of one size have in common, many blocks to a chunk of an upstream:
 * rmm-fixed and the bins of rmm-binning (fixedblocks.h), umpire-fixed and the fixed pools of
 * umpire-mixed (slotpool.h). Which free block a request gets is the pool's own; nothing is merged.
 * A pool with gives_back set gives its idle chunks back when it is trimmed, the others nothing.
 *
 * Several pools may share an upstream; chunk->owner tells whose a chunk is, chunk->head is one
 * block of host memory.
 */
#ifndef FRAG_COMMON_EQUALBLOCKS_H
#define FRAG_COMMON_EQUALBLOCKS_H

#include "upstream.h"

struct frag_equal {
	const struct frag_equal_ops *ops;
	struct frag_upstream *up;
	uint64_t block_bytes, chunk_blocks; /* chunk_blocks: blocks of a chunk */
	uint64_t chunks_count, live_count, waiting_count;
	uint64_t idle_count; /* chunks without a live or waiting block, of pools that give back */
	bool gives_back;
};

struct frag_equal_ops {
	/* The first chunk, unless it is there. 0, FRAG_OOM or an error. */
	int (*start)(struct frag_equal *e, struct frag_err *err);
	/* One block. pre: the request is not above block_bytes. */
	int (*alloc)(struct frag_equal *e, uint32_t stream, struct frag_block *out,
		     struct frag_err *err);
	void (*free_requested)(struct frag_equal *e, const struct frag_block *block);
	void (*free)(struct frag_equal *e, const struct frag_block *block);
	enum frag_block_state (*state)(const struct frag_chunk *c, uint64_t number);
	bool (*idle)(const struct frag_chunk *c); /* only where pools can give back */
	/* Its own structure, and the number of live and waiting blocks that it finds. */
	int (*check)(struct frag_equal *e, uint64_t *live, uint64_t *waiting, struct frag_err *err);
	void (*release)(struct frag_equal *e);
};

/* Gives host memory back. pre: the upstream is still open. Chunks stay with it. */
void frag_equal_release(struct frag_equal *e);
/* The blocks of one chunk. */
void frag_equal_inside(const struct frag_chunk *c, const struct frag_visitor *v);
/* Adds the blocks to what the upstream holds besides. */
void frag_equal_usage(const struct frag_equal *e, struct frag_usage *out);
int frag_equal_check(struct frag_equal *e, struct frag_err *err);

/* ---- a policy around one such pool ---- */

struct frag_equal_policy {
	struct frag_upstream up; /* first: see upstream.h */
	struct frag_equal e;	 /* and what the pool has besides */
};
int frag_equal_op_alloc(void *self, const struct frag_request *req, struct frag_block *out,
			struct frag_err *err);
int frag_equal_op_free(void *self, const struct frag_block *block, struct frag_err *err);
void frag_equal_op_free_requested(void *self, const struct frag_block *block);
void frag_equal_op_release(void *self);
void frag_equal_op_inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v);
void frag_equal_op_usage(void *self, struct frag_usage *out);
int frag_equal_op_check(void *self, struct frag_err *err);
#define FRAG_EQUAL_PARTS(type) \
	{ \
		.bytes = sizeof(type), .release = frag_equal_op_release, \
		.inside = frag_equal_op_inside, .usage = frag_equal_op_usage, \
		.check = frag_equal_op_check \
	}
#define FRAG_EQUAL_OPS \
	FRAG_UPSTREAM_OPS, .alloc = frag_equal_op_alloc, .free = frag_equal_op_free, \
			   .free_requested = frag_equal_op_free_requested

#endif
