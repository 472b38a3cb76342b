/* SPDX-License-Identifier: Apache-2.0 */
/* Placed buffers and the gaps between them; see place.h. */
#include "place.h"
#include "lib/bisect.h"
#include "lib/grow.h"

#include <stdlib.h>
#include <string.h>

/* ---- sorted positions ------------------------------------------------------------ */

static int by_lower(const void *a, const void *b, void *ctx)
{
	const struct frag_buffer *list = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return FRAG_ORDER(list[x].lower, list[y].lower) ?: FRAG_ORDER(x, y);
}

/* Number of positions with lower < the upper of buffer i. */
static size_t before(const struct frag_placer *p, uint32_t i)
{
	size_t at;

	FRAG_BISECT(at, 0, p->b->count, p->b->list[p->by_lower[at]].lower < p->b->list[i].upper);
	return at;
}

int frag_placer_init(struct frag_placer *p, const struct frag_buffers *b, uint64_t *offsets,
		     struct frag_err *err)
{
	size_t n = b->count;

	*p = (struct frag_placer){ .b = b, .offsets = offsets, .leaves = 1 };
	if (n >= UINT32_MAX)
		return FRAG_INPUT(err, "more than 4 billion buffers to place");
	while (p->leaves < n)
		p->leaves *= 2;
	p->by_lower = frag_host_calloc(n + 1, sizeof(*p->by_lower));
	p->position = frag_host_calloc(n + 1, sizeof(*p->position));
	p->tree = frag_host_calloc(2 * p->leaves, sizeof(*p->tree));
	if (!p->by_lower || !p->position || !p->tree) {
		frag_placer_release(p);
		return frag_fail_nomem(err, "placement");
	}
	for (size_t i = 0; i < n; i++)
		p->by_lower[i] = (uint32_t)i;
	qsort_r(p->by_lower, n, sizeof(*p->by_lower), by_lower, b->list);
	for (size_t i = 0; i < n; i++)
		p->position[p->by_lower[i]] = (uint32_t)i;
	return 0;
}

void frag_placer_release(struct frag_placer *p)
{
	FRAG_FREE(p->by_lower, p->position, p->tree, p->met);
	*p = (struct frag_placer){ 0 };
}

void frag_placer_clear(struct frag_placer *p)
{
	memset(p->tree, 0, 2 * p->leaves * sizeof(*p->tree));
}

/* ---- buffers live at the same time -------------------------------------------------- */

/* Leaves in [first, last) under `node` (which covers [lo, hi)) with upper > lower. */
static size_t meet(struct frag_placer *p, size_t node, size_t lo, size_t hi, size_t last,
		   uint64_t lower, size_t n)
{
	while (lo < last && p->tree[node] > lower) {
		size_t mid;

		if (hi - lo == 1) {
			uint32_t i = p->by_lower[lo];

			p->met[n++] = (struct frag_span){ p->offsets[i],
							  p->offsets[i] + p->b->list[i].bytes };
			return n;
		}
		mid = lo + (hi - lo) / 2;
		n = meet(p, 2 * node, lo, mid, last, lower, n);
		node = 2 * node + 1;
		lo = mid;
	}
	return n;
}

/* Quicksort by `from`, without qsort's calls to compare: most of the time is spent here. */
static void sort_spans(struct frag_span *s, size_t n)
{
	while (n > 1) {
		uint64_t pivot = s[n / 2].from;
		size_t i = 0, j = n;

		for (;;) {
			struct frag_span t;

			while (s[i].from < pivot)
				i++;
			while (pivot < s[--j].from)
				;
			if (i >= j)
				break;
			t = s[i];
			s[i++] = s[j];
			s[j] = t;
		}
		/* recursion into the smaller half keeps the stack logarithmic */
		sort_spans(i < n - i ? s : s + i, FRAG_MIN(i, n - i));
		s += i < n - i ? i : 0;
		n = FRAG_MAX(i, n - i);
	}
}

/* ---- gaps ------------------------------------------------------------------------ */

/* Offset for `bytes` between n sorted spans; on top of them if no gap is large enough, or by the
 * rule. */
static uint64_t choose(const struct frag_span *s, size_t n, uint64_t bytes, enum frag_gap_rule rule)
{
	uint64_t end = 0, best = UINT64_MAX, at = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t gap = s[i].from > end ? s[i].from - end : 0;

		if (rule != FRAG_GAP_TOP && gap >= bytes && gap < best) {
			best = gap;
			at = end;
			if (rule == FRAG_GAP_LOWEST || gap == bytes)
				return at;
		}
		end = FRAG_MAX(end, s[i].to);
	}
	return best == UINT64_MAX ? end : at;
}

static void mark_placed(struct frag_placer *p, uint32_t i)
{
	size_t node = p->leaves + p->position[i];
	uint64_t upper = p->b->list[i].upper;

	for (; node && p->tree[node] < upper; node /= 2)
		p->tree[node] = upper;
}

int frag_placer_put(struct frag_placer *p, uint32_t i, enum frag_gap_rule rule,
		    struct frag_err *err)
{
	uint32_t twin = p->b->twins ? p->b->twins[i] : i;
	size_t last = before(p, i), last_twin = twin == i ? 0 : before(p, twin), n;

	if (p->tree[p->leaves + p->position[i]])
		return 0; /* together with its twin */
	FRAG_TRY(frag_grow_to(&p->met, last + last_twin, &p->met_cap, sizeof(*p->met), "placement",
			      err));
	n = meet(p, 1, 0, p->leaves, last, p->b->list[i].lower, 0);
	if (twin != i)
		n = meet(p, 1, 0, p->leaves, last_twin, p->b->list[twin].lower, n);
	if (rule != FRAG_GAP_TOP)
		sort_spans(p->met, n);
	p->offsets[i] = p->offsets[twin] = choose(p->met, n, p->b->list[i].bytes, rule);
	mark_placed(p, i);
	mark_placed(p, twin);
	return 0;
}
