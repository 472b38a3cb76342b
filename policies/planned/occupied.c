/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges in use; see occupied.h. The tie of the start is 0, that of ranges 1. */
#include "occupied.h"

void occupied_init(struct occupied *o)
{
	*o = (struct occupied){ .start.node.weight = UINT64_MAX };
	frag_slab_init(&o->slab, sizeof(struct occupied_range));
	frag_tree_insert(&o->tree, &o->start.node);
}

void occupied_release(struct occupied *o)
{
	frag_slab_release(&o->slab);
	occupied_init(o);
}

/* The last range that begins at or below `at`. */
static struct occupied_range *last_to(const struct occupied *o, uint64_t at)
{
	return (struct occupied_range *)frag_tree_floor(&o->tree, at);
}

bool occupied_is_free(const struct occupied *o, uint64_t from, uint64_t to)
{
	return last_to(o, to - 1)->to <= from;
}

uint64_t occupied_find_gap(const struct occupied *o, uint64_t bytes, uint64_t limit)
{
	const struct occupied_range *r =
		(struct occupied_range *)frag_tree_first_fit(&o->tree, bytes);

	return r && r->to <= limit && limit - r->to >= bytes ? r->to : UINT64_MAX;
}

struct occupied_range *occupied_put(struct occupied *o, uint64_t from, uint64_t to)
{
	struct occupied_range *r = frag_slab_alloc(&o->slab), *before = last_to(o, from);
	uint64_t end = before->to + before->node.weight;

	if (!r)
		return NULL;
	*r = (struct occupied_range){ .node = { .key = from, .tie = 1, .weight = end - to },
				      .to = to };
	frag_tree_update(&o->tree, &before->node, before->node.key, from - before->to);
	frag_tree_insert(&o->tree, &r->node);
	return r;
}

void occupied_remove(struct occupied *o, struct occupied_range *r)
{
	struct occupied_range *before;
	uint64_t from = r->node.key, end = r->to + r->node.weight;

	frag_tree_remove(&o->tree, &r->node);
	before = last_to(o, from);
	frag_tree_update(&o->tree, &before->node, before->node.key, end - before->to);
	frag_slab_free(&o->slab, r);
}

const struct occupied_range *occupied_next(const struct occupied *o, const struct occupied_range *r)
{
	return (const struct occupied_range *)frag_tree_next(&o->tree,
							     r ? &r->node : &o->start.node);
}
