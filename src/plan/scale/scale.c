/* SPDX-License-Identifier: Apache-2.0 */
/* A program at a value that was not recorded; see scale.h. */
#include "scale.h"

static int check_part(const struct frag_scaling_part *p, struct frag_err *err)
{
	const struct frag_trace_dev *dev = p->dev;
	unsigned long long value = p->value;

	for (size_t i = 0; i < dev->events_count; i++) {
		if (dev->events[i].kind == FRAG_EV_REFUSED)
			return frag_fail(err, FRAG_EINPUT,
					 "the recording at %llu ran out of memory at event %zu, so "
					 "it cannot be scaled; record it with more memory",
					 value, i);
		if (dev->events[i].flags & FRAG_EVF_INITIAL)
			return frag_fail(err, FRAG_EINPUT,
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

/* Both have the same requests: do these end at the same places? The order of frees between two
 * requests makes no difference to an allocator. */
static int count_moved(struct frag_scaling *s, size_t k, const struct frag_trace_dev *other,
		       struct frag_err *err)
{
	FRAG_AUTO_FREE size_t *a = list_ends(s->base, s->requests),
			      *b = list_ends(other, s->requests);

	FRAG_CHECK_ALLOC(a && b, "requests", err);
	for (uint64_t i = 0; i < s->requests; i++)
		s->moved[k] += a[i] != b[i];
	return 0;
}

static int match_part(struct frag_scaling *s, const struct frag_scaling_part *part, size_t k,
		      const struct frag_scale_list *base, struct frag_err *err)
{
	FRAG_AUTO(frag_scale_list_release) struct frag_scale_list list = { 0 };
	FRAG_AUTO_FREE size_t *match = frag_host_calloc(base->count + 1, sizeof(*match));
	size_t matched = 0;
	int rc = frag_scale_list_make(part->dev, &list, err);

	if (!rc && !match)
		rc = frag_fail_nomem(err, "requests");
	if (!rc)
		rc = frag_scale_match(base, s->values[s->base_part], &list, part->value, match,
				      err);
	for (size_t i = 0; !rc && i < base->count; i++) {
		if (match[i] == SIZE_MAX)
			continue;
		s->sizes[i * s->count + k] = list.items[match[i]].bytes;
		matched++;
	}
	s->unmatched[k] = list.count + base->count - 2 * matched;
	if (!rc && !s->unmatched[k])
		rc = count_moved(s, k, part->dev, err);
	return rc;
}

static void count_laws(struct frag_scaling *s)
{
	for (uint64_t i = 0; i < s->requests; i++) {
		const uint64_t *sizes = &s->sizes[i * s->count];
		enum frag_scaling_law law;

		frag_scaling_size(s->values, sizes, s->count, s->base_part, s->values[s->base_part],
				  FRAG_SCALING_LOW, &law);
		s->laws[law]++;
	}
}

int frag_scaling_make(const struct frag_scaling_part *parts, size_t count, size_t base,
		      struct frag_scaling *out, struct frag_err *err)
{
	FRAG_AUTO(frag_scale_list_release) struct frag_scale_list list = { 0 };
	int rc = 0;

	*out = (struct frag_scaling){ .base = parts[base].dev, .count = count, .base_part = base };
	for (size_t k = 0; !rc && k < count; k++) {
		out->values[k] = parts[k].value;
		rc = check_part(&parts[k], err);
	}
	if (!rc)
		rc = frag_scale_list_make(out->base, &list, err);
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
	if (!rc)
		count_laws(out);
	else
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
