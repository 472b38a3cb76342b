/* SPDX-License-Identifier: Apache-2.0 */
/* Writes .cft: blocks in the order of cft.h, each packed in memory and then written with its checksum. The bytes do
 * not depend on clock, machine or addresses: the same trace gives the same file. */
#include "cft_write.h"

#include "cft_layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include <frag/torch.h>

/* A file being written. */
struct writer {
	FILE *to;
	uint32_t version;
	uint64_t blocks, events; /* written so far */
	struct frag_cft_packer packer;
	struct frag_cft_coder *coder;
	uint64_t *scratch; /* [FRAG_CFT_BATCH] */
};

uint64_t frag_cft_checksum(const struct frag_cft_block *b, const void *payload, uint64_t number)
{
	uint64_t head = XXH3_64bits_withSeed(b, offsetof(struct frag_cft_block, checksum), number);

	return XXH3_64bits_withSeed(payload, b->payload, head);
}

/* Write errors are reported when the file is closed; this only makes them permanent. */
static int put_block(struct writer *w, unsigned type, unsigned dev, size_t count,
		     struct frag_err *err)
{
	struct frag_cft_block b = { .type = (uint8_t)type,
				    .dev = (uint16_t)dev,
				    .count = (uint32_t)count,
				    .payload = (uint32_t)w->packer.len };

	if (w->packer.len > FRAG_CFT_PAYLOAD_MAX)
		return frag_fail(err, FRAG_EINPUT, "texts of the trace are too long to be stored");
	b.checksum = frag_cft_checksum(&b, w->packer.out, w->blocks++);
	fwrite(&b, sizeof(b), 1, w->to);
	fwrite(w->packer.out, 1, w->packer.len, w->to);
	w->packer.len = 0;
	return 0;
}

static int put_records(struct writer *w, const struct frag_cft_records *r, unsigned dev,
		       const void *base, size_t count, struct frag_err *err)
{
	const unsigned char *at = base;

	while (count) {
		size_t n = FRAG_MIN(count, (size_t)FRAG_CFT_BATCH);

		FRAG_TRY(frag_cft_pack_records(r, at, n, w->scratch, &w->packer, err));
		FRAG_TRY(put_block(w, r->type, dev, n, err));
		at += n * r->stride;
		count -= n;
	}
	return 0;
}

/* A text that may be NULL: a number (1 = there is one), then its bytes. */
static int pack_text(struct writer *w, const char *text, struct frag_err *err)
{
	uint64_t there = text != NULL;
	size_t len = text ? strlen(text) : 0;

	if (len > FRAG_CFT_STRING_MAX)
		return frag_fail(err, FRAG_EINPUT, "a text of %zu bytes is too long to be stored",
				 len);
	FRAG_TRY(frag_cft_pack_numbers(&w->packer, &there, 1, false, err));
	return frag_cft_pack_raw(&w->packer, text, len, 1, err);
}

static int pack_cards(struct writer *w, const struct frag_trace *t, struct frag_err *err)
{
	char *cards = frag_cft_cards_text(t);
	int rc = cards ? pack_text(w, cards, err) : frag_fail_nomem(err, "cards");

	free(cards);
	return rc;
}

static int put_head(struct writer *w, const struct frag_trace *t, struct frag_err *err)
{
	struct frag_cft_head_values values;

	memset(&values, 0, sizeof(values));
	values.trace = *t;
	values.strings_count = t->strings ? frag_strings_count(t->strings) : 0;
	FRAG_TRY(frag_cft_pack_struct(&frag_cft_head, &values, &w->packer, err));
	FRAG_TRY(pack_text(w, t->name, err));
	FRAG_TRY(pack_text(w, t->format, err));
	FRAG_TRY(pack_text(w, t->settings.conf, err));
	if (w->version >= 2) {
		uint64_t releases[2] = { t->settings.torch_first, t->settings.torch_last };

		if (!releases[1]) {
			releases[0] = FRAG_TORCH_OLDEST;
			releases[1] = FRAG_TORCH_NEWEST;
		}
		FRAG_TRY(frag_cft_pack_numbers(&w->packer, releases, 2, false, err));
	}
	if (w->version >= 3)
		FRAG_TRY(pack_text(w, t->estimate, err));
	if (w->version >= 5)
		FRAG_TRY(pack_cards(w, t, err));
	return put_block(w, FRAG_CFT_HEAD, 0, 1, err);
}

/* As many strings from `from` as go well into one block. */
static int put_some_strings(struct writer *w, const struct frag_strings *s, uint32_t from,
			    uint32_t *count, struct frag_err *err)
{
	uint32_t all = frag_strings_count(s), n = 0;
	size_t bytes = 0, at = 0;
	char *text;
	int rc;

	while (from + n < all && n < FRAG_CFT_BATCH) {
		size_t len = frag_strings_len(s, from + n);

		if (len > FRAG_CFT_STRING_MAX)
			return frag_fail(err, FRAG_EINPUT,
					 "a text of %zu bytes is too long to be stored", len);
		if (n && bytes + len > FRAG_CFT_STRING_MAX)
			break;
		bytes += len;
		w->scratch[n++] = len;
	}
	text = frag_host_alloc(bytes);
	FRAG_CHECK_ALLOC(text, "strings", err);
	for (uint32_t i = 0; i < n; at += w->scratch[i++])
		memcpy(text + at, frag_strings_get(s, from + i), w->scratch[i]);
	rc = frag_cft_pack_numbers(&w->packer, w->scratch, n, false, err)
		     ?: frag_cft_pack_raw(&w->packer, text, bytes, 1, err);
	frag_host_free(text);
	*count = n;
	return rc ? rc : put_block(w, FRAG_CFT_STRINGS, 0, n, err);
}

/* String 0 is "" and not stored. */
static int put_strings(struct writer *w, const struct frag_strings *s, struct frag_err *err)
{
	uint32_t i = 1, n = 0;

	for (; s && i < frag_strings_count(s); i += n)
		FRAG_TRY(put_some_strings(w, s, i, &n, err));
	return 0;
}

static int put_stacks(struct writer *w, const struct frag_stacks *s, struct frag_err *err)
{
	FRAG_TRY(put_records(w, &frag_cft_frames, 0, s->frames, s->frames_count, err));
	FRAG_TRY(put_records(w, &frag_cft_stack_frames, 0, s->index, s->index_count, err));
	return put_records(w, &frag_cft_stacks, 0, s->count ? s->first + 1 : NULL, s->count, err);
}

static int put_device(struct writer *w, const struct frag_trace_dev *dev, unsigned index,
		      struct frag_err *err)
{
	struct frag_cft_device_values values;

	memset(&values, 0, sizeof(values));
	values.dev = *dev;
	values.initial_segments = dev->initial.segments_count;
	values.initial_blocks = dev->initial.blocks_count;
	values.has_addrs = dev->addrs != NULL;
	FRAG_TRY(frag_cft_pack_struct(&frag_cft_device, &values, &w->packer, err));
	FRAG_TRY(frag_cft_pack_records(&frag_cft_streams, dev->streams, dev->streams_count,
				       w->scratch, &w->packer, err));
	FRAG_TRY(frag_cft_pack_records(&frag_cft_pools, dev->pools, dev->pools_count, w->scratch,
				       &w->packer, err));
	return put_block(w, FRAG_CFT_DEVICE, index, 1, err);
}

static int put_initial(struct writer *w, const struct frag_initial_state *initial, unsigned index,
		       struct frag_err *err)
{
	FRAG_TRY(put_records(w, &frag_cft_initial_segments, index, initial->segments,
			     initial->segments_count, err));
	return put_records(w, &frag_cft_initial_blocks, index, initial->blocks,
			   initial->blocks_count, err);
}

/* The first *taken of the events as one block. */
static int write_events(struct writer *w, unsigned index, struct frag_cft_model *model,
			const struct frag_event *events, size_t count, size_t *taken,
			struct frag_err *err)
{
	FRAG_TRY(frag_cft_pack_events(w->coder, model, events, count, &w->packer, taken, err));
	FRAG_TRY(put_block(w, FRAG_CFT_EVENTS, index, *taken, err));
	w->events += *taken;
	return 0;
}

static int put_events(struct writer *w, const struct frag_trace_dev *dev, unsigned index,
		      struct frag_cft_model *model, struct frag_err *err)
{
	for (size_t i = 0, n; i < dev->events_count; i += n) {
		FRAG_TRY(write_events(w, index, model, dev->events + i, dev->events_count - i, &n,
				      err));
		if (!dev->addrs)
			continue;
		FRAG_TRY(frag_cft_pack_addrs(w->coder, dev->events + i, dev->addrs + i, n,
					     &w->packer, err));
		FRAG_TRY(put_block(w, FRAG_CFT_ADDRS, index, n, err));
	}
	return 0;
}

static int put_history(struct writer *w, const struct frag_trace *t, unsigned index,
		       struct frag_err *err)
{
	const struct frag_trace_dev *dev = &t->devs[index];
	struct frag_cft_model model;
	int rc = frag_cft_model_init(&model, t, dev, err) ?: put_events(w, dev, index, &model, err);

	if (!rc && model.events < dev->initial.blocks_count)
		rc = frag_fail(err, FRAG_EINPUT, "device %u has fewer events than initial blocks",
			       dev->ordinal);
	frag_cft_model_release(&model);
	FRAG_TRY(rc);
	FRAG_TRY(put_records(w, &frag_cft_seen, index, dev->seen, dev->seen_count, err));
	FRAG_TRY(put_records(w, &frag_cft_final_segments, index, dev->final_segments,
			     dev->final_segments_count, err));
	return put_records(w, &frag_cft_final_blocks, index, dev->final_blocks,
			   dev->final_blocks_count, err);
}

static int end_writer(struct writer *w, struct frag_err *err)
{
	struct frag_cft_end_values values = { w->blocks, w->events };

	FRAG_TRY(frag_cft_pack_struct(&frag_cft_end, &values, &w->packer, err));
	return put_block(w, FRAG_CFT_END, 0, 1, err);
}

/* What the reader would refuse must not be written. */
static int check(const struct frag_trace *t, struct frag_err *err)
{
	const char *wrong = frag_cft_check_head(t);

	if (!wrong && t->devs_count > FRAG_CFT_DEVICES_MAX)
		wrong = "too many devices";
	for (uint32_t d = 0; !wrong && d < t->devs_count; d++) {
		wrong = frag_cft_check_device(&t->devs[d]);
		if (!wrong)
			wrong = frag_cft_check_evidence(&t->devs[d]);
	}
	return wrong ? frag_fail(err, FRAG_EINPUT, "the trace cannot be stored: %s", wrong) : 0;
}

/* All before the events. */
static int begin_writer(struct writer *w, const struct frag_trace *t, FILE *to,
			struct frag_err *err)
{
	uint32_t preamble[2] = { 0 };

	memset(w, 0, sizeof(*w));
	w->version = frag_cft_has_cards(t) ? 5 : t->estimate ? 3 : t->settings.torch_last ? 2 : 1;
	preamble[0] = w->version;
	w->to = to;
	FRAG_TRY(check(t, err));
	FRAG_TRY(frag_cft_packer_init(&w->packer, err));
	w->coder = frag_host_alloc(sizeof(*w->coder));
	w->scratch = frag_host_alloc(FRAG_CFT_BATCH * sizeof(*w->scratch));
	FRAG_CHECK_ALLOC(w->coder && w->scratch, "trace block", err);
	fwrite(FRAG_CFT_MAGIC, 1, FRAG_CFT_MAGIC_BYTES, w->to);
	fwrite(preamble, sizeof(preamble), 1, w->to);
	FRAG_TRY(put_head(w, t, err));
	FRAG_TRY(put_strings(w, t->strings, err));
	FRAG_TRY(put_stacks(w, &t->stacks, err));
	for (uint32_t d = 0; d < t->devs_count; d++)
		FRAG_TRY(put_device(w, &t->devs[d], d, err));
	for (uint32_t d = 0; d < t->devs_count; d++)
		FRAG_TRY(put_initial(w, &t->devs[d].initial, d, err));
	return 0;
}

static void release_writer(struct writer *w)
{
	FRAG_FREE(w->scratch, w->coder);
	frag_cft_packer_release(&w->packer);
	memset(w, 0, sizeof(*w));
}

int frag_cft_write_stream(const struct frag_trace *trace, FILE *to, struct frag_err *err)
{
	FRAG_AUTO(release_writer) struct writer w = { 0 };

	FRAG_TRY(begin_writer(&w, trace, to, err));
	for (uint32_t d = 0; d < trace->devs_count; d++)
		FRAG_TRY(put_history(&w, trace, d, err));
	return end_writer(&w, err);
}

/* On the disk before it gets its name; pipes and terminals have no fsync. */
static int commit(struct frag_outfile *out, const char *path, struct frag_err *err)
{
	if (!fflush(out->to) &&
	    (!fsync(fileno(out->to)) || errno == EINVAL || errno == EROFS || errno == ENOTSUP))
		return frag_outfile_commit(out, err);
	frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", path, strerror(errno));
	frag_outfile_abort(out);
	return FRAG_EOUTPUT;
}

int frag_trace_write_cft(const struct frag_trace *trace, const char *path, struct frag_err *err)
{
	struct frag_outfile out;
	int rc;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	rc = frag_cft_write_stream(trace, out.to, err);
	if (rc) {
		frag_outfile_abort(&out);
		return rc;
	}
	return commit(&out, path, err);
}

/* ---- events that are made on the way ----
 * A block has up to FRAG_CFT_BATCH events, but may have fewer. So that many are always collected
 * before one is packed, except at the end of a device: blocks are then the same as for a trace in
 * memory. */

#define ROOM (4u * FRAG_CFT_BATCH)

struct frag_cft_stream {
	const struct frag_trace *head;
	char *path;
	struct frag_outfile file;
	struct writer writer;
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
	release_writer(&s->writer);
	frag_cft_model_release(&s->model);
	FRAG_FREE(s->waiting, s->path, s);
}

/* Packs the collected events: all of them at the end of a device, else whole blocks only. */
static int flush(struct frag_cft_stream *s, bool all, struct frag_err *err)
{
	size_t from = 0, n;

	while (s->waiting_count - from >= (all ? 1 : FRAG_CFT_BATCH)) {
		FRAG_TRY(write_events(&s->writer, s->dev, &s->model, s->waiting + from,
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
	FRAG_TRY(begin_writer(&s->writer, head, s->file.to, err));
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
	FRAG_TRY(end_writer(&s->writer, err));
	return commit(&s->file, s->path, err);
}
