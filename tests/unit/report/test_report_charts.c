/* SPDX-License-Identifier: Apache-2.0 */
/* Charts: their data, their scripts, and how they are put into the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report_rig.h"
#include "sample_report.h"

#include "base/outfile.h"
#include "report/charts/chart.h"
#include "report/page/html.h"
#include "answer/draw/plot.h"
#include "answer/draw/svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		assert_true(!ops->has || ops->has(&job, &job.section->results[0]));
		ops->csv(&job, &t);
		assert_int_equal(frag_text_check(&t, NULL), 0);
		assert_null(strstr(t.s, "nan"));
		columns = rig_split_csv(rig_first_line(t.s, &rest), fields, 64);
		assert_true(rig_check_rows(rest, columns) > 0);
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
	n = rig_split_csv(rig_first_line(t.s, &rest), head, 64);
	for (char *line = strtok_r(rest, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		static const char *const parts[] = { "requested_bytes",	 "rounding_bytes",
						     "waiting_bytes",	 "non_releasable_bytes",
						     "releasable_bytes", "other_bytes" };
		uint64_t sum = 0;

		rig_split_csv(line, cell, 64);
		for (size_t i = 0; i < FRAG_ARRAY_LEN(parts); i++)
			sum += strtoull(cell[rig_column(head, n, parts[i])], NULL, 10);
		assert_int_equal(
			sum, strtoull(cell[rig_column(head, n, "peak_reserved_bytes")], NULL, 10));
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
	n = rig_split_csv(rig_first_line(t.s, &rest), head, 64);
	for (char *line = strtok_r(rest, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		uint64_t v, k;

		rig_split_csv(line, cell, 64);
		k = strtoull(cell[0], NULL, 10);
		v = strtoull(cell[rig_column(head, n, "reserved_max_bytes")], NULL, 10);
		peak[k] = FRAG_MAX(peak[k], v);
		assert_string_equal(cell[rig_column(head, n, "time_s")],
				    ""); /* the trace has none */
		ooms += !strcmp(cell[rig_column(head, n, "state")], "oom") && k == 2;
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
	assert_int_equal(frag_html_page(&s.report, &figure, 1, 7, "", &t, NULL), 0);
	assert_null(strstr(t.s, "<script"));
	assert_null(strstr(t.s, "\"x\""));
	assert_non_null(strstr(t.s, "&lt;script&gt;"));
	assert_non_null(strstr(t.s, "</html>"));
	frag_text_release(&t);
	sample_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charts_have_scripts_and_whole_rows),
		cmocka_unit_test(peak_chart_adds_up),
		cmocka_unit_test(memory_chart_keeps_peaks_and_ends),
		cmocka_unit_test(svg_inlining),
		cmocka_unit_test(the_page_escapes_everything),
	};

	return cmocka_run_group_tests_name("report_charts", tests, NULL, NULL);
}
