/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adaptors limit, log and check where text does not do (tests/policies/adapt_*.rules): a device
 * that held something before, files, and `check` over a policy made to break one promise after the
 * other. For that its source is included, so that the inner policy can be exchanged.
 */
#include "policies/adapt_check.c"

#include "must.h"
#include "test.h"

#include <unistd.h>

#include "rig.h"

static struct rig rig;

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

/* ---- log ---------------------------------------------------------------------------------- */

static void read_file(const char *path, char *buf, size_t cap)
{
	FRAG_AUTO(fclose_at) FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(buf, 1, cap - 1, f);
	buf[n] = '\0';
}

TEST(log_writes_rmm_csv)
{
	struct rig_options o = { .still = true };
	const char *path = test_path("a.csv");
	char want[400], got[400], text[128];
	frag_addr_t at;

	snprintf(text, sizeof(text), "log:file=%s/rmm-pool", path);
	must_open_rig(&rig, text, &o);
	assert_int_equal(rig_alloc(&rig, 0, 1000, 0, 0), 0);
	at = rig.slots[0].block.addr;
	rig.dev->now_ns = 3723000456789; /* 1 h 2 min 3.000456 s */
	assert_int_equal(rig_alloc(&rig, 1, 8 * GIB, 2, 0), FRAG_OOM);
	rig.dev->now_ns += 1000000000;
	assert_int_equal(rig_free(&rig, 0), 0);
	assert_int_equal(access(path, F_OK), -1); /* not before it is complete */
	rig_close(&rig);
	snprintf(want, sizeof(want),
		 "Thread,Time,Action,Pointer,Size,Stream\n"
		 "1,00:00:00.000000,allocate,0x%llx,1000,0\n"
		 "1,01:02:03.000456,allocate failure,(nil),8589934592,2\n"
		 "1,01:02:04.000456,free,0x%llx,1000,0\n",
		 (ull)at, (ull)at);
	read_file(path, got, sizeof(got));
	assert_string_equal(got, want);
	unlink(path);
}

/* create fails, or the call that meets the full device does; the block goes back. */
TEST(log_reports_failed_writes)
{
	static const struct rig_options none;
	int rc = 0;

	assert_int_equal(rig_open(&rig, "log:file=/nonexistent/x.csv/native", &none), FRAG_EOUTPUT);
	assert_non_null(strstr(rig.err.msg, "/nonexistent/x.csv"));
	must_open_rig(&rig, "log:file=/dev/full/native", NULL);
	for (int i = 0; i < 1000 && !rc; i++) {
		rc = rig_alloc(&rig, 0, 1000, 0, 0);
		if (!rc)
			rig_free(&rig, 0);
	}
	assert_int_equal(rc, FRAG_EOUTPUT);
	assert_int_equal(rig.dev->reserved_bytes, 0);
	rig_close(&rig);
}

/* ---- check ---------------------------------------------------------------------------------- */

struct walked {
	frag_addr_t addr;
	uint64_t bytes;
	int state; /* -1: a segment */
	uint64_t releasable;
};

/* A policy that hands out what the test says, and walks as the test says. */
static struct {
	frag_addr_t addr;
	uint64_t granted;
	int check_rc;
	struct frag_usage usage;
	struct walked walk[4];
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
	for (size_t i = 0; i < FRAG_ARRAY_LEN(fake.walk) && fake.walk[i].bytes; i++) {
		if (fake.walk[i].state < 0)
			v->segment(v->ctx, fake.walk[i].addr, fake.walk[i].bytes, 0);
		else
			v->block(v->ctx, fake.walk[i].addr, fake.walk[i].bytes,
				 (enum frag_block_state)fake.walk[i].state,
				 fake.walk[i].releasable);
	}
}

static int fake_check(void *self, struct frag_err *err)
{
	return fake.check_rc ? frag_fail(err, FRAG_ECHECK, "list of trolls is broken") : 0;
}

static void fake_usage(void *self, struct frag_usage *out)
{
	*out = fake.usage;
}

static const struct frag_policy_ops fake_ops = {
	.alloc = fake_alloc,
	.free = fake_free,
	.visit = fake_visit,
	.check = fake_check,
	.usage = fake_usage,
};

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
	static const int segment = -1;
	const struct walked walk[4] = { { 1000, 300, segment, 0 },
					{ 1000, 100, FRAG_STATE_LIVE, 0 },
					{ 1100, 200, FRAG_STATE_FREE, 0 } };

	memcpy(fake.walk, walk, sizeof(walk));
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
	WRONG(fake.walk[3] = fake.walk[0], "segments out of order");
	walk_again();
	SUCCEEDS(check_trim(&checker, 0, &test_err));
	frag_bset_release(&checker.used);
}
