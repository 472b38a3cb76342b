/* SPDX-License-Identifier: Apache-2.0 */
/* The treap of fitset.h. */
#include "fitset.h"

/* Finaliser of splitmix64: neighbours in memory get unlike priorities. */
static uint64_t priority(const struct frag_fitset_node *n)
{
	uint64_t x = n->addr;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint64_t largest_of(const struct frag_fitset_node *n)
{
	return n ? n->largest : 0;
}

static uint64_t largest_here(const struct frag_fitset_node *n)
{
	return FRAG_MAX(n->size, FRAG_MAX(largest_of(n->left), largest_of(n->right)));
}

/* Brings `largest` into step from n upwards, as far as it changes. */
static void refresh(struct frag_fitset_node *n)
{
	for (; n; n = n->parent) {
		uint64_t largest = largest_here(n);

		if (largest == n->largest)
			return;
		n->largest = largest;
	}
}

/* Where the parent's link to n is. */
static struct frag_fitset_node **link_of(struct frag_fitset *s, const struct frag_fitset_node *n)
{
	struct frag_fitset_node *p = n->parent;

	if (!p)
		return &s->root;
	return p->left == n ? &p->left : &p->right;
}

/* Child c takes the place of its parent n. */
static void rotate_up(struct frag_fitset *s, struct frag_fitset_node *n, struct frag_fitset_node *c)
{
	struct frag_fitset_node *inner;

	*link_of(s, n) = c;
	c->parent = n->parent;
	if (n->left == c) {
		inner = c->right;
		n->left = inner;
		c->right = n;
	} else {
		inner = c->left;
		n->right = inner;
		c->left = n;
	}
	if (inner)
		inner->parent = n;
	n->parent = c;
	c->largest = n->largest;
	n->largest = largest_here(n);
}

void frag_fitset_insert(struct frag_fitset *s, struct frag_fitset_node *n)
{
	struct frag_fitset_node **at = &s->root, *parent = NULL;

	while (*at) {
		parent = *at;
		at = n->addr < parent->addr ? &parent->left : &parent->right;
	}
	n->left = n->right = NULL;
	n->parent = parent;
	n->largest = n->size;
	*at = n;
	s->count++;
	refresh(parent);
	while (n->parent && priority(n) > priority(n->parent))
		rotate_up(s, n->parent, n);
}

void frag_fitset_erase(struct frag_fitset *s, struct frag_fitset_node *n)
{
	struct frag_fitset_node *only;

	while (n->left && n->right)
		rotate_up(s, n, priority(n->left) > priority(n->right) ? n->left : n->right);
	only = n->left ? n->left : n->right;
	*link_of(s, n) = only;
	if (only)
		only->parent = n->parent;
	s->count--;
	refresh(n->parent);
}

void frag_fitset_resize(struct frag_fitset_node *n, uint64_t size)
{
	n->size = size;
	refresh(n);
}

struct frag_fitset_node *frag_fitset_first(const struct frag_fitset *s, uint64_t size)
{
	struct frag_fitset_node *n = s->root;

	if (largest_of(n) < size)
		return NULL;
	for (;;) {
		if (largest_of(n->left) >= size)
			n = n->left;
		else if (n->size >= size)
			return n;
		else
			n = n->right;
	}
}

/* ---- check ---------------------------------------------------------------------- */

static const struct frag_fitset_node *leftmost(const struct frag_fitset_node *n)
{
	while (n && n->left)
		n = n->left;
	return n;
}

static const struct frag_fitset_node *next(const struct frag_fitset_node *n)
{
	if (n->right)
		return leftmost(n->right);
	while (n->parent && n->parent->right == n)
		n = n->parent;
	return n->parent;
}

const char *frag_fit_broken(const struct frag_fitset *s)
{
	const struct frag_fitset_node *n, *before = NULL;
	size_t count = 0;

	if (s->root && s->root->parent)
		return "the root has a parent";
	for (n = leftmost(s->root); n; before = n, n = next(n)) {
		if (before && before->addr >= n->addr)
			return "addresses out of order";
		if ((n->left && n->left->parent != n) || (n->right && n->right->parent != n))
			return "a child has another parent";
		if (n->parent && priority(n) > priority(n->parent))
			return "priorities out of order";
		if (n->largest != largest_here(n))
			return "largest size out of step";
		if (++count > s->count)
			break;
	}
	return count == s->count ? NULL : "wrong count";
}
