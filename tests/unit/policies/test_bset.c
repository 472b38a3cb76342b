/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered set against a sorted array, and its promise that a reserved insert never fails. */
#include "test.h"

#include "policies/common/bset.h"
#include "lib/random.h"

struct frag_bset_key {
	uint64_t addr, size;
};

/* ---- oracle: sorted array of keys --------------------------------------------- */

struct oracle {
	struct frag_bset_key *k;
	size_t n;
};

static size_t oracle_lower(const struct oracle *o, struct frag_bset_key key)
{
	size_t lo = 0, hi = o->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if ((FRAG_ORDER(o->k[mid].size, key.size) ?: FRAG_ORDER(o->k[mid].addr, key.addr)) <
		    0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int oracle_has(const struct oracle *o, size_t i, struct frag_bset_key key)
{
	return i < o->n && o->k[i].size == key.size && o->k[i].addr == key.addr;
}

static void oracle_insert(struct oracle *o, size_t i, struct frag_bset_key key)
{
	memmove(o->k + i + 1, o->k + i, (o->n++ - i) * sizeof(key));
	o->k[i] = key;
}

static void oracle_erase(struct oracle *o, size_t i)
{
	memmove(o->k + i, o->k + i + 1, (--o->n - i) * sizeof(o->k[0]));
}

static uint64_t rng_state;

/* A value that belongs to its key, so that a swapped one is seen. */
static void *value_of(struct frag_bset_key k)
{
	return (void *)(uintptr_t)(k.size * 1000003u + k.addr);
}

static void expect_pos(const struct oracle *o, size_t i, struct frag_bset_node *p)
{
	if (i >= o->n) {
		assert_null(p);
		return;
	}
	assert_non_null(p);
	assert_true(p->by.key == o->k[i].size);
	assert_true(p->by.tie == o->k[i].addr);
	assert_ptr_equal(p->value, value_of(o->k[i]));
}

static void expect_same(const struct oracle *o, const struct frag_bset *s)
{
	struct frag_bset_node *p = frag_bset_first(s);
	const char *bad = frag_bset_broken(s);
	size_t i;

	if (bad)
		fail_msg("%s", bad);
	assert_int_equal(frag_bset_count(s), o->n);
	for (i = 0; i < o->n; i++, p = frag_bset_next(s, p))
		expect_pos(o, i, p);
	assert_null(p);
	p = frag_bset_last(s);
	for (i = o->n; i--; p = frag_bset_prev(s, p))
		expect_pos(o, i, p);
	assert_null(p);
}

/* ---- random runs ---------------------------------------------------------------- */

static void one_change(struct oracle *o, struct frag_bset *s, struct frag_bset_key key, int grow)
{
	size_t i = oracle_lower(o, key);

	expect_pos(o, i, frag_bset_lower(s, key.size, key.addr));
	expect_pos(o, oracle_lower(o, (struct frag_bset_key){ 0, key.size }),
		   frag_bset_lower(s, key.size, 0));
	if (oracle_has(o, i, key)) {
		if (frag_random(&rng_state) & 1)
			assert_true(frag_bset_erase(s, key.size, key.addr));
		else
			frag_bset_erase_at(s, frag_bset_lower(s, key.size, key.addr));
		oracle_erase(o, i);
	} else if (grow) {
		frag_bset_insert(s, key.size, key.addr, value_of(key));
		oracle_insert(o, i, key);
	} else {
		assert_false(frag_bset_erase(s, key.size, key.addr));
		if (i < o->n) { /* take the neighbour instead */
			frag_bset_erase_at(s, frag_bset_lower(s, key.size, key.addr));
			oracle_erase(o, i);
		}
	}
}

static void random_run(size_t cap, size_t ops, uint64_t sizes, uint64_t addrs)
{
	struct oracle o = { calloc(cap + 1, sizeof(struct frag_bset_key)), 0 };
	struct frag_bset s;
	size_t op;
	int grow = 1;

	frag_bset_init(&s);
	assert_int_equal(frag_bset_reserve(&s, cap), 0);
	ops = test_rounds(ops);
	for (op = 0; op < ops; op++) {
		struct frag_bset_key key = { frag_random(&rng_state) % addrs * 512,
					     frag_random(&rng_state) % sizes * 512 };

		if (o.n == cap)
			grow = 0;
		else if (o.n <= cap / 16)
			grow = 1;
		one_change(&o, &s, key, grow || frag_random(&rng_state) % 4 == 0 ? o.n < cap : 0);
		if (op % (ops / 64 + 1) == 0)
			expect_same(&o, &s);
	}
	expect_same(&o, &s);
	while (o.n) { /* down to nothing, from a random end */
		int front = frag_random(&rng_state) & 1;

		frag_bset_erase_at(&s, front ? frag_bset_first(&s) : frag_bset_last(&s));
		oracle_erase(&o, front ? 0 : o.n - 1);
	}
	expect_same(&o, &s);
	frag_bset_release(&s);
	free(o.k);
}

TEST(test_random)
{
	rng_state = 20240607;
	random_run(1, 2000, 2, 2);
	random_run(33, 200000, 40, 3);
	random_run(400, 400000, 50, 20);
	random_run(400, 200000, 1, 1000);
	random_run(3000, 600000, 100000, 4);
	random_run(20000, 300000, 3000, 1000000);
}

/*
 * The promise: with host memory gone after the reservation, sets are filled, thinned to the
 * least fill and refilled in the ways that cost the most nodes.
 */
static void fill_thin_refill(struct frag_bset *s, size_t n)
{
	size_t i, step;

	for (step = 1; step <= 3; step++) {
		for (i = 0; i < n; i++)
			if (!frag_bset_erase(s, i * 512, 64))
				frag_bset_insert(s, i * 512, 64, NULL);
		for (i = 0; i < n; i++) /* now all there; thin out */
			if (frag_bset_lower(s, i * 512, 64) == NULL ||
			    frag_bset_lower(s, i * 512, 64)->by.key != i * 512)
				frag_bset_insert(s, i * 512, 64, NULL);
		assert_int_equal(frag_bset_count(s), n);
		for (i = 0; i < n; i++)
			if (i % 3)
				frag_bset_erase(s, i * 512, 64);
		/* all the room into one place */
		for (i = 0; frag_bset_count(s) < n; i++)
			frag_bset_insert(s, (n / 2) / 3 * 3 * 512 + 1, i, NULL);
		assert_null(frag_bset_broken(s));
		for (i = 0; frag_bset_count(s) > (n + 2) / 3; i++)
			frag_bset_erase(s, (n / 2) / 3 * 3 * 512 + 1, i);
	}
	while (frag_bset_count(s))
		frag_bset_erase_at(s, frag_bset_last(s));
}

TEST(test_reserve_is_enough)
{
	static const size_t sizes[] = { 1, 31, 32, 33, 64, 65, 100, 333, 1000, 5000, 40000 };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		FRAG_AUTO(frag_bset_release) struct frag_bset s = { 0 };

		frag_bset_init(&s);
		assert_int_equal(frag_bset_reserve(&s, sizes[i]), 0);
		frag_host_fail_after(1);
		fill_thin_refill(&s, sizes[i]);
		frag_host_fail_after(0);
		assert_null(frag_bset_broken(&s));
	}
}

/* Growing by one at a time asks the host only now and then, and a refusal leaves the set usable. */
TEST(test_reserve_fails_softly)
{
	FRAG_AUTO(frag_bset_release) struct frag_bset s = { 0 };
	size_t i = 0, refused = 0;

	frag_bset_init(&s);
	while (i < 20000) {
		frag_host_fail_after(i % 2 ? 0 : 1);
		if (frag_bset_reserve(&s, i + 1)) {
			refused++;
			frag_host_fail_after(0);
			assert_int_equal(frag_bset_reserve(&s, i + 1), 0);
		}
		frag_bset_insert(&s, i * 7919 % 20011, i, NULL);
		i++;
	}
	frag_host_fail_after(0);
	assert_in_range(refused, 1, 60);
	assert_null(frag_bset_broken(&s));
	assert_true((s.own.live_count + s.own.spare_count) * s.own.object_bytes / 20000 < 160);
}

TEST(test_shared_pool)
{
	FRAG_AUTO(frag_slab_release) struct frag_slab pool = { 0 };
	struct frag_bset s[70];
	const size_t rounds = test_rounds(400000);
	size_t i, n = 0;

	rng_state = 7;
	frag_bset_nodes_init(&pool);
	for (i = 0; i < 70; i++)
		frag_bset_init_shared(&s[i], &pool);
	assert_int_equal(frag_bset_nodes_reserve(&pool, 3000), 0);
	frag_host_fail_after(1);
	for (i = 0; i < rounds; i++) {
		struct frag_bset *t = &s[i / (rounds / 8) % 2 ? frag_random(&rng_state) % 70
							      : frag_random(&rng_state) % 3];
		uint64_t size = frag_random(&rng_state) % 4000;

		if (frag_bset_erase(t, size, 5))
			n--;
		else if (n < 3000 && ++n)
			frag_bset_insert(t, size, 5, NULL);
	}
	frag_host_fail_after(0);
	for (i = 0; i < 70; i++) {
		assert_null(frag_bset_broken(&s[i]));
		n -= frag_bset_count(&s[i]);
		frag_bset_release(&s[i]);
	}
	assert_int_equal(n, 0);
	assert_int_equal(frag_slab_live(&pool), 0);
}
