/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branch and bound: a placement of at most a given height. Rounds of attempts (place_tree.c), each
 * round with more nodes per attempt. Attempts at the target use three static orders of the
 * candidates and random changes of these, because the effort is heavy-tailed (another order is
 * often a thousand times faster). Attempts at heights between the target and the best so far make
 * use of time that is not enough for the target.
 *
 * The attempts of a round are fixed before it begins and share nothing, so threads may run them in
 * any order; the first attempt in the fixed order that has an answer gives the round's answer. An
 * attempt ends early only if an earlier one has an answer. So the answer depends on the number of
 * threads and the speed of the machine only if time ends the search.
 */
#include <frag/plan.h>

#include <string.h>

#include <frag/clock.h>

#include "base/parallel.h"
#include "place_tree.h"

#define BUFFERS_MAX 6000u /* bounds the depth of the tree, which is walked by recursion */
#define TURNS 9u	  /* orders per round: the static ones, then these with random changes */
#define STATIC 3u
#define GOALS 3u /* the target, and two heights on the way */
/* Decisions per buffer in a first attempt: one places it, others raise floors. MiniMalloc's D,
 * where much may be wasted, needs 8; B, where nothing may, needs 2. */
#define NODES_EACH 8u
#define ATTEMPTS (TURNS * GOALS)

struct runner { /* read by an attempt to see whether it is still needed */
	struct search *search;
	size_t number;
};

struct attempt {
	struct runner runner;
	uint64_t goal, order, nodes, height;
	uint64_t *offsets; /* result of a solved attempt */
	enum tree_outcome outcome;
	bool ran;
	struct frag_err err;
	int rc;
};

struct search {
	struct tree_problem problem;
	const struct frag_search_options *opt;
	const struct frag_watch *watch;
	struct attempt list[ATTEMPTS];
	size_t count;
	uint64_t nodes_each, begin_ns, deadline_ns, next_order;
	_Atomic size_t answered; /* the first attempt with an answer */
	struct frag_ticks ticks;
};

/* ---- an attempt ------------------------------------------------------------------- */

static bool is_answer(const struct search *s, const struct attempt *a)
{
	return a->outcome == TREE_IMPOSSIBLE ||
	       (a->outcome == TREE_SOLVED && a->height <= s->opt->target_bytes);
}

static bool cancelled(const void *ctx)
{
	const struct runner *r = ctx;
	struct search *s = r->search;

	atomic_store(&s->ticks.done, (frag_clock_ns() - s->begin_ns) / 1000000);
	return atomic_load(&s->answered) < r->number || frag_watch_stopped(s->watch);
}

static void take_solution(const struct search *s, struct attempt *a, const struct tree *t)
{
	a->offsets = frag_host_calloc(s->problem.count + 1, sizeof(*a->offsets));
	if (!a->offsets) {
		a->rc = frag_fail_nomem(&a->err, "placement search");
		return;
	}
	memcpy(a->offsets, t->offsets, s->problem.count * sizeof(*a->offsets));
	a->height = 0;
	for (size_t i = 0; i < s->problem.count; i++)
		a->height = FRAG_MAX(a->height, t->offsets[i] + s->problem.items[i].bytes);
}

static void run_tree(struct search *s, struct attempt *a, struct tree *t, uint32_t *rank)
{
	a->runner = (struct runner){ s, (size_t)(a - s->list) };
	a->rc = tree_rank(&s->problem, a->order, s->opt->seed, rank, &a->err);
	if (a->rc)
		return;
	t->rank = rank;
	t->ceiling = a->goal;
	t->nodes_max = s->nodes_each;
	t->deadline_ns = s->deadline_ns;
	t->cancelled = cancelled;
	t->ctx = &a->runner;
	a->outcome = tree_attempt(t);
	a->nodes = t->nodes;
	a->ran = true;
	if (t->out_of_memory)
		a->rc = frag_fail_nomem(&a->err, "placement search");
	else if (a->outcome == TREE_SOLVED)
		take_solution(s, a, t);
}

static void run_attempt(void *ctx, size_t i)
{
	struct search *s = ctx;
	struct attempt *a = &s->list[i];
	FRAG_AUTO(tree_release) struct tree t = { 0 };
	FRAG_AUTO_FREE uint32_t *rank = frag_host_calloc(s->problem.count + 1, sizeof(*rank));
	size_t answered = atomic_load(&s->answered);

	a->rc = rank ? tree_init(&t, &s->problem, &a->err)
		     : frag_fail_nomem(&a->err, "placement search");
	if (!a->rc)
		run_tree(s, a, &t, rank);
	while ((a->rc || is_answer(s, a)) && i < answered &&
	       !atomic_compare_exchange_weak(&s->answered, &answered, i))
		;
}

/* ---- a round ----------------------------------------------------------------------- */

/* The next height on the way to the target: 10, 5, 2, 1 % above it, then half the rest. */
static uint64_t milestone(uint64_t height, uint64_t target)
{
	static const unsigned percent[] = { 10, 5, 2, 1 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(percent); i++) {
		uint64_t goal = target + target / 100 * percent[i];

		if (goal < height)
			return goal;
	}
	return target + (height - target) / 2;
}

/* The attempts of the next round: each order at the target, at the milestone, and at a height of
 * its own between the best and the target. Static orders fail again in the same way, until the
 * number of nodes has about doubled. */
static void plan_round(struct search *s, unsigned round, uint64_t height)
{
	uint64_t target = s->opt->target_bytes, way = height - target;
	bool between = height != UINT64_MAX && way > 1;

	memset(s->list, 0, sizeof(s->list));
	s->count = 0;
	s->answered = SIZE_MAX;
	for (unsigned k = round % 6 ? STATIC : 0; k < TURNS; k++) {
		uint64_t order = k < STATIC ? k : STATIC + s->next_order++;
		uint64_t goals[GOALS] = { target };

		if (between) {
			goals[1] = milestone(height, target);
			goals[2] = height - FRAG_MAX(way / (TURNS + 1) * (k + 1), 1u);
		}
		for (size_t g = 0; g < (between ? GOALS : 1); g++)
			s->list[s->count++] = (struct attempt){ .goal = goals[g],
								.order = order,
								.outcome = TREE_GAVE_UP };
	}
}

/* Collects the round's results, in the order of the attempts. */
static int merge_round(struct search *s, uint64_t *offsets, uint64_t *height,
		       enum frag_search_answer *answer, uint64_t *nodes, struct frag_err *err)
{
	for (size_t i = 0; i < s->count && *answer == FRAG_SEARCH_GAVE_UP; i++) {
		struct attempt *a = &s->list[i];

		if (a->rc) {
			*err = a->err;
			return a->rc;
		}
		*nodes += a->nodes;
		if (a->ran && a->outcome == TREE_IMPOSSIBLE)
			*answer = FRAG_SEARCH_NONE;
		if (a->outcome != TREE_SOLVED || a->height >= *height)
			continue;
		*height = a->height;
		memcpy(offsets, a->offsets, s->problem.count * sizeof(*offsets));
		if (*height <= s->opt->target_bytes)
			*answer = FRAG_SEARCH_FOUND;
	}
	return 0;
}

static int run_rounds(struct search *s, uint64_t *offsets, uint64_t *height,
		      enum frag_search_answer *answer, uint64_t *nodes, struct frag_err *err)
{
	int rc = 0;

	for (unsigned round = 0; !rc && *answer == FRAG_SEARCH_GAVE_UP; round++) {
		if (frag_clock_ns() >= s->deadline_ns || frag_watch_stopped(s->watch) ||
		    (s->opt->nodes_max && *nodes >= s->opt->nodes_max))
			break;
		plan_round(s, round, *height);
		rc = frag_parallel(s->count, s->opt->threads, run_attempt, s, s->watch, &s->ticks,
				   NULL, err);
		if (!rc)
			rc = merge_round(s, offsets, height, answer, nodes, err);
		for (size_t i = 0; i < s->count; i++)
			frag_host_free(s->list[i].offsets);
		s->nodes_each += s->nodes_each / 8;
	}
	return rc;
}

int frag_place_search(const struct frag_buffers *b, const struct frag_search_options *opt,
		      uint64_t *offsets, uint64_t *height, enum frag_search_answer *answer,
		      uint64_t *nodes, struct frag_err *err)
{
	FRAG_AUTO_FREE struct search *s = frag_host_calloc(1, sizeof(*s));
	bool fits = b->count <= BUFFERS_MAX;
	int rc = 0;

	*nodes = 0;
	*answer = *height <= opt->target_bytes ? FRAG_SEARCH_FOUND : FRAG_SEARCH_GAVE_UP;
	FRAG_CHECK_ALLOC(s, "placement search", err);
	s->opt = opt;
	s->watch = opt->watch;
	s->begin_ns = frag_clock_ns();
	s->deadline_ns = s->begin_ns + opt->budget_ns;
	s->ticks.total = opt->budget_ns / 1000000;
	s->nodes_each = NODES_EACH * b->count;
	if (fits && *answer == FRAG_SEARCH_GAVE_UP)
		rc = tree_problem_init(&s->problem, b, &fits, err);
	if (!rc && fits)
		rc = run_rounds(s, offsets, height, answer, nodes, err);
	tree_problem_release(&s->problem);
	return rc;
}
