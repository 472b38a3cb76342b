/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered sets, slabs and hashes of the simulated card against plain arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "device/sim/sim_store.h"
#include "device/sim/sim_tree.h"

#define NODES 200

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

struct set {
	struct tree tree;
	struct tree_node nodes[NODES];
	bool in[NODES];
};

static bool before(const struct tree_node *n, uint64_t key, uint64_t tie)
{
	return n->key < key || (n->key == key && n->tie < tie);
}

/* Walks the list: the last node before (key, tie) + 1, the first one from it on, and fits. */
static void check_queries(const struct set *s, uint64_t key, uint64_t tie, uint64_t weight)
{
	const struct tree_node *floor = NULL, *ceil = NULL, *first = NULL, *last = NULL,
			       *find = NULL;

	for (int i = 0; i < NODES; i++) {
		const struct tree_node *n = &s->nodes[i];

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
	assert_ptr_equal(frag_simtree_find(&s->tree, key, tie), find);
	assert_ptr_equal(frag_simtree_floor(&s->tree, key), floor);
	assert_ptr_equal(frag_simtree_ceil(&s->tree, key, tie), ceil);
	assert_ptr_equal(frag_simtree_first_fit(&s->tree, weight), first);
	assert_ptr_equal(frag_simtree_last_fit(&s->tree, weight), last);
}

static void test_tree(void **state)
{
	static struct set s;
	uint64_t seed = 11;

	(void)state;
	check_queries(&s, 5, 5, 1);
	for (int n = 0; n < 20000; n++) {
		int i = (int)(next_random(&seed) % NODES);
		struct tree_node *x = &s.nodes[i];

		if (!s.in[i]) {
			x->key = next_random(&seed) % 50;
			x->tie = (uint64_t)i; /* unique */
			x->weight = next_random(&seed) % 1000 + 1;
			frag_simtree_insert(&s.tree, x);
			s.in[i] = true;
		} else if (next_random(&seed) % 3) {
			frag_simtree_remove(&s.tree, x);
			s.in[i] = false;
		} else {
			frag_simtree_update(&s.tree, x, x->key, next_random(&seed) % 1000 + 1);
		}
		check_queries(&s, next_random(&seed) % 52, next_random(&seed) % NODES,
			      next_random(&seed) % 1100 + 1);
	}
	seed = 0;
	for (struct tree_node *x = frag_simtree_first(&s.tree); x;
	     x = frag_simtree_next(&s.tree, x))
		seed++;
	assert_int_equal(seed, s.tree.count);
}

static void test_map(void **state)
{
	static uint64_t want[500];
	static char values[500];
	struct addr_map m = { 0 };
	uint64_t seed = 5, count = 0;

	(void)state;
	assert_null(frag_simmap_find(&m, 7));
	assert_null(frag_simmap_take(&m, 7));
	for (int n = 0; n < 50000; n++) {
		size_t i = next_random(&seed) % 500;
		uint64_t key = (i + 1) * 512; /* like addresses */

		assert_true(frag_simmap_reserve(&m));
		if (!want[i]) {
			frag_simmap_put(&m, key, &values[i]);
			want[i] = 1;
			count++;
		} else {
			assert_ptr_equal(frag_simmap_take(&m, key), &values[i]);
			want[i] = 0;
			count--;
		}
		i = next_random(&seed) % 500;
		assert_ptr_equal(frag_simmap_find(&m, (i + 1) * 512), want[i] ? &values[i] : NULL);
		assert_int_equal(m.count, count);
	}
	assert_null(frag_simmap_find(&m, 0));
	frag_simmap_release(&m);
}

static void test_slab(void **state)
{
	struct slab s;
	uint64_t *obj[1000];

	(void)state;
	frag_simslab_init(&s, 24);
	assert_true(frag_simslab_reserve(&s, 0));
	for (uint64_t i = 0; i < 1000; i++) {
		assert_true(frag_simslab_reserve(&s, 1));
		obj[i] = frag_simslab_take(&s);
		obj[i][0] = obj[i][1] = obj[i][2] = i;
	}
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(obj[i][0] == i && obj[i][1] == i && obj[i][2] == i);
	for (int i = 0; i < 1000; i += 2)
		frag_simslab_give(&s, obj[i]);
	assert_true(frag_simslab_reserve(&s, 5000));
	assert_true(s.free_count >= 5000);
	frag_host_fail_after(1);
	assert_false(frag_simslab_reserve(&s, 1000000));
	frag_host_fail_after(0);
	frag_simslab_release(&s);
	assert_int_equal(s.total_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_slab),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
