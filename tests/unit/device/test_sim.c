/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated card: recorded placement, a random oracle. Call by call: test_card.c. */
#include "test.h"

#include "must.h"

static frag_addr_t get(struct frag_device *d, uint64_t bytes)
{
	frag_addr_t a = 0;

	if (frag_dev_alloc(d, bytes, &a, &test_err))
		fail_msg("no %llu bytes", (ull)bytes);
	return a;
}

/* ---- what the real driver did ----------------------------------------------- */

struct recorded {
	uint16_t id;
	uint32_t bytes; /* 0 = free */
	frag_addr_t addr;
	uint16_t pages;
};
#include "h200_malloc.inc"

static void follow(const struct recorded *rows, size_t count)
{
	AUTO_DEVICE d = must_open_sim(NULL);
	frag_addr_t addr[1000];

	for (size_t i = 0; i < count; i++) {
		const struct recorded *r = &rows[i];

		if (r->bytes) {
			addr[r->id] = get(d, r->bytes);
			if (addr[r->id] != r->addr)
				fail_msg("row %zu: 0x%llx, recorded 0x%llx", i, (ull)addr[r->id],
					 (ull)r->addr);
		} else {
			assert_int_equal(frag_dev_free(d, addr[r->id], 1, NULL), 0);
		}
		assert_int_equal(d->reserved_bytes, r->pages * 2 * MIB);
	}
}

TEST(test_recorded)
{
	follow(small_history, FRAG_ARRAY_LEN(small_history));
	follow(mixed_history, FRAG_ARRAY_LEN(mixed_history));
}

/* ---- everything at once against a list -------------------------------------- */

enum kind { NONE, SEGMENT, RANGE, HANDLE };

struct thing {
	enum kind kind;
	frag_addr_t addr;
	uint64_t bytes, span, handle;
	bool mapped;
};

#define THINGS 300

/* Address space [addr, addr + span) of thing i meets no other. */
static void check_apart(const struct thing *t, int i)
{
	for (int k = 0; k < THINGS; k++) {
		if (k == i || (t[k].kind != SEGMENT && t[k].kind != RANGE))
			continue;
		if (t[i].addr < t[k].addr + t[k].span && t[k].addr < t[i].addr + t[i].span)
			fail_msg("%d (0x%llx) overlaps %d (0x%llx)", i, (ull)t[i].addr, k,
				 (ull)t[k].addr);
	}
}

static void make_thing(struct frag_device *d, struct thing *t, int i, uint64_t *seed)
{
	uint64_t pick = test_roll(seed) % 10;
	struct thing *x = &t[i];

	*x = (struct thing){ 0 };
	if (pick < 6) {
		static const uint64_t most[] = { 4096, 512 * 1024, 3 << 20, 90 << 20 };

		x->bytes = test_roll(seed) % most[test_roll(seed) % 4] + 1;
		if (frag_dev_alloc(d, x->bytes, &x->addr, NULL))
			return;
		x->kind = SEGMENT;
		assert_int_equal(x->addr % 512, 0);
		x->span = frag_round_up(x->bytes, 512);
		check_apart(t, i);
	} else if (pick < 8) {
		x->bytes = x->span = (test_roll(seed) % 40 + 1) * 2 * MIB;
		assert_int_equal(frag_dev_reserve(d, x->bytes, 0, &x->addr, NULL), 0);
		x->kind = RANGE;
		check_apart(t, i);
	} else {
		x->bytes = (test_roll(seed) % 20 + 1) * 2 * MIB;
		if (frag_dev_create(d, x->bytes, &x->handle, NULL))
			return;
		x->kind = HANDLE;
	}
}

static void drop_thing(struct frag_device *d, struct thing *x)
{
	if (x->kind == SEGMENT)
		assert_int_equal(frag_dev_free(d, x->addr, x->bytes, NULL), 0);
	else if (x->kind == RANGE)
		assert_int_equal(frag_dev_unreserve(d, x->addr, x->bytes, NULL), 0);
	else
		assert_int_equal(frag_dev_release(d, x->handle, x->bytes, NULL), 0);
	x->kind = NONE;
}

/* Reserved bytes by the list: handles, whole pages of big segments, pages shared by small ones. */
static uint64_t pages_of(const struct thing *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < THINGS; i++) {
		bool first = true;

		if (t[i].kind == HANDLE || (t[i].kind == SEGMENT && t[i].bytes > 2 * MIB))
			sum += frag_round_up(t[i].bytes, 2 * MIB);
		if (t[i].kind != SEGMENT || t[i].bytes > 2 * MIB)
			continue;
		for (int k = 0; k < i && first; k++)
			first = t[k].kind != SEGMENT || t[k].bytes > 2 * MIB ||
				t[k].addr / (2 * MIB) != t[i].addr / (2 * MIB);
		sum += first ? 2 * MIB : 0;
	}
	return sum;
}

TEST(test_random)
{
	struct thing t[THINGS] = { 0 };
	AUTO_DEVICE d = must_open_sim(
		&(struct frag_sim_config){ .total_bytes = 1600 * MIB, .context_bytes = 100 * MIB });
	uint64_t seed = 2026, refused = 0;

	for (int n = 0; n < 20000; n++) {
		int i = (int)(test_roll(&seed) % THINGS);

		if (t[i].kind == NONE) {
			make_thing(d, t, i, &seed);
			refused += t[i].kind == NONE;
		} else {
			drop_thing(d, &t[i]);
		}
		if (n % 16 == 0)
			assert_int_equal(d->reserved_bytes, pages_of(t));
		assert_true(d->reserved_bytes <= 1500 * MIB);
	}
	assert_true(refused > 50); /* the card was full at times */
	for (int i = 0; i < THINGS; i++) {
		if (t[i].kind != NONE)
			drop_thing(d, &t[i]);
	}
	assert_int_equal(d->reserved_bytes, 0);
	assert_int_equal(frag_dev_leaks(d), 0);
}

/* The same calls give the same addresses and times. */
TEST(test_same_twice)
{
	struct frag_device *d[2] = { must_open_sim(NULL), must_open_sim(NULL) };
	frag_addr_t a[2];
	uint64_t seed = 7;

	for (int n = 0; n < 1000; n++) {
		uint64_t bytes = test_roll(&seed) % (5 * MIB) + 1;

		for (int k = 0; k < 2; k++)
			a[k] = get(d[k], bytes);
		assert_int_equal(a[0], a[1]);
		for (int k = 0; k < 2 && n % 3; k++)
			assert_int_equal(frag_dev_free(d[k], a[k], bytes, NULL), 0);
	}
	assert_int_equal(d[0]->driver_ns, d[1]->driver_ns);
	frag_dev_close(d[0]);
	frag_dev_close(d[1]);
}
