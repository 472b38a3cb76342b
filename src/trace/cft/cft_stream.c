/* SPDX-License-Identifier: Apache-2.0 */
/* Writes .cft event by event. A block has up to FRAG_CFT_BATCH events, but may have fewer. So that
 * many are always collected before one is packed, except at the end of a device: blocks are then
 * the same as for a trace in memory. */
#include "cft_stream.h"

#include <string.h>

#include "cft_write.h"

#define ROOM (4u * FRAG_CFT_BATCH)

struct frag_cft_stream {
	const struct frag_trace *head;
	char *path;
	struct frag_outfile file;
	struct frag_cft_writer writer;
	struct frag_cft_model model; /* of device `dev`, where `modelled` */
	bool modelled;
	uint32_t dev;
	uint64_t taken;		    /* events of it so far, with those that wait */
	struct frag_event *waiting; /* [ROOM] */
	size_t waiting_count;
};

void frag_cft_stream_abort(struct frag_cft_stream *s)
{
	if (!s)
		return;
	frag_outfile_abort(&s->file);
	frag_cft_writer_release(&s->writer);
	frag_cft_model_release(&s->model);
	FRAG_FREE(s->waiting, s->path, s);
}

/* Packs the collected events: all of them at the end of a device, else whole blocks only. */
static int flush(struct frag_cft_stream *s, bool all, struct frag_err *err)
{
	size_t from = 0, n;

	while (s->waiting_count - from >= (all ? 1 : FRAG_CFT_BATCH)) {
		FRAG_TRY(frag_cft_writer_events(&s->writer, s->dev, &s->model, s->waiting + from,
						s->waiting_count - from, &n, err));
		from += n;
	}
	s->waiting_count -= from;
	memmove(s->waiting, s->waiting + from, s->waiting_count * sizeof(*s->waiting));
	return 0;
}

/* Ends devices that have all their events, so that the current one can take more. */
static int end_devices(struct frag_cft_stream *s, struct frag_err *err)
{
	for (; s->dev < s->head->devs_count; s->dev++, s->taken = 0) {
		const struct frag_trace_dev *dev = &s->head->devs[s->dev];

		if (!s->modelled)
			FRAG_TRY(frag_cft_model_init(&s->model, s->head, dev, err));
		s->modelled = true;
		if (s->taken < dev->events_count)
			return 0;
		FRAG_TRY(flush(s, true, err));
		frag_cft_model_release(&s->model);
		s->modelled = false;
	}
	return 0;
}

int frag_cft_stream_open(const char *path, const struct frag_trace *head,
			 struct frag_cft_stream **out, struct frag_err *err)
{
	FRAG_AUTO(frag_cft_stream_abort_at) struct frag_cft_stream *s = NULL;

	FRAG_TRY_CALLOC(s, 1, "trace", err);
	for (uint32_t d = 0; d < head->devs_count; d++)
		FRAG_ASSERT(!head->devs[d].has_evidence && !head->devs[d].addrs &&
			    !head->devs[d].seen_count);
	s->head = head;
	s->path = frag_host_strdup(path);
	s->waiting = frag_host_alloc(ROOM * sizeof(*s->waiting));
	FRAG_CHECK_ALLOC(s->path && s->waiting, "trace block", err);
	FRAG_TRY(frag_outfile_open(&s->file, path, err));
	FRAG_TRY(frag_cft_writer_begin(&s->writer, head, s->file.to, err));
	FRAG_TRY(end_devices(s, err));
	*out = FRAG_GIVE(s);
	return 0;
}

int frag_cft_stream_put(struct frag_cft_stream *s, const struct frag_event *events, size_t count,
			struct frag_err *err)
{
	while (count) {
		uint64_t left;
		size_t n;

		if (s->dev == s->head->devs_count)
			return frag_fail(err, FRAG_EINPUT,
					 "more events than the head of the trace declares");
		left = s->head->devs[s->dev].events_count - s->taken;
		n = FRAG_MIN(count, (size_t)ROOM - s->waiting_count);
		n = (size_t)FRAG_MIN((uint64_t)n, left);
		memcpy(s->waiting + s->waiting_count, events, n * sizeof(*events));
		s->waiting_count += n;
		s->taken += n;
		events += n;
		count -= n;
		if (s->waiting_count == ROOM)
			FRAG_TRY(flush(s, false, err));
		FRAG_TRY(end_devices(s, err));
	}
	return 0;
}

int frag_cft_stream_close(struct frag_cft_stream *stream, struct frag_err *err)
{
	FRAG_AUTO(frag_cft_stream_abort_at) struct frag_cft_stream *s = stream;

	if (s->dev < s->head->devs_count)
		return frag_fail(err, FRAG_EINPUT,
				 "device %u has fewer events than the head of the trace declares",
				 s->head->devs[s->dev].ordinal);
	FRAG_TRY(frag_cft_writer_end(&s->writer, err));
	return frag_cft_commit(&s->file, s->path, err);
}
