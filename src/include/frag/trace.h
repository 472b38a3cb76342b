/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: the requests of a program to its allocator, per device, as fixed-size events in recorded
 * order; and the evidence, what the recorder saw of its own allocator. Policies never see evidence;
 * verify and address hints use it.
 *
 * Slots. Every live allocation has a slot number. Slots are dense, and the slot freed last is
 * reused first. A trace with at most n live blocks at a time uses slots 0..n-1, so the engine's
 * live table is an array.
 *
 * Ownership: a struct frag_trace owns everything it points to; frag_trace_destroy accepts NULL.
 * Strings are interned: index 0 is "".
 */
#ifndef FRAG_TRACE_H
#define FRAG_TRACE_H

#include <frag/base.h>
#include <frag/error.h>
#include <frag/policy.h>

enum frag_event_kind {
	FRAG_EV_ALLOC,		/* a request that was granted in the recording */
	FRAG_EV_FREE,		/* requested and completed at once: the common case */
	FRAG_EV_FREE_REQUESTED, /* freed, but another stream still uses the block */
	FRAG_EV_FREE_COMPLETED, /* the other stream has finished */
	FRAG_EV_TRIM,	 /* empty_cache; pool 0 = the default pools, else that private pool */
	FRAG_EV_REFUSED, /* a request that failed in the recording (oom); no slot */
	FRAG_EV_MARK,	 /* slot = string index of the name; flags: begins or ends */
	FRAG_EV_COUNT
};

/* flags */
#define FRAG_EVF_INITIAL 1u /* ALLOC: was live before the history began */
#define FRAG_EVF_AT_SYNC 2u /* FREE_COMPLETED: by the synchronisation inside the next malloc */
#define FRAG_EVF_END 4u	    /* MARK: the phase ends (else begins) */
#define FRAG_EVF_STEP 8u    /* MARK: a step boundary (optimizer step) */
#define FRAG_EVF_UNSURE 16u /* TRIM: may be a retry; see resolve */
#define FRAG_EVF_LIMIT 32u  /* MARK: from here on the process may reserve `bytes`; 0 = no limit */

#define FRAG_MAX_REQUEST ((1ull << 48) - 1)
#define FRAG_NO_STACK 0u
#define FRAG_NO_ADDR UINT64_MAX /* evidence: unknown address */

/* 24 bytes. */
struct frag_event {
	uint64_t bytes : 48; /* ALLOC, REFUSED: requested; frees repeat it */
	uint64_t pool : 16;
	uint64_t time_us : 40; /* since the first event of the trace, on all devices */
	uint64_t stack : 24;   /* index into stacks, 0 = none */
	uint32_t slot;
	uint16_t stream; /* dense index, in the order of the raw handles */
	uint8_t kind;	 /* enum frag_event_kind */
	uint8_t flags;	 /* FRAG_EVF_… */
};

static inline bool frag_event_ends_step(const struct frag_event *e)
{
	return e->kind == FRAG_EV_MARK && e->flags & FRAG_EVF_STEP && e->flags & FRAG_EVF_END;
}

enum frag_evidence_kind {
	FRAG_SEEN_SEGMENT_ALLOC, /* the first four match enum frag_segment_event */
	FRAG_SEEN_SEGMENT_FREE,
	FRAG_SEEN_SEGMENT_MAP,
	FRAG_SEEN_SEGMENT_UNMAP,
	FRAG_SEEN_OOM,	    /* addr = free bytes the driver reported, bytes = rounded request */
	FRAG_SEEN_SNAPSHOT, /* bytes = active at that moment */
};

/* What the recorder saw, between events. */
struct frag_evidence {
	uint64_t before; /* happened before (while serving) events[before] */
	frag_addr_t addr;
	uint64_t bytes;
	uint64_t time_us;
	uint16_t stream;
	uint8_t kind; /* enum frag_evidence_kind */
};

/* A block or segment of the final snapshot. */
struct frag_final_block {
	frag_addr_t addr;
	uint64_t bytes, requested;
	uint8_t state; /* enum frag_block_state */
};
struct frag_final_segment {
	frag_addr_t addr;
	uint64_t bytes;
	uint32_t first_block, blocks_count;
	uint16_t stream, pool;
	bool small, expandable;
};

struct frag_pool_id {
	uint64_t a, b; /* {0,0} default, {n,0} graph capture, {0,n} MemPool */
};
/* In b: blocks of the pool are never split (MemPool(no_split=True)); inferred from its blocks. */
#define FRAG_POOL_NO_SPLIT (1ull << 63)

/* The source of a recording's memory limit. */
enum frag_limit_source {
	FRAG_LIMIT_NONE,     /* none, as far as the recording shows */
	FRAG_LIMIT_RECORDED, /* from the file */
	FRAG_LIMIT_GIVEN,    /* from the caller (--limit) */
	FRAG_LIMIT_INFERRED, /* found: it makes the replay identical */
};

/* What a recording turned out to be: see frag_settle (frag/replay.h). */
struct frag_settled {
	bool checked;	/* there was evidence to compare with */
	bool followed;	/* and the recorded settings are known */
	bool identical; /* the replay of the recorded settings matches the recording */
	/* neither identical nor different: from `event` on, the result depends on an initial state
	 * that the file does not fully hold (or too much was open to try everything) */
	bool undetermined;
	uint64_t limit_bytes; /* of the recording; UINT64_MAX = none */
	enum frag_limit_source limit_source;
	uint64_t limit_low_bytes, limit_high_bytes; /* inferred: the limit lies between these */
	bool card_full; /* what was refused last was more than the card had: that was the limit */
	uint64_t limit_refuted_bytes; /* the file's limit, if it cannot be right; else 0 */
	/* identical under the required limit only if this many releases were calls of empty_cache,
	 * which another limit would explain */
	uint64_t assumed_trims_count;
	uint64_t peak_bytes;	/* peak reserved in the recording */
	uint64_t refused_count; /* requests that were refused in the recording */
	uint64_t limits_count;	/* changes of the limit while the program ran */
	uint64_t event;		/* of the first difference */
	bool refusals_only;   /* not identical as the driver refused memory, and for nothing else */
	char difference[400]; /* "" if identical; the reason if undetermined */
	/* number that match, and number recorded: addresses, segment events, refused requests */
	struct {
		uint64_t same, all;
	} allocs, segments, ooms;
};

/* The card of a recording, from the file beside it (docs/trace-format.md); 0, "" = unknown. */
struct frag_recorded_card {
	char name[64];
	uint64_t total_bytes, context_bytes;
	uint64_t beside_bytes; /* held outside the allocator: context, libraries */
	double limit_fraction;
};

/* Whether the events end out of memory: after the last refused request the program got less than
 * that request. So an error that was caught and overcome does not count, whatever its handler
 * allocates. Set by opening a recording (src/recording/ending.h). */
struct frag_ending {
	bool out_of_memory;
	uint64_t event, bytes; /* the last refused request; bytes 0 = none was */
	uint64_t
		need_bytes; /* most live at one moment, that request among it: no card with less will do */
	char line[200]; /* of the program, "" = not recorded */
};

struct frag_trace_dev {
	uint32_t ordinal;
	struct frag_recorded_card card;
	struct frag_settled settled; /* set by frag_settle; zero before */
	struct frag_ending ending;

	struct frag_event *events;
	size_t events_count;
	uint32_t slots_count; /* largest number of slots in use at a time */

	uint64_t *streams; /* raw handles, ascending, [0] = 0 */
	uint32_t streams_count;
	struct frag_pool_id *pools; /* [0] = {0,0} */
	uint32_t pools_count;
	bool pools_named; /* the file names the pool of each request, so nothing is inferred (not
			   * kept in .cft) */

	/* evidence; has_evidence false: not recorded, or dropped */
	bool has_evidence;
	frag_addr_t *addrs; /* [events_count]: block address of ALLOC events, else FRAG_NO_ADDR */
	struct frag_evidence *seen;
	size_t seen_count;
	struct frag_final_segment *final_segments;
	size_t final_segments_count;
	struct frag_final_block *final_blocks;
	size_t final_blocks_count;

	/* Histories that began late: the state before the first event; the slots
	 * initial.blocks[i].slot are live. The first initial.blocks_count events are the ALLOCs of
	 * these blocks, with FRAG_EVF_INITIAL, for policies without `restore`. */
	struct frag_initial_state initial;
	struct frag_initial_segment *initial_segments; /* storage of `initial` */
	struct frag_initial_block *initial_blocks;
	uint64_t recorded_count;   /* entries of the recording (frees count twice, segments too) */
	unsigned source_release;   /* settings.torch_last, for code that has only the device */
	bool truncated;		   /* the recorder's ring buffer lost its oldest entries */
	uint64_t uncertain_blocks; /* initial blocks whose size the file does not determine */
};

/* Settings of the recorded allocator. */
struct frag_trace_settings {
	bool present;
	char *conf;		  /* PYTORCH_CUDA_ALLOC_CONF, "" if none */
	uint64_t max_split_bytes; /* UINT64_MAX = unlimited */
	double gc_threshold;
	bool expandable;
	uint32_t roundup[16]; /* divisions per power of two from 1 MiB */
	uint64_t limit_bytes; /* UINT64_MAX = not recorded (PyTorch does not) */
	bool limit_known;
	/* Oldest and newest possible release of PyTorch (frag/torch.h): files do not name it, but
	 * differ between some releases. 0 = not recorded by PyTorch, or unknown. */
	unsigned torch_first, torch_last;
};

/* Frames and stacks, interned. */
struct frag_frame {
	uint32_t name, file; /* string indices */
	uint32_t line;
};
struct frag_stacks {
	struct frag_frame *frames;
	size_t frames_count;
	uint32_t *index; /* frame numbers of all stacks, in order */
	size_t index_count;
	uint64_t *first; /* [count + 1], stack i = index[first[i] .. first[i+1]) */
	size_t count;	 /* stack 0 is the empty one */
};

struct frag_strings; /* interned strings, see src/trace/strings.h */

struct frag_trace {
	char *name;   /* shown in tables: file name without folders and suffixes */
	char *format; /* "torch-snapshot", "csv without times, beginning": what a log does not say */
	uint64_t start_us; /* Unix time of event time 0, 0 = unknown */
	struct frag_trace_dev *devs;
	uint32_t devs_count;
	struct frag_trace_settings settings;
	struct frag_stacks stacks;
	struct frag_strings *strings;
	uint64_t file_bytes; /* uncompressed size of the file */
	/* NULL: recorded on a card. Else an estimate, made without one, and this text describes it
	 * in lines of "key value" (src/pretend/README.md, "The note"). Untrusted text:
	 * never print it raw. */
	char *estimate;
};

/*
 * Reads a whole trace of any known format, detected by content, and decompresses gzip, xz and zstd.
 * "-" is standard input. Errors: FRAG_EINPUT with the byte offset in the uncompressed data,
 * FRAG_ENOMEM; nothing is left behind. Options for readers (may be NULL): "device=N" keeps one
 * device; "conf=…" (to the end of the text) gives the settings of a PyTorch recording without them.
 */
int frag_trace_read(const char *path, const char *options, struct frag_trace **out,
		    struct frag_err *err);
void frag_trace_destroy(struct frag_trace *trace);
FRAG_AUTO_AT(struct frag_trace *, frag_trace_destroy)
/* Sets the range of PyTorch releases in the trace and its devices. */
void frag_trace_set_torch(struct frag_trace *trace, unsigned first, unsigned last);
/* Text of string i; "" for 0 or out of range. Borrowed. */
const char *frag_trace_string(const struct frag_trace *trace, uint32_t i);

/* Writes cufrag's own format. The file is complete or absent (written to a temporary file, then
 * renamed). "-" = stdout. */
int frag_trace_write_cft(const struct frag_trace *trace, const char *path, struct frag_err *err);

/*
 * Reads a .cft in order with bounded memory, also from a pipe. A batch belongs to the source until
 * the next call. dev: index, not ordinal. Events come device by device. Returns 1 and a batch, 0 at
 * the end, <0.
 */
struct frag_source;
struct frag_batch {
	uint32_t dev;
	const struct frag_event *events;
	size_t count;
	uint64_t first; /* index of events[0] in its device */
};
int frag_source_open(const char *path, struct frag_source **out, struct frag_err *err);
/* Only the head: settings, devices with streams and pools, strings; no events. Borrowed. */
const struct frag_trace *frag_source_head(const struct frag_source *src);
int frag_source_next(struct frag_source *src, struct frag_batch *out, struct frag_err *err);
void frag_source_close(struct frag_source *src);
FRAG_AUTO_AT(struct frag_source *, frag_source_close)

/*
 * Trace formats (cufrag list formats): each file src/trace/readers/read_<format>.c defines const
 * struct frag_reader_ops frag_reader_<format>.
 */
struct frag_input; /* bytes through libarchive, see src/trace/input/input.h */
struct frag_reader_ops {
	const char *name;
	const char *summary;
	/* Confidence from 0 (no) to 100, judged by the first `len` uncompressed bytes. */
	int (*probe)(const unsigned char *bytes, size_t len);
	int (*read)(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err);
};
const struct frag_reader_ops *const *frag_reader_list(size_t *count);

#endif
