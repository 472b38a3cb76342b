/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private pools of CUDA graphs. begin names a pool and a filter for streams; until the end requests
 * of these streams belong to it. PyTorch takes a reference with each begin and drops one with each
 * release (2.1 drops one more: unknown ones are passed over). A pool without references gives back
 * its memory, except what live tensors hold, with the next empty_cache or retry, as PyTorch's do;
 * then its number is free again.
 */
#include "live_core.h"

#include "lib/grow.h"

enum { FILTER_CLONE = 2, FILTER_DESTROY = 3 }; /* of std::_Manager_operation */

static struct frag_live_pool *find(const struct frag_live_dev *d, struct frag_live_pool_id id)
{
	for (size_t i = 0; i < d->pools_count; i++) {
		struct frag_live_pool *p = &d->pools[i];

		if (p->used && p->id.a == id.a && p->id.b == id.b)
			return p;
	}
	return NULL;
}

static struct frag_live_pool *add(struct frag_live_dev *d, struct frag_live_pool_id id)
{
	struct frag_live_pool *p = NULL;

	for (size_t i = 0; i < d->pools_count && !p; i++)
		if (!d->pools[i].used)
			p = &d->pools[i];
	if (!p) {
		if (d->pools_count == UINT16_MAX - 1 ||
		    FRAG_GROW(d->pools, d->pools_count, d->pools_cap, "pools", NULL))
			return NULL;
		p = &d->pools[d->pools_count++];
	}
	*p = (struct frag_live_pool){ .id = id, .serial = ++d->pools_serial, .used = true };
	return p;
}

uint16_t frag_live_pool_of(const struct frag_live_dev *d, void *stream)
{
	for (unsigned i = 0; i < d->captures_count; i++) {
		const struct frag_live_capture *c = &d->captures[i];

		if (c->by_filter ? c->filter.invoker(&c->filter, &stream) : c->stream == stream)
			return c->pool;
	}
	return 0;
}

/* The second policy, where the first knows no pools. */
static int aside(struct frag_live_dev *d, struct frag_err *err)
{
	struct frag_policy_env env = d->main.env;

	if (d->aside.ops || frag_policy_spec_core(frag_live.spec)->flags & FRAG_POLICY_POOLS)
		return 0;
	return frag_policy_create(frag_live.aside, &env, &d->aside, err);
}

/* On failure the default pool serves; unsafe for the graph, so the next request reports it. */
static struct frag_live_capture *begin(struct frag_live_dev *d, struct frag_live_pool_id id)
{
	struct frag_live_pool *p = find(d, id);
	struct frag_live_capture *c;

	if (d->captures_count == FRAG_LIVE_CAPTURES_MAX || aside(d, &d->problem))
		return NULL;
	p = p ? p : add(d, id);
	if (!p)
		return NULL;
	/* work of a stream that is captured can no longer be waited for */
	if (d->handed && !d->captures_count && !frag_dev_sync_all(d->dev, &d->problem))
		frag_live_left_forget(d);
	p->refs++;
	c = &d->captures[d->captures_count++];
	*c = (struct frag_live_capture){ .pool = (uint16_t)(p - d->pools + 1) };
	d->card->captures++;
	return c;
}

static void end(struct frag_live_dev *d, unsigned i)
{
	struct frag_live_capture *c = &d->captures[i];

	if (c->by_filter && c->filter.manager)
		c->filter.manager(&c->filter, &c->filter, FILTER_DESTROY);
	*c = d->captures[--d->captures_count];
	d->card->captures--;
}

void frag_live_begin_stream(int device, frag_live_stream stream, struct frag_live_pool_id id)
{
	FRAG_LIVE_WITH (d, frag_live_opened(device)) {
		struct frag_live_capture *c = begin(d, id);

		if (c)
			c->stream = stream;
	}
}

void frag_live_begin_pool(int device, struct frag_live_pool_id id, void *filter)
{
	const struct frag_live_filter *of = filter;

	FRAG_LIVE_WITH (d, frag_live_opened(device)) {
		struct frag_live_capture *c = begin(d, id);

		if (!c)
			continue;
		c->by_filter = true;
		c->filter = *of;
		if (of->manager)
			of->manager(&c->filter, of, FILTER_CLONE);
	}
}

void frag_live_end_stream(int device, frag_live_stream stream)
{
	FRAG_LIVE_WITH (d, frag_live_known(device))
		for (unsigned i = d->captures_count; i-- > 0;)
			if (!d->captures[i].by_filter && d->captures[i].stream == stream)
				end(d, i);
}

void frag_live_end_pool(int device, struct frag_live_pool_id id)
{
	FRAG_LIVE_WITH (d, frag_live_known(device)) {
		const struct frag_live_pool *p = find(d, id);
		unsigned i = 0;

		while (p && i < d->captures_count && d->captures[i].pool != p - d->pools + 1)
			i++;
		if (p && i < d->captures_count)
			end(d, i);
	}
}

void frag_live_release_pool(int device, struct frag_live_pool_id id)
{
	FRAG_LIVE_WITH (d, frag_live_known(device)) {
		struct frag_live_pool *p = find(d, id);

		if (p && p->refs)
			p->refs--;
	}
}

int frag_live_pools_trim(struct frag_live_dev *d, struct frag_err *err)
{
	struct frag_policy *policy = d->aside.ops ? &d->aside : &d->main;

	for (size_t i = 0; i < d->pools_count; i++) {
		struct frag_live_pool *p = &d->pools[i];

		if (!p->used || p->refs)
			continue;
		if (policy->ops->trim)
			FRAG_TRY(policy->ops->trim(policy->self, (uint16_t)(i + 1), err));
		frag_live_note(d, "trim", NULL, 0, NULL, p->serial);
		p->used = p->live != 0;
	}
	return 0;
}
