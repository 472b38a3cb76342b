/* SPDX-License-Identifier: Apache-2.0 */
/* A repeated trace, written while it is made: its length costs no memory. */
#include "gen_repeat.h"

#include "base/interrupt.h"
#include "base/term.h"
#include "trace/cft/cft_stream.h"

struct output {
	struct frag_cft_stream *stream;
	struct frag_progress progress;
	uint64_t done, total;
};

static int put_events(void *ctx, const struct frag_event *events, size_t count,
		      struct frag_err *err)
{
	struct output *o = ctx;

	o->done += count;
	frag_progress_update(&o->progress, o->done, o->total);
	if (frag_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted");
	return frag_cft_stream_put(o->stream, events, count, err);
}

int frag_repeat_write(const struct frag_repeat *r, const char *path, struct frag_err *err)
{
	struct output out = { .total = r->events };
	int rc;

	FRAG_TRY(frag_cft_stream_open(path, &r->head, &out.stream, err));
	frag_progress_begin(&out.progress, "writing");
	rc = frag_repeat_run(r, put_events, &out, err);
	frag_progress_end(&out.progress);
	if (!rc)
		return frag_cft_stream_close(out.stream, err);
	frag_cft_stream_abort(out.stream);
	return rc;
}
