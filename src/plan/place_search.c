/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branch and bound: a placement of at most a given capacity, in the manner of
 * MiniMalloc (google/minimalloc, src/solver.cc and sweeper.cc; the ideas only).
 *
 * Time is cut into sections, in each of which the same buffers live. Buffers are
 * placed in order of (offset, rank): a canonical order that every placement pushed down as far
 * as it goes has, with rank the place in a static order. So whatever is not yet placed
 * lies above what it meets, and each buffer has exactly one offset at a time: its
 * minimum, the highest top of what was placed in its sections. A node is left when
 *  - in some section the floor (the smallest offset that one to come may still get) and the
 *    sizes to come exceed the capacity. A buffer that was passed over has to wait until
 *    another one is placed under it, so its floor is the lowest top of the others;
 *  - a buffer would go to or above the lowest top another one could have: that one
 *    would leave a gap in which it fits;
 * and its siblings are not tried when the buffer has nothing above it. What is left is
 * split into parts that share no section, each solved alone.
 *
 * Static orders take turns with a budget of nodes that grows: a bad early decision
 * costs one budget, not the whole time. Besides MiniMalloc's three these are the same with
 * random changes (a fixed seed), because the effort is heavy-tailed: another order is often
 * a thousand times faster. Each order is tried at the target, and at heights between it and
 * the best so far, so that time that does not suffice for the target is not lost.
 */
#include <frag/plan.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel.h"
#include "place.h"

#define CLOCK_EVERY 256u /* nodes between two looks at the clock */
#define ORDERS 3u	 /* static ones */
#define GOALS 3u	 /* the target, and two on the way */
#define TURNS 9u	 /* orders of a round: the static ones, then these with random changes */

enum outcome { SOLVED, FAILED, OUT_OF_BUDGET };

/* A buffer in sections [from, to). */
struct item {
	uint64_t bytes, min_offset;
	uint32_t from, to, rank;
};

struct solver {
	struct item *items; /* by index of the buffer */
	size_t count;
	uint64_t *cuts; /* a moment of each section, ascending */
	uint32_t sections_count;
	uint64_t *left;	      /* per section: sizes to come */
	uint64_t *low, *tops; /* scratch, per section: lowest offset and top of these */
	uint64_t *offsets;
	uint64_t capacity;
	uint32_t *stack; /* lists of items, level by level */
	uint64_t *saved; /* values to restore, level by level */
	size_t stack_cap, saved_cap;
	uint64_t nodes, budget; /* of this round */
	uint64_t total_nodes, deadline_ns, rng;
	unsigned first_order; /* searches beside another one leave the static orders to it */
	const struct frag_watch *watch;
	const _Atomic bool *done; /* another search has the answer */
	bool out_of_time, out_of_memory;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- bounds ---------------------------------------------------------------------- */

/* Lowest offset that an item may still get. One that was passed over (last, rank) can only be
 * placed on top of another one to come: at the lowest top of these in its sections. */
static inline uint64_t lowest_offset(const struct solver *s, const struct item *it, uint64_t last,
				     int64_t rank)
{
	uint64_t top = UINT64_MAX;

	if (it->min_offset > last || (it->min_offset == last && (int64_t)it->rank > rank))
		return it->min_offset;
	for (uint32_t c = it->from; c < it->to; c++)
		top = FRAG_MIN(top, s->tops[c]);
	return top;
}

/*
 * Can the n items of the list, all after (last, rank), still fit below the capacity? The list
 * lies in sections [from, to), which hold no other items to come.
 */
static bool may_fit(struct solver *s, const uint32_t *list, size_t n, uint64_t last, int64_t rank)
{
	uint32_t from = UINT32_MAX, to = 0;

	for (size_t k = 0; k < n; k++) {
		const struct item *it = &s->items[list[k]];

		from = FRAG_MIN(from, it->from);
		to = FRAG_MAX(to, it->to);
	}
	for (uint32_t c = from; c < to; c++) {
		s->low[c] = s->capacity;
		s->tops[c] = UINT64_MAX;
	}
	for (size_t k = 0; k < n; k++) {
		const struct item *it = &s->items[list[k]];
		uint64_t top = FRAG_MAX(it->min_offset, last) + it->bytes;

		if (top > s->capacity)
			return false;
		for (uint32_t c = it->from; c < it->to; c++)
			s->tops[c] = FRAG_MIN(s->tops[c], top);
	}
	for (size_t k = 0; k < n; k++) {
		const struct item *it = &s->items[list[k]];
		uint64_t at = lowest_offset(s, it, last, rank);

		if (at + it->bytes > s->capacity)
			return false;
		for (uint32_t c = it->from; c < it->to; c++)
			s->low[c] = FRAG_MIN(s->low[c], at);
	}
	for (uint32_t c = from; c < to; c++)
		if (s->low[c] + s->left[c] > s->capacity)
			return false;
	return true;
}

/* ---- the tree -------------------------------------------------------------------- */

static enum outcome solve(struct solver *s, size_t base, size_t n, size_t saved, uint64_t last,
			  int64_t last_rank);

static bool room(struct solver *s, size_t stack, size_t saved)
{
	if (stack > s->stack_cap) {
		size_t cap = FRAG_MAX(stack, 2 * s->stack_cap);
		uint32_t *grown = frag_host_realloc(s->stack, cap, sizeof(*grown));

		if (!grown)
			return false;
		s->stack = grown;
		s->stack_cap = cap;
	}
	if (saved > s->saved_cap) {
		size_t cap = FRAG_MAX(saved, 2 * s->saved_cap);
		uint64_t *grown = frag_host_realloc(s->saved, cap, sizeof(*grown));

		if (!grown)
			return false;
		s->saved = grown;
		s->saved_cap = cap;
	}
	return true;
}

/* Places `id` at its minimum; the rest of the list goes behind it on the stack. Returns whether
 * anything to come meets it. Saved: minimum offsets of the rest. */
static bool place(struct solver *s, size_t base, size_t n, uint32_t id, size_t saved)
{
	const struct item *it = &s->items[id];
	uint64_t top = it->min_offset + it->bytes;
	uint32_t *rest = &s->stack[base + n];
	bool covered = false;
	size_t m = 0;

	s->offsets[id] = it->min_offset;
	for (uint32_t c = it->from; c < it->to; c++)
		s->left[c] -= it->bytes;
	for (size_t k = 0; k < n; k++) {
		uint32_t other = s->stack[base + k];
		struct item *o = &s->items[other];

		if (other == id)
			continue;
		s->saved[saved + m] = o->min_offset;
		rest[m++] = other;
		if (o->from < it->to && it->from < o->to) {
			o->min_offset = FRAG_MAX(o->min_offset, top);
			covered = true;
		}
	}
	return covered;
}

static void unplace(struct solver *s, size_t base, size_t n, uint32_t id, size_t saved)
{
	const struct item *it = &s->items[id];
	size_t m = 0;

	for (uint32_t c = it->from; c < it->to; c++)
		s->left[c] += it->bytes;
	for (size_t k = 0; k < n; k++)
		if (s->stack[base + k] != id)
			s->items[s->stack[base + k]].min_offset = s->saved[saved + m++];
}

/* The next item of the list in the order of (minimum offset, rank) after (at, rank), below
 * `limit`; SIZE_MAX = none. */
static size_t next_item(const struct solver *s, const uint32_t *list, size_t n, uint64_t at,
			int64_t rank, uint64_t limit)
{
	size_t best = SIZE_MAX;

	for (size_t k = 0; k < n; k++) {
		const struct item *it = &s->items[list[k]], *b;

		if (it->min_offset >= limit || it->min_offset < at ||
		    (it->min_offset == at && (int64_t)it->rank <= rank))
			continue;
		b = best == SIZE_MAX ? NULL : &s->items[list[best]];
		if (!b || it->min_offset < b->min_offset ||
		    (it->min_offset == b->min_offset && it->rank < b->rank))
			best = k;
	}
	return best;
}

static uint64_t lowest_top(const struct solver *s, const uint32_t *list, size_t n)
{
	uint64_t low = UINT64_MAX;

	for (size_t k = 0; k < n; k++)
		low = FRAG_MIN(low, s->items[list[k]].min_offset + s->items[list[k]].bytes);
	return low;
}

static enum outcome spend_node(struct solver *s)
{
	if (s->nodes >= s->budget)
		return OUT_OF_BUDGET;
	s->nodes++;
	if (++s->total_nodes % CLOCK_EVERY == 0 &&
	    (now_ns() >= s->deadline_ns || (s->watch && frag_watch_stopped(s->watch)) ||
	     (s->done && *s->done)))
		s->out_of_time = true;
	return s->out_of_time ? OUT_OF_BUDGET : SOLVED;
}

/* A list whose items share sections, one with the next: branches. */
static enum outcome branch(struct solver *s, size_t base, size_t n, size_t saved, uint64_t last,
			   int64_t last_rank)
{
	uint64_t limit = lowest_top(s, &s->stack[base], n), at = last;
	int64_t rank = last_rank;

	for (;;) {
		enum outcome o = spend_node(s);
		size_t k = next_item(s, &s->stack[base], n, at, rank, limit);
		uint32_t id;
		bool covered;

		if (o != SOLVED || k == SIZE_MAX)
			return o == SOLVED ? FAILED : o;
		id = s->stack[base + k];
		if (!room(s, base + 2 * n, saved + n)) {
			s->out_of_memory = true;
			return OUT_OF_BUDGET;
		}
		at = s->items[id].min_offset;
		rank = s->items[id].rank;
		if (at + s->items[id].bytes > s->capacity)
			return FAILED;
		covered = place(s, base, n, id, saved);
		o = may_fit(s, &s->stack[base + n], n - 1, at, rank)
			    ? solve(s, base + n, n - 1, saved + n, at, s->items[id].rank)
			    : FAILED;
		if (o == SOLVED)
			return SOLVED;
		unplace(s, base, n, id, saved);
		if (o == OUT_OF_BUDGET || !covered)
			return o;
	}
}

static int by_section(const void *a, const void *b, void *ctx)
{
	const struct item *items = ctx, *x = &items[*(const uint32_t *)a],
			  *y = &items[*(const uint32_t *)b];

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* A part that was solved is placed as a whole; when a later one fails, all of it is to come
 * again. (The minimum offsets are restored by whoever made the list.) */
static void take_back(struct solver *s, const uint32_t *list, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		const struct item *it = &s->items[list[k]];

		for (uint32_t c = it->from; c < it->to; c++)
			s->left[c] += it->bytes;
	}
}

static void sort_list(struct solver *s, uint32_t *list, size_t n)
{
	/* mostly sorted already: a list keeps the order of its parent */
	for (size_t k = 1; k < n; k++) {
		if (by_section(&list[k - 1], &list[k], s->items) > 0) {
			qsort_r(list, n, sizeof(*list), by_section, s->items);
			return;
		}
	}
}

/* Splits the list into parts that share no section and solves them one after the other. */
static enum outcome solve(struct solver *s, size_t base, size_t n, size_t saved, uint64_t last,
			  int64_t last_rank)
{
	size_t begin = 0;
	uint32_t end;

	if (!n)
		return SOLVED;
	sort_list(s, &s->stack[base], n);
	end = s->items[s->stack[base]].to;
	for (size_t k = 1; k <= n; k++) {
		enum outcome o;

		if (k < n && s->items[s->stack[base + k]].from < end) {
			end = FRAG_MAX(end, s->items[s->stack[base + k]].to);
			continue;
		}
		if (k - begin == n)
			return branch(s, base, n, saved, last, last_rank);
		/* a part works behind the whole list, on a copy: the list must survive it */
		if (!room(s, base + n + (k - begin), saved)) {
			s->out_of_memory = true;
			return OUT_OF_BUDGET;
		}
		memcpy(&s->stack[base + n], &s->stack[base + begin],
		       (k - begin) * sizeof(*s->stack));
		o = branch(s, base + n, k - begin, saved, last, last_rank);
		if (o != SOLVED) {
			take_back(s, &s->stack[base], begin);
			return o;
		}
		begin = k;
		if (k < n)
			end = s->items[s->stack[base + k]].to;
	}
	return SOLVED;
}

/* ---- setting up ------------------------------------------------------------------ */

struct edge {
	uint64_t when;
	bool begins;
};

/* At one moment ends come first. */
static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return (int)x->begins - (int)y->begins;
}

/* Only sections that no neighbour contains count: the moment of the last beginning before an
 * end. Two buffers meet if and only if they meet in one of these. */
static void find_sections(struct solver *s, const struct frag_buffers *b, struct edge *edges)
{
	size_t n = b->count;

	for (size_t i = 0; i < n; i++) {
		edges[2 * i] = (struct edge){ b->list[i].lower, true };
		edges[2 * i + 1] = (struct edge){ b->list[i].upper, false };
	}
	qsort(edges, 2 * n, sizeof(*edges), compare_edges);
	for (size_t i = 0; i + 1 < 2 * n; i++)
		if (edges[i].begins && !edges[i + 1].begins)
			s->cuts[s->sections_count++] = edges[i].when;
}

/* Number of the first section at or after a moment. */
static uint32_t section_of(const struct solver *s, uint64_t when)
{
	uint32_t lo = 0, hi = s->sections_count;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->cuts[mid] < when)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int solver_init(struct solver *s, const struct frag_buffers *b, struct frag_err *err)
{
	size_t n = b->count;
	struct edge *edges = frag_host_calloc(2 * n + 1, sizeof(*edges));

	s->count = n;
	s->items = frag_host_calloc(n + 1, sizeof(*s->items));
	s->cuts = frag_host_calloc(n + 1, sizeof(*s->cuts));
	s->left = frag_host_calloc(3 * (n + 1), sizeof(*s->left));
	if (!edges || !s->items || !s->cuts || !s->left || !room(s, 4 * n + 4, 4 * n + 4)) {
		frag_host_free(edges);
		return frag_fail_nomem(err, "placement search");
	}
	find_sections(s, b, edges);
	frag_host_free(edges);
	s->low = s->left + n + 1;
	s->tops = s->low + n + 1;
	for (size_t i = 0; i < n; i++) {
		struct item *it = &s->items[i];

		it->bytes = b->list[i].bytes;
		it->from = section_of(s, b->list[i].lower);
		it->to = section_of(s, b->list[i].upper);
		for (uint32_t c = it->from; c < it->to; c++)
			s->left[c] += it->bytes;
	}
	return 0;
}

static void solver_release(struct solver *s)
{
	frag_host_free(s->items);
	frag_host_free(s->cuts);
	frag_host_free(s->left);
	frag_host_free(s->stack);
	frag_host_free(s->saved);
}

/* W = length of life, A = size x life, T = largest total of a section; all descending. */
struct key {
	double k[3];
	uint32_t index;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	for (unsigned i = 0; i < 3; i++)
		if (x->k[i] != y->k[i])
			return x->k[i] > y->k[i] ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* From the second half of the orders on, sizes and lives are blurred by up to a third. */
static double blur(struct solver *s, unsigned order)
{
	uint64_t z = s->rng += 0x9e3779b97f4a7c15ull; /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return order < ORDERS ? 1.0 : 1.0 + (double)(z >> 40) / (double)(1 << 24) / 3.0;
}

static void rank_items(struct solver *s, const struct frag_buffers *b, struct key *keys,
		       unsigned order)
{
	static const unsigned words[ORDERS][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 2, 0, 1 } };

	for (size_t i = 0; i < s->count; i++) {
		const struct item *it = &s->items[i];
		double w = (double)(b->list[i].upper - b->list[i].lower), wat[3];
		uint64_t total = 0;

		for (uint32_t c = it->from; c < it->to; c++)
			total = FRAG_MAX(total, s->left[c]);
		wat[0] = w * blur(s, order);
		wat[1] = w * (double)it->bytes * blur(s, order);
		wat[2] = (double)total * blur(s, order);
		keys[i].index = (uint32_t)i;
		for (unsigned k = 0; k < 3; k++)
			keys[i].k[k] = wat[words[order % ORDERS][k]];
	}
	qsort(keys, s->count, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < s->count; i++)
		s->items[keys[i].index].rank = (uint32_t)i;
}

/* One round: from the start, with this order and this many nodes. */
static enum outcome attempt(struct solver *s, uint64_t budget)
{
	s->nodes = 0;
	s->budget = budget;
	for (size_t i = 0; i < s->count; i++) {
		s->stack[i] = (uint32_t)i;
		s->items[i].min_offset = 0;
	}
	if (!may_fit(s, s->stack, s->count, 0, -1))
		return FAILED;
	return solve(s, 0, s->count, 0, 0, -1);
}

/* One attempt at a capacity: in a fresh state, as a cut one leaves sizes to come reduced. */
static enum outcome attempt_order(struct solver *s, const struct frag_buffers *b, struct key *keys,
				  unsigned order, uint64_t budget, uint64_t capacity)
{
	memset(s->left, 0, s->sections_count * sizeof(*s->left));
	for (size_t i = 0; i < s->count; i++)
		for (uint32_t c = s->items[i].from; c < s->items[i].to; c++)
			s->left[c] += s->items[i].bytes;
	rank_items(s, b, keys, order);
	s->capacity = capacity;
	return attempt(s, budget);
}

/* Keeps what an attempt found: its height is the new one to beat. */
static void keep(struct solver *s, uint64_t *offsets, uint64_t *height)
{
	*height = 0;
	for (size_t i = 0; i < s->count; i++) {
		offsets[i] = s->offsets[i];
		*height = FRAG_MAX(*height, offsets[i] + s->items[i].bytes);
	}
}

/* The next height on the way to the target that is worth an effort: 10, 5, 2, 1 % above it, then
 * half of what is left. */
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

/*
 * Rounds of attempts, each with more nodes: at the target, and on the way from the best so
 * far to it, each with every order. FAILED: the target is impossible, that was proved.
 */
static enum outcome take_turns(struct solver *s, const struct frag_buffers *b, struct key *keys,
			       uint64_t target, uint64_t *offsets, uint64_t *height)
{
	uint64_t budget = 2 * s->count + 2;

	for (unsigned round = 0; *height > target; round++, budget += budget / 8) {
		/* a static order fails again as it did, until the budget has about doubled */
		unsigned from = s->first_order || round % 6 ? ORDERS * GOALS : 0;

		for (unsigned k = from; k<TURNS * GOALS && * height> target; k++) {
			uint64_t way = *height - target;
			uint64_t goal = k % GOALS == 0	 ? target
					: k % GOALS == 1 ? milestone(*height, target)
							 : *height - way / 4;
			enum outcome o = attempt_order(s, b, keys, k / GOALS, budget, goal);

			if (s->out_of_time || s->out_of_memory)
				return OUT_OF_BUDGET;
			if (o == SOLVED)
				keep(s, offsets, height);
			else if (o == FAILED && goal == target)
				return FAILED;
		}
	}
	return SOLVED;
}

int frag_place_search_one(const struct frag_buffers *b, const struct frag_search_options *opt,
			  const _Atomic bool *done, uint64_t seed, uint64_t *offsets,
			  uint64_t *height, enum frag_search_answer *answer, uint64_t *nodes,
			  struct frag_err *err)
{
	struct solver s = { .watch = opt->watch,
			    .done = done,
			    .rng = seed,
			    .first_order = seed ? ORDERS : 0,
			    .deadline_ns = now_ns() + opt->budget_ns };
	struct key *keys = frag_host_calloc(b->count + 1, sizeof(*keys));
	enum outcome o = OUT_OF_BUDGET;
	int rc = keys ? 0 : frag_fail_nomem(err, "placement search");

	s.offsets = frag_host_calloc(b->count + 1, sizeof(*s.offsets));
	if (!rc && !s.offsets)
		rc = frag_fail_nomem(err, "placement search");
	if (!rc)
		rc = solver_init(&s, b, err);
	if (!rc) {
		o = take_turns(&s, b, keys, opt->target_bytes, offsets, height);
		if (s.out_of_memory)
			rc = frag_fail_nomem(err, "placement search");
	}
	*answer = o == SOLVED	? FRAG_SEARCH_FOUND
		  : o == FAILED ? FRAG_SEARCH_NONE
				: FRAG_SEARCH_GAVE_UP;
	*nodes = s.total_nodes;
	frag_host_free(s.offsets);
	frag_host_free(keys);
	solver_release(&s);
	return rc;
}
