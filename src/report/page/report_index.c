/* SPDX-License-Identifier: Apache-2.0 */
/* The page above several reports: one row per trace and device, with its answer. */
#include "html.h"
#include "report/spread.h"
#include "answer/table.h"

#include "base/outfile.h"

static int put(const char *dir, const char *name, const struct frag_text *t, struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = frag_path_join(dir, name);

	FRAG_CHECK_ALLOC(path, name, err);
	return frag_text_put(t, path, err);
}

static void add_cell(struct frag_text *out, bool left, const char *text)
{
	frag_text_addf(out, "<td%s>", left ? " class=\"l\"" : "");
	frag_text_add_html(out, text);
	frag_text_add(out, "</td>");
}

static void add_gib(struct frag_text *out, uint64_t bytes)
{
	frag_text_addf(out, "<td>%.2f</td>", (double)bytes / (double)FRAG_GIB);
}

static void add_row(const struct frag_section *s, struct frag_text *out)
{
	const struct frag_result *base = &s->results[s->baseline];
	struct frag_text title = { 0 };
	struct frag_advice a;
	size_t i;

	frag_section_advice(s, &a);
	i = a.pick;

	frag_section_title(s, &title);
	frag_text_add(out, "<tr><td class=\"l\"><a href=\"");
	frag_text_add_href(out, s->folder ? s->folder : ".");
	frag_text_add(out, "/report.html\">");
	frag_text_add_html(out, frag_text_str(&title));
	frag_text_add(out, "</a></td>");
	frag_text_release(&title);
	add_gib(out, frag_section_bound(s));
	add_cell(out, true, base->policy);
	if (base->completed)
		add_gib(out, base->m.peak_reserved_bytes);
	else
		frag_text_add(out, "<td>out of memory</td>");
	if (i == SIZE_MAX) {
		frag_text_add(out, "<td class=\"l\">none completes</td><td>-</td><td>-</td>"
				   "<td class=\"l\">-</td></tr>\n");
		return;
	}
	add_cell(out, true, s->results[i].policy);
	add_gib(out, s->results[i].m.peak_reserved_bytes);
	if (base->completed && base->m.peak_reserved_bytes)
		frag_text_addf(out, "<td>%.1f</td>",
			       100.0 - 100.0 * (double)s->results[i].m.peak_reserved_bytes /
					       (double)base->m.peak_reserved_bytes);
	else
		frag_text_add(out, "<td>-</td>");
	add_cell(out, true, a.card ? a.card->label : "-");
	frag_text_add(out, "</tr>\n");
}

static int add_page(const struct frag_report *r, const char *ranks, struct frag_text *out,
		    struct frag_err *err)
{
	struct frag_text settings = { 0 };

	frag_page_begin(r->title ? r->title : "GPU memory by allocation policy", out);
	frag_html_head(r, "GPU memory by allocation policy",
		       "Which setting needs the least memory for each of these jobs, what does "
		       "that "
		       "save, and which card is enough?",
		       out);
	frag_text_add(out, "<p class=\"meta\">Replayed on ");
	frag_report_settings(r, NULL, &settings);
	frag_text_add_html(out, frag_text_str(&settings));
	frag_text_release(&settings);
	frag_text_add(out,
		      ".</p>\n<div class=\"scroll\"><table class=\"traces\">\n<thead><tr>"
		      "<th class=\"l\">trace</th><th>lower bound<span class=\"unit\">GiB</span>"
		      "</th><th class=\"l\">compared with</th><th>it reserves<span "
		      "class=\"unit\">GiB</span></th><th class=\"l\">advised</th><th>reserves"
		      "<span class=\"unit\">GiB</span></th><th>saved<span class=\"unit\">%</span>"
		      "</th><th class=\"l\">smallest known card</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < r->count; i++)
		add_row(&r->sections[i], out);
	frag_text_add(out,
		      "</tbody></table></div>\n<p class=\"files\">Every metric of every policy: "
		      "<a href=\"results.csv\">results.csv</a>, "
		      "<a href=\"results.json\">results.json</a>.</p>\n");
	if (r->missing) {
		frag_text_add(out, "<p class=\"warn\">Interrupted. Missing: ");
		frag_text_add_html(out, r->missing);
		frag_text_add(out, ".</p>\n");
	}
	FRAG_TRY(frag_html_spread(r, ranks, out, err));
	frag_text_add(out, "<h2>To do it again</h2>\n");
	frag_html_again(r, out);
	frag_page_end(out);
	return 0;
}

int frag_report_write_index(const struct frag_report *r, const char *dir, unsigned formats,
			    unsigned threads, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text ranks = { 0 }, page = { 0 }, csv = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text json = { 0 }, spread = { 0 };
	int ret;

	ret = frag_report_json_text(r, &json, err);
	frag_report_csv(r, &csv);
	if (!ret)
		ret = frag_report_spread_csv(r, &spread, err);
	if (!ret)
		ret = frag_ranks_draw(r, dir, formats, threads, &ranks, err);
	if (!ret)
		ret = add_page(r, frag_text_str(&ranks), &page, err);
	if (!ret)
		ret = put(dir, "results.csv", &csv, err);
	if (!ret)
		ret = put(dir, "results.json", &json, err);
	if (!ret && spread.len)
		ret = put(dir, "spread.csv", &spread, err);
	if (!ret)
		ret = put(dir, "report.html", &page, err);
	return ret;
}
