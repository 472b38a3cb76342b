/* SPDX-License-Identifier: Apache-2.0 */
/* Charts that there are, and how they are put into the page; their figures: tests/report/peaks.py. */
#include "test.h"

#include "sample_report.h"

#include "base/outfile.h"
#include "report/charts/chart.h"
#include "answer/draw/plot.h"

#include <unistd.h>

/* ---- charts ---- */

/* The CSV of each chart of the sample, as its page has it. */
struct charts {
	struct sample s;
	struct frag_answer a;
};

static void charts_init(struct charts *c, size_t policies, bool times)
{
	c->a = (struct frag_answer){ 0 };
	sample_init(&c->s, policies, EVENTS, times);
}

static void charts_release(struct charts *c)
{
	frag_answer_release(&c->a);
	sample_release(&c->s);
}

/* NULL: the page has no such chart. */
static const struct frag_answer_chart *chart_named(struct charts *c, const char *name)
{
	if (!c->a.parts_count)
		frag_charts_parts(&c->s.report, &c->s.section, &c->a);
	assert_false(c->a.failed);
	for (size_t i = 0; i < c->a.parts_count; i++)
		if (!strcmp(c->a.parts[i].chart.script, name))
			return &c->a.parts[i].chart;
	return NULL;
}

/* No chart without rows: one policy has no rival, a trace that is gone has no sizes. */
TEST(no_chart_without_rows)
{
	FRAG_AUTO(charts_release) struct charts c = { 0 };

	charts_init(&c, 1, true);
	c.s.section.events = NULL;
	assert_null(chart_named(&c, "pareto"));
	assert_null(chart_named(&c, "sizes"));
	assert_non_null(chart_named(&c, "peak"));
}

/* ---- the page ---- */

TEST(svg_inlining)
{
	static const char svg[] =
		"<?xml version=\"1.0\"?>\n<svg \n width=\"900\" height=\"400\"\n viewBox=\"0 0 1 "
		"1\">\n"
		"<title>Gnuplot</title><rect x=\"0\" y=\"0\" width=\"9\" height=\"9\" "
		"fill=\"#ffffff\"/>\n<g id='a'/><use xlink:href='#a' color='rgb( 34,  34,  34)'/>"
		"<path stroke='rgb(  0, 114, 178)' clip-path=\"url(#c)\"/></svg>\n";
	struct frag_text t = { 0 };

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
TEST(the_page_escapes_everything)
{
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	sample_init(&s, 4, EVENTS, true);
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
	sample_page(&s.report, &t);
	assert_null(strstr(t.s, "<script"));
	assert_null(strstr(t.s, "\"x\""));
	assert_non_null(strstr(t.s, "&lt;script&gt;"));
	assert_non_null(strstr(t.s, "<tr class=\"best\"><td class=\"l long\">&lt;script"));
	assert_non_null(strstr(t.s, "title=\"allocation policy and its options\""));
	assert_non_null(strstr(t.s, "</html>"));
}
