/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as a self-contained HTML page. Text from outside goes through frag_text_add_html. */
#include "answer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "answer/draw/plot.h"
#include "table.h"

/* What a run of parts of one kind stands in. */
static const struct {
	const char *open, *close;
} around[] = {
	[FRAG_PART_ITEM] = { "<ul>\n", "</ul>\n" },
	[FRAG_PART_PASTE] = { "<dl class=\"todo\">\n", "</dl>\n" },
	[FRAG_PART_TILE] = { "<div class=\"tiles\">\n", "</div>\n" },
	[FRAG_PART_CHART] = { "<div class=\"charts\">\n", "</div>\n" },
	[FRAG_PART_WORD] = { "<section>\n<h2>What the words mean</h2>\n<dl>\n", "</dl>\n</"
										"section>\n" },
	[FRAG_PART_GAP] = { NULL, NULL },
};

enum capital { AS_IT_IS, SENTENCE, NAME /* a label of one word or more */ };

/* <tag class>text</tag> */
static void add_element(const char *tag, const char *class, const char *text, enum capital how,
			struct frag_text *out)
{
	size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz'-");
	char first[2] = "";

	/* A sentence that begins with a word, and is more than a name; the program has no capital
	 * anywhere. */
	if (how == NAME || (how == SENTENCE && strncmp(text, "cufrag ", 7) != 0 && *text >= 'a' &&
			    *text <= 'z' && text[word + strspn(text + word, ",:;")] == ' '))
		*first = (char)toupper((unsigned char)*text);
	frag_text_addf(out, *class ? "<%s class=\"%s\">" : "<%s>", tag, class);
	frag_text_add_html(out, first);
	frag_text_add_html(out, *first ? text + 1 : text);
	frag_text_addf(out, "</%s>\n", tag);
}

/* A paragraph; a sentence that a terminal shows without its full stop gets it. */
static void add_paragraph(const char *class, const struct frag_part *part, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text whole = { 0 };
	const char *text = part->text;
	size_t n = strlen(text);

	frag_text_add(&whole, text);
	frag_text_add(&whole, n && strchr(".:!?", text[n - 1]) ? "" : ".");
	out->failed |= whole.failed;
	add_element("p", class, frag_text_str(&whole), part->as_is ? AS_IT_IS : SENTENCE, out);
}

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

/* ---- tables ----------------------------------------------------------------------------- */

/* Names of policies are long words: they may break behind their signs. */
static void add_words(const char *cell, struct frag_text *out)
{
	for (size_t n; *cell; cell += n) {
		FRAG_AUTO(frag_text_release) struct frag_text word = { 0 };
		bool breaks;

		n = strcspn(cell, ":_,");
		breaks = cell[n] != '\0';
		n += breaks;
		frag_text_addn(&word, cell, n);
		out->failed |= word.failed;
		frag_text_add_html(out, frag_text_str(&word));
		frag_text_add(out, breaks && cell[n] ? "<wbr>" : "");
	}
}

static void add_head(const struct frag_field *columns, size_t count, struct frag_text *out)
{
	frag_text_add(out, "<thead><tr>");
	for (size_t c = 0; c < count; c++) {
		frag_text_addf(out, "<th scope=\"col\"%s title=\"",
			       frag_field_left(&columns[c]) ? " class=\"l\"" : "");
		frag_text_add_html(out, columns[c].help);
		frag_text_add(out, "\">");
		frag_text_add_html(out, columns[c].head);
		if (columns[c].unit) {
			frag_text_add(out, "<span class=\"unit\">");
			frag_text_add_html(out, columns[c].unit);
			frag_text_add(out, "</span>");
		}
		frag_text_add(out, "</th>");
	}
	frag_text_add(out, "</tr></thead>\n<tbody>\n");
}

/* Texts so long have a column that is wide before it breaks them. */
#define LONG_TEXT 24u

static void add_cell(const struct frag_part *part, const struct frag_field *f, const void *row,
		     struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text cell = { 0 };
	const char *href = f->href ? frag_shape_text(part->shape, row, f->href) : NULL;

	frag_field_text(f, row, &cell);
	out->failed |= cell.failed;
	frag_text_add(out, !frag_field_left(f) ? "<td>"
			   : frag_text_width(frag_text_str(&cell)) >= LONG_TEXT
				   ? "<td class=\"l long\">"
				   : "<td class=\"l\">");
	if (href) {
		frag_text_add(out, "<a href=\"");
		frag_text_add_href(out, href);
		frag_text_add(out, "\">");
	}
	add_words(frag_text_str(&cell), out);
	frag_text_add(out, href ? "</a></td>" : "</td>");
}

static void add_table(const struct frag_part *part, struct frag_text *out)
{
	struct frag_field columns[FRAG_TABLE_COLUMNS];
	size_t count = frag_part_columns(part, true, columns), shown = frag_part_shown(part);

	if (!part->rows.count)
		return;
	frag_text_add(out, "<div class=\"scroll\"><table>\n");
	add_head(columns, count, out);
	for (size_t i = 0; i < shown; i++) {
		frag_text_add(out, i == part->mark ? "<tr class=\"best\">" : "<tr>");
		for (size_t c = 0; c < count; c++)
			add_cell(part, &columns[c], frag_part_row(part, i), out);
		frag_text_add(out, "</tr>\n");
	}
	frag_text_add(out, "</tbody></table></div>\n");
	if (shown < part->rows.count)
		frag_text_addf(out, "<p class=\"meta\">And %zu more.</p>\n",
			       part->rows.count - shown);
	if (part->file) {
		frag_text_add(out, "<p class=\"files\">Data:");
		add_link(part->file, "", out);
		frag_text_add(out, "</p>\n");
	}
}

static void add_facts(const struct frag_part *part, struct frag_text *out)
{
	struct frag_field fields[FRAG_TABLE_COLUMNS];
	size_t count = frag_part_columns(part, true, fields);

	frag_text_add(out, "<dl class=\"facts\">\n");
	for (size_t i = 0; i < count; i++) {
		FRAG_AUTO(frag_text_release) struct frag_text value = { 0 };

		if (!frag_part_fact(part, &fields[i], &value))
			continue;
		out->failed |= value.failed;
		add_element("dt", "", fields[i].head, NAME, out);
		add_element("dd", "", frag_text_str(&value), AS_IT_IS, out);
	}
	frag_text_add(out, "</dl>\n");
}

/* ---- charts ----------------------------------------------------------------------------- */

static void add_chart(const struct frag_answer_chart *c, unsigned formats, const char *svg,
		      size_t number, struct frag_text *out)
{
	const char *base = frag_chart_base(c);
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "x%zu-", number);
	frag_text_add(out, "<figure>\n");
	if (c->heading)
		add_element("h3", "", c->heading, AS_IT_IS, out);
	frag_svg_inline(svg ? svg : "", prefix, c->title, out);
	frag_text_add(out, "<figcaption>");
	frag_text_add_html(out, c->caption);
	frag_text_add(out, "</figcaption>\n");
	if (!formats) {
		frag_text_add(out, "</figure>\n");
		return;
	}
	frag_text_add(out, "<p class=\"files\">Data:");
	add_link(base, ".csv", out);
	frag_text_add(out, ". Picture:");
	add_link(base, ".svg", out);
	if (formats & FRAG_FORMAT_PNG)
		add_link(base, ".png", out);
	if (formats & FRAG_FORMAT_PDF)
		add_link(base, ".pdf", out);
	frag_text_add(out, "</p>\n</figure>\n");
}

/* ---- the page --------------------------------------------------------------------------- */

static void add_part(const struct frag_part *part, unsigned formats, const char *svg, size_t number,
		     struct frag_text *out)
{
	enum capital how = part->as_is ? AS_IT_IS : SENTENCE;
	bool code = part->kind == FRAG_PART_PASTE;

	switch (part->kind) {
	case FRAG_PART_REMARK:
		add_element("p", "meta", part->text, how, out);
		break;
	case FRAG_PART_SAY:
		add_paragraph("", part, out);
		break;
	case FRAG_PART_VERDICT:
		add_element("p", "answer", part->text, NAME, out);
		break;
	case FRAG_PART_CONCLUSION:
		add_paragraph("answer", part, out);
		break;
	case FRAG_PART_WARN:
		add_paragraph("warn", part, out);
		break;
	case FRAG_PART_ITEM:
		add_element("li", "", part->text, how, out);
		break;
	case FRAG_PART_HEADING:
		add_element("h2", "", part->text, how, out);
		break;
	case FRAG_PART_PASTE:
	case FRAG_PART_WORD:
		add_element("dt", "", part->label, NAME, out);
		frag_text_add(out, code ? "<dd><code>" : "<dd>");
		frag_text_add_html(out, part->text);
		frag_text_add(out, code ? "</code></dd>\n" : "</dd>\n");
		break;
	case FRAG_PART_TABLE:
		add_table(part, out);
		break;
	case FRAG_PART_FACTS:
		add_facts(part, out);
		break;
	case FRAG_PART_TILE:
		frag_text_add(out, "<div class=\"tile\"><b>");
		frag_text_add_html(out, part->text);
		frag_text_add(out, "</b><span>");
		add_words(part->label, out);
		frag_text_add(out, "</span></div>\n");
		break;
	case FRAG_PART_CHART:
		add_chart(&part->chart, formats, svg, number, out);
		break;
	case FRAG_PART_GAP:
		break;
	}
}

/* The interactive part stands below the answer, above the first table or picture. */
static const unsigned below_live = 1u << FRAG_PART_TABLE | 1u << FRAG_PART_CHART |
				   1u << FRAG_PART_HEADING | 1u << FRAG_PART_WORD;

static void add_parts(const struct frag_answer *a, unsigned formats, char *const *svgs,
		      struct frag_text *out)
{
	const char *close = NULL, *live = a->live ? a->live : "";
	enum frag_part_kind kind = FRAG_PART_GAP;

	for (size_t i = 0; i < a->parts_count; i++) {
		const struct frag_part *part = &a->parts[i];

		if (part->text_only || part->kind == FRAG_PART_GAP ||
		    (part->kind == FRAG_PART_CHART && !svgs))
			continue;
		if (part->kind != kind) {
			frag_text_add(out, close ? close : "");
			kind = part->kind;
			close = around[kind].close;
			if (1u << kind & below_live) {
				frag_text_add(out, live);
				live = "";
			}
			frag_text_add(out, around[kind].open ? around[kind].open : "");
		}
		add_part(part, formats, svgs ? svgs[i] : NULL, i, out);
	}
	frag_text_add(out, close ? close : "");
	frag_text_add(out, live);
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
	add_element("h1", "", a->title ? a->title : a->command, SENTENCE, out);
	if (a->question)
		add_element("p", "question", a->question, AS_IT_IS, out);
	frag_text_add(out, "<dl class=\"facts\">\n");
	add_fact("Author", a->author, "span", out);
	add_fact("Date", a->date, "span", out);
	add_fact("Command", page->command_line, "code", out);
	frag_text_add(out, "</dl>\n</header>\n");
	if (a->estimated)
		add_element("p", "warn", "An estimate: the recording was made without a GPU.",
			    AS_IT_IS, out);
}

static void add_foot(const struct frag_answer *a, const struct frag_answer_page *page,
		     struct frag_text *out)
{
	frag_text_add(out, "<section>\n<h2>How to make this page again</h2>\n<pre>");
	frag_text_add_html(out, page->command_line ? page->command_line : "");
	frag_text_add(out, "</pre>\n");
	if (!page->formats) {
		frag_text_add(out, "</section>\n");
		return;
	}
	frag_text_add(out, "<p class=\"files\">All figures:");
	add_link("results", ".json", out);
	if (a->csv)
		add_link("results", ".csv", out);
	if (page->formats & FRAG_FORMAT_ONE_PDF)
		add_link("charts", ".pdf", out);
	frag_text_add(out, ". <code>cufrag help COMMAND --format schema</code> says what each "
			   "field means.</p>\n</section>\n");
}

void frag_page_render(const struct frag_answer *a, const struct frag_answer_page *page,
		      char *const *svgs, struct frag_text *out)
{
	frag_page_begin(a->title ? a->title : a->command, a->live_policy, out);
	add_header(a, page, out);
	add_parts(a, page->formats, svgs, out);
	add_foot(a, page, out);
	frag_page_end(out);
}
