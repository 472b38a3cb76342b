/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns of a shape a table shows, and its cells as text. */
#include "table_fill.h"

#include <string.h>

static bool any_value(const struct frag_field *f, const struct frag_part *part)
{
	for (size_t i = 0; i < part->rows.count; i++)
		if (!frag_field_is_zero(f, frag_part_row(part, i)))
			return true;
	return false;
}

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

	for (const struct frag_field *f = part->shape->fields; !frag_field_ends(f); f++)
		if (f->head && (page || !f->page_only) && (!f->if_any || any_value(f, part))) {
			FRAG_ASSERT(n < FRAG_TABLE_COLUMNS);
			columns[n++] = *f;
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

/* Headings of the columns that may go, the first one first. spare[FRAG_TABLE_COLUMNS + 1] */
static void list_spare(const struct frag_field *columns, size_t count, const char **spare)
{
	size_t n = 0;

	for (unsigned turn = 1; turn <= FRAG_TABLE_COLUMNS; turn++)
		for (size_t c = 0; c < count; c++)
			if (columns[c].spare == turn && n < FRAG_TABLE_COLUMNS)
				spare[n++] = columns[c].head;
	spare[n] = NULL;
}

void frag_part_print(const struct frag_part *part, unsigned room, struct frag_text *out)
{
	struct frag_field columns[FRAG_TABLE_COLUMNS];
	size_t count = frag_part_columns(part, false, columns), shown = frag_part_shown(part);
	const char *spare[FRAG_TABLE_COLUMNS + 1];
	FRAG_AUTO(frag_table_release) struct frag_table t = { .room = room, .spare = spare };

	list_spare(columns, count, spare);
	t.wraps = part->wraps;
	for (size_t c = 0; c < count; c++)
		frag_table_column(
			&t, &(struct frag_table_column){ .head = columns[c].head,
							 .unit = columns[c].unit,
							 .left = frag_field_left(&columns[c]) });
	for (size_t i = 0; i < shown; i++)
		for (size_t c = 0; c < count; c++) {
			FRAG_AUTO(frag_text_release) struct frag_text cell = { 0 };

			frag_field_text(&columns[c], frag_part_row(part, i), &cell);
			out->failed |= cell.failed;
			frag_table_cell(&t, "%s", frag_text_str(&cell));
		}
	frag_table_print(&t, out);
}
