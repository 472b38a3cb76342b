/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes to the ordered set. Insert and erase touch one leaf; only when a leaf
 * is full or below its minimum do they go up by the parent links, which is why
 * a found position can be erased without searching for it again.
 */
#include "bset_internal.h"

#include <frag/error.h>

#include <string.h>

/* Two neighbours become one up to here, so that a merged node has room for some inserts. */
#define LEAF_MERGE (LEAF * 3 / 4)
#define FAN_MERGE (FAN * 3 / 4)

/* ---- leaves and inner nodes ----------------------------------------------------------- */

/* The lowest n nibbles. pre: n < 16. */
static inline uint64_t nibbles_below(uint32_t n)
{
	return (1ull << 4 * n) - 1;
}

/* Puts an entry at rank i <= count < LEAF: the first unused nibble moves down to i. */
static inline void leaf_put(leaf *l, uint32_t i, uint64_t size, uint64_t addr, void *value)
{
	uint32_t n = l->node.count++;
	uint32_t at = frag_bset_place_(l, n);
	uint64_t low = nibbles_below(i), used = nibbles_below(n);
	uint64_t above = ~(used << 4 | 15);

	l->order = (l->order & above) | (l->order & used & ~low) << 4 | (uint64_t)at << 4 * i |
		   (l->order & low);
	l->size[at] = size;
	l->addr[at] = addr;
	l->value[at] = value;
}

/* Takes out rank i < count: its nibble moves up to the first unused one. */
static inline void leaf_cut(leaf *l, uint32_t i)
{
	uint32_t n = --l->node.count;
	uint32_t at = frag_bset_place_(l, i);
	uint64_t low = nibbles_below(i), used = nibbles_below(n);
	uint64_t above = ~(used << 4 | 15);

	l->order = (l->order & above) | (uint64_t)at << 4 * n | (l->order >> 4 & used & ~low) |
		   (l->order & low);
	l->size[at] = UINT64_MAX;
	l->addr[at] = UINT64_MAX;
}

static struct frag_bset_key leaf_last_key(const leaf *l)
{
	uint32_t at = frag_bset_place_(l, l->node.count - 1);

	return (struct frag_bset_key){ l->addr[at], l->size[at] };
}

/* Moves m entries, from rank `from` on, to the end (front = false) or the front of dst. */
static void leaf_move(leaf *dst, leaf *src, uint32_t from, uint32_t m, bool front)
{
	uint32_t i;

	for (i = 0; i < m; i++) {
		uint32_t at = frag_bset_place_(src, from);

		leaf_put(dst, front ? i : dst->node.count, src->size[at], src->addr[at],
			 src->value[at]);
		leaf_cut(src, from);
	}
}

static uint32_t child_index(const inner *p, const void *child)
{
	uint32_t i = 0;

	while (p->child[i] != child)
		i++;
	return i;
}

/* pre: p is not full. Puts (sep, right) behind child i. */
static void inner_put(inner *p, uint32_t i, struct frag_bset_key sep, node *right)
{
	uint32_t tail = p->node.count - i - 1;

	memmove(p->sep + i + 1, p->sep + i, tail * sizeof(p->sep[0]));
	memmove(p->child + i + 2, p->child + i + 1, tail * sizeof(p->child[0]));
	p->sep[i] = sep;
	p->child[i + 1] = right;
	right->parent = p;
	p->node.count++;
}

/* Takes out separator i and child i + 1. */
static void inner_cut(inner *p, uint32_t i)
{
	uint32_t tail = p->node.count - i - 2;

	memmove(p->sep + i, p->sep + i + 1, tail * sizeof(p->sep[0]));
	memmove(p->child + i + 1, p->child + i + 2, tail * sizeof(p->child[0]));
	p->node.count--;
	p->sep[p->node.count - 1] = top_key;
}

/* Appends m children of src, from its front, to dst. `sep` separates dst's last from the
 * first of them; returns the one behind the last moved. */
static struct frag_bset_key inner_take_front(inner *dst, inner *src, uint32_t m,
					     struct frag_bset_key sep)
{
	struct frag_bset_key behind = src->sep[m - 1];
	uint32_t n = dst->node.count, rest = src->node.count - m, i;

	dst->sep[n - 1] = sep;
	memcpy(dst->sep + n, src->sep, (m - 1) * sizeof(src->sep[0]));
	memcpy(dst->child + n, src->child, m * sizeof(src->child[0]));
	for (i = 0; i < m; i++)
		dst->child[n + i]->parent = dst;
	dst->node.count = n + m;
	memmove(src->child, src->child + m, rest * sizeof(src->child[0]));
	if (rest)
		memmove(src->sep, src->sep + m, (rest - 1) * sizeof(src->sep[0]));
	for (i = rest ? rest - 1 : 0; i < FAN - 1; i++)
		src->sep[i] = top_key;
	src->node.count = rest;
	return behind;
}

/* Puts the last m children of src in front of dst (which may be empty); returns the separator
 * between src's new last and them. `sep` separates the two nodes before. */
static struct frag_bset_key inner_take_back(inner *dst, inner *src, uint32_t m,
					    struct frag_bset_key sep)
{
	uint32_t n = dst->node.count, keep = src->node.count - m, i;
	struct frag_bset_key before = src->sep[keep - 1];

	memmove(dst->child + m, dst->child, n * sizeof(dst->child[0]));
	if (n) {
		memmove(dst->sep + m, dst->sep, (n - 1) * sizeof(dst->sep[0]));
		dst->sep[m - 1] = sep;
	}
	memcpy(dst->child, src->child + keep, m * sizeof(src->child[0]));
	memcpy(dst->sep, src->sep + keep, (m - 1) * sizeof(src->sep[0]));
	for (i = 0; i < m; i++)
		dst->child[i]->parent = dst;
	dst->node.count = n + m;
	for (i = keep - 1; i < FAN - 1; i++)
		src->sep[i] = top_key;
	src->node.count = keep;
	return before;
}

/* ---- insert -------------------------------------------------------------------------- */

/* Makes `right` the neighbour behind `left` in their parent; splits parents that are full. */
static void put_child(struct frag_bset *s, node *left, struct frag_bset_key sep, node *right)
{
	inner *p = left->parent, *q;
	struct frag_bset_key up;

	if (!p) {
		p = frag_bset_inner_new(s);
		p->node.count = 1;
		p->child[0] = left;
		left->parent = p;
		s->root = &p->node;
		s->height++;
	} else if (p->node.count == FAN) {
		q = frag_bset_inner_new(s);
		up = inner_take_back(q, p, FAN / 2, top_key);
		put_child(s, &p->node, up, &q->node);
		p = left->parent;
	}
	inner_put(p, child_index(p, left), sep, right);
}

/* Splits a full leaf; returns the half that rank *i is in and adjusts *i. */
static leaf *leaf_split(struct frag_bset *s, leaf *l, uint32_t *i)
{
	leaf *r = frag_bset_leaf_new(s);

	leaf_move(r, l, LEAF / 2, LEAF / 2, false);
	r->prev = l;
	r->next = l->next;
	if (l->next)
		l->next->prev = r;
	else
		s->last = r;
	l->next = r;
	put_child(s, &l->node, leaf_last_key(l), &r->node);
	if (*i < LEAF / 2) /* at LEAF / 2 the key is above the separator */
		return l;
	*i -= LEAF / 2;
	return r;
}

void frag_bset_insert(struct frag_bset *s, uint64_t size, uint64_t addr, void *value)
{
	leaf *l;
	uint32_t i;

	if (FRAG_UNLIKELY(!s->root)) {
		s->first = s->last = frag_bset_leaf_new(s);
		s->root = &s->first->node;
	}
	l = frag_bset_leaf_of_(s, size, addr);
	i = frag_bset_rank_of_(l, size, addr);
	if (FRAG_UNLIKELY(l->node.count == LEAF))
		l = leaf_split(s, l, &i);
	leaf_put(l, i, size, addr, value);
	s->count++;
}

/* ---- erase --------------------------------------------------------------------------- */

static void inner_underflow(struct frag_bset *s, inner *n)
{
	inner *p = n->node.parent, *a, *b;
	uint32_t k, sum;

	if (!p) {
		if (n->node.count > 1)
			return;
		s->root = n->child[0];
		s->root->parent = NULL;
		s->height--;
		frag_bset_inner_end(s, n);
		return;
	}
	k = child_index(p, n);
	k -= k + 1 == p->node.count; /* the pair is k, k + 1 */
	a = (inner *)p->child[k];
	b = (inner *)p->child[k + 1];
	sum = a->node.count + b->node.count;
	if (sum <= FAN_MERGE) {
		inner_take_front(a, b, b->node.count, p->sep[k]);
		inner_cut(p, k);
		frag_bset_inner_end(s, b);
		if (p->node.count < FAN_MIN)
			inner_underflow(s, p);
	} else if (a->node.count < b->node.count) {
		p->sep[k] = inner_take_front(a, b, sum / 2 - a->node.count, p->sep[k]);
	} else {
		p->sep[k] = inner_take_back(b, a, sum / 2 - b->node.count, p->sep[k]);
	}
}

static void leaf_underflow(struct frag_bset *s, leaf *l)
{
	inner *p = l->node.parent;
	leaf *a, *b;
	uint32_t k, sum;

	if (!p)
		return;
	k = child_index(p, l);
	k -= k + 1 == p->node.count;
	a = (leaf *)p->child[k];
	b = (leaf *)p->child[k + 1];
	sum = a->node.count + b->node.count;
	if (sum > LEAF_MERGE) {
		if (a->node.count < b->node.count)
			leaf_move(a, b, 0, sum / 2 - a->node.count, false);
		else
			leaf_move(b, a, sum - sum / 2, a->node.count - (sum - sum / 2), true);
		p->sep[k] = leaf_last_key(a);
		return;
	}
	leaf_move(a, b, 0, b->node.count, false);
	a->next = b->next;
	if (b->next)
		b->next->prev = a;
	else
		s->last = a;
	inner_cut(p, k);
	frag_bset_leaf_end(s, b);
	if (p->node.count < FAN_MIN)
		inner_underflow(s, p);
}

void frag_bset_erase_at(struct frag_bset *s, struct frag_bset_pos pos)
{
	leaf_cut(pos.leaf, pos.i);
	s->count--;
	if (FRAG_UNLIKELY(pos.leaf->node.count < LEAF_MIN))
		leaf_underflow(s, pos.leaf);
}

bool frag_bset_erase(struct frag_bset *s, uint64_t size, uint64_t addr)
{
	struct frag_bset_pos pos = { NULL, 0 };

	if (!s->count)
		return false;
	pos.leaf = frag_bset_leaf_of_(s, size, addr);
	pos.i = frag_bset_rank_of_(pos.leaf, size, addr);
	/* never in the next leaf: a separator is not below the keys left of it */
	if (pos.i == pos.leaf->node.count || frag_bset_size(pos) != size ||
	    frag_bset_addr(pos) != addr)
		return false;
	frag_bset_erase_at(s, pos);
	return true;
}

int frag_bset_by_stream(struct frag_bset **sets, uint32_t *count, uint32_t stream,
			struct frag_bset_nodes *nodes)
{
	struct frag_bset *more;

	if (FRAG_LIKELY(stream < *count))
		return 0;
	more = frag_host_realloc(*sets, stream + 1ul, sizeof(*more));
	if (!more)
		return FRAG_ENOMEM;
	*sets = more;
	while (*count <= stream)
		frag_bset_init_shared(&more[(*count)++], nodes);
	return 0;
}
