/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmm: reuse in place, memory that moves instead of new memory and comes back, the lag, handles
 * of several pages, the budget, pools, the limit, trim, failed calls. Values worked out by hand: pieces of 2M for everything
 * above 512 bytes, no slack, so that what may be held is the live peak.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"

#define PLAIN "vmm:piece=2M,max-page=2M,small-limit=512,slack=0,slack-bytes=0,coarse=1000000"
#define MS 1000000ull

static uint64_t calls(const struct probe *p, enum frag_call call)
{
	return p->dev->stat[call].count;
}

/* A and B of 4M side by side, A is free again. */
static struct frag_block hole(struct probe *p, const char *text, const struct probe_options *o,
			      struct frag_block *b)
{
	struct frag_block a;

	probe_open(p, text, o);
	a = probe_alloc(p, 4 * MIB);
	*b = probe_alloc(p, 4 * MIB);
	assert_int_equal(b->addr, a.addr + 4 * MIB);
	assert_int_equal(p->dev->reserved_bytes, 8 * MIB);
	probe_free(p, a);
	return a;
}

static void test_in_place(void **state)
{
	struct frag_block a, b, c;
	uint64_t before;
	struct probe p;

	(void)state;
	a = hole(&p, PLAIN, NULL, &b);
	before = p.dev->driver_calls;
	c = probe_alloc(&p, 4 * MIB);
	assert_int_equal(c.addr, a.addr);
	assert_int_equal(c.cls, FRAG_CLASS_HIT);
	probe_free(&p, c);
	c = probe_alloc(&p, 3 * MIB + 1); /* rounded to 512, cut from the front */
	assert_int_equal(c.addr, a.addr);
	assert_int_equal(c.granted, 3 * MIB + 512);
	assert_int_equal(c.cls, FRAG_CLASS_SPLIT);
	assert_int_equal(p.dev->driver_calls, before);
	probe_close(&p);
}

/* 6M do not fit into the hole of 4M. Live are 10M then, so one page is new and two move. */
static void test_moves(void **state)
{
	struct frag_block b, c;
	struct probe p;

	(void)state;
	hole(&p, PLAIN, NULL, &b);
	c = probe_alloc(&p, 6 * MIB);
	assert_int_equal(c.addr, b.addr + 4 * MIB);
	assert_int_equal(c.cls, FRAG_CLASS_MAP);
	assert_int_equal(p.dev->reserved_bytes, 10 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 5);
	assert_int_equal(calls(&p, FRAG_CALL_MAP), 7);
	/* slack: as much again may be held, nothing moves */
	probe_close(&p);
	hole(&p, "vmm:piece=2M,max-page=2M,small-limit=512,slack=1,slack-bytes=0,coarse=1000000",
	     NULL, &b);
	probe_alloc(&p, 6 * MIB);
	assert_int_equal(p.dev->reserved_bytes, 14 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_MAP), 7);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 7);
	probe_close(&p);
}

/*
 * The moved pages stay mapped at their old address until the fence behind the free is 10 ms
 * old, and until then nothing else is mapped there.
 */
static void test_lag(void **state)
{
	struct frag_block a, b, e;
	struct probe p;

	(void)state;
	a = hole(&p, PLAIN, NULL, &b);
	probe_alloc(&p, 6 * MIB); /* the fence is recorded here, at time 0 */
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 0);
	p.dev->now_ns = 10 * MS - 1;
	e = probe_alloc(&p, 4 * MIB); /* the hole has its size, but is stale */
	assert_true(e.addr > b.addr);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 0);
	p.dev->now_ns = 10 * MS;
	e = probe_alloc(&p, 4 * MIB);
	assert_int_equal(e.addr, a.addr);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 2);
	assert_int_equal(p.dev->reserved_bytes, 18 * MIB); /* = live */
	probe_close(&p);
}

/*
 * Nobody asks what is done, so fences of frees become rarer: 1, 2, 4, 8 and then 16 ms after the first free behind the last. A miss that no young
 * place is in the way of asks nothing; one that meets a young place does, and then each millisecond has its fence again.
 */
static void test_fences(void **state)
{
	struct frag_block b, c;
	uint64_t fences;
	struct probe p;

	(void)state;
	hole(&p, PLAIN, NULL, &b); /* its free is in the first epoch */
	for (unsigned ms = 1; ms <= 63; ms++) {
		p.dev->now_ns = ms * MS;
		probe_free(&p, probe_alloc(&p, 4 * MIB));
	}
	assert_int_equal(calls(&p, FRAG_CALL_FENCE), 6); /* at 1, 4, 9, 18, 35 and 52 ms */
	c = probe_alloc(&p, 6 * MIB);			 /* two of its pages move */
	assert_int_equal(calls(&p, FRAG_CALL_QUERY), 0);
	probe_alloc(&p, 4 * MIB);
	assert_true(calls(&p, FRAG_CALL_QUERY) > 0);
	fences = calls(&p, FRAG_CALL_FENCE);
	for (unsigned ms = 64; ms <= 67; ms++) {
		p.dev->now_ns = ms * MS;
		probe_free(&p, c);
		c = probe_alloc(&p, 6 * MIB);
	}
	assert_int_equal(calls(&p, FRAG_CALL_FENCE), fences + 2);
	probe_close(&p);
}

/*
 * 8M leave their place A for C of 10M elsewhere. There D of 4M is in use when 7M are wanted: they
 * go to A, where two of the four handles come back without a call. The two under D are
 * unmapped, for the one that is still free and a new one. (A at 0, B at 8M, C at 10M, X at 20M.)
 */
static void test_back(void **state)
{
	(void)state;
	for (unsigned young = 0; young < 2; young++) {
		struct frag_block a, c, d, e, x;
		struct probe p;

		probe_open(&p, PLAIN, NULL);
		a = probe_alloc(&p, 8 * MIB);
		probe_alloc(&p, 2 * MIB);
		probe_free(&p, a);
		c = probe_alloc(&p, 10 * MIB);
		assert_int_equal(c.addr, a.addr + 10 * MIB);
		x = probe_alloc(&p, 2 * MIB);
		assert_int_equal(x.addr, a.addr + 20 * MIB);
		assert_int_equal(p.dev->reserved_bytes, 14 * MIB);
		assert_int_equal(calls(&p, FRAG_CALL_MAP), 11);
		probe_free(&p, c);
		d = probe_alloc(&p, 4 * MIB);
		assert_int_equal(d.addr, c.addr);
		p.dev->now_ns = young ? 10 * MS - 1 : 10 * MS;
		e = probe_alloc(&p, 7 * MIB);
		/* too young: what is under D cannot be unmapped at A, so E goes elsewhere */
		assert_int_equal(e.addr, young ? x.addr + 2 * MIB : a.addr);
		assert_int_equal(calls(&p, FRAG_CALL_UNMAP), young ? 0 : 2);
		assert_int_equal(calls(&p, FRAG_CALL_MAP), young ? 15 : 13);
		assert_int_equal(p.dev->reserved_bytes, 16 * MIB);
		probe_close(&p);
	}
}

/* Without the second mapping a young page does not move at all: new memory instead. */
static void test_no_alias(void **state)
{
	struct frag_block b, c;
	struct probe p;

	(void)state;
	hole(&p, PLAIN ",alias=false", NULL, &b);
	c = probe_alloc(&p, 6 * MIB);
	assert_int_equal(p.dev->reserved_bytes, 14 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 0);
	p.dev->now_ns = 10 * MS;
	probe_alloc(&p, 8 * MIB); /* live 18M, held 14M: two new, two moved */
	assert_int_equal(p.dev->reserved_bytes, 18 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 9);
	assert_int_equal(calls(&p, FRAG_CALL_MAP), 11);
	probe_free(&p, c);
	probe_close(&p);
	/* a lag of zero is none */
	hole(&p, PLAIN ",alias=false,lag-us=0", NULL, &b);
	probe_alloc(&p, 6 * MIB);
	assert_int_equal(p.dev->reserved_bytes, 10 * MIB);
	probe_close(&p);
}

/* Another stream does not see the memory before the lag is over. */
static void test_streams(void **state)
{
	struct frag_block b;
	struct probe p;

	(void)state;
	hole(&p, PLAIN, NULL, &b);
	probe_alloc_on(&p, 6 * MIB, 1);
	assert_int_equal(p.dev->reserved_bytes, 14 * MIB);
	p.dev->now_ns = 10 * MS;
	probe_alloc_on(&p, 4 * MIB, 1); /* live 14M */
	assert_int_equal(p.dev->reserved_bytes, 14 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_MAP), 9);
	probe_close(&p);
}

static struct frag_block alloc_in(struct probe *p, uint64_t bytes, uint16_t pool, uint32_t stream)
{
	struct frag_request req = { .bytes = bytes, .pool = pool, .stream = stream };
	struct frag_block b = { .requested = bytes, .stream = stream };

	assert_int_equal(p->policy.ops->alloc(p->policy.self, &req, &b, &p->err), 0);
	probe_check(p);
	return b;
}

static void test_pools(void **state)
{
	struct frag_block b, c;
	struct probe p;

	(void)state;
	/* a graph may be captured on stream 1: its pool takes no memory of others … */
	hole(&p, PLAIN, NULL, &b);
	p.dev->now_ns = 20 * MS;
	c = alloc_in(&p, 4 * MIB, 1, 1);
	assert_int_equal(p.dev->reserved_bytes, 12 * MIB);
	/* … and gives them none */
	probe_free(&p, c);
	p.dev->now_ns = 40 * MS;
	probe_alloc_on(&p, 6 * MIB, 1);
	assert_int_equal(p.dev->reserved_bytes, 14 * MIB); /* 4M of the hole, one new page */
	/* … but when it is given up */
	assert_int_equal(p.policy.ops->trim(p.policy.self, 1, &p.err), 0);
	assert_int_equal(p.dev->reserved_bytes, 10 * MIB);
	probe_close(&p);
	/* not so on the default stream */
	c = hole(&p, PLAIN, NULL, &b);
	assert_int_equal(alloc_in(&p, 4 * MIB, 1, 0).addr, c.addr);
	assert_int_equal(p.dev->reserved_bytes, 8 * MIB);
	probe_close(&p);
	hole(&p, PLAIN ",private-pools=false", NULL, &b);
	probe_alloc_on(&p, 6 * MIB, 1);
	p.dev->now_ns = 10 * MS;
	alloc_in(&p, 4 * MIB, 1, 1); /* the hole's pages */
	assert_int_equal(p.dev->reserved_bytes, 14 * MIB);
	probe_close(&p);
}

/*
 * Handles of 2M, a sixteenth of the request, at 37 us each. After 10 ms 1 % of the time is gone with
 * the third; from then on they are twice as large: 3 and 6 of 4M, one for the rest.
 */
static void test_budget(void **state)
{
	static const struct {
		const char *budget;
		unsigned handles;
	} rows[] = { { ",budget=0.01", 3 + 6 + 1 }, { ",budget=1", 16 } };

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		char text[160];
		struct probe p;

		snprintf(text, sizeof(text),
			 "vmm:piece=2M,small-limit=512,coarse=1000000,coarse-request=16%s",
			 rows[i].budget);
		probe_open(&p, text, NULL);
		p.dev->now_ns = 10 * MS;
		probe_alloc(&p, 32 * MIB);
		assert_int_equal(calls(&p, FRAG_CALL_CREATE), rows[i].handles);
		probe_close(&p);
	}
}

/*
 * A 32nd of 128M is 4M: the second request of 2M finds its page there. Not without slack for it. Without a
 * budget all handles but the first are twice as large, up to max-page: 2M, 31 of 4M, 2M.
 */
static void test_ahead(void **state)
{
	static const struct {
		const char *text;
		unsigned begin, end;
	} rows[] = { { ",slack-bytes=10M", 33, 34 },
		     { ",slack-bytes=10M,ahead=2M", 33, 35 },
		     { ",slack-bytes=10M,max-page=2M", 64, 66 },
		     { ",slack-bytes=0", 33, 35 } };

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		char text[200];
		struct probe p;

		snprintf(text, sizeof(text),
			 "vmm:piece=2M,small-limit=512,slack=0,coarse=1000000,coarse-request="
			 "1000000,budget=0,max-page=4M%s",
			 rows[i].text);
		probe_open(&p, text, NULL);
		p.dev->now_ns = 1000 * MS;
		probe_alloc(&p, 128 * MIB);
		assert_int_equal(calls(&p, FRAG_CALL_CREATE), rows[i].begin);
		probe_alloc(&p, 2 * MIB);
		probe_alloc(&p, 2 * MIB);
		assert_int_equal(p.dev->reserved_bytes, 132 * MIB);
		assert_int_equal(calls(&p, FRAG_CALL_CREATE), rows[i].end);
		probe_close(&p);
	}
}

/* 64M in pieces of at most an eighth: 8 of 8M. 65M at the same place: one page more. */
static void test_handles(void **state)
{
	struct frag_block a, b;
	struct probe p;

	(void)state;
	probe_open(&p,
		   "vmm:page=2M,budget=1,small-limit=512,slack=0,slack-bytes=0,coarse=1000000,"
		   "coarse-"
		   "request=8",
		   NULL);
	p.dev->now_ns = 10 * MS; /* nothing is owed, and little saved */
	a = probe_alloc(&p, 64 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 8);
	assert_int_equal(p.dev->reserved_bytes, 64 * MIB);
	probe_free(&p, a);
	b = probe_alloc(&p, 65 * MIB);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 9);
	assert_int_equal(p.dev->reserved_bytes, 66 * MIB);
	probe_free(&p, b);
	/* 1M at the front pins the first 8M; the others go back */
	b = probe_alloc(&p, MIB);
	probe_trim(&p);
	assert_int_equal(p.dev->reserved_bytes, 8 * MIB);
	probe_close(&p);
	/* max-page bounds the pieces */
	probe_open(&p, "vmm:page=2M,max-page=4M,small-limit=512,coarse=1000000,coarse-request=8",
		   NULL);
	probe_alloc(&p, 64 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 16);
	probe_close(&p);
}

/* 8M are all there is: 6M need three pages, and only two are free, also after waiting. */
static void test_limit(void **state)
{
	struct probe_options o = { .limit = 8 * MIB };
	struct frag_block a, b;
	struct probe p;

	(void)state;
	a = hole(&p, PLAIN, &o, &b);
	probe_refuses(&p, 6 * MIB);
	assert_int_equal(p.syncs, 1);
	assert_int_equal(probe_alloc(&p, 4 * MIB).addr, a.addr);
	probe_refuses(&p, 1024);
	assert_int_equal(p.dev->reserved_bytes, 8 * MIB);
	probe_close(&p);
	/* what comes free while waiting is used */
	hole(&p, PLAIN, &o, &b);
	probe_defer(&p, b);
	probe_alloc(&p, 6 * MIB);
	assert_int_equal(p.syncs, 1);
	assert_int_equal(p.dev->reserved_bytes, 8 * MIB);
	probe_close(&p);
}

static void test_trim(void **state)
{
	struct frag_block b;
	struct probe p;

	(void)state;
	hole(&p, PLAIN, NULL, &b);
	probe_trim(&p);
	assert_int_equal(p.dev->reserved_bytes, 4 * MIB);
	probe_free(&p, b);
	probe_alloc(&p, MIB);
	probe_trim(&p); /* the page of the block stays */
	assert_int_equal(p.dev->reserved_bytes, 2 * MIB);
	probe_close(&p);
}

/* The n-th driver call fails, for every n of a script with moves: sound, and nothing leaks. */
static void test_failures(void **state)
{
	static const unsigned sizes[] = { 4, 4, 4, 9, 2, 7, 1, 12 };
	unsigned total = 0;

	(void)state;
	for (unsigned n = 1; n < 90; n++) {
		struct frag_block b[8];
		bool live[8] = { 0 };
		struct probe p;
		unsigned failed = 0;

		probe_open(&p, PLAIN, NULL);
		p.dev->fail_call = n;
		for (unsigned step = 0; step < 24; step++) {
			unsigned i = step * 5 % 8;

			p.dev->now_ns += 3 * MS;
			if (live[i]) {
				failed += p.policy.ops->free(p.policy.self, &b[i], &p.err) != 0;
				probe_check(&p);
				live[i] = false;
			} else {
				live[i] = !probe_try(&p, sizes[i] * MIB, 0, &b[i]);
				failed += !live[i];
			}
		}
		assert_true(failed <= 1);
		total += failed;
		p.dev->fail_call = 0;
		probe_close(&p);
	}
	/* a refused create is tried again after squeezing; the others show */
	assert_true(total >= 40);
}

static void test_options(void **state)
{
	struct frag_policy_spec *spec;
	struct frag_err err;

	(void)state;
	assert_int_equal(frag_policy_spec_parse("vmm:page=3M", &spec, &err), FRAG_EUSAGE);
	assert_non_null(strstr(err.msg, "powers of two"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_place), cmocka_unit_test(test_moves),
		cmocka_unit_test(test_lag),	 cmocka_unit_test(test_no_alias),
		cmocka_unit_test(test_fences),	 cmocka_unit_test(test_streams),
		cmocka_unit_test(test_pools),	 cmocka_unit_test(test_handles),
		cmocka_unit_test(test_limit),	 cmocka_unit_test(test_trim),
		cmocka_unit_test(test_failures), cmocka_unit_test(test_options),
		cmocka_unit_test(test_back),	 cmocka_unit_test(test_budget),
		cmocka_unit_test(test_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
