/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text cells, printed aligned. Columns are given first, with
 * heading, unit and side; cells are added row by row, left to right.
 *
 * Ownership: the table owns its cells; the strings of columns are borrowed. A failed addition
 * is remembered and reported when the table is printed (text of `out` fails).
 *
 * A table that is too wide breaks the lines of its last column, if it may; else it leaves out the
 * columns that may go, then shortens the longest words. Lines below it say what was left out, and
 * what a short label stands for.
 */
#ifndef FRAG_ANSWER_TABLE_H
#define FRAG_ANSWER_TABLE_H

#include "answer/textbuf.h"

struct frag_table_column {
	const char *head, *unit; /* unit "" or NULL = none */
	bool left;		 /* align left: words; else right: numbers */
	const char *help;	 /* HTML: what the column means */
};

#define FRAG_TABLE_COLUMNS 24

struct frag_table { /* init by zeroing */
	struct frag_table_column columns[FRAG_TABLE_COLUMNS];
	size_t columns_count;
	struct frag_text cells; /* NUL-terminated, one after another */
	size_t cells_count;
	size_t room; /* columns of the terminal, 0 = as many as it takes */
	const char *const
		*spare; /* headings that a narrow one does without, the first one first, up
				     * to NULL; or NULL */
	bool wraps;	/* cells of the last column may take several lines */
};

void frag_table_release(struct frag_table *t);
void frag_table_column(struct frag_table *t, const struct frag_table_column *column);
/* Adds one cell; formatted like printf. */
void frag_table_cell(struct frag_table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Aligned text, two blanks between columns, headings and units above. */
void frag_table_print(const struct frag_table *t, struct frag_text *out);
/* A cell's text, escaped, with places where a line may break. */
void frag_table_words_html(const char *cell, struct frag_text *out);

#endif
