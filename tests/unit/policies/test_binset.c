/* SPDX-License-Identifier: Apache-2.0 */
/* The binned set against a sorted array: order, search, crowded bins, reserve. */
#include <binset.h>

#include "test.h"

#include "lib/random.h"

#define NODES 4000

static uint64_t random_state = 88172645463325252ull;

FRAG_COMPARE(by_key, struct frag_bin_node *,
	     FRAG_ORDER(frag_bin_before(*y, *x), frag_bin_before(*x, *y)))

static void same_as_sorted(const struct frag_binset *s, struct frag_bin_node *nodes, const bool *in)
{
	static struct frag_bin_node *sorted[NODES];
	const struct frag_bin_node *at = frag_binset_first(s);
	size_t n = 0;

	for (size_t i = 0; i < NODES; i++)
		if (in[i])
			sorted[n++] = &nodes[i];
	qsort(sorted, n, sizeof(sorted[0]), by_key);
	assert_int_equal(s->count, n);
	for (size_t i = 0; i < n; i++, at = frag_binset_next(s, at))
		assert_ptr_equal(at, sorted[i]);
	assert_null(at);
	assert_ptr_equal(frag_binset_last(s), n ? sorted[n - 1] : NULL);
	for (int k = 0; k < 200; k++) {
		uint64_t size =
			frag_random(&random_state) >> (frag_random(&random_state) % 40 + 16);
		size_t i = 0;

		while (i < n && sorted[i]->size < size)
			i++;
		assert_ptr_equal(frag_binset_lower(s, size), i < n ? sorted[i] : NULL);
	}
}

/* A little or a lot, at the low end or at the high one. */
static void rekey(struct frag_binset *s, struct frag_bin_node *n, uint64_t rank, int k)
{
	uint64_t by = frag_random(&random_state) % n->size >> k % 8;

	frag_binset_rekey(s, n, rank + (k & 1 ? by % 4096 : 0),
			  k & 2 ? n->size - by : n->size + by);
}

static void random_changes(uint64_t mask, unsigned shift, bool slim)
{
	static struct frag_bin_node nodes[NODES];
	bool in[NODES] = { 0 };
	FRAG_AUTO(frag_slab_release) struct frag_slab shared = { 0 };
	FRAG_AUTO(frag_binset_release) struct frag_binset s = { 0 };

	frag_bset_nodes_init(&shared);
	SUCCEEDS(frag_binset_init(&s, &shared, slim));
	SUCCEEDS(frag_bset_nodes_reserve(&shared, NODES));
	/* from here on an insert must do without memory */
	frag_host_fail_after(1);
	for (int round = 0; round < 40; round++) {
		for (int k = 0; k < 1000; k++) {
			size_t i = frag_random(&random_state) % NODES;

			if (in[i] && frag_random(&random_state) & 1) {
				rekey(&s, &nodes[i], i * 4096, k);
				continue;
			}
			if (in[i]) {
				frag_binset_erase(&s, &nodes[i]);
			} else {
				nodes[i].size = ((frag_random(&random_state) & mask) + 1) << shift;
				nodes[i].rank = i * 4096;
				frag_binset_insert(&s, &nodes[i]);
			}
			in[i] = !in[i];
		}
		same_as_sorted(&s, nodes, in);
	}
	for (size_t i = 0; i < NODES; i++)
		if (in[i])
			frag_binset_erase(&s, &nodes[i]);
	assert_int_equal(s.count, 0);
	assert_null(frag_binset_first(&s));
	assert_null(frag_binset_lower(&s, 1));
	frag_host_fail_after(0);
}

/* One size, few, many, any. */
TEST(changes)
{
	static const struct {
		uint64_t mask; /* how many different sizes */
		unsigned shift;
	} rows[] = { { 0, 9 }, { 7, 12 }, { (1 << 22) - 1, 9 }, { (1ull << 46) - 1, 0 } };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		random_changes(rows[i].mask, rows[i].shift, false);
		random_changes(rows[i].mask, rows[i].shift, true);
	}
}

/* Each in front of the others of its bin: no insert takes a step, so only searches can notice
 * how long the list is. */
TEST(falling)
{
	static struct frag_bin_node nodes[NODES];
	static bool in[NODES];
	FRAG_AUTO(frag_slab_release) struct frag_slab shared = { 0 };
	FRAG_AUTO(frag_binset_release) struct frag_binset s = { 0 };

	frag_bset_nodes_init(&shared);
	assert_int_equal(frag_binset_init(&s, &shared, false), 0);
	assert_int_equal(frag_bset_nodes_reserve(&shared, NODES), 0);
	for (size_t i = 0; i < NODES; i++) {
		nodes[i] = (struct frag_bin_node){ .size = 100 * 1024, .rank = (NODES - i) * 4096 };
		frag_binset_insert(&s, &nodes[i]);
		in[i] = true;
	}
	assert_ptr_equal(s.heads[nodes[0].bin], &nodes[NODES - 1]);
	assert_ptr_equal(frag_binset_lower(&s, 100 * 1024), &nodes[NODES - 1]);
	assert_ptr_not_equal(s.heads[nodes[0].bin], FRAG_BINSET_TREE);
	assert_null(frag_binset_lower(&s, 100 * 1024 + 512));
	assert_ptr_equal(s.heads[nodes[0].bin], FRAG_BINSET_TREE);
	same_as_sorted(&s, nodes, in);
	for (size_t i = 0; i < NODES; i++)
		frag_binset_erase(&s, &nodes[i]);
	assert_null(s.heads[nodes[0].bin]);
}
