/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit: the smallest card on which a trace completes under a policy.
 *
 * Works in pages of 2 MiB that the process can have: card = context + pages. Bisects between the
 * load (nothing completes below it) and the peak on a large enough card (nothing is returned or
 * retried above it). A caching policy may fail above a capacity at which it completes, because it
 * releases memory at other moments and leaves other holes. So fit also probes the neighbourhood: at
 * distances that grow by half on both sides, and evenly over the whole range. A completion below
 * moves the answer down (and is bisected again); failures above are reported as gaps.
 */
#include <frag/plan.h>

#include "base/parallel.h"
#include "plan/probe.h"

#define AMPLE_PAGES (1ull << 19) /* 1 TiB: more than any card */
#define LEAST_AMPLE_PAGES (AMPLE_PAGES / 8)
#define EVEN_PROBES 16u
#define PROBES_MAX 512u
#define DESCENTS_MAX 4u /* completions below completions; each descent bisects once more */
#define TICKS_PER_TASK 64u
/* After this many driver calls of a task's probes, the search of the neighbourhood ends. The
 * bundled recordings need at most 250,000; files in which every request is a call take ten times as
 * long. */
#define CALLS_MAX (1ull << 20)

struct tried {
	uint64_t pages;
	bool completed;
};

struct search {
	const struct frag_plan_env *env;
	struct frag_fit_task *task;
	uint64_t context;
	struct tried tried[PROBES_MAX]; /* ascending */
	size_t count;
	uint64_t upper; /* pages: it completes there */
	struct frag_ticks *ticks;
	uint64_t calls; /* driver calls so far */
};

/* The card with this many pages for the process. */
static uint64_t capacity_of(const struct search *s, uint64_t pages)
{
	return s->context + pages * FRAG_PAGE;
}

static int probe_card(struct search *s, uint64_t total, uint64_t context, struct frag_probe *out)
{
	struct frag_sim_config card = s->env->card;

	card.total_bytes = total;
	card.context_bytes = context;
	s->task->fit.probes_count++;
	atomic_fetch_add(&s->ticks->done, 1);
	FRAG_TRY(frag_probe_run(s->env, s->task->spec, &card, s->task->dev, out, &s->task->err));
	s->calls += out->driver_calls;
	return 0;
}

/* Is the budget of driver calls enough to probe the neighbourhood? */
static bool may_look(struct search *s)
{
	s->task->fit.narrow |= s->calls >= CALLS_MAX;
	return !s->task->fit.narrow;
}

/* Stores every answer, so that no capacity is replayed twice. */
static int try_pages(struct search *s, uint64_t pages, bool *completed)
{
	struct frag_probe p;
	size_t at = 0, i;

	while (at < s->count && s->tried[at].pages < pages)
		at++;
	if (at < s->count && s->tried[at].pages == pages) {
		*completed = s->tried[at].completed;
		return 0;
	}
	FRAG_TRY(probe_card(s, capacity_of(s, pages), s->context, &p));
	*completed = p.completed;
	FRAG_ASSERT(s->count < PROBES_MAX);
	for (i = s->count++; i > at; i--)
		s->tried[i] = s->tried[i - 1];
	s->tried[at] = (struct tried){ pages, p.completed };
	return 0;
}

/* pre: it fails at `fails` (or nothing can complete there) and completes at *border.
 * Then *border completes and fails one page below. */
static int bisect(struct search *s, uint64_t fails, uint64_t *border)
{
	while (*border - fails > 1) {
		uint64_t middle = fails + (*border - fails) / 2;
		bool completed;

		FRAG_TRY(try_pages(s, middle, &completed));
		if (completed)
			*border = middle;
		else
			fails = middle;
	}
	return 0;
}

/* A capacity at which it completes: the peak of the ample run, or more if the policy depends on the
 * size of the card: s->upper. Not possible: it completes nowhere. */
static int find_upper(struct search *s)
{
	struct frag_probe p;
	uint64_t ample, upper;
	bool completed = false;

	/* if it fails there, on halves of it, since a policy that reserves addresses by the size of
	 * the card runs out of them on large cards: expandable segments with hundreds of streams */
	for (ample = AMPLE_PAGES; ample >= LEAST_AMPLE_PAGES; ample /= 2) {
		FRAG_TRY(probe_card(s, capacity_of(s, ample), s->context, &p));
		if (p.completed)
			break;
	}
	s->task->fit.possible = p.completed;
	if (!p.completed)
		return 0;
	s->task->fit.peak_reserved_bytes = p.peak_reserved_bytes;
	s->task->fit.driver_ns = p.driver_ns;
	upper = FRAG_MAX((p.peak_reserved_bytes + FRAG_PAGE - 1) / FRAG_PAGE, 1u);
	s->task->fit.ample_capacity_bytes = capacity_of(s, upper);
	if (s->env->limit_fraction > 0 && s->env->limit_fraction < 1)
		s->task->fit.ample_capacity_bytes =
			FRAG_MAX(s->task->fit.ample_capacity_bytes,
				 frag_round_up((uint64_t)((double)p.peak_reserved_bytes /
							  s->env->limit_fraction),
					       FRAG_PAGE));
	upper = FRAG_MIN(upper, ample);
	FRAG_TRY(try_pages(s, upper, &completed));
	while (!completed && upper < ample) { /* on `ample` it completed */
		upper = FRAG_MIN(2 * upper, ample);
		FRAG_TRY(try_pages(s, upper, &completed));
	}
	s->upper = upper;
	return 0;
}

/* Probes on both sides of `at` within [lowest, upper], nearest first. */
static int look_around(struct search *s, uint64_t lowest, uint64_t at, uint64_t upper)
{
	bool completed;

	for (uint64_t d = 1; at + d <= upper || at >= lowest + d; d += FRAG_MAX(d / 2, 1u)) {
		if (s->count + 64 > PROBES_MAX || !may_look(s))
			return 0;
		if (at >= lowest + d)
			FRAG_TRY(try_pages(s, at - d, &completed));
		if (at + d <= upper)
			FRAG_TRY(try_pages(s, at + d, &completed));
	}
	for (unsigned i = 1; i < EVEN_PROBES && upper > lowest && may_look(s); i++)
		FRAG_TRY(try_pages(s, lowest + (upper - lowest) * i / EVEN_PROBES, &completed));
	return 0;
}

/* Failures above the minimum as gaps; *safe: the first completion above the last of them. */
static void note_gaps(struct search *s, uint64_t min, uint64_t *safe)
{
	struct frag_fit *f = &s->task->fit;
	bool open = false;

	f->gaps_count = f->gaps_seen = 0;
	*safe = min;
	for (size_t i = 0; i < s->count; i++) {
		const struct tried *t = &s->tried[i];

		if (t->pages < min)
			continue;
		if (t->completed) {
			if (open)
				*safe = t->pages;
			open = false;
			continue;
		}
		f->gaps_seen += !open;
		if (f->gaps_seen <= FRAG_FIT_GAPS) {
			struct frag_fit_gap *g = &f->gaps[f->gaps_seen - 1];

			if (!open)
				g->first_bytes = capacity_of(s, t->pages);
			g->last_bytes = capacity_of(s, t->pages);
			f->gaps_count = f->gaps_seen;
		}
		open = true;
	}
}

/* The border above the last gap, exact to the page. */
static int close_gaps(struct search *s, uint64_t min)
{
	uint64_t safe, fails = 0;
	struct frag_probe p;

	note_gaps(s, min, &safe);
	if (safe != min) {
		for (size_t i = 0; i < s->count; i++)
			if (s->tried[i].pages < safe && !s->tried[i].completed)
				fails = s->tried[i].pages;
		FRAG_TRY(bisect(s, fails, &safe));
		note_gaps(s, min, &safe);
	}
	FRAG_TRY(probe_card(s, s->context + min * FRAG_PAGE, s->context, &p));
	s->task->fit.min_driver_ns = p.driver_ns;
	s->task->fit.min_retries_count = p.retries;
	s->task->fit.min_capacity_bytes = capacity_of(s, min);
	s->task->fit.safe_capacity_bytes = capacity_of(s, safe);
	return 0;
}

/* pre: it completes at s->upper. Nothing completes below the load. */
static int search_border(struct search *s)
{
	uint64_t load = frag_probe_peak_live(s->task->dev, 512) / FRAG_PAGE;
	uint64_t lowest = FRAG_MIN(FRAG_MAX(load, 1u), s->upper), min = s->upper, fails;

	FRAG_TRY(bisect(s, lowest - 1, &min));
	for (unsigned i = 0; i < DESCENTS_MAX; i++) {
		uint64_t before = min;
		size_t k = 0;

		FRAG_TRY(look_around(s, lowest, min, s->upper));
		/* the smallest completion seen, and the largest failure below it */
		for (fails = lowest - 1; !s->tried[k].completed; k++)
			fails = FRAG_MAX(fails, s->tried[k].pages);
		min = s->tried[k].pages;
		if (min == before)
			break;
		FRAG_TRY(bisect(s, fails, &min));
	}
	return close_gaps(s, min);
}

/* On a card with more room than the ample run used, the replay is the same. */
static int try_gpus(struct search *s, const struct frag_gpu *const *gpus, size_t count)
{
	uint64_t bound = frag_probe_peak_live(s->task->dev, 512);

	for (size_t i = 0; i < count; i++) {
		uint64_t usable = gpus[i]->total_bytes -
				  FRAG_MIN(gpus[i]->total_bytes, gpus[i]->context_bytes);
		struct frag_probe p = { 0 };

		if (!usable || usable < bound)
			continue;
		p.completed = usable / FRAG_PAGE >= s->upper && !(s->env->limit_fraction > 0);
		if (!p.completed)
			FRAG_TRY(probe_card(s, gpus[i]->total_bytes, gpus[i]->context_bytes, &p));
		if (p.completed)
			s->task->gpus |= 1ull << i;
	}
	return 0;
}

struct fit_crew {
	const struct frag_plan_env *env;
	const struct frag_gpu *const *gpus;
	size_t gpus_count;
	struct frag_fit_task *tasks;
	struct frag_ticks ticks;
};

static void run_task(void *ctx, size_t i)
{
	struct fit_crew *c = ctx;
	struct frag_fit_task *t = &c->tasks[i];
	struct search *s = frag_host_calloc(1, sizeof(*s));

	if (!s) {
		t->rc = frag_fail_nomem(&t->err, "fit");
		return;
	}
	*s = (struct search){
		.env = c->env, .task = t, .context = c->env->card.context_bytes, .ticks = &c->ticks
	};
	t->rc = find_upper(s);
	if (!t->rc && t->fit.possible)
		t->rc = search_border(s) ?: try_gpus(s, c->gpus, c->gpus_count);
	t->fit.complete = !t->rc;
	frag_host_free(s);
	if (t->rc == FRAG_EINTR)
		t->rc = 0; /* see t->fit.complete */
}

int frag_fit_run(const struct frag_plan_env *env, const struct frag_gpu *const *gpus,
		 size_t gpus_count, struct frag_fit_task *tasks, size_t count, struct frag_err *err)
{
	struct fit_crew c = { .env = env,
			      .gpus = gpus,
			      .gpus_count = gpus_count,
			      .tasks = tasks,
			      .ticks = { .total = count * TICKS_PER_TASK } };

	FRAG_ASSERT(gpus_count <= 64);
	for (size_t i = 0; i < count; i++) {
		tasks[i].fit = (struct frag_fit){ 0 };
		tasks[i].gpus = 0;
		tasks[i].rc = 0;
	}
	return frag_parallel(count, env->threads, run_task, &c, &env->watch, &c.ticks, NULL, err);
}
