/* SPDX-License-Identifier: Apache-2.0 */
/* Events from memory or from a file; see events.h. */
#include "events.h"

#include "trace/source.h"

#define BATCH 65536u

static int from_memory(const struct frag_trace_dev *dev, frag_events_fn fn, void *ctx,
		       struct frag_err *err)
{
	int rc = 0;

	for (size_t at = 0, n; !rc && at < dev->events_count; at += n) {
		n = FRAG_MIN(dev->events_count - at, (size_t)BATCH);
		rc = fn(ctx, dev->events + at, n, at, err);
	}
	return FRAG_MIN(rc, 0);
}

static int from_file(struct frag_source *src, uint32_t dev, frag_events_fn fn, void *ctx,
		     struct frag_err *err)
{
	struct frag_batch batch;
	int rc;

	FRAG_TRY(frag_source_pass(src, dev, err));
	while ((rc = frag_source_next(src, &batch, err)) == 1 && batch.dev == dev) {
		rc = fn(ctx, batch.events, batch.count, batch.first, err);
		if (rc)
			break;
	}
	return FRAG_MIN(rc, 0);
}

int frag_events_each(const struct frag_events *ev, frag_events_fn fn, void *ctx,
		     struct frag_err *err)
{
	FRAG_AUTO(frag_source_close_at) struct frag_source *src = NULL;

	if (!ev->path)
		return from_memory(frag_events_dev(ev), fn, ctx, err);
	FRAG_TRY(frag_source_open(ev->path, &src, err));
	return from_file(src, ev->dev, fn, ctx, err);
}
