/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcufrag_torch.so: the policies of this repository as the allocator of a running PyTorch. What
 * Python (src/inject/python/cufrag) calls by ctypes, and what PyTorch calls through the hooks of
 * its CUDAPluggableAllocator.
 *
 * Order: frag_live_start once, before CUDA is initialised; then PyTorch calls the hooks, from any
 * thread. Nothing is ever torn down: tensors are freed after the last exit handler. In a forked
 * child every hook does nothing.
 *
 * ABI: numbers and structs below; a struct grows at its end only, and its first member is its
 * size as the caller knows it. Texts are UTF-8. Functions that can fail return 0 or a
 * negative code and put a sentence into `msg`.
 *
 * Throws: frag_live_alloc alone, torch.OutOfMemoryError (live_torch.c). No lock is held then.
 */
#ifndef FRAG_LIVE_H
#define FRAG_LIVE_H

#include <stddef.h>
#include <stdint.h>

#define FRAG_LIVE_ABI 3u
#define FRAG_LIVE_DEVICES_MAX 64

#define FRAG_LIVE_ENTRY __attribute__((visibility("default")))

/* ---- starting ----------------------------------------------------------------------- */

struct frag_live_options {
	uint64_t size;	      /* of this struct */
	const char *policy;   /* as on the command line: "vmm", "limit:bytes=8G/pytorch", … */
	uint64_t limit_bytes; /* most that may be reserved per device; 0 = no limit */
	const char *record;   /* NULL: none; else the log of requests, see frag_live_flush */
	uint64_t seed;
	uint32_t torch_release; /* FRAG_TORCH(major, minor): 211 is 2.11; 0 = not known */
	uint32_t flags;		/* 0 */
};

FRAG_LIVE_ENTRY uint32_t frag_live_abi(void);
/*
 * Makes the policy ready and opens the driver, but no card yet: that is done with the first request
 * of a device. CUFRAG_FAIL_EVERY=n in the environment makes every n-th driver call of the policies
 * fail (for tests).
 */
FRAG_LIVE_ENTRY int frag_live_start(const struct frag_live_options *options, char *msg, size_t cap);

/* ---- hooks of CUDAPluggableAllocator -------------------------------------------------- */

typedef void *frag_live_stream; /* cudaStream_t */
/* PyTorch's MempoolId_t: passed in two registers. */
struct frag_live_pool_id {
	uint64_t a, b;
};

FRAG_LIVE_ENTRY void *frag_live_alloc(ptrdiff_t bytes, int device, frag_live_stream stream);
FRAG_LIVE_ENTRY void frag_live_free(void *p, ptrdiff_t bytes, int device, frag_live_stream stream);
FRAG_LIVE_ENTRY void frag_live_reset(void); /* set_reset_fn: empty_cache */
FRAG_LIVE_ENTRY void frag_live_fraction(double fraction, int device); /* set_memory_fraction_fn */
FRAG_LIVE_ENTRY void *frag_live_base(void *p, size_t *bytes);	      /* set_base_alloc_fn */
FRAG_LIVE_ENTRY void frag_live_record_stream(void *p, frag_live_stream stream);
/* 2.1, 2.2: set_begin_allocate_stream_to_pool, set_end_allocate_stream_to_pool_fn */
FRAG_LIVE_ENTRY void frag_live_begin_stream(int device, frag_live_stream stream,
					    struct frag_live_pool_id pool);
FRAG_LIVE_ENTRY void frag_live_end_stream(int device, frag_live_stream stream);
/* 2.3 on: set_begin_allocate_to_pool (filter: std::function<bool(cudaStream_t)> *), …_end_… */
FRAG_LIVE_ENTRY void frag_live_begin_pool(int device, struct frag_live_pool_id pool, void *filter);
FRAG_LIVE_ENTRY void frag_live_end_pool(int device, struct frag_live_pool_id pool);
FRAG_LIVE_ENTRY void frag_live_release_pool(int device, struct frag_live_pool_id pool);

/* cuDNN's search asks how much there is: answered from now on. -1: PyTorch raises, as before. */
FRAG_LIVE_ENTRY int frag_live_answer_cache_info(void);

/* ---- what Python asks -------------------------------------------------------------------- */

/* PyTorch's counters: current, peak, and the totals allocated and freed. */
struct frag_live_stat {
	int64_t current, peak, allocated, freed;
};
/* All requests, those up to 1 MiB, and the others. Segments and their free space have no size
 * class: they are in ALL and in LARGE. */
enum frag_live_kind { FRAG_LIVE_ALL, FRAG_LIVE_SMALL, FRAG_LIVE_LARGE, FRAG_LIVE_KINDS };

struct frag_live_stats {
	uint64_t size; /* of this struct, set by the caller */
	/* counts */
	struct frag_live_stat allocation[FRAG_LIVE_KINDS]; /* blocks of the program */
	struct frag_live_stat active[FRAG_LIVE_KINDS];	   /* and those that a stream still uses */
	struct frag_live_stat segment[FRAG_LIVE_KINDS];	   /* pieces taken from the driver */
	struct frag_live_stat inactive_split[FRAG_LIVE_KINDS]; /* free blocks that cannot go back */
	/* bytes */
	struct frag_live_stat requested_bytes[FRAG_LIVE_KINDS];
	struct frag_live_stat allocated_bytes[FRAG_LIVE_KINDS]; /* granted: rounded by the policy */
	struct frag_live_stat active_bytes[FRAG_LIVE_KINDS];
	struct frag_live_stat reserved_bytes[FRAG_LIVE_KINDS];
	struct frag_live_stat inactive_split_bytes[FRAG_LIVE_KINDS]; /* non-releasable; its peak is
		the largest seen when more was reserved or somebody asked */
	/* accumulated */
	int64_t num_alloc_retries; /* requests served only after memory was given back */
	int64_t num_ooms;
	int64_t num_sync_all_streams;
	int64_t num_device_alloc,
		num_device_free; /* calls of the driver that took or gave memory */
	int64_t driver_calls, driver_ns, driver_failed;
	int64_t stream_waits;	/* times one stream had to wait for another one's memory */
	int64_t waiting_blocks; /* freed, and an event not yet done */
	int64_t contended;	/* hooks that found the device's lock taken, since the start */
	/* of the card and the policy */
	int64_t limit_bytes;		 /* 0 = none */
	int64_t total_bytes, free_bytes; /* of the card, by the driver */
	int64_t largest_free_bytes;	 /* largest hole inside of what is reserved */
	double fraction;		 /* set_per_process_memory_fraction; 1 = not set */
};
/* 0, or -1 if the device was not used yet (all is 0 then, but free and total are asked). */
FRAG_LIVE_ENTRY int frag_live_stats(int device, struct frag_live_stats *out);
FRAG_LIVE_ENTRY void frag_live_reset_peak(int device);
FRAG_LIVE_ENTRY void frag_live_reset_accumulated(int device);

/* One row of a snapshot: a segment, then its blocks in address order, without gaps. */
struct frag_live_part {
	uint64_t addr, bytes;
	uint64_t requested; /* of a live block; 0 else */
	uint64_t stream; /* cudaStream_t of a live block or of a segment's taking, 0 = not known */
	struct frag_live_pool_id pool;
	uint32_t kind;	  /* 0 segment, 1 block */
	uint32_t state;	  /* block: 0 live, 1 waiting for a stream, 2 free */
	uint64_t context; /* of a live block: where it was asked for, see frag_live_on_context */
};
/* Returns how many there are; fills at most `cap`. Ask again with more room if needed. */
FRAG_LIVE_ENTRY size_t frag_live_snapshot(int device, struct frag_live_part *out, size_t cap);

/* The same of the calls of the driver, and of the policy's own statistics, by the names of its source. */
struct frag_live_call {
	const char *name;
	uint64_t count, failed, bytes, ns;
};
FRAG_LIVE_ENTRY size_t frag_live_calls(int device, struct frag_live_call *out, size_t cap);
struct frag_live_counter {
	char name[64];
	int64_t value;
};
FRAG_LIVE_ENTRY size_t frag_live_counters(int device, struct frag_live_counter *out, size_t cap);
/* The policy's text as it was understood. Static. */
FRAG_LIVE_ENTRY const char *frag_live_policy(void);

/* The history of PyTorch's snapshots: what happened on a device, in its order. */
enum frag_live_did {
	FRAG_LIVE_DID_ALLOC,
	FRAG_LIVE_DID_REQUEST,	/* freed by the program */
	FRAG_LIVE_DID_COMPLETE, /* and by the streams */
	FRAG_LIVE_DID_OOM,	/* bytes: asked for; addr: what the card had left */
	FRAG_LIVE_DID_SEGMENT_ALLOC,
	FRAG_LIVE_DID_SEGMENT_FREE
};
struct frag_live_event {
	uint64_t addr, bytes;	  /* bytes as asked for */
	uint64_t stream, time_us; /* cudaStream_t; since 1970 */
	uint32_t action;	  /* enum frag_live_did */
	uint32_t context;	  /* of frag_live_on_context; 0 = none */
};
/*
 * From now on the last `max_entries` of a device are kept, of the actions whose bits (1 << enum)
 * are set. No bits: stops, but keeps the entries. clear: drops the entries; entries that do not fit
 * are dropped, too.
 */
FRAG_LIVE_ENTRY void frag_live_history(uint64_t max_entries, uint32_t actions, int clear);
/* Returns how many there are, oldest first; fills at most `cap`. */
FRAG_LIVE_ENTRY size_t frag_live_history_read(int device, struct frag_live_event *out, size_t cap);
/* Called without a lock at each request and free; a number of its origin. NULL: none. */
FRAG_LIVE_ENTRY void frag_live_on_context(uint32_t (*alloc)(void), uint32_t (*free)(void));

/* Called before an out of memory is raised, without a lock: PyTorch's observer. NULL: none. */
FRAG_LIVE_ENTRY void frag_live_on_oom(void (*fn)(int device, uint64_t requested_bytes,
						 uint64_t total_bytes, uint64_t free_bytes));
/*
 * The recording: a .cft that grows (or, by its name, a .csv), which goes to its file twice a
 * second, so that it can be read at any time and a program that crashes loses no more; in the end
 * `cufrag run` and the package make it smaller. flush: now.
 */
FRAG_LIVE_ENTRY void frag_live_flush(void);

#endif
