/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of steps: the marks of optimizer steps, if there are enough. Otherwise a token (the stack of
 * a request, or its size without stacks) that repeats at even distances; of several the rarest,
 * because it belongs to the outermost loop, unless that is one over layers: without stacks, four
 * sizes in a row tell passes from layers, where they are half as often. Otherwise equal windows.
 */
#include "history.h"

#include <math.h>
#include <string.h>

#include "lib/addr_map.h"
#include "recording/recording.h"
#include "recording/sites.h"

#define TOKENS_MAX 32768u /* different ones that are followed */
#define MARKS_MIN 4u
#define COMES_BACK 10u	/* times, at least */
#define PASSES_MIN 4u	/* in a phase */
#define UNEVEN_MAX 0.35 /* standard deviation of the distances over their mean */
#define SPAN_MIN 0.7	/* part of the requests from the first to the last */
#define RISES 0.75	/* of the passes: layers, on the way forward */
#define WEIGHTS 4	/* blocks that a pass leaves for each that was there, at most */
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
	uint64_t from, to; /* events to look at */
	uint64_t allocs, step_marks, first_mark, last_alloc;
	bool stacks, sized;	    /* the keys */
	uint64_t sizes;		    /* of the last four requests */
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

/* sized: a line with its size; without stacks the hashes of four sizes, as one repeats in layers. */
static uint64_t key_of(struct survey *s, const struct frag_event *e)
{
	s->sizes = s->sizes << 16 | (e->bytes * 0x9e3779b97f4a7c15u) >> 48;
	if (!s->stacks)
		return s->sized ? s->sizes : e->bytes;
	return s->sized ? ((uint64_t)e->stack << 40) ^ e->bytes : e->stack;
}

static void note_token(struct survey *s, const struct frag_event *e)
{
	struct token *t = s->stacks && !e->stack ? NULL : token_of(s, key_of(s, e));

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

static void look(struct survey *s)
{
	for (uint64_t i = s->from; i < s->to; i++) {
		const struct frag_event *e = &s->dev->events[i];

		if (e->kind == FRAG_EV_ALLOC) {
			if (!(e->flags & FRAG_EVF_INITIAL))
				note_token(s, e);
			s->last_alloc = i;
			s->allocs++;
		}
		if (frag_event_ends_step(e) && !s->step_marks++)
			s->first_mark = i;
	}
}

/* The rarest token that comes back evenly over most of the requests; phase: up to the last one. */
static const struct token *even_token(const struct survey *s, bool phase)
{
	const struct token *best = NULL;

	for (size_t i = 0; i < s->tokens_count; i++) {
		const struct token *t = &s->tokens[i];

		if (t->count < (phase ? PASSES_MIN : COMES_BACK) || t->mean < 2)
			continue;
		if (sqrt(t->m2 / (double)(t->count - 1)) > UNEVEN_MAX * t->mean)
			continue;
		if (phase ? (double)(s->allocs - t->last) > 2 * t->mean
			  : (double)(t->last - t->first) < SPAN_MIN * (double)s->allocs)
			continue;
		if (!best || t->count < best->count ||
		    (t->count == best->count && t->first < best->first))
			best = t;
	}
	return best;
}

/* Code that runs once for each layer or parameter: a module, an optimizer, loading. */
static bool is_layers(const struct frag_trace *t, uint32_t frame)
{
	const struct frag_frame *f = &t->stacks.frames[frame];
	const char *file = frag_trace_string(t, f->file), *name = frag_trace_string(t, f->name);

	return !strcmp(name, "forward") || !strcmp(name, "__init__") ||
	       !strcmp(name, "from_pretrained") || strstr(file, "torch/optim/") ||
	       (strstr(file, "torch/nn/modules/") && !strstr(name, "_call_impl"));
}

/* Do all requests of a period come through the same line of such code? */
static bool repeats_in_layers(const struct survey *s, const struct frag_trace *t,
			      const struct frag_step_ends *ends)
{
	size_t at = ends->count / 2, common = SIZE_MAX, n, first_n = 0;
	const uint32_t *frames, *first = NULL;

	for (uint64_t i = ends->list[at - 1]; i < ends->list[at]; i++) {
		size_t same = 0;

		frames = s->dev->events[i].kind == FRAG_EV_ALLOC
				 ? frag_stack_frames(t, s->dev->events[i].stack, &n)
				 : NULL;
		if (!frames)
			continue;
		if (!first) {
			first = frames;
			first_n = n;
		}
		while (same < n && same < first_n &&
		       frames[n - 1 - same] == first[first_n - 1 - same])
			same++;
		common = FRAG_MIN(common, same);
	}
	for (size_t k = 0; first && k < common; k++)
		if (is_layers(t, first[first_n - 1 - k]))
			return true;
	return false;
}

/* Do most repeats leave blocks? first: live before them; left: by each, on average. */
static bool leaves_blocks(const struct survey *s, const struct frag_step_ends *ends,
			  uint64_t *first, double *left)
{
	uint64_t blocks = 0, before = 0, rises = 0;
	size_t n = 0;

	for (uint64_t i = 0; n < ends->count; i++) {
		const uint8_t kind = s->dev->events[i].kind;

		if (i == ends->list[n]) {
			if (!n++)
				*first = blocks;
			rises += n > 1 && blocks > before;
			before = blocks;
		}
		blocks += kind == FRAG_EV_ALLOC;
		blocks -= blocks && (kind == FRAG_EV_FREE || kind == FRAG_EV_FREE_REQUESTED);
	}
	*left = ((double)before - (double)*first) / (double)(n - 1);
	return (double)rises > RISES * (double)(n - 1);
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
	uint64_t allocs = s->sizes = 0;

	for (uint64_t i = s->from; i < s->to; i++) {
		const struct frag_event *e = &s->dev->events[i];
		bool alloc = e->kind == FRAG_EV_ALLOC;

		if (ends->from == FRAG_STEPS_MARKS) {
			if (frag_event_ends_step(e))
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

static int survey(struct survey *s, const struct frag_events *ev, struct frag_step_ends *out,
		  struct frag_err *err)
{
	s->dev = frag_events_dev(ev);
	s->stacks = ev->trace->stacks.count > 1;
	s->to = FRAG_MIN(s->to, (uint64_t)s->dev->events_count);
	*out = (struct frag_step_ends){ .stride = 1 };
	FRAG_TRY_CALLOC(s->tokens, TOKENS_MAX, "steps", err);
	look(s);
	FRAG_TRY_CALLOC(out->list, FRAG_STEPS_MAX + 1, "steps", err);
	out->allocs = s->allocs;
	out->last_alloc = s->last_alloc;
	return 0;
}

static void find(struct survey *s, struct frag_step_ends *out, enum frag_steps_from from,
		 uint64_t many)
{
	out->from = from;
	out->count = s->seen = 0;
	out->stride = (uint32_t)((many + FRAG_STEPS_MAX - 1) / FRAG_STEPS_MAX);
	find_ends(s, out);
}

/* False: none, that of loading, which leaves blocks where there were none or few (the passes of a
 * model come after its weights), or that of layers: without stacks, these look like passes that
 * keep memory, but a layer has a parameter, so they are none where fewer blocks came before. */
static bool find_period(struct survey *s, const struct frag_events *ev, bool phase,
			struct frag_step_ends *out)
{
	const struct token *even = even_token(s, phase);
	struct token plain = even ? *even : (struct token){ 0 };
	uint64_t first = 0;
	double left;
	bool climbs;

	if (!even == s->stacks) { /* a line may request all that a pass needs */
		frag_addr_map_release(&s->numbers);
		memset(s->tokens, 0, s->tokens_count * sizeof(*s->tokens));
		s->allocs = s->tokens_count = s->step_marks = s->sizes = 0;
		s->sized = true;
		look(s);
		even = even_token(s, phase);
		s->sized = s->stacks || (even && 2 * even->count <= plain.count);
		even = s->sized ? even : &plain;
	}
	if (!even)
		return false;
	s->key = even->key;
	find(s, out, FRAG_STEPS_PERIOD, even->count);
	if (out->count < 2)
		return true;
	climbs = leaves_blocks(s, out, &first, &left);
	if (climbs && !s->from && (!even->first || WEIGHTS * (double)first <= left) &&
	    !frag_own_allocators(ev->trace->format, NULL))
		return false;
	return s->stacks ? !repeats_in_layers(s, ev->trace, out)
			 : phase || !climbs || first < out->count * out->stride;
}

int frag_step_ends_find(const struct frag_events *ev, struct frag_step_ends *out,
			struct frag_err *err)
{
	FRAG_AUTO(close_survey) struct survey s = { .to = UINT64_MAX };

	FRAG_TRY(survey(&s, ev, out, err));
	out->first_mark = s.step_marks ? s.first_mark : UINT64_MAX;
	if (s.step_marks >= MARKS_MIN) {
		find(&s, out, FRAG_STEPS_MARKS, s.step_marks);
	} else if (!find_period(&s, ev, false, out)) {
		out->from = FRAG_STEPS_NONE;
		out->count = 0;
		s.window = s.allocs / WINDOWS;
		if (s.allocs >= WINDOWS * WINDOW_ALLOCS)
			find(&s, out, FRAG_STEPS_WINDOWS, WINDOWS);
	}
	return 0;
}

int frag_passes_find(const struct frag_events *ev, uint64_t from, uint64_t to,
		     struct frag_step_ends *out, uint64_t *outside, struct frag_err *err)
{
	FRAG_AUTO(close_survey) struct survey s = { .from = from, .to = to };

	*outside = 0;
	FRAG_TRY(survey(&s, ev, out, err));
	if (!find_period(&s, ev, true, out) && out->from == FRAG_STEPS_PERIOD)
		out->from = FRAG_STEPS_WINDOWS;
	for (size_t i = 0; out->from && i < s.dev->events_count; i++)
		*outside += (i < from || i >= to) && s.dev->events[i].kind == FRAG_EV_ALLOC &&
			    key_of(&s, &s.dev->events[i]) == s.key;
	return 0;
}
