/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branch and bound: a placement of at most a given height. Rounds of attempts (place_tree.c), one
 * after the other, each round with more nodes per attempt. Attempts at the target use three static
 * orders of the candidates and random changes of these, because the effort is heavy-tailed (another
 * order is often a thousand times faster). Attempts at a height between the target and the best so
 * far make use of time that is not enough for the target.
 */
#include <frag/plan.h>

#include <string.h>

#include <frag/clock.h>

#include "place.h"

#define BUFFERS_MAX 6000u /* bounds the depth of the tree, which is walked by recursion */
#define TURNS 9u	  /* orders per round: the static ones, then these with random changes */
/* Decisions per buffer in a first attempt: one places it, others raise floors. MiniMalloc's D,
 * where much may be wasted, needs 8; B, where nothing may, needs 2. */
#define NODES_EACH 8u

struct search {
	struct tree_problem problem;
	const struct frag_search_options *opt;
	uint64_t *offsets, *height; /* the best placement */
	enum frag_search_answer *answer;
	uint64_t *nodes, nodes_each, begin_ns;
};

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

static int attempt(struct search *s, uint64_t order, uint64_t goal, struct frag_err *err)
{
	const struct frag_watch *w = s->opt->watch;
	struct tree_attempt a = { .ceiling = goal,
				  .order = order,
				  .seed = s->opt->seed,
				  .nodes_max = s->nodes_each,
				  .deadline_ns = s->begin_ns + s->opt->budget_ns,
				  .watch = w };
	int rc = tree_attempt(&s->problem, &a, err);
	uint64_t height;

	*s->nodes += a.nodes;
	if (!rc && a.outcome == TREE_IMPOSSIBLE)
		*s->answer = FRAG_SEARCH_NONE;
	if (!rc && a.outcome == TREE_SOLVED) {
		height = frag_place_height(s->problem.b, a.offsets);
		if (height < *s->height) {
			*s->height = height;
			memcpy(s->offsets, a.offsets, s->problem.b->count * sizeof(*a.offsets));
		}
		if (height <= s->opt->target_bytes)
			*s->answer = FRAG_SEARCH_FOUND;
	}
	frag_host_free(a.offsets);
	if (w && w->progress)
		w->progress(w->ctx,
			    FRAG_MIN(frag_clock_ns() - s->begin_ns, s->opt->budget_ns) / 1000000,
			    s->opt->budget_ns / 1000000);
	return rc;
}

static bool is_over(const struct search *s)
{
	return *s->answer != FRAG_SEARCH_GAVE_UP || frag_watch_stopped(s->opt->watch) ||
	       frag_clock_ns() - s->begin_ns >= s->opt->budget_ns;
}

/* Static orders fail again in the same way, until the number of nodes has about doubled. */
static int run_rounds(struct search *s, struct frag_err *err)
{
	uint64_t target = s->opt->target_bytes, next = TREE_STATIC;

	for (unsigned round = 0; !is_over(s); round++) {
		if (s->opt->nodes_max && *s->nodes >= s->opt->nodes_max)
			break;
		for (unsigned k = round % 6 ? TREE_STATIC : 0; k < TURNS && !is_over(s); k++) {
			uint64_t order = k < TREE_STATIC ? k : next++;

			FRAG_TRY(attempt(s, order, target, err));
			if (*s->height != UINT64_MAX && *s->height > target + 1 && !is_over(s))
				FRAG_TRY(attempt(s, order, milestone(*s->height, target), err));
		}
		s->nodes_each += s->nodes_each / 8;
	}
	return 0;
}

int frag_place_search(const struct frag_buffers *b, const struct frag_search_options *opt,
		      uint64_t *offsets, uint64_t *height, enum frag_search_answer *answer,
		      uint64_t *nodes, struct frag_err *err)
{
	struct search s = { .opt = opt,
			    .offsets = offsets,
			    .height = height,
			    .answer = answer,
			    .nodes = nodes,
			    .nodes_each = NODES_EACH * b->count,
			    .begin_ns = frag_clock_ns() };
	int rc;

	*nodes = 0;
	*answer = *height <= opt->target_bytes ? FRAG_SEARCH_FOUND : FRAG_SEARCH_GAVE_UP;
	if (b->count > BUFFERS_MAX || *answer == FRAG_SEARCH_FOUND)
		return 0;
	rc = tree_problem_init(&s.problem, b, err) ?: run_rounds(&s, err);
	tree_problem_release(&s.problem);
	return rc;
}
