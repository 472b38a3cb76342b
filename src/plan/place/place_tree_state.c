/* SPDX-License-Identifier: Apache-2.0 */
/* The placement search: decisions, their consequences, and undo. */
#include "place_tree.h"
#include "lib/grow.h"

#include <string.h>

/* ---- storage --------------------------------------------------------------------- */

int tree_init(struct tree *t, const struct tree_problem *p, struct frag_err *err)
{
	size_t n = p->count + 1, sections = (size_t)p->sections_count + 1;

	*t = (struct tree){ .p = p };
	t->spots = frag_host_calloc(n, sizeof(*t->spots));
	t->floors = frag_host_calloc(sections, sizeof(*t->floors));
	t->reasons = frag_host_calloc(sections * p->words, sizeof(*t->reasons));
	t->offsets = frag_host_calloc(n, sizeof(*t->offsets));
	t->conflicts = frag_host_calloc((64 * p->words + 1) * p->words, sizeof(*t->conflicts));
	t->touched = frag_host_calloc(n, sizeof(*t->touched));
	t->because = frag_host_calloc(p->words, sizeof(*t->because));
	if (!t->spots || !t->floors || !t->reasons || !t->offsets || !t->conflicts || !t->touched ||
	    !t->because) {
		tree_release(t);
		return frag_fail_nomem(err, "placement search");
	}
	return 0;
}

void tree_release(struct tree *t)
{
	FRAG_FREE(t->spots, t->floors, t->reasons, t->offsets, t->undo, t->conflicts, t->choices,
		  t->touched, t->because);
	*t = (struct tree){ 0 };
}

void tree_clear(struct tree *t)
{
	const struct tree_problem *p = t->p;

	memset(t->spots, 0, p->count * sizeof(*t->spots));
	memset(t->reasons, 0, p->sections_count * p->words * sizeof(*t->reasons));
	for (uint32_t c = 0; c < p->sections_count; c++)
		t->floors[c] = (struct tree_floor){ .left = p->totals[c],
						    .ready = p->at[c + 1] - p->at[c] };
	t->left_count = p->count;
	t->undo_words = 0;
	t->nodes = 0;
	t->out_of_memory = false;
}

/* ---- undo ------------------------------------------------------------------------ */

/* Words of `at`, as they are now: before it and a word with their number. Without room the attempt
 * must end. */
static void keep(struct tree *t, void *at, size_t bytes)
{
	size_t words = bytes / sizeof(*t->undo);
	uint64_t *to;

	if (frag_grow_to(&t->undo, t->undo_words + words + 2, &t->undo_cap, sizeof(*t->undo),
			 "undo", NULL)) {
		t->out_of_memory = true;
		return;
	}
	to = &t->undo[t->undo_words];
	memcpy(to, at, bytes);
	to[words] = (uintptr_t)at;
	to[words + 1] = words;
	t->undo_words += words + 2;
}

static void keep_floor(struct tree *t, uint32_t section)
{
	keep(t, &t->floors[section], sizeof(*t->floors));
}

static void keep_reason(struct tree *t, uint32_t section)
{
	keep(t, tree_reason(t, section), t->p->words * sizeof(*t->reasons));
}

void tree_undo_to(struct tree *t, size_t mark)
{
	while (t->undo_words > mark) {
		const uint64_t *end = &t->undo[t->undo_words - 2];
		size_t words = end[1];

		memcpy((void *)(uintptr_t)end[0], end - words, words * sizeof(*end));
		t->undo_words -= words + 2;
	}
}

/* ---- reasons --------------------------------------------------------------------- */

void tree_add(const struct tree *t, uint64_t *set, const uint64_t *more)
{
	for (size_t k = 0; k < t->p->words; k++)
		set[k] |= more[k];
}

void tree_add_reason(const struct tree *t, uint64_t *set, uint32_t item, uint64_t floor)
{
	const struct tree_item *it = &t->p->items[item];
	uint32_t c = it->from;

	while (t->floors[c].floor < floor)
		c++;
	tree_add(t, set, tree_reason(t, c));
}

/* ---- consequences ---------------------------------------------------------------- */

/* The items of t->touched stand on a floor that rose from `before` to `floor`. The lowest floor of
 * an item can change only if it was not lower anywhere else. */
static void lift(struct tree *t, uint64_t before, uint64_t floor)
{
	for (size_t k = 0; k < t->touched_count; k++) {
		uint32_t j = t->touched[k];
		const struct tree_item *it = &t->p->items[j];
		struct tree_spot *s = &t->spots[j];
		uint64_t lowest = UINT64_MAX;

		keep(t, s, sizeof(*s));
		s->ground = FRAG_MAX(s->ground, floor);
		if (s->lowest < before)
			continue;
		for (uint32_t c = it->from; c < it->to; c++)
			lowest = FRAG_MIN(lowest, t->floors[c].floor);
		s->lowest = lowest;
	}
}

/* Recounts the items on the floor of a section; returns the lowest ground in it, or UINT64_MAX.
 * Most of the time is spent here, so it has no branches, and a placed item has a ground like no
 * other. */
static uint64_t survey(struct tree *t, uint32_t section)
{
	const uint32_t *list = &t->p->within[t->p->at[section]];
	const uint32_t *end = &t->p->within[t->p->at[section + 1]];
	struct tree_floor *f = &t->floors[section];
	uint64_t low = UINT64_MAX, floor = f->floor;
	uint32_t ready = 0, standing = 0;

	for (; list < end; list++) {
		const struct tree_spot *s = &t->spots[*list];
		uint32_t here = s->ground == floor;

		low = FRAG_MIN(low, s->ground);
		standing += here;
		ready += here & (s->lowest == floor);
	}
	f->ready = ready;
	f->skewed = ready != standing;
	return low;
}

/* The reasons why nothing in a section can be lower than its lowest ground, which is too high. */
static void explain_section(struct tree *t, uint32_t section, uint64_t *out)
{
	const struct tree_problem *p = t->p;
	uint64_t enough = t->ceiling - t->floors[section].left + 1;

	memcpy(out, tree_reason(t, section), p->words * sizeof(*out));
	if (t->floors[section].floor >= enough)
		return;
	for (uint32_t k = p->at[section]; k < p->at[section + 1]; k++)
		if (!t->spots[p->within[k]].placed)
			tree_add_reason(t, out, p->within[k], enough);
}

/*
 * Lifts the touched items and checks whether the unplaced items near them still fit: each below the
 * ceiling, and in each section all of them above the lowest ground.
 */
static bool lift_and_look(struct tree *t, uint64_t before, uint64_t floor, uint64_t *conflict)
{
	uint32_t from = UINT32_MAX, to = 0;

	lift(t, before, floor);
	for (size_t k = 0; k < t->touched_count; k++) {
		uint32_t j = t->touched[k];
		const struct tree_item *it = &t->p->items[j];

		if (t->spots[j].ground + it->bytes > t->ceiling) {
			memset(conflict, 0, t->p->words * sizeof(*conflict));
			tree_add_reason(t, conflict, j, t->ceiling - it->bytes + 1);
			return false;
		}
		from = FRAG_MIN(from, it->from);
		to = FRAG_MAX(to, it->to);
	}
	for (uint32_t c = from; c < to; c++) {
		uint64_t low;

		if (!t->floors[c].left)
			continue;
		keep_floor(t, c);
		low = survey(t, c);
		if (low + t->floors[c].left > t->ceiling) {
			explain_section(t, c, conflict);
			return false;
		}
	}
	return true;
}

/* ---- decisions ------------------------------------------------------------------- */

bool tree_put(struct tree *t, uint32_t item, uint32_t section, size_t level)
{
	const struct tree_problem *p = t->p;
	const struct tree_item *it = &p->items[item];
	uint64_t before = t->spots[item].ground, top = before + it->bytes;

	/* all floors below it are equal, so one reason is enough for its offset */
	memcpy(t->because, tree_reason(t, section), p->words * sizeof(*t->because));
	t->because[level / 64] |= 1ull << level % 64;
	t->offsets[item] = before;
	keep(t, &t->spots[item], sizeof(*t->spots));
	keep(t, &t->left_count, sizeof(t->left_count));
	t->spots[item] = (struct tree_spot){ .ground = UINT64_MAX, .placed = true };
	t->left_count--;
	for (uint32_t c = it->from; c < it->to; c++) {
		keep_floor(t, c);
		keep_reason(t, c);
		if (t->out_of_memory)
			return false;
		tree_add(t, tree_reason(t, c), t->because);
		t->floors[c].floor = top;
		t->floors[c].left -= it->bytes;
	}
	t->touched_count = 0;
	for (uint32_t k = p->met_at[item]; k < p->met_at[item + 1]; k++)
		if (!t->spots[p->pairs[k]].placed)
			t->touched[t->touched_count++] = p->pairs[k];
	return lift_and_look(t, before, top, tree_conflict(t, level + 1));
}

bool tree_raise(struct tree *t, uint32_t section, uint64_t floor, size_t level, bool decided)
{
	const struct tree_problem *p = t->p;
	uint64_t before = t->floors[section].floor;

	keep_floor(t, section);
	keep_reason(t, section);
	if (t->out_of_memory)
		return false;
	if (decided)
		t->because[level / 64] |= 1ull << level % 64;
	tree_add(t, tree_reason(t, section), t->because);
	t->floors[section].floor = floor;
	t->touched_count = 0;
	for (uint32_t k = p->at[section]; k < p->at[section + 1]; k++)
		if (!t->spots[p->within[k]].placed)
			t->touched[t->touched_count++] = p->within[k];
	return lift_and_look(t, before, floor, tree_conflict(t, level + 1));
}
