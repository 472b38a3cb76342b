/* SPDX-License-Identifier: Apache-2.0 */
/* The chart above several ranks, devices or traces: the peak of each with each policy. */
#include "html.h"

#include "answer/draw/plot.h"
#include "answer/draw/svg.h"
#include "report/spread.h"

#include "base/outfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A row for each unit of each policy of `s`. */
static void add_rows(const struct frag_report *r, const struct frag_spread *x, size_t row,
		     struct frag_text *out)
{
	for (size_t u = 0; u < r->count; u++) {
		const struct frag_section *s = &r->sections[u];
		struct frag_text title = { 0 };
		size_t k = 0;

		while (k < s->count && strcmp(s->results[k].policy, x->policy))
			k++;
		if (k == s->count)
			continue;
		frag_section_title(s, &title);
		frag_text_addf(out, "%zu,", row);
		frag_text_add_csv(out, x->policy);
		frag_text_addf(out, ",%zu,", k);
		frag_text_add_csv(out, frag_text_str(&title));
		frag_text_addf(out, ",%" PRIu64 ",%d,%d\n", s->results[k].m.peak_reserved_bytes,
			       s->results[k].completed,
			       s->results[k].completed && x->completed && u == x->worst);
		frag_text_release(&title);
	}
}

static void finding(const struct frag_report *r, const struct frag_spread *x, struct frag_text *out)
{
	if (!x->completed) {
		frag_text_add(out, "Every policy runs out of memory somewhere");
		return;
	}
	if (x->worst_bytes == x->least_bytes) {
		frag_text_addf(out, "With %s each needs ", x->policy);
		frag_text_add_bytes(out, x->worst_bytes);
		return;
	}
	frag_section_title(&r->sections[x->worst], out);
	frag_text_addf(out, " needs most with %s: ", x->policy);
	frag_text_add_bytes(out, x->worst_bytes);
	frag_text_addf(out, ", %.0f %% above the mean", 100 * (x->imbalance_ratio - 1));
}

static char *read_back(const char *dir, const char *name)
{
	char *path = frag_path_join(dir, name), *text = NULL;
	FILE *f = path ? fopen(path, "rb") : NULL;
	struct stat st;

	if (f && !fstat(fileno(f), &st))
		text = frag_host_alloc((size_t)st.st_size + 1);
	if (text)
		text[fread(text, 1, (size_t)st.st_size, f)] = '\0';
	if (f)
		fclose(f);
	frag_host_free(path);
	return text;
}

static void add_figure(const char *svg, const char *title, unsigned formats, struct frag_text *out)
{
	frag_text_add(out, "<div class=\"charts\">\n<figure>\n");
	frag_svg_inline(svg, "ranks-", title, out);
	frag_text_add(out, "<figcaption>Peak reserved memory of each of them with each policy. The "
			   "worst one decides which card will do; far apart, the cards are loaded "
			   "unevenly.</figcaption>\n<p class=\"files\">Data: <a "
			   "href=\"ranks.csv\">ranks.csv</a>. Picture: <a "
			   "href=\"ranks.svg\">ranks.svg</a>");
	if (formats & FRAG_FORMAT_PNG)
		frag_text_add(out, " <a href=\"ranks.png\">ranks.png</a>");
	if (formats & FRAG_FORMAT_PDF)
		frag_text_add(out, " <a href=\"ranks.pdf\">ranks.pdf</a>");
	frag_text_add(out, "</p>\n</figure>\n</div>\n");
}

int frag_ranks_draw(const struct frag_report *r, const char *dir, unsigned formats,
		    unsigned threads, struct frag_text *out, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text csv = { 0 }, title = { 0 }, subtitle = { 0 };
	struct frag_chart_file chart = { .script = "ranks", .dir = dir, .base = "ranks" };
	FRAG_AUTO(frag_spreads_release) struct frag_spreads s = { 0 };
	FRAG_AUTO_FREE char *svg = NULL;
	int rc = 0;

	FRAG_TRY(frag_spreads_init(&s, r, err));
	if (s.count) {
		frag_text_add(&csv, "row,policy,series,unit,peak_reserved_bytes,completed,worst\n");
		for (size_t i = 0; i < s.count; i++)
			add_rows(r, &s.list[i], i, &csv);
		finding(r, &s.list[0], &title);
		frag_text_addf(&subtitle, "Peak reserved memory of %zu %s; replayed on %s", s.units,
			       frag_spreads_noun(r), r->card.name);
		chart.csv = &csv;
		chart.title = frag_text_str(&title);
		chart.subtitle = frag_text_str(&subtitle);
		chart.extra = frag_spreads_noun(r);
		rc = frag_chart_draw(&chart, formats, threads, err);
		svg = rc ? NULL : read_back(dir, "ranks.svg");
		if (!rc && !svg)
			rc = frag_fail(err, FRAG_EOUTPUT, "cannot read '%s/ranks.svg' back", dir);
		if (!rc)
			add_figure(svg, chart.title, formats, out);
	}
	return rc;
}
