/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces in order with bounded memory. A .cft is read block by block: one
 * batch of events, the slots of one device and the head are all that is held.
 * Other formats have to be read whole before their first event is known; they
 * are handed out in the same batches.
 */
#include "source.h"

#include <string.h>
#include <sys/stat.h>

#include "cft_parse.h"
#include "input.h"

struct frag_source {
	struct frag_input *in;
	struct frag_trace *whole; /* another format */
	/* .cft */
	struct frag_cft_parser parser;
	struct frag_cft_model model;
	struct frag_event *batch; /* [FRAG_CFT_BATCH] */

	uint32_t dev;	 /* now, an index */
	uint64_t handed; /* events of it */
	bool modelled;	 /* `model` is that of `dev` */
	int failed;	 /* sticky */
	struct frag_err fault;
};

static int open_cft(struct frag_source *src, struct frag_err *err)
{
	FRAG_TRY(frag_cft_parser_open(&src->parser, src->in, err));
	src->batch = frag_host_alloc(FRAG_CFT_BATCH * sizeof(*src->batch));
	return src->batch ? 0 : frag_fail_nomem(err, "trace batch");
}

/*
 * A regular file is opened again; a pipe cannot be, but so far it has only been looked at,
 * so its reader can still have all of it.
 */
static int read_whole(struct frag_source *src, const char *path, struct frag_err *err)
{
	const struct frag_reader_ops *best = NULL, *const * readers;
	const unsigned char *bytes;
	size_t got, count;
	struct stat st;
	int best_score = 0;

	if (strcmp(path, "-") && !stat(path, &st) && S_ISREG(st.st_mode))
		return frag_trace_read(path, NULL, &src->whole, err);
	FRAG_TRY(frag_input_peek(src->in, FRAG_INPUT_PEEK_MAX, &bytes, &got, err));
	readers = frag_reader_list(&count);
	for (size_t i = 0; i < count; i++) {
		int score = readers[i]->probe(bytes, got);

		if (score > best_score) {
			best_score = score;
			best = readers[i];
		}
	}
	if (!best)
		return frag_fail(err, FRAG_EINPUT,
				 "'%.200s' is of no known format (cufrag list formats)", path);
	FRAG_TRY(best->read(src->in, NULL, &src->whole, err));
	if (!src->whole->name)
		src->whole->name = frag_host_strdup("stdin");
	if (!src->whole->format)
		src->whole->format = frag_host_strdup(best->name);
	return src->whole->name && src->whole->format ? 0 : frag_fail_nomem(err, "trace");
}

int frag_source_open(const char *path, struct frag_source **out, struct frag_err *err)
{
	struct frag_source *src = frag_host_calloc(1, sizeof(*src));
	const unsigned char *bytes;
	size_t got;
	int rc;

	if (!src)
		return frag_fail_nomem(err, "trace");
	rc = frag_input_open(path, &src->in, err);
	if (!rc)
		rc = frag_input_peek(src->in, FRAG_CFT_MAGIC_BYTES, &bytes, &got, err);
	if (!rc && frag_cft_is_magic(bytes, got))
		rc = open_cft(src, err);
	else if (!rc)
		rc = read_whole(src, path, err);
	if (rc) {
		frag_source_close(src);
		return rc;
	}
	*out = src;
	return 0;
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

/* The next block of events of the device in hand, which has some left. */
static int read_batch(struct frag_source *src, struct frag_batch *out, struct frag_err *err)
{
	struct frag_cft_parser *p = &src->parser;
	struct frag_trace_dev *dev = &p->trace->devs[src->dev];
	uint64_t left = dev->events_count - src->handed;

	FRAG_TRY(frag_cft_parser_next(p, FRAG_CFT_EVENTS, src->dev, left, err));
	*out = (struct frag_batch){
		.dev = src->dev, .events = src->batch, .count = p->block.count, .first = src->handed
	};
	FRAG_TRY(frag_cft_parser_events(p, &src->model, src->batch, err));
	src->handed += out->count;
	if (!p->declared[src->dev].has_addrs)
		return 0;
	return frag_cft_parser_next(p, FRAG_CFT_ADDRS, src->dev, out->count, err);
}

/* Passes over what lies behind the events of the device in hand, and goes to the next. */
static int leave_device(struct frag_source *src, struct frag_err *err)
{
	struct frag_cft_parser *p = &src->parser;
	const struct frag_trace_dev *declared = &p->declared[src->dev].dev;

	if (src->handed < p->trace->devs[src->dev].seed.blocks_count)
		return frag_cft_bad(err, p->offset, "fewer events than seed blocks");
	FRAG_TRY(frag_cft_parser_skip(p, &frag_cft_seen, src->dev, declared->seen_count, err));
	FRAG_TRY(frag_cft_parser_skip(p, &frag_cft_final_segments, src->dev,
				      declared->final_segments_count, err));
	FRAG_TRY(frag_cft_parser_skip(p, &frag_cft_final_blocks, src->dev,
				      declared->final_blocks_count, err));
	frag_cft_model_release(&src->model);
	src->modelled = false;
	src->handed = 0;
	if (++src->dev == p->trace->devs_count)
		return frag_cft_parser_end(p, err);
	return 0;
}

static int next_of_cft(struct frag_source *src, struct frag_batch *out, struct frag_err *err)
{
	struct frag_trace *t = src->parser.trace;

	if (!t->devs_count && !src->dev++)
		return frag_cft_parser_end(&src->parser, err);
	while (src->dev < t->devs_count) {
		if (!src->modelled)
			FRAG_TRY(frag_cft_model_init(&src->model, t, &t->devs[src->dev], err));
		src->modelled = true;
		if (src->handed < t->devs[src->dev].events_count) {
			FRAG_TRY(read_batch(src, out, err));
			return 1;
		}
		FRAG_TRY(leave_device(src, err));
	}
	return 0;
}

int frag_source_next(struct frag_source *src, struct frag_batch *out, struct frag_err *err)
{
	int rc;

	if (src->whole)
		return next_of_whole(src, out);
	if (src->failed) {
		if (err)
			*err = src->fault;
		return src->failed;
	}
	rc = next_of_cft(src, out, &src->fault);
	if (rc < 0) {
		src->failed = rc;
		if (err)
			*err = src->fault;
	}
	return rc;
}

void frag_source_close(struct frag_source *src)
{
	if (!src)
		return;
	frag_cft_model_release(&src->model);
	frag_cft_parser_release(&src->parser);
	frag_trace_destroy(src->whole);
	frag_host_free(src->batch);
	frag_input_close(src->in);
	frag_host_free(src);
}
