/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as it is built: memory that goes with it, and parts in order. */
#include "answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <frag/opt.h>

#include "lib/grow.h"

struct frag_answer_block {
	struct frag_answer_block *next;
	max_align_t bytes[];
};

void frag_answer_release(struct frag_answer *a)
{
	while (a->blocks) {
		struct frag_answer_block *next = a->blocks->next;

		frag_host_free(a->blocks);
		a->blocks = next;
	}
	frag_host_free(a->parts);
	*a = (struct frag_answer){ 0 };
}

void *frag_answer_new(struct frag_answer *a, size_t count, size_t size)
{
	size_t bytes;
	struct frag_answer_block *b = NULL;

	/* one byte at least: no rows are no failure */
	if (!__builtin_mul_overflow(FRAG_MAX(count, (size_t)1), size, &bytes) &&
	    !__builtin_add_overflow(bytes, sizeof(*b), &bytes))
		b = frag_host_calloc(1, bytes);
	if (!b) {
		a->failed = true;
		return NULL;
	}
	b->next = a->blocks;
	a->blocks = b;
	return b->bytes;
}

void *frag_answer_copy(struct frag_answer *a, const void *from, size_t size)
{
	void *to = frag_answer_new(a, 1, size);

	return to ? memcpy(to, from, size) : NULL;
}

const char *frag_answer_vprint(struct frag_answer *a, const char *fmt, va_list ap)
{
	va_list again;
	char *text;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = frag_answer_new(a, (size_t)n + 1, 1);
	if (!text)
		return "";
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	return text;
}

const char *frag_answer_print(struct frag_answer *a, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = frag_answer_vprint(a, fmt, ap);
	va_end(ap);
	return text;
}

const char *frag_answer_count(struct frag_answer *a, uint64_t n, const char *one, const char *many)
{
	return frag_answer_print(a, "%s %s", FRAG_GROUPED(n), n == 1 ? one : many);
}

const char *frag_answer_take(struct frag_answer *a, struct frag_text *t)
{
	const char *text = t->len ? frag_answer_print(a, "%s", frag_text_str(t)) : NULL;

	a->failed |= t->failed;
	frag_text_release(t);
	return text;
}

/* ---- titles of charts ------------------------------------------------------------------- */

void frag_title_release(struct frag_title *t)
{
	frag_text_release(&t->text);
	*t = (struct frag_title){ 0 };
}

/* Notes a number; where its text goes. */
static char *note(struct frag_title *t, const char *name, double value)
{
	FRAG_ASSERT(t->count < FRAG_TITLE_NUMBERS);
	t->numbers[t->count] = (struct frag_answer_number){ name, value };
	return t->shown[t->count++];
}

const char *frag_title_bytes(struct frag_title *t, const char *name, uint64_t bytes)
{
	return frag_format_bytes(bytes, note(t, name, (double)bytes), sizeof(t->shown[0]));
}

const char *frag_title_ns(struct frag_title *t, const char *name, uint64_t ns)
{
	return frag_format_ns(ns, note(t, name, (double)ns), sizeof(t->shown[0]));
}

const char *frag_title_count(struct frag_title *t, const char *name, uint64_t count)
{
	char *shown = note(t, name, (double)count);

	snprintf(shown, sizeof(t->shown[0]), "%" PRIu64, count);
	return shown;
}

const char *frag_title_percent(struct frag_title *t, const char *name, double ratio, int digits)
{
	char *shown = note(t, name, ratio);

	snprintf(shown, sizeof(t->shown[0]), "%.*f %%", digits, 100 * ratio);
	return shown;
}

void frag_answer_take_title(struct frag_answer *a, struct frag_title *title,
			    struct frag_answer_chart *chart)
{
	struct frag_answer_number *numbers = frag_answer_new(a, title->count, sizeof(*numbers));

	if (numbers)
		memcpy(numbers, title->numbers, title->count * sizeof(*numbers));
	chart->numbers = numbers;
	chart->numbers_count = numbers ? title->count : 0;
	chart->title = frag_answer_take(a, &title->text) ?: "";
	frag_title_release(title);
}

void frag_answer_data(struct frag_answer *a, const struct frag_shape *shape, const void *data)
{
	a->shape = shape;
	a->data = data;
}

void frag_answer_csv(struct frag_answer *a, const struct frag_shape *shape, const void *rows,
		     size_t count)
{
	a->csv = shape;
	a->csv_rows = (struct frag_rows){ rows, count };
}

/* ---- parts ------------------------------------------------------------------------------ */

static _Thread_local struct frag_part lost;

static struct frag_part *add(struct frag_answer *a, struct frag_part part)
{
	part.mark = SIZE_MAX;
	if (FRAG_GROW(a->parts, a->parts_count, a->parts_cap, "answer", NULL)) {
		a->failed = true;
		return &lost;
	}
	a->parts[a->parts_count] = part;
	return &a->parts[a->parts_count++];
}

/* as_is: it begins with inserted text, as names do; all inserted: a sentence, but as a heading. */
#define FRAG_SAYING(name, kind_) \
	void frag_answer_##name(struct frag_answer *a, const char *fmt, ...) \
	{ \
		va_list ap; \
\
		va_start(ap, fmt); \
		add(a, \
		    (struct frag_part){ \
			    .kind = kind_, \
			    .text = (kind_) == FRAG_PART_CONCLUSION && a->caveat \
					    ? frag_answer_print(a, "%s%s", \
								frag_answer_vprint(a, fmt, ap), \
								a->caveat) \
					    : frag_answer_vprint(a, fmt, ap), \
			    .as_is = !strncmp(fmt, "%s", 2) && \
				     (fmt[2] ? fmt[2] != '%' : (kind_) == FRAG_PART_HEADING) }); \
		va_end(ap); \
	}
FRAG_SAYING(remark, FRAG_PART_REMARK)
FRAG_SAYING(say, FRAG_PART_SAY)
FRAG_SAYING(conclude, FRAG_PART_CONCLUSION)
FRAG_SAYING(verdict, FRAG_PART_VERDICT)
FRAG_SAYING(warn, FRAG_PART_WARN)
FRAG_SAYING(item, FRAG_PART_ITEM)
FRAG_SAYING(heading, FRAG_PART_HEADING)

static void add_labelled(struct frag_answer *a, enum frag_part_kind kind, const char *label,
			 const char *text)
{
	label = frag_answer_print(a, "%s", label);
	text = frag_answer_print(a, "%s", text);
	add(a, (struct frag_part){ .kind = kind, .label = label, .text = text });
}

void frag_answer_paste(struct frag_answer *a, const char *label, const char *line)
{
	add_labelled(a, FRAG_PART_PASTE, label, line);
}

void frag_answer_tile(struct frag_answer *a, const char *label, const char *figure)
{
	add_labelled(a, FRAG_PART_TILE, label, figure);
}

void frag_answer_word(struct frag_answer *a, const char *word, const char *meaning)
{
	add_labelled(a, FRAG_PART_WORD, word, meaning);
}

void frag_answer_gap(struct frag_answer *a)
{
	add(a, (struct frag_part){ .kind = FRAG_PART_GAP });
}

struct frag_part *frag_answer_table(struct frag_answer *a, const struct frag_shape *shape,
				    const void *rows, size_t count)
{
	return add(a, (struct frag_part){
			      .kind = FRAG_PART_TABLE, .shape = shape, .rows = { rows, count } });
}

struct frag_part *frag_answer_facts(struct frag_answer *a, const struct frag_shape *shape,
				    const void *row)
{
	return add(a, (struct frag_part){
			      .kind = FRAG_PART_FACTS, .shape = shape, .rows = { row, 1 } });
}

void frag_answer_chart(struct frag_answer *a, const struct frag_answer_chart *chart)
{
	if (chart->rows.count) /* of nothing there is no picture */
		add(a, (struct frag_part){ .kind = FRAG_PART_CHART, .chart = *chart });
}

struct frag_part *frag_answer_last(struct frag_answer *a)
{
	return a->parts_count && !a->failed ? &a->parts[a->parts_count - 1] : &lost;
}
