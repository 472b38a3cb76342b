/* SPDX-License-Identifier: Apache-2.0 */
/* A program at a value that was not recorded; see scale.h. */
#include "scale.h"

#define STRETCH 400

/* ---- requests of two recordings, matched ---- */

/*
 * Matches the requests of two recordings. Requests of one stream and pool match if their sizes are
 * equal, or proportional to the value or its square. Of all ways to walk both lists in order, takes
 * the one that leaves out the fewest requests (Myers, An O(ND) difference algorithm, 1986), in
 * stretches of at most STRETCH left out, so that time and memory stay linear. Requests left out on
 * both sides between two matches are then matched in order, if their sizes allow.
 */
struct scale_item {
	uint64_t bytes;
	uint16_t pool, stream;
};
struct scale_list { /* the requests of a device, in order */
	struct scale_item *items;
	size_t count;
};

static int list_make(const struct frag_trace_dev *dev, struct scale_list *out, struct frag_err *err)
{
	size_t count = 0;

	*out = (struct scale_list){ 0 };
	for (size_t i = 0; i < dev->events_count; i++)
		count += dev->events[i].kind == FRAG_EV_ALLOC;
	FRAG_TRY_CALLOC(out->items, count + 1, "requests", err);
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC)
			out->items[out->count++] =
				(struct scale_item){ e->bytes, (uint16_t)e->pool, e->stream };
	}
	return 0;
}

static void list_release(struct scale_list *l)
{
	frag_host_free(l->items);
	*l = (struct scale_list){ 0 };
}

__extension__ typedef unsigned __int128 wide;

struct pair {
	const struct scale_list *a, *b; /* b is at the larger value, or the same */
	uint64_t a_value, b_value;
	size_t *match; /* for each request of a: the one of b */
	/* reach[d * (d + 1) + k + d]: progress in a with d left out, on diagonal k */
	int32_t *reach;
};

static bool one_place(const struct scale_item *a, const struct scale_item *b)
{
	return a->stream == b->stream && a->pool == b->pool;
}

static bool alike(const struct pair *p, size_t i, size_t j)
{
	const struct scale_item *a = &p->a->items[i], *b = &p->b->items[j];
	wide x = a->bytes, y = b->bytes;

	return one_place(a, b) && (x == y || x * p->b_value == y * p->a_value ||
				   x * p->b_value * p->b_value == y * p->a_value * p->a_value);
}

/* May they be the same request with another law? */
static bool possible(const struct pair *p, size_t i, size_t j)
{
	const struct scale_item *a = &p->a->items[i], *b = &p->b->items[j];
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
		return FRAG_INPUT(err,
				  "the recordings at %llu and %llu are not of the same program: "
				  "only %zu of %zu and %zu requests match",
				  (unsigned long long)p->a_value, (unsigned long long)p->b_value,
				  matched, p->a->count, p->b->count);
	return 0;
}

/* match[i]: the request of `other` that matches request i of base, SIZE_MAX = none; ascending. */
static int match_lists(const struct scale_list *base, uint64_t base_value,
		       const struct scale_list *other, uint64_t value, size_t *match,
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

/* ---- the trace at a value ---- */

static int check_part(const struct frag_scaling_part *p, struct frag_err *err)
{
	const struct frag_trace_dev *dev = p->dev;
	unsigned long long value = p->value;

	for (size_t i = 0; i < dev->events_count; i++) {
		if (dev->events[i].kind == FRAG_EV_REFUSED)
			return FRAG_INPUT(err,
					  "the recording at %llu ran out of memory at event %zu, "
					  "so it cannot be scaled; record it with more memory",
					  value, i);
		if (dev->events[i].flags & FRAG_EVF_INITIAL)
			return FRAG_INPUT(err,
					  "the recording at %llu starts with live blocks whose "
					  "order is unknown; record from the start",
					  value);
	}
	return 0;
}

/* For each request, the number of requests before its end; SIZE_MAX: no end. */
static size_t *list_ends(const struct frag_trace_dev *dev, size_t requests)
{
	FRAG_AUTO_FREE size_t *owner = frag_host_calloc(dev->slots_count + 1, sizeof(*owner));
	size_t *ends = owner ? frag_host_alloc((requests + 1) * sizeof(*ends)) : NULL, request = 0;

	for (size_t i = 0; ends && i < requests; i++)
		ends[i] = SIZE_MAX;
	for (size_t i = 0; ends && i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC)
			owner[e->slot] = request++;
		else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_REQUESTED)
			ends[owner[e->slot]] = request;
	}
	return ends;
}

static int match_part(struct frag_scaling *s, const struct frag_scaling_part *part, size_t k,
		      const struct scale_list *base, struct frag_err *err)
{
	FRAG_AUTO(list_release) struct scale_list list = { 0 };
	FRAG_AUTO_FREE size_t *match = NULL, *ends = NULL, *others = NULL;

	FRAG_TRY_CALLOC(match, base->count + 1, "requests", err);
	FRAG_TRY(list_make(part->dev, &list, err));
	FRAG_TRY(match_lists(base, s->values[s->base_part], &list, part->value, match, err));
	s->unmatched[k] = list.count + base->count;
	for (size_t i = 0; i < base->count; i++) {
		if (match[i] == SIZE_MAX)
			continue;
		s->sizes[i * s->count + k] = list.items[match[i]].bytes;
		s->unmatched[k] -= 2;
	}
	if (s->unmatched[k])
		return 0;
	/* The same requests: do they end at the same places? The order of frees between two
	 * requests makes no difference to an allocator. */
	ends = list_ends(s->base, s->requests);
	others = list_ends(part->dev, s->requests);
	FRAG_CHECK_ALLOC(ends && others, "requests", err);
	for (uint64_t i = 0; i < s->requests; i++)
		s->moved[k] += ends[i] != others[i];
	return 0;
}

int frag_scaling_make(const struct frag_scaling_part *parts, size_t count, size_t base,
		      struct frag_scaling *out, struct frag_err *err)
{
	FRAG_AUTO(list_release) struct scale_list list = { 0 };
	enum frag_scaling_law law;
	int rc = 0;

	*out = (struct frag_scaling){ .base = parts[base].dev, .count = count, .base_part = base };
	for (size_t k = 0; !rc && k < count; k++) {
		out->values[k] = parts[k].value;
		rc = check_part(&parts[k], err);
	}
	if (!rc)
		rc = list_make(out->base, &list, err);
	out->requests = list.count;
	if (!rc) {
		out->sizes = frag_host_alloc((list.count * count + 1) * sizeof(*out->sizes));
		rc = out->sizes ? 0 : frag_fail_nomem(err, "requests");
	}
	for (size_t i = 0; !rc && i < list.count * count; i++)
		out->sizes[i] = i % count == base ? list.items[i / count].bytes : UINT64_MAX;
	for (size_t k = 0; !rc && k < count; k++)
		if (k != base)
			rc = match_part(out, &parts[k], k, &list, err);
	for (uint64_t i = 0; !rc && i < out->requests; i++) {
		frag_scaling_size(out->values, &out->sizes[i * count], count, base,
				  out->values[base], FRAG_SCALING_LOW, &law);
		out->laws[law]++;
	}
	if (rc)
		frag_scaling_release(out);
	return rc;
}

void frag_scaling_release(struct frag_scaling *s)
{
	frag_host_free(s->sizes);
	*s = (struct frag_scaling){ 0 };
}

bool frag_scaling_exact(const struct frag_scaling *s, uint64_t value)
{
	bool beyond = value > s->values[s->count - 1];
	size_t first = beyond || !s->base_part ? 0 : s->base_part - 1;
	size_t last = beyond || !s->base_part ? s->count - 1 : s->base_part;

	for (size_t k = first; k <= last; k++)
		if (s->unmatched[k] || s->moved[k])
			return false;
	return !s->laws[FRAG_SCALING_UNKNOWN] && !s->laws[FRAG_SCALING_ONCE] &&
	       (!beyond || s->count > 2 || !s->laws[FRAG_SCALING_AFFINE]);
}

int frag_scaling_dev(const struct frag_scaling *s, uint64_t value, enum frag_scaling_bound bound,
		     struct frag_trace_dev *out, struct frag_err *err)
{
	const struct frag_trace_dev *base = s->base;
	FRAG_AUTO_FREE uint64_t *bytes = frag_host_calloc(base->slots_count + 1, sizeof(*bytes));
	uint64_t request = 0;
	enum frag_scaling_law law;

	*out = *base;
	out->events = frag_host_alloc((base->events_count + 1) * sizeof(*out->events));
	out->has_evidence = false;
	out->addrs = NULL;
	out->seen = NULL;
	out->seen_count = 0;
	out->final_segments = NULL;
	out->final_blocks = NULL;
	out->final_segments_count = out->final_blocks_count = 0;
	out->settled = (struct frag_settled){ 0 };
	if (!out->events || !bytes) {
		frag_scaling_dev_release(out);
		return frag_fail_nomem(err, "scaled trace");
	}
	for (size_t i = 0; i < base->events_count; i++) {
		struct frag_event e = base->events[i];

		if (e.kind == FRAG_EV_ALLOC)
			bytes[e.slot] =
				frag_scaling_size(s->values, &s->sizes[request++ * s->count],
						  s->count, s->base_part, value, bound, &law);
		if (e.kind <= FRAG_EV_FREE_COMPLETED) {
			if (bytes[e.slot] > FRAG_MAX_REQUEST) {
				frag_scaling_dev_release(out);
				return frag_fail(
					err, FRAG_EINPUT,
					"at %llu, request %llu would be larger than any memory",
					(unsigned long long)value, (unsigned long long)request);
			}
			e.bytes = bytes[e.slot] & FRAG_MAX_REQUEST;
		}
		out->events[i] = e;
	}
	return 0;
}

void frag_scaling_dev_release(struct frag_trace_dev *dev)
{
	frag_host_free(dev->events);
	dev->events = NULL;
}
