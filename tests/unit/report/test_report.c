/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shows results: escaping, tables, which result is advised in which words, several traces
 * together. Results are made here, nothing is replayed; figures of charts: tests/report/peaks.py,
 * files and the address-space map: tests/cli report_files.
 */
#include "test.h"

#include "answer/draw/plot.h"
#include "answer/answer.h"
#include "answer/table.h"
#include "must.h"
#include "report/charts/layout.h"
#include "report/report.h"
#include "report/rows.h"

#include <math.h>

#define AUTO_TEXT FRAG_AUTO(frag_text_release) struct frag_text
#define POLICIES 5
#define UNITS 4
#define NASTY "<script>alert(\"x\")</script>&'"

static void assert_text(struct frag_text *t, const char *wanted)
{
	assert_string_equal(frag_text_str(t), wanted);
	frag_text_release(t);
	*t = (struct frag_text){ 0 };
}

static void assert_in(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void assert_part(const struct frag_text *t, const char *part)
{
	assert_in(frag_text_str(t), part);
}

/* ---- text ---- */

TEST(escaping)
{
	static const struct {
		const char *in, *html, *csv;
	} rows[] = {
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
		assert_text(&t, rows[i].html);
		frag_text_add_csv(&t, rows[i].in);
		assert_text(&t, rows[i].csv);
	}
}

TEST(numbers)
{
	const char *const texts[] = { FRAG_GROUPED(0),	     FRAG_GROUPED(999),
				      FRAG_GROUPED(1234567), FRAG_NS(999),
				      FRAG_NS(1500),	     FRAG_NS(45200000),
				      FRAG_NS(120000000000) };
	const double values[] = { 0.1, NAN, INFINITY };
	struct frag_text t = { 0 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(values); i++) {
		frag_text_add_number(&t, values[i]);
		frag_text_add(&t, "|");
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++)
		frag_text_addf(&t, "%s|", texts[i]);
	assert_text(&t, "0.1|||0|999|1,234,567|999 ns|1.50 us|45.2 ms|120 s|");
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
	assert_text(&t, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
			"xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 900 400\" "
			"role=\"img\" aria-label=\"&lt;script&gt;alert(&quot;x&quot;)"
			"&lt;/script&gt;&amp;&#39;\">\n\n<g id='p-a'/><use xlink:href='#p-a' "
			"color='var(--ink)'/><path stroke='#0072b2' "
			"clip-path=\"url(#p-c)\"/></svg>\n");
	frag_svg_inline("no picture", "p-", "", &t);
	assert_int_equal(t.len, 0);
}

/* Texts go into the program of the PDF as literals, whatever they are. */
TEST(one_pdf_quotes)
{
	static const struct frag_plot plot = { .script = "peak",
					       .csv = "a'b.csv",
					       .title = "`touch x` \"$x\" @M \\",
					       .subtitle = "one\ntwo\t'",
					       .extra = "" };
	AUTO_TEXT t = { 0 };

	frag_one_pdf_script(&plot, 1, "/scripts", "out.pdf", &t);
	assert_part(&t, "CSV = 'a''b.csv'\n");
	assert_part(&t, "TITLE = '`touch x` \"$x\" @M \\'\n");
	assert_part(&t, "SUBTITLE = 'one'.\"\\n\".'two '''\n");
}

/* ---- reports that are made up ---- */

struct sample {
	struct frag_section sections[UNITS];
	struct frag_report report;
};

static void rename_to(struct frag_result *r, const char *policy)
{
	AUTO_SPEC spec = must_parse_policy(policy);

	SUCCEEDS(frag_result_name(r, spec, NULL));
}

/* A recording of a second with default settings under five policies: peaks in GiB, 0: out of memory;
 * and ms in the driver. */
static void add_section(struct sample *s, const uint64_t *gib, const uint64_t *ms)
{
	static const char *const names[POLICIES] = { "pytorch", "pytorch:expandable_segments:True",
						     "pytorch:max_split_size_mb:128", "native",
						     "buddy" };
	struct frag_section *section = &s->sections[s->report.count];

	*section = (struct frag_section){ .trace = frag_host_strdup("sample"),
					  .format = frag_host_strdup("cft"),
					  .conf = frag_host_strdup(""),
					  .ordinal = (uint32_t)s->report.count,
					  .devs_count = 1,
					  .streams_count = 1,
					  .pools_count = 1,
					  .events_count = 3000,
					  .duration_us = 1000000,
					  .limit_bytes = UINT64_MAX,
					  .first_of_trace = true,
					  .baseline_recorded = true,
					  .count = POLICIES };
	section->results = frag_host_calloc(POLICIES, sizeof(*section->results));
	for (size_t k = 0; k < POLICIES; k++) {
		struct frag_result *r = &section->results[k];

		rename_to(r, names[k]);
		r->trace = frag_host_strdup("sample");
		r->completed = gib[k] != 0;
		r->oom = (struct frag_oom){ .happened = !gib[k], .event = 77 };
		r->m.events_count = gib[k] ? 3000 : 77;
		r->m.allocs_count = 1000;
		r->m.peak_reserved_bytes = gib[k] * GIB;
		r->m.modelled_ns = ms[k] * 1000000;
		r->m.free_frag_ratio = NAN; /* must never be printed as a number */
	}
	s->report.sections = s->sections;
	s->report.count++;
}

static void sample_init(struct sample *s, const uint64_t *gib, const uint64_t *ms)
{
	memset(s, 0, sizeof(*s));
	s->report = (struct frag_report){
		.command = "compare",
		.command_line = "cufrag compare",
		.device = "sim",
		.card = { .name = "H200", .total_bytes = 141 * GIB, .modelled = true },
		.limit_bytes = UINT64_MAX,
	};
	add_section(s, gib, ms);
}

static void sample_release(struct sample *s)
{
	for (size_t i = 0; i < s->report.count; i++)
		frag_section_release(&s->sections[i]);
}

static unsigned columns; /* of texts; 0: as wide as they are */

typedef void make_fn(const struct frag_report *r, struct frag_answer *a);

static int text_of(const struct sample *s, make_fn *make, struct frag_text *out)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	make(&s->report, &a);
	return frag_answer_text(&a, columns, out, NULL);
}

static json_t *json_of(const struct sample *s)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { .command = "compare" };

	frag_report_compare(&s->report, &a);
	return frag_answer_json(&a);
}

static const uint64_t cheap[] = { 1, 1, 1, 1, 1 }, falling[] = { 10, 8, 20, 13, 6 };

/* ---- what is advised ---- */

/* {peaks, ms in the driver} -> what the answer says, and the line to set it */
static const struct {
	uint64_t gib[POLICIES], ms[POLICIES];
	const char *says[2], *set;
	bool foreign; /* no recording of PyTorch: any policy may be the answer */
} advised[] = {
	{ { 0 },
	  { 1 },
	  { "no policy completes 'sample' here: every one of them runs out of memory", "" },
	  "",
	  false },
	/* what spends a noticeable time in the driver comes second, with its price */
	{ { 10, 8, 20, 13, 8 },
	  { 9, 60, 9, 9, 60 },
	  { "of PyTorch's settings that spend less than 1 % of the recorded time in the driver, "
	    "'pytorch' needs least: 10 GiB reserved at peak; these are the recorded settings, and "
	    "no other of these needs less; the smallest known card with room for it is ",
	    ". 'pytorch:expandable_segments:True' would do with 8 GiB, but spends 60.0 ms in the "
	    "driver, 6.0 % of the recorded time" },
	  "unset PYTORCH_CUDA_ALLOC_CONF",
	  false },
	/* a setting is advised even where another allocator would need less; that one is named */
	{ { 10, 8, 20, 13, 6 },
	  { 1, 1, 1, 1, 1 },
	  { "2 GiB (20.0 %) less than the recorded 'pytorch' with 10 GiB",
	    ". 'buddy' would do with 6 GiB, through cufrag run" },
	  "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
	  false },
	{ { 10, 8, 20, 13, 6 },
	  { 1, 1, 1, 1, 1 },
	  { "'buddy' needs least: 6 GiB reserved at peak, 4 GiB (40.0 %) less than 'pytorch' with "
	    "10 GiB",
	    "" },
	  "",
	  true },
	/* what is cheap needs more than the recording took */
	{ { 5, 8, 20, 13, 6 },
	  { 50, 1, 1, 1, 1 },
	  { "'pytorch:expandable_segments:True' needs least: 8 GiB reserved at peak, 3 GiB (60.0 "
	    "%) more than the recorded 'pytorch' with 5 GiB",
	    "" },
	  "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
	  false },
};

TEST(answers)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(advised); i++) {
		FRAG_AUTO(sample_release) struct sample s;
		FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
		const char *text;

		sample_init(&s, advised[i].gib, advised[i].ms);
		if (advised[i].foreign) {
			frag_host_free(s.sections[0].conf);
			s.sections[0].conf = NULL;
			s.sections[0].baseline_recorded = false;
		}
		text = frag_section_answer(&s.sections[0], &texts);
		assert_in(text, advised[i].says[0]);
		assert_in(text, advised[i].says[1]);
		assert_string_equal(frag_section_export(&s.sections[0], &texts) ?: "",
				    advised[i].set);
	}
}

/* Failed ones last; of equals the one that was asked for first. */
TEST(the_order)
{
	static const uint64_t gib[] = { 10, 8, 0, 13, 8 };
	static const size_t wanted[] = { 1, 4, 0, 3, 2 };
	FRAG_AUTO(sample_release) struct sample s;
	size_t order[POLICIES];

	sample_init(&s, gib, cheap);
	frag_section_order(&s.sections[0], order);
	assert_memory_equal(order, wanted, sizeof(wanted));
	assert_int_equal(frag_section_best(&s.sections[0]), 1);
}

TEST(advice)
{
	FRAG_AUTO(sample_release) struct sample s;
	struct frag_section *section = s.sections;
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
	struct frag_advice a;

	sample_init(&s, falling, cheap);
	frag_section_advice(section, &a);
	assert_true(a.pick == 1 && a.least == 4 && a.live == 4 && a.card);
	assert_int_equal(a.spare_bytes, a.card->total_bytes - a.card->context_bytes - 8 * GIB);
	/* one that a running program cannot have */
	section->results[4].policy_flags |= FRAG_POLICY_STACK;
	frag_section_advice(section, &a);
	assert_int_equal(a.live, SIZE_MAX);
	assert_in(frag_section_answer(section, &texts), ". 'buddy' would do with 6 GiB, but is "
							"another allocator");
	/* what a shell would take apart is quoted */
	rename_to(&section->results[1], "pytorch:roundup_power2_divisions:[256:1,>:8]");
	assert_string_equal(frag_section_export(section, &texts),
			    "export "
			    "PYTORCH_CUDA_ALLOC_CONF='roundup_power2_divisions:[256:1,>:8]'");
	/* a plan has seen the future: it is named, never advised, unless nothing else completes */
	rename_to(&section->results[4], "planned");
	assert_in(frag_section_answer(section, &texts), ". 'planned' would do with 6 GiB, but has "
							"seen the first steps in advance");
	assert_null(frag_section_planned(section, &texts));
	section->results[4].plan = frag_host_strdup("first 3 of 6 steps");
	assert_string_equal(frag_section_planned(section, &texts),
			    "'planned' has a plan from the first 3 of 6 steps, which placed 0.0 % "
			    "of all requests");
	for (size_t k = 0; k < 4; k++)
		section->results[k].completed = false;
	frag_section_advice(section, &a);
	assert_int_equal(a.pick, 4);
}

/* ---- documents ---- */

/* What is not known is null; names that are no UTF-8 become it. */
TEST(json_is_valid)
{
	FRAG_AUTO(sample_release) struct sample s;
	const json_t *first;
	char *text;
	json_t *top;

	sample_init(&s, falling, cheap);
	frag_host_free(s.sections[0].trace);
	s.sections[0].trace = frag_host_strdup("bad\xff name");
	top = json_of(&s);
	assert_string_equal(json_string_value(json_object_get(top, "trace")), "bad? name");
	first = json_array_get(json_object_get(top, "results"), 0);
	assert_true(json_is_null(json_object_get(first, "free_frag_ratio")));
	assert_int_equal(json_integer_value(json_object_get(first, "peak_reserved_bytes")),
			 10 * GIB);
	text = json_dumps(top, JSON_COMPACT);
	assert_true(text && !strstr(text, "nan") && !strstr(text, "inf"));
	free(text);
	json_decref(top);
}

TEST(every_text_of_a_failed_policy_says_so)
{
	static const uint64_t gib[] = { 10, 8, 0, 13, 8 };
	FRAG_AUTO(sample_release) struct sample s;
	AUTO_TEXT t = { 0 };

	sample_init(&s, gib, cheap);
	SUCCEEDS(text_of(&s, frag_report_compare, &t));
	assert_part(&t, "out of memory at event 77\n");
	SUCCEEDS(text_of(&s, frag_report_replay, &t));
	assert_part(&t, "out of memory: event 77 at ");
	assert_part(&t, "; the replay stopped there\n");
	s.sections[0].results[2].m.events_count = 3000;
	s.sections[0].results[2].m.ooms_count = 4;
	SUCCEEDS(text_of(&s, frag_report_compare, &t));
	assert_part(&t, "4 requests skipped, first at event 77\n");
}

/* Names from outside never reach the page as markup. */
TEST(the_page_escapes_everything)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(sample_release) struct sample s;
	AUTO_TEXT t = { 0 };

	sample_init(&s, falling, cheap);
	for (size_t k = 0; k < POLICIES; k++) {
		frag_host_free(s.sections[0].results[k].policy);
		s.sections[0].results[k].policy = frag_host_strdup(NASTY);
	}
	frag_host_free(s.sections[0].trace);
	frag_host_free(s.sections[0].conf);
	s.sections[0].trace = frag_host_strdup(NASTY);
	s.sections[0].conf = frag_host_strdup(NASTY);
	s.sections[0].devs_count = 2;
	snprintf(s.report.card.name, sizeof(s.report.card.name), "%s", NASTY);
	frag_report_page(&s.report, &a);
	frag_page_render(&a, &(struct frag_answer_page){ .command_line = NASTY }, NULL, &t);
	assert_null(strstr(t.s, "<script"));
	assert_null(strstr(t.s, "\"x\""));
	assert_part(&t, "<tr class=\"best\"><td class=\"l long\">&lt;script");
	assert_part(&t, "title=\"allocation policy and its options\"");
	assert_part(&t, "</html>");
}

/* ---- several traces: worst, median, least, imbalance ---- */

TEST(spread)
{
	static const uint64_t gib[UNITS][POLICIES] = {
		{ 10, 4, 8, 0, 9 }, { 30, 4, 8, 0, 9 }, { 20, 5, 0, 0, 9 }, { 20, 3, 2, 0, 9 }
	};
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(sample_release) struct sample s;
	AUTO_TEXT t = { 0 }, csv = { 0 };
	const struct frag_spread_row *x;
	struct frag_rows rows;
	json_t *top, *last;

	sample_init(&s, gib[0], cheap);
	for (unsigned i = 1; i < UNITS; i++)
		add_section(&s, gib[i], cheap);
	/* not all of them have it */
	rename_to(&s.sections[1].results[4], "cupy");
	rows = frag_spread_rows(&s.report, &a);
	x = rows.rows;
	assert_int_equal(rows.count, 4);
	/* by their worst; those that fail somewhere are last */
	assert_string_equal(x[0].policy, "pytorch:expandable_segments:True");
	assert_true(x[0].worst_bytes == 5 * GIB && x[0].worst == 2);
	assert_true(x[0].least_bytes == 3 * GIB && x[0].least == 3);
	assert_true(x[0].median_bytes == 4 * GIB && x[0].spread_bytes == 2 * GIB);
	assert_true(fabs(x[0].imbalance_ratio - 5 / 4.0) < 1e-9);
	assert_true(x[1].worst_bytes == 30 * GIB && x[1].median_bytes == 20 * GIB);
	assert_true(x[2].completed_count == 3 && x[2].median_bytes == 8 * GIB);
	SUCCEEDS(text_of(&s, frag_report_compare, &t));
	assert_part(&t, "# all 4 traces together");
	assert_part(&t, "0 of 4");
	/* what is not known has no figure: null, and an empty field */
	frag_shape_csv(&frag_spread_shape, rows.rows, rows.count, &csv);
	assert_part(&csv, "native,4,0,,,,,,,,,,,\n");
	top = json_of(&s);
	last = json_array_get(json_object_get(top, "spread"), 3);
	assert_true(last && json_is_null(json_object_get(last, "worst_bytes")));
	json_decref(top);
	assert_string_equal(frag_spread_noun(&s.report), "traces");
	s.sections[1].first_of_trace = false;
	s.sections[0].devs_count = s.sections[1].devs_count = 2;
	s.report.count = 2;
	assert_string_equal(frag_spread_noun(&s.report), "devices");
	s.report.count = 1;
	assert_int_equal(frag_spread_rows(&s.report, &a).count, 0);
	s.report.count = UNITS;
}

/* Every host allocation in turn fails: an error, never half a text. */
TEST(memory_short)
{
	make_fn *const all[] = { frag_report_compare, frag_report_replay, frag_report_page,
				 frag_report_index };
	FRAG_AUTO(sample_release) struct sample s;

	sample_init(&s, falling, cheap);
	add_section(&s, falling, cheap);
	s.report.counters = true;
	columns = 80;
	for (size_t k = 0; k < FRAG_ARRAY_LEN(all); k++) {
		struct frag_text t = { 0 };
		unsigned failures = 0;

		s.report.count = all[k] == frag_report_page ? 1 : 2;
		FAIL_ALLOCATIONS((frag_text_release(&t), text_of(&s, all[k], &t)))
		failures++;
		assert_true(failures > 9);
		frag_text_release(&t);
	}
	s.report.count = 2;
	columns = 0;
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
