/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branch and bound: a placement of at most a given height. Rounds of attempts (place_tree.c), each
 * round with more nodes per attempt. Attempts at the target use three static orders of the
 * candidates and random changes of these, because the effort is heavy-tailed (another order is
 * often a thousand times faster). Attempts at a height between the target and the best so far make
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
#include "place.h"
#include "place_tree.h"

#define BUFFERS_MAX 6000u /* bounds the depth of the tree, which is walked by recursion */
#define TURNS 9u	  /* orders per round: the static ones, then these with random changes */
#define STATIC 3u
/* Decisions per buffer in a first attempt: one places it, others raise floors. MiniMalloc's D,
 * where much may be wasted, needs 8; B, where nothing may, needs 2. */
#define NODES_EACH 8u

struct search {
	struct tree_problem problem;
	const struct frag_search_options *opt;
	struct attempt {
		struct tree_attempt tree;
		struct search *search;
		uint64_t height;
		struct frag_err err;
		int rc;
	} list[2 * TURNS]; /* at the target, and on the way to it */
	size_t count;
	uint64_t nodes_each, begin_ns, next_order;
	_Atomic size_t answered; /* the first attempt with an answer */
	struct frag_ticks ticks;
};

/* Is the attempt not needed any more? */
static bool cancelled(const void *ctx)
{
	const struct attempt *a = ctx;
	struct search *s = a->search;

	atomic_store(&s->ticks.done, (frag_clock_ns() - s->begin_ns) / 1000000);
	return atomic_load(&s->answered) < (size_t)(a - s->list) ||
	       frag_watch_stopped(s->opt->watch);
}

static void run_attempt(void *ctx, size_t i)
{
	struct search *s = ctx;
	struct attempt *a = &s->list[i];
	size_t answered = atomic_load(&s->answered);

	a->rc = tree_attempt(&s->problem, &a->tree, &a->err);
	if (!a->rc && a->tree.outcome == TREE_SOLVED)
		a->height = frag_place_height(s->problem.b, a->tree.offsets);
	if (!a->rc && a->tree.outcome != TREE_IMPOSSIBLE && a->height > s->opt->target_bytes)
		return;
	while (i < answered && !atomic_compare_exchange_weak(&s->answered, &answered, i))
		;
}

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

/* The attempts of the next round: each order at the target and at the milestone. Static orders fail
 * again in the same way, until the number of nodes has about doubled. */
static void plan_round(struct search *s, unsigned round, uint64_t height)
{
	uint64_t target = s->opt->target_bytes;
	uint64_t goals[] = { target, milestone(height, target) };
	bool between = height != UINT64_MAX && height - target > 1;

	memset(s->list, 0, sizeof(s->list));
	s->count = 0;
	s->answered = SIZE_MAX;
	for (unsigned k = round % 6 ? STATIC : 0; k < TURNS; k++) {
		uint64_t order = k < STATIC ? k : STATIC + s->next_order++;

		for (size_t g = 0; g < 1u + between; g++) {
			struct attempt *a = &s->list[s->count++];

			a->search = s;
			a->height = UINT64_MAX;
			a->tree = (struct tree_attempt){ .ceiling = goals[g],
							 .order = order,
							 .seed = s->opt->seed,
							 .nodes_max = s->nodes_each,
							 .deadline_ns =
								 s->begin_ns + s->opt->budget_ns,
							 .cancelled = cancelled,
							 .ctx = a };
		}
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
		*nodes += a->tree.nodes;
		if (a->tree.outcome == TREE_IMPOSSIBLE)
			*answer = FRAG_SEARCH_NONE;
		if (a->height >= *height)
			continue;
		*height = a->height;
		memcpy(offsets, a->tree.offsets, s->problem.b->count * sizeof(*offsets));
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
		if (frag_clock_ns() - s->begin_ns >= s->opt->budget_ns ||
		    frag_watch_stopped(s->opt->watch) ||
		    (s->opt->nodes_max && *nodes >= s->opt->nodes_max))
			break;
		plan_round(s, round, *height);
		rc = frag_parallel(s->count, s->opt->threads, run_attempt, s, s->opt->watch,
				   &s->ticks, NULL, err)
			     ?: merge_round(s, offsets, height, answer, nodes, err);
		for (size_t i = 0; i < s->count; i++)
			frag_host_free(s->list[i].tree.offsets);
		s->nodes_each += s->nodes_each / 8;
	}
	return rc;
}

int frag_place_search(const struct frag_buffers *b, const struct frag_search_options *opt,
		      uint64_t *offsets, uint64_t *height, enum frag_search_answer *answer,
		      uint64_t *nodes, struct frag_err *err)
{
	FRAG_AUTO_FREE struct search *s = frag_host_calloc(1, sizeof(*s));
	int rc;

	*nodes = 0;
	*answer = *height <= opt->target_bytes ? FRAG_SEARCH_FOUND : FRAG_SEARCH_GAVE_UP;
	FRAG_CHECK_ALLOC(s, "placement search", err);
	if (b->count > BUFFERS_MAX || *answer == FRAG_SEARCH_FOUND)
		return 0;
	s->opt = opt;
	s->begin_ns = frag_clock_ns();
	s->ticks.total = opt->budget_ns / 1000000;
	s->nodes_each = NODES_EACH * b->count;
	rc = tree_problem_init(&s->problem, b, err)
		     ?: run_rounds(s, offsets, height, answer, nodes, err);
	tree_problem_release(&s->problem);
	return rc;
}
