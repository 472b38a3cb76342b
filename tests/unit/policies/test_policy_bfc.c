/* SPDX-License-Identifier: Apache-2.0 */
/* bfc: when a chunk is split, how regions grow, what happens at the limit; both variants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"

/* A free hole of this size with live neighbours. */
static struct frag_block hole(struct probe *p, uint64_t bytes)
{
	struct frag_block b = probe_alloc(p, bytes);

	probe_alloc(p, 256);
	probe_free(p, b);
	return b;
}

static void test_rounding(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "bfc", NULL);
	a = probe_alloc(&p, 1);
	b = probe_alloc(&p, 257);
	assert_int_equal(a.granted, 256);
	assert_int_equal(b.granted, 512);
	assert_int_equal(b.addr, a.addr + 256);
	probe_close(&p);
}

/* Split at twice the request; one unit less, and the whole chunk is granted. */
static void test_split_at_double(void **state)
{
	struct probe p;
	struct frag_block x, y, b;

	(void)state;
	probe_open(&p, "bfc", NULL);
	x = probe_alloc(&p, 511 * 256);
	probe_alloc(&p, 256);
	y = probe_alloc(&p, 512 * 256);
	probe_alloc(&p, 256);
	probe_free(&p, x);
	probe_free(&p, y);
	b = probe_alloc(&p, 256 * 256);
	assert_int_equal(b.addr, x.addr);
	assert_int_equal(b.granted, 511 * 256);
	assert_int_equal(b.cls, FRAG_CLASS_HIT);
	b = probe_alloc(&p, 256 * 256);
	assert_int_equal(b.addr, y.addr);
	assert_int_equal(b.granted, 256 * 256);
	assert_int_equal(b.cls, FRAG_CLASS_SPLIT);
	probe_close(&p);
}

/* 328M for 200M: less than double, but 128M would be lost. */
static void test_split_at_max_internal(void **state)
{
	struct probe p;
	struct frag_block h;

	(void)state;
	probe_open(&p, "bfc", NULL);
	h = hole(&p, 328 * MIB - 256);
	assert_int_equal(probe_alloc(&p, 200 * MIB).granted, 328 * MIB - 256);
	h = hole(&p, 328 * MIB);
	assert_int_equal(probe_alloc(&p, 200 * MIB).granted, 200 * MIB);
	(void)h;
	probe_close(&p);
	probe_open(&p, "bfc:max-internal=1M", NULL);
	h = hole(&p, 11 * MIB);
	assert_int_equal(probe_alloc(&p, 10 * MIB).granted, 10 * MIB);
	probe_close(&p);
	/* a part of the limit: 1/64 of 0.5 of 64 GiB is 512M */
	probe_open(&p, "bfc:fraction=0.5,fragmentation-fraction=0.015625", NULL);
	h = hole(&p, 3000 * MIB);
	h = probe_alloc(&p, 2600 * MIB);
	assert_int_equal(h.granted, 3000 * MIB);
	probe_free(&p, h);
	assert_int_equal(probe_alloc(&p, 2488 * MIB).granted, 2488 * MIB);
	probe_close(&p);
}

static void test_best_fit(void **state)
{
	struct probe p;
	struct frag_block a, b, c, d;

	(void)state;
	probe_open(&p, "bfc", NULL);
	a = probe_alloc(&p, 30 * KIB);
	probe_alloc(&p, 256);
	b = probe_alloc(&p, 20 * KIB);
	probe_alloc(&p, 256);
	c = probe_alloc(&p, 20 * KIB);
	probe_alloc(&p, 256);
	d = probe_alloc(&p, 18 * KIB);
	probe_alloc(&p, 256);
	probe_free(&p, a);
	probe_free(&p, c);
	probe_free(&p, b);
	probe_free(&p, d);
	assert_int_equal(probe_alloc(&p, 19 * KIB).addr, b.addr); /* lowest of the equals */
	assert_int_equal(probe_alloc(&p, 19 * KIB).addr, c.addr);
	assert_int_equal(probe_alloc(&p, 19 * KIB).addr, a.addr);
	assert_int_equal(probe_alloc(&p, 18 * KIB).addr, d.addr);
	probe_close(&p);
}

/*
 * The step: 2M; then 4M, because the first region needed no doubling; 3M fits 4M, then 8M;
 * 20M doubles it to 32M, where it stays; the next 20M takes 32M and doubles to 64M.
 */
static void test_growth(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "bfc", NULL);
	probe_alloc(&p, 2 * MIB);
	probe_alloc(&p, 3 * MIB);  /* rest 1M */
	probe_alloc(&p, 20 * MIB); /* granted 20M, rest 12M */
	probe_alloc(&p, 20 * MIB);
	probe_alloc(&p, 20 * MIB);
	probe_expect(&p, "m2M m4M m32M m32M m64M");
	probe_close(&p);
}

/*
 * A card of 32G with 17G taken by the context. 10G want a step of 16G; refused; 0.9 of it in
 * single precision is 15099494 / 2^24 * 2^34 = 15461881856 (in double it would be 512 more).
 */
static void test_back_off(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "bfc:fraction=1",
		   &(struct probe_options){ .total = 32 * GIB, .context = 17 * GIB });
	probe_alloc(&p, 10 * GIB);
	assert_int_equal(p.calls, 2);
	assert_int_equal(p.log[0].kind, 'r');
	assert_int_equal(p.log[0].bytes, 16 * GIB);
	assert_int_equal(p.log[1].kind, 'm');
	assert_int_equal(p.log[1].bytes, 15461881856);
	probe_close(&p);

	/* never below the request: 31M want 32M, 0.9 of that is 28.8M */
	probe_open(&p, "bfc:fraction=1",
		   &(struct probe_options){ .total = 64 * MIB, .context = 34 * MIB });
	probe_refuses(&p, 31 * MIB);
	probe_expect(&p, "r32M r32M"); /* once more after waiting for frees */
	assert_int_equal(p.syncs, 1);
	probe_close(&p);
}

static void test_whole_card(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "bfc:growth=false", &(struct probe_options){ .total = 100 * MIB });
	assert_int_equal(p.dev->driver_calls, 0);
	probe_alloc(&p, 512);
	probe_expect(&p, "m75M"); /* JAX: 0.75 of the card */
	probe_alloc(&p, 74 * MIB);
	probe_refuses(&p, 2 * MIB);
	probe_expect(&p, "");
	probe_close(&p);
	probe_open(&p, "bfc:growth=false,fraction=0.5",
		   &(struct probe_options){ .total = 100 * MIB });
	probe_alloc(&p, 512);
	probe_expect(&p, "m50M");
	probe_close(&p);
}

/* The last region is what is left of the limit: 48M of 64M, after 32M 16M. */
static void test_limit(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "bfc", &(struct probe_options){ .total = 64 * MIB });
	probe_alloc(&p, 20 * MIB);
	probe_alloc(&p, 14 * MIB); /* not in the 12M that are left of the first */
	probe_expect(&p, "m32M m16M");
	probe_refuses(&p, 13 * MIB);
	probe_close(&p);

	/* the limit of the process is as good as the fraction: nothing is asked in vain */
	probe_open(&p, "bfc", &(struct probe_options){ .limit = 48 * MIB });
	probe_alloc(&p, 20 * MIB);
	probe_alloc(&p, 14 * MIB);
	probe_refuses(&p, 13 * MIB);
	probe_expect(&p, "m32M m16M");
	probe_close(&p);
	probe_open(&p, "bfc:growth=false", &(struct probe_options){ .limit = 48 * MIB });
	probe_alloc(&p, 512);
	probe_expect(&p, "m48M");
	probe_close(&p);
}

/* 20M were taken and freed as a region of 32M; 40M do not fit beside it in 64M. */
static void test_garbage_collection(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "bfc:fraction=1", &(struct probe_options){ .total = 64 * MIB });
	probe_free(&p, probe_alloc(&p, 20 * MIB));
	probe_refuses(&p, 40 * MIB);
	probe_trim(&p); /* there is no empty_cache */
	probe_expect(&p, "m32M");
	assert_int_equal(probe_usage(&p).releasable_bytes, 0);
	probe_close(&p);

	probe_open(&p, "bfc:fraction=1,gc=true", &(struct probe_options){ .total = 64 * MIB });
	probe_free(&p, probe_alloc(&p, 20 * MIB));
	assert_int_equal(probe_alloc(&p, 40 * MIB).cls, FRAG_CLASS_RELEASE);
	probe_expect(&p, "m32M f32M m64M");
	probe_close(&p);

	/* nothing is released where it cannot help: 65M do not fit a limit of 64M */
	probe_open(&p, "bfc:fraction=1,gc=true", &(struct probe_options){ .total = 64 * MIB });
	probe_free(&p, probe_alloc(&p, 20 * MIB));
	probe_refuses(&p, 65 * MIB);
	probe_expect(&p, "m32M");
	probe_close(&p);
}

static void test_retry_waits(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "bfc:growth=false,fraction=1", &(struct probe_options){ .total = 32 * MIB });
	a = probe_alloc(&p, 32 * MIB);
	probe_defer(&p, a);
	assert_int_equal(probe_alloc(&p, 32 * MIB).addr, a.addr);
	assert_int_equal(p.syncs, 1);
	probe_close(&p);
	probe_open(&p, "bfc:growth=false,fraction=1,retry=false",
		   &(struct probe_options){ .total = 32 * MIB });
	a = probe_alloc(&p, 32 * MIB);
	probe_defer(&p, a);
	probe_refuses(&p, 32 * MIB);
	assert_int_equal(p.syncs, 0);
	probe_close(&p);
}

/* ---- ONNX Runtime ------------------------------------------------------------------ */

static void test_ort_growth(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "bfc:variant=ort", NULL);
	probe_alloc(&p, 1 * MIB);
	probe_alloc(&p, 2 * MIB);
	probe_alloc(&p, 700 * MIB); /* 4M doubled to 1G */
	probe_alloc(&p, 700 * MIB); /* 1G; its double would be above max-extend */
	probe_alloc(&p, 700 * MIB);
	probe_alloc(&p, 1500 * MIB); /* 1G doubled */
	probe_alloc(&p, 1500 * MIB); /* 2G again; as nothing was doubled the step is 1G then */
	probe_alloc(&p, 700 * MIB);
	probe_expect(&p, "m1M m2M m1024M m1024M m1024M m2048M m2048M m1024M");
	probe_close(&p);
	probe_open(&p, "bfc:variant=ort,extend=exact", NULL);
	probe_alloc(&p, 1000);
	probe_alloc(&p, 3 * MIB);
	probe_expect(&p, "m1K m3M");
	probe_close(&p);
}

/* The step is doubled although the driver refuses; and there is no asking below 8K. */
static void test_ort_refused(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "bfc:variant=ort,initial=4M", &(struct probe_options){ .total = 2 * MIB });
	probe_refuses(&p, 3 * MIB + 900 * KIB); /* 4M; 0.9 of it is less than that */
	probe_expect(&p, "r4M");
	probe_refuses(&p, 3 * MIB + 900 * KIB);
	assert_int_equal(p.log[0].bytes, 8 * MIB);
	p.calls = 0;
	probe_close(&p);

	/* 2M are all there is; 0.9 of it, 0.9 of that …: the last above 8K is 8448 or so */
	probe_open(&p, "bfc:variant=ort", &(struct probe_options){ .total = 2 * MIB });
	probe_alloc(&p, 2 * MIB);
	probe_refuses(&p, 256);
	assert_int_equal(p.log[1].bytes, 2 * MIB);
	assert_int_equal(p.log[2].bytes, 1887488); /* 1887436.8 */
	assert_in_range(p.log[p.calls - 1].bytes, 8 * KIB, 8 * KIB / 0.9);
	p.calls = 0;
	probe_close(&p);
	/* the limit is the arena's */
	probe_open(&p, "bfc:variant=ort,initial=8K", &(struct probe_options){ .limit = 4 * MIB });
	probe_alloc(&p, 3 * MIB);
	probe_refuses(&p, 2 * MIB);
	probe_expect(&p, "m4M");
	probe_close(&p);
	probe_open(&p, "bfc:variant=ort,extend=exact", &(struct probe_options){ .total = 2 * MIB });
	probe_alloc(&p, 2 * MIB);
	probe_refuses(&p, 4 * KIB);
	probe_expect(&p, "m2M r4K");
	probe_close(&p);
}

/* Shrink: idle regions go, the lowest address first, but not the first one taken; then the
 * step is 2M again. The simulated card puts the 32M lowest. */
static void test_ort_shrink(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "bfc:variant=ort", NULL);
	a = probe_alloc(&p, 1 * MIB);
	b = probe_alloc(&p, 2 * MIB);
	c = probe_alloc(&p, 30 * MIB);
	probe_free(&p, a);
	probe_free(&p, b);
	probe_free(&p, c);
	assert_int_equal(probe_usage(&p).releasable_bytes, 34 * MIB);
	assert_int_equal(probe_usage(&p).non_releasable_bytes, 1 * MIB);
	probe_trim(&p);
	assert_int_equal(probe_usage(&p).free_bytes, 1 * MIB);
	assert_int_equal(probe_alloc(&p, 1 * MIB).addr, a.addr);
	probe_expect(&p, "m1M m2M m32M f32M f2M");
	probe_alloc(&p, 1 * MIB);
	probe_expect(&p, "m2M");
	probe_close(&p);

	probe_open(&p, "bfc:variant=ort,extend=exact", NULL);
	probe_free(&p, probe_alloc(&p, 1 * MIB));
	probe_trim(&p);
	probe_expect(&p, "m1M f1M");
	probe_close(&p);
}

/* Requests without a stream: a chunk is nobody's and merges with the tail it was cut from. */
static void test_ort_without_streams(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "bfc:variant=ort", NULL);
	a = probe_alloc_on(&p, 256 * KIB, 1);
	b = probe_alloc_on(&p, 256 * KIB, 2);
	probe_free(&p, a);
	assert_int_equal(probe_alloc_on(&p, 256 * KIB, 2).addr, a.addr);
	probe_free(&p, b);
	assert_int_equal(probe_usage(&p).blocks_count, 2);
	assert_int_equal(probe_alloc_on(&p, 768 * KIB, 3).addr, b.addr);
	probe_expect(&p, "m1M");
	probe_close(&p);
}

/* A chunk stays with its stream; tails of fresh regions are everybody's. */
static void test_ort_streams(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "bfc:variant=ort,streams=true", NULL);
	a = probe_alloc_on(&p, 256 * KIB, 1);
	b = probe_alloc_on(&p, 256 * KIB, 2);
	assert_int_equal(b.addr, a.addr + 256 * KIB);
	probe_free(&p, a);
	c = probe_alloc_on(&p, 256 * KIB, 2); /* not a */
	assert_int_equal(c.addr, b.addr + 256 * KIB);
	assert_int_equal(probe_alloc_on(&p, 256 * KIB, 1).addr, a.addr);
	/* neighbours of different streams do not merge */
	probe_free(&p, a);
	probe_free(&p, b);
	assert_int_equal(probe_usage(&p).blocks_count, 4);
	probe_free(&p, c); /* of b's stream */
	assert_int_equal(probe_usage(&p).blocks_count, 3);
	/* whole region idle, in three pieces: a trim leaves it, it is the first */
	probe_trim(&p);
	probe_expect(&p, "m1M");
	probe_close(&p);
}

static void test_ort_synced(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "bfc:variant=ort,streams=true", NULL);
	a = probe_alloc_on(&p, 256 * KIB, 1);
	b = probe_alloc_on(&p, 256 * KIB, 1);
	probe_alloc_on(&p, 512 * KIB, 1);
	probe_free(&p, a);
	assert_int_equal(p.policy.ops->synced(p.policy.self, &p.err), 0);
	probe_check(&p);
	assert_int_equal(probe_alloc_on(&p, 256 * KIB, 2).addr, a.addr);
	/* b was given to its stream before the synchronisation: safe as well when freed */
	probe_free(&p, b);
	assert_int_equal(probe_alloc_on(&p, 256 * KIB, 2).addr, b.addr);
	probe_expect(&p, "m1M");
	probe_close(&p);
}

/* The last resort: the best chunk of another stream, whole. */
static void test_ort_cross_stream(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "bfc:variant=ort,streams=true,cross-stream=true", NULL);
	a = probe_alloc_on(&p, 1 * MIB, 1);
	probe_free(&p, a);
	b = probe_alloc_on(&p, 256, 2);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(b.granted, 1 * MIB);
	probe_free(&p, b); /* still stream 1's */
	b = probe_alloc_on(&p, 256, 1);
	assert_int_equal(b.granted, 256);
	probe_expect(&p, "m1M");
	probe_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_split_at_double),
		cmocka_unit_test(test_split_at_max_internal),
		cmocka_unit_test(test_best_fit),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_back_off),
		cmocka_unit_test(test_whole_card),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_garbage_collection),
		cmocka_unit_test(test_retry_waits),
		cmocka_unit_test(test_ort_growth),
		cmocka_unit_test(test_ort_refused),
		cmocka_unit_test(test_ort_shrink),
		cmocka_unit_test(test_ort_without_streams),
		cmocka_unit_test(test_ort_streams),
		cmocka_unit_test(test_ort_synced),
		cmocka_unit_test(test_ort_cross_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
