/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns of a shape a table shows, its cells as text, and the table printed aligned. */
#include "answer/table.h"

#include <stdio.h>
#include <string.h>

/* From this many bytes on, a table of memory is in GiB. */
#define GIB_FROM (4 * FRAG_GIB)

static bool is_mem(const struct frag_field *f)
{
	return f->unit && !strcmp(f->unit, "mem");
}

static void set_units(const struct frag_part *part, struct frag_field *columns, size_t count)
{
	uint64_t most = 0;

	for (size_t c = 0; c < count; c++)
		for (size_t i = 0; is_mem(&columns[c]) && i < part->rows.count; i++)
			if (!frag_field_is_null(&columns[c], frag_part_row(part, i)))
				most = FRAG_MAX(
					most,
					*(const uint64_t *)((const char *)frag_part_row(part, i) +
							    columns[c].offset));
	for (size_t c = 0; c < count; c++) {
		if (!is_mem(&columns[c]))
			continue;
		columns[c].unit = most >= GIB_FROM ? "GiB" : "MiB";
		columns[c].precision = most >= GIB_FROM ? 2 : 1;
	}
}

size_t frag_part_columns(const struct frag_part *part, bool page,
			 struct frag_field columns[FRAG_TABLE_COLUMNS])
{
	size_t n = 0;

	for (const struct frag_field *f = part->shape->fields; !frag_field_ends(f); f++) {
		bool any = false;

		for (size_t i = 0; f->if_any && !any && i < part->rows.count; i++)
			any = !frag_field_is_zero(f, frag_part_row(part, i));
		if (f->head && (page || !f->page_only) && (!f->if_any || any)) {
			FRAG_ASSERT(n < FRAG_TABLE_COLUMNS);
			columns[n++] = *f;
		}
	}
	set_units(part, columns, n);
	return n;
}

bool frag_field_left(const struct frag_field *f)
{
	return f->left ||
	       (!f->right && (f->type == FRAG_FIELD_TEXT || f->type == FRAG_FIELD_TEXTS));
}

bool frag_part_fact(const struct frag_part *part, const struct frag_field *f,
		    struct frag_text *value)
{
	if (frag_field_is_null(f, part->rows.rows) && !f->none)
		return false;
	frag_field_text(f, part->rows.rows, value);
	if (f->unit)
		frag_text_addf(value, " %s", f->unit);
	return true;
}

size_t frag_part_shown(const struct frag_part *part)
{
	return part->top ? FRAG_MIN(part->top, part->rows.count) : part->rows.count;
}

/* ---- as text ---------------------------------------------------------------------------- */

#define KEYS_MAX 64u
#define CELL_MOST ((size_t)511)
#define WRAP_LEAST ((size_t)12)	 /* … that text in several lines has */
#define LABEL_LEAST ((size_t)18) /* columns that a short label has at least */

struct table {
	struct frag_field columns[FRAG_TABLE_COLUMNS];
	size_t count;
	size_t room;		/* of the terminal */
	struct frag_text cells; /* row by row, each ended by NUL */
	size_t cells_count;
	size_t width[FRAG_TABLE_COLUMNS]; /* of each column, 0 = left out */
	size_t label, most;		  /* the column with short labels, and its width */
	size_t wrap; /* width of a last column whose lines are broken, 0 = none */
	unsigned keys;
	const char *keyed[KEYS_MAX]; /* what the first of them stand for */
	struct frag_text key;
};

static const char *unit_of(const struct table *t, size_t c)
{
	return t->columns[c].unit ? t->columns[c].unit : "";
}

static void fill(const struct frag_part *part, struct table *t)
{
	const char *cell;

	t->count = frag_part_columns(part, false, t->columns);
	t->cells_count = frag_part_shown(part) * t->count;
	for (size_t i = 0; i < t->cells_count; i++) {
		size_t from = t->cells.len;

		frag_field_text(&t->columns[i % t->count], frag_part_row(part, i / t->count),
				&t->cells);
		t->cells.len = FRAG_MIN(t->cells.len, from + CELL_MOST);
		frag_text_addn(&t->cells, "", 1);
	}
	/* a column without words still has its place */
	for (size_t c = 0; c < t->count; c++)
		t->width[c] = FRAG_MAX(FRAG_MAX(frag_text_width(t->columns[c].head),
						frag_text_width(unit_of(t, c))),
				       (size_t)1);
	cell = frag_text_str(&t->cells);
	for (size_t i = 0; !t->cells.failed && i < t->cells_count; i++, cell += strlen(cell) + 1)
		t->width[i % t->count] = FRAG_MAX(t->width[i % t->count], frag_text_width(cell));
}

static size_t width_of(const struct table *t)
{
	size_t all = 0;

	for (size_t c = 0; c < t->count; c++)
		all += t->width[c] ? t->width[c] + 2 : 0;
	return all - 2;
}

static bool wrap_last(struct table *t, bool wraps)
{
	size_t *last = &t->width[t->count - 1], all = width_of(t);

	if (!wraps || all <= t->room || all - *last + FRAG_MIN(*last, WRAP_LEAST) > t->room)
		return false;
	t->wrap = *last = t->room - (all - *last);
	return true;
}

/* Makes the table as wide as its room, as far as that can be. */
static void narrow(struct table *t, bool wraps)
{
	size_t all, gone = 0, least = 0, c, spare;

	for (;;) {
		all = width_of(t);
		if (wrap_last(t, wraps))
			break;
		t->label = 0;
		for (c = 1; c < t->count; c++)
			if (frag_field_left(&t->columns[c]) && t->width[c] > t->width[t->label])
				t->label = c;
		least = FRAG_MIN(t->width[t->label], LABEL_LEAST);
		if (all <= t->room || t->width[t->label] - least >= all - t->room)
			break;
		spare = SIZE_MAX;
		for (c = 0; c < t->count; c++)
			if (t->width[c] && t->columns[c].spare &&
			    (spare == SIZE_MAX || t->columns[c].spare < t->columns[spare].spare))
				spare = c;
		if (spare == SIZE_MAX)
			break;
		frag_text_addf(&t->key, "%s%s",
			       gone++ ? ", " : "no room for: ", t->columns[spare].head);
		t->width[spare] = 0;
	}
	if (gone)
		frag_text_add(&t->key, " (a wider terminal shows it)\n");
	if (!t->wrap && all > t->room && t->width[t->label] > least) {
		t->most = FRAG_MAX(t->width[t->label] - FRAG_MIN(all - t->room, t->width[t->label]),
				   least);
		t->width[t->label] = t->most;
		if (t->label + 1 != t->count)
			wrap_last(t, wraps);
	}
}

/* The beginning of a label that is too long, and its number in the key; what was said before is not
 * said again. */
static void shorten(struct table *t, const char *cell, struct frag_text *out)
{
	size_t n = 0, width = 0, most;
	unsigned k = 0;
	char mark[16];

	while (k < FRAG_MIN(t->keys, KEYS_MAX) && strcmp(t->keyed[k], cell) != 0)
		k++;
	if (k == FRAG_MIN(t->keys, KEYS_MAX)) {
		if (k < KEYS_MAX)
			t->keyed[k] = cell;
		k = t->keys++;
		frag_text_addf(&t->key, "[%u] %s\n", t->keys, cell);
	}
	snprintf(mark, sizeof(mark), "[%u]", k + 1);
	most = t->most - 1 - strlen(mark);
	/* whole characters */
	while (cell[n] && (width < most || (cell[n] & 0xc0) == 0x80))
		width += (cell[n++] & 0xc0) != 0x80;
	frag_text_addn(out, cell, n);
	frag_text_addf(out, "\xe2\x80\xa6%s", mark);
}

static void wrap(const char *cell, size_t indent, size_t room, struct frag_text *out)
{
	for (;;) {
		size_t n = frag_text_line(cell, room, false);

		frag_text_addn(out, cell, n);
		cell += n + strspn(cell + n, " \n");
		if (!*cell)
			break;
		frag_text_add(out, "\n");
		frag_text_repeat(out, " ", indent);
	}
}

static void put_cell(struct table *t, size_t c, const char *cell, struct frag_text *out)
{
	size_t width = t->width[c], own = frag_text_width(cell), last = t->count;
	bool left = frag_field_left(&t->columns[c]);

	while (last > 0 && !t->width[last - 1])
		last--;
	if (width && own > width && t->most && c == t->label) {
		shorten(t, cell, out);
	} else if (t->wrap && own > width && c + 1 == t->count) {
		wrap(cell, width_of(t) - width, width, out);
	} else if (width) {
		frag_text_repeat(out, " ", left ? 0 : width - own);
		frag_text_add(out, cell);
		frag_text_repeat(out, " ", left && c + 1 != last ? width - own : 0);
	}
	if (width && c + 1 < last)
		frag_text_add(out, "  ");
	if (c + 1 == t->count)
		frag_text_add(out, "\n");
}

void frag_part_print(const struct frag_part *part, unsigned room, struct frag_text *out)
{
	struct table t = { .room = room };
	const char *cell;
	bool units = false;

	fill(part, &t);
	if (room)
		narrow(&t, part->wraps);
	for (size_t c = 0; !t.cells.failed && c < t.count; c++) {
		put_cell(&t, c, t.columns[c].head, out);
		units |= t.width[c] && *unit_of(&t, c);
	}
	for (size_t c = 0; units && c < t.count; c++)
		put_cell(&t, c, unit_of(&t, c), out);
	cell = frag_text_str(&t.cells);
	for (size_t i = 0; !t.cells.failed && i < t.cells_count; i++, cell += strlen(cell) + 1)
		put_cell(&t, i % t.count, cell, out);
	frag_text_add(out, frag_text_str(&t.key));
	out->failed |= t.cells.failed || t.key.failed;
	frag_text_release(&t.cells);
	frag_text_release(&t.key);
}
