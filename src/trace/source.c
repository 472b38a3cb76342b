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
#include "trace/cft/cft_parse.h"
#include "trace/input/input.h"

struct frag_source {
	struct frag_input *in;
	struct frag_trace *whole; /* another format */
	/* .cft */
	struct frag_cft_parser parser;
	struct frag_cft_model model;
	struct frag_event *batch;   /* [FRAG_CFT_BATCH], made when it is needed */
	struct frag_evidence *seen; /* [FRAG_CFT_BATCH], likewise */
	uint64_t seen_handed;

	uint32_t dev;	 /* now, an index */
	uint64_t handed; /* events of it */
	struct frag_sums sums;
	bool modelled; /* `model` is that of `dev` */
	int failed;    /* sticky */
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

void frag_source_counts(const struct frag_source *src, uint32_t dev, struct frag_source_counts *out)
{
	const struct frag_trace_dev *d =
		src->whole ? &src->whole->devs[dev] : &src->parser.declared[dev].dev;

	*out = (struct frag_source_counts){ .seen = d->seen_count,
					    .final_segments = d->final_segments_count,
					    .final_blocks = d->final_blocks_count };
}

static int next_of_whole(struct frag_source *src, struct frag_batch *out)
{
	for (; src->dev < src->whole->devs_count; src->dev++, src->handed = 0) {
		const struct frag_trace_dev *dev = &src->whole->devs[src->dev];
		uint64_t left = dev->events_count - src->handed;

		if (!left)
			continue;
		*out = (struct frag_batch){ .dev = src->dev,
					    .events = dev->events + src->handed,
					    .count = FRAG_MIN(left, (uint64_t)FRAG_CFT_BATCH),
					    .first = src->handed };
		src->handed += out->count;
		return 1;
	}
	return 0;
}

/* The next block of events of the current device, into `to` or a buffer of the source's own. pre: it
 * has events left. */
static int read_batch(struct frag_source *src, struct frag_event *to, struct frag_batch *out,
		      struct frag_err *err)
{
	struct frag_cft_parser *p = &src->parser;
	struct frag_trace_dev *dev = &p->trace->devs[src->dev];
	uint64_t left = dev->events_count - src->handed;

	if (!to && !src->batch)
		src->batch = frag_host_alloc(FRAG_CFT_BATCH * sizeof(*src->batch));
	if (!to)
		to = src->batch;
	FRAG_CHECK_ALLOC(to, "trace batch", err);
	FRAG_TRY(frag_cft_parser_next(p, FRAG_CFT_EVENTS, src->dev, left, err));
	*out = (struct frag_batch){
		.dev = src->dev, .events = to, .count = p->block.count, .first = src->handed
	};
	FRAG_TRY(frag_cft_parser_events(p, &src->model, to, err));
	FRAG_TRY(frag_sums_add(&src->sums, to, out->count, src->handed, err));
	src->handed += out->count;
	if (!p->declared[src->dev].has_addrs)
		return 0;
	return frag_cft_parser_next(p, FRAG_CFT_ADDRS, src->dev, out->count, err);
}

/* Skips the blocks after the events of the current device, and goes to the next device. */
static int leave_device(struct frag_source *src, struct frag_err *err)
{
	struct frag_cft_parser *p = &src->parser;
	const struct frag_trace_dev *declared = &p->declared[src->dev].dev;

	if (src->handed < p->trace->devs[src->dev].initial.blocks_count)
		return frag_cft_bad(err, p->offset, "fewer events than initial blocks");
	FRAG_TRY(frag_cft_parser_skip(p, &frag_cft_seen, src->dev,
				      declared->seen_count - src->seen_handed, err));
	src->seen_handed = 0;
	FRAG_TRY(frag_cft_parser_skip(p, &frag_cft_final_segments, src->dev,
				      declared->final_segments_count, err));
	FRAG_TRY(frag_cft_parser_skip(p, &frag_cft_final_blocks, src->dev,
				      declared->final_blocks_count, err));
	frag_cft_model_release(&src->model);
	src->modelled = false;
	src->handed = 0;
	src->sums = (struct frag_sums){ 0 };
	if (++src->dev == p->trace->devs_count)
		return frag_cft_parser_end(p, err);
	return 0;
}

static int next_of_cft(struct frag_source *src, struct frag_event *to, struct frag_batch *out,
		       struct frag_err *err)
{
	struct frag_trace *t = src->parser.trace;

	if (!t->devs_count && !src->dev++)
		return frag_cft_parser_end(&src->parser, err);
	while (src->dev < t->devs_count) {
		if (!src->modelled)
			FRAG_TRY(frag_cft_model_init(&src->model, t, &t->devs[src->dev], err));
		src->modelled = true;
		if (src->handed < t->devs[src->dev].events_count) {
			FRAG_TRY(read_batch(src, to, out, err));
			return 1;
		}
		FRAG_TRY(leave_device(src, err));
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
	*out = frag_ahead_start(make_piece, src, sizeof(struct piece), 1);
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

/* Skips the remaining events of the current device. */
static int pass_events(struct frag_source *src, struct frag_err *err)
{
	struct frag_cft_parser *p = &src->parser;
	uint64_t events = p->trace->devs[src->dev].events_count, n;

	for (; src->handed < events; src->handed += n) {
		FRAG_TRY(frag_cft_parser_next(p, FRAG_CFT_EVENTS, src->dev, events - src->handed,
					      err));
		n = p->block.count;
		p->events += n;
		if (p->declared[src->dev].has_addrs)
			FRAG_TRY(frag_cft_parser_next(p, FRAG_CFT_ADDRS, src->dev, n, err));
	}
	return 0;
}

static int pass_devices(struct frag_source *src, uint32_t dev, struct frag_err *err)
{
	uint32_t count = src->parser.trace->devs_count;

	while (src->dev < FRAG_MIN(dev, count)) {
		FRAG_TRY(pass_events(src, err));
		FRAG_TRY(leave_device(src, err));
	}
	if (!count && !src->dev++)
		return frag_cft_parser_end(&src->parser, err);
	return 0;
}

int frag_source_pass(struct frag_source *src, uint32_t dev, struct frag_err *err)
{
	if (src->whole) {
		src->handed = src->dev < dev ? 0 : src->handed;
		src->dev = FRAG_MAX(src->dev, dev);
		return 0;
	}
	FRAG_TRY(failed_before(src, err));
	return keep_failure(src, pass_devices(src, dev, &src->fault), err);
}

static int next_seen(struct frag_source *src, uint32_t dev, size_t *count, struct frag_err *err)
{
	struct frag_cft_parser *p = &src->parser;
	uint64_t left = p->declared[dev].dev.seen_count - src->seen_handed;

	if (src->dev < dev)
		FRAG_TRY(pass_devices(src, dev, err));
	if (!left)
		return 0;
	if (!src->seen)
		src->seen = frag_host_alloc(FRAG_CFT_BATCH * sizeof(*src->seen));
	FRAG_CHECK_ALLOC(src->seen, "trace batch", err);
	FRAG_TRY(pass_events(src, err));
	FRAG_TRY(frag_cft_parser_next(p, FRAG_CFT_SEEN, dev, left, err));
	FRAG_TRY(frag_cft_unpack_records(&frag_cft_seen, src->seen, p->block.count, p->scratch,
					 &p->unpacker, err));
	FRAG_TRY(frag_cft_unpack_end(&p->unpacker, err));
	*count = p->block.count;
	src->seen_handed += *count;
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
	frag_cft_model_release(&src->model);
	frag_cft_parser_release(&src->parser);
	frag_trace_destroy(src->whole);
	FRAG_FREE(src->batch, src->seen);
	frag_input_close(src->in);
	frag_host_free(src);
}
