/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set of sized things in order of address that finds the first one of at least
 * a given size: address-ordered first fit in O(log n).
 *
 * Structure: a treap, intrusive, with parent links. Order by address, heap by a
 * hash of the address (so the shape depends on nothing else), and in each node the
 * largest size of its subtree.
 *
 * Ownership: nodes are the caller's and must stay where they are while inside.
 * Nothing here allocates or fails.
 */
#ifndef FRAG_COMMON_FITSET_H
#define FRAG_COMMON_FITSET_H

#include <frag/base.h>

struct frag_fitset_node {
	struct frag_fitset_node *left, *right, *parent;
	frag_addr_t addr;
	uint64_t size;
	uint64_t largest; /* of the subtree */
};

struct frag_fitset {
	struct frag_fitset_node *root;
	size_t count;
};

/* pre: n->addr and n->size are set, the address is not in the set. */
void frag_fitset_insert(struct frag_fitset *s, struct frag_fitset_node *n);
void frag_fitset_erase(struct frag_fitset *s, struct frag_fitset_node *n);
/* n is in a set; its size changes. */
void frag_fitset_resize(struct frag_fitset_node *n, uint64_t size);
/* Lowest address with a size of at least `size`, or NULL. pre: size > 0. */
struct frag_fitset_node *frag_fitset_first(const struct frag_fitset *s, uint64_t size);
/* NULL, or what is broken. O(n). */
const char *frag_fit_broken(const struct frag_fitset *s);

static inline uint64_t frag_fit_largest(const struct frag_fitset *s)
{
	return s->root ? s->root->largest : 0;
}

#endif
