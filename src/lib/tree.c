/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Treap with the greatest weight per subtree (see tree.h).
 *
 * Invariants: (key, tie) ascends in order; a node's prio is not below that of its children; max =
 * the maximum of the node's weight and its children's max. Split and merge touch a constant
 * expected number of nodes, so they recurse; descents are loops.
 */
#include "tree.h"

/* Longest path that update and remove store. A treap of 2^40 nodes is deeper with a probability
 * below 2^-60: the depth is at most about 4.3 ln n. */
#define PATH_MAX_NODES 240

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline bool before(const struct frag_tree_node *n, uint64_t key, uint64_t tie)
{
	return n->key < key || (n->key == key && n->tie < tie);
}

static inline uint64_t max_of(const struct frag_tree_node *n)
{
	return n ? n->max : 0;
}

static inline void refresh(struct frag_tree_node *n)
{
	uint64_t kids = FRAG_MAX(max_of(n->kid[0]), max_of(n->kid[1]));

	n->max = FRAG_MAX(n->weight, kids);
}

static void split(struct frag_tree_node *t, uint64_t key, uint64_t tie, struct frag_tree_node **lo,
		  struct frag_tree_node **hi)
{
	if (!t) {
		*lo = *hi = NULL;
		return;
	}
	if (before(t, key, tie)) {
		*lo = t;
		split(t->kid[1], key, tie, &t->kid[1], hi);
	} else {
		*hi = t;
		split(t->kid[0], key, tie, lo, &t->kid[0]);
	}
	refresh(t);
}

static struct frag_tree_node *merge(struct frag_tree_node *lo, struct frag_tree_node *hi)
{
	if (!lo || !hi)
		return lo ? lo : hi;
	if (lo->prio >= hi->prio) {
		lo->kid[1] = merge(lo->kid[1], hi);
		refresh(lo);
		return lo;
	}
	hi->kid[0] = merge(lo, hi->kid[0]);
	refresh(hi);
	return hi;
}

void frag_tree_insert(struct frag_tree *t, struct frag_tree_node *n)
{
	struct frag_tree_node **link = &t->root;

	n->prio = mix(t->ticks++);
	while (*link && (*link)->prio >= n->prio) {
		struct frag_tree_node *p = *link;

		p->max = FRAG_MAX(p->max, n->weight);
		link = &p->kid[before(p, n->key, n->tie)];
	}
	split(*link, n->key, n->tie, &n->kid[0], &n->kid[1]);
	*link = n;
	refresh(n);
	t->count++;
}

/* Links from the root down to the one that points at n. */
static unsigned path_to(struct frag_tree *t, const struct frag_tree_node *n,
			struct frag_tree_node ***path)
{
	struct frag_tree_node **link = &t->root;
	unsigned depth = 0;

	for (;;) {
		FRAG_ASSERT(*link && depth < PATH_MAX_NODES);
		path[depth++] = link;
		if (*link == n)
			return depth;
		link = &(*link)->kid[before(*link, n->key, n->tie)];
	}
}

/* Updates the maxima above path[depth], until one does not change. */
static void refresh_up(struct frag_tree_node ***path, unsigned depth)
{
	while (depth) {
		struct frag_tree_node *p = *path[--depth];
		uint64_t old = p->max;

		refresh(p);
		if (p->max == old)
			return;
	}
}

void frag_tree_remove(struct frag_tree *t, struct frag_tree_node *n)
{
	struct frag_tree_node **path[PATH_MAX_NODES];
	unsigned depth;

	t->count--;
	depth = path_to(t, n, path);
	*path[depth - 1] = merge(n->kid[0], n->kid[1]);
	refresh_up(path, depth - 1);
}

void frag_tree_update(struct frag_tree *t, struct frag_tree_node *n, uint64_t key, uint64_t weight)
{
	struct frag_tree_node **path[PATH_MAX_NODES];
	unsigned depth = path_to(t, n, path);

	n->key = key;
	n->weight = weight;
	refresh_up(path, depth);
}

struct frag_tree_node *frag_tree_find(const struct frag_tree *t, uint64_t key, uint64_t tie)
{
	struct frag_tree_node *n = t->root;

	while (n && (n->key != key || n->tie != tie))
		n = n->kid[before(n, key, tie)];
	return n;
}

struct frag_tree_node *frag_tree_floor(const struct frag_tree *t, uint64_t key)
{
	struct frag_tree_node *n = t->root, *best = NULL;

	while (n) {
		if (n->key <= key) {
			best = n;
			n = n->kid[1];
		} else {
			n = n->kid[0];
		}
	}
	return best;
}

struct frag_tree_node *frag_tree_ceil(const struct frag_tree *t, uint64_t key, uint64_t tie)
{
	struct frag_tree_node *n = t->root, *best = NULL;

	while (n) {
		if (before(n, key, tie)) {
			n = n->kid[1];
		} else {
			best = n;
			n = n->kid[0];
		}
	}
	return best;
}

static struct frag_tree_node *fit(const struct frag_tree *t, uint64_t weight, int side)
{
	struct frag_tree_node *n = t->root;

	if (!n || n->max < weight)
		return NULL;
	for (;;) {
		if (max_of(n->kid[side]) >= weight)
			n = n->kid[side];
		else if (n->weight >= weight)
			return n;
		else
			n = n->kid[!side];
	}
}

struct frag_tree_node *frag_tree_first_fit(const struct frag_tree *t, uint64_t weight)
{
	return fit(t, weight, 0);
}

struct frag_tree_node *frag_tree_last_fit(const struct frag_tree *t, uint64_t weight)
{
	return fit(t, weight, 1);
}
