/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of the ordered set, verified by a walk over all nodes. */
#include "bset_internal.h"

struct walk {
	const struct frag_bset *s;
	const leaf *prev;
	size_t count;
};

static bool less(const struct frag_bset_key *a, const struct frag_bset_key *b)
{
	return frag_bset_less_(a->size, a->addr, b->size, b->addr);
}

/* Keys of the subtree are in (lo, hi]; lo NULL: no bound. */
static const char *walk_leaf(struct walk *w, const leaf *l, const struct frag_bset_key *lo,
			     const struct frag_bset_key *hi)
{
	struct frag_bset_key key[LEAF];
	uint32_t i, seen = 0;

	if (l->prev != w->prev || (w->prev ? w->prev->next : w->s->first) != l)
		return "leaf chain broken";
	for (i = 0; i < LEAF; i++) {
		uint32_t at = frag_bset_place_(l, i);

		seen |= 1u << at;
		key[i] = (struct frag_bset_key){ l->addr[at], l->size[at] };
		if (i >= l->node.count) {
			if (key[i].size != UINT64_MAX || key[i].addr != UINT64_MAX)
				return "unused place without the top key";
			continue;
		}
		if (lo && !less(lo, &key[i]))
			return "keys out of order";
		if (less(hi, &key[i]))
			return "key above its separator";
		lo = &key[i];
	}
	w->prev = l;
	w->count += l->node.count;
	return seen == (1u << LEAF) - 1 ? NULL : "place named twice";
}

static const char *walk_node(struct walk *w, const node *n, uint32_t height,
			     const struct frag_bset_key *lo, const struct frag_bset_key *hi)
{
	const inner *in = (const inner *)n;
	const char *bad = NULL;
	uint32_t i;

	if (n->count > (height ? FAN : LEAF) ||
	    (n->parent && n->count < (height ? FAN_MIN : LEAF_MIN)))
		return "node too full or too empty";
	if (!height)
		return walk_leaf(w, (const leaf *)n, lo, hi);
	for (i = n->count - 1; i < FAN; i++)
		if (in->sep[i].size != UINT64_MAX || in->sep[i].addr != UINT64_MAX)
			return "unused separator without the top key";
	for (i = 0; i < n->count && !bad; i++) {
		if (in->child[i]->parent != in)
			return "child with another parent";
		bad = walk_node(w, in->child[i], height - 1, i ? &in->sep[i - 1] : lo,
				i + 1 < n->count ? &in->sep[i] : hi);
	}
	return bad;
}

const char *frag_bset_broken(const struct frag_bset *s)
{
	struct walk w = { .s = s };
	const char *bad;

	if (!s->root)
		return s->count || s->first || s->last || s->height ? "no root, but content" : NULL;
	if (s->root->parent)
		return "root with a parent";
	bad = walk_node(&w, s->root, s->height, NULL, &top_key);
	if (bad)
		return bad;
	if (w.prev != s->last)
		return "last leaf wrong";
	return w.count != s->count ? "count wrong" : NULL;
}
