/* SPDX-License-Identifier: Apache-2.0 */
/* A map of the memory needs of the layouts. */
#include "layout_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clean.h"

#define MAP_ROWS 40u

#define CELL(F, P, S) \
	F(S, COUNT, x, x->axes.at[layout * x->axes.count + right], NULL, "column") \
	F(S, COUNT, y, y, NULL, "row") \
	F(S, TEXT, column, frag_answer_print(a, "%s", frag_clean_text(column, strlen(column))), \
	  NULL, "value of the name that goes to the right") \
	F(S, TEXT, row, lines.texts[y], NULL, "the other values") \
	F(S, RATIO, need_ratio, \
	  row->peak_reserved_bytes == UINT64_MAX \
		  ? NAN \
		  : (double)row->peak_reserved_bytes / (double)row->room_bytes, \
	  NULL, "peak of the room of the card; null: it was not recorded") \
	F(S, TEXT, answer, row->answer, NULL, "of that layout")
FRAG_VALUED_ROW(cell, "cell", CELL, "a layout of the map");

/* The axis of the columns: the one with most values, preferably a rising one. */
static size_t right_of(const struct frag_layouts *x)
{
	size_t best = 0, most = 0;

	for (size_t k = 0; k < x->axes.count; k++) {
		size_t n = x->axes.list[k].count +
			   (x->axes.list[k].order != FRAG_AXIS_ANY ? FRAG_AXIS_VALUES : 0);

		best = n > most ? k : best;
		most = FRAG_MAX(most, n);
	}
	return best;
}

struct rows {
	const char *texts[MAP_ROWS];
	size_t count;
};

/* The row with this text, added if it is new; MAP_ROWS: the map is full. */
static size_t find_row(struct rows *rows, const char *text, struct frag_answer *a)
{
	size_t k = 0;

	while (k < rows->count && strcmp(rows->texts[k], text) != 0)
		k++;
	if (k == rows->count && k < MAP_ROWS)
		rows->texts[rows->count++] = frag_answer_print(a, "%s", text);
	return k;
}

void frag_layout_map(const struct frag_layouts *x, size_t c, const struct frag_layout_row *rows,
		     struct frag_answer *a)
{
	struct cell *cells = frag_answer_new(a, x->border.count, sizeof(*cells));
	size_t right = right_of(x), n = 0, fits = 0, all = 0;
	struct frag_title title = { 0 };
	struct rows lines = { 0 };

	for (size_t i = 0, r = 0; cells && i < x->border.count; i++) {
		size_t layout = frag_layout_of(x, i);
		const struct frag_layout_row *row;
		char text[400], column[400];
		size_t y;

		for (size_t k = 0; k < c; k++)
			r += frag_layout_on(x, i, k);
		row = &rows[r];
		for (size_t k = c; k < x->cards_count; k++)
			r += frag_layout_on(x, i, k);
		if (!frag_layout_on(x, i, c))
			continue;
		all++;
		fits += !strcmp(row->answer, "fits");
		frag_axes_text(&x->axes, layout, right, text, sizeof(text));
		y = find_row(&lines, *text ? text : "all", a);
		snprintf(column, sizeof(column), "%s", frag_axes_value(&x->axes, layout, right));
		if (y == MAP_ROWS)
			continue;
		cells[n++] = FRAG_ROW_VALUES(cell, CELL);
	}
	if (!n)
		return;
	frag_text_addf(&title.text, "%s of %s layouts fit %s",
		       frag_title_count(&title, "fits_count", fits),
		       frag_title_count(&title, "layouts_count", all), x->cards[c]->label);
	struct frag_answer_chart chart = {
		.script = "layouts",
		.base = frag_answer_print(a, "layouts-%s", x->cards[c]->name),
		.extra = x->axes.list[right].name,
		.caption = "Peak of the rank that needs most, as a part of what the card has "
			   "without its context and the margin. A plus is a layout that is assumed "
			   "to fit, a minus one that is assumed not to; x failed for another "
			   "reason.",
		.shape = &cell_shape,
		.rows = { cells, n },
	};
	frag_answer_take_title(a, &title, &chart);
	frag_answer_chart(a, &chart);
}
