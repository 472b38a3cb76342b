/* SPDX-License-Identifier: Apache-2.0 */
/* The containers of src/lib against plain arrays. */
#include "test.h"

#include <frag/error.h>

#include "lib/addr_map.h"
#include "lib/bisect.h"
#include "lib/bits.h"
#include "lib/grow.h"
#include "lib/slabs.h"
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
	assert_null(frag_tree_broken(&s->tree));
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
	assert_true(frag_tree_max(&s.tree) > 0);
	seed = 0;
	for (struct frag_tree_node *x = frag_tree_first(&s.tree); x; x = frag_tree_next(&s.tree, x))
		seed++;
	assert_int_equal(seed, s.tree.count);
}

/* A weight or key that is out of step with the tree is found. */
TEST(test_tree_damage)
{
	struct frag_tree t = { 0 };
	struct frag_tree_node node[10];

	assert_int_equal(frag_tree_max(&t), 0);
	for (unsigned i = 0; i < 10; i++) {
		node[i] = (struct frag_tree_node){ .key = 256 * i, .weight = 100 + i };
		frag_tree_insert(&t, &node[i]);
	}
	assert_null(frag_tree_broken(&t));
	assert_int_equal(frag_tree_max(&t), 109);
	node[4].weight = 1000;
	assert_non_null(frag_tree_broken(&t));
	node[4].weight = 104;
	node[4].key = 256 * 20;
	assert_non_null(frag_tree_broken(&t));
	node[4].key = 256 * 4;
	t.count++;
	assert_non_null(frag_tree_broken(&t));
}

TEST(test_grow)
{
	FRAG_AUTO_FREE uint64_t *list = NULL;
	size_t cap = 0;

	for (uint64_t i = 0; i < 5000; i++) {
		assert_int_equal(FRAG_GROW(list, i, cap, "numbers", &test_err), 0);
		list[i] = i;
	}
	assert_int_equal(frag_grow_to(&list, 20000, &cap, sizeof(*list), "numbers", &test_err), 0);
	assert_int_equal(cap, 20000);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(list[i], i);
	frag_host_fail_after(1);
	assert_int_equal(FRAG_GROW(list, 20000, cap, "numbers", &test_err), FRAG_ENOMEM);
	frag_host_fail_after(0);
	assert_non_null(strstr(test_err.msg, "numbers"));
	assert_int_equal(cap, 20000);
}

TEST(test_bisect)
{
	static const int sorted[] = { 1, 3, 3, 8, 20 };
	size_t at;

	for (int want = 0; want < 22; want++) {
		size_t first = 0;

		while (first < 5 && sorted[first] < want)
			first++;
		FRAG_BISECT(at, 0, 5, sorted[at] < want);
		assert_int_equal(at, first);
		FRAG_BISECT(at, 2, 2, sorted[at] < want);
		assert_int_equal(at, 2);
	}
}

TEST(test_bits)
{
	uint64_t words[64] = { 0 }, some = 0, seed = 9;
	bool in[4096] = { false };

	for (int n = 0; n < 20000; n++) {
		/* from dense to sparse */
		uint32_t i = (uint32_t)(test_roll(&seed) % (n < 10000 ? 300 : 4096)), want;

		in[i] = test_roll(&seed) % 20000 > (uint64_t)n;
		(in[i] ? frag_bits_add : frag_bits_drop)(words, &some, i);
		for (want = i; want < 4096 && !in[want]; want++)
			;
		assert_int_equal(frag_bits_from(words, some, i),
				 want < 4096 ? want : FRAG_BITS_NONE);
		for (want = 0; want < 4096 && !in[want]; want++)
			;
		if (want < 4096)
			assert_int_equal(frag_bits_first(words, some), want);
		assert_int_equal(!some, want == 4096);
	}
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

TEST(test_slab)
{
	struct frag_slab s;
	uint64_t *obj[3000];

	frag_slab_init(&s, 24);
	assert_true(!frag_slab_reserve(&s, 0));
	for (unsigned round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 3000; i++) {
			assert_true(round == 1 || !frag_slab_reserve(&s, 1));
			obj[i] = frag_slab_alloc(&s);
			assert_non_null(obj[i]);
			assert_int_equal((uintptr_t)obj[i] % 16, 0);
			obj[i][0] = obj[i][1] = obj[i][2] = i;
		}
		for (uint64_t i = 0; i < 3000; i++)
			assert_true(obj[i][0] == i && obj[i][1] == i && obj[i][2] == i);
		assert_int_equal(frag_slab_live(&s), 3000);
		for (int i = 0; i < 3000; i += 2)
			frag_slab_free(&s, obj[i]);
		for (int i = 1; i < 3000; i += 2)
			frag_slab_free(&s, obj[i]);
	}
	assert_int_equal(frag_slab_live(&s), 0);
	assert_ptr_equal(frag_slab_alloc(&s), obj[2999]); /* last in, first out */
	frag_slab_free(&s, obj[2999]);
	assert_true(!frag_slab_reserve(&s, 5000));
	assert_true(s.spare_count >= 5000);
	frag_host_fail_after(1);
	assert_false(!frag_slab_reserve(&s, 1000000));
	frag_host_fail_after(0);
	frag_slab_release(&s);
	assert_int_equal(s.spare_count + s.live_count, 0);
}

TEST(test_slab_without_memory)
{
	FRAG_AUTO(frag_slab_release) struct frag_slab s = { 0 };

	frag_slab_init(&s, 40);
	frag_host_fail_after(1);
	assert_null(frag_slab_alloc(&s));
	frag_host_fail_after(0);
	assert_non_null(frag_slab_alloc(&s));
	assert_int_equal(frag_slab_reserve(&s, 10000), 0);
	frag_host_fail_after(1);
	for (size_t i = 0; i < 10000; i++)
		assert_non_null(frag_slab_alloc(&s));
	frag_host_fail_after(0);
	assert_int_equal(frag_slab_live(&s), 10001);
}
