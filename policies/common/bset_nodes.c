/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of the ordered set: pools, and the beginning and end of sets.
 *
 * Nodes are never short: a reservation counts the worst case that the minimum
 * fill allows, see nodes_for. Fresh nodes are not touched before they are used.
 */
#include "bset_internal.h"

#include <string.h>

#include <frag/error.h>

#define NODE_ALIGN 64u
#define NODE_BYTES(type) ((sizeof(type) + NODE_ALIGN - 1) / NODE_ALIGN * NODE_ALIGN)
#define LEAF_BYTES NODE_BYTES(leaf)
#define INNER_BYTES NODE_BYTES(inner)
#define CHUNK_LEAVES_MAX 4096u

void frag_bset_nodes_init(struct frag_bset_nodes *p)
{
	*p = (struct frag_bset_nodes){ 0 };
}

void frag_bset_nodes_release(struct frag_bset_nodes *p)
{
	while (p->chunks) {
		void *older = *(void **)p->chunks;

		frag_host_free(p->chunks);
		p->chunks = older;
	}
	frag_bset_nodes_init(p);
}

/*
 * Most nodes that `n` elements in `k` sets can occupy. A set has one leaf, or
 * leaves of LEAF_MIN elements at least: k + n / LEAF_MIN in all. m nodes of a
 * level have parents only in sets with two of them or more: at most m / 2 such sets,
 * each with one parent, or with parents of FAN_MIN children at least.
 */
static void nodes_for(size_t n, size_t k, size_t *leaves, size_t *inners)
{
	size_t m = n / LEAF_MIN;

	*leaves = k + m;
	*inners = 0;
	while (m >= 2) {
		m = m / FAN_MIN + FRAG_MIN(k, m / 2);
		*inners += m;
	}
}

static void give(struct frag_bset_spare *s, void *n)
{
	*(void **)n = s->head;
	s->head = n;
}

static void *take(struct frag_bset_spare *s, size_t bytes)
{
	void *n = s->head;

	if (n) {
		s->head = *(void **)n;
		return n;
	}
	FRAG_ASSERT(s->fresh != s->fresh_end); /* else not reserved */
	n = s->fresh;
	s->fresh += bytes;
	return n;
}

/* New fresh nodes at `at`; what was left of the old ones joins the chain. Returns the end. */
static char *renew(struct frag_bset_spare *s, char *at, size_t count, size_t bytes)
{
	if (!count)
		return at;
	for (; s->fresh != s->fresh_end; s->fresh += bytes)
		give(s, s->fresh);
	s->fresh = at;
	s->fresh_end = at + count * bytes;
	return s->fresh_end;
}

static int pool_grow(struct frag_bset_nodes *p, size_t leaves, size_t inners)
{
	char *chunk = frag_host_alloc(leaves * LEAF_BYTES + inners * INNER_BYTES + NODE_ALIGN +
				      sizeof(void *));
	char *at;

	if (!chunk)
		return FRAG_ENOMEM;
	*(void **)chunk = p->chunks;
	p->chunks = chunk;
	at = chunk + sizeof(void *);
	at += (NODE_ALIGN - (uintptr_t)at % NODE_ALIGN) % NODE_ALIGN;
	at = renew(&p->leaves, at, leaves, LEAF_BYTES);
	renew(&p->inners, at, inners, INNER_BYTES);
	p->leaves_count += leaves;
	p->inners_count += inners;
	return 0;
}

int frag_bset_nodes_reserve(struct frag_bset_nodes *p, size_t n)
{
	size_t leaves, inners;

	if (n <= p->limit)
		return 0;
	nodes_for(n, p->sets_count, &leaves, &inners);
	if (leaves <= p->leaves_count && inners <= p->inners_count) {
		p->limit = n; /* only a set more */
		return 0;
	}
	/* by a part more than asked, so that n + 1 at a time is cheap */
	n += FRAG_MIN(p->leaves_count, (size_t)CHUNK_LEAVES_MAX) * LEAF_MIN / 2;
	nodes_for(n, p->sets_count, &leaves, &inners);
	leaves -= FRAG_MIN(leaves, p->leaves_count);
	inners -= FRAG_MIN(inners, p->inners_count);
	if (leaves + inners && pool_grow(p, leaves, inners))
		return FRAG_ENOMEM;
	p->limit = n;
	return 0;
}

void frag_bset_leaf_end(struct frag_bset *s, leaf *l)
{
	give(&s->nodes->leaves, l);
}

void frag_bset_inner_end(struct frag_bset *s, inner *n)
{
	give(&s->nodes->inners, n);
}

leaf *frag_bset_leaf_new(struct frag_bset *s)
{
	leaf *l = take(&s->nodes->leaves, LEAF_BYTES);

	l->node = (node){ 0 };
	l->order = 0xfedcba9876543210;
	l->prev = l->next = NULL;
	memset(l->size, 0xff, sizeof(l->size));
	memset(l->addr, 0xff, sizeof(l->addr));
	return l;
}

inner *frag_bset_inner_new(struct frag_bset *s)
{
	inner *n = take(&s->nodes->inners, INNER_BYTES);
	uint32_t i;

	n->node = (node){ 0 };
	for (i = 0; i < FAN; i++)
		n->sep[i] = top_key;
	return n;
}

/* ---- sets ---------------------------------------------------------------------------- */

void frag_bset_init(struct frag_bset *s)
{
	*s = (struct frag_bset){ 0 };
}

int frag_bset_reserve_slow(struct frag_bset *s, size_t n)
{
	if (!n)
		return 0;
	if (!s->nodes) {
		s->nodes = frag_host_alloc(sizeof(*s->nodes));
		if (!s->nodes)
			return FRAG_ENOMEM;
		*s->nodes = (struct frag_bset_nodes){ .sets_count = 1 };
	}
	return frag_bset_nodes_reserve(s->nodes, n);
}

void frag_bset_init_shared(struct frag_bset *s, struct frag_bset_nodes *p)
{
	*s = (struct frag_bset){ .shares = true, .nodes = p };
	p->sets_count++;
	p->limit = 0; /* one root more may be needed */
}

static void give_all(struct frag_bset *s, node *n, uint32_t height)
{
	uint32_t i;

	if (!height) {
		frag_bset_leaf_end(s, (leaf *)n);
		return;
	}
	for (i = 0; i < n->count; i++)
		give_all(s, ((inner *)n)->child[i], height - 1);
	frag_bset_inner_end(s, (inner *)n);
}

void frag_bset_clear(struct frag_bset *s)
{
	if (s->root)
		give_all(s, s->root, s->height);
	s->root = NULL;
	s->first = s->last = NULL;
	s->height = 0;
	s->count = 0;
}

void frag_bset_release(struct frag_bset *s)
{
	if (s->shares) {
		frag_bset_clear(s);
		s->nodes->sets_count--;
	} else if (s->nodes) {
		frag_bset_nodes_release(s->nodes);
		frag_host_free(s->nodes);
	}
	frag_bset_init(s);
}
