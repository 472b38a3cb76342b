/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory on the simulated card: ranges, handles, mappings, every rule that is an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "device/sim/cost.h"

#define MIB FRAG_MIB

static struct frag_device *open_h200(void)
{
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX };
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	return d;
}

/* The call has to fail as a driver failure whose message has `word` in it. */
#define FAILS(call, word) \
	do { \
		struct frag_err err = { 0 }; \
		assert_int_equal((call), FRAG_EDEVICE); \
		if (!strstr(err.msg, word)) \
			fail_msg("no '%s' in: %s", word, err.msg); \
	} while (0)

/* ---- reservations ----------------------------------------------------------- */

static void test_reserve(void **state)
{
	struct frag_device *d = open_h200();
	frag_addr_t large, small, third, again, hinted;

	(void)state;
	/* expandable segments of PyTorch on this card, as recorded */
	assert_int_equal(frag_dev_reserve(d, 8053 * 20 * MIB, 0, &large, NULL), 0);
	assert_int_equal(large, 0x302000000ull);
	assert_int_equal(frag_dev_reserve(d, 80526ull * 2 * MIB, 0, &small, NULL), 0);
	assert_int_equal(small, 0x2a56000000ull);
	assert_int_equal(frag_dev_reserve(d, 2 * MIB, 0, &third, NULL), 0);
	assert_int_equal(third, 0x51a8000000ull);
	assert_int_equal(d->reserved_bytes, 0);
	/* the lowest hole that fits is used again */
	assert_int_equal(frag_dev_unreserve(d, small, 80526ull * 2 * MIB, NULL), 0);
	assert_int_equal(frag_dev_reserve(d, 64 * MIB, 0, &again, NULL), 0);
	assert_int_equal(again, small);
	/* a hint is met where there is room, else ignored */
	assert_int_equal(frag_dev_reserve(d, 64 * MIB, 0x600000000000ull, &hinted, NULL), 0);
	assert_int_equal(hinted, 0x600000000000ull);
	assert_int_equal(frag_dev_reserve(d, 64 * MIB, 0x600000000000ull, &hinted, NULL), 0);
	assert_int_equal(hinted, small + 64 * MIB);
	FAILS(frag_dev_unreserve(d, large, 20 * MIB, &err), "cuMemAddressFree");
	FAILS(frag_dev_unreserve(d, large + 2 * MIB, 2 * MIB, &err), "cuMemAddressFree");
	FAILS(frag_dev_reserve(d, 2 * MIB + 512, 0, &again, &err), "multiples of 2097152");
	assert_int_equal(frag_dev_leaks(d), 5);
	frag_dev_close(d);
}

/* ---- handles and mappings --------------------------------------------------- */

struct vmm {
	struct frag_device *d;
	frag_addr_t base;
};

static struct vmm open_vmm(void)
{
	struct vmm v = { .d = open_h200() };

	assert_int_equal(frag_dev_reserve(v.d, 64 * MIB, 0, &v.base, NULL), 0);
	return v;
}

static uint64_t handle(struct vmm *v, uint64_t bytes)
{
	uint64_t h = 0;

	assert_int_equal(frag_dev_create(v->d, bytes, &h, NULL), 0);
	return h;
}

/* One handle at three places; the memory goes with the last mapping after the release. */
static void test_double_mapping(void **state)
{
	struct vmm v = open_vmm();
	uint64_t h = handle(&v, 4 * MIB);

	(void)state;
	assert_int_equal(v.d->reserved_bytes, 4 * MIB);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			frag_dev_map(v.d, v.base + (uint64_t)i * 8 * MIB, 4 * MIB, h, NULL), 0);
	assert_int_equal(v.d->reserved_bytes, 4 * MIB);
	assert_int_equal(frag_dev_set_access(v.d, v.base + 8 * MIB, 4 * MIB, NULL), 0);
	assert_int_equal(frag_dev_unmap(v.d, v.base, 4 * MIB, NULL), 0);
	assert_int_equal(frag_dev_release(v.d, h, 4 * MIB, NULL), 0);
	FAILS(frag_dev_release(v.d, h, 4 * MIB, &err), "released handle");
	FAILS(frag_dev_map(v.d, v.base, 4 * MIB, h, &err), "released handle");
	assert_int_equal(v.d->reserved_bytes, 4 * MIB);
	assert_int_equal(frag_dev_unmap(v.d, v.base + 8 * MIB, 4 * MIB, NULL), 0);
	assert_int_equal(v.d->reserved_bytes, 4 * MIB);
	FAILS(frag_dev_unreserve(v.d, v.base, 64 * MIB, &err), "still has 1 mappings");
	assert_int_equal(frag_dev_unmap(v.d, v.base + 16 * MIB, 4 * MIB, NULL), 0);
	assert_int_equal(v.d->reserved_bytes, 0);
	assert_int_equal(frag_dev_unreserve(v.d, v.base, 64 * MIB, NULL), 0);
	assert_int_equal(frag_dev_leaks(v.d), 0);
	frag_dev_close(v.d);
}

static void test_map_errors(void **state)
{
	struct vmm v = open_vmm();
	uint64_t a = handle(&v, 4 * MIB), b = handle(&v, 2 * MIB), h;

	(void)state;
	assert_int_equal(frag_dev_map(v.d, v.base + 8 * MIB, 4 * MIB, a, NULL), 0);
	/* over its head, its tail, inside, exactly, around */
	FAILS(frag_dev_map(v.d, v.base + 6 * MIB, 4 * MIB, a, &err), "overlaps the mapping at");
	FAILS(frag_dev_map(v.d, v.base + 10 * MIB, 4 * MIB, a, &err), "overlaps the mapping at");
	FAILS(frag_dev_map(v.d, v.base + 10 * MIB, 2 * MIB, b, &err), "overlaps the mapping at");
	FAILS(frag_dev_map(v.d, v.base + 8 * MIB, 4 * MIB, a, &err), "overlaps the mapping at");
	h = handle(&v, 8 * MIB);
	FAILS(frag_dev_map(v.d, v.base + 6 * MIB, 8 * MIB, h, &err), "overlaps the mapping at");
	/* next to it is fine */
	assert_int_equal(frag_dev_map(v.d, v.base + 6 * MIB, 2 * MIB, b, NULL), 0);
	assert_int_equal(frag_dev_map(v.d, v.base + 12 * MIB, 2 * MIB, b, NULL), 0);
	FAILS(frag_dev_map(v.d, v.base + 62 * MIB, 4 * MIB, a, &err), "not inside one reserved "
								      "range");
	FAILS(frag_dev_map(v.d, v.base - 2 * MIB, 2 * MIB, b, &err), "not inside one reserved "
								     "range");
	FAILS(frag_dev_map(v.d, v.base + MIB, 2 * MIB, b, &err), "multiples of");
	FAILS(frag_dev_map(v.d, v.base, 2 * MIB, 999, &err), "unknown or released handle 999");
	FAILS(frag_dev_create(v.d, 3 * MIB, &h, &err), "cuMemCreate");
	frag_dev_close(v.d);
}

static void test_unmap_errors(void **state)
{
	struct vmm v = open_vmm();
	uint64_t a = handle(&v, 4 * MIB), b = handle(&v, 2 * MIB);

	(void)state;
	/* [0, 4) a, [4, 6) b, hole, [8, 12) a */
	assert_int_equal(frag_dev_map(v.d, v.base, 4 * MIB, a, NULL), 0);
	assert_int_equal(frag_dev_map(v.d, v.base + 4 * MIB, 2 * MIB, b, NULL), 0);
	assert_int_equal(frag_dev_map(v.d, v.base + 8 * MIB, 4 * MIB, a, NULL), 0);
	FAILS(frag_dev_unmap(v.d, v.base, 2 * MIB, &err), "cuMemUnmap");
	FAILS(frag_dev_unmap(v.d, v.base + 2 * MIB, 2 * MIB, &err), "not whole mappings");
	FAILS(frag_dev_unmap(v.d, v.base + 2 * MIB, 4 * MIB, &err), "not whole mappings");
	FAILS(frag_dev_unmap(v.d, v.base, 12 * MIB, &err), "not whole mappings");
	FAILS(frag_dev_unmap(v.d, v.base, 0, &err), "multiples of");
	FAILS(frag_dev_unmap(v.d, v.base + 12 * MIB, 2 * MIB, &err), "not whole mappings");
	FAILS(frag_dev_set_access(v.d, v.base, 8 * MIB, &err), "cuMemSetAccess");
	FAILS(frag_dev_set_access(v.d, v.base + 4 * MIB, 4 * MIB, &err), "not whole mappings");
	assert_int_equal(frag_dev_set_access(v.d, v.base, 6 * MIB, NULL), 0);
	/* a failed unmap has taken nothing away */
	FAILS(frag_dev_unreserve(v.d, v.base, 64 * MIB, &err), "still has 3 mappings");
	assert_int_equal(frag_dev_unmap(v.d, v.base, 6 * MIB, NULL), 0);
	assert_int_equal(frag_dev_unmap(v.d, v.base + 8 * MIB, 4 * MIB, NULL), 0);
	assert_int_equal(frag_dev_unreserve(v.d, v.base, 64 * MIB, NULL), 0);
	frag_dev_close(v.d);
}

/* Neighbouring ranges are two: no mapping spans them. */
static void test_two_ranges(void **state)
{
	struct vmm v = open_vmm();
	uint64_t h = handle(&v, 4 * MIB);
	frag_addr_t second;

	(void)state;
	assert_int_equal(frag_dev_reserve(v.d, 64 * MIB, 0, &second, NULL), 0);
	assert_int_equal(second, v.base + 64 * MIB);
	FAILS(frag_dev_map(v.d, second - 2 * MIB, 4 * MIB, h, &err), "not inside one reserved "
								     "range");
	assert_int_equal(frag_dev_map(v.d, second - 4 * MIB, 4 * MIB, h, NULL), 0);
	assert_int_equal(frag_dev_map(v.d, second, 4 * MIB, h, NULL), 0);
	assert_int_equal(frag_dev_unmap(v.d, second - 4 * MIB, 8 * MIB, NULL), 0);
	frag_dev_close(v.d);
}

/* Of a handle of 2 MiB. */
static uint64_t price(unsigned item)
{
	return frag_cost_ns(frag_cost_builtin(), item, 2 * MIB);
}

/* One call over many handles costs by the handle. */
static void test_vmm_cost(void **state)
{
	struct vmm v = open_vmm();
	uint64_t before;

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(frag_dev_map(v.d, v.base + (uint64_t)i * 2 * MIB, 2 * MIB,
					      handle(&v, 2 * MIB), NULL),
				 0);
	assert_int_equal(v.d->stat[FRAG_CALL_CREATE].ns, 8 * price(FRAG_CALL_CREATE));
	assert_int_equal(v.d->stat[FRAG_CALL_MAP].ns, 8 * price(FRAG_CALL_MAP));
	assert_int_equal(frag_dev_set_access(v.d, v.base, 16 * MIB, NULL), 0);
	assert_int_equal(v.d->stat[FRAG_CALL_SET_ACCESS].ns,
			 price(FRAG_CALL_SET_ACCESS) + 7 * price(FRAG_COST_SET_ACCESS_NEXT));
	before = v.d->driver_ns;
	assert_int_equal(frag_dev_unmap(v.d, v.base, 16 * MIB, NULL), 0);
	assert_int_equal(v.d->driver_ns - before,
			 price(FRAG_CALL_UNMAP) + 7 * price(FRAG_COST_UNMAP_NEXT));
	frag_dev_close(v.d);
}

/* Whoever gives up the last use of a handle pays for its memory. */
static void test_release_cost(void **state)
{
	struct vmm v = open_vmm();
	uint64_t h = handle(&v, 2 * MIB), before;

	(void)state;
	assert_int_equal(frag_dev_map(v.d, v.base, 2 * MIB, h, NULL), 0);
	before = v.d->driver_ns;
	assert_int_equal(frag_dev_release(v.d, h, 2 * MIB, NULL), 0);
	assert_int_equal(v.d->driver_ns - before, price(FRAG_COST_RELEASE_MAPPED));
	before = v.d->driver_ns;
	assert_int_equal(frag_dev_unmap(v.d, v.base, 2 * MIB, NULL), 0);
	assert_int_equal(v.d->driver_ns - before,
			 price(FRAG_CALL_UNMAP) + price(FRAG_CALL_RELEASE));
	h = handle(&v, 2 * MIB);
	before = v.d->driver_ns;
	assert_int_equal(frag_dev_release(v.d, h, 2 * MIB, NULL), 0);
	assert_int_equal(v.d->driver_ns - before, price(FRAG_CALL_RELEASE));
	frag_dev_close(v.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserve),	     cmocka_unit_test(test_double_mapping),
		cmocka_unit_test(test_map_errors),   cmocka_unit_test(test_unmap_errors),
		cmocka_unit_test(test_two_ranges),   cmocka_unit_test(test_vmm_cost),
		cmocka_unit_test(test_release_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
