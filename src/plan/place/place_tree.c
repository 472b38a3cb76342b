/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement search: the tree of decisions of one attempt, depth first.
 *
 * Words. floor of a section: everything placed in it lies below, everything unplaced goes above.
 * left: total size of its unplaced items. ground of an item: the highest floor in its sections, its
 * lowest possible offset.
 *
 * Take a section with the lowest floor of all, of equals the one with the least to waste. In every
 * solution, either one of the items whose ground it is lies on this floor, or nothing does, and
 * then the floor may rise to the lowest offset left. These are the branches; no solution is in two
 * of them. A branch ends where what is left of a section does not fit between its lowest ground and
 * the ceiling.
 *
 * Three ideas are MiniMalloc's (google/minimalloc, src/solver.cc; not its code): lower items are
 * placed first, a section with too much waste ends a branch, and the static orders.
 */
#include "place.h"

#include <string.h>

#include <frag/clock.h>

#include "lib/bisect.h"
#include "lib/grow.h"

#define CLOCK_EVERY 32u /* nodes between two checks of the clock */
#define NONE UINT32_MAX

/* ---- the problem ----------------------------------------------------------------- */

/* Number of the first cut at or after a moment. */
static uint32_t cut_of(const uint64_t *cuts, uint32_t count, uint64_t when)
{
	uint32_t at;

	FRAG_BISECT(at, 0, count, cuts[at] < when);
	return at;
}

/* The items of each section. */
static int list_sections(struct tree_problem *p, struct frag_err *err)
{
	size_t spans = 0;

	FRAG_TRY_CALLOC(p->at, (size_t)p->sections_count + 1, "placement search", err);
	for (size_t i = 0; i < p->b->count; i++) {
		spans += p->items[i].to - p->items[i].from;
		for (uint32_t c = p->items[i].from; c < p->items[i].to; c++)
			p->at[c]++;
	}
	FRAG_TRY_CALLOC(p->within, spans + 1, "placement search", err);
	for (uint32_t c = 1; c <= p->sections_count; c++)
		p->at[c] += p->at[c - 1];
	/* at[c] is the end of list c; filling backwards turns it into the beginning */
	for (size_t i = p->b->count; i-- > 0;)
		for (uint32_t c = p->items[i].from; c < p->items[i].to; c++)
			p->within[--p->at[c]] = (uint32_t)i;
	return 0;
}

int tree_problem_init(struct tree_problem *p, const struct frag_buffers *b, struct frag_err *err)
{
	size_t n = b->count;
	FRAG_AUTO_FREE struct frag_edge *edges = frag_host_calloc(2 * n + 1, sizeof(*edges));
	FRAG_AUTO_FREE uint64_t *cuts = frag_host_calloc(n + 1, sizeof(*cuts));

	*p = (struct tree_problem){ .b = b };
	p->items = frag_host_calloc(n + 1, sizeof(*p->items));
	p->totals = frag_host_calloc(n + 1, sizeof(*p->totals));
	FRAG_CHECK_ALLOC(edges && cuts && p->items && p->totals, "placement search", err);
	/* Only sections that no neighbour contains count: the moment of the last beginning before
	 * an end. */
	frag_edges_sort(b, edges);
	for (size_t i = 0; i + 1 < 2 * n; i++)
		if (edges[i].begins && !edges[i + 1].begins)
			cuts[p->sections_count++] = edges[i].when;
	for (size_t i = 0; i < n; i++) {
		const struct frag_buffer *x = &b->list[i];
		struct tree_item *it = &p->items[i];

		*it = (struct tree_item){ x->bytes, cut_of(cuts, p->sections_count, x->lower),
					  cut_of(cuts, p->sections_count, x->upper) };
		for (uint32_t c = it->from; c < it->to; c++)
			p->totals[c] += it->bytes;
	}
	return list_sections(p, err);
}

void tree_problem_release(struct tree_problem *p)
{
	FRAG_FREE(p->items, p->totals, p->within, p->at);
}

/* rank[count]: place of each item. */
static int make_rank(const struct tree_problem *p, const struct tree_attempt *a, uint32_t *rank,
		     struct frag_err *err)
{
	static const enum frag_order orders[TREE_STATIC] = { FRAG_ORDER_LIFE, FRAG_ORDER_CONFLICTS,
							     FRAG_ORDER_AREA };
	FRAG_AUTO_FREE uint32_t *list = NULL;
	uint64_t random = (a->seed + 1) * 0xd1342543de82ef95ull ^ a->order * 0x2545f4914f6cdd1dull;

	FRAG_TRY_CALLOC(list, p->b->count + 1, "placement search", err);
	FRAG_TRY(frag_place_order(p->b, orders[a->order % TREE_STATIC],
				  a->order < TREE_STATIC ? NULL : &random, list, err));
	for (uint32_t i = 0; i < p->b->count; i++)
		rank[list[i]] = i;
	return 0;
}

/* ---- the state ------------------------------------------------------------------- */

struct tree {
	const struct tree_problem *p;
	struct tree_attempt *a;
	uint32_t *rank;
	uint64_t *ground;	/* by item; UINT64_MAX: it is placed */
	uint64_t *floor, *left; /* by section */
	struct change {
		uint64_t *at, old;
	} * undo;
	size_t undo_count, undo_cap;
	uint32_t *choices; /* candidates, level by level */
	size_t choices_cap;
	bool out_of_memory; /* the attempt must end */
};

static void set(struct tree *t, uint64_t *at, uint64_t n)
{
	t->out_of_memory |= FRAG_GROW(t->undo, t->undo_count, t->undo_cap, "undo", NULL) != 0;
	if (t->out_of_memory)
		return;
	t->undo[t->undo_count++] = (struct change){ at, *at };
	*at = n;
}

/* Unplaced, and in one of the sections [from, to)? */
static bool is_met(const struct tree *t, uint32_t item, uint32_t from, uint32_t to)
{
	return t->ground[item] != UINT64_MAX && t->p->items[item].from < to &&
	       from < t->p->items[item].to;
}

/* ---- decisions: may the unplaced items still fit? --------------------------------- */

/* The floor of the sections [from, to) becomes `floor`. */
static bool raise_floor(struct tree *t, uint32_t from, uint32_t to, uint64_t floor)
{
	uint32_t low = from, high = to;

	for (uint32_t c = from; c < to; c++)
		set(t, &t->floor[c], floor);
	for (uint32_t i = 0; i < t->p->b->count; i++) {
		const struct tree_item *it = &t->p->items[i];

		if (!is_met(t, i, from, to))
			continue;
		if (t->ground[i] < floor)
			set(t, &t->ground[i], floor);
		if (t->ground[i] + it->bytes > t->a->ceiling)
			return false;
		low = FRAG_MIN(low, it->from);
		high = FRAG_MAX(high, it->to);
	}
	/* most of the time is spent here */
	for (uint32_t c = low; c < high; c++) {
		const uint32_t *end = &t->p->within[t->p->at[c + 1]];
		uint64_t lowest = UINT64_MAX;

		for (const uint32_t *k = &t->p->within[t->p->at[c]]; t->left[c] && k < end; k++)
			lowest = FRAG_MIN(lowest, t->ground[*k]);
		if (t->left[c] && lowest + t->left[c] > t->a->ceiling)
			return false;
	}
	return true;
}

/* Places an item on its ground. */
static bool put(struct tree *t, uint32_t item)
{
	const struct tree_item *it = &t->p->items[item];
	uint64_t offset = t->ground[item];

	t->a->offsets[item] = offset;
	set(t, &t->ground[item], UINT64_MAX);
	for (uint32_t c = it->from; c < it->to; c++)
		set(t, &t->left[c], t->left[c] - it->bytes);
	return raise_floor(t, it->from, it->to, offset + it->bytes);
}

/* Nothing begins on the floor of the section: it rises to the lowest offset left, the ground of
 * higher items, or the lowest top of an item that may still carry one of the others. */
static bool waste(struct tree *t, uint32_t section)
{
	const struct tree_problem *p = t->p;
	uint64_t next = UINT64_MAX;
	uint32_t from = section, to = section + 1; /* of those that are on the floor */

	for (uint32_t k = p->at[section]; k < p->at[section + 1]; k++) {
		const struct tree_item *it = &p->items[p->within[k]];

		if (t->ground[p->within[k]] > t->floor[section]) {
			next = FRAG_MIN(next, t->ground[p->within[k]]);
			continue;
		}
		from = FRAG_MIN(from, it->from);
		to = FRAG_MAX(to, it->to);
	}
	for (uint32_t i = 0; i < p->b->count; i++)
		if (is_met(t, i, from, to) && !is_met(t, i, section, section + 1))
			next = FRAG_MIN(next, t->ground[i] + p->items[i].bytes);
	return next != UINT64_MAX && raise_floor(t, section, section + 1, next);
}

/* ---- the tree -------------------------------------------------------------------- */

/* The distinct items on the section's floor, by rank, at choices[base]. */
static size_t list_candidates(struct tree *t, uint32_t section, size_t base)
{
	const struct tree_problem *p = t->p;
	size_t n = 0, most = p->at[section + 1] - p->at[section];

	t->out_of_memory |= frag_grow_to(&t->choices, base + most, &t->choices_cap,
					 sizeof(*t->choices), "choices", NULL) != 0;
	for (uint32_t k = p->at[section]; !t->out_of_memory && k < p->at[section + 1]; k++) {
		const struct tree_item *it = &p->items[p->within[k]];
		uint32_t *list = &t->choices[base];
		size_t at = 0;

		if (t->ground[p->within[k]] != t->floor[section])
			continue;
		while (at < n &&
		       (p->items[list[at]].from != it->from || p->items[list[at]].to != it->to ||
			p->items[list[at]].bytes != it->bytes))
			at++;
		if (at < n)
			continue; /* an equivalent one is there */
		for (n++; at && t->rank[list[at - 1]] > t->rank[p->within[k]]; at--)
			list[at] = list[at - 1];
		list[at] = p->within[k];
	}
	return n;
}

static bool spend_node(struct tree *t, size_t depth)
{
	struct tree_attempt *a = t->a;

	if (a->nodes >= a->nodes_max || t->out_of_memory || depth > 2 * t->p->b->count)
		return false;
	return ++a->nodes % CLOCK_EVERY ||
	       (frag_clock_ns() < a->deadline_ns && !frag_watch_stopped(a->watch));
}

/* placed: items so far. base: of choices that are not in use. */
static enum tree_outcome descend(struct tree *t, size_t placed, size_t depth, size_t base)
{
	enum tree_outcome o = TREE_IMPOSSIBLE;
	uint32_t section;
	size_t n, mark;

	if (placed == t->p->b->count)
		return TREE_SOLVED;
	for (;;) {
		section = NONE;
		for (uint32_t c = 0; c < t->p->sections_count; c++)
			if (t->left[c] &&
			    (section == NONE || t->floor[c] < t->floor[section] ||
			     (t->floor[c] == t->floor[section] && t->left[c] > t->left[section])))
				section = c;
		n = list_candidates(t, section, base);
		if (n)
			break;
		if (!spend_node(t, depth))
			return TREE_GAVE_UP;
		if (!waste(t, section))
			return TREE_IMPOSSIBLE;
	}
	mark = t->undo_count;
	/* each of them lies there, or none does */
	for (size_t k = 0; o == TREE_IMPOSSIBLE && k <= n; k++) {
		for (; t->undo_count > mark; t->undo_count--)
			*t->undo[t->undo_count - 1].at = t->undo[t->undo_count - 1].old;
		if (!spend_node(t, depth))
			return TREE_GAVE_UP;
		if (k < n ? put(t, t->choices[base + k]) : waste(t, section))
			o = descend(t, placed + (k < n), depth + 1, base + n);
	}
	return o;
}

int tree_attempt(const struct tree_problem *p, struct tree_attempt *a, struct frag_err *err)
{
	struct tree t = { .p = p, .a = a };
	size_t n = p->b->count + 1, sections = (size_t)p->sections_count + 1;
	int rc;

	a->outcome = TREE_IMPOSSIBLE;
	for (uint32_t c = 0; c < p->sections_count; c++)
		if (p->totals[c] > a->ceiling)
			return 0;
	t.rank = frag_host_calloc(n, sizeof(*t.rank));
	t.ground = frag_host_calloc(n, sizeof(*t.ground));
	t.floor = frag_host_calloc(sections, sizeof(*t.floor));
	t.left = frag_host_calloc(sections, sizeof(*t.left));
	a->offsets = frag_host_calloc(n, sizeof(*a->offsets));
	t.out_of_memory = !t.rank || !t.ground || !t.floor || !t.left || !a->offsets;
	rc = t.out_of_memory ? 0 : make_rank(p, a, t.rank, err);
	if (!t.out_of_memory && !rc) {
		memcpy(t.left, p->totals, p->sections_count * sizeof(*t.left));
		a->outcome = descend(&t, 0, 0, 0);
	}
	FRAG_FREE(t.rank, t.ground, t.floor, t.left, t.undo, t.choices);
	return t.out_of_memory ? frag_fail_nomem(err, "placement search") : rc;
}
