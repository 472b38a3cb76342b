/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports where host memory is short: an error, never half a text. What they say: tests/cli
 * compare_*; figures of charts: tests/report/peaks.py; files and the map: tests/cli report_files.
 */
#include "test.h"

#include "must.h"
#include "report/charts/layout.h"
#include "report/report.h"

static struct frag_section sections[2];
static struct frag_report report;

typedef void make_fn(const struct frag_report *r, struct frag_answer *a);

static int text_of(make_fn *make, struct frag_text *out)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	make(&report, &a);
	return frag_answer_text(&a, 80, out, NULL);
}

TEST(memory_short)
{
	static const char *const policies[] = { "pytorch", "buddy" };
	make_fn *const all[] = { frag_report_compare, frag_report_replay, frag_report_page,
				 frag_report_index };
	struct frag_run_options opt = default_run();
	AUTO_TRACE t = must_read_bundled("modelpar.default");

	opt.limit_bytes = 10 * GIB; /* where one of them runs out of memory */
	for (uint32_t d = 0; d < FRAG_ARRAY_LEN(sections); d++) {
		SUCCEEDS(frag_section_init(&sections[d], t, d, NULL));
		sections[d].results = frag_host_calloc(2, sizeof(struct frag_result));
		for (size_t k = 0; k < FRAG_ARRAY_LEN(policies); k++)
			sections[d].results[sections[d].count++] =
				must_replay(policies[k], &t->devs[d], NULL, &opt);
	}
	report = (struct frag_report){ .command = "compare",
				       .sections = sections,
				       .counters = true,
				       .card = { .name = "H200", .total_bytes = 141 * GIB } };
	for (size_t k = 0; k < FRAG_ARRAY_LEN(all); k++) {
		struct frag_text text = { 0 };
		unsigned failures = 0;

		report.count = all[k] == frag_report_page ? 1 : 2;
		FAIL_ALLOCATIONS((frag_text_release(&text), text_of(all[k], &text)))
		failures++;
		assert_true(failures > 9);
		frag_text_release(&text);
	}
	for (uint32_t d = 0; d < FRAG_ARRAY_LEN(sections); d++)
		frag_section_release(&sections[d]);
}

TEST(memory_short_of_a_map)
{
	const struct frag_sim_config card = { .total_bytes = 64 * GIB };
	FRAG_AUTO(frag_layout_release) struct frag_layout l = { 0 };
	struct frag_run_options opt = default_run();
	AUTO_TRACE t = must_read_bundled("mempool.default");
	AUTO_SPEC spec = must_parse_policy("native");

	FAIL_ALLOCATIONS(frag_layout_make(spec, &card, &t->devs[0], UINT64_MAX, &opt, &l, NULL));
	assert_true(l.count > 0);
}
