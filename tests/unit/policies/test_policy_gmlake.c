/* SPDX-License-Identifier: Apache-2.0 */
/* gmlake: pages, order of the steps, stitching, reuse, collection; both variants. */
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

static int64_t counter_value;
static const char *counter_name;

static void pick_counter(void *ctx, const char *name, int64_t value)
{
	(void)ctx;
	if (!strcmp(name, counter_name))
		counter_value = value;
}

static int64_t counter(struct probe *p, const char *name)
{
	counter_value = -1;
	counter_name = name;
	p->policy.ops->counters(p->policy.self, pick_counter, NULL);
	return counter_value;
}

/* A free piece of this size with live neighbours; the segments are of just that size. */
static struct frag_block hole(struct probe *p, uint64_t bytes)
{
	struct frag_block b = probe_alloc(p, bytes);

	probe_free(p, b);
	return b;
}

/* Two such pieces, in segments of their own, side by side in no order that matters. */
static void two_holes(struct probe *p, uint64_t first, uint64_t second, struct frag_block *a,
		      struct frag_block *b)
{
	*a = probe_alloc(p, first);
	*b = probe_alloc(p, second);
	probe_free(p, *a);
	probe_free(p, *b);
}

/* Holes of 30M and of 20M (`second`, unless NULL), and the 50M that were stitched over both. */
static struct frag_block stitched_holes(struct probe *p, struct frag_block *second)
{
	struct frag_block a, b, s;

	two_holes(p, 30 * MIB, 20 * MIB, &a, &b);
	s = probe_alloc(p, 50 * MIB);
	probe_free(p, s);
	if (second)
		*second = b;
	return s;
}

/* 1M is small: a cudaMalloc of 2M. 1M + 1 is large: 20M in ten pages. */
static void test_sizes(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake", NULL);
	assert_int_equal(probe_alloc(&p, 1).granted, 512);
	assert_int_equal(probe_alloc(&p, MIB - 512).granted, MIB - 512);
	probe_alloc(&p, MIB);
	probe_expect(&p, "m2M");
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 0);
	assert_int_equal(probe_alloc(&p, MIB + 1).granted, 2 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 10);
	assert_int_equal(calls(&p, FRAG_CALL_MAP), 10);
	assert_int_equal(calls(&p, FRAG_CALL_SET_ACCESS), 10);
	assert_int_equal(calls(&p, FRAG_CALL_RESERVE), 1);
	/* any rest is split off: the next comes from the same segment */
	assert_int_equal(probe_alloc(&p, 17 * MIB).granted, 18 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_RESERVE), 1);
	probe_alloc(&p, 10 * MIB); /* exactly 10M */
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 15);
	probe_close(&p);
}

/*
 * Holes of 300M and 400M; 600M takes the larger one whole and 200M of the other. No new
 * memory, 300 pages mapped once more.
 */
static void test_stitch(void **state)
{
	struct frag_block a, b, s, rest;
	struct probe p;
	uint64_t held;

	(void)state;
	probe_open(&p, "gmlake", NULL);
	two_holes(&p, 300 * MIB, 400 * MIB, &a, &b);
	held = p.dev->reserved_bytes;
	s = probe_alloc(&p, 600 * MIB);
	assert_int_equal(s.cls, FRAG_CLASS_STITCH);
	assert_int_equal(s.granted, 600 * MIB);
	assert_true(s.addr != a.addr && s.addr != b.addr);
	assert_int_equal(p.dev->reserved_bytes, held);
	assert_int_equal(calls(&p, FRAG_CALL_MAP), 350 + 300);
	/* the tail of the smaller one is left */
	rest = probe_alloc(&p, 100 * MIB);
	assert_int_equal(rest.addr, a.addr + 200 * MIB);
	/* freed: the pieces are there again; the stitched block is, too, but pieces come first */
	probe_free(&p, s);
	assert_int_equal(probe_alloc(&p, 400 * MIB).addr, b.addr);
	probe_close(&p);
}

/* From frag-limit on; one page less gets a new segment. And at least two pieces. */
static void test_frag_limit(void **state)
{
	struct frag_block a, b;
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake", NULL);
	two_holes(&p, 300 * MIB, 300 * MIB, &a, &b);
	assert_int_equal(probe_alloc(&p, 510 * MIB).cls, FRAG_CLASS_GROW);
	assert_int_equal(probe_alloc(&p, 512 * MIB).cls, FRAG_CLASS_STITCH);
	probe_close(&p);
	probe_open(&p, "gmlake:frag-limit=4M", NULL);
	hole(&p, 12 * MIB);
	assert_int_equal(probe_alloc(&p, 14 * MIB).cls, FRAG_CLASS_GROW);
	probe_close(&p);
}

/* Found again when all its pages are free and no single piece fits; only its first pages are used. */
static void test_reuse(void **state)
{
	struct frag_block b, s, t;
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake:frag-limit=4M", NULL);
	s = stitched_holes(&p, &b);
	t = probe_alloc(&p, 50 * MIB);
	assert_int_equal(t.addr, s.addr);
	assert_int_equal(t.cls, FRAG_CLASS_HIT);
	assert_int_equal(counter(&p, "made_stitches"), 1);
	assert_int_equal(counter(&p, "reused_stitches"), 1);
	probe_free(&p, t);
	/* 40M: no piece fits; the first 40M of the stitched 50M */
	t = probe_alloc(&p, 40 * MIB);
	assert_int_equal(t.addr, s.addr);
	assert_int_equal(t.granted, 40 * MIB);
	assert_int_equal(probe_alloc(&p, 10 * MIB).addr, b.addr + 10 * MIB);
	probe_close(&p);
	/* above reuse-limit it is not taken: 50M > 1.2 * 40M */
	probe_open(&p, "gmlake:frag-limit=4M,reuse-limit=1.2", NULL);
	s = stitched_holes(&p, NULL);
	t = probe_alloc(&p, 40 * MIB);
	assert_int_equal(t.cls, FRAG_CLASS_STITCH);
	assert_true(t.addr != s.addr);
	probe_close(&p);
}

/* One of its pieces is in use: it is broken, and not found until that is free. */
static void test_broken(void **state)
{
	struct frag_block b, s, t;
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake:frag-limit=4M", NULL);
	s = stitched_holes(&p, &b);
	t = probe_alloc(&p, 18 * MIB); /* of b, breaks s */
	assert_int_equal(t.addr, b.addr);
	assert_int_equal(probe_alloc(&p, 50 * MIB).cls, FRAG_CLASS_GROW);
	probe_free(&p, t);
	assert_int_equal(probe_alloc(&p, 50 * MIB).addr, s.addr);
	probe_close(&p);
}

/*
 * A card of 64M with holes of 20M and 20M, a live block of 20M. 30M: level 0 stitches at once; 1
 * after one new segment was refused; 2 gives the idle ones back, and then a new one fits.
 */
static void test_levels(void **state)
{
	static const struct {
		const char *text;
		enum frag_class cls;
		uint64_t released; /* pages */
	} rows[] = {
		{ "gmlake:frag-limit=4M", FRAG_CLASS_STITCH, 0 },
		{ "gmlake:frag-limit=4M,defrag-level=1", FRAG_CLASS_STITCH, 2 },
		{ "gmlake:frag-limit=4M,defrag-level=2", FRAG_CLASS_RELEASE, 22 },
		{ "gmlake:stitch=false", FRAG_CLASS_RELEASE, 22 },
	};
	struct frag_block a, b;
	struct probe p;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		probe_open(&p, rows[i].text, &(struct probe_options){ .total = 64 * MIB });
		a = probe_alloc(&p, 20 * MIB);
		b = probe_alloc(&p, 20 * MIB);
		probe_alloc(&p, 20 * MIB);
		probe_free(&p, a);
		probe_free(&p, b);
		assert_int_equal(probe_alloc(&p, 30 * MIB).cls, rows[i].cls);
		/* the two pages that were left before the refusal went back, too */
		assert_int_equal(calls(&p, FRAG_CALL_RELEASE), rows[i].released);
		assert_int_equal(p.syncs, rows[i].cls == FRAG_CLASS_RELEASE);
		probe_close(&p);
	}
}

/* Only what is missing is new: 20M free, 50M wanted, 30M created. */
static void test_only_missing(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake:frag-limit=4M,realloc=true", NULL);
	hole(&p, 20 * MIB);
	assert_int_equal(probe_alloc(&p, 50 * MIB).cls, FRAG_CLASS_STITCH);
	assert_int_equal(p.dev->reserved_bytes, 50 * MIB);
	probe_close(&p);
}

/* With no address space allowed, the next stitch drops those whose event is done. */
static void test_auto_gc(void **state)
{
	struct frag_block a, s;
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake:frag-limit=4M,auto-gc=60M", NULL);
	stitched_holes(&p, NULL);
	/* 40M would reuse it: break it first */
	a = probe_alloc(&p, 2 * MIB);
	s = probe_alloc(&p, 48 * MIB); /* 50M + 48M > 60M, but the last free is not done */
	assert_int_equal(s.cls, FRAG_CLASS_STITCH);
	assert_int_equal(counter(&p, "stitched_bytes"), 98 * MIB);
	probe_free(&p, s);
	probe_free(&p, a);
	a = probe_alloc(&p, 4 * MIB);
	p.dev->now_ns += 10000000;
	s = probe_alloc(&p, 46 * MIB);
	assert_int_equal(counter(&p, "stitched_bytes"), 46 * MIB);
	probe_close(&p);
}

/* A segment takes the inactive stitched blocks over it with it; under an active one it stays. */
static void test_release(void **state)
{
	struct frag_block s;
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake:frag-limit=4M", NULL);
	stitched_holes(&p, NULL);
	s = probe_alloc(&p, 32 * MIB); /* its first 32M: all of one hole, 2M of the other */
	assert_int_equal(probe_usage(&p).releasable_bytes, 0);
	probe_free(&p, s);
	assert_int_equal(probe_usage(&p).releasable_bytes, 50 * MIB);
	probe_trim(&p);
	assert_int_equal(p.dev->reserved_bytes, 0);
	assert_int_equal(counter(&p, "stitched_bytes"), 0);
	probe_close(&p);
}

/* ---- paper -------------------------------------------------------------------------------- */

/* S1 exact; S2 below the limit whole, above it split, and the old size comes back as S1. */
static void test_paper_split(void **state)
{
	struct frag_block a, b, c;
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake:variant=paper", NULL);
	assert_int_equal(probe_alloc(&p, 2 * MIB - 1).granted, 2 * MIB - 512 + 512);
	a = hole(&p, 126 * MIB);
	b = probe_alloc(&p, 100 * MIB);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(b.granted, 126 * MIB);
	a = hole(&p, 200 * MIB);
	b = probe_alloc(&p, 150 * MIB);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(b.granted, 150 * MIB);
	c = probe_alloc(&p, 50 * MIB);
	assert_int_equal(c.addr, a.addr + 150 * MIB);
	assert_int_equal(counter(&p, "made_stitches"), 1);
	probe_free(&p, b);
	probe_free(&p, c);
	/* the parts stay apart: 200M are there as the stitched block, 150M as the part */
	c = probe_alloc(&p, 200 * MIB);
	assert_int_equal(c.cls, FRAG_CLASS_HIT);
	assert_true(c.addr != a.addr);
	assert_int_equal(counter(&p, "reused_stitches"), 1);
	probe_free(&p, c);
	assert_int_equal(probe_alloc(&p, 150 * MIB).addr, a.addr);
	probe_close(&p);
}

/* S3: pieces from the limit on only. S4: a new segment for what is missing. */
static void test_paper_stitch(void **state)
{
	struct frag_block a, b, c, s;
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake:variant=paper", NULL);
	a = probe_alloc(&p, 130 * MIB);
	b = probe_alloc(&p, 140 * MIB);
	c = probe_alloc(&p, 100 * MIB);
	probe_free(&p, a);
	probe_free(&p, b);
	probe_free(&p, c);
	s = probe_alloc(&p, 260 * MIB); /* 140 + 120 of 130 */
	assert_int_equal(s.cls, FRAG_CLASS_STITCH);
	assert_int_equal(p.dev->reserved_bytes, 370 * MIB);
	probe_free(&p, s);
	s = probe_alloc(&p, 300 * MIB); /* the 140 count, 120 and 100 are below the limit */
	assert_int_equal(s.cls, FRAG_CLASS_STITCH);
	assert_int_equal(p.dev->reserved_bytes, 530 * MIB);
	probe_free(&p, s);
	/* S1 of a stitched block: exact only */
	assert_int_equal(probe_alloc(&p, 300 * MIB).addr, s.addr);
	probe_close(&p);
}

/* Above the bound the least recently used goes first. */
static void test_paper_bound(void **state)
{
	struct frag_block s;
	struct probe p;

	(void)state;
	probe_open(&p, "gmlake:variant=paper,frag-limit=4M,auto-gc=80M", NULL);
	stitched_holes(&p, NULL);
	s = probe_alloc(&p, 44 * MIB); /* 94M: the 50M go */
	assert_int_equal(counter(&p, "stitched_bytes"), 44 * MIB);
	probe_free(&p, s);
	assert_int_equal(probe_alloc(&p, 44 * MIB).addr, s.addr);
	probe_close(&p);
}

static void test_random(void **state)
{
	static const char *const texts[] = {
		"gmlake:frag-limit=4M",
		"gmlake:frag-limit=4M,auto-gc=300M,lag-us=100",
		"gmlake:frag-limit=4M,realloc=true,auto-gc=1G",
		"gmlake:frag-limit=4M,defrag-level=1",
		"gmlake:frag-limit=4M,defrag-level=2,reuse-limit=1",
		"gmlake:variant=paper,frag-limit=4M,auto-gc=1G",
		"gmlake:variant=paper,frag-limit=30M",
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++)
		for (unsigned k = 0; k < 4; k++)
			random_run(&(struct random_options){ .text = texts[i],
							     .seed = 10 * i + k,
							     .max_bytes = 60 * MIB,
							     .steps = 1500,
							     .slots = k & 1 ? 60 : 250,
							     .one_stream = k & 1,
							     .failures = k & 2 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),	     cmocka_unit_test(test_stitch),
		cmocka_unit_test(test_frag_limit),   cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_broken),	     cmocka_unit_test(test_levels),
		cmocka_unit_test(test_only_missing), cmocka_unit_test(test_auto_gc),
		cmocka_unit_test(test_release),	     cmocka_unit_test(test_paper_split),
		cmocka_unit_test(test_paper_stitch), cmocka_unit_test(test_paper_bound),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
