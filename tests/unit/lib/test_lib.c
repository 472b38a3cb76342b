/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered set and the map of src/lib against plain arrays. */
#include "test.h"

#include "lib/addr_map.h"
#include "lib/tree.h"

#define NODES 200

struct set {
	struct frag_tree tree;
	struct frag_tree_node nodes[NODES];
	bool in[NODES];
};

static bool before(const struct frag_tree_node *n, uint64_t key, uint64_t tie)
{
	return n->key < key || (n->key == key && n->tie < tie);
}

/* Walks the list: the last node before (key, tie) + 1, the first one from it on, and fits. */
static void check_queries(const struct set *s, uint64_t key, uint64_t tie, uint64_t weight)
{
	const struct frag_tree_node *floor = NULL, *ceil = NULL, *first = NULL, *last = NULL,
				    *find = NULL;

	for (int i = 0; i < NODES; i++) {
		const struct frag_tree_node *n = &s->nodes[i];

		if (!s->in[i])
			continue;
		if (n->key == key && n->tie == tie)
			find = n;
		if (n->key <= key && (!floor || before(floor, n->key, n->tie)))
			floor = n;
		if (!before(n, key, tie) && (!ceil || before(n, ceil->key, ceil->tie)))
			ceil = n;
		if (n->weight < weight)
			continue;
		if (!first || before(n, first->key, first->tie))
			first = n;
		if (!last || before(last, n->key, n->tie))
			last = n;
	}
	assert_ptr_equal(frag_tree_find(&s->tree, key, tie), find);
	assert_ptr_equal(frag_tree_floor(&s->tree, key), floor);
	assert_ptr_equal(frag_tree_ceil(&s->tree, key, tie), ceil);
	assert_ptr_equal(frag_tree_first_fit(&s->tree, weight), first);
	assert_ptr_equal(frag_tree_last_fit(&s->tree, weight), last);
}

/* Is the tree a heap by priority, and so as deep as chance makes it? */
static bool is_heap(const struct frag_tree_node *n)
{
	for (int side = 0; n && side < 2; side++)
		if (n->kid[side] && (n->kid[side]->prio > n->prio || !is_heap(n->kid[side])))
			return false;
	return true;
}

TEST(test_tree)
{
	static struct set s;
	uint64_t seed = 11;

	check_queries(&s, 5, 5, 1);
	for (int n = 0; n < 20000; n++) {
		int i = (int)(test_roll(&seed) % NODES);
		struct frag_tree_node *x = &s.nodes[i];

		if (!s.in[i]) {
			x->key = test_roll(&seed) % 50;
			x->tie = (uint64_t)i; /* unique */
			x->weight = test_roll(&seed) % 1000 + 1;
			frag_tree_insert(&s.tree, x);
			s.in[i] = true;
		} else if (test_roll(&seed) % 3) {
			frag_tree_remove(&s.tree, x);
			s.in[i] = false;
		} else {
			frag_tree_update(&s.tree, x, x->key, test_roll(&seed) % 1000 + 1);
		}
		check_queries(&s, test_roll(&seed) % 52, test_roll(&seed) % NODES,
			      test_roll(&seed) % 1100 + 1);
	}
	assert_true(frag_tree_max(&s.tree) > 0 && is_heap(s.tree.root));
	seed = 0;
	for (struct frag_tree_node *x = frag_tree_first(&s.tree); x; x = frag_tree_next(&s.tree, x))
		seed++;
	assert_int_equal(seed, s.tree.count);
}

TEST(test_map)
{
	static uint64_t want[500];
	static char values[500];
	FRAG_AUTO(frag_addr_map_release) struct frag_addr_map m = { 0 };
	uint64_t seed = 5, count = 0;

	assert_null(frag_addr_map_get(&m, 7));
	assert_null(frag_addr_map_take(&m, 7));
	for (int n = 0; n < 50000; n++) {
		size_t i = test_roll(&seed) % 500;
		uint64_t key = (i + 1) * 512; /* like addresses */

		assert_true(!frag_addr_map_reserve(&m));
		if (!want[i]) {
			frag_addr_map_put(&m, key, &values[i]);
			want[i] = 1;
			count++;
		} else {
			assert_ptr_equal(frag_addr_map_take(&m, key), &values[i]);
			want[i] = 0;
			count--;
		}
		i = test_roll(&seed) % 500;
		assert_ptr_equal(frag_addr_map_get(&m, (i + 1) * 512), want[i] ? &values[i] : NULL);
		assert_int_equal(m.count, count);
	}
	assert_null(frag_addr_map_get(&m, 0));
}
