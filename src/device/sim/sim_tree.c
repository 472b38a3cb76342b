/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Treap with the greatest weight per subtree (see sim_tree.h).
 *
 * Invariants: (key, tie) ascends in order; prio of a node is not below that of
 * its children; max = greatest of the node's weight and its children's max.
 * The expected number of nodes that split and merge touch is constant, hence
 * recursion there; descents are loops. Most trees have no weights at all: below a node whose max
 * is 0 nothing is to be refreshed, and split and merge are loops too.
 */
#include "sim_tree.h"

/* Longest path that update and remove remember. A treap of 2^40 nodes is deeper
 * than this with a chance below 2^-60: depth follows 4.3 ln n at the outside. */
#define PATH_MAX_NODES 240

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline bool before(const struct tree_node *n, uint64_t key, uint64_t tie)
{
	return n->key < key || (n->key == key && n->tie < tie);
}

static inline uint64_t max_of(const struct tree_node *n)
{
	return n ? n->max : 0;
}

static inline void refresh(struct tree_node *n)
{
	uint64_t kids = FRAG_MAX(max_of(n->kid[0]), max_of(n->kid[1]));

	n->max = FRAG_MAX(n->weight, kids);
}

static void split_plain(struct tree_node *t, uint64_t key, uint64_t tie, struct tree_node **lo,
			struct tree_node **hi)
{
	while (t) {
		if (before(t, key, tie)) {
			*lo = t;
			lo = &t->kid[1];
			t = *lo;
		} else {
			*hi = t;
			hi = &t->kid[0];
			t = *hi;
		}
	}
	*lo = *hi = NULL;
}

static void split(struct tree_node *t, uint64_t key, uint64_t tie, struct tree_node **lo,
		  struct tree_node **hi)
{
	if (!max_of(t)) {
		split_plain(t, key, tie, lo, hi);
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

static struct tree_node *merge_plain(struct tree_node *lo, struct tree_node *hi)
{
	struct tree_node *root, **link = &root;

	while (lo && hi) {
		if (lo->prio >= hi->prio) {
			*link = lo;
			link = &lo->kid[1];
			lo = *link;
		} else {
			*link = hi;
			link = &hi->kid[0];
			hi = *link;
		}
	}
	*link = lo ? lo : hi;
	return root;
}

static struct tree_node *merge(struct tree_node *lo, struct tree_node *hi)
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

void frag_simtree_insert(struct tree *t, struct tree_node *n)
{
	struct tree_node **link = &t->root;

	n->prio = mix(t->ticks++);
	while (*link && (*link)->prio >= n->prio) {
		struct tree_node *p = *link;

		p->max = FRAG_MAX(p->max, n->weight);
		link = &p->kid[before(p, n->key, n->tie)];
	}
	split(*link, n->key, n->tie, &n->kid[0], &n->kid[1]);
	*link = n;
	refresh(n);
	t->count++;
}

/* The link that points at n. */
static struct tree_node **link_of(struct tree *t, const struct tree_node *n)
{
	struct tree_node **link = &t->root;

	while (*link != n) {
		FRAG_ASSERT(*link);
		link = &(*link)->kid[before(*link, n->key, n->tie)];
	}
	return link;
}

/* Links from the root down to the one that points at n. */
static unsigned path_to(struct tree *t, const struct tree_node *n, struct tree_node ***path)
{
	struct tree_node **link = &t->root;
	unsigned depth = 0;

	for (;;) {
		FRAG_ASSERT(*link && depth < PATH_MAX_NODES);
		path[depth++] = link;
		if (*link == n)
			return depth;
		link = &(*link)->kid[before(*link, n->key, n->tie)];
	}
}

/* Maxima above path[depth], until one does not change. */
static void refresh_up(struct tree_node ***path, unsigned depth)
{
	while (depth) {
		struct tree_node *p = *path[--depth];
		uint64_t old = p->max;

		refresh(p);
		if (p->max == old)
			return;
	}
}

void frag_simtree_remove(struct tree *t, struct tree_node *n)
{
	struct tree_node **path[PATH_MAX_NODES];
	unsigned depth;

	t->count--;
	if (!t->root->max) {
		*link_of(t, n) = merge_plain(n->kid[0], n->kid[1]);
		return;
	}
	depth = path_to(t, n, path);
	*path[depth - 1] = merge(n->kid[0], n->kid[1]);
	refresh_up(path, depth - 1);
}

void frag_simtree_update(struct tree *t, struct tree_node *n, uint64_t key, uint64_t weight)
{
	struct tree_node **path[PATH_MAX_NODES];
	unsigned depth = path_to(t, n, path);

	n->key = key;
	n->weight = weight;
	refresh_up(path, depth);
}

struct tree_node *frag_simtree_find(const struct tree *t, uint64_t key, uint64_t tie)
{
	struct tree_node *n = t->root;

	while (n && (n->key != key || n->tie != tie))
		n = n->kid[before(n, key, tie)];
	return n;
}

struct tree_node *frag_simtree_floor(const struct tree *t, uint64_t key)
{
	struct tree_node *n = t->root, *best = NULL;

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

struct tree_node *frag_simtree_ceil(const struct tree *t, uint64_t key, uint64_t tie)
{
	struct tree_node *n = t->root, *best = NULL;

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

static struct tree_node *fit(const struct tree *t, uint64_t weight, int side)
{
	struct tree_node *n = t->root;

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

struct tree_node *frag_simtree_first_fit(const struct tree *t, uint64_t weight)
{
	return fit(t, weight, 0);
}

struct tree_node *frag_simtree_last_fit(const struct tree *t, uint64_t weight)
{
	return fit(t, weight, 1);
}
