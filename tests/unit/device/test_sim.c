/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated card: capacity, recorded placement, the place hook, a random oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "device/sim/cost.h"

#define MIB FRAG_MIB
#define CARD (150109880320ull - 552402944ull)
#define CONTEXT_BASE 0x7f0000000000ull

static struct frag_device *open_card(uint64_t total, uint64_t context)
{
	struct frag_sim_config cfg = { .total_bytes = total, .context_bytes = context };
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	return d;
}

static struct frag_device *open_h200(void)
{
	return open_card(0, UINT64_MAX);
}

static frag_addr_t get(struct frag_device *d, uint64_t bytes)
{
	frag_addr_t a = 0;
	struct frag_err err;

	if (frag_dev_alloc(d, bytes, &a, &err))
		fail_msg("no %llu bytes", (unsigned long long)bytes);
	return a;
}

/* The call has to fail as a driver failure whose message has `word` in it. */
#define FAILS(call, word) \
	do { \
		struct frag_err err = { 0 }; \
		assert_int_equal((call), FRAG_EDEVICE); \
		if (!strstr(err.msg, word)) \
			fail_msg("no '%s' in: %s", word, err.msg); \
	} while (0)

/* ---- opening, capacity ------------------------------------------------------ */

static void test_open(void **state)
{
	struct frag_sim_config cfg = { .total_bytes = 100, .context_bytes = 101 };
	struct frag_device_info info;
	struct frag_device *d;
	struct frag_err err;

	(void)state;
	assert_int_equal(frag_sim_open(&cfg, &d, &err), FRAG_EUSAGE);
	assert_non_null(strstr(err.msg, "context of 101 bytes"));
	d = open_h200();
	frag_dev_info(d, &info);
	assert_string_equal(info.name, "sim");
	assert_int_equal(info.total_bytes, 150109880320ull);
	assert_int_equal(info.context_bytes, 552402944ull);
	assert_int_equal(info.granule_bytes, 2 * MIB);
	assert_true(info.modelled);
	assert_int_equal(info.can,
			 FRAG_CAN_MALLOC | FRAG_CAN_VMM | FRAG_CAN_ASYNC | FRAG_CAN_MANAGED);
	frag_dev_close(d);
}

/* A card of ten pages and three bytes, of which the context takes two: ten pages and one byte. */
static void test_capacity(void **state)
{
	struct frag_device *d = open_card(20 * MIB + 3, 2);
	uint64_t h, free_bytes, total;
	frag_addr_t a[10], b;

	(void)state;
	assert_int_equal(frag_dev_alloc(d, 20 * MIB + 2, &b, NULL), FRAG_OOM);
	assert_int_equal(frag_dev_alloc(d, 20 * MIB + 1, &b, NULL),
			 FRAG_OOM); /* needs eleven pages */
	for (int i = 0; i < 9; i++)
		a[i] = get(d, 2 * MIB);
	assert_int_equal(frag_dev_alloc(d, 2 * MIB + 1, &b, NULL), FRAG_OOM);
	assert_int_equal(frag_dev_create(d, 4 * MIB, &h, NULL), FRAG_OOM);
	assert_int_equal(frag_dev_create(d, 2 * MIB, &h, NULL), 0);
	assert_int_equal(frag_dev_alloc(d, 1, &b, NULL), FRAG_OOM);
	assert_int_equal(frag_dev_mem_info(d, &free_bytes, &total, NULL), 0);
	assert_int_equal(free_bytes, 1);
	assert_int_equal(total, 20 * MIB + 3);
	assert_int_equal(frag_dev_release(d, h, 2 * MIB, NULL), 0);
	a[9] = get(d, 1);
	assert_int_equal(d->reserved_bytes, 20 * MIB);
	for (int i = 0; i < 10; i++)
		assert_int_equal(frag_dev_free(d, a[i], 1, NULL), 0);
	assert_int_equal(d->reserved_bytes, 0);
	a[0] = get(d, 20 * MIB);
	assert_int_equal(frag_dev_free(d, a[0], 1, NULL), 0);
	assert_int_equal(d->reserved_peak_bytes, 20 * MIB);
	frag_dev_close(d);
}

static void test_huge(void **state)
{
	struct frag_device *d = open_h200();
	uint64_t sizes[] = { UINT64_MAX, UINT64_MAX - 511, UINT64_MAX - 2 * MIB, 1ull << 63,
			     CARD + 1 };
	frag_addr_t a;
	uint64_t h;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(sizes); i++) {
		uint64_t pages = frag_round_down(sizes[i], 2 * MIB);

		assert_int_equal(frag_dev_alloc(d, sizes[i], &a, NULL), FRAG_OOM);
		if (pages >= CARD)
			assert_int_equal(frag_dev_create(d, pages, &h, NULL), FRAG_OOM);
	}
	assert_int_equal(frag_dev_reserve(d, 1ull << 60, 0, &a, NULL), FRAG_OOM);
	assert_int_equal(frag_dev_reserve(d, frag_round_down(UINT64_MAX, 2 * MIB), 0, &a, NULL),
			 FRAG_OOM);
	assert_int_equal(d->reserved_bytes, 0);
	frag_dev_close(d);
}

static void test_bad_free(void **state)
{
	struct frag_device *d = open_h200();
	frag_addr_t small, big;

	(void)state;
	small = get(d, 1000);
	big = get(d, 6 * MIB);
	FAILS(frag_dev_free(d, 0, 1, &err), "cudaFree: 0x0");
	FAILS(frag_dev_free(d, small + 512, 1, &err), "not the start of a live segment");
	FAILS(frag_dev_free(d, big + 2 * MIB, 1, &err), "cudaFree");
	assert_int_equal(frag_dev_free(d, big, 6 * MIB, NULL), 0);
	FAILS(frag_dev_free(d, big, 6 * MIB, &err), "cudaFree");
	assert_int_equal(frag_dev_free(d, small, 1000, NULL), 0);
	FAILS(frag_dev_free(d, small, 1000, &err), "cudaFree");
	frag_dev_close(d);
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
	struct frag_device *d = open_h200();
	frag_addr_t addr[1000];

	for (size_t i = 0; i < count; i++) {
		const struct recorded *r = &rows[i];

		if (r->bytes) {
			addr[r->id] = get(d, r->bytes);
			if (addr[r->id] != r->addr)
				fail_msg("row %zu: 0x%llx, recorded 0x%llx", i,
					 (unsigned long long)addr[r->id],
					 (unsigned long long)r->addr);
		} else {
			assert_int_equal(frag_dev_free(d, addr[r->id], 1, NULL), 0);
		}
		assert_int_equal(d->reserved_bytes, r->pages * 2 * MIB);
	}
	frag_dev_close(d);
}

static void test_recorded(void **state)
{
	(void)state;
	follow(small_history, FRAG_ARRAY_LEN(small_history));
	follow(mixed_history, FRAG_ARRAY_LEN(mixed_history));
}

/* The example of the fitted rules, and fresh segments in steps of 32 MiB downwards. */
static void test_placement(void **state)
{
	struct frag_device *d = open_h200();
	frag_addr_t first, a, b;

	(void)state;
	first = get(d, 126 * MIB);
	assert_int_equal(first, CONTEXT_BASE - 608 * MIB);
	assert_int_equal(get(d, 20 * MIB), CONTEXT_BASE + 8 * MIB);
	assert_int_equal(get(d, 20 * MIB), first - 32 * MIB);
	a = get(d, 40 * MIB);
	assert_int_equal(a, first - 96 * MIB);
	/* the newest chunk has a tail of 24 MiB, filled upwards */
	assert_int_equal(get(d, 2 * MIB), a + 40 * MIB);
	assert_int_equal(get(d, 4 * MIB), a + 42 * MIB);
	b = get(d, 4096 * MIB);
	assert_int_equal(b, a - 4096 * MIB);
	/* an emptied chunk goes back and is used again only if there is room to align */
	assert_int_equal(frag_dev_free(d, b, 1, NULL), 0);
	assert_int_equal(get(d, 64 * MIB), a - 64 * MIB);
	frag_dev_close(d);
}

/* A program's first kernel leaves a hole of 414 MiB, filled upwards; what a library holds comes out of it, too. */
static void test_first_kernel(void **state)
{
	struct frag_device *d = open_h200();
	frag_addr_t first, hole;

	(void)state;
	assert_int_equal(get(d, 2 * MIB), CONTEXT_BASE - 66 * MIB);
	first = get(d, 40 * MIB);
	assert_true(first < CONTEXT_BASE - 480 * MIB);
	frag_sim_launched(d);
	hole = get(d, 26 * MIB);
	assert_int_equal(hole, CONTEXT_BASE - 480 * MIB);
	frag_sim_hold(d, 64 * MIB);
	frag_sim_launched(d); /* once */
	assert_int_equal(get(d, 300 * MIB), hole + 90 * MIB);
	assert_int_equal(get(d, 64 * MIB), first - 800 * MIB - 64 * MIB);
	frag_dev_close(d);
}

/* A gap of exactly the chunk is not used, one of 32 MiB more is, at its top. */
static void test_gap(void **state)
{
	struct frag_device *d = open_h200();
	frag_addr_t a, b, c, low;

	(void)state;
	a = get(d, 64 * MIB);
	b = get(d, 96 * MIB);
	c = get(d, 32 * MIB);
	assert_int_equal(b, a - 96 * MIB);
	assert_int_equal(c, b - 32 * MIB);
	assert_int_equal(frag_dev_free(d, b, 1, NULL), 0);
	low = get(d, 96 * MIB);
	assert_int_equal(low, c - 96 * MIB);
	assert_int_equal(get(d, 64 * MIB), a - 64 * MIB);
	frag_dev_close(d);
}

/* ---- the place hook --------------------------------------------------------- */

struct answers {
	int result[8];
	frag_addr_t addr[8];
	enum frag_call kind[8];
	uint64_t bytes[8];
	unsigned count;
};

static int answer(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct answers *a = ctx;
	unsigned i = a->count++;

	assert_true(i < 8);
	a->kind[i] = kind;
	a->bytes[i] = bytes;
	if (a->result[i] >= 0 && a->result[i] != FRAG_OOM && kind != FRAG_CALL_CREATE)
		*addr = a->addr[i];
	return a->result[i];
}

static struct frag_device *open_hooked(struct answers *a)
{
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX,
				       .place = answer,
				       .place_ctx = a };
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	return d;
}

static void test_hook_segments(void **state)
{
	const frag_addr_t at = 0x7eff00000000ull;
	struct answers an = {
		.result = { 0, FRAG_OOM, -1, 0, 0, 0 },
		.addr = { at, 0, 0, at + 2 * MIB, at + 10 * MIB, at + 4 * MIB },
	};
	struct frag_device *d = open_hooked(&an);
	frag_addr_t a, b, own, c, e;

	(void)state;
	assert_int_equal(frag_dev_alloc(d, 20 * MIB, &a, NULL), 0);
	assert_int_equal(a, at);
	assert_int_equal(frag_dev_alloc(d, 2 * MIB, &b, NULL), FRAG_OOM);
	assert_int_equal(d->stat[FRAG_CALL_MALLOC].failed, 1);
	/* own rule: what is given takes no address space beyond itself */
	assert_int_equal(frag_dev_alloc(d, 4 * MIB, &own, NULL), 0);
	assert_int_equal(own, at - 32 * MIB);
	FAILS(frag_dev_alloc(d, 2 * MIB, &c, &err), "overlaps live memory");
	assert_int_equal(d->reserved_bytes, 24 * MIB);
	FAILS(frag_dev_alloc(d, 30 * MIB, &c, &err), "overlaps live memory");
	assert_int_equal(frag_dev_free(d, a, 1, NULL), 0);
	assert_int_equal(frag_dev_alloc(d, 2 * MIB, &e, NULL), 0);
	assert_int_equal(e, at + 4 * MIB);
	assert_int_equal(an.kind[1], FRAG_CALL_MALLOC);
	assert_int_equal(an.bytes[1], 2 * MIB);
	assert_int_equal(frag_dev_free(d, e, 1, NULL), 0);
	assert_int_equal(frag_dev_free(d, own, 1, NULL), 0);
	assert_int_equal(d->reserved_bytes, 0);
	assert_int_equal(frag_dev_leaks(d), 0);
	frag_dev_close(d);
}

/* A wish is met where it is free and continued by the driver's rule; else the rule decides. */
static void test_hook_wish(void **state)
{
	const frag_addr_t at = 0x7eff00000000ull;
	struct answers an = {
		.result = { FRAG_PLACE_WISH, FRAG_PLACE_WISH, FRAG_PLACE_WISH, FRAG_PLACE_WISH,
			    FRAG_PLACE_WISH, FRAG_PLACE_WISH },
		.addr = { at, at + 10 * MIB, 0, 0x402000000ull, 0x402000000ull + 2 * MIB, 0 },
	};
	struct frag_device *d = open_hooked(&an);
	frag_addr_t a, b, c, r, q;
	uint64_t h;

	(void)state;
	assert_int_equal(frag_dev_alloc(d, 20 * MIB, &a, NULL), 0);
	assert_int_equal(a, at);
	assert_int_equal(frag_dev_alloc(d, 4 * MIB, &b, NULL), 0);
	assert_int_equal(b, at + 20 * MIB); /* taken: the tail of the newest chunk */
	assert_int_equal(frag_dev_alloc(d, 40 * MIB, &c, NULL), 0);
	assert_int_equal(c, at - 64 * MIB); /* no address at all */
	assert_int_equal(frag_dev_reserve(d, 64 * MIB, 0, &r, NULL), 0);
	assert_int_equal(r, 0x402000000ull);
	assert_int_equal(frag_dev_reserve(d, 64 * MIB, 0, &q, NULL), 0);
	assert_int_equal(q, 0x302000000ull);
	assert_int_equal(frag_dev_create(d, 2 * MIB, &h, NULL), 0);
	assert_int_equal(d->reserved_bytes, 66 * MIB);
	frag_dev_close(d);
}

/* Claims above everything, one inside the 32 MiB of another, and a small request. */
static void test_hook_far(void **state)
{
	const frag_addr_t far = 0x7fb400000000ull;
	struct answers an = { .addr = { far + 4 * MIB, far, far + 24 * MIB, far + 2 * MIB,
					far - 2 * MIB } };
	struct frag_device *d = open_hooked(&an);
	frag_addr_t a[5];

	(void)state;
	assert_int_equal(frag_dev_alloc(d, 20 * MIB, &a[0], NULL), 0);
	assert_int_equal(frag_dev_alloc(d, 2 * MIB, &a[1], NULL), 0);
	assert_int_equal(frag_dev_alloc(d, 40 * MIB, &a[2], NULL), 0);
	assert_int_equal(frag_dev_alloc(d, 1000, &a[3], NULL), 0);
	assert_int_equal(a[3], far + 2 * MIB);
	assert_int_equal(frag_dev_alloc(d, 2 * MIB, &a[4], NULL), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(frag_dev_free(d, a[i], 1, NULL), 0);
	assert_int_equal(d->reserved_bytes, 0);
	frag_dev_close(d);
}

/* Small segments at given addresses share the page that they lie in. */
static void test_hook_small(void **state)
{
	const frag_addr_t page = 0x7fb400000000ull;
	struct answers an = { .addr = { page + 512, page + 4096, page + 2 * MIB, page + 4096,
					page + MIB } };
	struct frag_device *d = open_hooked(&an);
	frag_addr_t a[4];

	(void)state;
	assert_int_equal(frag_dev_alloc(d, 512, &a[0], NULL), 0);
	assert_int_equal(a[0], page + 512);
	assert_int_equal(d->reserved_bytes, 2 * MIB);
	assert_int_equal(frag_dev_alloc(d, 700000, &a[1], NULL), 0);
	assert_int_equal(a[1], page + 4096);
	assert_int_equal(d->reserved_bytes, 2 * MIB);
	assert_int_equal(frag_dev_alloc(d, 512, &a[2], NULL), 0);
	assert_int_equal(d->reserved_bytes, 4 * MIB);
	FAILS(frag_dev_alloc(d, 512, &a[3], &err), "is that of a live segment");
	assert_int_equal(frag_dev_free(d, a[1], 1, NULL), 0);
	assert_int_equal(d->reserved_bytes, 4 * MIB);
	assert_int_equal(frag_dev_free(d, a[0], 1, NULL), 0);
	assert_int_equal(d->reserved_bytes, 2 * MIB);
	assert_int_equal(frag_dev_free(d, a[2], 1, NULL), 0);
	assert_int_equal(d->reserved_bytes, 0);
	assert_int_equal(frag_dev_leaks(d), 0);
	frag_dev_close(d);
}

/* What is given back can be given out again when it has been cleared. */
static void test_clearing(void **state)
{
	struct frag_sim_config cfg = { .total_bytes = 10 * FRAG_GIB, .work_idle = true };
	struct frag_device *d = NULL;
	uint64_t plain, again, rate;
	frag_addr_t a, b;

	(void)state;
	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	rate = frag_cost_ns(frag_cost_builtin(), FRAG_COST_CLEAR, FRAG_GIB);
	assert_int_equal(frag_dev_alloc(d, 6 * FRAG_GIB, &a, NULL), 0);
	plain = d->driver_ns;
	assert_int_equal(frag_dev_free(d, a, 1, NULL), 0);
	again = d->driver_ns;
	/* 4 GiB are clear, and what was cleared while the free ran */
	assert_int_equal(frag_dev_alloc(d, 6 * FRAG_GIB, &a, NULL), 0);
	again = d->driver_ns - again;
	assert_in_range(again, plain + rate, plain + 2 * rate);
	/* ready: as the first time */
	assert_int_equal(frag_dev_free(d, a, 1, NULL), 0);
	assert_int_equal(frag_dev_make_ready(d, 6 * FRAG_GIB, NULL), 0);
	again = d->driver_ns;
	assert_int_equal(frag_dev_alloc(d, 6 * FRAG_GIB, &b, NULL), 0);
	assert_int_equal(d->driver_ns - again, plain);
	frag_dev_close(d);
	/* recorded time clears, too */
	cfg.work_idle = false;
	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	assert_int_equal(frag_dev_alloc(d, 6 * FRAG_GIB, &a, NULL), 0);
	assert_int_equal(frag_dev_free(d, a, 1, NULL), 0);
	d->now_ns = 1000000000;
	again = d->driver_ns;
	assert_int_equal(frag_dev_alloc(d, 6 * FRAG_GIB, &a, NULL), 0);
	assert_int_equal(d->driver_ns - again, plain);
	frag_dev_close(d);
}

static void test_hook_vmm(void **state)
{
	const frag_addr_t at = 0x402000000ull;
	struct answers an = { .result = { 0, FRAG_OOM, 0, FRAG_OOM, -1, 0 },
			      .addr = { at, 0, 0, 0, 0, at } };
	struct frag_device *d = open_hooked(&an);
	frag_addr_t r, own;
	uint64_t h;

	(void)state;
	assert_int_equal(frag_dev_reserve(d, 64 * MIB, 0, &r, NULL), 0);
	assert_int_equal(r, at);
	assert_int_equal(frag_dev_create(d, 2 * MIB, &h, NULL), FRAG_OOM);
	assert_int_equal(frag_dev_create(d, 2 * MIB, &h, NULL), 0);
	assert_int_equal(frag_dev_reserve(d, 2 * MIB, 0, &own, NULL), FRAG_OOM);
	/* below the claimed one is room */
	assert_int_equal(frag_dev_reserve(d, 2 * MIB, 0, &own, NULL), 0);
	assert_int_equal(own, 0x302000000ull);
	FAILS(frag_dev_reserve(d, 2 * MIB, 0, &own, &err), "cuMemAddressReserve: 0x402000000");
	assert_int_equal(an.kind[1], FRAG_CALL_CREATE);
	assert_int_equal(an.kind[0], FRAG_CALL_RESERVE);
	frag_dev_close(d);
}

/* ---- everything at once against a list -------------------------------------- */

enum kind { NONE, SEGMENT, RANGE, HANDLE };

struct thing {
	enum kind kind;
	frag_addr_t addr;
	uint64_t bytes, span, handle;
	bool mapped;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

#define THINGS 300

/* Address space [addr, addr + span) of thing i meets no other. */
static void check_apart(const struct thing *t, int i)
{
	for (int k = 0; k < THINGS; k++) {
		if (k == i || (t[k].kind != SEGMENT && t[k].kind != RANGE))
			continue;
		if (t[i].addr < t[k].addr + t[k].span && t[k].addr < t[i].addr + t[i].span)
			fail_msg("%d (0x%llx) overlaps %d (0x%llx)", i,
				 (unsigned long long)t[i].addr, k, (unsigned long long)t[k].addr);
	}
}

static void make_thing(struct frag_device *d, struct thing *t, int i, uint64_t *seed)
{
	uint64_t pick = next_random(seed) % 10;
	struct thing *x = &t[i];

	*x = (struct thing){ 0 };
	if (pick < 6) {
		static const uint64_t most[] = { 4096, 512 * 1024, 3 << 20, 90 << 20 };

		x->bytes = next_random(seed) % most[next_random(seed) % 4] + 1;
		if (frag_dev_alloc(d, x->bytes, &x->addr, NULL))
			return;
		x->kind = SEGMENT;
		assert_int_equal(x->addr % 512, 0);
		x->span = frag_round_up(x->bytes, 512);
		check_apart(t, i);
	} else if (pick < 8) {
		x->bytes = x->span = (next_random(seed) % 40 + 1) * 2 * MIB;
		assert_int_equal(frag_dev_reserve(d, x->bytes, 0, &x->addr, NULL), 0);
		x->kind = RANGE;
		check_apart(t, i);
	} else {
		x->bytes = (next_random(seed) % 20 + 1) * 2 * MIB;
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

static void test_random(void **state)
{
	struct thing t[THINGS] = { 0 };
	struct frag_device *d = open_card(1600 * MIB, 100 * MIB);
	uint64_t seed = 2026, refused = 0;

	(void)state;
	for (int n = 0; n < 20000; n++) {
		int i = (int)(next_random(&seed) % THINGS);

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
	frag_dev_close(d);
}

/* The same calls give the same addresses and times. */
static void test_same_twice(void **state)
{
	struct frag_device *d[2] = { open_h200(), open_h200() };
	frag_addr_t a[2];
	uint64_t seed = 7;

	(void)state;
	for (int n = 0; n < 1000; n++) {
		uint64_t bytes = next_random(&seed) % (5 * MIB) + 1;

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),	      cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_huge),	      cmocka_unit_test(test_bad_free),
		cmocka_unit_test(test_recorded),      cmocka_unit_test(test_placement),
		cmocka_unit_test(test_first_kernel),  cmocka_unit_test(test_gap),
		cmocka_unit_test(test_hook_segments), cmocka_unit_test(test_hook_far),
		cmocka_unit_test(test_hook_wish),     cmocka_unit_test(test_hook_vmm),
		cmocka_unit_test(test_random),	      cmocka_unit_test(test_same_twice),
		cmocka_unit_test(test_hook_small),    cmocka_unit_test(test_clearing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
