/* SPDX-License-Identifier: Apache-2.0 */
/* Processes on the screen; see table.h. */
#include "monitor_table.h"

#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

enum column_kind { GPU, PID, USER, BYTES, COMMAND };

static const struct column {
	const char *head;
	int width;
	int from; /* shown from this width of the terminal on, columns */
	enum column_kind kind;
	enum frag_monitor_value value;
} columns[] = {
	{ "gpu", 5, 0, GPU, 0 },
	{ "pid", 8, 0, PID, 0 },
	{ "user", 10, 76, USER, 0 },
	{ "driver", 11, 0, BYTES, FRAG_MONITOR_DRIVER },
	{ "allocated", 11, 0, BYTES, FRAG_MONITOR_ALLOCATED },
	{ "reserved", 11, 0, BYTES, FRAG_MONITOR_RESERVED },
	{ "non-releasable", 15, 100, BYTES, FRAG_MONITOR_NONRELEASABLE },
	{ "largest hole", 13, 120, BYTES, FRAG_MONITOR_HOLE },
	{ "command", 0, 0, COMMAND, 0 },
};
#define COLUMNS_COUNT FRAG_ARRAY_LEN(columns)

struct row {
	const struct frag_monitor_card *card;
	const struct frag_monitor_process *p;
	unsigned place; /* as the cards list them */
};

static const char *command_of(const struct frag_monitor_process *p)
{
	return *p->command ? p->command : p->name;
}

/* Largest first for bytes, alphabetical for words; what is not known is last. */
static int order(const struct row *a, const struct row *b, const struct column *c)
{
	uint64_t x = frag_monitor_value(a->p, c->value), y = frag_monitor_value(b->p, c->value);

	switch (c->kind) {
	case GPU:
		return 0;
	case PID:
		return FRAG_ORDER(a->p->pid, b->p->pid);
	case USER:
		return strcmp(a->p->user, b->p->user);
	case COMMAND:
		return strcmp(command_of(a->p), command_of(b->p));
	default:
		return FRAG_ORDER(y + 1, x + 1); /* unknown is UINT64_MAX: 0 */
	}
}

static int by_column(const void *x, const void *y, void *ctx)
{
	const struct frag_monitor_table *t = ctx;
	const struct row *a = x, *b = y;
	int n = order(a, b, &columns[t->column]);

	n = n ? n : FRAG_ORDER(a->place, b->place);
	return t->reverse ? -n : n;
}

unsigned frag_monitor_table_count(const struct frag_monitor_round *r)
{
	unsigned count = 0;

	for (unsigned i = 0; i < r->count; i++)
		count += r->cards[i].nvml.processes_count;
	return count;
}

/* Sorted, in new memory; NULL: none, or memory is short. */
static struct row *rows_of(const struct frag_monitor_table *t, const struct frag_monitor_round *r,
			   int *count)
{
	struct row *rows = frag_host_calloc(frag_monitor_table_count(r) + 1, sizeof(*rows));
	unsigned n = 0;

	for (unsigned i = 0; rows && i < r->count; i++)
		for (unsigned k = 0; k < r->cards[i].nvml.processes_count; k++, n++)
			rows[n] = (struct row){ &r->cards[i], &r->cards[i].processes[k], n };
	if (n)
		qsort_r(rows, n, sizeof(*rows), by_column, (void *)t);
	*count = (int)n;
	return rows;
}

static int place_of_chosen(const struct frag_monitor_table *t, const struct frag_monitor_round *r,
			   const struct row *rows, int count)
{
	for (int i = 0; i < count; i++)
		if (t->chosen && rows[i].p->pid == t->pid && rows[i].card == &r->cards[t->card])
			return i;
	return -1;
}

static void draw_head(const struct frag_monitor_table *t, struct frag_paint *paint)
{
	int at = 0;

	for (size_t i = 0; i < COLUMNS_COUNT; i++) {
		const struct column *c = &columns[i];
		bool right = c->kind == BYTES || c->kind == PID;
		char head[24];

		if (paint->columns < c->from)
			continue;
		snprintf(head, sizeof(head), "%s%s", c->head,
			 t->column != i ? ""
			 : t->reverse	? "^"
					: "v");
		frag_paint_put(paint, at, paint->columns,
			       t->column == i ? FRAG_PAINT_STRONG : FRAG_PAINT_DIM, "%*s",
			       right ? c->width : -c->width, head);
		at += c->width + 1;
	}
	paint->row++;
}

static void draw_row(const struct frag_monitor_table *t, struct frag_paint *paint,
		     const struct row *row, enum frag_paint_style style)
{
	const char *command = command_of(row->p);
	int at = 0;

	/* the command line from a column on: whole signs */
	command += FRAG_MIN((size_t)t->shift, strlen(command));
	while ((*command & 0xc0) == 0x80)
		command++;
	if (style == FRAG_PAINT_CHOSEN)
		frag_paint_run(paint, 0, style, " ", paint->columns);
	for (size_t i = 0; i < COLUMNS_COUNT; i++) {
		const struct column *c = &columns[i];
		uint64_t bytes = frag_monitor_value(row->p, c->value);

		if (paint->columns < c->from)
			continue;
		if (c->kind == GPU)
			frag_paint_put(paint, at, c->width, style, "%s", row->card->id);
		else if (c->kind == PID)
			frag_paint_put(paint, at, c->width, style, "%*u", c->width, row->p->pid);
		else if (c->kind == USER)
			frag_paint_put(paint, at, c->width, style, "%s", row->p->user);
		else if (c->kind == BYTES)
			frag_paint_put(paint, at, c->width, style, "%*s", c->width,
				       bytes == UINT64_MAX ? "-" : FRAG_BYTES(bytes));
		else
			frag_paint_put(paint, at, paint->columns, style, "%s", command);
		at += c->width + 1;
	}
	paint->row++;
}

void frag_monitor_table_draw(struct frag_monitor_table *t, struct frag_paint *paint,
			     const struct frag_monitor_round *r, int room)
{
	FRAG_AUTO_FREE struct row *rows = NULL;
	int count, chosen;

	if (room < 2)
		return;
	rows = rows_of(t, r, &count);
	if (!rows || !count)
		return;
	draw_head(t, paint);
	t->room = room - 1;
	chosen = place_of_chosen(t, r, rows, count);
	if (chosen < 0)
		t->chosen = false;
	else if (chosen < t->top)
		t->top = chosen;
	else if (chosen >= t->top + t->room)
		t->top = chosen - t->room + 1;
	t->top = FRAG_MAX(FRAG_MIN(t->top, count - t->room), 0);
	for (int i = t->top; i < FRAG_MIN(count, t->top + t->room); i++)
		draw_row(t, paint, &rows[i], i == chosen ? FRAG_PAINT_CHOSEN : FRAG_PAINT_PLAIN);
}

/* ---- keys ---- */

/* So many rows from the chosen one; the first choice is the first or the last that is seen. */
static void move_choice(struct frag_monitor_table *t, const struct frag_monitor_round *r, int by)
{
	int count, at;
	FRAG_AUTO_FREE struct row *rows = rows_of(t, r, &count);

	if (!rows || !count)
		return;
	at = place_of_chosen(t, r, rows, count);
	if (at < 0)
		at = by < 0 ? FRAG_MIN(t->top + t->room, count) : t->top - 1;
	at += by;
	at = FRAG_MAX(FRAG_MIN(at, count - 1), 0);
	t->chosen = true;
	t->pid = rows[at].p->pid;
	t->card = (unsigned)(rows[at].card - r->cards);
}

bool frag_monitor_table_key(struct frag_monitor_table *t, const struct frag_monitor_round *r,
			    uint32_t key)
{
	const int far = 1 << 20;
	int page = FRAG_MAX(t->room - 1, 1), step;

	switch (key) {
	case FRAG_KEY_ESCAPE:
		t->chosen = false;
		return true;
	case ',':
	case '.':
	case 's':
		step = key == ',' ? (int)COLUMNS_COUNT - 1 : 1;
		t->column = (t->column + (unsigned)step) % COLUMNS_COUNT;
		return true;
	case '/':
		t->reverse = !t->reverse;
		return true;
	case FRAG_KEY_LEFT:
	case FRAG_KEY_RIGHT:
		t->shift = FRAG_MAX(FRAG_MIN(t->shift + (key == FRAG_KEY_LEFT ? -8 : 8), 392), 0);
		return true;
	case FRAG_KEY_UP:
	case FRAG_KEY_DOWN:
	case '\t':
		step = key == FRAG_KEY_UP ? -1 : 1;
		break;
	case FRAG_KEY_HOME:
	case FRAG_KEY_END:
		step = key == FRAG_KEY_HOME ? -far : far;
		break;
	case FRAG_KEY_PAGE_UP:
	case FRAG_KEY_PAGE_DOWN:
		step = key == FRAG_KEY_PAGE_UP ? -page : page;
		break;
	default:
		return false;
	}
	move_choice(t, r, step);
	return true;
}

const struct frag_monitor_process *frag_monitor_table_chosen(const struct frag_monitor_table *t,
							     const struct frag_monitor_round *r)
{
	const struct frag_monitor_card *c = &r->cards[t->card];

	for (unsigned k = 0; t->chosen && k < c->nvml.processes_count; k++)
		if (c->processes[k].pid == t->pid)
			return &c->processes[k];
	return NULL;
}
