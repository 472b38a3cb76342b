/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of steps: the marks of optimizer steps, if there are enough. Otherwise a token (the stack of
 * a request, or its size without stacks) that repeats at even distances; of several the rarest,
 * because it belongs to the outermost loop. Otherwise equal windows.
 */
#include "history.h"

#include <math.h>

#include "lib/addr_map.h"

#define TOKENS_MAX 32768u /* different ones that are followed */
#define MARKS_MIN 4u
#define COMES_BACK 10u	/* times, at least */
#define UNEVEN_MAX 0.35 /* standard deviation of the distances over their mean */
#define SPAN_MIN 0.7	/* part of the requests from the first to the last */
#define WINDOWS 32u
#define WINDOW_ALLOCS 8u /* in a window, at least */

struct token {
	uint64_t key, count, first, last;
	double mean, m2; /* distances in requests (Welford) */
};

struct survey {
	struct token *tokens;
	struct frag_addr_map numbers; /* of tokens, by key */
	size_t tokens_count;
	const struct frag_trace_dev *dev;
	uint64_t allocs, step_marks, last_alloc;
	bool stacks;
	uint64_t key, window, seen; /* of the second pass, which writes down ends */
};

static void close_survey(struct survey *s)
{
	frag_addr_map_release(&s->numbers);
	frag_host_free(s->tokens);
}

static struct token *token_of(struct survey *s, uint64_t key)
{
	const struct frag_addr_cell *cell = frag_addr_map_find(&s->numbers, key);

	if (cell)
		return &s->tokens[frag_addr_number(cell)];
	if (s->tokens_count == TOKENS_MAX ||
	    frag_addr_map_number(&s->numbers, key, s->tokens_count))
		return NULL;
	s->tokens[s->tokens_count].key = key;
	return &s->tokens[s->tokens_count++];
}

static uint64_t key_of(const struct survey *s, const struct frag_event *e)
{
	return s->stacks ? e->stack : e->bytes;
}

static void note_token(struct survey *s, const struct frag_event *e)
{
	struct token *t = token_of(s, key_of(s, e));

	if (!t)
		return;
	if (t->count) {
		double gap = (double)(s->allocs - t->last), d = gap - t->mean;

		t->mean += d / (double)t->count;
		t->m2 += d * (gap - t->mean);
	} else {
		t->first = s->allocs;
	}
	t->count++;
	t->last = s->allocs;
}

static bool ends_step(const struct frag_event *e)
{
	return e->kind == FRAG_EV_MARK && e->flags & FRAG_EVF_END && e->flags & FRAG_EVF_STEP;
}

static void look(struct survey *s)
{
	for (size_t i = 0; i < s->dev->events_count; i++) {
		const struct frag_event *e = &s->dev->events[i];

		if (e->kind == FRAG_EV_ALLOC) {
			if (!(e->flags & FRAG_EVF_INITIAL))
				note_token(s, e);
			s->last_alloc = i;
			s->allocs++;
		}
		s->step_marks += ends_step(e);
	}
}

/* The rarest token that comes back evenly over most of the requests. */
static const struct token *even_token(const struct survey *s)
{
	const struct token *best = NULL;

	for (size_t i = 0; i < s->tokens_count; i++) {
		const struct token *t = &s->tokens[i];

		if (t->count < COMES_BACK || t->mean < 2 || (s->stacks && !t->key))
			continue;
		if (sqrt(t->m2 / (double)(t->count - 1)) > UNEVEN_MAX * t->mean)
			continue;
		if ((double)(t->last - t->first) < SPAN_MIN * (double)s->allocs)
			continue;
		if (!best || t->count < best->count ||
		    (t->count == best->count && t->first < best->first))
			best = t;
	}
	return best;
}

static void note_end(struct survey *s, struct frag_step_ends *ends, uint64_t event)
{
	if (s->seen++ % ends->stride != ends->stride - 1 || ends->count >= FRAG_STEPS_MAX)
		return;
	/* a step holds an event: none ends before the first one */
	if (event > (ends->count ? ends->list[ends->count - 1] : 0))
		ends->list[ends->count++] = event;
}

static void find_ends(struct survey *s, struct frag_step_ends *ends)
{
	uint64_t allocs = 0;

	for (size_t i = 0; i < s->dev->events_count; i++) {
		const struct frag_event *e = &s->dev->events[i];
		bool alloc = e->kind == FRAG_EV_ALLOC;

		if (ends->from == FRAG_STEPS_MARKS) {
			if (ends_step(e))
				note_end(s, ends, i + 1);
		} else if (alloc && !(e->flags & FRAG_EVF_INITIAL)) {
			if (ends->from == FRAG_STEPS_PERIOD ? key_of(s, e) == s->key
							    : allocs && allocs % s->window == 0)
				note_end(s, ends, i);
		}
		allocs += alloc;
	}
	/* the rest up to the last request, where steps are not marked */
	if (ends->from == FRAG_STEPS_WINDOWS && ends->count < FRAG_STEPS_MAX &&
	    (!ends->count || ends->list[ends->count - 1] <= ends->last_alloc))
		ends->list[ends->count++] = ends->last_alloc + 1;
}

int frag_step_ends_find(const struct frag_events *ev, struct frag_step_ends *out,
			struct frag_err *err)
{
	FRAG_AUTO(close_survey)
	struct survey s = { .dev = frag_events_dev(ev), .stacks = ev->trace->stacks.count > 1 };
	const struct token *even;
	uint64_t many;

	*out = (struct frag_step_ends){ .stride = 1 };
	FRAG_TRY_CALLOC(s.tokens, TOKENS_MAX, "steps", err);
	look(&s);
	out->allocs = s.allocs;
	out->last_alloc = s.last_alloc;
	even = even_token(&s);
	if (s.step_marks >= MARKS_MIN) {
		out->from = FRAG_STEPS_MARKS;
		many = s.step_marks;
	} else if (even) {
		out->from = FRAG_STEPS_PERIOD;
		s.key = even->key;
		many = even->count;
	} else if (s.allocs >= WINDOWS * WINDOW_ALLOCS) {
		out->from = FRAG_STEPS_WINDOWS;
		s.window = s.allocs / WINDOWS;
		many = WINDOWS;
	} else {
		return 0;
	}
	out->stride = (uint32_t)((many + FRAG_STEPS_MAX - 1) / FRAG_STEPS_MAX);
	FRAG_TRY_CALLOC(out->list, FRAG_STEPS_MAX + 1, "steps", err);
	find_ends(&s, out);
	return 0;
}
