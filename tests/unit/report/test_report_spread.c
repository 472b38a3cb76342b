/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks or devices: worst, median, least, imbalance. */
#include "test.h"

#include "sample_report.h"

#include "report/rows.h"

#include <math.h>

#define UNITS 4

struct units {
	struct sample s[UNITS];
	struct frag_section sections[UNITS];
	struct frag_report report;
	size_t count;
};

/* Sections of three policies each; peaks in GiB, 0 = runs out of memory. */
static void units_init(struct units *u, size_t count, const uint64_t (*gib)[3])
{
	for (size_t i = 0; i < count; i++) {
		sample_init(&u->s[i], 3, 200, true);
		for (size_t k = 0; k < 3; k++) {
			struct frag_result *r = &u->s[i].section.results[k];

			r->completed = gib[i][k] != 0;
			r->m.peak_reserved_bytes = gib[i][k] * GIB;
		}
		u->s[i].section.ordinal = (uint32_t)i;
		u->s[i].section.first_of_trace = true;
		u->sections[i] = u->s[i].section;
	}
	u->report = u->s[0].report;
	u->report.sections = u->sections;
	u->report.count = u->count = count;
}

static void units_release(struct units *u)
{
	for (size_t i = 0; i < u->count; i++)
		sample_release(&u->s[i]);
}

TEST(figures)
{
	static const uint64_t gib[UNITS][3] = {
		{ 10, 4, 8 }, { 30, 4, 8 }, { 20, 5, 0 }, { 20, 3, 2 }
	};
	const struct frag_spread_row *x;
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	struct frag_rows rows;
	FRAG_AUTO(units_release) struct units u = { 0 };

	units_init(&u, UNITS, gib);
	rows = frag_spread_rows(&u.report, &a);
	x = rows.rows;
	assert_int_equal(rows.count, 3);
	/* by their worst; the one that fails somewhere is last */
	assert_string_equal(x[0].policy, "pytorch:expandable_segments:True");
	assert_int_equal(x[0].worst_bytes, 5 * GIB);
	assert_int_equal(x[0].worst, 2);
	assert_int_equal(x[0].least_bytes, 3 * GIB);
	assert_int_equal(x[0].least, 3);
	assert_int_equal(x[0].median_bytes, 4 * GIB);
	assert_int_equal(x[0].spread_bytes, 2 * GIB);
	assert_true(fabs(x[0].imbalance_ratio - 5 / 4.0) < 1e-9);
	assert_int_equal(x[1].worst_bytes, 30 * GIB);
	assert_int_equal(x[1].median_bytes, 20 * GIB);
	assert_int_equal(x[2].completed_count, 3);
	assert_int_equal(x[2].median_bytes, 8 * GIB);
	sample_text(&u.report, frag_report_compare, &t);
	assert_non_null(strstr(t.s, "with 'pytorch:expandable_segments:True' that is "
				    "sample.default with 5 GiB, 25 % above the mean"));
}

/* Policies that not all units have are left out; one unit has no spread. */
TEST(what_is_comparable)
{
	static const uint64_t gib[UNITS][3] = { { 10, 4, 8 }, { 30, 4, 8 } };
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(units_release) struct units u = { 0 };

	units_init(&u, 2, gib);
	frag_host_free(u.sections[1].results[1].policy);
	u.sections[1].results[1].policy = frag_host_strdup("another");
	assert_int_equal(frag_spread_rows(&u.report, &a).count, 2);
	assert_string_equal(frag_spread_noun(&u.report), "traces");
	u.sections[1].first_of_trace = false;
	u.sections[0].devs_count = u.sections[1].devs_count = 2;
	assert_string_equal(frag_spread_noun(&u.report), "devices");
	u.report.count = 1;
	assert_int_equal(frag_spread_rows(&u.report, &a).count, 0);
}

/* What is not known has no figure: null, "-" and an empty field. */
TEST(outputs)
{
	static const uint64_t gib[UNITS][3] = { { 10, 4, 0 }, { 30, 4, 0 }, { 20, 5, 0 } };
	struct frag_text t = { 0 }, csv = { 0 };
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	struct frag_rows rows;
	FRAG_AUTO(units_release) struct units u = { 0 };
	json_t *top, *list;

	units_init(&u, 3, gib);
	rows = frag_spread_rows(&u.report, &a);
	frag_shape_csv(&frag_spread_shape, rows.rows, rows.count, &csv);
	/* the last one completes nowhere */
	assert_non_null(strstr(csv.s, "pytorch:max_split_size_mb:128,3,0,,,,,,,,,,,\n"));
	sample_json(&u.report, &t);
	top = json_loads(t.s, 0, NULL);
	list = json_object_get(top, "spread");
	assert_int_equal(json_array_size(list), 3);
	assert_true(json_is_null(json_object_get(json_array_get(list, 2), "worst_bytes")));
	json_decref(top);
	frag_text_release(&t);
	sample_text(&u.report, frag_report_compare, &t);
	assert_non_null(strstr(t.s, "# all 3 traces together"));
	assert_non_null(strstr(t.s, "0 of 3"));
	frag_text_release(&t);
	frag_text_release(&csv);
}

/* Every host allocation in turn fails: an error, never half a text. */
TEST(memory_short)
{
	static const uint64_t gib[UNITS][3] = { { 10, 4, 0 }, { 30, 4, 0 } };
	FRAG_AUTO(units_release) struct units u = { 0 };

	units_init(&u, 2, gib);
	FAIL_ALLOCATIONS(sample_try_text(&u.report, frag_report_index, 0));
}
