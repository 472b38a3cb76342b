/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command found out, before anybody writes it down. A command builds one answer; this folder
 * renders it as text, JSON, CSV and a page, and only this folder writes these four.
 *
 *	struct fit_answer *x = frag_answer_new(a, 1, sizeof(*x));     the facts, as C structs with shapes (field.h)
 *	FRAG_CHECK_ALLOC(x, "answer", err);
 *	frag_answer_data(a, &fit_shape, x);                           --json: all of x
 *	frag_answer_csv(a, &row_shape, x->results.rows, count);       --csv: these rows
 *	frag_answer_remark(a, "capacity = what the trace needs + context %s", FRAG_BYTES(n));
 *	frag_answer_table(a, &row_shape, x->results.rows, count);     text and page, in this order
 *	frag_answer_conclude(a, "%s with %s is enough", card, policy);
 *
 * Words. data: the facts, one struct. part: something that people read, in order. conclusion: the
 * sentence that answers the question; JSON has all of them, and verdicts, in "answers". Every
 * number in a conclusion or in the title of a chart is in the data, too (tests/json checks that).
 *
 * Errors: an addition for which host memory is too short is remembered (a->failed), and the
 * renderers report it. Ownership: an answer owns what frag_answer_new and frag_answer_print gave
 * out, until frag_answer_release; shapes, rows and data are borrowed, and usually made by these
 * two.
 */
#ifndef FRAG_ANSWER_ANSWER_H
#define FRAG_ANSWER_ANSWER_H

#include <frag/base.h>
#include <frag/error.h>

#include <stdarg.h>

#include "answer/field.h"
#include "answer/textbuf.h"

#define FRAG_ANSWER_SCHEMA 3 /* of all JSON documents; CHANGELOG says what each changed */

enum frag_part_kind {
	FRAG_PART_REMARK,     /* "# text": what was replayed, on what, with what */
	FRAG_PART_SAY,	      /* a paragraph */
	FRAG_PART_CONCLUSION, /* "answer: text"; the box of a page */
	FRAG_PART_VERDICT,    /* "verdict: text": the same in a word */
	FRAG_PART_WARN,	      /* a paragraph that must stand out */
	FRAG_PART_ITEM,	      /* one of a list */
	FRAG_PART_PASTE,      /* label and a line for a shell: never broken */
	FRAG_PART_HEADING,
	FRAG_PART_TABLE,
	FRAG_PART_FACTS, /* one row: a label and a value a line */
	FRAG_PART_TILE,	 /* pages: a large figure and what it is */
	FRAG_PART_CHART, /* pages */
	FRAG_PART_WORD,	 /* pages: an entry of "What the words mean" */
	FRAG_PART_GAP,	 /* text: an empty line */
};

/*
 * The title of a chart: a sentence that says what the chart shows, and the numbers in it, which
 * JSON has beside the sentence. What is printed and what is noted cannot differ.
 *
 * Ownership: init by zeroing; frag_answer_take_title or frag_title_release.
 */
#define FRAG_TITLE_NUMBERS 8u

struct frag_answer_number {
	const char *name; /* ends with its unit, as those of fields */
	double value;
};

struct frag_title {
	struct frag_text text;
	struct frag_answer_number numbers[FRAG_TITLE_NUMBERS];
	char shown[FRAG_TITLE_NUMBERS][32];
	size_t count;
};

void frag_title_release(struct frag_title *t);
/* A number of the title, and its text: "9.65 GiB", "45.2 ms". The sentence goes to t->text. */
const char *frag_title_bytes(struct frag_title *t, const char *name, uint64_t bytes);
const char *frag_title_ns(struct frag_title *t, const char *name, uint64_t ns);
const char *frag_title_count(struct frag_title *t, const char *name, uint64_t count);
/* 0.334 as "33 %", with `digits` behind the point. */
const char *frag_title_percent(struct frag_title *t, const char *name, double ratio, int digits);

/* A picture of a page, drawn from its data by scripts/plot/SCRIPT.gp (or a program, with a '/'). */
struct frag_answer_chart {
	const char *script, *base;    /* files: base.csv, base.svg, …; base NULL: as the script */
	const char *heading;	      /* above the figure; NULL = none */
	const char *title, *subtitle; /* in the picture */
	const char *extra;	      /* argument of the script, or NULL */
	const char *caption;	      /* below it */
	const struct frag_shape *shape; /* of its rows */
	struct frag_rows rows;
	const struct frag_answer_number *numbers; /* [numbers_count], of frag_title_take */
	size_t numbers_count;
};
static inline const char *frag_chart_base(const struct frag_answer_chart *c)
{
	return c->base ? c->base : c->script;
}

struct frag_part {
	enum frag_part_kind kind;
	const char *text;  /* all but tables and charts; of facts their heading or NULL */
	const char *label; /* PASTE: "to use it"; TILE: what it is; WORD: the word */
	const struct frag_shape *shape;
	struct frag_rows rows;
	size_t mark;	  /* TABLE: row that stands out on a page; SIZE_MAX = none */
	size_t top;	  /* TABLE: rows shown in text and on a page, then "and N more"; 0 = all */
	bool wraps;	  /* TABLE: cells of the last column may take several lines */
	const char *file; /* TABLE: its rows as CSV beside a page, "spread.csv"; NULL = none */
	unsigned indent;  /* TABLE, FACTS: blanks in front of each line of text */
	bool page_only, text_only;
	bool as_is; /* it begins with a name, which never gets a capital: set where "%s" begins the format */
	struct frag_answer_chart chart;
};

struct frag_answer {
	const char *command;	      /* "fit" */
	const char *title, *question; /* of the page */
	const char *author, *date; /* of the page; NULL = none. Data do not depend on the clock */
	bool color;		   /* headings in bold, for a terminal */
	bool brief;	    /* text: only conclusions, verdicts, warnings and lines to paste */
	bool quiet;	    /* standard output belongs to another file: no text */
	bool estimated;	    /* rests on a recording made without a GPU */
	const char *caveat; /* behind what it concludes; NULL: none */
	bool need_unknown;  /* rests on one that ended out of memory: the command exits with 6 */
	const struct frag_shape *shape; /* of the data; NULL = none */
	const void *data;
	const struct frag_shape *csv; /* of the rows of --csv */
	struct frag_rows csv_rows;
	struct frag_part *parts;
	size_t parts_count, parts_cap;
	const char *live; /* of pages: a section with a script, below the answer; NULL = none */
	const char *live_policy;	  /* the page's Content-Security-Policy then */
	struct frag_answer_block *blocks; /* host memory handed out */
	bool failed;
};

void frag_answer_release(struct frag_answer *a);

/* Zeroed memory for `count` structs, until the answer goes. NULL: memory is short (a->failed). */
void *frag_answer_new(struct frag_answer *a, size_t count, size_t size);
/* A copy of `from` that the answer owns; NULL: no memory. FRAG_ANSWER_KEEP(a, (struct row){ … }) */
void *frag_answer_copy(struct frag_answer *a, const void *from, size_t size);
#define FRAG_ANSWER_KEEP(a, ...) frag_answer_copy(a, &(__VA_ARGS__), sizeof(__VA_ARGS__))
/* As printf. Never NULL. */
const char *frag_answer_print(struct frag_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *frag_answer_vprint(struct frag_answer *a, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* "1 job", "1,234 jobs" */
const char *frag_answer_count(struct frag_answer *a, uint64_t n, const char *one, const char *many);
/* A copy of what `t` holds, which is released. NULL where it holds nothing. */
const char *frag_answer_take(struct frag_answer *a, struct frag_text *t);

void frag_answer_data(struct frag_answer *a, const struct frag_shape *shape, const void *data);
void frag_answer_csv(struct frag_answer *a, const struct frag_shape *shape, const void *rows,
		     size_t count);

/* Parts, in the order in which they are read. */
void frag_answer_remark(struct frag_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void frag_answer_say(struct frag_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void frag_answer_conclude(struct frag_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void frag_answer_verdict(struct frag_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void frag_answer_warn(struct frag_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void frag_answer_item(struct frag_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void frag_answer_heading(struct frag_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "to use it: export …" */
void frag_answer_paste(struct frag_answer *a, const char *label, const char *line);
void frag_answer_gap(struct frag_answer *a);
/* The part, to say more of it (mark, top, wraps); a harmless one where memory was short. */
struct frag_part *frag_answer_table(struct frag_answer *a, const struct frag_shape *shape,
				    const void *rows, size_t count);
struct frag_part *frag_answer_facts(struct frag_answer *a, const struct frag_shape *shape,
				    const void *row);
void frag_answer_tile(struct frag_answer *a, const char *label, const char *figure);
void frag_answer_chart(struct frag_answer *a, const struct frag_answer_chart *chart);
void frag_answer_word(struct frag_answer *a, const char *word, const char *meaning);
/* Takes text and numbers of `title` as those of `chart`, and releases it. */
void frag_answer_take_title(struct frag_answer *a, struct frag_title *title,
			    struct frag_answer_chart *chart);
/* The part that was added last: .page_only, .text_only. */
struct frag_part *frag_answer_last(struct frag_answer *a);

/* ---- renderers ------------------------------------------------------------------------------- */

/* Text for people. columns: of the terminal, 0 = as wide as it needs. Errors: FRAG_ENOMEM. */
int frag_answer_text(const struct frag_answer *a, unsigned columns, struct frag_text *out,
		     struct frag_err *err);
/* New reference; NULL when memory is short. */
json_t *frag_answer_json(const struct frag_answer *a);
/* Each into a file, complete or absent; "-": standard output. Errors: FRAG_EOUTPUT, FRAG_ENOMEM. */
int frag_answer_put_json(const struct frag_answer *a, const char *path, struct frag_err *err);
int frag_answer_put_csv(const struct frag_answer *a, const char *path, struct frag_err *err);
/* Any document; takes the reference. root NULL: FRAG_ENOMEM. */
int frag_json_put(json_t *root, const char *path, struct frag_err *err);

struct frag_answer_page {
	const char *dir, *file;	  /* made if missing; "fit.html" */
	const char *command_line; /* that makes the page again, as a shell takes it */
	unsigned formats;	  /* FRAG_FORMAT_… of charts, beside SVG; 0: nothing is linked */
	unsigned threads;	  /* pictures drawn at the same time */
};
/*
 * dir/file with its charts inside; the data and pictures of each chart, results.json and, where
 * there are rows, results.csv beside it. All of it is made in a folder aside and moved in at the
 * end: all of it or nothing. Errors: FRAG_EOUTPUT (no gnuplot, folder not writable), FRAG_ENOMEM.
 */
int frag_answer_put_page(const struct frag_answer *a, const struct frag_answer_page *page,
			 struct frag_err *err);

/* Only the page, with its charts inside if gnuplot is there: not page->dir, file and formats. */
int frag_answer_page_text(const struct frag_answer *a, const struct frag_answer_page *page,
			  struct frag_text *out, struct frag_err *err);

/* The HTML alone. svgs: by part, those of charts; NULL: no pictures. */
void frag_page_render(const struct frag_answer *a, const struct frag_answer_page *page,
		      char *const *svgs, struct frag_text *out);
/* The skeleton of every page: up to the content, and the end. policy: of scripts, or NULL. */
void frag_page_begin(const char *title, const char *policy, struct frag_text *out);
void frag_page_end(struct frag_text *out);

#endif
