/* SPDX-License-Identifier: Apache-2.0 */
/* What shows results as text: escaping, tables, exact JSON. */
#include "test.h"

#include "sample_report.h"

#include "answer/table.h"

#include <math.h>

/* ---- text ---- */

TEST(escaping)
{
	static const struct {
		const char *in, *html, *csv;
	} rows[] = {
		{ "plain", "plain", "plain" },
		{ "", "", "" },
		{ "a,b", "a,b", "\"a,b\"" },
		{ "say \"x\"", "say &quot;x&quot;", "\"say \"\"x\"\"\"" },
		{ "<b>&'", "&lt;b&gt;&amp;&#39;", "<b>&'" },
		{ "two\nlines", "two\nlines", "\"two\nlines\"" },
		{ "\x01", "?", "?" },
		{ "\x1b[31m,", "?[31m,", "\"?[31m,\"" },
		{ "\xc3\xa9", "\xc3\xa9", "\xc3\xa9" },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct frag_text t = { 0 };

		frag_text_add_html(&t, rows[i].in);
		assert_string_equal(frag_text_str(&t), rows[i].html);
		frag_text_release(&t);
		frag_text_add_csv(&t, rows[i].in);
		assert_string_equal(frag_text_str(&t), rows[i].csv);
		frag_text_release(&t);
	}
}

TEST(numbers)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	const char *const texts[] = { FRAG_GROUPED(0),	     FRAG_GROUPED(999),
				      FRAG_GROUPED(1234567), FRAG_NS(999),
				      FRAG_NS(1500),	     FRAG_NS(45200000),
				      FRAG_NS(120000000000) };

	frag_text_add_number(&t, 0.1);
	frag_text_add(&t, "|");
	frag_text_add_number(&t, NAN);
	frag_text_add(&t, "|");
	frag_text_add_number(&t, INFINITY);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		frag_text_add(&t, "|");
		frag_text_add(&t, texts[i]);
	}
	assert_string_equal(frag_text_str(&t), "0.1|||0|999|1,234,567|999 ns|1.50 us|45.2 ms|120 "
					       "s");
}

TEST(a_table)
{
	struct row {
		const char *name;
		uint64_t bytes;
		const char *end;
	};
	static const struct frag_field fields[] = {
		FRAG_FIELD(TEXT, struct row, name, "name", ""),
		FRAG_FIELD(BYTES, struct row, bytes, "size", "", .unit = "MiB"),
		FRAG_FIELD(TEXT, struct row, end, "end", ""),
		FRAG_FIELD_END,
	};
	static const struct frag_shape shape = FRAG_SHAPE("", struct row, fields, "");
	static const struct row rows[] = { { "\xc3\xa9t\xc3\xa9", 7 * FRAG_MIB, "ok" },
					   { "b<c", 12345 * FRAG_MIB, "no" } };
	const struct frag_part part = { .shape = &shape, .rows = { rows, 2 } };
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	frag_part_print(&part, 0, &out);
	assert_string_equal(frag_text_str(&out), "name   size  end\n"
						 "        MiB  \n"
						 "\xc3\xa9t\xc3\xa9       7  ok\n"
						 "b<c   12345  no\n");
}

/* ---- JSON; CSV has the same: tests/report/peaks.py ---- */

static void check_json_result(const json_t *j, const struct frag_result *r)
{
	size_t count;
	const struct frag_metric_info *list = frag_metric_list(&count);
	const json_t *host = json_object_get(j, "host");

	assert_string_equal(json_string_value(json_object_get(j, "policy")), r->policy);
	assert_true(json_is_boolean(json_object_get(j, "completed")));
	if (r->oom.happened)
		assert_int_equal(json_integer_value(json_object_get(j, "first_oom")), r->oom.event);
	else
		assert_true(json_is_null(json_object_get(j, "first_oom")));
	for (size_t i = 0; i < count; i++) {
		const json_t *in = frag_report_is_host(&list[i]) ? host : j;
		const json_t *v = json_object_get(in, list[i].name);
		const char *at = (const char *)&r->m + list[i].offset;

		assert_non_null(v);
		if (list[i].type == FRAG_METRIC_T_U64)
			assert_int_equal(json_integer_value(v), *(const uint64_t *)at);
		else if (isnan(*(const double *)at))
			assert_true(json_is_null(v));
		else
			assert_true(fabs(json_number_value(v) - *(const double *)at) <=
				    1e-14 * fabs(*(const double *)at));
	}
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(j, "counters"), "balance")), -7);
	assert_true(json_is_null(json_object_get(j, "free_ns")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(host, "free_ns"), "coun"
											      "t")),
			 r->free_host_ns.count);
}

TEST(json_is_exact)
{
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	json_t *top;
	json_error_t bad;

	sample_init(&s, 7, EVENTS, true);
	sample_json(&s.report, &t);
	top = json_loads(t.s, JSON_REJECT_DUPLICATES, &bad);
	assert_non_null(top);
	assert_int_equal(json_integer_value(json_object_get(top, "schema")), FRAG_ANSWER_SCHEMA);
	assert_string_equal(json_string_value(json_object_get(top, "trace")), "sample.default");
	assert_true(json_string_length(json_object_get(top, "version")) > 0);
	assert_true(json_is_object(json_object_get(top, "device")));
	assert_true(json_is_null(json_object_get(json_object_get(top, "settings"), "limit_bytes")));
	assert_int_equal(json_array_size(json_object_get(top, "results")), 7);
	for (size_t i = 0; i < 7; i++)
		check_json_result(json_array_get(json_object_get(top, "results"), i),
				  &s.section.results[i]);
	assert_null(strstr(t.s, "nan"));
	assert_null(strstr(t.s, "inf"));
	json_decref(top);
}

/* Other host times, the same bytes. */
TEST(without_host_times_the_bytes_are_the_same)
{
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	struct frag_text a[2] = { 0 }, b[2] = { 0 };

	sample_init(&s, 5, EVENTS, true);
	s.report.omit_host = true;
	for (int i = 0; i < 2; i++) {
		sample_csv(&s.report, &a[i]);
		sample_json(&s.report, &b[i]);
		for (size_t k = 0; k < s.section.count; k++) {
			s.section.results[k].m.host_ns += 17;
			s.section.results[k].m.events_per_s *= 2;
			s.section.results[k].m.host_ns_per_op += 1;
			frag_hist_add(&s.section.results[k].alloc_host_ns[0], 1);
			frag_hist_add(&s.section.results[k].free_host_ns, 1);
		}
	}
	assert_string_equal(a[0].s, a[1].s);
	assert_string_equal(b[0].s, b[1].s);
	assert_non_null(strstr(b[0].s, "\"host\":null"));
	assert_null(strstr(b[0].s, "host_ns"));
	for (int i = 0; i < 2; i++) {
		frag_text_release(&a[i]);
		frag_text_release(&b[i]);
	}
}

TEST(invalid_utf8_becomes_valid_json)
{
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	json_t *top;

	sample_init(&s, 1, 100, true);
	frag_host_free(s.section.trace);
	s.section.trace = frag_host_strdup("bad\xff name");
	sample_json(&s.report, &t);
	top = json_loads(t.s, 0, NULL);
	assert_non_null(top);
	assert_string_equal(json_string_value(json_object_get(top, "trace")), "bad? name");
	json_decref(top);
}

/* ---- sections ---- */

static void assert_part(const char *text, const char *format, const char *word)
{
	char part[200];

	snprintf(part, sizeof(part), format, word);
	assert_non_null(strstr(text, part));
}

TEST(every_text_of_a_failed_policy_says_so)
{
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	struct frag_text t = { 0 };
	char event[80];

	sample_init(&s, 3, EVENTS, true);
	snprintf(event, sizeof(event), "event %llu", (ull)s.section.results[2].oom.event);
	sample_text(&s.report, frag_report_compare, &t);
	assert_part(t.s, "out of memory at %s\n", event);
	frag_text_release(&t);
	sample_text(&s.report, frag_report_replay, &t);
	assert_part(t.s, "out of memory: %s at ", event);
	assert_non_null(strstr(t.s, "; the replay stopped there\n"));
	frag_text_release(&t);
	s.section.results[2].m.events_count = EVENTS;
	s.section.results[2].m.ooms_count = 4;
	sample_text(&s.report, frag_report_compare, &t);
	assert_part(t.s, "4 requests skipped, first at %s\n", event);
	frag_text_release(&t);
}

/* Every host allocation in turn fails: an error, never half a text. */
TEST(memory_short)
{
	void (*const all[])(const struct frag_report *,
			    struct frag_answer *) = { frag_report_compare, frag_report_replay,
						      frag_report_page };
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_init(&s, 3, 300, true);
	s.report.counters = true;
	for (size_t k = 0; k < FRAG_ARRAY_LEN(all); k++) {
		unsigned failures = 0;

		FAIL_ALLOCATIONS(sample_try_text(&s.report, all[k], 80))
		failures++;
		assert_true(failures > 9);
	}
}
