/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay of a .cft block by block; see stream.h. One source provides the events. Recorded addresses
 * follow the events in the file, so they come from a second source, that of the hints, which skips the
 * events when the first segment is requested.
 */
#include "stream.h"
#include "run.h"

#include "trace/ahead.h"
#include "trace/source.h"
/* One pass over the file. */
struct pass {
	struct frag_stream *stream;
	struct frag_source *source;
	struct frag_ahead *ahead;
};

static int begin(struct pass *p, struct frag_err *err)
{
	struct frag_stream *s = p->stream;

	p->source = s->source;
	if (!p->source)
		FRAG_TRY(frag_source_open(s->path, &p->source, err));
	FRAG_TRY(frag_source_pass(p->source, s->dev, err));
	return s->ahead ? frag_source_ahead(p->source, &p->ahead, err) : 0;
}

static int next(struct pass *p, struct frag_batch *batch, struct frag_err *err)
{
	return p->ahead ? frag_source_ahead_next(p->ahead, batch, err)
			: frag_source_next(p->source, batch, err);
}

static int feed_events(struct pass *p, struct frag_run *run, struct frag_err *err)
{
	struct frag_batch batch;
	int rc = 0;

	while (!frag_run_stopped(run) && (rc = next(p, &batch, err)) == 1) {
		if (batch.dev != p->stream->dev)
			break;
		FRAG_TRY(frag_feed_batch(run, batch.events, batch.count, err));
		p->stream->last_us = batch.events[batch.count - 1].time_us;
	}
	return FRAG_MIN(rc, 0);
}

/* Checks the rest of the file, because no result counts before the last byte is checked. If a run
 * ended early, also unpacks the last event for its time. */
static int finish(struct pass *p, struct frag_err *err)
{
	uint32_t all = frag_source_head(p->source)->devs_count;
	struct frag_batch batch;
	int rc = 1;

	while (rc == 1) {
		rc = next(p, &batch, err);
		if (rc != 1 || batch.dev != p->stream->dev)
			break;
		p->stream->last_us = batch.events[batch.count - 1].time_us;
	}
	FRAG_TRY(FRAG_MIN(rc, 0));
	frag_ahead_stop(p->ahead);
	p->ahead = NULL;
	return frag_source_pass(p->source, all, err);
}

static int feed(void *ctx, struct frag_run *run, struct frag_hints *hints, bool again,
		struct frag_err *err)
{
	struct pass *p = ctx;
	int rc;

	*p = (struct pass){ .stream = p->stream };
	hints->path = p->stream->path;
	hints->dev = p->stream->dev;
	rc = begin(p, err) ?: feed_events(p, run, err) ?: frag_hints_fault(hints, err);
	if (!rc && !again)
		rc = finish(p, err);
	frag_ahead_stop(p->ahead);
	if (p->source != p->stream->source)
		frag_source_close(p->source);
	frag_hints_release(hints);
	return rc;
}

int frag_replay_stream(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		       struct frag_stream *stream, const struct frag_run_options *opt,
		       struct frag_result *out, struct frag_err *err)
{
	struct pass pass = { .stream = stream };
	const struct frag_feeder feeder = {
		.hdr = stream->hdr, .feed = feed, .ctx = &pass, .once = stream->source != NULL
	};

	return frag_replay_fed(spec, card, &feeder, opt, out, err);
}
