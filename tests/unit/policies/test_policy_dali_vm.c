/* SPDX-License-Identifier: Apache-2.0 */
/* dali-vm: block size, alignment, moving of free blocks, what trim gives back, address space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"
#include "policy_random.h"

static uint64_t calls(const struct probe *p, enum frag_call call)
{
	return p->dev->stat[call].count;
}

/* 1/256 of the card, a power of two, from 2M to 64M. */
static void test_block_size(void **state)
{
	static const uint64_t rows[][2] = {
		/* card, block */
		{ 256 * MIB, 2 * MIB }, { 1 * GIB, 4 * MIB },	 { 3 * GIB, 16 * MIB },
		{ 16 * GIB, 64 * MIB }, { 141 * GIB, 64 * MIB },
	};
	struct probe p;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		probe_open(&p, "dali-vm", &(struct probe_options){ .total = rows[i][0] });
		probe_alloc(&p, 1);
		assert_int_equal(p.dev->reserved_bytes, rows[i][1]);
		probe_close(&p);
	}
}

/*
 * 1000 B: 256. 1M: 1M >> 11 = 512. 3M: 1536 -> 2048, a multiple already; 3M + 1 -> 3M + 2K.
 * 200M: 102400 -> 128K; 200M + 1 -> 200M + 128K.
 */
static void test_alignment(void **state)
{
	struct frag_block b;
	struct probe p;

	(void)state;
	probe_open(&p, "dali-vm", NULL);
	assert_int_equal(probe_alloc(&p, 1000).granted, 1024);
	b = probe_alloc(&p, MIB);
	assert_int_equal(b.granted, MIB);
	assert_int_equal(b.addr % 512, 0);
	b = probe_alloc(&p, 3 * MIB + 1);
	assert_int_equal(b.granted, 3 * MIB + 2048);
	assert_int_equal(b.addr % 2048, 0);
	b = probe_alloc(&p, 200 * MIB + 1);
	assert_int_equal(b.granted, 200 * MIB + 128 * KIB);
	assert_int_equal(b.addr % (128 * KIB), 0);
	probe_close(&p);
}

/* Best fit, lowest among equals; a free counts at once. */
static void test_best_fit(void **state)
{
	struct frag_block a, b, c;
	struct probe p;

	(void)state;
	probe_open(&p, "dali-vm", NULL);
	a = probe_alloc(&p, 64 * KIB);
	probe_alloc(&p, 256);
	b = probe_alloc(&p, 32 * KIB);
	probe_alloc(&p, 256);
	c = probe_alloc(&p, 32 * KIB);
	probe_alloc(&p, 256);
	probe_free(&p, c);
	probe_free(&p, a);
	probe_free(&p, b);
	assert_int_equal(calls(&p, FRAG_CALL_DEVICE_SYNC), 0);
	assert_int_equal(probe_alloc(&p, 30 * KIB).addr, b.addr);
	assert_int_equal(probe_alloc(&p, 30 * KIB).addr, c.addr);
	assert_int_equal(probe_alloc(&p, 30 * KIB).addr, a.addr);
	probe_close(&p);
}

/* Whole free blocks go back, the parts of others stay; the address space is used again. */
static void test_trim(void **state)
{
	struct frag_block a, b;
	struct probe p;

	(void)state;
	probe_open(&p, "dali-vm:block=2M", NULL);
	a = probe_alloc(&p, 1 * MIB);
	b = probe_alloc(&p, 8 * MIB); /* [1M, 9M): blocks 1 to 3 are whole */
	probe_trim(&p);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 0);
	probe_free(&p, b);
	assert_int_equal(probe_usage(&p).free_bytes, 9 * MIB);
	assert_int_equal(probe_usage(&p).releasable_bytes, 8 * MIB);
	probe_trim(&p);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 4);
	assert_int_equal(calls(&p, FRAG_CALL_RELEASE), 4);
	assert_int_equal(calls(&p, FRAG_CALL_UNRESERVE), 0);
	assert_int_equal(p.dev->reserved_bytes, 2 * MIB);
	assert_int_equal(probe_alloc(&p, 8 * MIB).addr, b.addr);
	assert_int_equal(p.dev->reserved_bytes, 10 * MIB);
	probe_free(&p, a);
	probe_close(&p);
}

/* The initial reservation is twice the card. */
static void test_initial_reservation(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "dali-vm", &(struct probe_options){ .total = 3 * GIB });
	probe_alloc(&p, 1);
	assert_int_equal(p.dev->stat[FRAG_CALL_RESERVE].bytes, 6 * GIB);
	probe_close(&p);
}

/*
 * Blocks of 2M on a card of 16M. [0, 1M) and [9M, 10M) live, so that 2, 4, 6 are whole and free. 14M
 * need seven places: three move, four would be new but only three fit: nothing moves.
 */
static void test_refused_moves_nothing(void **state)
{
	struct frag_block a, b;
	struct probe p;

	(void)state;
	probe_open(&p, "dali-vm:block=2M", &(struct probe_options){ .total = 16 * MIB });
	probe_alloc(&p, 1 * MIB);
	a = probe_alloc(&p, 8 * MIB);
	probe_alloc(&p, 1 * MIB);
	probe_free(&p, a);
	probe_refuses(&p, 14 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 0);
	assert_int_equal(p.dev->reserved_bytes, 10 * MIB);
	b = probe_alloc(&p, 12 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 3);
	assert_int_equal(p.dev->reserved_bytes, 16 * MIB);
	probe_free(&p, b);
	probe_close(&p);
}

/*
 * Blocks of 2M. Live: [0, 1M), free to 9M, live [9M, 10M): whole free blocks are 2, 4 and 6. A
 * request of 10M takes the space behind, 10M to 20M: three blocks move, two are created.
 */
static void test_move(void **state)
{
	struct frag_block a, b, c, d;
	struct probe p;
	uint64_t created;

	(void)state;
	probe_open(&p, "dali-vm:block=2M", NULL);
	a = probe_alloc(&p, 1 * MIB);
	b = probe_alloc(&p, 8 * MIB);
	c = probe_alloc(&p, 1 * MIB);
	assert_int_equal(b.addr, a.addr + 1 * MIB);
	assert_int_equal(c.addr, a.addr + 9 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 5);
	probe_free(&p, b);
	d = probe_alloc(&p, 10 * MIB);
	assert_int_equal(d.addr, a.addr + 10 * MIB);
	assert_int_equal(d.cls, FRAG_CLASS_GROW);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 3);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 7);
	assert_int_equal(calls(&p, FRAG_CALL_MAP), 10);
	assert_int_equal(p.dev->reserved_bytes, 14 * MIB);
	/* what is left with memory: [1M, 2M) and [8M, 9M) */
	assert_int_equal(probe_usage(&p).free_bytes, 2 * MIB);
	assert_int_equal(probe_usage(&p).largest_free_bytes, 1 * MIB);
	probe_free(&p, d);
	d = probe_alloc(&p, 20 * MIB);
	assert_int_equal(d.addr, a.addr + 10 * MIB);
	probe_free(&p, d);
	created = calls(&p, FRAG_CALL_CREATE);
	d = probe_alloc(&p, 7 * MIB); /* from what has memory */
	assert_int_equal(d.addr, a.addr + 10 * MIB);
	/* 6M: best fit of address space is the hole [1M, 9M); three new blocks */
	assert_int_equal(probe_alloc(&p, 13 * MIB).addr, d.addr + 7 * MIB);
	d = probe_alloc(&p, 6 * MIB);
	assert_int_equal(d.addr, a.addr + 1 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), created + 3);
	probe_close(&p);
}

/* Part of the stretch has memory: only the rest is mapped, and its own blocks do not move. */
static void test_partly_mapped(void **state)
{
	struct frag_block a, b;
	struct probe p;

	(void)state;
	probe_open(&p, "dali-vm:block=2M", NULL);
	a = probe_alloc(&p, 5 * MIB); /* blocks 0 to 2 */
	probe_free(&p, a);
	b = probe_alloc(&p, 9 * MIB);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(b.cls, FRAG_CLASS_GROW);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 5);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 0);
	probe_close(&p);
}

/* 32M, 64M, 256M: at least twice the last, a power of two for the request; one line. */
static void test_address_space(void **state)
{
	struct frag_block a;
	struct probe p;

	(void)state;
	probe_open(&p, "dali-vm:block=2M,initial-va=32M", NULL);
	a = probe_alloc(&p, 24 * MIB);
	assert_int_equal(p.dev->stat[FRAG_CALL_RESERVE].bytes, 32 * MIB);
	/* 32M do not fit the 8M that are left; 64M are reserved right behind and join them */
	assert_int_equal(probe_alloc(&p, 32 * MIB).addr, a.addr + 24 * MIB);
	assert_int_equal(p.dev->stat[FRAG_CALL_RESERVE].bytes, 96 * MIB);
	assert_int_equal(probe_alloc(&p, 160 * MIB).addr, a.addr + 56 * MIB);
	assert_int_equal(p.dev->stat[FRAG_CALL_RESERVE].bytes, 352 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_RESERVE), 3);
	assert_int_equal(probe_usage(&p).segments_count, 1);
	probe_close(&p);
}

/* Where reservations lie, in this order. */
struct places {
	frag_addr_t at[4];
	unsigned next;
};

static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct places *p = ctx;

	(void)bytes;
	if (kind != FRAG_CALL_RESERVE || p->next == FRAG_ARRAY_LEN(p->at))
		return -1;
	*addr = p->at[p->next++];
	return 0;
}

/* A reservation between two regions makes them one, with what is free on both sides. */
static void test_join_regions(void **state)
{
	struct places places = { .at = { 64 * MIB, 104 * MIB, 72 * MIB } };
	struct frag_sim_config card = { .total_bytes = GIB, .place = place, .place_ctx = &places };
	struct frag_policy_env env = { .limit_bytes = UINT64_MAX, .device_total_bytes = GIB };
	struct frag_request req = { .bytes = 5 * MIB };
	struct frag_block b[3] = { { 0 } };
	struct frag_policy_spec *spec;
	struct frag_policy policy;
	struct frag_err err;

	(void)state;
	assert_int_equal(frag_sim_open(&card, &env.dev, &err), 0);
	assert_int_equal(frag_policy_spec_parse("dali-vm:block=2M,initial-va=8M", &spec, &err), 0);
	assert_int_equal(frag_policy_create(spec, &env, &policy, &err), 0);
	/* [64M, 72M), then [104M, 120M), then [72M, 104M) */
	for (unsigned i = 0; i < 3; i++) {
		req.bytes = i == 0 ? 5 * MIB : i == 1 ? 9 * MIB : 20 * MIB;
		assert_int_equal(policy.ops->alloc(policy.self, &req, &b[i], &err), 0);
		assert_int_equal(policy.ops->check(policy.self, &err), 0);
	}
	assert_int_equal(b[0].addr, 64 * MIB);
	assert_int_equal(b[1].addr, 104 * MIB);
	assert_int_equal(b[2].addr, 69 * MIB); /* behind the first */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(policy.ops->free(policy.self, &b[i], &err), 0);
		assert_int_equal(policy.ops->check(policy.self, &err), 0);
	}
	frag_policy_destroy(&policy);
	assert_int_equal(frag_dev_leaks(env.dev), 0);
	frag_policy_spec_destroy(spec);
	frag_dev_close(env.dev);
}

/* New blocks of a request that fails go back; nothing else does. */
static void test_refused(void **state)
{
	struct frag_block a;
	struct probe p;

	(void)state;
	probe_open(&p, "dali-vm:block=2M", &(struct probe_options){ .total = 64 * MIB });
	a = probe_alloc(&p, 40 * MIB);
	probe_refuses(&p, 30 * MIB);
	assert_int_equal(p.dev->reserved_bytes, 40 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 20 + 12);
	probe_refuses(&p, 65 * MIB); /* more than the card: nothing is asked */
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 20 + 12);
	probe_free(&p, a);
	probe_alloc(&p, 60 * MIB);
	probe_close(&p);
}

static void test_random(void **state)
{
	static const char *const texts[] = { "dali-vm:block=2M", "dali-vm:block=2M,initial-va=8M",
					     "dali-vm:block=8M",
					     "dali-vm:block=2M,initial-va=64M,alignment=16" };

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++)
		for (unsigned k = 0; k < 4; k++)
			random_run(
				&(struct random_options){ .text = texts[i],
							  .seed = 10 * i + k,
							  .max_bytes = k & 1 ? 20 * MIB : 100 * MIB,
							  .steps = 2000,
							  .failures = k & 2 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block_size),
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_best_fit),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_initial_reservation),
		cmocka_unit_test(test_refused_moves_nothing),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_partly_mapped),
		cmocka_unit_test(test_address_space),
		cmocka_unit_test(test_join_regions),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
