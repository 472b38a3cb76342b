/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what a program asked of its allocator, per device, as fixed-size
 * events in recorded order, and beside it the evidence: what the recorder saw
 * of its own allocator. Policies never see evidence; verify and address hints do.
 *
 * Slots. Every live allocation has a slot number: dense, the one freed last is
 * reused first. A trace with at most n live blocks at a time
 * uses slots 0..n-1, so the engine's live table is an array.
 *
 * Ownership: a struct frag_trace owns all it points to; frag_trace_destroy
 * takes NULL. Strings are interned: index 0 is "".
 */
#ifndef FRAG_TRACE_H
#define FRAG_TRACE_H

#include <frag/base.h>
#include <frag/error.h>
#include <frag/policy.h>

enum frag_event_kind {
	FRAG_EV_ALLOC,		/* a request that was granted when recorded */
	FRAG_EV_FREE,		/* requested and completed at once: the common case */
	FRAG_EV_FREE_REQUESTED, /* let go, another stream still uses it */
	FRAG_EV_FREE_COMPLETED, /* the end of that */
	FRAG_EV_TRIM,	 /* empty_cache; pool 0 = the default pools, else that private pool */
	FRAG_EV_REFUSED, /* a request that failed when recorded (oom); no slot */
	FRAG_EV_MARK,	 /* slot = string index of the name; flags: begins or ends */
	FRAG_EV_COUNT
};

/* flags */
#define FRAG_EVF_INITIAL 1u /* ALLOC: was live before the history began */
#define FRAG_EVF_AT_SYNC 2u /* FREE_COMPLETED: by the synchronisation inside the next malloc */
#define FRAG_EVF_END 4u	    /* MARK: the phase ends (else begins) */
#define FRAG_EVF_STEP 8u    /* MARK: a step boundary (optimizer step) */
#define FRAG_EVF_UNSURE 16u /* TRIM: the reader could not tell it from a retry; see resolve */

#define FRAG_MAX_REQUEST ((1ull << 48) - 1)
#define FRAG_NO_STACK 0u
#define FRAG_NO_ADDR UINT64_MAX /* evidence: address not known */

/* 24 bytes. */
struct frag_event {
	uint64_t bytes : 48; /* ALLOC, REFUSED: requested; frees repeat it */
	uint64_t pool : 16;
	uint64_t time_us : 40; /* since the first event of the trace, all devices alike */
	uint64_t stack : 24;   /* index into stacks, 0 = none */
	uint32_t slot;
	uint16_t stream; /* dense index, order of the raw handles */
	uint8_t kind;	 /* enum frag_event_kind */
	uint8_t flags;	 /* FRAG_EVF_… */
};

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
/* In b: blocks of the pool are never split (MemPool(no_split=True)), as its blocks show. */
#define FRAG_POOL_NO_SPLIT (1ull << 63)

/* Where the memory limit of a recording comes from. */
enum frag_limit_source {
	FRAG_LIMIT_NONE,     /* there was none, as far as the recording shows */
	FRAG_LIMIT_RECORDED, /* the file says it */
	FRAG_LIMIT_GIVEN,    /* the caller says it (--limit) */
	FRAG_LIMIT_INFERRED, /* found: the replay is identical with it */
};

/* What a recording turned out to be: see frag_settle (frag/replay.h). */
struct frag_settled {
	bool checked;	/* there was something to compare with */
	bool followed;	/* and the recorded settings are known here */
	bool identical; /* the replay of the recorded settings is what was recorded */
	/* neither identical nor different: what follows from `event` on depends on what the file does not say
	 * of the state that its history began with (or more was left open than could be tried) */
	bool undetermined;
	uint64_t limit_bytes; /* of the recording; UINT64_MAX = none */
	enum frag_limit_source limit_source;
	uint64_t limit_low_bytes, limit_high_bytes; /* inferred: every other one is wrong */
	uint64_t
		limit_refuted_bytes; /* what the file says, where that cannot be right; 0 = it can */
	/* identical, but the limit that was insisted on explains it only if so many releases were calls of
	 * empty_cache, which another limit would have made */
	uint64_t assumed_trims_count;
	uint64_t peak_bytes;	/* most that was reserved when recorded */
	uint64_t refused_count; /* requests that were refused when recorded */
	uint64_t event;		/* of the first difference */
	char difference[400];	/* "" if identical; undetermined: why */
	/* as far as it is as recorded, and what was recorded: addresses, segment events, refusals */
	struct {
		uint64_t same, all;
	} allocs, segments, ooms;
};

/* The card of a recording, where a file beside it says so (docs/trace-format.md); 0, "" = unknown. */
struct frag_recorded_card {
	char name[64];
	uint64_t total_bytes, context_bytes;
	uint64_t beside_bytes; /* what the process held beside its allocator: context, libraries */
	double limit_fraction;
};

struct frag_trace_dev {
	uint32_t ordinal;
	struct frag_recorded_card card;
	struct frag_settled settled; /* by frag_settle; all zero before */

	struct frag_event *events;
	size_t events_count;
	uint32_t slots_count; /* largest number of slots in use at a time */

	uint64_t *streams; /* raw handles, ascending, [0] = 0 */
	uint32_t streams_count;
	struct frag_pool_id *pools; /* [0] = {0,0} */
	uint32_t pools_count;
	bool pools_named; /* the file named the pool of each request: nothing is inferred (not kept in .cft) */

	/* evidence; has_evidence false: none was recorded (or it was dropped) */
	bool has_evidence;
	frag_addr_t *addrs; /* [events_count]: block address of ALLOC events, else FRAG_NO_ADDR */
	struct frag_evidence *seen;
	size_t seen_count;
	struct frag_final_segment *final_segments;
	size_t final_segments_count;
	struct frag_final_block *final_blocks;
	size_t final_blocks_count;

	/* histories that began late: state before the first event; initial.blocks[i].slot are live.
	 * The first initial.blocks_count events are their ALLOCs, flagged FRAG_EVF_INITIAL, so that
	 * policies without `restore` get them too. */
	struct frag_initial_state initial;
	struct frag_initial_segment *initial_segments; /* storage behind initial */
	struct frag_initial_block *initial_blocks;
	uint64_t recorded_count;   /* entries of the recording (frees count twice, segments too) */
	unsigned source_release;   /* settings.torch_last; here for whoever has only the device */
	bool truncated;		   /* the recorder's ring lost its oldest entries */
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
	/* The release of PyTorch is one of these (frag/torch.h): files do not name it, but tell
	 * some releases from others. 0 = not recorded by PyTorch, or not known. */
	unsigned torch_first, torch_last;
};

/* Frames and stacks, interned. Stack i (from 1) = frames stack_first[i] .. + stack_len[i] of stack_frames. */
struct frag_frame {
	uint32_t name, file; /* string indices */
	uint32_t line;
};
struct frag_stacks {
	struct frag_frame *frames;
	size_t frames_count;
	uint32_t *index; /* frame numbers of all stacks, one after another */
	size_t index_count;
	uint64_t *first; /* [count + 1], stack i = index[first[i] .. first[i+1]) */
	size_t count;	 /* stack 0 is the empty one */
};

struct frag_strings; /* interned strings, see strings.h of src/trace */

struct frag_trace {
	char *name;   /* shown in tables: file name without folders and endings */
	char *format; /* "torch-snapshot", "csv without times, beginning": what a log does not say */
	uint64_t start_us; /* Unix time of event time 0, 0 = unknown */
	struct frag_trace_dev *devs;
	uint32_t devs_count;
	struct frag_trace_settings settings;
	struct frag_stacks stacks;
	struct frag_strings *strings;
	uint64_t file_bytes; /* plain size of what was read */
	/* NULL: this happened on a card. Else it is an estimate, made without one, and this text says how, in
	 * lines of "key value" (docs/nogpu.md, "The note"). Hostile text: never print it raw. */
	char *estimate;
};

/*
 * Reads a whole trace of any known format, detected by content; gzip, xz and
 * zstd are opened transparently; "-" is standard input. Errors: FRAG_EINPUT
 * with the byte offset in the plain data, FRAG_ENOMEM; nothing is left behind.
 * Reader-specific options (may be NULL): "device=N" keeps one device, "conf=…" (to the end of
 * the text) are the settings of a PyTorch recording that does not hold them.
 */
int frag_trace_read(const char *path, const char *options, struct frag_trace **out,
		    struct frag_err *err);
void frag_trace_destroy(struct frag_trace *trace);
FRAG_AUTO_AT(struct frag_trace *, frag_trace_destroy)
/* Which release of PyTorch made the recording: the trace and its devices. */
void frag_trace_set_torch(struct frag_trace *trace, unsigned first, unsigned last);
/* Text of string i; "" for 0 or out of range. Borrowed. */
const char *frag_trace_string(const struct frag_trace *trace, uint32_t i);

/* Writes cufrag's own format, complete or not at all (beside, then rename). "-" = stdout. */
int frag_trace_write_cft(const struct frag_trace *trace, const char *path, struct frag_err *err);

/*
 * Reading in order with bounded memory: works on .cft (also from a pipe). A
 * batch belongs to the source until the next call. dev: index, not ordinal.
 * Events come device by device. Returns 1 and a batch, 0 at the end, <0.
 */
struct frag_source;
struct frag_batch {
	uint32_t dev;
	const struct frag_event *events;
	size_t count;
	uint64_t first; /* index of events[0] in its device */
};
int frag_source_open(const char *path, struct frag_source **out, struct frag_err *err);
/* Header part only: settings, devices with streams and pools, strings; no events. Borrowed. */
const struct frag_trace *frag_source_head(const struct frag_source *src);
int frag_source_next(struct frag_source *src, struct frag_batch *out, struct frag_err *err);
void frag_source_close(struct frag_source *src);
FRAG_AUTO_AT(struct frag_source *, frag_source_close)

/*
 * Trace formats (frag list formats): one file src/trace/read_<format>.c each
 * defines  const struct frag_reader_ops frag_reader_<format>.
 */
struct frag_input; /* bytes through libarchive, see input.h of src/trace */
struct frag_reader_ops {
	const char *name;
	const char *summary;
	/* How sure are you, 0 (no) … 100, from the first `len` plain bytes? */
	int (*probe)(const unsigned char *bytes, size_t len);
	int (*read)(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err);
};
const struct frag_reader_ops *const *frag_reader_list(size_t *count);

#endif
