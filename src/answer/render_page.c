/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as one self-contained HTML page. Everything from outside goes through frag_text_add_html. */
#include "answer.h"

#include <stdio.h>
#include <string.h>

#include "answer/draw/plot.h"
#include "answer/draw/svg.h"
#include "base/outfile.h"
#include "table_fill.h"

/* What a run of parts of one kind stands in. */
static const struct {
	const char *open, *close;
} around[] = {
	[FRAG_PART_ITEM] = { "<ul>\n", "</ul>\n" },
	[FRAG_PART_PASTE] = { "<dl class=\"todo\">\n", "</dl>\n" },
	[FRAG_PART_TILE] = { "<div class=\"tiles\">\n", "</div>\n" },
	[FRAG_PART_CHART] = { "<div class=\"charts\">\n", "</div>\n" },
	[FRAG_PART_FILE] = { "<p class=\"files\">Files:", "</p>\n" },
	[FRAG_PART_WORD] = { "<section>\n<h2>What the words mean</h2>\n<dl>\n", "</dl>\n</"
										"section>\n" },
	[FRAG_PART_GAP] = { NULL, NULL },
};

/* <tag class>text</tag>, with a capital where `sentence`. */
static void add_element(const char *tag, const char *class, const char *text, bool sentence,
			struct frag_text *out)
{
	char first[2] = { *text, '\0' };

	if (sentence && *first >= 'a' && *first <= 'z')
		*first = (char)(*first - 'a' + 'A');
	frag_text_addf(out, *class ? "<%s class=\"%s\">" : "<%s>", tag, class);
	if (*first >= 'A' && *first <= 'Z')
		frag_text_add(out, first);
	frag_text_add_html(out, text + (*first >= 'A' && *first <= 'Z'));
	frag_text_addf(out, "</%s>\n", tag);
}

/* ---- tables -------------------------------------------------------------------------------------- */

static void add_head(const struct frag_field *const *columns, size_t count, struct frag_text *out)
{
	frag_text_add(out, "<thead><tr>");
	for (size_t c = 0; c < count; c++) {
		frag_text_addf(out, "<th scope=\"col\"%s title=\"",
			       frag_field_left(columns[c]) ? " class=\"l\"" : "");
		frag_text_add_html(out, columns[c]->help);
		frag_text_add(out, "\">");
		frag_text_add_html(out, columns[c]->head);
		if (columns[c]->unit) {
			frag_text_add(out, "<span class=\"unit\">");
			frag_text_add_html(out, columns[c]->unit);
			frag_text_add(out, "</span>");
		}
		frag_text_add(out, "</th>");
	}
	frag_text_add(out, "</tr></thead>\n<tbody>\n");
}

static void add_cell(const struct frag_part *part, const struct frag_field *f, const void *row,
		     struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text cell = { 0 };
	const char *href = f->href ? frag_shape_text(part->shape, row, f->href) : NULL;

	frag_field_text(f, row, &cell);
	out->failed |= cell.failed;
	frag_text_add(out, frag_field_left(f) ? "<td class=\"l\">" : "<td>");
	if (href) {
		frag_text_add(out, "<a href=\"");
		frag_text_add_href(out, href);
		frag_text_add(out, "\">");
	}
	frag_table_words_html(frag_text_str(&cell), out);
	frag_text_add(out, href ? "</a></td>" : "</td>");
}

static void add_table(const struct frag_part *part, struct frag_text *out)
{
	const struct frag_field *columns[FRAG_TABLE_COLUMNS];
	size_t count = frag_part_columns(part, true, columns), shown = frag_part_shown(part);

	if (!part->rows.count)
		return;
	frag_text_add(out, "<div class=\"scroll\"><table>\n");
	add_head(columns, count, out);
	for (size_t i = 0; i < shown; i++) {
		frag_text_add(out, i == part->mark ? "<tr class=\"best\">" : "<tr>");
		for (size_t c = 0; c < count; c++)
			add_cell(part, columns[c], frag_part_row(part, i), out);
		frag_text_add(out, "</tr>\n");
	}
	frag_text_add(out, "</tbody></table></div>\n");
	if (shown < part->rows.count)
		frag_text_addf(out, "<p class=\"meta\">And %zu more.</p>\n",
			       part->rows.count - shown);
}

static void add_facts(const struct frag_part *part, struct frag_text *out)
{
	const struct frag_field *fields[FRAG_TABLE_COLUMNS];
	size_t count = frag_part_columns(part, true, fields);

	frag_text_add(out, "<dl class=\"facts\">\n");
	for (size_t i = 0; i < count; i++) {
		FRAG_AUTO(frag_text_release) struct frag_text value = { 0 };

		if (frag_field_is_null(fields[i], part->rows.rows) && !fields[i]->none)
			continue;
		frag_field_text(fields[i], part->rows.rows, &value);
		if (fields[i]->unit)
			frag_text_addf(&value, " %s", fields[i]->unit);
		out->failed |= value.failed;
		add_element("dt", "", fields[i]->head, true, out);
		add_element("dd", "", frag_text_str(&value), false, out);
	}
	frag_text_add(out, "</dl>\n");
}

/* ---- charts -------------------------------------------------------------------------------------- */

static void add_link(const char *base, const char *ending, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text name = { 0 };

	frag_text_addf(&name, "%s%s", base, ending);
	out->failed |= name.failed;
	frag_text_add(out, " <a href=\"");
	frag_text_add_href(out, frag_text_str(&name));
	frag_text_add(out, "\">");
	frag_text_add_html(out, frag_text_str(&name));
	frag_text_add(out, "</a>");
}

static int draw(const struct frag_answer_chart *c, const struct frag_answer_page *page,
		const char *base, char **svg, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text csv = { 0 }, name = { 0 };
	FRAG_AUTO_FREE char *path = NULL;

	if (c->shape)
		frag_shape_csv(c->shape, c->rows.rows, c->rows.count, &csv);
	else
		frag_text_add(&csv, c->csv);
	frag_text_addf(&name, "%s.svg", base);
	FRAG_TRY(frag_text_check(&csv, err) ?: frag_text_check(&name, err));
	FRAG_TRY(frag_chart_draw(
		&(struct frag_chart_file){ .script = c->script,
					   .dir = page->dir,
					   .base = base,
					   .csv = &csv,
					   .title = c->title,
					   .subtitle = c->subtitle ? c->subtitle : "",
					   .extra = c->extra },
		page->formats, page->threads, err));
	path = frag_path_join(page->dir, frag_text_str(&name));
	FRAG_CHECK_ALLOC(path, "chart", err);
	return frag_svg_read(path, svg, err);
}

static int add_chart(const struct frag_answer_chart *c, const struct frag_answer_page *page,
		     size_t number, struct frag_text *out, struct frag_err *err)
{
	const char *base = c->base ? c->base : c->script;
	FRAG_AUTO_FREE char *svg = NULL;
	char prefix[32];

	FRAG_TRY(draw(c, page, base, &svg, err));
	snprintf(prefix, sizeof(prefix), "x%zu-", number);
	frag_text_add(out, "<figure>\n");
	if (c->heading)
		add_element("h3", "", c->heading, false, out);
	frag_svg_inline(svg, prefix, c->alt ? c->alt : c->title, out);
	frag_text_add(out, "<figcaption>");
	frag_text_add_html(out, c->caption);
	frag_text_add(out, "</figcaption>\n<p class=\"files\">Data:");
	add_link(base, ".csv", out);
	frag_text_add(out, ". Picture:");
	add_link(base, ".svg", out);
	if (page->formats & FRAG_FORMAT_PNG)
		add_link(base, ".png", out);
	if (page->formats & FRAG_FORMAT_PDF)
		add_link(base, ".pdf", out);
	frag_text_add(out, "</p>\n</figure>\n");
	return 0;
}

/* ---- the page ------------------------------------------------------------------------------------ */

static void add_pair(const struct frag_part *part, bool code, struct frag_text *out)
{
	add_element("dt", "", part->label, true, out);
	frag_text_add(out, code ? "<dd><code>" : "<dd>");
	frag_text_add_html(out, part->text);
	frag_text_add(out, code ? "</code></dd>\n" : "</dd>\n");
}

static void add_tile(const struct frag_part *part, struct frag_text *out)
{
	frag_text_add(out, "<div class=\"tile\"><b>");
	frag_text_add_html(out, part->text);
	frag_text_add(out, "</b><span>");
	frag_table_words_html(part->label, out);
	frag_text_add(out, "</span></div>\n");
}

static int add_part(const struct frag_part *part, const struct frag_answer_page *page,
		    size_t number, struct frag_text *out, struct frag_err *err)
{
	switch (part->kind) {
	case FRAG_PART_REMARK:
		add_element("p", "meta", part->text, true, out);
		break;
	case FRAG_PART_SAY:
		add_element("p", "", part->text, true, out);
		break;
	case FRAG_PART_CONCLUSION:
	case FRAG_PART_VERDICT:
		add_element("p", "answer", part->text, true, out);
		break;
	case FRAG_PART_WARN:
		add_element("p", "warn", part->text, true, out);
		break;
	case FRAG_PART_ITEM:
		add_element("li", "", part->text, true, out);
		break;
	case FRAG_PART_HEADING:
		add_element("h2", "", part->text, true, out);
		break;
	case FRAG_PART_PASTE:
	case FRAG_PART_WORD:
		add_pair(part, part->kind == FRAG_PART_PASTE, out);
		break;
	case FRAG_PART_TABLE:
		add_table(part, out);
		break;
	case FRAG_PART_FACTS:
		add_facts(part, out);
		break;
	case FRAG_PART_TILE:
		add_tile(part, out);
		break;
	case FRAG_PART_FILE:
		add_link(part->label, "", out);
		frag_text_add(out, *part->text ? " (" : "");
		frag_text_add_html(out, part->text);
		frag_text_add(out, *part->text ? ")" : "");
		break;
	case FRAG_PART_CHART:
		return add_chart(&part->chart, page, number, out, err);
	case FRAG_PART_GAP:
		break;
	}
	return 0;
}

static int add_parts(const struct frag_answer *a, const struct frag_answer_page *page,
		     struct frag_text *out, struct frag_err *err)
{
	const char *close = NULL;
	enum frag_part_kind kind = FRAG_PART_GAP;

	for (size_t i = 0; i < a->parts_count; i++) {
		const struct frag_part *part = &a->parts[i];

		if (part->text_only || part->kind == FRAG_PART_GAP)
			continue;
		if (part->kind != kind) {
			frag_text_add(out, close ? close : "");
			frag_text_add(out, around[part->kind].open ? around[part->kind].open : "");
			kind = part->kind;
			close = around[kind].close;
		}
		FRAG_TRY(add_part(part, page, i, out, err));
	}
	frag_text_add(out, close ? close : "");
	return 0;
}

static void add_fact(const char *name, const char *text, const char *tag, struct frag_text *out)
{
	if (!text || !*text)
		return;
	frag_text_addf(out, "<dt>%s</dt><dd><%s>", name, tag);
	frag_text_add_html(out, text);
	frag_text_addf(out, "</%s></dd>\n", tag);
}

static void add_header(const struct frag_answer *a, const struct frag_answer_page *page,
		       struct frag_text *out)
{
	frag_text_add(out, "<header>\n<p class=\"kicker\">cufrag ");
	frag_text_add_html(out, a->command);
	frag_text_add(out, "</p>\n");
	add_element("h1", "", a->title ? a->title : a->command, true, out);
	if (a->question)
		add_element("p", "question", a->question, false, out);
	frag_text_add(out, "<dl class=\"facts\">\n");
	add_fact("Author", a->author, "span", out);
	add_fact("Date", a->date, "span", out);
	add_fact("Command", page->command_line, "code", out);
	frag_text_add(out, "</dl>\n</header>\n");
	if (a->estimated)
		add_element("p", "warn", "An estimate: the recording was made without a GPU.",
			    false, out);
}

static void add_foot(const struct frag_answer *a, const struct frag_answer_page *page,
		     struct frag_text *out)
{
	frag_text_add(out, "<section>\n<h2>How to make this page again</h2>\n<pre>");
	frag_text_add_html(out, page->command_line ? page->command_line : "");
	frag_text_add(out, "</pre>\n<p class=\"files\">All figures:");
	add_link("results", ".json", out);
	if (a->csv)
		add_link("results", ".csv", out);
	frag_text_add(out, ". <code>docs/json.md</code> says what each field "
			   "means.</p>\n</section>\n");
}

static int put_data(const struct frag_answer *a, const struct frag_answer_page *page,
		    struct frag_err *err)
{
	FRAG_AUTO_FREE char *json = frag_path_join(page->dir, "results.json"),
			    *csv = frag_path_join(page->dir, "results.csv");

	if (!json || !csv)
		return frag_fail_nomem(err, "page");
	FRAG_TRY(frag_answer_put_json(a, json, err));
	return a->csv ? frag_answer_put_csv(a, csv, err) : 0;
}

int frag_answer_put_page(const struct frag_answer *a, const struct frag_answer_page *page,
			 struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };
	FRAG_AUTO_FREE char *path = frag_path_join(page->dir, page->file);

	if (!path || a->failed)
		return frag_fail_nomem(err, "page");
	FRAG_TRY(frag_make_dirs(page->dir, err));
	frag_page_begin(a->title ? a->title : a->command, &out);
	add_header(a, page, &out);
	FRAG_TRY(add_parts(a, page, &out, err));
	add_foot(a, page, &out);
	frag_page_end(&out);
	FRAG_TRY(put_data(a, page, err));
	return frag_text_put(&out, path, err);
}
