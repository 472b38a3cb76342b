/* SPDX-License-Identifier: Apache-2.0 */
/* verify on a card: here a simulated one, and one whose addresses only grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <frag/replay.h>
#include <frag/trace.h>

static struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };

static int verify_on(const char *path, struct frag_device *dev, const char *conf, uint64_t limit,
		     struct frag_verify_result *r, struct frag_err *err)
{
	struct frag_trace *trace = NULL;
	int rc = frag_trace_read(path, NULL, &trace, err);

	if (!rc)
		rc = frag_verify_card(trace, 0, dev, &h200, limit, conf, r, err);
	frag_trace_destroy(trace);
	frag_dev_close(dev);
	return rc;
}

static struct frag_device *sim(void)
{
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&h200, &d, NULL), 0);
	return d;
}

static void test_same(void **state)
{
	struct frag_verify_result r;
	struct frag_err err;

	(void)state;
	assert_int_equal(verify_on("traces/gnn.default.cft", sim(), NULL, UINT64_MAX, &r, &err), 0);
	assert_string_equal(r.first_difference, "");
	assert_true(r.identical);
	assert_int_equal(r.allocs, 9630);
	assert_int_equal(r.allocs_same, r.allocs);
	assert_int_equal(r.segments, 25);
	assert_int_equal(r.segments_same, r.segments);
	assert_true(r.peak_reserved_bytes > FRAG_GIB);
	frag_verify_result_release(&r);
}

/* Other settings make other segments. */
static void test_different(void **state)
{
	struct frag_verify_result r;
	struct frag_err err;

	(void)state;
	assert_int_equal(verify_on("traces/gnn.default.cft", sim(), "max_split_size_mb:128",
				   UINT64_MAX, &r, &err),
			 0);
	assert_false(r.identical);
	assert_non_null(strstr(r.first_difference, "on the card"));
	assert_true(r.segments_same < r.segments);
	frag_verify_result_release(&r);
}

/* The recording ran out of memory under a limit; without it the card serves everything. */
static void test_limit(void **state)
{
	struct frag_verify_result r;
	struct frag_err err;

	(void)state;
	assert_int_equal(verify_on("traces/oomcap.default.cft", sim(), NULL, UINT64_MAX, &r, &err),
			 0);
	assert_false(r.identical);
	assert_int_equal(r.ooms, 9);
	assert_int_equal(r.ooms_same, 0);
	frag_verify_result_release(&r);
}

static void test_late(void **state)
{
	struct frag_verify_result r;
	struct frag_err err;

	(void)state;
	assert_int_equal(verify_on("traces/gnn.late.cft", sim(), NULL, UINT64_MAX, &r, &err),
			 FRAG_ENOTSUP);
	assert_non_null(strstr(err.msg, "began late"));
}

static void test_no_conf(void **state)
{
	struct frag_verify_result r;
	struct frag_err err;

	(void)state;
	assert_int_equal(
		verify_on("traces/gnn.default.cft", sim(), "no_such:1", UINT64_MAX, &r, &err),
		FRAG_EUSAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),	cmocka_unit_test(test_different),
		cmocka_unit_test(test_limit),	cmocka_unit_test(test_late),
		cmocka_unit_test(test_no_conf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
