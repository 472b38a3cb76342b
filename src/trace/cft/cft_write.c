/* SPDX-License-Identifier: Apache-2.0 */
/* Writes .cft: blocks in the order of cft.h, each packed in memory and then written with its checksum. The bytes do
 * not depend on clock, machine or addresses: the same trace gives the same file. */
#include "cft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/outfile.h"

/* A file being written. */
struct frag_cft_writer {
	const struct frag_trace *trace;
	FILE *to;
	uint32_t version;
	uint64_t blocks, events; /* written so far */
	struct frag_cft_columns columns;
	struct frag_cft_coder *coder;
	uint64_t *scratch;	     /* [FRAG_CFT_BATCH] */
	struct frag_cft_model model; /* of the current device */
};

uint64_t frag_cft_checksum(const struct frag_cft_block *b, const void *payload, uint64_t number)
{
	uint64_t head = XXH3_64bits_withSeed(b, offsetof(struct frag_cft_block, checksum), number);

	return XXH3_64bits_withSeed(payload, b->payload, head);
}

/* Write errors are reported when the file is closed; this only makes them permanent. */
static int put_block(struct frag_cft_writer *w, unsigned type, unsigned dev, size_t count,
		     struct frag_err *err)
{
	struct frag_cft_block b = { .type = (uint8_t)type,
				    .dev = (uint16_t)dev,
				    .count = (uint32_t)count,
				    .payload = (uint32_t)w->columns.len };

	if (w->columns.len > FRAG_CFT_PAYLOAD_MAX)
		return FRAG_INPUT(err, "texts of the trace are too long to be stored");
	b.checksum = frag_cft_checksum(&b, w->columns.out, w->blocks++);
	fwrite(&b, sizeof(b), 1, w->to);
	fwrite(w->columns.out, 1, w->columns.len, w->to);
	w->columns.len = 0;
	return 0;
}

static int put_records(struct frag_cft_writer *w, const struct frag_cft_records *r, unsigned dev,
		       const void *base, size_t count, struct frag_err *err)
{
	unsigned char *at = (unsigned char *)(uintptr_t)base;

	while (count) {
		size_t n = FRAG_MIN(count, (size_t)FRAG_CFT_BATCH);

		FRAG_TRY(frag_cft_do_records(r, at, n, w->scratch, &w->columns, err));
		FRAG_TRY(put_block(w, r->type, dev, n, err));
		at += n * r->stride;
		count -= n;
	}
	return 0;
}

static int put_head(struct frag_cft_writer *w, const struct frag_trace *t, struct frag_err *err)
{
	struct frag_cft_head_values values;
	char *cards = frag_cft_cards_text(t);
	int rc;

	FRAG_CHECK_ALLOC(cards, "cards", err);
	memset(&values, 0, sizeof(values));
	values.trace = *t;
	values.strings_count = t->strings ? frag_strings_count(t->strings) : 0;
	rc = frag_cft_do_head(w->version, &values, &cards, &w->columns, err)
		     ?: put_block(w, FRAG_CFT_HEAD, 0, 1, err);
	free(cards);
	return rc;
}

/* As many strings from `from` as go well into one block. */
static int put_some_strings(struct frag_cft_writer *w, const struct frag_strings *s, uint32_t from,
			    uint32_t *count, struct frag_err *err)
{
	uint32_t all = frag_strings_count(s), n = 0;
	size_t bytes = 0, at = 0;
	char *text;
	int rc;

	while (from + n < all && n < FRAG_CFT_BATCH) {
		size_t len = frag_strings_len(s, from + n);

		if (len > FRAG_CFT_STRING_MAX)
			return FRAG_INPUT(err, "a text of %zu bytes is too long to be stored", len);
		if (n && bytes + len > FRAG_CFT_STRING_MAX)
			break;
		bytes += len;
		w->scratch[n++] = len;
	}
	text = frag_host_alloc(bytes);
	FRAG_CHECK_ALLOC(text, "strings", err);
	for (uint32_t i = 0; i < n; at += w->scratch[i++])
		memcpy(text + at, frag_strings_get(s, from + i), w->scratch[i]);
	rc = frag_cft_pack_numbers(&w->columns, w->scratch, n, false, err)
		     ?: frag_cft_pack_raw(&w->columns, text, bytes, 1, err);
	frag_host_free(text);
	*count = n;
	return rc ? rc : put_block(w, FRAG_CFT_STRINGS, 0, n, err);
}

/* String 0 is "" and not stored. */
static int put_strings(struct frag_cft_writer *w, const struct frag_strings *s,
		       struct frag_err *err)
{
	uint32_t i = 1, n = 0;

	for (; s && i < frag_strings_count(s); i += n)
		FRAG_TRY(put_some_strings(w, s, i, &n, err));
	return 0;
}

static int put_stacks(struct frag_cft_writer *w, const struct frag_stacks *s, struct frag_err *err)
{
	FRAG_TRY(put_records(w, &frag_cft_frames, 0, s->frames, s->frames_count, err));
	FRAG_TRY(put_records(w, &frag_cft_stack_frames, 0, s->index, s->index_count, err));
	return put_records(w, &frag_cft_stacks, 0, s->count ? s->first + 1 : NULL, s->count, err);
}

static int put_device(struct frag_cft_writer *w, const struct frag_trace_dev *dev, unsigned index,
		      struct frag_err *err)
{
	struct frag_cft_device_values values;

	memset(&values, 0, sizeof(values));
	values.dev = *dev;
	values.has_addrs = dev->addrs != NULL;
	FRAG_TRY(frag_cft_do_struct(&frag_cft_device, &values, &w->columns, err));
	FRAG_TRY(frag_cft_do_records(&frag_cft_streams, dev->streams, dev->streams_count,
				     w->scratch, &w->columns, err));
	FRAG_TRY(frag_cft_do_records(&frag_cft_pools, dev->pools, dev->pools_count, w->scratch,
				     &w->columns, err));
	return put_block(w, FRAG_CFT_DEVICE, index, 1, err);
}

static int put_part(struct frag_cft_writer *w, uint32_t index, const struct frag_cft_part *part,
		    struct frag_err *err)
{
	const struct frag_trace_dev *dev = &w->trace->devs[index];
	void *array;

	memcpy(&array, (const char *)dev + part->array, sizeof(array));
	return put_records(w, part->records, index, array, *frag_cft_part_count(part, dev), err);
}

/* The first *taken of the events as one block, and one of their addresses. */
static int put_block_of_events(struct frag_cft_writer *w, uint32_t index,
			       const struct frag_event *events, const frag_addr_t *addrs,
			       size_t count, size_t *taken, struct frag_err *err)
{
	FRAG_TRY(frag_cft_pack_events(w->coder, &w->model, events, count, &w->columns, taken, err));
	FRAG_TRY(put_block(w, FRAG_CFT_EVENTS, index, *taken, err));
	w->events += *taken;
	if (!addrs)
		return 0;
	FRAG_TRY(frag_cft_pack_addrs(w->coder, events, addrs, *taken, &w->columns, err));
	return put_block(w, FRAG_CFT_ADDRS, index, *taken, err);
}

/* A block has up to FRAG_CFT_BATCH events, but may have fewer: there must be so many before one is
 * packed, except at the end of a device. Blocks are then the same however the events come. */
int frag_cft_put_events(struct frag_cft_writer *w, uint32_t index, const struct frag_event *events,
			const frag_addr_t *addrs, size_t count, bool end, size_t *taken,
			struct frag_err *err)
{
	const struct frag_trace_dev *dev = &w->trace->devs[index];

	if (!w->model.recent)
		FRAG_TRY(frag_cft_model_init(&w->model, w->trace, dev, err));
	for (size_t n = *taken = 0; count - *taken >= (end ? 1 : FRAG_CFT_BATCH); *taken += n)
		FRAG_TRY(put_block_of_events(w, index, events + *taken,
					     addrs ? addrs + *taken : NULL, count - *taken, &n,
					     err));
	if (!end)
		return 0;
	if (w->model.events < dev->initial.blocks_count)
		return FRAG_INPUT(err, "device %u has fewer events than initial blocks",
				  dev->ordinal);
	frag_cft_model_release(&w->model);
	for (unsigned i = 0; i < FRAG_CFT_AFTER; i++)
		FRAG_TRY(put_part(w, index, &frag_cft_after[i], err));
	return 0;
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
	return wrong ? FRAG_INPUT(err, "the trace cannot be stored: %s", wrong) : 0;
}

/* All before the events. */
static int put_beginning(struct frag_cft_writer *w, struct frag_err *err)
{
	const struct frag_trace *t = w->trace;
	uint32_t preamble[2] = { w->version };

	fwrite(FRAG_CFT_MAGIC, 1, FRAG_CFT_MAGIC_BYTES, w->to);
	fwrite(preamble, sizeof(preamble), 1, w->to);
	FRAG_TRY(put_head(w, t, err));
	FRAG_TRY(put_strings(w, t->strings, err));
	FRAG_TRY(put_stacks(w, &t->stacks, err));
	for (uint32_t d = 0; d < t->devs_count; d++)
		FRAG_TRY(put_device(w, &t->devs[d], d, err));
	for (uint32_t d = 0; d < t->devs_count; d++)
		for (unsigned i = 0; i < FRAG_CFT_BEFORE; i++)
			FRAG_TRY(put_part(w, d, &frag_cft_before[i], err));
	return 0;
}

static void release_writer(struct frag_cft_writer *w)
{
	FRAG_FREE(w->scratch, w->coder);
	frag_cft_model_release(&w->model);
	frag_cft_columns_release(&w->columns);
}

static int write_all(const struct frag_trace *t, FILE *to, frag_cft_put_fn put, void *ctx,
		     struct frag_err *err)
{
	FRAG_AUTO(release_writer) struct frag_cft_writer w = { .trace = t, .to = to };
	struct frag_cft_end_values values;

	w.version = frag_cft_has_cards(t) ? 5 : t->estimate ? 3 : t->settings.torch_last ? 2 : 1;
	FRAG_TRY(check(t, err));
	w.coder = frag_host_alloc(sizeof(*w.coder));
	w.scratch = frag_host_alloc(FRAG_CFT_BATCH * sizeof(*w.scratch));
	FRAG_CHECK_ALLOC(w.coder && w.scratch, "trace block", err);
	FRAG_TRY(put_beginning(&w, err));
	FRAG_TRY(put(ctx, &w, err));
	values = (struct frag_cft_end_values){ w.blocks, w.events };
	FRAG_TRY(frag_cft_do_struct(&frag_cft_end, &values, &w.columns, err));
	return put_block(&w, FRAG_CFT_END, 0, 1, err);
}

/* Of a trace in memory. */
static int put_histories(void *ctx, struct frag_cft_writer *w, struct frag_err *err)
{
	const struct frag_trace *t = ctx;
	size_t taken;

	for (uint32_t d = 0; d < t->devs_count; d++)
		FRAG_TRY(frag_cft_put_events(w, d, t->devs[d].events, t->devs[d].addrs,
					     t->devs[d].events_count, true, &taken, err));
	return 0;
}

int frag_cft_write_stream(const struct frag_trace *trace, FILE *to, struct frag_err *err)
{
	return write_all(trace, to, put_histories, (void *)trace, err);
}

int frag_cft_write_made(const struct frag_trace *head, const char *path, frag_cft_put_fn put,
			void *ctx, struct frag_err *err)
{
	struct frag_outfile out;
	int rc;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	rc = write_all(head, out.to, put, ctx, err);
	/* on the disk before it gets its name; pipes and terminals have no fsync */
	if (!rc && (fflush(out.to) || (fsync(fileno(out.to)) && errno != EINVAL && errno != EROFS &&
				       errno != ENOTSUP)))
		rc = FRAG_OUTPUT(err, "cannot write '%s': %s", path, strerror(errno));
	if (!rc)
		return frag_outfile_commit(&out, err);
	frag_outfile_abort(&out);
	return rc;
}

int frag_trace_write_cft(const struct frag_trace *trace, const char *path, struct frag_err *err)
{
	return frag_cft_write_made(trace, path, put_histories, (void *)trace, err);
}
