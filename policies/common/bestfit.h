/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Best fit over segheap.h: a heap that keeps its free pieces in ordered sets by size. Among equals
 * comes the one with the lowest address or, with `latest`, the one that became free last.
 *
 * Invariants: a free piece is in the set that the rules say, by (size, address or rank), unless the
 * policy has just taken it out; piece->list is its place there. The nodes of the sets are reserved
 * with the pieces: one for each that there is.
 */
#ifndef FRAG_COMMON_BESTFIT_H
#define FRAG_COMMON_BESTFIT_H

#include "bset.h"
#include "segheap.h"

/* What a policy may want otherwise; they, and each hook, may be NULL. */
struct frag_best_rules {
	/* Number of the set that a free piece belongs to; NULL: there is one set, 0. */
	uint32_t (*set)(const void *self, const struct frag_piece *p);
	/* Would these two, both free, have been merged? NULL: all neighbours are. For the check. */
	bool (*merges)(const struct frag_piece *p, const struct frag_piece *next);
};

struct frag_best {
	struct frag_heap heap; /* first: its hooks are used as they are */
	const struct frag_best_rules *rules;
	struct frag_slab nodes; /* of all sets */
	struct frag_bset *sets;
	uint32_t sets_count;
	bool latest;	/* piece->stamp is then the heap's own */
	uint64_t stamp; /* number of the next free */
};

void frag_best_init(struct frag_best *f, const struct frag_policy_env *env,
		    const struct frag_best_rules *rules);
/* Zeroed state of a policy, of `bytes`: begins with its heap; `what`: for messages. */
int frag_best_create(const struct frag_policy_env *env, size_t bytes,
		     const struct frag_best_rules *rules, const char *what, void **out,
		     struct frag_err *err);
/* Gives everything back to the device, and all host memory. */
void frag_best_release(struct frag_best *f);

/* Host memory for `more` pieces, and the sets up to number `set`. 0 or FRAG_ENOMEM. */
int frag_best_reserve(struct frag_best *f, uint32_t set, size_t more);
/* Into its set, out of it. pre of put: reserved. */
void frag_best_put(void *self, struct frag_piece *p);
void frag_best_cut(void *self, struct frag_piece *p);

/* The piece of a set that a request gets, still in the set; NULL: none is large enough. */
static inline struct frag_piece *frag_best_find_in(const struct frag_best *f, uint32_t set,
						   uint64_t bytes)
{
	return frag_bset_value(frag_bset_lower(&f->sets[set], bytes, 0));
}

/* The same of set 0; a `find` of struct frag_heap_growth. */
struct frag_piece *frag_best_find(const void *self, uint64_t bytes);
/* A segment (frag_heap_grow) as a free piece that is in its set. pre: reserved. */
int frag_best_grow(struct frag_best *f, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		   struct frag_err *err);
/* frag_heap_drop for the idle segment of a piece that is in its set. */
int frag_best_drop(struct frag_best *f, struct frag_piece *p, struct frag_err *err);
/* Out of its set; what is beyond `bytes` is cut off and stays free: *cls of a hit is split then. */
void frag_best_take(struct frag_best *f, struct frag_piece *p, uint64_t bytes, uint8_t *cls);
/* The greatest free piece of all sets. */
uint64_t frag_best_largest(const struct frag_best *f);

/* Hooks of policies whose struct begins with it and whose handles are the pieces. */
void frag_best_op_destroy(void *self);
/* Merges with both neighbours. */
int frag_best_op_free(void *self, const struct frag_block *block, struct frag_err *err);
void frag_best_op_usage(void *self, struct frag_usage *out);
int frag_best_op_check(void *self, struct frag_err *err);
#define FRAG_BEST_OPS \
	FRAG_HEAP_OPS, .abi = FRAG_POLICY_ABI, .create = create, .destroy = frag_best_op_destroy, \
		       .alloc = alloc, .usage = frag_best_op_usage, .check = frag_best_op_check

#endif
