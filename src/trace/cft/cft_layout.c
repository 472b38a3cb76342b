/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of columns and their checks. The fields are in the order of the file: another order is
 * another version of the format. */
#include "cft.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/torch.h>

#define FIELD(type, name, flags_) \
	{ \
		offsetof(type, name), sizeof(((type *)0)->name), flags_ \
	}
#define SELF(type, flags_) \
	{ \
		0, sizeof(type), flags_ \
	}
#define TABLE(symbol, type_, stride_, what_) \
	const struct frag_cft_records symbol = { .type = type_, \
						 .fields_count = FRAG_ARRAY_LEN(symbol##_fields), \
						 .stride = stride_, \
						 .fields = symbol##_fields, \
						 .what = what_ }
#define DIFF FRAG_CFT_DIFFERENCES
#define TRUTH FRAG_CFT_TRUTH

static const struct frag_cft_field frag_cft_frames_fields[] = {
	FIELD(struct frag_frame, name, 0),
	FIELD(struct frag_frame, file, 0),
	FIELD(struct frag_frame, line, 0),
};
TABLE(frag_cft_frames, FRAG_CFT_FRAMES, sizeof(struct frag_frame), "frames");

static const struct frag_cft_field frag_cft_stack_frames_fields[] = { SELF(uint32_t, 0) };
TABLE(frag_cft_stack_frames, FRAG_CFT_STACK_FRAMES, sizeof(uint32_t), "frames of stacks");

static const struct frag_cft_field frag_cft_stacks_fields[] = { SELF(uint64_t, DIFF) };
TABLE(frag_cft_stacks, FRAG_CFT_STACKS, sizeof(uint64_t), "stacks");

static const struct frag_cft_field frag_cft_streams_fields[] = { SELF(uint64_t, DIFF) };
TABLE(frag_cft_streams, FRAG_CFT_DEVICE, sizeof(uint64_t), "streams");

static const struct frag_cft_field frag_cft_pools_fields[] = {
	FIELD(struct frag_pool_id, a, DIFF),
	FIELD(struct frag_pool_id, b, DIFF),
};
TABLE(frag_cft_pools, FRAG_CFT_DEVICE, sizeof(struct frag_pool_id), "pools");

static const struct frag_cft_field frag_cft_initial_segments_fields[] = {
	FIELD(struct frag_initial_segment, addr, DIFF),
	FIELD(struct frag_initial_segment, bytes, DIFF),
	FIELD(struct frag_initial_segment, stream, 0),
	FIELD(struct frag_initial_segment, pool, 0),
	FIELD(struct frag_initial_segment, small, TRUTH),
	FIELD(struct frag_initial_segment, expandable, TRUTH),
	FIELD(struct frag_initial_segment, first_block, DIFF),
	FIELD(struct frag_initial_segment, blocks_count, 0),
	FIELD(struct frag_initial_segment, range_addr, DIFF),
};
static TABLE(frag_cft_initial_segments, FRAG_CFT_INITIAL_SEGMENTS,
	     sizeof(struct frag_initial_segment), "segments of the initial state");

static const struct frag_cft_field frag_cft_initial_blocks_fields[] = {
	FIELD(struct frag_initial_block, addr, DIFF),
	FIELD(struct frag_initial_block, bytes, 0),
	FIELD(struct frag_initial_block, requested, 0),
	FIELD(struct frag_initial_block, stream, 0),
	FIELD(struct frag_initial_block, slot, DIFF),
	FIELD(struct frag_initial_block, waiting, TRUTH),
};
static TABLE(frag_cft_initial_blocks, FRAG_CFT_INITIAL_BLOCKS, sizeof(struct frag_initial_block),
	     "blocks of the initial state");

static const struct frag_cft_field frag_cft_seen_fields[] = {
	FIELD(struct frag_evidence, before, DIFF), FIELD(struct frag_evidence, addr, 0),
	FIELD(struct frag_evidence, bytes, 0),	   FIELD(struct frag_evidence, time_us, DIFF),
	FIELD(struct frag_evidence, stream, 0),	   FIELD(struct frag_evidence, kind, 0),
};
TABLE(frag_cft_seen, FRAG_CFT_SEEN, sizeof(struct frag_evidence), "what the recorder saw");

static const struct frag_cft_field frag_cft_final_segments_fields[] = {
	FIELD(struct frag_final_segment, addr, DIFF),
	FIELD(struct frag_final_segment, bytes, DIFF),
	FIELD(struct frag_final_segment, first_block, DIFF),
	FIELD(struct frag_final_segment, blocks_count, 0),
	FIELD(struct frag_final_segment, stream, 0),
	FIELD(struct frag_final_segment, pool, 0),
	FIELD(struct frag_final_segment, small, TRUTH),
	FIELD(struct frag_final_segment, expandable, TRUTH),
};
static TABLE(frag_cft_final_segments, FRAG_CFT_FINAL_SEGMENTS, sizeof(struct frag_final_segment),
	     "final segments");

static const struct frag_cft_field frag_cft_final_blocks_fields[] = {
	FIELD(struct frag_final_block, addr, DIFF),
	FIELD(struct frag_final_block, bytes, 0),
	FIELD(struct frag_final_block, requested, 0),
	FIELD(struct frag_final_block, state, 0),
};
static TABLE(frag_cft_final_blocks, FRAG_CFT_FINAL_BLOCKS, sizeof(struct frag_final_block),
	     "final blocks");

#define PART(name, array_, count_) \
	{ \
		&frag_cft_##name, offsetof(struct frag_trace_dev, array_), \
			offsetof(struct frag_trace_dev, count_) \
	}
const struct frag_cft_part frag_cft_before[FRAG_CFT_BEFORE] = {
	PART(initial_segments, initial_segments, initial.segments_count),
	PART(initial_blocks, initial_blocks, initial.blocks_count),
};
const struct frag_cft_part frag_cft_after[FRAG_CFT_AFTER] = {
	PART(seen, seen, seen_count),
	PART(final_segments, final_segments, final_segments_count),
	PART(final_blocks, final_blocks, final_blocks_count),
};

#define HEAD(name, flags_) FIELD(struct frag_cft_head_values, name, flags_)
#define ROUND(i) HEAD(trace.settings.roundup[i], 0)
#define ROUNDS(i) ROUND(i), ROUND((i) + 1), ROUND((i) + 2), ROUND((i) + 3)
static const struct frag_cft_field frag_cft_head_fields[] = {
	HEAD(trace.start_us, 0),
	HEAD(trace.file_bytes, 0),
	HEAD(trace.devs_count, 0),
	HEAD(strings_count, 0),
	HEAD(trace.stacks.frames_count, 0),
	HEAD(trace.stacks.index_count, 0),
	HEAD(trace.stacks.count, 0),
	HEAD(trace.settings.present, TRUTH),
	HEAD(trace.settings.max_split_bytes, 0),
	HEAD(trace.settings.gc_threshold, 0),
	HEAD(trace.settings.expandable, TRUTH),
	HEAD(trace.settings.limit_bytes, 0),
	HEAD(trace.settings.limit_known, TRUTH),
	ROUNDS(0),
	ROUNDS(4),
	ROUNDS(8),
	ROUNDS(12),
};
TABLE(frag_cft_head, FRAG_CFT_HEAD, sizeof(struct frag_cft_head_values), "head");

#define DEVICE(name, flags_) FIELD(struct frag_cft_device_values, name, flags_)
static const struct frag_cft_field frag_cft_device_fields[] = {
	DEVICE(dev.ordinal, 0),
	DEVICE(dev.events_count, 0),
	DEVICE(dev.slots_count, 0),
	DEVICE(dev.streams_count, 0),
	DEVICE(dev.pools_count, 0),
	DEVICE(dev.has_evidence, TRUTH),
	DEVICE(has_addrs, TRUTH),
	DEVICE(dev.seen_count, 0),
	DEVICE(dev.final_segments_count, 0),
	DEVICE(dev.final_blocks_count, 0),
	DEVICE(dev.initial.segments_count, 0),
	DEVICE(dev.initial.blocks_count, 0),
	DEVICE(dev.recorded_count, 0),
	DEVICE(dev.truncated, TRUTH),
	DEVICE(dev.uncertain_blocks, 0),
};
TABLE(frag_cft_device, FRAG_CFT_DEVICE, sizeof(struct frag_cft_device_values), "device");

static const struct frag_cft_field frag_cft_end_fields[] = {
	FIELD(struct frag_cft_end_values, blocks, 0),
	FIELD(struct frag_cft_end_values, events, 0),
};
TABLE(frag_cft_end, FRAG_CFT_END, sizeof(struct frag_cft_end_values), "end");

/* ---- packing ----------------------------------------------------------------- */

static uint64_t load(const unsigned char *at, unsigned bytes)
{
	uint64_t v = 0;

	memcpy(&v, at, bytes); /* little-endian, see cft_columns.c */
	return v;
}

/* False if the number does not fit. */
static bool store(unsigned char *at, const struct frag_cft_field *f, uint64_t v)
{
	uint64_t most = f->flags & FRAG_CFT_TRUTH ? 1 : UINT64_MAX >> (64 - 8 * f->bytes);

	memcpy(at, &v, f->bytes);
	return v <= most;
}

static int numbers(struct frag_cft_columns *c, uint64_t *values, size_t count, bool differences,
		   struct frag_err *err)
{
	return c->reads ? frag_cft_unpack_numbers(c, values, count, err)
			: frag_cft_pack_numbers(c, values, count, differences, err);
}

int frag_cft_do_records(const struct frag_cft_records *r, void *base, size_t count,
			uint64_t *scratch, struct frag_cft_columns *c, struct frag_err *err)
{
	if (c->reads)
		memset(base, 0, count * r->stride);
	for (unsigned k = 0; k < r->fields_count; k++) {
		const struct frag_cft_field *f = &r->fields[k];
		unsigned char *field = (unsigned char *)base + f->offset;
		uint64_t at = frag_cft_columns_at(c);
		bool fits = true;

		for (size_t i = 0; !c->reads && i < count; i++)
			scratch[i] = load(field + i * r->stride, f->bytes);
		FRAG_TRY(numbers(c, scratch, count, f->flags & DIFF, err));
		for (size_t i = 0; c->reads && i < count; i++)
			fits &= store(field + i * r->stride, f, scratch[i]);
		if (!fits)
			return frag_cft_bad(err, at, "number out of range in %s", r->what);
	}
	return 0;
}

#define STRUCT_FIELDS_MAX 32
_Static_assert(FRAG_ARRAY_LEN(frag_cft_head_fields) <= STRUCT_FIELDS_MAX, "room for the head");
_Static_assert(FRAG_ARRAY_LEN(frag_cft_device_fields) <= STRUCT_FIELDS_MAX, "room for a device");

int frag_cft_do_struct(const struct frag_cft_records *r, void *base, struct frag_cft_columns *c,
		       struct frag_err *err)
{
	uint64_t values[STRUCT_FIELDS_MAX], at = frag_cft_columns_at(c);
	const struct frag_cft_field *f = r->fields, *end = f + r->fields_count;

	for (; !c->reads && f < end; f++)
		values[f - r->fields] = load((unsigned char *)base + f->offset, f->bytes);
	FRAG_TRY(numbers(c, values, r->fields_count, false, err));
	if (c->reads)
		memset(base, 0, r->stride);
	for (; f < end; f++)
		if (!store((unsigned char *)base + f->offset, f, values[f - r->fields]))
			return frag_cft_bad(err, at, "number out of range in the %s", r->what);
	return 0;
}

/* ---- the head ---- */

/* A text that may be NULL: a number (1 = there is one), then its bytes. */
static int do_text(struct frag_cft_columns *c, char **text, struct frag_err *err)
{
	uint64_t there = *text != NULL, at = frag_cft_columns_at(c);
	size_t len = there ? strlen(*text) : 0;

	if (len > FRAG_CFT_STRING_MAX)
		return FRAG_INPUT(err, "a text of %zu bytes is too long to be stored", len);
	FRAG_TRY(numbers(c, &there, 1, false, err));
	if (!c->reads)
		return frag_cft_pack_raw(c, *text, len, 1, err);
	FRAG_TRY(frag_cft_unpack_count(c, FRAG_CFT_STRING_MAX, &len, err));
	if (there > 1 || (!there && len))
		return frag_cft_bad(err, at, "an absent text has a length");
	if (there)
		FRAG_TRY_CALLOC(*text, len + 1, "trace", err);
	at = frag_cft_columns_at(c);
	FRAG_TRY(frag_cft_unpack_raw(c, *text, len, 1, err));
	return there && strlen(*text) != len ? frag_cft_bad(err, at, "text with a zero byte") : 0;
}

int frag_cft_do_head(uint32_t version, struct frag_cft_head_values *v, char **cards,
		     struct frag_cft_columns *c, struct frag_err *err)
{
	struct frag_trace *t = &v->trace;
	struct frag_trace_settings *set = &t->settings;
	/* a recording by another allocator may be of any release */
	uint64_t release[2] = { set->torch_last ? set->torch_first : FRAG_TORCH_OLDEST,
				set->torch_last ? set->torch_last : FRAG_TORCH_NEWEST };
	uint64_t at;

	FRAG_TRY(frag_cft_do_struct(&frag_cft_head, v, c, err));
	FRAG_TRY(do_text(c, &t->name, err));
	FRAG_TRY(do_text(c, &t->format, err));
	FRAG_TRY(do_text(c, &set->conf, err));
	at = frag_cft_columns_at(c);
	if (version >= 2) {
		FRAG_TRY(numbers(c, release, 2, false, err));
		if (release[0] < FRAG_TORCH_OLDEST || release[0] > release[1] ||
		    release[1] > FRAG_TORCH_NEWEST)
			return frag_cft_bad(err, at, "unknown release of PyTorch");
		set->torch_first = (unsigned)release[0];
		set->torch_last = (unsigned)release[1];
	}
	if (version >= 3)
		FRAG_TRY(do_text(c, &t->estimate, err));
	return version >= 5 ? do_text(c, cards, err) : 0;
}

/* ---- cards ---- */

#define CARD_MAX (1ull << 48) /* bytes, as of the file beside a recording */

static bool is_known(const struct frag_recorded_card *c)
{
	return *c->name || c->total_bytes || c->context_bytes || c->beside_bytes;
}

bool frag_cft_has_cards(const struct frag_trace *t)
{
	for (uint32_t d = 0; d < t->devs_count; d++)
		if (is_known(&t->devs[d].card))
			return true;
	return false;
}

char *frag_cft_cards_text(const struct frag_trace *t)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	for (uint32_t d = 0; to && d < t->devs_count; d++) {
		const struct frag_recorded_card *c = &t->devs[d].card;

		if (!is_known(c)) {
			fputs("-\n", to);
			continue;
		}
		fprintf(to, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %.17g ", c->total_bytes,
			c->context_bytes, c->beside_bytes, c->limit_fraction);
		for (const char *at = c->name; *at; at++)
			fputc(*at < ' ' || *at > '~' ? '?' : *at, to);
		fputc('\n', to);
	}
	if (!to || !fclose(to))
		return text;
	free(text);
	return NULL;
}

static bool take_line(const char *at, size_t len, struct frag_recorded_card *c)
{
	char line[160];
	int name = 0;

	if (len == 1 && *at == '-')
		return true;
	/* scanf passes over blanks */
	if (len >= sizeof(line) || *at < '0' || *at > '9')
		return false;
	snprintf(line, sizeof(line), "%.*s", (int)len, at);
	if (sscanf(line, "%15" SCNu64 " %15" SCNu64 " %15" SCNu64 " %lf%n", &c->total_bytes,
		   &c->context_bytes, &c->beside_bytes, &c->limit_fraction, &name) < 4 ||
	    line[name] != ' ' || len - (size_t)name > sizeof(c->name))
		return false;
	snprintf(c->name, sizeof(c->name), "%s", line + name + 1);
	return FRAG_MAX(FRAG_MAX(c->total_bytes, c->context_bytes), c->beside_bytes) <= CARD_MAX &&
	       c->limit_fraction >= 0 && c->limit_fraction <= 1;
}

const char *frag_cft_cards_read(const char *text, struct frag_trace *t)
{
	for (uint32_t d = 0; d < t->devs_count; d++) {
		const char *end = text ? strchr(text, '\n') : NULL;

		if (!end)
			return "a device without its card";
		if (!take_line(text, (size_t)(end - text), &t->devs[d].card))
			return "an invalid card";
		text = end + 1;
	}
	return text && *text ? "more cards than devices" : NULL;
}
