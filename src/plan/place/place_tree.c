/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement search: the tree of decisions of one attempt.
 *
 * Everything unplaced goes above the floors. So take a section where no item on its floor is above
 * a lower floor elsewhere (the lowest floor of all always qualifies). In every solution, either one
 * of its level items lies on this floor, or nothing does, and then the floor may rise to the lowest
 * offset left. These are the branches; no solution is in two of them. Of the sections that qualify,
 * take the one with the fewest branches, then the one with the least to waste: in a full section
 * there is often only one next item.
 *
 * When all branches have failed, the reason is the union of their reasons. Changing decisions that
 * are not in it would not help, so they are skipped on the way back: moments far apart in time have
 * little to do with each other (conflict-directed backjumping, P. Prosser, 1993).
 *
 * Three ideas are MiniMalloc's (google/minimalloc, src/solver.cc; not its code): lower items are
 * placed first, a section with too much waste ends a branch, and the static orders.
 */
#include "place_tree.h"
#include "lib/grow.h"

#include <string.h>

#include <frag/clock.h>

#define CLOCK_EVERY 32u /* nodes between two checks of the clock */

/* ---- choice ---------------------------------------------------------------------- */

static uint32_t choose_section(const struct tree *t)
{
	uint64_t best_slack = 0;
	uint32_t best = UINT32_MAX, best_ways = UINT32_MAX;

	for (uint32_t c = 0; c < t->p->sections_count; c++) {
		const struct tree_floor *f = &t->floors[c];
		uint64_t slack;
		uint32_t ways;

		if (!f->left || f->skewed)
			continue;
		slack = tree_slack(t, c);
		ways = f->ready + (slack != 0);
		if (ways < best_ways || (ways == best_ways && slack < best_slack)) {
			best = c;
			best_ways = ways;
			best_slack = slack;
		}
	}
	FRAG_ASSERT(best != UINT32_MAX);
	return best;
}

static bool same_item(const struct tree_item *a, const struct tree_item *b)
{
	return a->from == b->from && a->to == b->to && a->bytes == b->bytes;
}

/* Inserts a candidate by rank, unless an equivalent one is there. */
static size_t insert(struct tree *t, size_t base, size_t n, uint32_t item)
{
	const struct tree_item *items = t->p->items;
	uint32_t *list = &t->choices[base];
	size_t at = n;

	for (size_t k = 0; k < n; k++)
		if (same_item(&items[list[k]], &items[item]))
			return n;
	for (; at && t->rank[list[at - 1]] > t->rank[item]; at--)
		list[at] = list[at - 1];
	list[at] = item;
	return n + 1;
}

/* The distinct items on the section's floor, by rank, at choices[base]. SIZE_MAX: no memory. */
static size_t list_candidates(struct tree *t, uint32_t section, size_t base)
{
	const struct tree_problem *p = t->p;
	size_t n = 0, most = p->at[section + 1] - p->at[section];

	if (frag_grow_to(&t->choices, base + most, &t->choices_cap, sizeof(*t->choices), "choices",
			 NULL))
		return SIZE_MAX;
	for (uint32_t k = p->at[section]; k < p->at[section + 1]; k++) {
		const struct tree_spot *s = &t->spots[p->within[k]];

		if (!s->placed && s->ground == t->floors[section].floor)
			n = insert(t, base, n, p->within[k]);
	}
	return n;
}

/* ---- waste ----------------------------------------------------------------------- */

/* May unplaced item k carry item `item`, the lowest of `section`? */
static bool may_carry(const struct tree *t, uint32_t k, uint32_t section)
{
	const struct tree_item *it = &t->p->items[k];

	return !t->spots[k].placed && !(it->from <= section && section < it->to);
}

/* The lowest offset in the section if nothing begins on its floor: the ground of higher items, or
 * the lowest top of an item that may still carry one of the others. UINT64_MAX: none. */
static uint64_t next_floor(const struct tree *t, uint32_t section)
{
	const struct tree_problem *p = t->p;
	uint64_t floor = t->floors[section].floor, next = UINT64_MAX;

	for (uint32_t k = p->at[section]; k < p->at[section + 1]; k++) {
		uint32_t i = p->within[k];

		if (t->spots[i].placed)
			continue;
		if (t->spots[i].ground > floor) {
			next = FRAG_MIN(next, t->spots[i].ground);
			continue;
		}
		for (uint32_t m = p->met_at[i]; m < p->met_at[i + 1]; m++) {
			uint32_t j = p->pairs[m];

			if (may_carry(t, j, section))
				next = FRAG_MIN(next, t->spots[j].ground + p->items[j].bytes);
		}
	}
	return next;
}

/* Adds the reasons why next_floor is at least `floor`. */
static void explain_waste(const struct tree *t, uint32_t section, uint64_t floor, uint64_t *set)
{
	const struct tree_problem *p = t->p;

	tree_add(t, set, tree_reason(t, section));
	for (uint32_t k = p->at[section]; k < p->at[section + 1]; k++) {
		uint32_t i = p->within[k];

		if (t->spots[i].placed)
			continue;
		if (t->spots[i].ground > t->floors[section].floor) {
			tree_add_reason(t, set, i, floor);
			continue;
		}
		/* no other item can carry it because of everything placed below */
		for (uint32_t c = p->items[i].from; c < p->items[i].to; c++)
			tree_add(t, set, tree_reason(t, c));
		for (uint32_t m = p->met_at[i]; m < p->met_at[i + 1]; m++) {
			uint32_t j = p->pairs[m];

			if (may_carry(t, j, section) && p->items[j].bytes < floor)
				tree_add_reason(t, set, j, floor - p->items[j].bytes);
		}
	}
}

/* ---- the tree -------------------------------------------------------------------- */

static bool spend_node(struct tree *t)
{
	if (t->nodes >= t->nodes_max || t->out_of_memory)
		return false;
	return ++t->nodes % CLOCK_EVERY ||
	       (frag_clock_ns() < t->deadline_ns && !t->cancelled(t->ctx));
}

static enum tree_outcome descend(struct tree *t, size_t level, size_t base);

/* The result of a branch at a level. */
static enum tree_outcome close_branch(struct tree *t, size_t level, enum tree_outcome o)
{
	uint64_t *own = tree_conflict(t, level), *theirs = tree_conflict(t, level + 1);
	uint64_t bit = 1ull << level % 64;

	if (t->out_of_memory)
		return TREE_GAVE_UP;
	if (o != TREE_IMPOSSIBLE)
		return o;
	if (!(theirs[level / 64] & bit)) {
		memcpy(own, theirs, t->p->words * sizeof(*own));
		return TREE_ELSEWHERE;
	}
	theirs[level / 64] &= ~bit;
	tree_add(t, own, theirs);
	return o;
}

static enum tree_outcome branch_item(struct tree *t, uint32_t item, uint32_t section, size_t level,
				     size_t base)
{
	size_t mark = t->undo_words;
	enum tree_outcome o = TREE_IMPOSSIBLE;

	if (t->spots[item].ground + t->p->items[item].bytes > t->ceiling)
		return o; /* caused by the floor, which is already in the conflict */
	if (!spend_node(t))
		return TREE_GAVE_UP;
	if (tree_put(t, item, section, level))
		o = descend(t, level + 1, base);
	if (o == TREE_SOLVED)
		return o;
	tree_undo_to(t, mark);
	return close_branch(t, level, o);
}

/* Nothing begins on the floor of the section: may the unplaced items still fit? If not, adds the
 * reasons to conflict[level]. */
static bool waste(struct tree *t, uint32_t section, size_t level, bool decided)
{
	uint64_t next = next_floor(t, section), *own = tree_conflict(t, level);
	uint64_t most = t->floors[section].floor + tree_slack(t, section);

	if (next > most) {
		explain_waste(t, section, most + 1, own);
		return false;
	}
	memset(t->because, 0, t->p->words * sizeof(*t->because));
	explain_waste(t, section, next, t->because);
	if (tree_raise(t, section, next, level, decided))
		return true;
	if (!t->out_of_memory)
		tree_add(t, own, tree_conflict(t, level + 1));
	return false;
}

static enum tree_outcome branch_waste(struct tree *t, uint32_t section, size_t level, size_t base)
{
	size_t mark = t->undo_words;
	enum tree_outcome o;

	if (!spend_node(t))
		return TREE_GAVE_UP;
	if (!waste(t, section, level, true)) {
		tree_conflict(t, level)[level / 64] &= ~(1ull << level % 64);
		tree_undo_to(t, mark);
		return t->out_of_memory ? TREE_GAVE_UP : TREE_IMPOSSIBLE;
	}
	o = descend(t, level + 1, base);
	if (o == TREE_SOLVED)
		return o;
	tree_undo_to(t, mark);
	return close_branch(t, level, o);
}

/* Raises floors on which nothing can begin, until there is a section with a decision: its
 * candidates are at choices[base]. SOLVED: continue. The caller's mark undoes the raised floors. */
static enum tree_outcome advance(struct tree *t, size_t level, size_t base, uint32_t *section,
				 size_t *n)
{
	for (;;) {
		*section = choose_section(t);
		*n = list_candidates(t, *section, base);
		if (*n == SIZE_MAX)
			t->out_of_memory = true;
		if (t->out_of_memory)
			return TREE_GAVE_UP;
		memset(tree_conflict(t, level), 0, t->p->words * sizeof(*t->conflicts));
		if (*n)
			return TREE_SOLVED;
		if (!spend_node(t))
			return TREE_GAVE_UP;
		if (!waste(t, *section, level, false))
			return t->out_of_memory ? TREE_GAVE_UP : TREE_IMPOSSIBLE;
	}
}

static enum tree_outcome descend(struct tree *t, size_t level, size_t base)
{
	enum tree_outcome o;
	uint32_t section;
	size_t n;

	if (!t->left_count)
		return TREE_SOLVED;
	if (level >= 64 * t->p->words)
		return TREE_GAVE_UP;
	o = advance(t, level, base, &section, &n);
	if (o != TREE_SOLVED)
		return o;
	tree_add(t, tree_conflict(t, level), tree_reason(t, section));
	o = TREE_IMPOSSIBLE;
	for (size_t k = 0; o == TREE_IMPOSSIBLE && k < n; k++)
		o = branch_item(t, t->choices[base + k], section, level, base + n);
	if (o == TREE_IMPOSSIBLE)
		o = branch_waste(t, section, level, base + n);
	return o == TREE_ELSEWHERE ? TREE_IMPOSSIBLE : o;
}

enum tree_outcome tree_attempt(struct tree *t)
{
	tree_clear(t);
	for (uint32_t c = 0; c < t->p->sections_count; c++)
		if (t->p->totals[c] > t->ceiling)
			return TREE_IMPOSSIBLE;
	return descend(t, 0, 0);
}
