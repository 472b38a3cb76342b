/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered set of bset.h: a treap, and the slab of its nodes. */
#include "bset.h"

#include <frag/error.h>

void frag_bset_nodes_init(struct frag_slab *nodes)
{
	frag_slab_init(nodes, sizeof(struct frag_bset_node));
}

void frag_bset_init(struct frag_bset *s)
{
	frag_bset_init_shared(s, NULL);
}

void frag_bset_init_shared(struct frag_bset *s, struct frag_slab *nodes)
{
	*s = (struct frag_bset){ .shared = nodes };
	frag_bset_nodes_init(&s->own);
}

static struct frag_slab *nodes_of(struct frag_bset *s)
{
	return s->shared ? s->shared : &s->own;
}

void frag_bset_release(struct frag_bset *s)
{
	while (s->shared && s->tree.root)
		frag_bset_erase_at(s, (struct frag_bset_node *)s->tree.root);
	frag_slab_release(&s->own);
	frag_bset_init(s);
}

struct frag_bset_node *frag_bset_insert(struct frag_bset *s, uint64_t size, uint64_t addr,
					void *value)
{
	struct frag_bset_node *n = frag_slab_alloc(nodes_of(s));

	FRAG_ASSERT(n);
	*n = (struct frag_bset_node){ .by = { .key = size, .tie = addr }, .value = value };
	frag_tree_insert(&s->tree, &n->by);
	return n;
}

void frag_bset_erase_at(struct frag_bset *s, struct frag_bset_node *at)
{
	frag_tree_remove(&s->tree, &at->by);
	frag_slab_free(nodes_of(s), at);
}

bool frag_bset_erase(struct frag_bset *s, uint64_t size, uint64_t addr)
{
	struct frag_tree_node *n = frag_tree_find(&s->tree, size, addr);

	if (n)
		frag_bset_erase_at(s, (struct frag_bset_node *)n);
	return n;
}

struct frag_bset_node *frag_bset_below(const struct frag_bset *s, uint64_t size, uint64_t addr)
{
	struct frag_tree_node *n = s->tree.root, *best = NULL;

	while (n) {
		if (n->key < size || (n->key == size && n->tie < addr)) {
			best = n;
			n = n->kid[1];
		} else {
			n = n->kid[0];
		}
	}
	return (struct frag_bset_node *)best;
}

int frag_bset_by_stream(struct frag_bset **sets, uint32_t *count, uint32_t stream,
			struct frag_slab *nodes)
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
