/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adaptors limit and check where text does not do (tests/policies/adapt_*.rules; files of log:
 * tests/cli adaptor_log): a device that held something before, and `check` over a policy made to
 * break one promise after the other. For that its source is included, so that the inner policy can
 * be exchanged.
 */
#include "policies/adapt_check.c"

#include "must.h"
#include "test.h"

/* limit: a refusal leaves nothing cached, and what the device held before does not count. */
TEST(limit_gives_back_what_was_too_much)
{
	struct frag_policy_env env = { .limit_bytes = UINT64_MAX };
	struct frag_sim_config card = { .total_bytes = 64 * MIB };
	struct frag_request req = { .bytes = 2 * MIB + 512 };
	struct frag_policy_spec *spec = must_parse_policy("limit:bytes=3M/cupy");
	struct frag_policy p;
	struct frag_block b = { 0 };
	frag_addr_t other;

	env.dev = must_open_sim(&card);
	assert_int_equal(frag_dev_alloc(env.dev, 8 * MIB, &other, &test_err), 0);
	assert_int_equal(frag_policy_create(spec, &env, &p, &test_err), 0);
	assert_int_equal(p.ops->alloc(p.self, &req, &b, &test_err), FRAG_OOM);
	assert_int_equal(env.dev->reserved_bytes, 8 * MIB);
	req.bytes = 2 * MIB;
	assert_int_equal(p.ops->alloc(p.self, &req, &b, &test_err), 0);
	assert_int_equal(env.dev->reserved_bytes, 10 * MIB);
	frag_policy_destroy(&p);
	frag_policy_spec_destroy(spec);
	assert_int_equal(frag_dev_free(env.dev, other, 8 * MIB, &test_err), 0);
	frag_dev_close(env.dev);
}

/* ---- check ---------------------------------------------------------------------------------- */

/* A policy that hands out what the test says, and walks as the test says: the first is a segment. */
static struct {
	frag_addr_t addr;
	uint64_t granted;
	int check_rc;
	struct frag_usage usage;
	struct {
		frag_addr_t addr;
		uint64_t bytes;
		enum frag_block_state state;
		uint64_t releasable;
	} walk[3];
	frag_addr_t second_segment;
} fake;

static int fake_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		      struct frag_err *err)
{
	out->addr = fake.addr;
	out->granted = fake.granted;
	return 0;
}

static int fake_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	return 0;
}

static void fake_visit(void *self, const struct frag_visitor *v)
{
	v->segment(v->ctx, fake.walk[0].addr, fake.walk[0].bytes, 0);
	for (size_t i = 1; i < FRAG_ARRAY_LEN(fake.walk); i++)
		v->block(v->ctx, fake.walk[i].addr, fake.walk[i].bytes, fake.walk[i].state,
			 fake.walk[i].releasable);
	if (fake.second_segment)
		v->segment(v->ctx, fake.second_segment, 300, 0);
}

static int fake_check(void *self, struct frag_err *err)
{
	return fake.check_rc ? frag_fail(err, FRAG_ECHECK, "list of trolls is broken") : 0;
}

static void fake_usage(void *self, struct frag_usage *out)
{
	*out = fake.usage;
}

static const struct frag_policy_ops fake_ops = { .alloc = fake_alloc,
						 .free = fake_free,
						 .visit = fake_visit,
						 .check = fake_check,
						 .usage = fake_usage };

static const struct params all_checks = { .every = 1, .walk = true };
static const struct params no_walk = { .every = 1 };
static struct check checker;

static void checker_open(const struct params *p)
{
	checker = (struct check){ .p = p };
	checker.a.inner.policy.ops = &fake_ops;
	frag_bset_init(&checker.used);
	memset(&fake, 0, sizeof(fake));
	memset(&test_err, 0, sizeof(test_err));
}

static int ask(frag_addr_t addr, uint64_t granted, uint64_t bytes, struct frag_block *out)
{
	struct frag_request req = { .bytes = bytes };

	fake.addr = addr;
	fake.granted = granted;
	*out = (struct frag_block){ .requested = bytes };
	return check_alloc(&checker, &req, out, &test_err);
}

TEST(check_finds_overlaps)
{
	struct frag_block a, b;

	checker_open(&no_walk);
	assert_int_equal(ask(1000, 100, 100, &a), 0);
	FAILS(FRAG_ECHECK, "overlaps the one at 0x3e8", ask(1099, 50, 50, &b));
	FAILS(FRAG_ECHECK, "overlaps the one at 0x3e8", ask(950, 51, 50, &b));
	FAILS(FRAG_ECHECK, "overlaps", ask(1000, 100, 100, &b));
	FAILS(FRAG_ECHECK, "99 bytes granted where 100 were requested", ask(2000, 99, 100, &b));
	assert_int_equal(ask(1100, 50, 50, &b), 0);
	assert_int_equal(ask(900, 100, 50, &b), 0);
	assert_int_equal(check_free(&checker, &a, &test_err), 0);
	FAILS(FRAG_ECHECK, "not in use", check_free(&checker, &a, &test_err));
	assert_int_equal(ask(1050, 50, 50, &b), 0);
	fake.check_rc = 1;
	FAILS(FRAG_ECHECK, "list of trolls", ask(5000, 50, 50, &a));
	FAILS(FRAG_ECHECK, "not in use", check_free(&checker, &a, &test_err)); /* it went back */
	FAILS(FRAG_ECHECK, "list of trolls", check_free(&checker, &b, &test_err));
	frag_bset_release(&checker.used);
}

/* A segment of 300 with a block of 100 in use, then the same with one thing wrong. */
static void walk_again(void)
{
	fake.walk[0].addr = fake.walk[1].addr = 1000;
	fake.walk[0].bytes = 300;
	fake.walk[1].bytes = 100;
	fake.walk[1].state = FRAG_STATE_LIVE;
	fake.walk[2].addr = 1100;
	fake.walk[2].bytes = 200;
	fake.walk[2].state = FRAG_STATE_FREE;
	fake.walk[2].releasable = fake.second_segment = 0;
	fake.usage = (struct frag_usage){ .allocated_bytes = 100,
					  .free_bytes = 200,
					  .non_releasable_bytes = 200,
					  .largest_free_bytes = 200 };
}

/* With this changed, the walk after a trim is found wrong. */
#define WRONG(change, says) \
	do { \
		walk_again(); \
		change; \
		FAILS(FRAG_ECHECK, says, check_trim(&checker, 0, &test_err)); \
	} while (0)

TEST(check_finds_wrong_walks)
{
	struct frag_block a;

	checker_open(&all_checks);
	walk_again();
	assert_int_equal(ask(1000, 100, 100, &a), 0);
	SUCCEEDS(check_trim(&checker, 0, &test_err));
	WRONG(fake.walk[2].addr++, "does not join the one before at 0x44d");
	WRONG(fake.walk[2].bytes--, "do not fill their segment");
	WRONG(fake.walk[2].releasable = 201, "more is releasable");
	WRONG(fake.walk[1].state = FRAG_STATE_FREE, "finds 0 bytes in use, 100 were granted");
	WRONG(fake.walk[1].state = FRAG_STATE_WAITING, "100 bytes live and 0 waiting, the walk 0 "
						       "and 100");
	WRONG(fake.usage.releasable_bytes = 200, "200 bytes free and 200 releasable, the walk 200 "
						 "and 0");
	WRONG(fake.usage.largest_free_bytes = 100, "100 bytes as largest free block, the walk 200");
	WRONG(fake.second_segment = 1000, "segments out of order");
	walk_again();
	SUCCEEDS(check_trim(&checker, 0, &test_err));
	frag_bset_release(&checker.used);
}
