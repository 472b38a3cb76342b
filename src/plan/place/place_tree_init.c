/* SPDX-License-Identifier: Apache-2.0 */
/* The placement search: sections, overlaps in time, orders. See place_tree.h. */
#include "place_tree.h"
#include "lib/bisect.h"

#include <stdlib.h>

#include "plan/edges.h"
#include "lib/random.h"

#define SETS_MAX (256 * FRAG_MIB) /* most memory of any of the lists */
#define ORDERS 3u

/* ---- sections -------------------------------------------------------------------- */

/* Only sections that no neighbour contains count: the moment of the last beginning before an end.
 * Two buffers overlap in time if and only if they share one of these. */
static uint32_t find_cuts(const struct frag_buffers *b, struct frag_edge *edges, uint64_t *cuts)
{
	uint32_t count = 0;

	frag_edges_sort(b, edges);
	for (size_t i = 0; i + 1 < 2 * b->count; i++)
		if (edges[i].begins && !edges[i + 1].begins)
			cuts[count++] = edges[i].when;
	return count;
}

/* Number of the first cut at or after a moment. */
static uint32_t cut_of(const uint64_t *cuts, uint32_t count, uint64_t when)
{
	uint32_t at;

	FRAG_BISECT(at, 0, count, cuts[at] < when);
	return at;
}

static int make_items(struct tree_problem *p, struct frag_err *err)
{
	size_t n = p->count;
	FRAG_AUTO_FREE struct frag_edge *edges = frag_host_calloc(2 * n + 1, sizeof(*edges));
	FRAG_AUTO_FREE uint64_t *cuts = frag_host_calloc(n + 1, sizeof(*cuts));

	p->items = frag_host_calloc(n + 1, sizeof(*p->items));
	p->totals = frag_host_calloc(n + 1, sizeof(*p->totals));
	FRAG_CHECK_ALLOC(edges && cuts && p->items && p->totals, "placement search", err);
	p->sections_count = find_cuts(p->b, edges, cuts);
	for (size_t i = 0; i < n; i++) {
		const struct frag_buffer *x = &p->b->list[i];
		struct tree_item *it = &p->items[i];

		it->bytes = x->bytes;
		it->from = cut_of(cuts, p->sections_count, x->lower);
		it->to = cut_of(cuts, p->sections_count, x->upper);
		for (uint32_t c = it->from; c < it->to; c++)
			p->totals[c] += it->bytes;
	}
	return 0;
}

/* ---- lists ----------------------------------------------------------------------- */

static bool meet(const struct tree_item *a, const struct tree_item *b)
{
	return a->from < b->to && b->from < a->to;
}

/* spans: the sum of the lengths of all lists. */
static int list_sections(struct tree_problem *p, size_t spans, struct frag_err *err)
{
	p->within = frag_host_calloc(spans + 1, sizeof(*p->within));
	p->at = frag_host_calloc((size_t)p->sections_count + 1, sizeof(*p->at));
	FRAG_CHECK_ALLOC(p->within && p->at, "placement search", err);
	for (size_t i = 0; i < p->count; i++)
		for (uint32_t c = p->items[i].from; c < p->items[i].to; c++)
			p->at[c]++;
	for (uint32_t c = 1; c <= p->sections_count; c++)
		p->at[c] += p->at[c - 1];
	/* at[c] is the end of list c; filling backwards turns it into the beginning */
	for (size_t i = p->count; i-- > 0;)
		for (uint32_t c = p->items[i].from; c < p->items[i].to; c++)
			p->within[--p->at[c]] = (uint32_t)i;
	return 0;
}

static int list_pairs(struct tree_problem *p, size_t pairs, struct frag_err *err)
{
	size_t n = 0;

	p->pairs = frag_host_calloc(pairs + 1, sizeof(*p->pairs));
	p->met_at = frag_host_calloc(p->count + 1, sizeof(*p->met_at));
	FRAG_CHECK_ALLOC(p->pairs && p->met_at, "placement search", err);
	for (size_t i = 0; i < p->count; i++) {
		p->met_at[i] = (uint32_t)n;
		for (size_t k = 0; k < p->count; k++)
			if (k != i && meet(&p->items[i], &p->items[k]))
				p->pairs[n++] = (uint32_t)k;
	}
	p->met_at[p->count] = (uint32_t)n;
	return 0;
}

int tree_problem_init(struct tree_problem *p, const struct frag_buffers *b, bool *fits,
		      struct frag_err *err)
{
	size_t spans = 0, pairs = 0;

	*p = (struct tree_problem){ .b = b, .count = b->count };
	/* one level per item, and as many raised floors */
	p->words = (2 * b->count + 64) / 64;
	*fits = b->count < 1u << 20 && 64 * p->words * p->words < SETS_MAX / sizeof(uint64_t);
	if (!*fits)
		return 0;
	FRAG_TRY(make_items(p, err));
	for (size_t i = 0; i < b->count; i++)
		spans += p->items[i].to - p->items[i].from;
	*fits = spans < SETS_MAX / sizeof(uint64_t) / p->words;
	for (size_t i = 0; *fits && i < b->count; i++)
		for (size_t k = 0; k < b->count; k++)
			pairs += meet(&p->items[i], &p->items[k]);
	*fits = *fits && pairs < SETS_MAX / sizeof(uint32_t);
	if (!*fits)
		return 0;
	FRAG_TRY(list_sections(p, spans, err));
	return list_pairs(p, pairs, err);
}

void tree_problem_release(struct tree_problem *p)
{
	FRAG_FREE(p->items, p->totals, p->within, p->at, p->pairs, p->met_at);
	*p = (struct tree_problem){ 0 };
}

/* ---- orders ---------------------------------------------------------------------- */

/* W = lifetime, A = size x lifetime, T = largest total of a section; all descending. */
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
	return FRAG_ORDER(x->index, y->index);
}

/* 1, or with a state a random number between 1 and 4/3. */
static double blur(uint64_t *state)
{
	return state ? 1.0 + (double)(frag_random(state) >> 40) / (double)(1 << 24) / 3.0 : 1;
}

int tree_rank(const struct tree_problem *p, uint64_t order, uint64_t seed, uint32_t *rank,
	      struct frag_err *err)
{
	static const unsigned words[ORDERS][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 2, 0, 1 } };
	FRAG_AUTO_FREE struct key *keys = frag_host_calloc(p->count + 1, sizeof(*keys));
	uint64_t random = (seed + 1) * 0xd1342543de82ef95ull ^ order * 0x2545f4914f6cdd1dull;
	uint64_t *state = order < ORDERS ? NULL : &random;

	FRAG_CHECK_ALLOC(keys, "placement search", err);
	for (size_t i = 0; i < p->count; i++) {
		const struct tree_item *it = &p->items[i];
		double w = (double)(p->b->list[i].upper - p->b->list[i].lower), wat[3];
		uint64_t total = 0;

		for (uint32_t c = it->from; c < it->to; c++)
			total = FRAG_MAX(total, p->totals[c]);
		wat[0] = w * blur(state);
		wat[1] = w * (double)it->bytes * blur(state);
		wat[2] = (double)total * blur(state);
		keys[i].index = (uint32_t)i;
		for (unsigned k = 0; k < 3; k++)
			keys[i].k[k] = wat[words[order % ORDERS][k]];
	}
	qsort(keys, p->count, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < p->count; i++)
		rank[keys[i].index] = (uint32_t)i;
	return 0;
}
