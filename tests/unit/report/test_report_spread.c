/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks or devices: worst, median, least, imbalance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report_rig.h"
#include "sample_report.h"

#include "report/page/html.h"
#include "report/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
			r->m.peak_reserved_bytes = gib[i][k] * FRAG_GIB;
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

static void figures(void **state)
{
	static const uint64_t gib[UNITS][3] = {
		{ 10, 4, 8 }, { 30, 4, 8 }, { 20, 5, 0 }, { 20, 3, 2 }
	};
	struct frag_spreads s;
	struct frag_text t = { 0 };
	struct units u;

	(void)state;
	units_init(&u, UNITS, gib);
	assert_int_equal(frag_spreads_init(&s, &u.report, NULL), 0);
	assert_int_equal(s.count, 3);
	/* by their worst; the one that fails somewhere is last */
	assert_string_equal(s.list[0].policy, "pytorch:expandable_segments:True");
	assert_int_equal(s.list[0].worst_bytes, 5 * FRAG_GIB);
	assert_int_equal(s.list[0].worst, 2);
	assert_int_equal(s.list[0].least_bytes, 3 * FRAG_GIB);
	assert_int_equal(s.list[0].least, 3);
	assert_int_equal(s.list[0].median_bytes, 4 * FRAG_GIB);
	assert_true(fabs(s.list[0].imbalance_ratio - 5 / 4.0) < 1e-9);
	assert_int_equal(s.list[1].worst_bytes, 30 * FRAG_GIB);
	assert_int_equal(s.list[1].median_bytes, 20 * FRAG_GIB);
	assert_int_equal(s.list[2].completed, 3);
	assert_int_equal(s.list[2].median_bytes, 8 * FRAG_GIB);
	frag_spreads_answer(&s, &u.report, &t);
	assert_non_null(strstr(t.s, "with 'pytorch:expandable_segments:True' that is "
				    "sample.default with 5 GiB, 25 % above the mean"));
	frag_text_release(&t);
	frag_spreads_release(&s);
	units_release(&u);
}

/* Policies that not all units have are left out; one unit has no spread. */
static void what_is_comparable(void **state)
{
	static const uint64_t gib[UNITS][3] = { { 10, 4, 8 }, { 30, 4, 8 } };
	struct frag_spreads s;
	struct units u;

	(void)state;
	units_init(&u, 2, gib);
	frag_host_free(u.sections[1].results[1].policy);
	u.sections[1].results[1].policy = frag_host_strdup("another");
	assert_int_equal(frag_spreads_init(&s, &u.report, NULL), 0);
	assert_int_equal(s.count, 2);
	frag_spreads_release(&s);
	assert_string_equal(frag_spreads_noun(&u.report), "traces");
	u.sections[1].first_of_trace = false;
	u.sections[0].devs_count = u.sections[1].devs_count = 2;
	assert_string_equal(frag_spreads_noun(&u.report), "devices");
	u.report.count = 1;
	assert_int_equal(frag_spreads_init(&s, &u.report, NULL), 0);
	assert_int_equal(s.count, 0);
	frag_spreads_release(&s);
	units_release(&u);
}

/* All outputs agree, and what is not known has no figure. */
static void outputs(void **state)
{
	static const uint64_t gib[UNITS][3] = { { 10, 4, 0 }, { 30, 4, 0 }, { 20, 5, 0 } };
	char *head[16], *cell[16], *rest, *save, *line;
	struct frag_text t = { 0 };
	struct units u;
	json_t *top, *list;
	size_t n, row = 0;

	(void)state;
	units_init(&u, 3, gib);
	assert_int_equal(frag_report_spread_csv(&u.report, &t, NULL), 0);
	n = rig_split_csv(rig_first_line(t.s, &rest), head, 16);
	top = frag_report_json(&u.report);
	list = json_object_get(top, "spread");
	assert_int_equal(json_array_size(list), 3);
	for (line = strtok_r(rest, "\n", &save); line; line = strtok_r(NULL, "\n", &save), row++) {
		const json_t *o = json_array_get(list, row);

		assert_int_equal(rig_split_csv(line, cell, 16), n);
		assert_string_equal(cell[0], json_string_value(json_object_get(o, "policy")));
		assert_int_equal(strtoull(cell[rig_column(head, n, "worst_bytes")], NULL, 10),
				 json_integer_value(json_object_get(o, "worst_bytes")));
	}
	assert_int_equal(row, 3);
	/* the last one completes nowhere */
	assert_string_equal(cell[rig_column(head, n, "worst_bytes")], "");
	json_decref(top);
	frag_text_release(&t);
	assert_int_equal(frag_report_table(&u.report, &t, NULL), 0);
	assert_non_null(strstr(t.s, "# all 3 traces together"));
	assert_non_null(strstr(t.s, "0 of 3"));
	frag_text_release(&t);
	units_release(&u);
}

/* Every host allocation in turn fails: an error, never half a text. */
static void memory_short(void **state)
{
	static const uint64_t gib[UNITS][3] = { { 10, 4, 0 }, { 30, 4, 0 } };
	struct units u;
	int rc = FRAG_ENOMEM;

	(void)state;
	units_init(&u, 2, gib);
	for (uint64_t n = 1; rc; n++) {
		struct frag_text csv = { 0 }, table = { 0 }, page = { 0 };

		assert_true(n < 5000);
		frag_host_fail_after(n);
		rc = frag_report_spread_csv(&u.report, &csv, NULL);
		rc = rc ? rc : frag_text_check(&csv, NULL);
		rc = rc ? rc : frag_report_table(&u.report, &table, NULL);
		rc = rc ? rc : frag_html_page(&u.report, NULL, 0, 0, "", &page, NULL);
		frag_host_fail_after(0);
		frag_text_release(&csv);
		frag_text_release(&table);
		frag_text_release(&page);
		if (rc)
			assert_int_equal(rc, FRAG_ENOMEM);
	}
	units_release(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures),
		cmocka_unit_test(what_is_comparable),
		cmocka_unit_test(outputs),
		cmocka_unit_test(memory_short),
	};

	return cmocka_run_group_tests_name("report_spread", tests, NULL, NULL);
}
