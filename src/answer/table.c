/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of text cells, printed aligned. */
#include "answer/table.h"

#include <stdio.h>
#include <string.h>

#define KEYS_MAX 64u
#define WRAP_LEAST ((size_t)12)	 /* … that text in several lines has */
#define LABEL_LEAST ((size_t)18) /* columns that a short label has at least */

void frag_table_column(struct frag_table *t, const struct frag_table_column *column)
{
	FRAG_ASSERT(t->columns_count < FRAG_TABLE_COLUMNS && !t->cells_count);
	t->columns[t->columns_count] = *column;
	if (!column->unit)
		t->columns[t->columns_count].unit = "";
	t->columns_count++;
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

/* How a table is printed: width of each column, 0 = left out; which one has short labels. */
struct fit {
	size_t width[FRAG_TABLE_COLUMNS];
	size_t label, most; /* its width */
	size_t wrap;	    /* that of a last column whose lines are broken, 0 = none */
	unsigned keys;
	const char *keyed[KEYS_MAX]; /* what the first of them stand for */
	struct frag_text *key;
};

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
	/* a column without words still has its place */
	for (size_t c = 0; c < t->columns_count; c++)
		width[c] = FRAG_MAX(width[c], (size_t)1);
}

static size_t width_of(const struct frag_table *t, const size_t *width)
{
	size_t all = 0;

	for (size_t c = 0; c < t->columns_count; c++)
		all += width[c] ? width[c] + 2 : 0;
	return all - 2;
}

/* The column to leave out next, SIZE_MAX = none may go. */
static size_t next_spare(const struct frag_table *t, const size_t *width)
{
	for (const char *const *head = t->spare; head && *head; head++)
		for (size_t c = 0; c < t->columns_count; c++)
			if (width[c] && !strcmp(t->columns[c].head, *head))
				return c;
	return SIZE_MAX;
}

static bool wrap_last(const struct frag_table *t, struct fit *f, size_t all)
{
	size_t *last = &f->width[t->columns_count - 1];

	if (!t->wraps || all <= t->room || all - *last + FRAG_MIN(*last, WRAP_LEAST) > t->room)
		return false;
	f->wrap = *last = t->room - (all - *last);
	return true;
}

/* Makes the table as wide as its room, as far as that can be. */
static void narrow(const struct frag_table *t, struct fit *f)
{
	size_t all, gone = 0, least = 0, c;

	for (;;) {
		all = width_of(t, f->width);
		if (wrap_last(t, f, all))
			break;
		f->label = 0;
		for (c = 1; c < t->columns_count; c++)
			if (t->columns[c].left && f->width[c] > f->width[f->label])
				f->label = c;
		least = FRAG_MIN(f->width[f->label], LABEL_LEAST);
		if (all <= t->room || f->width[f->label] - least >= all - t->room)
			break;
		c = next_spare(t, f->width);
		if (c == SIZE_MAX)
			break;
		frag_text_addf(f->key, "%s%s", gone++ ? ", " : "no room for: ", t->columns[c].head);
		f->width[c] = 0;
	}
	if (gone)
		frag_text_add(f->key, " (a wider terminal shows it)\n");
	if (!f->wrap && all > t->room && f->width[f->label] > least) {
		f->most = FRAG_MAX(f->width[f->label] - FRAG_MIN(all - t->room, f->width[f->label]),
				   least);
		f->width[f->label] = f->most;
		if (f->label + 1 != t->columns_count)
			wrap_last(t, f, width_of(t, f->width));
	}
}

/* Number of the key of a cell; what was said before is not said again. */
static unsigned key_of(struct fit *f, const char *cell)
{
	for (unsigned k = 0; k < FRAG_MIN(f->keys, KEYS_MAX); k++)
		if (!strcmp(f->keyed[k], cell))
			return k + 1;
	if (f->keys < KEYS_MAX)
		f->keyed[f->keys] = cell;
	frag_text_addf(f->key, "[%u] %s\n", ++f->keys, cell);
	return f->keys;
}

/* The beginning of a label that is too long, and a number of the key. */
static void shorten(struct fit *f, const char *cell, struct frag_text *out)
{
	size_t n = 0, width = 0, most;
	char mark[16];

	snprintf(mark, sizeof(mark), "[%u]", key_of(f, cell));
	most = f->most - 1 - strlen(mark);
	/* whole characters */
	while (cell[n] && (width < most || (cell[n] & 0xc0) == 0x80))
		width += (cell[n++] & 0xc0) != 0x80;
	frag_text_addn(out, cell, n);
	frag_text_addf(out, "\xe2\x80\xa6%s", mark);
}

/* Bytes of the beginning of `s` that have room, up to the end of a word where there is one. */
static size_t line_of(const char *s, size_t room)
{
	size_t n = 0, width = 0, word = 0;

	while (s[n] && width <= room) {
		if (s[n] == ' ')
			word = n;
		width += (s[++n] & 0xc0) != 0x80;
	}
	if (!s[n] && width <= room)
		return n;
	while (n && (s[n] & 0xc0) == 0x80)
		n--;
	return word ? word : n - 1;
}

static void wrap(const char *cell, size_t indent, size_t room, struct frag_text *out)
{
	for (;;) {
		size_t n = line_of(cell, room);

		frag_text_addn(out, cell, n);
		cell += n + strspn(cell + n, " ");
		if (!*cell)
			break;
		frag_text_add(out, "\n");
		frag_text_repeat(out, " ", indent);
	}
}

static void put_cell(const struct frag_table *t, struct fit *f, size_t c, const char *cell,
		     struct frag_text *out)
{
	size_t width = f->width[c], own = frag_text_width(cell), last = t->columns_count;

	while (last > 0 && !f->width[last - 1])
		last--;
	if (width && own > width && f->most && c == f->label) {
		shorten(f, cell, out);
	} else if (f->wrap && own > width && c + 1 == t->columns_count) {
		wrap(cell, width_of(t, f->width) - width, width, out);
	} else if (width) {
		if (!t->columns[c].left)
			frag_text_repeat(out, " ", width - own);
		frag_text_add(out, cell);
		if (t->columns[c].left && c + 1 != last)
			frag_text_repeat(out, " ", width - own);
	}
	if (width && c + 1 < last)
		frag_text_add(out, "  ");
	if (c + 1 == t->columns_count)
		frag_text_add(out, "\n");
}

void frag_table_print(const struct frag_table *t, struct frag_text *out)
{
	const char *cell = frag_text_str(&t->cells);
	FRAG_AUTO(frag_text_release) struct frag_text key = { 0 };
	struct fit f = { .key = &key };
	bool units = false;

	if (t->cells.failed) {
		out->failed = true;
		return;
	}
	measure(t, f.width);
	if (t->room)
		narrow(t, &f);
	for (size_t c = 0; c < t->columns_count; c++) {
		put_cell(t, &f, c, t->columns[c].head, out);
		units |= f.width[c] && *t->columns[c].unit;
	}
	for (size_t c = 0; units && c < t->columns_count; c++)
		put_cell(t, &f, c, t->columns[c].unit, out);
	for (size_t i = 0; i < t->cells_count; i++, cell += strlen(cell) + 1)
		put_cell(t, &f, i % t->columns_count, cell, out);
	frag_text_add(out, frag_text_str(&key));
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
