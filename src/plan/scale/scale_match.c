/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches the requests of two recordings. Requests of one stream and pool match if their sizes are
 * equal, or proportional to the value or its square. Of all ways to walk both lists in order, takes
 * the one that leaves out the fewest requests (Myers, An O(ND) difference algorithm, 1986), in
 * stretches of at most STRETCH left out, so that time and memory stay linear. Requests left out on
 * both sides between two matches are then matched in order, if their sizes allow.
 */
#include "scale.h"

#define STRETCH 400

int frag_scale_list_make(const struct frag_trace_dev *dev, struct frag_scale_list *out,
			 struct frag_err *err)
{
	size_t count = 0;

	*out = (struct frag_scale_list){ 0 };
	for (size_t i = 0; i < dev->events_count; i++)
		count += dev->events[i].kind == FRAG_EV_ALLOC;
	FRAG_TRY_CALLOC(out->items, count + 1, "requests", err);
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC)
			out->items[out->count++] =
				(struct frag_scale_item){ e->bytes, (uint16_t)e->pool, e->stream };
	}
	return 0;
}

void frag_scale_list_release(struct frag_scale_list *l)
{
	frag_host_free(l->items);
	*l = (struct frag_scale_list){ 0 };
}

__extension__ typedef unsigned __int128 wide;

struct pair {
	const struct frag_scale_list *a, *b; /* b is at the larger value, or the same */
	uint64_t a_value, b_value;
	size_t *match; /* for each request of a: the one of b */
	/* reach[d * (d + 1) + k + d]: progress in a with d left out, on diagonal k */
	int32_t *reach;
};

static bool one_place(const struct frag_scale_item *a, const struct frag_scale_item *b)
{
	return a->stream == b->stream && a->pool == b->pool;
}

static bool alike(const struct pair *p, size_t i, size_t j)
{
	const struct frag_scale_item *a = &p->a->items[i], *b = &p->b->items[j];
	wide x = a->bytes, y = b->bytes;

	return one_place(a, b) && (x == y || x * p->b_value == y * p->a_value ||
				   x * p->b_value * p->b_value == y * p->a_value * p->a_value);
}

/* May they be the same request with another law? */
static bool possible(const struct pair *p, size_t i, size_t j)
{
	const struct frag_scale_item *a = &p->a->items[i], *b = &p->b->items[j];
	double ratio = (double)p->b_value / (double)p->a_value;

	return one_place(a, b) && b->bytes >= a->bytes &&
	       (double)b->bytes <= (double)a->bytes * ratio * ratio + 512;
}

static int32_t *reach_at(const struct pair *p, int d, int k)
{
	return &p->reach[d * (d + 1) + k + d];
}

/* The beginning of diagonal k with d left out: one step from a neighbour with d - 1. */
static int32_t begin_of(const struct pair *p, int d, int k, bool *down)
{
	*down = k == -d || (k != d && *reach_at(p, d - 1, k - 1) < *reach_at(p, d - 1, k + 1));
	return *down ? *reach_at(p, d - 1, k + 1) : *reach_at(p, d - 1, k - 1) + 1;
}

static void keep_path(const struct pair *p, size_t i, size_t j, int d, int k)
{
	for (;; d--) {
		bool down = false;
		int32_t x = *reach_at(p, d, k), begin = d ? begin_of(p, d, k, &down) : 0;

		for (; x > begin; x--)
			p->match[i + (size_t)x - 1] = j + (size_t)(x - k) - 1;
		if (!d)
			return;
		k += down ? 1 : -1;
	}
}

/* Matches one stretch from *i, *j on. Drops diagonals that leave the lists. */
static void walk(const struct pair *p, size_t *i, size_t *j)
{
	int32_t a = (int32_t)FRAG_MIN(p->a->count - *i, (size_t)INT32_MAX / 2);
	int32_t b = (int32_t)FRAG_MIN(p->b->count - *j, (size_t)INT32_MAX / 2);
	int best_k = 0;
	int32_t far = -1;

	for (int d = 0; d <= STRETCH; d++) {
		far = -1;
		for (int k = -d; k <= d; k += 2) {
			bool down;
			int32_t x = d ? begin_of(p, d, k, &down) : 0, y = x - k;

			while (x >= 0 && y >= 0 && x < a && y < b &&
			       alike(p, *i + (size_t)x, *j + (size_t)y)) {
				x++;
				y++;
			}
			*reach_at(p, d, k) = x;
			if (x <= a && y <= b && x + y > far) {
				far = x + y;
				best_k = k;
			}
		}
		if (far == a + b || d == STRETCH) {
			keep_path(p, *i, *j, d, best_k);
			*i += (size_t)((far + best_k) / 2);
			*j += (size_t)((far - best_k) / 2);
			return;
		}
	}
}

/* Matches the rest between two matches: each request with the first possible one. */
static void fill_gaps(const struct pair *p)
{
	size_t i = 0, j = 0;

	while (i < p->a->count) {
		size_t end = i, other;

		if (p->match[i] != SIZE_MAX) {
			j = p->match[i++] + 1;
			continue;
		}
		while (end < p->a->count && p->match[end] == SIZE_MAX)
			end++;
		other = end < p->a->count ? p->match[end] : p->b->count;
		for (; i < end && j < other; i++) {
			size_t k = j;

			while (k < other && !possible(p, i, k))
				k++;
			if (k < other) {
				p->match[i] = k;
				j = k + 1;
			}
		}
		i = end;
	}
}

static int match_pair(struct pair *p, struct frag_err *err)
{
	size_t i = 0, j = 0, matched = 0;

	p->reach = frag_host_alloc((STRETCH + 1) * (STRETCH + 2) * sizeof(*p->reach));
	FRAG_CHECK_ALLOC(p->reach, "requests", err);
	for (size_t n = 0; n < p->a->count; n++)
		p->match[n] = SIZE_MAX;
	while (i < p->a->count && j < p->b->count)
		walk(p, &i, &j);
	frag_host_free(p->reach);
	fill_gaps(p);
	for (size_t n = 0; n < p->a->count; n++)
		matched += p->match[n] != SIZE_MAX;
	if (2 * matched < FRAG_MIN(p->a->count, p->b->count))
		return frag_fail(err, FRAG_EINPUT,
				 "the recordings at %llu and %llu are not of the same program: "
				 "only %zu of %zu and %zu requests match",
				 (unsigned long long)p->a_value, (unsigned long long)p->b_value,
				 matched, p->a->count, p->b->count);
	return 0;
}

int frag_scale_match(const struct frag_scale_list *base, uint64_t base_value,
		     const struct frag_scale_list *other, uint64_t value, size_t *match,
		     struct frag_err *err)
{
	struct pair p = { base, other, base_value, value, match, NULL };
	int rc;

	if (value >= base_value)
		return match_pair(&p, err);
	p = (struct pair){ other, base, value, base_value, NULL, NULL };
	FRAG_TRY_CALLOC(p.match, other->count + 1, "requests", err);
	rc = match_pair(&p, err);
	for (size_t i = 0; i < base->count; i++)
		match[i] = SIZE_MAX;
	for (size_t i = 0; !rc && i < other->count; i++)
		if (p.match[i] != SIZE_MAX)
			match[p.match[i]] = i;
	frag_host_free(p.match);
	return rc;
}
