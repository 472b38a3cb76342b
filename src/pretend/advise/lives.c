/* SPDX-License-Identifier: Apache-2.0 */
/* Lives and phases; see edit.h. */
#include "edit.h"

#include <string.h>

#include "lib/bisect.h"
#include "lib/grow.h"

#define SMALLER 8u
#define LOOK 256u
#define NOISE_ALLOCS 3u /* fewer requests without a stack are not a backward pass */

/* ---- phases of stacks ------------------------------------------------------------------ */

static bool frame_has(const struct frag_trace *t, const struct frag_frame *f, const char *file,
		      const char *name)
{
	return (!file || strstr(frag_trace_string(t, f->file), file)) &&
	       (!name || strstr(frag_trace_string(t, f->name), name));
}

bool frag_stack_has(const struct frag_trace *t, uint32_t stack, const char *file, const char *name)
{
	size_t n;
	const uint32_t *f = frag_stack_frames(t, stack, &n);

	for (size_t i = 0; i < n; i++)
		if (frame_has(t, &t->stacks.frames[f[i]], file, name))
			return true;
	return false;
}

/* The engine's thread begins in autograd or C++; a backward pass on the main thread is below it. */
static uint8_t phase_of(const struct frag_trace *t, uint32_t stack)
{
	size_t n;
	const uint32_t *f = frag_stack_frames(t, stack, &n);
	const struct frag_frame *outer = n ? &t->stacks.frames[f[n - 1]] : NULL;

	if (!outer || frame_has(t, outer, "torch/autograd/", NULL) ||
	    frame_has(t, outer, "torch/utils/checkpoint.py", NULL))
		return FRAG_PHASE_BACKWARD;
	if (frag_stack_has(t, stack, "torch/optim/", NULL))
		return FRAG_PHASE_OPTIMIZER;
	return frag_stack_has(t, stack, NULL, "_engine_run_backward") ||
			       frag_stack_has(t, stack, NULL, "autograd::Engine")
		       ? FRAG_PHASE_BACKWARD
		       : FRAG_PHASE_FORWARD;
}

/* ---- spans ------------------------------------------------------------------------------- */

static int add_span(struct frag_story *s, uint64_t first, uint8_t phase, struct frag_err *err)
{
	struct frag_span *last = s->spans_count ? &s->spans[s->spans_count - 1] : NULL;

	if (last && last->phase == phase)
		return 0;
	if (last && last->first == first && !last->allocs) { /* nothing was in it */
		last->phase = phase;
		return 0;
	}
	FRAG_TRY(FRAG_GROW(s->spans, s->spans_count, s->spans_cap, "lives", err));
	s->spans[s->spans_count++] = (struct frag_span){ .first = first, .phase = phase };
	return 0;
}

/* Drops backward spans that are too short, and merges neighbours of one phase. */
static void join_spans(struct frag_story *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->spans_count; i++) {
		struct frag_span *sp = &s->spans[i];
		bool noise =
			sp->phase == FRAG_PHASE_BACKWARD && sp->allocs < NOISE_ALLOCS && n &&
			s->spans[n - 1].phase == FRAG_PHASE_FORWARD &&
			(i + 1 == s->spans_count || s->spans[i + 1].phase == FRAG_PHASE_FORWARD);

		if (n && (noise || sp->phase == s->spans[n - 1].phase)) {
			s->spans[n - 1].allocs += sp->allocs;
			continue;
		}
		s->spans[n++] = *sp;
	}
	s->spans_count = n;
	for (size_t i = 0; i < n; i++) {
		bool begins = s->spans[i].phase == FRAG_PHASE_FORWARD;

		s->spans[i].end = i + 1 < n ? s->spans[i + 1].first : s->dev->events_count;
		s->spans[i].round = i ? s->spans[i - 1].round + begins : 0;
		s->steps += s->spans[i].phase == FRAG_PHASE_OPTIMIZER;
	}
}

/* Without stacks: between two optimizer steps, forward up to the peak and backward after it. */
static int split_at_peaks(struct frag_story *s, const uint64_t *live, struct frag_err *err)
{
	size_t n = s->spans_count;
	FRAG_AUTO_FREE struct frag_span *was = s->spans;

	s->spans = NULL;
	s->spans_count = s->spans_cap = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t top = was[i].first;

		FRAG_TRY(add_span(s, was[i].first, was[i].phase, err));
		if (was[i].phase != FRAG_PHASE_FORWARD || i + 1 == n)
			continue;
		for (uint64_t e = was[i].first; e < was[i].end; e++)
			top = live[e] > live[top] ? e : top;
		if (top > was[i].first)
			FRAG_TRY(add_span(s, top, FRAG_PHASE_BACKWARD, err));
	}
	for (size_t i = 0; i < s->spans_count; i++)
		s->spans[i].allocs = NOISE_ALLOCS;
	s->steps = 0;
	join_spans(s);
	return 0;
}

/* Passes over all events: spans, live bytes after each event. */
static int find_spans(struct frag_story *s, uint64_t *live, struct frag_err *err)
{
	uint64_t now = 0;
	unsigned depth = 0; /* nesting of optimizer steps */

	FRAG_TRY(add_span(s, 0, FRAG_PHASE_FORWARD, err));
	for (size_t i = 0; i < s->dev->events_count; i++) {
		const struct frag_event *e = &s->dev->events[i];

		if (e->kind == FRAG_EV_MARK && e->flags & FRAG_EVF_STEP)
			depth = e->flags & FRAG_EVF_END ? depth - (depth > 0) : depth + 1;
		if (e->kind == FRAG_EV_MARK && e->flags & FRAG_EVF_STEP)
			FRAG_TRY(add_span(s, i, depth ? FRAG_PHASE_OPTIMIZER : FRAG_PHASE_FORWARD,
					  err));
		if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_REQUESTED)
			now -= FRAG_MIN(now, (uint64_t)e->bytes);
		if (e->kind == FRAG_EV_ALLOC) {
			now += e->bytes;
			s->count++;
			if (!depth && s->stacks && !(e->flags & FRAG_EVF_INITIAL))
				FRAG_TRY(add_span(
					s, i,
					s->phases[e->stack < s->sites.stacks_count ? e->stack : 0],
					err));
			s->spans[s->spans_count - 1].allocs++;
		}
		live[i] = now;
		if (now > s->peak_bytes) {
			s->peak_bytes = now;
			s->peak_event = i;
		}
	}
	join_spans(s);
	return s->stacks ? 0 : split_at_peaks(s, live, err);
}

/* ---- lives ---------------------------------------------------------------------------------- */

/* A block of this forward phase's round is freed in its backward phase: it was saved. */
static bool was_saved(const struct frag_story *s, const struct frag_life *l,
		      const struct frag_span *now)
{
	const struct frag_span *born = frag_life_span(s, l);

	return now->phase == FRAG_PHASE_BACKWARD && born->phase == FRAG_PHASE_FORWARD &&
	       born->round == now->round;
}

static int find_lives(struct frag_story *s, struct frag_err *err)
{
	const size_t slots = s->dev->slots_count;
	FRAG_AUTO_FREE uint32_t *of_slot = frag_host_alloc((slots + 1) * sizeof(*of_slot));
	uint64_t node = 0;  /* where the work of the backward pass began */
	bool freed = false; /* and it freed a saved block since */
	uint32_t span = 0, next = 0;

	FRAG_CHECK_ALLOC(of_slot, "lives", err);
	memset(of_slot, 0xff, (slots + 1) * sizeof(*of_slot));
	FRAG_TRY_CALLOC(s->lives, s->count + 1, "lives", err);
	for (size_t i = 0; i < s->dev->events_count; i++) {
		const struct frag_event *e = &s->dev->events[i];
		bool of_block = e->kind <= FRAG_EV_FREE_COMPLETED;
		struct frag_life *l;

		if (i == s->spans[span].end) {
			span++;
			node = i;
			freed = false;
		}
		if (of_block && e->slot >= slots)
			return frag_fail(err, FRAG_EINPUT, "event %zu names a slot out of range",
					 i);
		if (e->kind == FRAG_EV_ALLOC) {
			s->lives[next] = (struct frag_life){ i,		 FRAG_NEVER, e->bytes,
							     FRAG_NEVER, e->stack,   span };
			of_slot[e->slot] = next++;
			node = freed ? i : node;
			freed = false;
		}
		s->of[i] = of_block ? of_slot[e->slot] : FRAG_NO_LIFE;
		l = s->of[i] == FRAG_NO_LIFE ? NULL : &s->lives[s->of[i]];
		if (!l || l->died != FRAG_NEVER ||
		    (e->kind != FRAG_EV_FREE && e->kind != FRAG_EV_FREE_REQUESTED))
			continue;
		l->died = i;
		if (was_saved(s, l, &s->spans[span])) {
			l->back = node;
			freed = true;
		}
	}
	return 0;
}

/* For a recording that ended out of memory in a forward pass: live blocks of stacks that saved
 * before count as saved. Without any backward pass, live blocks that modules requested. */
static int find_unfinished(struct frag_story *s, struct frag_err *err)
{
	FRAG_AUTO_FREE uint8_t *saves = NULL;
	uint32_t last = (uint32_t)s->spans_count - 1;

	if (!s->dev->ending.out_of_memory || s->spans[last].phase != FRAG_PHASE_FORWARD)
		return 0;
	FRAG_TRY_CALLOC(saves, s->sites.stacks_count, "lives", err);
	s->may_train = last == 0;
	for (uint32_t i = 1; s->may_train && i < s->sites.stacks_count; i++)
		saves[i] = frag_stack_has(s->trace, i, NULL, "_call_impl");
	for (size_t i = 0; i < s->count; i++) {
		struct frag_life *l = &s->lives[i];

		if (!l->stack || l->stack >= s->sites.stacks_count)
			continue;
		saves[l->stack] |= l->back != FRAG_NEVER;
		if (l->span == last && l->died == FRAG_NEVER && saves[l->stack])
			l->back = s->dev->events_count;
	}
	return 0;
}

int frag_story_make(struct frag_story *s, const struct frag_unit *unit, struct frag_err *err)
{
	FRAG_AUTO_FREE uint64_t *live = NULL;

	*s = (struct frag_story){ .unit = unit, .trace = unit->trace, .dev = unit->dev };
	FRAG_TRY(frag_sites_init(&s->sites, s->trace, FRAG_BY_LINE, NULL, err));
	s->stacks = frag_sites_known(&s->sites);
	FRAG_TRY_CALLOC(s->phases, s->sites.stacks_count, "lives", err);
	for (uint32_t i = 0; s->stacks && i < s->sites.stacks_count; i++)
		s->phases[i] = phase_of(s->trace, i);
	FRAG_TRY_CALLOC(live, s->dev->events_count + 1, "lives", err);
	FRAG_TRY_CALLOC(s->of, s->dev->events_count + 1, "lives", err);
	FRAG_TRY(find_spans(s, live, err));
	return find_lives(s, err) ?: find_unfinished(s, err);
}

void frag_story_release(struct frag_story *s)
{
	frag_sites_release(&s->sites);
	FRAG_FREE(s->lives, s->of, s->spans, s->phases);
	*s = (struct frag_story){ 0 };
}

size_t frag_story_born(const struct frag_story *s, uint64_t event)
{
	size_t at;

	FRAG_BISECT(at, 0, s->count, s->lives[at].born < event);
	return at;
}

uint64_t frag_life_consumed(const struct frag_story *s, size_t life, uint64_t end)
{
	uint64_t least = s->lives[life].bytes / SMALLER;
	unsigned n = 0;

	for (size_t i = life + 1; i < s->count && i <= life + LOOK; i++) {
		const struct frag_life *l = &s->lives[i];

		if (l->born >= end)
			break;
		if (l->back != FRAG_NEVER && l->bytes >= least && ++n == 2)
			return l->born;
	}
	return end;
}
