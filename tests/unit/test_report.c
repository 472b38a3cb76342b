/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shows results: exact CSV and JSON, escaping, order and answer, charts'
 * data, and files that are complete or absent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sample_report.h"

#include "base/outfile.h"
#include "report/chart.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/summary.h"
#include "report/svg.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS 3000
#define NASTY "<script>alert(\"x\")</script>&'"

/* ---- helpers ---- */

/* Splits one CSV line in place by RFC 4180; returns the number of fields. */
static size_t split_csv(char *line, char **fields, size_t cap)
{
	size_t n = 0;

	for (char *p = line;; p++) {
		char *to = p;

		assert_true(n < cap);
		fields[n++] = to;
		if (*p == '"') {
			for (p++; !(p[0] == '"' && p[1] != '"'); p++) {
				assert_int_not_equal(*p, '\0');
				p += *p == '"';
				*to++ = *p;
			}
			p++;
		} else {
			p += strcspn(p, ",");
			to = p;
		}
		assert_true(*p == ',' || *p == '\0');
		if (!*p) {
			*to = '\0';
			return n;
		}
		*to = '\0';
	}
}

static size_t column(char **head, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(head[i], name))
			return i;
	}
	fail_msg("no column '%s'", name);
	return 0;
}

/* Checks that all rows are as wide as the head; returns the number of rows. */
static size_t check_rows(char *text, size_t columns)
{
	char *fields[64], *save;
	size_t rows = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		assert_int_equal(split_csv(line, fields, 64), columns);
		rows++;
	}
	return rows;
}

static char *first_line(char *text, char **rest)
{
	char *end = strchr(text, '\n');

	assert_non_null(end);
	*end = '\0';
	*rest = end + 1;
	return text;
}

static size_t count_files(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	if (!d)
		return SIZE_MAX;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void remove_tree(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		char *path = frag_path_join(dir, e->d_name);

		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlink(path);
		frag_host_free(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

static char scratch[64];

static int make_scratch(void **state)
{
	(void)state;
	snprintf(scratch, sizeof(scratch), "/tmp/cufrag-report-XXXXXX");
	return mkdtemp(scratch) ? 0 : -1;
}

static int drop_scratch(void **state)
{
	(void)state;
	remove_tree(scratch);
	return 0;
}

/* ---- text ---- */

static void escaping(void **state)
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
		{ "\x01", "?", "\x01" },
		{ "\xc3\xa9", "\xc3\xa9", "\xc3\xa9" },
	};

	(void)state;
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

static void numbers(void **state)
{
	struct frag_text t = { 0 };

	(void)state;
	frag_text_add_number(&t, 0.1);
	frag_text_add(&t, "|");
	frag_text_add_number(&t, NAN);
	frag_text_add(&t, "|");
	frag_text_add_number(&t, INFINITY);
	frag_text_add(&t, "|");
	frag_text_add_grouped(&t, 0);
	frag_text_add(&t, "|");
	frag_text_add_grouped(&t, 999);
	frag_text_add(&t, "|");
	frag_text_add_grouped(&t, 1234567);
	frag_text_add(&t, "|");
	frag_text_add_ns(&t, 999);
	frag_text_add(&t, "|");
	frag_text_add_ns(&t, 1500);
	frag_text_add(&t, "|");
	frag_text_add_ns(&t, 45200000);
	frag_text_add(&t, "|");
	frag_text_add_ns(&t, 120000000000);
	assert_string_equal(frag_text_str(&t), "0.1|||0|999|1,234,567|999 ns|1.50 us|45.2 ms|120 "
					       "s");
	frag_text_release(&t);
}

static void a_table(void **state)
{
	struct frag_table t = { 0 };
	struct frag_text out = { 0 };

	(void)state;
	frag_table_column(&t, &(struct frag_table_column){ "name", "", true, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "size", "MiB", false, "how <much>" });
	frag_table_column(&t, &(struct frag_table_column){ "end", "", true, NULL });
	frag_table_cell(&t, "%s", "\xc3\xa9t\xc3\xa9");
	frag_table_cell(&t, "%d", 7);
	frag_table_cell(&t, "ok");
	frag_table_cell(&t, "%s", "b<c");
	frag_table_cell(&t, "%d", 12345);
	frag_table_cell(&t, "no");
	frag_table_print(&t, &out);
	assert_string_equal(frag_text_str(&out), "name   size  end\n"
						 "        MiB  \n"
						 "\xc3\xa9t\xc3\xa9       7  ok\n"
						 "b<c   12345  no\n");
	frag_text_release(&out);
	frag_table_html(&t, 1, &out);
	assert_non_null(strstr(frag_text_str(&out), "title=\"how &lt;much&gt;\""));
	assert_non_null(strstr(frag_text_str(&out), "<tr class=\"best\"><td "
						    "class=\"l\">b&lt;c</td>"));
	frag_text_release(&out);
	frag_table_release(&t);
}

/* ---- CSV and JSON ---- */

static void csv_is_exact(void **state)
{
	struct sample s;
	struct frag_text t = { 0 };
	char *head[64], *cell[64], *rest, *save;
	size_t n, metrics, row = 0;
	const struct frag_metric_info *list = frag_metric_list(&metrics);

	(void)state;
	sample_init(&s, 7, EVENTS, true);
	frag_report_csv(&s.report, &t);
	n = split_csv(first_line(t.s, &rest), head, 64);
	assert_int_equal(n, 9 + metrics);
	for (char *line = strtok_r(rest, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save), row++) {
		const struct frag_result *r = &s.section.results[row];

		assert_int_equal(split_csv(line, cell, 64), n);
		assert_string_equal(cell[column(head, n, "policy")], r->policy);
		assert_string_equal(cell[column(head, n, "completed")],
				    r->completed ? "true" : "false");
		if (!r->oom.happened)
			assert_string_equal(cell[column(head, n, "first_oom")], "");
		else
			assert_int_equal(strtoull(cell[column(head, n, "first_oom")], NULL, 10),
					 r->oom.event);
		assert_string_equal(cell[column(head, n, "free_frag_ratio")], "");
		for (size_t i = 0; i < metrics; i++) {
			const char *at = (const char *)&r->m + list[i].offset;
			const char *got = cell[column(head, n, list[i].name)];

			if (list[i].type == FRAG_METRIC_T_U64)
				assert_int_equal(strtoull(got, NULL, 10), *(const uint64_t *)at);
			else if (!isnan(*(const double *)at))
				assert_true(fabs(strtod(got, NULL) - *(const double *)at) <=
					    1e-14 * fabs(*(const double *)at));
		}
	}
	assert_int_equal(row, 7);
	frag_text_release(&t);
	sample_release(&s);
}

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
			assert_true(json_is_real(v));
	}
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(j, "counters"), "balance")), -7);
	assert_true(json_is_null(json_object_get(json_object_get(j, "free_ns"), "p50")) ||
		    json_is_null(json_object_get(j, "free_ns")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(host, "free_ns"), "coun"
											      "t")),
			 r->free_host_ns.count);
}

static void json_is_exact(void **state)
{
	struct sample s;
	struct frag_text t = { 0 };
	json_t *top;
	json_error_t bad;

	(void)state;
	sample_init(&s, 7, EVENTS, true);
	assert_int_equal(frag_report_json_text(&s.report, &t, NULL), 0);
	top = json_loads(t.s, JSON_REJECT_DUPLICATES, &bad);
	assert_non_null(top);
	assert_int_equal(json_integer_value(json_object_get(top, "schema")), 1);
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
	frag_text_release(&t);
	sample_release(&s);
}

/* Other host times, the same bytes. */
static void without_host_times_the_bytes_are_the_same(void **state)
{
	struct sample s;
	struct frag_text a[2] = { 0 }, b[2] = { 0 };

	(void)state;
	sample_init(&s, 5, EVENTS, true);
	s.report.omit_host = true;
	for (int i = 0; i < 2; i++) {
		frag_report_csv(&s.report, &a[i]);
		assert_int_equal(frag_report_json_text(&s.report, &b[i], NULL), 0);
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
	assert_null(strstr(b[0].s, "host_ns"));
	for (int i = 0; i < 2; i++) {
		frag_text_release(&a[i]);
		frag_text_release(&b[i]);
	}
	sample_release(&s);
}

static void invalid_utf8_becomes_valid_json(void **state)
{
	struct sample s;
	struct frag_text t = { 0 };
	json_t *top;

	(void)state;
	sample_init(&s, 1, 100, true);
	frag_host_free(s.section.trace);
	s.section.trace = frag_host_strdup("bad\xff name");
	assert_int_equal(frag_report_json_text(&s.report, &t, NULL), 0);
	top = json_loads(t.s, 0, NULL);
	assert_non_null(top);
	assert_string_equal(json_string_value(json_object_get(top, "trace")), "bad? name");
	json_decref(top);
	frag_text_release(&t);
	sample_release(&s);
}

/* ---- sections ---- */

static void order_and_answer(void **state)
{
	struct sample s;
	size_t order[5];
	struct frag_text t = { 0 };

	(void)state;
	sample_init(&s, 5, EVENTS, true);
	/* policy 2 has failed; 1 and 4 are the best and equal, so 1 comes first */
	for (size_t k = 0; k < 5; k++)
		s.section.results[k].m.peak_reserved_bytes =
			(k == 1 || k == 4 ? 8 : 10 + k) * FRAG_GIB;
	s.section.results[2].m.peak_reserved_bytes = FRAG_GIB;
	frag_section_order(&s.section, order);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 4);
	assert_int_equal(order[2], 0);
	assert_int_equal(order[3], 3);
	assert_int_equal(order[4], 2);
	assert_int_equal(frag_section_best(&s.section), 1);
	s.section.duration_us = 1000000;
	for (size_t k = 0; k < 5; k++)
		s.section.results[k].m.modelled_ns = k == 1 || k == 4 ? 60000000 : 9000000;
	s.section.baseline_recorded = true;
	frag_section_answer(&s.report, &s.section, &t);
	assert_non_null(
		strstr(frag_text_str(&t),
		       "of the policies that spend less than 1 % of the recorded time in the "
		       "driver, 'pytorch' needs least: 10 GiB reserved at peak; these are the "
		       "recorded settings, and no other of these needs less; the smallest known "
		       "card with room for it is "));
	assert_non_null(strstr(frag_text_str(&t), ". 'pytorch:expandable_segments:True' would do "
						  "with 8 GiB, but spends "
						  "60.0 ms in the driver, 6.0 % of the recorded "
						  "time"));
	frag_text_release(&t);
	for (size_t k = 0; k < 5; k++)
		s.section.results[k].completed = false;
	assert_int_equal(frag_section_best(&s.section), SIZE_MAX);
	frag_section_answer(&s.report, &s.section, &t);
	assert_string_equal(frag_text_str(&t), "no policy completes 'sample.default' here: every "
					       "one of them runs out of "
					       "memory");
	frag_text_release(&t);
	sample_release(&s);
}

static void every_text_of_a_failed_policy_says_so(void **state)
{
	struct sample s;
	struct frag_text t = { 0 };

	(void)state;
	sample_init(&s, 3, EVENTS, true);
	/* the sample counts all events for everyone; this one stopped */
	s.section.results[2].m.events_count = s.section.results[2].oom.event;
	assert_int_equal(frag_report_table(&s.report, &t, NULL), 0);
	assert_non_null(strstr(t.s, "out of memory at event 2000\n"));
	frag_text_release(&t);
	assert_int_equal(frag_report_detail(&s.report, &t, NULL), 0);
	assert_non_null(strstr(t.s, "out of memory: event 2000 at "));
	assert_non_null(strstr(t.s, "; the replay stopped there\n"));
	frag_text_release(&t);
	s.section.results[2].m.events_count = EVENTS;
	s.section.results[2].m.ooms_count = 4;
	assert_int_equal(frag_report_table(&s.report, &t, NULL), 0);
	assert_non_null(strstr(t.s, "4 requests skipped, first at event 2000\n"));
	frag_text_release(&t);
	sample_release(&s);
}

/* ---- charts ---- */

static void charts_have_scripts_and_whole_rows(void **state)
{
	struct sample s;
	size_t order[16], charts = 0;
	const struct frag_chart_ops *ops;
	char *dir;

	(void)state;
	sample_init(&s, 14, EVENTS, true);
	frag_section_order(&s.section, order);
	assert_int_equal(frag_plot_scripts(&dir, NULL), 0);
	for (; (ops = frag_chart_at(charts)); charts++) {
		struct frag_chart_job job = { &s.report, &s.section, order };
		struct frag_text t = { 0 }, words = { 0 };
		char *fields[64], *rest, file[64], *path;
		size_t columns;

		assert_true(!ops->wanted || ops->wanted(&job));
		ops->csv(&job, &t);
		assert_int_equal(frag_text_check(&t, NULL), 0);
		assert_null(strstr(t.s, "nan"));
		columns = split_csv(first_line(t.s, &rest), fields, 64);
		assert_true(check_rows(rest, columns) > 0);
		ops->caption(&job, &words);
		assert_true(words.len > 40);
		ops->alt(&job, &words);
		snprintf(file, sizeof(file), "%s.gp", ops->name);
		path = frag_path_join(dir, file);
		assert_int_equal(access(path, R_OK), 0);
		frag_host_free(path);
		frag_text_release(&t);
		frag_text_release(&words);
	}
	assert_true(charts >= 9);
	frag_host_free(dir);
	sample_release(&s);
}

static const struct frag_chart_ops *chart_named(const char *name)
{
	const struct frag_chart_ops *ops;

	for (size_t i = 0; (ops = frag_chart_at(i)); i++) {
		if (!strcmp(ops->name, name))
			return ops;
	}
	fail_msg("no chart '%s'", name);
	return NULL;
}

static void peak_chart_adds_up(void **state)
{
	struct sample s;
	size_t order[5];
	struct frag_text t = { 0 };
	char *head[64], *cell[64], *rest, *save;
	size_t n;

	(void)state;
	sample_init(&s, 5, EVENTS, true);
	frag_section_order(&s.section, order);
	chart_named("peak")->csv(&(struct frag_chart_job){ &s.report, &s.section, order }, &t);
	n = split_csv(first_line(t.s, &rest), head, 64);
	for (char *line = strtok_r(rest, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		static const char *const parts[] = { "requested_bytes",	 "rounding_bytes",
						     "waiting_bytes",	 "pinned_bytes",
						     "releasable_bytes", "other_bytes" };
		uint64_t sum = 0;

		split_csv(line, cell, 64);
		for (size_t i = 0; i < FRAG_ARRAY_LEN(parts); i++)
			sum += strtoull(cell[column(head, n, parts[i])], NULL, 10);
		assert_int_equal(sum,
				 strtoull(cell[column(head, n, "peak_reserved_bytes")], NULL, 10));
	}
	frag_text_release(&t);
	sample_release(&s);
}

/* The largest value of the curve is the peak, and an early end is marked. */
static void memory_chart_keeps_peaks_and_ends(void **state)
{
	struct sample s;
	size_t order[3];
	struct frag_text t = { 0 };
	char *head[64], *cell[64], *rest, *save;
	size_t n, ooms = 0;
	uint64_t peak[3] = { 0 };

	(void)state;
	sample_init(&s, 3, EVENTS, false);
	s.section.results[2].m.events_count = s.section.results[2].oom.event;
	frag_section_order(&s.section, order);
	chart_named("memory")->csv(&(struct frag_chart_job){ &s.report, &s.section, order }, &t);
	n = split_csv(first_line(t.s, &rest), head, 64);
	for (char *line = strtok_r(rest, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		uint64_t v, k;

		split_csv(line, cell, 64);
		k = strtoull(cell[0], NULL, 10);
		v = strtoull(cell[column(head, n, "reserved_max_bytes")], NULL, 10);
		peak[k] = FRAG_MAX(peak[k], v);
		assert_string_equal(cell[column(head, n, "time_s")], ""); /* the trace has none */
		ooms += !strcmp(cell[column(head, n, "state")], "oom") && k == 2;
	}
	assert_int_equal(ooms, 1);
	for (size_t k = 0; k < 3; k++)
		assert_int_equal(peak[k], s.section.results[k].m.peak_reserved_bytes);
	frag_text_release(&t);
	sample_release(&s);
}

/* ---- the page ---- */

static void svg_inlining(void **state)
{
	static const char svg[] =
		"<?xml version=\"1.0\"?>\n<svg \n width=\"900\" height=\"400\"\n viewBox=\"0 0 1 "
		"1\">\n"
		"<title>Gnuplot</title><rect x=\"0\" y=\"0\" width=\"9\" height=\"9\" "
		"fill=\"#ffffff\"/>\n<g id='a'/><use xlink:href='#a' color='rgb( 34,  34,  34)'/>"
		"<path stroke='rgb(  0, 114, 178)' clip-path=\"url(#c)\"/></svg>\n";
	struct frag_text t = { 0 };

	(void)state;
	frag_svg_inline(svg, "p-", NASTY, &t);
	assert_string_equal(frag_text_str(&t),
			    "<svg xmlns=\"http://www.w3.org/2000/svg\" "
			    "xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 900 400\" "
			    "role=\"img\" aria-label=\"&lt;script&gt;alert(&quot;x&quot;)"
			    "&lt;/script&gt;&amp;&#39;\">\n\n<g id='p-a'/><use xlink:href='#p-a' "
			    "color='var(--ink)'/><path stroke='#0072b2' "
			    "clip-path=\"url(#p-c)\"/></svg>\n");
	frag_text_release(&t);
	frag_svg_inline("no picture", "p-", "", &t);
	assert_int_equal(t.len, 0);
}

/* Names from outside never reach the page as markup. */
static void the_page_escapes_everything(void **state)
{
	struct sample s;
	struct frag_text t = { 0 };
	struct frag_figure figure = { .base = (char *)NASTY, .svg = (char *)"" };

	(void)state;
	sample_init(&s, 4, EVENTS, true);
	figure.ops = chart_named("peak");
	for (size_t k = 0; k < 4; k++) {
		frag_host_free(s.section.results[k].policy);
		s.section.results[k].policy = frag_host_strdup(NASTY);
	}
	frag_host_free(s.section.trace);
	frag_host_free(s.section.conf);
	s.section.trace = frag_host_strdup(NASTY);
	s.section.conf = frag_host_strdup(NASTY);
	s.section.devs_count = 2;
	s.report.command_line = NASTY;
	snprintf(s.report.card.name, sizeof(s.report.card.name), "%s", NASTY);
	assert_int_equal(frag_html_page(&s.report, &figure, 1, 7, &t, NULL), 0);
	assert_null(strstr(t.s, "<script"));
	assert_null(strstr(t.s, "\"x\""));
	assert_non_null(strstr(t.s, "&lt;script&gt;"));
	assert_non_null(strstr(t.s, "</html>"));
	frag_text_release(&t);
	sample_release(&s);
}

/* ---- files ---- */

static void outfile_complete_or_absent(void **state)
{
	struct frag_outfile out;
	struct frag_err err = { 0 };
	char *path = frag_path_join(scratch, "a"), *under = frag_path_join(scratch, "a/b");
	char text[8] = "";
	FILE *f;

	(void)state;
	assert_int_equal(frag_outfile_open(&out, path, &err), 0);
	fputs("half", out.to);
	assert_int_not_equal(access(path, F_OK), 0);
	frag_outfile_abort(&out);
	assert_int_equal(count_files(scratch), 0);
	assert_int_equal(frag_outfile_put(path, "whole", 5, &err), 0);
	assert_int_equal(frag_outfile_put(path, "newer", 5, &err), 0);
	assert_int_equal(count_files(scratch), 1);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fread(text, 1, 7, f), 5);
	fclose(f);
	assert_string_equal(text, "newer");
	/* the folder is a file */
	assert_int_equal(frag_outfile_put(under, "x", 1, &err), FRAG_EOUTPUT);
	assert_non_null(strstr(err.msg, under));
	assert_int_equal(frag_make_dirs(under, &err), FRAG_EOUTPUT);
	/* the target is a folder: rename fails, and nothing is left beside it */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(frag_make_dirs(under, &err), 0);
	assert_int_equal(frag_outfile_put(path, "x", 1, &err), FRAG_EOUTPUT);
	assert_int_equal(count_files(scratch), 1);
	rmdir(under);
	rmdir(path);
	frag_host_free(path);
	frag_host_free(under);
	/* a disk that is full */
	assert_int_equal(frag_outfile_put("/dev/full", "x", 1, &err), FRAG_EOUTPUT);
	assert_non_null(strstr(err.msg, "/dev/full"));
}

static bool have_gnuplot(void)
{
	return system("gnuplot --version >/dev/null 2>&1") == 0;
}

static void report_is_whole(void **state)
{
	struct sample s;
	struct frag_err err = { 0 };
	char *dir = frag_path_join(scratch, "out/deep");
	size_t charts = 0;
	struct stat st;
	char *page;

	(void)state;
	if (!have_gnuplot())
		skip();
	while (frag_chart_at(charts))
		charts++;
	sample_init(&s, 3, 400, true);
	assert_int_equal(frag_report_write(&s.report, dir, FRAG_FORMAT_PNG, 2, &err), 0);
	/* CSV, SVG and PNG of each; results.csv, results.json, report.html */
	assert_int_equal(count_files(dir), 3 * charts + 3);
	page = frag_path_join(dir, "report.html");
	assert_int_equal(stat(page, &st), 0);
	assert_true(st.st_size > 50000);
	/* once more over what is there */
	assert_int_equal(frag_report_write(&s.report, dir, 0, 1, &err), 0);
	assert_int_equal(count_files(dir), 3 * charts + 3);
	frag_host_free(page);
	remove_tree(dir);
	frag_host_free(dir);
	dir = frag_path_join(scratch, "out");
	rmdir(dir);
	frag_host_free(dir);
	sample_release(&s);
}

/* gnuplot stops with an error: its words are in ours, and no folder stays. */
static void a_failed_picture_leaves_nothing(void **state)
{
	struct sample s;
	struct frag_err err = { 0 };
	char *dir = frag_path_join(scratch, "out"), *plot = frag_path_join(scratch, "plot");
	const struct frag_chart_ops *ops;
	char *path;

	(void)state;
	if (!have_gnuplot())
		skip();
	sample_init(&s, 2, 200, true);
	assert_int_equal(frag_make_dirs(plot, &err), 0);
	path = frag_path_join(plot, "style.gp");
	assert_int_equal(frag_outfile_put(path, "", 0, &err), 0);
	frag_host_free(path);
	for (size_t i = 0; (ops = frag_chart_at(i)); i++) {
		char file[64];

		snprintf(file, sizeof(file), "%s.gp", ops->name);
		path = frag_path_join(plot, file);
		assert_int_equal(frag_outfile_put(path, "nonsense here\n", 14, &err), 0);
		frag_host_free(path);
	}
	setenv("FRAG_SHARE", scratch, 1);
	assert_int_equal(frag_report_write(&s.report, dir, 0, 2, &err), FRAG_EOUTPUT);
	unsetenv("FRAG_SHARE");
	assert_non_null(strstr(err.msg, "gnuplot failed to draw"));
	assert_non_null(strstr(err.msg, "line 1"));
	assert_int_not_equal(access(dir, F_OK), 0);
	remove_tree(plot);
	frag_host_free(plot);
	frag_host_free(dir);
	sample_release(&s);
}

static void without_gnuplot_the_way_out_is_named(void **state)
{
	struct sample s;
	struct frag_err err = { 0 };
	char *dir = frag_path_join(scratch, "out"), *path = strdup(getenv("PATH"));

	(void)state;
	sample_init(&s, 2, 200, true);
	setenv("PATH", scratch, 1);
	assert_int_equal(frag_report_write(&s.report, dir, 0, 2, &err), FRAG_EOUTPUT);
	setenv("PATH", path, 1);
	assert_non_null(strstr(err.msg, "cannot run gnuplot"));
	assert_non_null(strstr(err.msg, "gnuplot-nox"));
	assert_int_not_equal(access(dir, F_OK), 0);
	free(path);
	frag_host_free(dir);
	sample_release(&s);
}

/* Every host allocation in turn fails: an error, never half a text. */
static void memory_short(void **state)
{
	struct sample s;

	(void)state;
	sample_init(&s, 3, 300, true);
	for (uint64_t n = 1; n < 2000; n++) {
		struct frag_text csv = { 0 }, table = { 0 }, detail = { 0 }, page = { 0 };
		int ret;

		frag_host_fail_after(n);
		frag_report_csv(&s.report, &csv);
		ret = frag_text_check(&csv, NULL);
		ret = ret ? ret : frag_report_table(&s.report, &table, NULL);
		ret = ret ? ret : frag_report_detail(&s.report, &detail, NULL);
		ret = ret ? ret : frag_html_page(&s.report, NULL, 0, 0, &page, NULL);
		frag_host_fail_after(0);
		frag_text_release(&csv);
		frag_text_release(&table);
		frag_text_release(&detail);
		frag_text_release(&page);
		if (!ret) {
			assert_true(n > 10);
			sample_release(&s);
			return;
		}
		assert_int_equal(ret, FRAG_ENOMEM);
	}
	fail_msg("the failing never ends");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escaping),
		cmocka_unit_test(numbers),
		cmocka_unit_test(a_table),
		cmocka_unit_test(csv_is_exact),
		cmocka_unit_test(json_is_exact),
		cmocka_unit_test(without_host_times_the_bytes_are_the_same),
		cmocka_unit_test(invalid_utf8_becomes_valid_json),
		cmocka_unit_test(order_and_answer),
		cmocka_unit_test(every_text_of_a_failed_policy_says_so),
		cmocka_unit_test(charts_have_scripts_and_whole_rows),
		cmocka_unit_test(peak_chart_adds_up),
		cmocka_unit_test(memory_chart_keeps_peaks_and_ends),
		cmocka_unit_test(svg_inlining),
		cmocka_unit_test(the_page_escapes_everything),
		cmocka_unit_test_setup_teardown(outfile_complete_or_absent, make_scratch,
						drop_scratch),
		cmocka_unit_test_setup_teardown(report_is_whole, make_scratch, drop_scratch),
		cmocka_unit_test_setup_teardown(a_failed_picture_leaves_nothing, make_scratch,
						drop_scratch),
		cmocka_unit_test_setup_teardown(without_gnuplot_the_way_out_is_named, make_scratch,
						drop_scratch),
		cmocka_unit_test(memory_short),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
