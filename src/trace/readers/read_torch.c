/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of PyTorch's CUDA caching allocator (torch.cuda.memory._dump_snapshot
 * and the pickles of libtorch), version 2.0 and later. The unpickler hands every
 * dict that looks like a trace entry to torch_entries.c while it streams; the
 * rest (a few thousand dicts) is walked afterwards, level by level, and the pickle is
 * dropped before the events are built.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/bisect.h"
#include "trace/torch/torch_parts.h"

static const char *const words[] = {
#define FRAG_X_(name, text) text,
	FRAG_TORCH_WORDS(FRAG_X_)
#undef FRAG_X_
};

/* ---- devices -------------------------------------------------------------------- */

struct slice {			       /* the entries of one device */
	struct frag_pickle_list *list; /* resolved: items are record numbers */
	size_t first, count;
	uint64_t recorded;	     /* dicts in the list */
	struct frag_raw_entry *copy; /* where the records do not follow each other */
	bool dense, has_segments;
};

static int resolve(struct frag_torch *t, frag_pv v, struct slice *s)
{
	struct frag_pickle_list *list = frag_pickle_list(t->pickle, v);
	uint32_t record, expected = UINT32_MAX;
	size_t n = 0;

	if (!list)
		return frag_fail(t->err, FRAG_EINPUT, "the trace of a device is not a list");
	if (list->note && list->count)
		return frag_fail(t->err, FRAG_EINPUT, "the trace of a device is listed twice");
	list->note = 1;
	s->list = list;
	s->recorded = list->count;
	s->dense = true;
	t->fold_from = SIZE_MAX; /* late records stay apart */
	for (uint32_t i = 0; i < list->count; i++) {
		FRAG_TRY(frag_torch_entry(t, list->items[i], i, &record));
		if (expected != UINT32_MAX) {
			/* the completion that was folded into the request before it */
			if (record != expected)
				break;
			expected = UINT32_MAX;
			continue;
		}
		if (t->entries[record].action == FRAG_RAW_FREE)
			expected = record;
		list->items[n] = record;
		if (!n)
			s->first = record;
		s->dense &= record == s->first + n++;
	}
	if (expected != UINT32_MAX)
		return frag_fail(t->err, FRAG_EINPUT,
				 "a free and its completion are stored together but listed apart");
	s->count = n;
	return 0;
}

/* NULL if there are none. */
static const struct frag_raw_entry *entries_of(const struct frag_torch *t, const struct slice *s)
{
	if (!s->count)
		return NULL;
	return s->copy ? s->copy : t->entries + s->first;
}

static int gather_copy(struct frag_torch *t, struct slice *s)
{
	if (s->dense)
		return 0;
	s->copy = frag_host_realloc(NULL, s->count, sizeof(*s->copy));
	FRAG_CHECK_ALLOC(s->copy, "entries", t->err);
	for (size_t i = 0; i < s->count; i++)
		s->copy[i] = t->entries[s->list->items[i]];
	return 0;
}

FRAG_COMPARE(mark_order, struct frag_torch_mark, FRAG_ORDER(x->mark.time_us, y->mark.time_us),
	     FRAG_ORDER(x->order, y->order))

/* Each device gets every annotation: a small file may have so many, plus one per so many bytes. */
#define SHARED_MARKS_MAX (1u << 22)
#define SHARED_MARK_BYTES 32u

static int check_marks(struct frag_torch *t, const struct slice *slices, size_t count, size_t marks)
{
	size_t most = SHARED_MARKS_MAX + t->trace->file_bytes / SHARED_MARK_BYTES, devices = 0;

	for (size_t i = 0; i < count; i++)
		devices += slices[i].count &&
			   (t->options.device < 0 || t->options.device == (int64_t)i);
	if (!devices || marks <= most / devices)
		return 0;
	return frag_fail(t->err, FRAG_EINPUT,
			 "implausibly many annotations: %zu for each of %zu devices", marks,
			 devices);
}

/* What all devices share: marks in order, those from before the first entry left out. */
struct shared {
	struct frag_raw_mark *marks;
	size_t marks_count;
	bool early_marks;
	uint64_t start_us;
};

static int share(struct frag_torch *t, const struct slice *slices, size_t count, struct shared *sh)
{
	sh->start_us = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		const struct frag_raw_entry *e = entries_of(t, &slices[i]);

		if (e)
			sh->start_us = FRAG_MIN(sh->start_us, (uint64_t)e->time_us);
	}
	if (sh->start_us == UINT64_MAX)
		sh->start_us = 0;
	if (t->marks_count)
		qsort(t->marks, t->marks_count, sizeof(*t->marks), mark_order);
	sh->marks = frag_host_realloc(NULL, t->marks_count, sizeof(*sh->marks));
	FRAG_CHECK_ALLOC(sh->marks, "annotations", t->err);
	for (size_t i = 0; i < t->marks_count; i++) {
		if (t->marks[i].mark.time_us >= sh->start_us)
			sh->marks[sh->marks_count++] = t->marks[i].mark;
		else
			sh->early_marks = true;
	}
	return check_marks(t, slices, count, sh->marks_count);
}

FRAG_COMPARE(segment_order, struct frag_raw_segment, FRAG_ORDER(x->device, y->device),
	     FRAG_ORDER(x->addr, y->addr))

/* The first segment of that device or a later one. */
static size_t first_segment(const struct frag_torch *t, uint32_t device)
{
	size_t at;

	FRAG_BISECT(at, 0, t->segments_count, t->segments[at].device < device);
	return at;
}

static int build_one(struct frag_torch *t, uint32_t ordinal, const struct slice *s,
		     const struct shared *sh)
{
	size_t first = first_segment(t, ordinal);
	struct frag_raw_dev raw = {
		.ordinal = ordinal,
		.entries = entries_of(t, s),
		.entries_count = s->count,
		.recorded_count = s->recorded,
		.streams = t->streams,
		.streams_count = (uint32_t)t->streams_count,
		.pools = t->pools,
		.pools_count = (uint32_t)t->pools_count,
		.marks = sh->marks,
		.marks_count = s->count ? sh->marks_count : 0,
		.early_marks = sh->early_marks,
		.strings = t->trace->strings,
		.finals_known = t->segments_listed,
		.segments = t->segments_count ? t->segments + first : NULL,
		.segments_count = first_segment(t, ordinal + 1) - first,
		.blocks = t->blocks,
		.block_stacks = t->block_stacks,
		.settings = &t->trace->settings,
		.start_us = sh->start_us,
	};
	int rc = frag_build_dev(&raw, &t->trace->devs[t->trace->devs_count], t->err);

	t->trace->devs_count += !rc;
	return rc;
}

/* From 2.15 on the history of each device begins with a mark, whether it is used or not. */
static bool was_used(struct frag_torch *t, const struct slice *s)
{
	const struct frag_raw_entry *e = entries_of(t, s);

	for (size_t i = 0; i < s->count; i++)
		if (e[i].action != FRAG_RAW_SNAPSHOT && e[i].action < FRAG_RAW_EMPTY_CACHE)
			return true;
	return s->has_segments;
}

static int build_all(struct frag_torch *t, const struct slice *slices, size_t count)
{
	struct shared sh = { 0 };
	int rc;

	FRAG_TRY_CALLOC(t->trace->devs, count, "devices", t->err);
	rc = share(t, slices, count, &sh);
	t->trace->start_us = sh.start_us;
	if (t->segments_count)
		qsort(t->segments, t->segments_count, sizeof(*t->segments), segment_order);
	for (size_t i = 0; i < count && !rc; i++)
		if (was_used(t, &slices[i]) &&
		    (t->options.device < 0 || t->options.device == (int64_t)i))
			rc = build_one(t, (uint32_t)i, &slices[i], &sh);
	frag_host_free(sh.marks);
	frag_trace_set_torch(t->trace, t->trace->settings.torch_first,
			     t->trace->settings.torch_last);
	if (rc || t->trace->devs_count)
		return rc;
	if (t->options.device >= 0)
		return frag_fail(t->err, FRAG_EUSAGE, "nothing was recorded on device %lld",
				 (long long)t->options.device);
	return frag_fail(t->err, FRAG_EINPUT,
			 "nothing was recorded: no entries and no segments "
			 "(was torch.cuda.memory._record_memory_history called?)");
}

/* ---- the file ------------------------------------------------------------------------ */

static int resolve_all(struct frag_torch *t, struct frag_pickle_list *traces, struct slice **slices,
		       size_t *count)
{
	size_t n = traces ? traces->count : 0;

	for (size_t i = 0; i < t->segments_count; i++)
		n = FRAG_MAX(n, (size_t)t->segments[i].device + 1);
	if (n > FRAG_TORCH_DEVICES_MAX)
		return frag_fail(t->err, FRAG_EINPUT, "more than %u devices",
				 FRAG_TORCH_DEVICES_MAX);
	FRAG_TRY_CALLOC(*slices, n, "devices", t->err);
	*count = n;
	for (size_t i = 0; i < t->segments_count; i++)
		(*slices)[t->segments[i].device].has_segments = true;
	for (size_t i = 0; i < n; i++) {
		(*slices)[i].dense = true;
		if (traces && i < traces->count)
			FRAG_TRY(resolve(t, traces->items[i], &(*slices)[i]));
	}
	FRAG_TRY(frag_torch_read_stacks(t));
	for (size_t i = 0; i < n; i++)
		FRAG_TRY(gather_copy(t, &(*slices)[i]));
	return 0;
}

static int read_parts(struct frag_torch *t, frag_pv root, struct slice **slices, size_t *count)
{
	const struct frag_pickle_node *top = frag_pickle_node(t->pickle, root), *set;
	struct frag_pickle_list *traces = NULL;
	frag_pv segments = root, settings, v;

	if (!top && !frag_pickle_list(t->pickle, root))
		return frag_fail(t->err, FRAG_EINPUT,
				 "this pickle is neither a snapshot (a dict) nor "
				 "a list of segments");
	settings = top ? frag_node_get(top, FRAG_W_ALLOCATOR_SETTINGS) : FRAG_PV_NONE;
	frag_torch_note(&t->seen, FRAG_TORCH_OF_FILE, top ? top->pairs : NULL,
			top ? top->count : 0);
	set = frag_pickle_node(t->pickle, settings);
	if (set && set->count)
		frag_torch_note(&t->seen, FRAG_TORCH_OF_SETTINGS, set->pairs, set->count);
	FRAG_TRY(frag_torch_read_settings(t, settings));
	if (top) {
		segments = frag_node_get(top, FRAG_W_SEGMENTS);
		v = frag_node_get(top, FRAG_W_DEVICE_TRACES);
		traces = frag_pickle_list(t->pickle, v);
		if (segments == FRAG_PV_HOLE && v == FRAG_PV_HOLE)
			return frag_fail(t->err, FRAG_EINPUT,
					 "this pickle is not a snapshot: it has neither "
					 "'segments' nor 'device_traces'");
		if (!traces && v != FRAG_PV_HOLE)
			return frag_fail(t->err, FRAG_EINPUT, "'device_traces' is not a list");
		FRAG_TRY(frag_torch_read_marks(t, frag_node_get(top, FRAG_W_EXTERNAL_ANNOTATIONS)));
	}
	if (segments != FRAG_PV_HOLE) {
		t->segments_listed = true;
		FRAG_TRY(frag_torch_read_segments(t, segments));
	}
	if (traces) {
		if (traces->note)
			return frag_fail(t->err, FRAG_EINPUT, "'device_traces' is listed twice");
		traces->note = 1;
	}
	return resolve_all(t, traces, slices, count);
}

/* PyTorch 2.1 and 2.2 do not keep the settings; but only expandable segments are ever mapped. */
static const char *missing_settings(const struct frag_torch *t)
{
	if (t->options.conf || t->trace->settings.present)
		return t->options.conf;
	for (size_t i = 0; i < t->entries_count; i++)
		if (t->entries[i].action == FRAG_RAW_SEGMENT_MAP)
			return "expandable_segments:True";
	return NULL;
}

static int read_input(struct frag_torch *t, struct frag_input *in)
{
	struct slice *slices = NULL;
	size_t count = 0;
	frag_pv root = FRAG_PV_NONE;
	int rc;

	rc = frag_pickle_read(t->pickle, in, &root, t->err);
	/* the pickle's own messages name the file */
	if (rc == FRAG_EINPUT && t->err && !strstr(t->err->msg, frag_input_name(in)))
		frag_err_prefix(t->err, "'%s'", frag_input_name(in));
	FRAG_TRY(rc);
	t->trace->file_bytes = frag_input_offset(in);
	rc = read_parts(t, root, &slices, &count);
	frag_pickle_destroy(t->pickle);
	t->pickle = NULL;
	if (!rc) {
		struct frag_trace_settings *set = &t->trace->settings;

		frag_torch_releases(&t->seen, set->conf, &set->torch_first, &set->torch_last);
		rc = frag_trace_take_conf(t->trace, missing_settings(t), t->err);
	}
	if (!rc)
		rc = frag_stack_table_take(t->stacks, &t->trace->stacks, t->err)
			     ?: build_all(t, slices, count);
	for (size_t i = 0; i < count; i++)
		frag_host_free(slices[i].copy);
	frag_host_free(slices);
	if (rc)
		frag_err_prefix(t->err, "'%s'", frag_input_name(in));
	return rc;
}

static int prepare(struct frag_torch *t, const char *options)
{
	uint16_t index;

	FRAG_TRY(frag_trace_options_parse(options, &t->options, t->err));
	FRAG_TRY_CALLOC(t->trace, 1, "trace", t->err);
	FRAG_TRY(frag_strings_create(&t->trace->strings, t->err));
	FRAG_TRY(frag_stack_table_create(&t->stacks, t->err));
	FRAG_TRY(frag_torch_stream(t, 0, &index)); /* every zeroed entry has a stream */
	FRAG_TRY(FRAG_GROW(t->pools, 0, t->pools_cap, "pools", t->err));
	t->pools[t->pools_count++] = (struct frag_pool_id){ 0, 0 };
	return frag_pickle_create(words, FRAG_ARRAY_LEN(words), &frag_torch_records, t, &t->pickle,
				  t->err);
}

static int read_torch(struct frag_input *in, const char *options, struct frag_trace **out,
		      struct frag_err *err)
{
	struct frag_torch t = { .err = err };
	int rc = prepare(&t, options) ?: read_input(&t, in);

	frag_pickle_destroy(t.pickle);
	frag_stack_table_destroy(t.stacks);
	frag_addr_map_release(&t.stream_index);
	FRAG_FREE(t.entries, t.streams, t.pools, t.segments, t.blocks, t.block_stacks, t.marks,
		  t.names);
	if (rc)
		frag_trace_destroy(t.trace);
	else
		*out = t.trace;
	return rc;
}

static int probe(const unsigned char *bytes, size_t len)
{
	static const char *const keys[] = { "device_traces", "segments", "total_size",
					    "allocator_settings" };

	if (len < 2 || bytes[0] != 0x80 || bytes[1] < 2 || bytes[1] > 5)
		return 0;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(keys); i++)
		if (memmem(bytes, len, keys[i], strlen(keys[i])))
			return 95;
	return 50; /* any pickle: the reader reports what is wrong with it */
}

const struct frag_reader_ops frag_reader_torch = {
	.name = "torch-snapshot",
	.summary = "PyTorch CUDA memory snapshot (torch.cuda.memory._dump_snapshot), a pickle",
	.probe = probe,
	.read = read_torch,
};
