/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads traces in order with bounded memory. Of a .cft only one batch of events, the slots of one
 * device and the head are in memory. Other formats must be read whole before their first event is
 * known; they are returned in the same batches.
 */
#include "source.h"

#include <string.h>
#include <sys/stat.h>

#include "ahead.h"
#include "events.h"
#include "trace/cft/cft.h"

struct frag_source {
	struct frag_input *in;
	struct frag_trace *whole; /* another format */
	/* .cft */
	struct frag_cft_parser parser; /* of another format: only where it is */
	struct frag_event *batch;      /* [FRAG_CFT_BATCH], made when it is needed */
	struct frag_evidence *seen;    /* [FRAG_CFT_BATCH], likewise */
	struct frag_sums sums;	       /* of the current device */
	int failed;		       /* sticky */
	struct frag_err fault;
};

/* A regular file is opened again. A pipe cannot be, but nothing has been consumed yet, so its
 * reader still gets all bytes. */
static int read_whole(struct frag_source *src, const char *path, struct frag_err *err)
{
	struct stat st;

	if (strcmp(path, "-") && !stat(path, &st) && S_ISREG(st.st_mode))
		return frag_trace_read(path, NULL, &src->whole, err);
	return frag_trace_read_input(src->in, "-", NULL, &src->whole, err);
}

static int open_source(const char *path, bool cft_only, struct frag_source **out,
		       struct frag_err *err)
{
	FRAG_AUTO(frag_source_close_at) struct frag_source *src = NULL;
	const unsigned char *bytes;
	bool cft;
	size_t got;

	FRAG_TRY_CALLOC(src, 1, "trace", err);
	FRAG_TRY(frag_input_open(path, &src->in, err));
	FRAG_TRY(frag_input_peek(src->in, FRAG_CFT_MAGIC_BYTES, &bytes, &got, err));
	cft = frag_cft_is_magic(bytes, got);
	if (cft)
		FRAG_TRY(frag_cft_parser_open(&src->parser, src->in, err));
	else if (!cft_only)
		FRAG_TRY(read_whole(src, path, err));
	if (cft && !src->parser.trace->name) {
		src->parser.trace->name = frag_trace_short_name(path);
		FRAG_CHECK_ALLOC(src->parser.trace->name, "name of the trace", err);
	}
	*out = cft || !cft_only ? FRAG_GIVE(src) : NULL;
	return 0;
}

int frag_source_open(const char *path, struct frag_source **out, struct frag_err *err)
{
	return open_source(path, false, out, err);
}

int frag_source_open_cft(const char *path, struct frag_source **out, struct frag_err *err)
{
	return open_source(path, true, out, err);
}

const struct frag_trace *frag_source_head(const struct frag_source *src)
{
	return src->whole ? src->whole : src->parser.trace;
}

const struct frag_trace_dev *frag_source_declared(const struct frag_source *src, uint32_t dev)
{
	return src->whole ? &src->whole->devs[dev] : &src->parser.declared[dev].dev;
}

static int next_of_whole(struct frag_source *src, struct frag_batch *out)
{
	struct frag_cft_parser *p = &src->parser;

	for (; p->dev < src->whole->devs_count; p->dev++, p->handed = 0) {
		const struct frag_trace_dev *dev = &src->whole->devs[p->dev];
		uint64_t left = dev->events_count - p->handed;

		if (!left)
			continue;
		*out = (struct frag_batch){ .dev = p->dev,
					    .events = dev->events + p->handed,
					    .count = FRAG_MIN(left, (uint64_t)FRAG_CFT_BATCH),
					    .first = p->handed };
		p->handed += out->count;
		return 1;
	}
	return 0;
}

/* The next block of events, into `to` or a buffer of the source's own. */
static int next_of_cft(struct frag_source *src, struct frag_event *to, struct frag_batch *out,
		       struct frag_err *err)
{
	struct frag_cft_parser *p = &src->parser;

	while (p->dev < p->trace->devs_count) {
		uint64_t first = p->handed;

		if (first == p->trace->devs[p->dev].events_count) {
			src->sums = (struct frag_sums){ 0 };
			FRAG_TRY(frag_cft_parser_leave(p, false, err));
			continue;
		}
		if (!to && !src->batch)
			src->batch = frag_host_alloc(FRAG_CFT_BATCH * sizeof(*src->batch));
		to = to ? to : src->batch;
		FRAG_CHECK_ALLOC(to, "trace batch", err);
		*out = (struct frag_batch){ .dev = p->dev, .events = to, .first = first };
		FRAG_TRY(frag_cft_parser_events(p, to, NULL, &out->count, err));
		FRAG_TRY(frag_sums_add(&src->sums, to, out->count, first, err));
		return 1;
	}
	return 0;
}

/* Errors are sticky: every later call returns the first one. */
static int failed_before(const struct frag_source *src, struct frag_err *err)
{
	if (src->failed && err)
		*err = src->fault;
	return src->failed;
}

static int keep_failure(struct frag_source *src, int rc, struct frag_err *err)
{
	if (rc < 0) {
		src->failed = rc;
		if (err)
			*err = src->fault;
	}
	return rc;
}

static int next_into(struct frag_source *src, struct frag_event *to, struct frag_batch *out,
		     struct frag_err *err)
{
	if (src->whole)
		return next_of_whole(src, out);
	FRAG_TRY(failed_before(src, err));
	return keep_failure(src, next_of_cft(src, to, out, &src->fault), err);
}

int frag_source_next(struct frag_source *src, struct frag_batch *out, struct frag_err *err)
{
	return next_into(src, NULL, out, err);
}

struct piece { /* of a source that is read ahead */
	struct frag_batch batch;
	struct frag_event room[FRAG_CFT_BATCH];
};

static int make_piece(void *ctx, void *slot, struct frag_err *err)
{
	struct piece *p = slot;

	return next_into(ctx, p->room, &p->batch, err);
}

int frag_source_ahead(struct frag_source *src, struct frag_ahead **out, struct frag_err *err)
{
	*out = frag_ahead_start(make_piece, src, sizeof(struct piece));
	return *out ? 0 : frag_fail_nomem(err, "trace batches");
}

int frag_source_ahead_next(struct frag_ahead *a, struct frag_batch *out, struct frag_err *err)
{
	void *slot;
	int rc = frag_ahead_next(a, &slot, err);

	if (rc == 1)
		*out = ((const struct piece *)slot)->batch;
	return rc;
}

/* Passes over the remaining events of the current device. */
static int pass_events(struct frag_cft_parser *p, struct frag_err *err)
{
	size_t n;

	while (p->handed < p->trace->devs[p->dev].events_count)
		FRAG_TRY(frag_cft_parser_events(p, NULL, NULL, &n, err));
	return 0;
}

static int pass_devices(struct frag_cft_parser *p, uint32_t dev, struct frag_err *err)
{
	while (p->dev < FRAG_MIN(dev, p->trace->devs_count))
		FRAG_TRY(pass_events(p, err) ?: frag_cft_parser_leave(p, false, err));
	return 0;
}

int frag_source_pass(struct frag_source *src, uint32_t dev, struct frag_err *err)
{
	if (src->whole) {
		src->parser.handed = src->parser.dev < dev ? 0 : src->parser.handed;
		src->parser.dev = FRAG_MAX(src->parser.dev, dev);
		return 0;
	}
	src->sums = (struct frag_sums){ 0 };
	FRAG_TRY(failed_before(src, err));
	return keep_failure(src, pass_devices(&src->parser, dev, &src->fault), err);
}

static int next_seen(struct frag_source *src, uint32_t dev, size_t *count, struct frag_err *err)
{
	struct frag_cft_parser *p = &src->parser;
	uint64_t left;

	FRAG_TRY(pass_devices(p, dev, err));
	left = p->declared[dev].dev.seen_count - p->seen_handed;
	if (!left)
		return 0;
	if (!src->seen)
		src->seen = frag_host_alloc(FRAG_CFT_BATCH * sizeof(*src->seen));
	FRAG_CHECK_ALLOC(src->seen, "trace batch", err);
	FRAG_TRY(pass_events(p, err) ?: frag_cft_parser_seen(p, left, src->seen, count, err));
	return 1;
}

int frag_source_seen(struct frag_source *src, uint32_t dev, const struct frag_evidence **seen,
		     size_t *count, struct frag_err *err)
{
	int rc;

	FRAG_ASSERT(!src->whole && dev < src->parser.trace->devs_count);
	FRAG_TRY(failed_before(src, err));
	rc = keep_failure(src, next_seen(src, dev, count, &src->fault), err);
	*seen = src->seen;
	return rc;
}

void frag_source_close(struct frag_source *src)
{
	if (!src)
		return;
	frag_cft_parser_release(&src->parser);
	frag_trace_destroy(src->whole);
	FRAG_FREE(src->batch, src->seen);
	frag_input_close(src->in);
	frag_host_free(src);
}

/* ---- events from memory or from a file; see events.h ---- */

static int from_memory(const struct frag_trace_dev *dev, frag_events_fn fn, void *ctx,
		       struct frag_err *err)
{
	int rc = 0;

	for (size_t at = 0, n; !rc && at < dev->events_count; at += n) {
		n = FRAG_MIN(dev->events_count - at, (size_t)FRAG_CFT_BATCH);
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
