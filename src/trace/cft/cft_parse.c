/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the blocks of a .cft, and everything before its events. Order of checks: the length of a
 * block, its checksum, that it is the block which the counts so far require; only then is it
 * unpacked. Memory grows with the bytes read: a declared count reserves at most FIRST_BYTES,
 * untouched.
 */
#include "cft.h"

#include <string.h>

#include <frag/torch.h>

#include "base/clean.h"

#define FIRST_BYTES ((size_t)32 << 20) /* of an array, at most, before more has arrived */

bool frag_cft_is_magic(const unsigned char *bytes, size_t len)
{
	return len >= FRAG_CFT_MAGIC_BYTES && !memcmp(bytes, FRAG_CFT_MAGIC, FRAG_CFT_MAGIC_BYTES);
}

/* ---- blocks -------------------------------------------------------------------- */

int frag_cft_grow(void *array_ptr, size_t *cap, uint64_t need, uint64_t declared, size_t unit,
		  struct frag_err *err)
{
	void **array = array_ptr, *more;
	uint64_t want;

	if (need <= *cap)
		return 0;
	if (*cap) {
		want = FRAG_MAX(need, FRAG_MIN(declared, (uint64_t)*cap * 2));
		more = frag_host_realloc(*array, want, unit);
	} else { /* untouched memory costs nothing, moving it does */
		want = FRAG_MAX(need, FRAG_MIN(declared, FIRST_BYTES / unit));
		more = frag_host_realloc(NULL, want, unit);
	}
	FRAG_CHECK_ALLOC(more, "trace", err);
	*array = more;
	*cap = want;
	return 0;
}

/* Reads the next block, which must be of this type and device and have 1 to `most` records. */
static int next_block(struct frag_cft_parser *p, enum frag_cft_block_type type, unsigned dev,
		      uint64_t most, struct frag_err *err)
{
	struct frag_cft_block *b = &p->block;

	p->offset = frag_input_offset(p->in);
	FRAG_TRY(frag_input_read(p->in, b, sizeof(*b), err));
	if (b->payload > FRAG_CFT_PAYLOAD_MAX)
		return frag_cft_bad(err, p->offset, "block of %u bytes", b->payload);
	FRAG_TRY(frag_input_read(p->in, p->payload, b->payload, err));
	if (b->checksum != frag_cft_checksum(b, p->payload, p->blocks))
		return frag_cft_bad(err, p->offset, "wrong checksum of block %llu",
				    (unsigned long long)p->blocks);
	if (b->type != type || b->dev != dev || b->zero || b->zero2)
		return frag_cft_bad(err, p->offset, "block of type %u, expected type %u", b->type,
				    type);
	if (!b->count || b->count > FRAG_MIN(most, (uint64_t)FRAG_CFT_BATCH))
		return frag_cft_bad(err, p->offset, "block of %u records, expected at most %llu",
				    b->count, (unsigned long long)most);
	p->blocks++;
	p->columns.begin = p->columns.pos = p->payload;
	p->columns.end = p->payload + b->payload;
	p->columns.offset = p->offset + sizeof(*b);
	return 0;
}

int frag_cft_parser_charge(struct frag_cft_parser *p, uint64_t bytes, struct frag_err *err)
{
	p->unpacked += bytes;
	return frag_input_check_unpacked(p->in, p->unpacked, err);
}

/* Reads an array of any number of blocks; *array grows as they arrive. */
static int read_array(struct frag_cft_parser *p, const struct frag_cft_records *r, unsigned dev,
		      uint64_t count, void *array_ptr, struct frag_err *err)
{
	unsigned char **array = array_ptr;
	size_t cap = 0, n;

	for (uint64_t have = 0; have < count; have += n) {
		FRAG_TRY(next_block(p, r->type, dev, count - have, err));
		n = p->block.count;
		FRAG_TRY(frag_cft_parser_charge(p, n * r->stride, err));
		FRAG_TRY(frag_cft_grow(array, &cap, have + n, count, r->stride, err));
		FRAG_TRY(frag_cft_do_records(r, *array + have * r->stride, n, p->scratch,
					     &p->columns, err));
		FRAG_TRY(frag_cft_unpack_end(&p->columns, err));
	}
	return 0;
}

static int read_end(struct frag_cft_parser *p, struct frag_err *err)
{
	struct frag_cft_end_values end;
	const unsigned char *more;
	uint64_t blocks = p->blocks;
	size_t got;

	FRAG_TRY(next_block(p, FRAG_CFT_END, 0, 1, err));
	FRAG_TRY(frag_cft_do_struct(&frag_cft_end, &end, &p->columns, err));
	FRAG_TRY(frag_cft_unpack_end(&p->columns, err));
	if (end.blocks != blocks || end.events != p->events)
		return frag_cft_bad(err, p->offset, "totals do not match");
	FRAG_TRY(frag_input_peek(p->in, 1, &more, &got, err));
	if (got)
		return frag_cft_bad(err, frag_input_offset(p->in), "data after the end");
	return 0;
}

/* ---- the part before the events ------------------------------------------------ */

static int read_preamble(struct frag_cft_parser *p, struct frag_err *err)
{
	unsigned char bytes[FRAG_CFT_PREAMBLE];
	uint32_t zero;

	FRAG_TRY(frag_input_read(p->in, bytes, sizeof(bytes), err));
	memcpy(&p->version, bytes + FRAG_CFT_MAGIC_BYTES, sizeof(p->version));
	memcpy(&zero, bytes + FRAG_CFT_MAGIC_BYTES + 4, sizeof(zero));
	if (!frag_cft_is_magic(bytes, sizeof(bytes)))
		return frag_cft_bad(err, 0, "not a .cft file");
	if (!p->version || p->version > FRAG_CFT_VERSION || zero)
		return frag_fail_at(err, FRAG_EINPUT, FRAG_CFT_MAGIC_BYTES,
				    "unknown version %u of the .cft format at byte %u; this "
				    "program reads versions 1 to %u",
				    p->version, FRAG_CFT_MAGIC_BYTES, FRAG_CFT_VERSION);
	return 0;
}

/* A .cft of version 1 does not say so, but only a recording of PyTorch has these. */
static void settle_releases(struct frag_trace *t)
{
	bool recorded = t->settings.present;

	for (uint32_t d = 0; d < t->devs_count; d++)
		recorded |= t->devs[d].has_evidence;
	frag_trace_set_torch(t, recorded ? t->settings.torch_first : 0,
			     recorded ? t->settings.torch_last : 0);
}

/* Lines of printable ASCII: it is shown on terminals. */
static int check_note(struct frag_cft_parser *p, const char *note, struct frag_err *err)
{
	for (const char *at = note; at && *at; at++)
		if (*at != '\n' && (*at < ' ' || *at > '~'))
			return frag_cft_bad(err, p->offset, "note with character %u",
					    (unsigned)(unsigned char)*at);
	return 0;
}

/* *v: the counts that the file declares; *cards: their text. */
static int read_head(struct frag_cft_parser *p, struct frag_cft_head_values *v, char **cards,
		     struct frag_err *err)
{
	struct frag_trace *t = p->trace, *from = &v->trace;
	struct frag_trace_settings *set = &t->settings;
	int rc;

	memset(v, 0, sizeof(*v));
	FRAG_TRY(next_block(p, FRAG_CFT_HEAD, 0, 1, err));
	rc = frag_cft_do_head(p->version, v, cards, &p->columns, err);
	*t = (struct frag_trace){ .start_us = from->start_us,
				  .file_bytes = from->file_bytes,
				  .settings = from->settings,
				  .name = from->name,
				  .format = from->format,
				  .estimate = from->estimate };
	FRAG_TRY(rc);
	for (int i = 0; i < 3; i++) { /* they are shown */
		char *text = (char *[]){ t->name, t->format, set->conf }[i];

		if (text)
			frag_clean_text(text, strlen(text));
	}
	if (t->name && !*t->name) { /* as if it had none */
		frag_host_free(t->name);
		t->name = NULL;
	}
	if (p->version <
	    2) { /* written when recordings were verified by the rules of 2.1 to 2.11 */
		set->torch_first = set->present ? FRAG_TORCH(2, 3) : FRAG_TORCH_OLDEST;
		set->torch_last = FRAG_TORCH(2, 11);
	}
	FRAG_TRY(check_note(p, t->estimate, err) ?: check_note(p, *cards, err));
	FRAG_TRY(frag_cft_unpack_end(&p->columns, err));
	if (v->trace.devs_count > FRAG_CFT_DEVICES_MAX)
		return frag_cft_bad(err, p->offset, "%u devices exceed the limit",
				    v->trace.devs_count);
	return 0;
}

/* One block of strings; their numbers follow from their order, so none may come twice. */
static int read_some_strings(struct frag_cft_parser *p, struct frag_err *err)
{
	struct frag_strings *strings = p->trace->strings;
	struct frag_cft_columns *u = &p->columns;
	size_t bytes, at = 0;
	char *text;
	int rc;

	FRAG_TRY(frag_cft_unpack_numbers(u, p->scratch, p->block.count, err));
	FRAG_TRY(frag_cft_unpack_count(u, FRAG_CFT_STRING_MAX, &bytes, err));
	FRAG_TRY(frag_cft_parser_charge(p, bytes, err));
	text = frag_host_alloc(bytes);
	FRAG_CHECK_ALLOC(text, "strings", err);
	rc = frag_cft_unpack_raw(u, text, bytes, 1, err);
	for (uint32_t i = 0; !rc && i < p->block.count; i++) {
		uint32_t expected = frag_strings_count(strings), index = 0;
		uint64_t len = p->scratch[i];

		if (len > bytes - at)
			rc = frag_cft_bad(err, p->offset, "string longer than its block");
		else if (!frag_clean_is(text + at, (size_t)len)) /* every reader cleans them */
			rc = frag_cft_bad(err, p->offset, "string is not plain text");
		else
			rc = frag_strings_intern(strings, text + at, len, &index, err);
		if (!rc && index != expected)
			rc = frag_cft_bad(err, p->offset, "string listed twice");
		at += len;
	}
	frag_host_free(text);
	FRAG_TRY(rc);
	if (at != bytes)
		return frag_cft_bad(err, p->offset, "strings do not fill their block");
	return frag_cft_unpack_end(u, err);
}

static int read_strings(struct frag_cft_parser *p, uint32_t count, struct frag_err *err)
{
	FRAG_TRY(frag_strings_create(&p->trace->strings, err));
	while (frag_strings_count(p->trace->strings) < count) {
		FRAG_TRY(next_block(p, FRAG_CFT_STRINGS, 0,
				    count - frag_strings_count(p->trace->strings), err));
		FRAG_TRY(read_some_strings(p, err));
	}
	return 0;
}

/* `first` has one more element than there are stacks: a zero before the ends that are stored. */
static int read_stacks(struct frag_cft_parser *p, const struct frag_stacks *declared,
		       struct frag_err *err)
{
	struct frag_stacks *s = &p->trace->stacks;
	FRAG_AUTO_FREE uint64_t *ends = NULL;

	FRAG_TRY(read_array(p, &frag_cft_frames, 0, declared->frames_count, &s->frames, err));
	s->frames_count = declared->frames_count;
	FRAG_TRY(read_array(p, &frag_cft_stack_frames, 0, declared->index_count, &s->index, err));
	s->index_count = declared->index_count;
	FRAG_TRY(read_array(p, &frag_cft_stacks, 0, declared->count, &ends, err));
	FRAG_TRY_CALLOC(s->first, declared->count + 1, "stacks", err);
	if (declared->count) {
		memcpy(s->first + 1, ends, declared->count * sizeof(*ends));
		s->count = declared->count;
	}
	return 0;
}

static int read_device(struct frag_cft_parser *p, unsigned index, struct frag_err *err)
{
	struct frag_cft_device_values *v = &p->declared[index];
	struct frag_trace_dev *dev = &p->trace->devs[index];
	struct frag_cft_columns *u = &p->columns;
	size_t n;

	FRAG_TRY(next_block(p, FRAG_CFT_DEVICE, index, 1, err));
	FRAG_TRY(frag_cft_do_struct(&frag_cft_device, v, u, err));
	*dev = v->dev; /* what is behind the events is not there yet */
	dev->seen_count = dev->final_segments_count = dev->final_blocks_count = 0;
	FRAG_TRY(frag_cft_unpack_count(u, FRAG_CFT_BATCH, &n, err));
	if (v->dev.streams_count != n || v->dev.pools_count > FRAG_CFT_BATCH)
		return frag_cft_bad(err, p->offset, "wrong number of streams or pools");
	FRAG_TRY(frag_cft_parser_charge(
		p, n * sizeof(*dev->streams) + v->dev.pools_count * sizeof(*dev->pools), err));
	dev->streams = frag_host_calloc(n, sizeof(*dev->streams));
	dev->pools = frag_host_calloc(v->dev.pools_count, sizeof(*dev->pools));
	FRAG_CHECK_ALLOC(dev->streams && dev->pools, "trace", err);
	FRAG_TRY(frag_cft_do_records(&frag_cft_streams, dev->streams, n, p->scratch, u, err));
	FRAG_TRY(frag_cft_do_records(&frag_cft_pools, dev->pools, dev->pools_count, p->scratch, u,
				     err));
	return frag_cft_unpack_end(u, err);
}

static int read_part(struct frag_cft_parser *p, unsigned index, const struct frag_cft_part *part,
		     struct frag_err *err)
{
	struct frag_trace_dev *dev = &p->trace->devs[index];
	size_t count = *frag_cft_part_count(part, &p->declared[index].dev);

	FRAG_TRY(read_array(p, part->records, index, count, (char *)dev + part->array, err));
	*frag_cft_part_count(part, dev) = count;
	return 0;
}

static int read_initial(struct frag_cft_parser *p, unsigned index, struct frag_err *err)
{
	struct frag_trace_dev *dev = &p->trace->devs[index];
	const char *wrong;

	for (unsigned i = 0; i < FRAG_CFT_BEFORE; i++)
		FRAG_TRY(read_part(p, index, &frag_cft_before[i], err));
	dev->initial.segments = dev->initial_segments;
	dev->initial.blocks = dev->initial_blocks;
	wrong = dev->has_evidence && dev->events_count && !p->declared[index].has_addrs
			? "evidence without addresses"
			: frag_cft_check_device(dev);
	return wrong ? frag_cft_bad(err, p->offset, "device %u: %s", dev->ordinal, wrong) : 0;
}

static int read_devices(struct frag_cft_parser *p, uint32_t count, struct frag_err *err)
{
	struct frag_trace *t = p->trace;

	t->devs = frag_host_calloc(count, sizeof(*t->devs));
	p->declared = frag_host_calloc(count, sizeof(*p->declared));
	FRAG_CHECK_ALLOC(t->devs && p->declared, "trace", err);
	t->devs_count = count;
	for (uint32_t d = 0; d < count; d++)
		FRAG_TRY(read_device(p, d, err));
	for (uint32_t d = 0; d < count; d++)
		FRAG_TRY(read_initial(p, d, err));
	return 0;
}

int frag_cft_parser_open(struct frag_cft_parser *p, struct frag_input *in, struct frag_err *err)
{
	FRAG_AUTO_FREE char *cards = NULL;
	struct frag_cft_head_values head;
	const char *wrong;

	memset(p, 0, sizeof(*p));
	p->in = in;
	p->columns.reads = true;
	p->payload = frag_host_alloc(FRAG_CFT_PAYLOAD_MAX); /* untouched, it costs nothing */
	p->scratch = frag_host_alloc(FRAG_CFT_BATCH * sizeof(*p->scratch));
	p->coder = frag_host_alloc(sizeof(*p->coder));
	p->trace = frag_host_calloc(1, sizeof(*p->trace));
	FRAG_CHECK_ALLOC(p->payload && p->scratch && p->coder && p->trace, "trace", err);
	FRAG_TRY(read_preamble(p, err));
	FRAG_TRY(read_head(p, &head, &cards, err));
	FRAG_TRY(read_strings(p, head.strings_count, err));
	FRAG_TRY(read_stacks(p, &head.trace.stacks, err));
	wrong = frag_cft_check_head(p->trace);
	if (wrong)
		return frag_cft_bad(err, p->offset, "%s", wrong);
	FRAG_TRY(read_devices(p, head.trace.devs_count, err));
	wrong = p->version >= 5 ? frag_cft_cards_read(cards, p->trace) : NULL;
	if (wrong)
		return frag_cft_bad(err, FRAG_CFT_PREAMBLE, "%s", wrong);
	settle_releases(p->trace);
	return p->trace->devs_count ? 0 : read_end(p, err);
}

/* ---- events, and what is behind them ------------------------------------------- */

int frag_cft_parser_events(struct frag_cft_parser *p, struct frag_event *out, frag_addr_t *addrs,
			   size_t *count, struct frag_err *err)
{
	struct frag_trace_dev *dev = &p->trace->devs[p->dev];
	size_t n;

	FRAG_TRY(next_block(p, FRAG_CFT_EVENTS, p->dev, dev->events_count - p->handed, err));
	n = *count = p->block.count;
	if (out && !p->model.recent)
		FRAG_TRY(frag_cft_model_init(&p->model, p->trace, dev, err));
	if (out)
		FRAG_TRY(frag_cft_unpack_events(p->coder, &p->model, &p->columns, n, out, err)
				 ?: frag_cft_unpack_end(&p->columns, err));
	p->events += n;
	p->handed += n;
	if (!p->declared[p->dev].has_addrs)
		return 0;
	FRAG_TRY(next_block(p, FRAG_CFT_ADDRS, p->dev, n, err));
	if (p->block.count != n)
		return frag_cft_bad(err, p->offset, "%u addresses for %zu events", p->block.count,
				    n);
	if (!addrs)
		return 0;
	return frag_cft_unpack_addrs(p->coder, &p->columns, out, n, addrs, err)
		       ?: frag_cft_unpack_end(&p->columns, err);
}

int frag_cft_parser_seen(struct frag_cft_parser *p, uint64_t left, struct frag_evidence *out,
			 size_t *count, struct frag_err *err)
{
	FRAG_TRY(next_block(p, FRAG_CFT_SEEN, p->dev, left, err));
	*count = p->block.count;
	p->seen_handed += *count;
	return frag_cft_do_records(&frag_cft_seen, out, *count, p->scratch, &p->columns, err)
		       ?: frag_cft_unpack_end(&p->columns, err);
}

int frag_cft_parser_leave(struct frag_cft_parser *p, bool keep, struct frag_err *err)
{
	struct frag_trace_dev *dev = &p->trace->devs[p->dev];
	const char *wrong;

	if (p->handed < dev->initial.blocks_count)
		return frag_cft_bad(err, p->offset, "fewer events than initial blocks");
	for (unsigned i = 0; i < FRAG_CFT_AFTER; i++) {
		const struct frag_cft_part *part = &frag_cft_after[i];
		uint64_t left = *frag_cft_part_count(part, &p->declared[p->dev].dev);

		if (keep)
			FRAG_TRY(read_part(p, p->dev, part, err));
		if (part->records == &frag_cft_seen)
			left -= p->seen_handed;
		for (; !keep && left; left -= p->block.count)
			FRAG_TRY(next_block(p, part->records->type, p->dev, left, err));
	}
	wrong = frag_cft_check_evidence(dev);
	if (wrong)
		return frag_cft_bad(err, p->offset, "device %u: %s", dev->ordinal, wrong);
	frag_cft_model_release(&p->model);
	p->handed = p->seen_handed = 0;
	return ++p->dev == p->trace->devs_count ? read_end(p, err) : 0;
}

void frag_cft_parser_release(struct frag_cft_parser *p)
{
	frag_trace_destroy(p->trace);
	FRAG_FREE(p->declared, p->payload, p->scratch, p->coder);
	frag_cft_model_release(&p->model);
	frag_cft_columns_release(&p->columns);
	memset(p, 0, sizeof(*p));
}
