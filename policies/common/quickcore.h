/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's pools with coalescing heuristics (LLNL/Umpire src/umpire/strategy/QuickPool.cpp,
 * DynamicPoolList.cpp, DynamicSizePool.hpp): the policies quickpool and dynamicpool, and a
 * part of umpire-mixed.
 *
 *	Sizes are rounded up to the alignment (16 B). Best fit over all free pieces;
 *	among equals the one that has been free the longest (QuickPool) or the lowest
 *	(DynamicPoolList, which walks a list in order of address). Every fit is split
 *	exactly. On a miss a chunk of the larger of the request and a minimum (512 MiB if
 *	the pool holds nothing, else 1 MiB) is taken, with the alignment on top; when
 *	that is refused all wholly free chunks are released and the same is tried once
 *	more. A freed piece merges with the one before, then with the one behind,
 *	of its chunk.
 *
 *	After a free the heuristic is asked for a size; if it names one, the pool is
 *	coalesced to it. QuickPool: if there is a releasable chunk, and more than one free piece, all
 *	releasable chunks are released, and if the pool is then smaller than the size,
 *	the difference is allocated as one piece and freed. Nothing is done if a chunk
 *	would only be replaced by one of its size: the source, which asks the heuristic
 *	again afterwards, would go on with that for ever. DynamicPoolList: the same if there are
 *	two releasable chunks or more. Chunks are released smallest first, oldest among
 *	equals (QuickPool), or in order of address (DynamicPoolList). DynamicPoolList asks at 100 %
 *	whether nothing is handed out, by a counter that a refused request raises for good: after
 *	the first out of memory it never coalesces again.
 *
 * Structure: chunks in pieces (pieces.h); all free ones in a set by (size, stamp),
 * those that are whole chunks in a second one. A stamp counts insertions, or is the address.
 *
 * Invariants: no two neighbours are free; the counters are those of the pieces.
 */
#ifndef FRAG_COMMON_QUICKCORE_H
#define FRAG_COMMON_QUICKCORE_H

#include "bset.h"
#include "upstream.h"

/* ---- coalescing heuristics --------------------------------------------------------- */

enum frag_coalesce_rule {
	FRAG_COALESCE_PERCENT,	   /* releasable bytes >= percent of what is held; to that size */
	FRAG_COALESCE_PERCENT_HWM, /* the same; to the high-water mark of aligned bytes */
	FRAG_COALESCE_BLOCKS,	   /* n releasable chunks or more; to what is held */
	FRAG_COALESCE_BLOCKS_HWM,
};
extern const char *const frag_coalesce_words[];

struct frag_coalesce {
	uint64_t rule;	  /* enum frag_coalesce_rule */
	uint64_t percent; /* 0: never; 100: only if all is releasable */
	uint64_t blocks;
};

/* Their options. params: a struct with such a member `pool`; def: enum frag_coalesce_rule. */
struct frag_quick_params {
	uint64_t first, next; /* minimum chunk sizes */
	uint64_t alignment;
	struct frag_coalesce coalesce;
};
#define FRAG_QUICK_OPTS(params, def) \
	FRAG_OPT_BYTES("first", params, pool.first, 512 * FRAG_MIB, 0, FRAG_UPSTREAM_MAX, \
		       "smallest chunk of the coalescing pool while it holds nothing", \
		       .tune = "2M,64M,2G,8G"), \
		FRAG_OPT_BYTES("next", params, pool.next, FRAG_MIB, 0, FRAG_UPSTREAM_MAX, \
			       "smallest chunk later", .tune = "2M,16M,64M,256M"), \
		FRAG_OPT_BYTES("alignment", params, pool.alignment, 16, 1, FRAG_MIB, \
			       "of its sizes and addresses, a power of two", \
			       .unit = FRAG_OPT_POW2), \
		FRAG_OPT_ENUM("coalesce", params, pool.coalesce.rule, def, frag_coalesce_words, \
			      "when free chunks are merged into one: of the size held, or (hwm) " \
			      "of the high-water mark"), \
		FRAG_OPT_UINT("percent", params, pool.coalesce.percent, 100, 0, 100, \
			      "percentage that must be releasable before chunks are merged; 0: " \
			      "never", \
			      .tune = "0,10,25,50,75"), \
		FRAG_OPT_UINT("blocks", params, pool.coalesce.blocks, 1, 0, 1u << 20, \
			      "merge chunks when this many are releasable")

/* ---- the pool ----------------------------------------------------------------------- */

struct frag_quick {
	struct frag_upstream up; /* first: see upstream.h */
	struct frag_quick_params p;
	struct frag_bset free;	/* (size, stamp) */
	struct frag_bset whole; /* of these, the whole chunks; by_address: (0, addr) */
	bool by_address;	/* DynamicPoolList */
	uint64_t stamp;
	uint64_t actual_bytes; /* in chunks, without the alignment on top */
	uint64_t releasable_bytes;
	uint64_t aligned_hwm; /* of live + waiting bytes */
	bool growing;	      /* inside a call of the upstream */
	bool gives_back;      /* on trim */
	bool size_lost;	      /* DynamicPoolList, after a refusal: see above */
};

/*
 * Zeroed state of a policy that begins with such a pool, of parts->bytes; as frag_upstream_create.
 * The other hooks are those of a policy, or of its parts (upstream.h); usage adds to *out.
 */
int frag_quick_create(const struct frag_policy_env *env, const char *upstream,
		      const struct frag_quick_params *p, bool by_address,
		      const struct frag_upstream_parts *parts, void **self, struct frag_err *err);
void frag_quick_release(void *self); /* chunks stay with the upstream */
int frag_quick_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		     struct frag_err *err);
/* Also coalesces. Errors: of the upstream; the block is free all the same. */
int frag_quick_free(void *self, const struct frag_block *block, struct frag_err *err);
void frag_quick_inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v);
void frag_quick_usage(void *self, struct frag_usage *out);
int frag_quick_check(void *self, struct frag_err *err);

/* ---- a policy around one such pool ---- */

struct frag_quick_policy_params {
	struct frag_quick_params pool;
	char upstream[FRAG_OPT_STRING_MAX];
};
int frag_quick_op_create(const struct frag_policy_env *env, const void *params, bool by_address,
			 void **self, struct frag_err *err);
int frag_quick_op_trim(void *self, uint16_t pool, struct frag_err *err);
#define FRAG_QUICK_OPS \
	.trims = "wholly free chunks (release)", \
	.checked = "Umpire of 2024-10-11 (after v2024.07), compiled", .opts = opts, \
	.create = create, FRAG_UPSTREAM_OPS, \
	.params_size = sizeof(struct frag_quick_policy_params), .alloc = frag_quick_alloc, \
	.free = frag_quick_free, .free_requested = frag_pieces_free_requested, \
	.trim = frag_quick_op_trim

#endif
