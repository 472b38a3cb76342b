/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of text cells, printed aligned or as HTML. */
#include "table.h"

#include <stdio.h>
#include <string.h>

void frag_table_column(struct frag_table *t, const struct frag_table_column *column)
{
	FRAG_ASSERT(t->columns_count < FRAG_TABLE_COLUMNS && !t->cells_count);
	t->columns[t->columns_count++] = *column;
}

void frag_table_release(struct frag_table *t)
{
	frag_text_release(&t->cells);
	t->cells_count = 0;
}

void frag_table_cell(struct frag_table *t, const char *fmt, ...)
{
	char cell[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cell, sizeof(cell), fmt, ap);
	va_end(ap);
	frag_text_addn(&t->cells, cell, strlen(cell) + 1);
	t->cells_count++;
}

static void measure(const struct frag_table *t, size_t *width)
{
	const char *cell = frag_text_str(&t->cells);

	for (size_t c = 0; c < t->columns_count; c++)
		width[c] = FRAG_MAX(frag_text_width(t->columns[c].head),
				    frag_text_width(t->columns[c].unit));
	for (size_t i = 0; i < t->cells_count; i++, cell += strlen(cell) + 1) {
		size_t c = i % t->columns_count;

		width[c] = FRAG_MAX(width[c], frag_text_width(cell));
	}
}

size_t frag_table_width(const struct frag_table *t, size_t *first)
{
	size_t width[FRAG_TABLE_COLUMNS], all = 0;

	measure(t, width);
	for (size_t c = 0; c < t->columns_count; c++)
		all += width[c] + (c ? 2 : 0);
	if (first)
		*first = width[0];
	return all;
}

static void put_cell(const struct frag_table *t, size_t c, const char *cell, size_t width,
		     struct frag_text *out)
{
	size_t pad = width - frag_text_width(cell);
	bool last = c + 1 == t->columns_count;

	if (!t->columns[c].left)
		frag_text_repeat(out, " ", pad);
	frag_text_add(out, cell);
	if (t->columns[c].left && !last)
		frag_text_repeat(out, " ", pad);
	frag_text_add(out, last ? "\n" : "  ");
}

void frag_table_print(const struct frag_table *t, struct frag_text *out)
{
	size_t width[FRAG_TABLE_COLUMNS];
	const char *cell = frag_text_str(&t->cells);
	bool units = false;

	if (t->cells.failed) {
		out->failed = true;
		return;
	}
	measure(t, width);
	for (size_t c = 0; c < t->columns_count; c++) {
		put_cell(t, c, t->columns[c].head, width[c], out);
		units |= *t->columns[c].unit != '\0';
	}
	for (size_t c = 0; units && c < t->columns_count; c++)
		put_cell(t, c, t->columns[c].unit, width[c], out);
	for (size_t i = 0; i < t->cells_count; i++, cell += strlen(cell) + 1)
		put_cell(t, i % t->columns_count, cell, width[i % t->columns_count], out);
}

static void html_head(const struct frag_table *t, struct frag_text *out)
{
	frag_text_add(out, "<thead><tr>");
	for (size_t c = 0; c < t->columns_count; c++) {
		const struct frag_table_column *col = &t->columns[c];

		frag_text_addf(out, "<th scope=\"col\"%s", col->left ? " class=\"l\"" : "");
		if (col->help) {
			frag_text_add(out, " title=\"");
			frag_text_add_html(out, col->help);
			frag_text_add(out, "\"");
		}
		frag_text_add(out, ">");
		frag_text_add_html(out, col->head);
		if (*col->unit) {
			frag_text_add(out, "<span class=\"unit\">");
			frag_text_add_html(out, col->unit);
			frag_text_add(out, "</span>");
		}
		frag_text_add(out, "</th>");
	}
	frag_text_add(out, "</tr></thead>\n");
}

/* Names of policies are long words: they may break behind their signs. */
void frag_table_words_html(const char *cell, struct frag_text *out)
{
	while (*cell) {
		size_t n = strcspn(cell, ":_,");
		char part[2] = { cell[n], '\0' };
		struct frag_text word = { 0 };

		frag_text_addn(&word, cell, n);
		frag_text_add(&word, part);
		frag_text_add_html(out, frag_text_str(&word));
		frag_text_release(&word);
		cell += n + (part[0] != '\0');
		if (*cell && part[0])
			frag_text_add(out, "<wbr>");
	}
}

void frag_table_html(const struct frag_table *t, size_t mark, struct frag_text *out)
{
	const char *cell = frag_text_str(&t->cells);

	if (t->cells.failed) {
		out->failed = true;
		return;
	}
	frag_text_add(out, "<div class=\"scroll\"><table>\n");
	html_head(t, out);
	frag_text_add(out, "<tbody>\n");
	for (size_t i = 0; i < t->cells_count; i++, cell += strlen(cell) + 1) {
		size_t c = i % t->columns_count;

		if (!c)
			frag_text_addf(out, "<tr%s>",
				       i / t->columns_count == mark ? " class=\"best\"" : "");
		frag_text_addf(out, "<td%s>", t->columns[c].left ? " class=\"l\"" : "");
		frag_table_words_html(cell, out);
		frag_text_add(out, "</td>");
		if (c + 1 == t->columns_count)
			frag_text_add(out, "</tr>\n");
	}
	frag_text_add(out, "</tbody></table></div>\n");
}
