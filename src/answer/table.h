/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of an answer: what text, Markdown and page share. */
#ifndef FRAG_ANSWER_TABLE_H
#define FRAG_ANSWER_TABLE_H

#include "answer.h"

#define FRAG_TABLE_COLUMNS 64

static inline const void *frag_part_row(const struct frag_part *part, size_t i)
{
	return (const char *)part->rows.rows + i * part->shape->size;
}

/* Columns that are shown, with the unit that "mem" stands for here. Returns how many. */
size_t frag_part_columns(const struct frag_part *part, bool page,
			 struct frag_field columns[FRAG_TABLE_COLUMNS]);
/* The value of a field of facts, with its unit. false: null without a word for that: left out. */
bool frag_part_fact(const struct frag_part *part, const struct frag_field *f,
		    struct frag_text *value);
/* Rows that are shown. */
size_t frag_part_shown(const struct frag_part *part);
bool frag_field_left(const struct frag_field *f);
/*
 * The table as aligned text, two blanks between columns, headings and units above. room: columns of
 * the terminal, 0 = no bound. A table that is too wide breaks the lines of its last column, if it
 * may; else it leaves out the columns that may go, then shortens the longest words. Lines below it
 * say what was left out, and what a short label stands for.
 */
void frag_part_print(const struct frag_part *part, unsigned room, struct frag_text *out);

#endif
