/* SPDX-License-Identifier: Apache-2.0 */
/* Fences and synchronises on the simulated card. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <frag/device.h>

static struct frag_device *open_h200(void)
{
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX };
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	return d;
}

/* ---- fences ----------------------------------------------------------------- */

static bool done(struct frag_device *d, uint64_t fence, uint64_t lag)
{
	bool is = false;

	assert_int_equal(frag_dev_fence_done(d, fence, lag, &is, NULL), 0);
	return is;
}

static void test_fences(void **state)
{
	struct frag_device *d = open_h200();
	uint64_t a, b, c;

	(void)state;
	d->now_ns = 1000;
	assert_int_equal(frag_dev_fence_record(d, 3, &a, NULL), 0);
	assert_int_equal(frag_dev_fence_record(d, 4, &b, NULL), 0);
	assert_false(done(d, a, 10));
	assert_true(done(d, a, 0));
	d->now_ns = 1009;
	assert_false(done(d, a, 10));
	d->now_ns = 1010;
	assert_true(done(d, a, 10));
	assert_false(done(d, b, 11));
	/* a synchronise of the stream, and only of that stream */
	assert_int_equal(frag_dev_sync(d, 4, NULL), 0);
	assert_true(done(d, b, 1u << 30));
	assert_false(done(d, a, 1u << 30));
	/* at one and the same time: before the synchronise and after it */
	assert_int_equal(frag_dev_fence_record(d, 4, &c, NULL), 0);
	assert_false(done(d, c, 1));
	assert_true(done(d, b, 1));
	assert_int_equal(frag_dev_sync_all(d, NULL), 0);
	assert_true(done(d, a, 1u << 30));
	assert_true(done(d, c, 1u << 30));
	frag_dev_close(d);
}

/* A card that runs nothing else is done at once; one with a lag of its own takes that long. */
static void test_work(void **state)
{
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX, .work_idle = true };
	struct frag_device *d = NULL;
	uint64_t a;

	(void)state;
	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	assert_int_equal(frag_dev_fence_record(d, 1, &a, NULL), 0);
	assert_true(done(d, a, 1u << 30));
	frag_dev_close(d);
	cfg.work_idle = false;
	cfg.work_lag_ns = 500;
	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	assert_int_equal(frag_dev_fence_record(d, 1, &a, NULL), 0);
	d->now_ns = 499;
	assert_false(done(d, a, 10));
	d->now_ns = 500;
	assert_true(done(d, a, 1u << 30));
	frag_dev_close(d);
}

static void test_fence_limits(void **state)
{
	struct frag_device *d = open_h200();
	uint64_t a, b, c;

	(void)state;
	d->now_ns = UINT64_MAX;
	assert_int_equal(frag_dev_fence_record(d, 5000, &a, NULL), 0);
	assert_int_equal(frag_dev_fence_record(d, 6000, &b, NULL), 0);
	assert_false(done(d, a, 1000));
	/* streams beyond what a fence can name are done only by the device */
	assert_int_equal(frag_dev_sync(d, 5000, NULL), 0);
	assert_false(done(d, a, 1000));
	assert_false(done(d, b, 1000));
	assert_int_equal(frag_dev_sync_all(d, NULL), 0);
	assert_true(done(d, a, 1000));
	assert_true(done(d, b, 1000));
	assert_int_equal(frag_dev_fence_record(d, 4000, &c, NULL), 0);
	frag_dev_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fences),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_fence_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
