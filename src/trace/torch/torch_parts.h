/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the PyTorch snapshot reader. The pickle interns these words first, so that every key,
 * action and state is a small number. */
#ifndef FRAG_TRACE_TORCH_PARTS_H
#define FRAG_TRACE_TORCH_PARTS_H

#include "lib/addr_map.h"
#include "trace/build/build.h"
#include "trace/strings.h"
#include "trace/whole.h"
#include "unpickle.h"

/* Entry keys come first: see torch_entries.c. */
#define FRAG_TORCH_WORDS(X) \
	X(ACTION, "action") \
	X(ADDR, "addr") \
	X(DEVICE_FREE, "device_free") \
	X(SIZE, "size") \
	X(STREAM, "stream") \
	X(TIME_US, "time_us") \
	X(FRAMES, "frames") \
	X(POOL_ID, "pool_id") \
	X(ALLOC, "alloc") \
	X(FREE_REQUESTED, "free_requested") \
	X(FREE_COMPLETED, "free_completed") \
	X(SEGMENT_ALLOC, "segment_alloc") \
	X(SEGMENT_FREE, "segment_free") \
	X(SEGMENT_MAP, "segment_map") \
	X(SEGMENT_UNMAP, "segment_unmap") \
	X(OOM, "oom") \
	X(SNAPSHOT, "snapshot") \
	X(EMPTY_CACHE, "empty_cache") \
	X(LIMIT, "limit") \
	X(SEGMENTS, "segments") \
	X(DEVICE_TRACES, "device_traces") \
	X(ALLOCATOR_SETTINGS, "allocator_settings") \
	X(EXTERNAL_ANNOTATIONS, "external_annotations") \
	X(DEVICE, "device") \
	X(ADDRESS, "address") \
	X(TOTAL_SIZE, "total_size") \
	X(SEGMENT_TYPE, "segment_type") \
	X(SEGMENT_POOL_ID, "segment_pool_id") \
	X(IS_EXPANDABLE, "is_expandable") \
	X(BLOCKS, "blocks") \
	X(REQUESTED_SIZE, "requested_size") \
	X(STATE, "state") \
	X(HISTORY, "history") \
	X(REAL_SIZE, "real_size") \
	X(SMALL, "small") \
	X(LARGE, "large") \
	X(ACTIVE_ALLOCATED, "active_allocated") \
	X(ACTIVE_PENDING_FREE, "active_pending_free") \
	X(ACTIVE_AWAITING_FREE, "active_awaiting_free") \
	X(INACTIVE, "inactive") \
	X(NAME, "name") \
	X(STAGE, "stage") \
	X(START, "START") \
	X(END, "END") \
	X(FILENAME, "filename") \
	X(LINE, "line") \
	X(CONF, "PYTORCH_CUDA_ALLOC_CONF") \
	X(CONF_NEW, "PYTORCH_ALLOC_CONF") \
	X(MAX_SPLIT_SIZE, "max_split_size") \
	X(GC_THRESHOLD, "garbage_collection_threshold") \
	X(EXPANDABLE_SEGMENTS, "expandable_segments") \
	X(ROUNDUP, "roundup_power2_divisions") \
	X(COMPILE_CONTEXT, "compile_context") \
	X(USER_METADATA, "user_metadata") \
	X(STREAM_REUSE, "graph_capture_record_stream_reuse") \
	X(MAX_ROUND_THRESHOLD, "max_round_threshold") \
	X(HOST_SEGMENTS, "host_segments") \
	X(HOST_TRACES, "host_traces")

enum frag_torch_word {
	FRAG_W_NOTHING_,
#define FRAG_X_(name, text) FRAG_W_##name,
	FRAG_TORCH_WORDS(FRAG_X_)
#undef FRAG_X_
		FRAG_W_COUNT
};

#define FRAG_TORCH_DEVICES_MAX 4096u

struct frag_torch_mark {
	struct frag_raw_mark mark;
	uint32_t order; /* of arrival, for a stable sort */
};

/* Marks of the releases of PyTorch; see torch_entries.c. */
enum frag_torch_place { FRAG_TORCH_OF_FILE, FRAG_TORCH_OF_SETTINGS, FRAG_TORCH_OF_ENTRY };
struct frag_torch_seen {
	uint32_t there, looked; /* marks; places */
};

struct frag_torch {
	struct frag_pickle *pickle;
	struct frag_trace *trace;
	struct frag_err *err;

	struct frag_raw_entry *entries; /* all records, in order of arrival */
	size_t entries_count, entries_cap;
	size_t fold_from; /* earlier records are not folded with the next one */

	uint64_t *streams; /* raw handles in order of arrival */
	size_t streams_count, streams_cap;
	struct frag_addr_map stream_index;
	uint64_t last_stream; /* handle and index of the last look-up */
	uint16_t last_stream_index;
	struct frag_pool_id *pools;
	size_t pools_count, pools_cap;

	struct frag_stack_table *stacks;
	uint32_t *names; /* by number of a text in the pickle; see frag_torch_name */
	size_t names_cap;

	struct frag_raw_segment *segments; /* of all devices */
	size_t segments_count, segments_cap;
	struct frag_final_block *blocks;
	size_t blocks_count, blocks_cap;
	uint32_t *block_stacks; /* of each block: list of frames + 1, then the stack; 0: none */
	size_t block_stacks_cap;

	struct frag_torch_mark *marks;
	size_t marks_count, marks_cap;

	bool segments_listed;
	struct frag_trace_options options;
	struct frag_torch_seen seen;
};

/* For the reader registry; the table is made from the file names. */
extern const struct frag_reader_ops frag_reader_torch;

/* Dense index of a raw handle. */
int frag_torch_stream(struct frag_torch *t, uint64_t handle, uint16_t *index);
/* Dense index of a pool id given as a tuple (int, int); anything else is the default pool. */
int frag_torch_pool(struct frag_torch *t, frag_pv id, uint16_t *index);

/* Trace entries as records; ctx: struct frag_torch. */
extern const struct frag_record_ops frag_torch_records;

/* Notes what the file, its settings (if it has any) or an entry shows; then the first and the last
 * release that write such files. conf: the settings as text, or NULL. */
void frag_torch_note(struct frag_torch_seen *seen, enum frag_torch_place of, const frag_pv *pairs,
		     size_t n);
void frag_torch_releases(const struct frag_torch_seen *seen, const char *conf, unsigned *first,
			 unsigned *last);

/* Record of item number `at` of a trace; dicts that were not taken are read here. */
int frag_torch_entry(struct frag_torch *t, frag_pv item, size_t at, uint32_t *record);

int frag_torch_read_segments(struct frag_torch *t, frag_pv list);
int frag_torch_read_settings(struct frag_torch *t, frag_pv dict);
int frag_torch_read_marks(struct frag_torch *t, frag_pv list);
/* Turns the stacks of entries and blocks from "pickle list + 1" into a stack index. */
int frag_torch_read_stacks(struct frag_torch *t);

#endif
