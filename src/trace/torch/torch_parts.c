/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Final segments, settings, annotations and stacks of a PyTorch snapshot. Keys missing in older
 * formats get their defaults; unknown keys are ignored. Every list and dict is visited at most once
 * (`note`), so the work is bounded by the size of the file.
 */
#include "torch_parts.h"

#include <string.h>

#include "base/clean.h"

#define NAME_MAX_BYTES 65536u
#define POOLS_MAX 1024u
#define HISTORY_PAIRS_MAX 16u /* three in real files */

int frag_torch_stream(struct frag_torch *t, uint64_t handle, uint16_t *index)
{
	struct frag_addr_cell *cell;

	if (FRAG_UNLIKELY(handle != t->last_stream || !t->streams_count)) {
		cell = frag_addr_map_find(&t->stream_index, handle);
		if (!cell) {
			if (t->streams_count == UINT16_MAX)
				return frag_fail(t->err, FRAG_EINPUT, "more than %u streams",
						 UINT16_MAX);
			FRAG_TRY(FRAG_GROW(t->streams, t->streams_count, t->streams_cap, "streams",
					   t->err));
			FRAG_CHECK_ALLOC(
				!frag_addr_map_number(&t->stream_index, handle, t->streams_count),
				"streams", t->err);
			t->streams[t->streams_count++] = handle;
			cell = frag_addr_map_find(&t->stream_index, handle);
		}
		t->last_stream = handle;
		t->last_stream_index = (uint16_t)frag_addr_number(cell);
	}
	*index = t->last_stream_index;
	return 0;
}

int frag_torch_pool(struct frag_torch *t, frag_pv id, uint16_t *index)
{
	struct frag_pickle_list *tuple = frag_pickle_tuple(t->pickle, id);
	struct frag_pool_id pool;
	size_t i;

	*index = 0;
	if (!tuple || tuple->count != 2 || !frag_pickle_u64(t->pickle, tuple->items[0], &pool.a) ||
	    !frag_pickle_u64(t->pickle, tuple->items[1], &pool.b))
		return 0;
	if (!tuple->note) {
		for (i = 0; i < t->pools_count; i++)
			if (t->pools[i].a == pool.a && t->pools[i].b == pool.b)
				break;
		if (i == t->pools_count) {
			if (i == POOLS_MAX)
				return frag_fail(t->err, FRAG_EINPUT, "more than %u pools",
						 POOLS_MAX);
			FRAG_TRY(FRAG_GROW(t->pools, i, t->pools_cap, "pools", t->err));
			t->pools[t->pools_count++] = pool;
		}
		tuple->note = (uint32_t)i + 1;
	}
	*index = (uint16_t)(tuple->note - 1);
	return 0;
}

/* The number of a text's clean name, by number of the text in the pickle; 0: not asked yet. */
static uint32_t *name_cell(struct frag_torch *t, frag_pv text)
{
	size_t i = frag_pv_index(text), cap = t->names_cap ? t->names_cap : 1024;
	uint32_t *names;

	if (i < t->names_cap)
		return &t->names[i];
	while (cap <= i)
		cap *= 2;
	names = frag_host_realloc(t->names, cap, sizeof(*names));
	if (!names)
		return NULL;
	memset(names + t->names_cap, 0, (cap - t->names_cap) * sizeof(*names));
	t->names = names;
	t->names_cap = cap;
	return &t->names[i];
}

/* Interns a name for people: invalid UTF-8 and control characters become '?'. */
static int clean_name(struct frag_torch *t, frag_pv text, uint32_t *index)
{
	size_t len = 0;
	const char *s = frag_pickle_text(t->pickle, text, &len);
	uint32_t *cell;
	FRAG_AUTO_FREE char *copy = NULL;

	*index = 0;
	if (!s)
		return 0;
	/* a long text may be named by every frame: it is looked at once */
	cell = name_cell(t, text);
	FRAG_CHECK_ALLOC(cell, "names", t->err);
	if (*cell) {
		*index = *cell - 1;
		return 0;
	}
	len = FRAG_MIN(len, NAME_MAX_BYTES);
	copy = frag_host_alloc(len + 1);
	FRAG_CHECK_ALLOC(copy, "name", t->err);
	memcpy(copy, s, len);
	frag_clean_text(copy, len);
	FRAG_TRY(frag_strings_intern(t->trace->strings, copy, len, index, t->err));
	*cell = *index + 1;
	return 0;
}

static uint64_t get_u64(struct frag_torch *t, const struct frag_pickle_node *node, uint32_t key,
			uint64_t fallback)
{
	uint64_t v;

	return frag_pickle_u64(t->pickle, frag_node_get(node, key), &v) ? v : fallback;
}

static uint32_t get_word(const struct frag_pickle_node *node, uint32_t key)
{
	frag_pv v = frag_node_get(node, key);

	return frag_pv_tag(v) == FRAG_PV_STR ? frag_pv_index(v) : 0;
}

/* A dict that is visited once; `what`: for messages. */
static int visit(struct frag_torch *t, frag_pv v, const char *what,
		 const struct frag_pickle_node **node)
{
	*node = frag_pickle_node(t->pickle, v);
	if (!*node)
		return frag_fail(t->err, FRAG_EINPUT, "%s is not a dict", what);
	return frag_pickle_note(t->pickle, v, 1)
		       ? frag_fail(t->err, FRAG_EINPUT, "%s is listed twice", what)
		       : 0;
}

/* A list that is visited once; 0 items for what is none. */
static int visit_list(struct frag_torch *t, frag_pv v, const char *what,
		      struct frag_pickle_list *out)
{
	struct frag_pickle_list *list = frag_pickle_list(t->pickle, v);

	*out = (struct frag_pickle_list){ 0 };
	if (!list)
		return 0;
	if (list->note && list->count)
		return frag_fail(t->err, FRAG_EINPUT, "%s is listed twice", what);
	list->note = 1;
	*out = *list;
	return 0;
}

/* ---- segments ------------------------------------------------------------------- */

static int read_block(struct frag_torch *t, frag_pv v, frag_addr_t addr)
{
	struct frag_final_block *b;
	const struct frag_pickle_list *history;
	const struct frag_pickle_node *node, *newest;
	uint32_t state;
	frag_pv frames;

	FRAG_TRY(visit(t, v, "a block of the segments", &node));
	FRAG_TRY(FRAG_GROW(t->blocks, t->blocks_count, t->blocks_cap, "blocks", t->err));
	FRAG_TRY(
		FRAG_GROW(t->block_stacks, t->blocks_count, t->block_stacks_cap, "blocks", t->err));
	b = &t->blocks[t->blocks_count++];
	b->addr = get_u64(t, node, FRAG_W_ADDRESS, addr);
	b->bytes = get_u64(t, node, FRAG_W_SIZE, 0);
	b->requested = get_u64(t, node, FRAG_W_REQUESTED_SIZE, b->bytes);
	history = frag_pickle_list(t->pickle, frag_node_get(node, FRAG_W_HISTORY));
	newest = history && history->count ? frag_pickle_node(t->pickle, history->items[0]) : NULL;
	frames = frag_node_get(node, FRAG_W_FRAMES);
	/* format of 2.0. Blocks may share a history; one with too many is not searched */
	if (newest && newest->count <= HISTORY_PAIRS_MAX) {
		b->requested = get_u64(t, newest, FRAG_W_REAL_SIZE, b->requested);
		frames = frag_node_get(newest, FRAG_W_FRAMES);
	}
	t->block_stacks[t->blocks_count - 1] =
		frag_pickle_list(t->pickle, frames) ? frag_pv_index(frames) + 1 : 0;
	state = get_word(node, FRAG_W_STATE);
	b->state = state == FRAG_W_ACTIVE_ALLOCATED ? FRAG_STATE_LIVE
		   : state == FRAG_W_ACTIVE_PENDING_FREE || state == FRAG_W_ACTIVE_AWAITING_FREE
			   ? FRAG_STATE_WAITING
			   : FRAG_STATE_FREE;
	if (b->state != FRAG_STATE_FREE)
		b->requested = FRAG_MIN(b->requested, b->bytes);
	return 0;
}

static int read_blocks(struct frag_torch *t, frag_pv v, struct frag_raw_segment *s)
{
	struct frag_pickle_list list;
	frag_addr_t next = s->addr;

	s->first_block = (uint32_t)t->blocks_count;
	FRAG_TRY(visit_list(t, v, "a list of blocks", &list));
	for (uint32_t i = 0; i < list.count; i++) {
		const struct frag_final_block *b;

		FRAG_TRY(read_block(t, list.items[i], next));
		b = &t->blocks[t->blocks_count - 1];
		if (b->addr != next || b->bytes > s->addr + s->bytes - next)
			return frag_fail(t->err, FRAG_EINPUT,
					 "segment 0x%llx: block at 0x%llx does not begin where the "
					 "one before ends, or exceeds the segment",
					 (unsigned long long)s->addr, (unsigned long long)b->addr);
		next += b->bytes;
	}
	s->blocks_count = list.count;
	return 0;
}

/* 0 if the file has none (old releases); an invalid value is an error. */
static uint64_t get_device(struct frag_torch *t, const struct frag_pickle_node *node)
{
	frag_pv v = frag_node_get(node, FRAG_W_DEVICE);

	return v == FRAG_PV_HOLE || v == FRAG_PV_NONE ? 0
						      : get_u64(t, node, FRAG_W_DEVICE, UINT64_MAX);
}

static int read_segment(struct frag_torch *t, frag_pv v)
{
	const struct frag_pickle_node *node;
	struct frag_raw_segment s = { 0 };
	uint64_t device;

	FRAG_TRY(visit(t, v, "a segment", &node));
	device = get_device(t, node);
	s.addr = get_u64(t, node, FRAG_W_ADDRESS, UINT64_MAX);
	s.bytes = get_u64(t, node, FRAG_W_TOTAL_SIZE, 0);
	if (device == UINT64_MAX)
		return frag_fail(t->err, FRAG_EINPUT, "segment 0x%llx has no valid device number",
				 (unsigned long long)s.addr);
	if (device >= FRAG_TORCH_DEVICES_MAX || !s.bytes || s.bytes > INT64_MAX ||
	    s.addr > INT64_MAX)
		return frag_fail(t->err, FRAG_EINPUT,
				 "impossible segment 0x%llx: %llu bytes on device %llu",
				 (unsigned long long)s.addr, (unsigned long long)s.bytes,
				 (unsigned long long)device);
	FRAG_TRY(frag_torch_stream(t, get_u64(t, node, FRAG_W_STREAM, 0), &s.stream));
	FRAG_TRY(frag_torch_pool(t, frag_node_get(node, FRAG_W_SEGMENT_POOL_ID), &s.pool));
	s.small = get_word(node, FRAG_W_SEGMENT_TYPE)
			  ? get_word(node, FRAG_W_SEGMENT_TYPE) == FRAG_W_SMALL
			  : s.bytes == FRAG_PAGE;
	s.expandable = frag_node_get(node, FRAG_W_IS_EXPANDABLE) == FRAG_PV_TRUE;
	FRAG_TRY(read_blocks(t, frag_node_get(node, FRAG_W_BLOCKS), &s));
	FRAG_TRY(FRAG_GROW(t->segments, t->segments_count, t->segments_cap, "segments", t->err));
	s.device = (uint32_t)device;
	t->segments[t->segments_count++] = s;
	return 0;
}

int frag_torch_read_segments(struct frag_torch *t, frag_pv v)
{
	struct frag_pickle_list *list = frag_pickle_list(t->pickle, v);

	if (!list)
		return frag_fail(t->err, FRAG_EINPUT, "'segments' is not a list");
	list->note = 1;
	for (uint32_t i = 0; i < list->count; i++)
		FRAG_TRY(read_segment(t, list->items[i]));
	return 0;
}

/* ---- settings --------------------------------------------------------------------- */

static void read_roundup(struct frag_torch *t, frag_pv v, uint32_t *roundup)
{
	const struct frag_pickle_node *node = frag_pickle_node(t->pickle, v);

	for (uint32_t i = 0; node && i < node->count; i++) {
		const char *key = frag_pickle_text(t->pickle, node->pairs[2 * i], NULL);
		uint64_t mib = 0, divisions;

		for (; key && *key >= '0' && *key <= '9' && mib < 1 << 20; key++)
			mib = mib * 10 + (uint64_t)(*key - '0');
		if (key && !*key && frag_is_pow2(mib) && frag_log2(mib) < 16 &&
		    frag_pickle_u64(t->pickle, node->pairs[2 * i + 1], &divisions) &&
		    divisions <= 1 << 20)
			roundup[frag_log2(mib)] = (uint32_t)divisions;
	}
}

int frag_torch_read_settings(struct frag_torch *t, frag_pv v)
{
	const struct frag_pickle_node *node = frag_pickle_node(t->pickle, v);
	struct frag_trace_settings *set = &t->trace->settings;
	const char *conf = NULL;
	int64_t max_split;

	set->max_split_bytes = UINT64_MAX;
	set->limit_bytes = UINT64_MAX;
	if (node && node->count) {
		set->present = true;
		conf = frag_pickle_text(t->pickle, frag_node_get(node, FRAG_W_CONF), NULL);
		if (!conf)
			conf = frag_pickle_text(t->pickle, frag_node_get(node, FRAG_W_CONF_NEW),
						NULL);
		if (frag_pickle_i64(t->pickle, frag_node_get(node, FRAG_W_MAX_SPLIT_SIZE),
				    &max_split) &&
		    max_split >= 0)
			set->max_split_bytes = (uint64_t)max_split;
		frag_pickle_f64(t->pickle, frag_node_get(node, FRAG_W_GC_THRESHOLD),
				&set->gc_threshold);
		if (!(set->gc_threshold >= 0 && set->gc_threshold <= 1))
			set->gc_threshold = 0;
		set->expandable = frag_node_get(node, FRAG_W_EXPANDABLE_SEGMENTS) == FRAG_PV_TRUE;
		read_roundup(t, frag_node_get(node, FRAG_W_ROUNDUP), set->roundup);
	}
	set->conf = frag_host_strdup(conf ? conf : "");
	FRAG_CHECK_ALLOC(set->conf, "settings", t->err);
	frag_clean_text(set->conf, strlen(set->conf));
	return 0;
}

/* ---- annotations ---------------------------------------------------------------------- */

static int read_mark(struct frag_torch *t, frag_pv v)
{
	const struct frag_pickle_node *node;
	struct frag_torch_mark m = { 0 };
	const char *name;
	uint32_t stage;

	FRAG_TRY(visit(t, v, "an annotation", &node));
	name = frag_pickle_text(t->pickle, frag_node_get(node, FRAG_W_NAME), NULL);
	stage = get_word(node, FRAG_W_STAGE);
	m.mark.time_us = get_u64(t, node, FRAG_W_TIME_US, 0);
	if (!name || !m.mark.time_us || (stage != FRAG_W_START && stage != FRAG_W_END))
		return 0; /* nothing that a replay could use */
	m.mark.flags = stage == FRAG_W_END ? FRAG_EVF_END : 0;
	if (!strncmp(name, "Optimizer.step", 14))
		m.mark.flags |= FRAG_EVF_STEP;
	FRAG_TRY(clean_name(t, frag_node_get(node, FRAG_W_NAME), &m.mark.name));
	m.order = (uint32_t)t->marks_count;
	FRAG_TRY(FRAG_GROW(t->marks, t->marks_count, t->marks_cap, "annotations", t->err));
	t->marks[t->marks_count++] = m;
	return 0;
}

int frag_torch_read_marks(struct frag_torch *t, frag_pv v)
{
	struct frag_pickle_list list;

	/* older formats have none */
	FRAG_TRY(visit_list(t, v, "the list of annotations", &list));
	for (uint32_t i = 0; i < list.count; i++)
		FRAG_TRY(read_mark(t, list.items[i]));
	return 0;
}

/* ---- stacks -------------------------------------------------------------------------------- */

/* Frame dicts are shared by many stacks: their note is the frame number plus one. */
static int read_frame(struct frag_torch *t, frag_pv v, uint32_t *number)
{
	const struct frag_pickle_node *node = frag_pickle_node(t->pickle, v);
	struct frag_frame f = { 0 };

	if (!node)
		return frag_fail(t->err, FRAG_EINPUT, "a stack frame is not a dict");
	*number = node->note - 1;
	if (node->note)
		return 0;
	FRAG_TRY(clean_name(t, frag_node_get(node, FRAG_W_NAME), &f.name));
	FRAG_TRY(clean_name(t, frag_node_get(node, FRAG_W_FILENAME), &f.file));
	f.line = (uint32_t)FRAG_MIN(get_u64(t, node, FRAG_W_LINE, 0), UINT32_MAX);
	FRAG_TRY(frag_stack_table_frame(t->stacks, f, number, t->err));
	frag_pickle_note(t->pickle, v, *number + 1);
	return 0;
}

static int read_stack(struct frag_torch *t, uint32_t list_index, uint32_t *stack)
{
	frag_pv v = (frag_pv)list_index << 3 | FRAG_PV_LIST;
	struct frag_pickle_list *list = frag_pickle_list(t->pickle, v);
	FRAG_AUTO_FREE uint32_t *frames = NULL;

	if (list->note) {
		*stack = list->note - 1;
		return 0;
	}
	frames = frag_host_realloc(NULL, list->count, sizeof(*frames));
	FRAG_CHECK_ALLOC(frames, "stack", t->err);
	for (uint32_t i = 0; i < list->count; i++)
		FRAG_TRY(read_frame(t, list->items[i], &frames[i]));
	FRAG_TRY(frag_stack_table_stack(t->stacks, frames, list->count, stack, t->err));
	list->note = *stack + 1;
	return 0;
}

int frag_torch_read_stacks(struct frag_torch *t)
{
	uint32_t last_list = 0, last_stack = 0;

	for (size_t i = 0; i < t->entries_count + t->blocks_count; i++) {
		uint32_t *stack = i < t->entries_count ? &t->entries[i].stack
						       : &t->block_stacks[i - t->entries_count];

		if (!*stack)
			continue;
		if (*stack != last_list)
			FRAG_TRY(read_stack(t, *stack - 1, &last_stack));
		last_list = *stack;
		*stack = last_stack;
	}
	return 0;
}
