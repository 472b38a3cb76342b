/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcufrag_record.so: writes what a CUDA program asks of the driver, as a CSV that every command
 * reads (src/trace/readers/read_csv.c), in the process of the program, which is unchanged and may
 * link its runtime statically. The calls come from one of two:
 *
 *	record_cupti.c     CUPTI's callbacks; the driver loads the library (CUDA_INJECTION64_PATH)
 *	record_preload.c   the driver's entry points, interposed; the library is there from the start
 *	                   (LD_PRELOAD). Used where CUPTI is missing or taken.
 *
 * Its variables are in src/pretend/protocol.def.
 */
#ifndef FRAG_RECORD_RECORDER_H
#define FRAG_RECORD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/locked.h"
#include "protocol_list.inc"

#define REC_EXPORT __attribute__((visibility("default")))
#define REC_OUT_OF_MEMORY 2 /* cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY */

/* What a call does, by its parameters. */
enum frag_rec_shape {
	REC_NONE,
	REC_ALLOC,	 /* (ptr *, bytes) */
	REC_ALLOC_ASYNC, /* (ptr *, bytes, stream) */
	REC_ALLOC_POOL,	 /* (ptr *, bytes, pool, stream) */
	REC_ALLOC_PITCH, /* (ptr *, pitch *, width, height) */
	REC_FREE,	 /* (ptr) */
	REC_FREE_ASYNC,	 /* (ptr, stream) */
	REC_CREATE,	 /* (handle *, bytes, properties) */
	REC_RETAIN,	 /* (handle *, address) */
	REC_RELEASE,	 /* (handle) */
	REC_MAP,	 /* (address, bytes, offset, handle) */
	REC_UNMAP,	 /* (address, bytes) */
	REC_CONTEXT_END,
	REC_DEVICE_END, /* (int device) */
};

/* X(number, driver's symbol, name for cuGetProcAddress, first CUDA version, per-thread, shape) */
#define FRAG_REC_DRIVER_CALLS(X) \
	X(0, cuMemAlloc_v2, "cuMemAlloc", 3020, 0, REC_ALLOC) \
	X(1, cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0, REC_ALLOC_PITCH) \
	X(2, cuMemAllocManaged, "cuMemAllocManaged", 6000, 0, REC_ALLOC) \
	X(3, cuMemAllocAsync, "cuMemAllocAsync", 11020, 0, REC_ALLOC_ASYNC) \
	X(4, cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 1, REC_ALLOC_ASYNC) \
	X(5, cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0, REC_ALLOC_POOL) \
	X(6, cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 1, REC_ALLOC_POOL) \
	X(7, cuMemFree_v2, "cuMemFree", 3020, 0, REC_FREE) \
	X(8, cuMemFreeAsync, "cuMemFreeAsync", 11020, 0, REC_FREE_ASYNC) \
	X(9, cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 1, REC_FREE_ASYNC) \
	X(10, cuMemCreate, "cuMemCreate", 10020, 0, REC_CREATE) \
	X(11, cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 0, REC_RETAIN) \
	X(12, cuMemRelease, "cuMemRelease", 10020, 0, REC_RELEASE) \
	X(13, cuMemMap, "cuMemMap", 10020, 0, REC_MAP) \
	X(14, cuMemUnmap, "cuMemUnmap", 10020, 0, REC_UNMAP) \
	X(15, cuCtxDestroy_v2, "cuCtxDestroy", 4000, 0, REC_CONTEXT_END) \
	X(16, cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, 0, REC_DEVICE_END) \
	X(17, cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 0, REC_DEVICE_END)

/* X(function of the runtime, shape): only CUPTI shows these; they count where it does not show the driver's calls that they make. */
#define FRAG_REC_RUNTIME_CALLS(X) \
	X("cudaMalloc", REC_ALLOC) \
	X("cudaMallocManaged", REC_ALLOC) \
	X("cudaMallocPitch", REC_ALLOC_PITCH) \
	X("cudaMallocAsync", REC_ALLOC_ASYNC) \
	X("cudaMallocFromPoolAsync", REC_ALLOC_POOL) \
	X("cudaFree", REC_FREE) \
	X("cudaFreeAsync", REC_FREE_ASYNC)

struct frag_rec_call {
	enum frag_rec_shape shape;
	const char *name;
	const void *params;				/* 8 bytes each, where they matter */
	void *context;					/* of the call; in DESTROY the ending one */
	int (*device)(void *context, uint32_t *device); /* 0: it is known */
};

/* ---- events (record_events.c) -------------------------------------------------------- */

/*
 * Around each call, on its thread. An allocation is written behind its call, a free before it, so
 * that an address that another thread gets at once is in order. Physical memory of the VMM calls
 * lives until it is released and mapped nowhere. What a destroyed context held is freed.
 */
void frag_rec_enter(const struct frag_rec_call *c);
/* also_enter: enter was not called before. */
void frag_rec_leave(const struct frag_rec_call *c, int result, bool also_enter);
/* For the shared page, by the flusher: what is held now. Takes the lock for short times. */
void frag_rec_publish(void);

/* ---- the file (record_file.c) -------------------------------------------------------- */

extern pthread_mutex_t frag_rec_mutex;
#define FRAG_REC_LOCKED FRAG_LOCKED(&frag_rec_mutex) /* to the end of the scope */
/* Begins the file and its thread, once; false: nothing can be written. Not under the lock. */
bool frag_rec_open(void);
/* Under the lock. id: address or handle; bytes, stream: UINT64_MAX = not known; stack: 0 = none. */
void frag_rec_line(const char *action, uint64_t id, uint64_t bytes, uint64_t stream,
		   uint32_t device, const char *call, uint32_t stack);
/* Under the lock: a line of its own, printf. */
void frag_rec_remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- stacks (record_stacks.c) -------------------------------------------------------- */

#define REC_FRAMES 48u

struct frag_rec_python_frame {
	const void *code; /* a code object, alive during the call */
	int at;		  /* offset of the instruction in it, bytes */
};

struct frag_rec_stack {
	void *frames[REC_FRAMES];
	struct frag_rec_python_frame python[REC_FRAMES];
	int count, python_count;
	const char *library; /* that asks for itself, its path; NULL: none, or not asked for */
};

/* Reads CUFRAG_RECORD_STACKS and CUFRAG_RECORD_APART. */
void frag_rec_stacks_begin(void);
/* Of this thread, what of it is wanted; not under the lock, since the loader has one of its own. */
void frag_rec_stack_take(struct frag_rec_stack *s);
/* Under the lock: its number, 0 = none. Writes "#stack" lines. */
uint32_t frag_rec_stack_number(const struct frag_rec_stack *s);
/* Writes "#frame" lines of the addresses that are new. Not under the lock; one thread at a time. */
void frag_rec_stacks_name(void);

/* ---- Python (record_python.c) ---------------------------------------------------------- */

/* Looks for an interpreter in the process. Without one the others do nothing. */
void frag_rec_python_begin(void);
/* The frames of this thread, innermost first, at most max; returns their number. Lock-free. */
int frag_rec_python_take(struct frag_rec_python_frame *out, int max);
/* Is it an address in the interpreter's own code? */
bool frag_rec_python_has(const void *address);
/* Under the lock, while the call that took it has not returned: its number, which stands for an
 * address in "#stack" lines; 0 = there are too many. Writes a "#frame" line if it is new. */
uint64_t frag_rec_python_number(const struct frag_rec_python_frame *f);

/* ---- ways ------------------------------------------------------------------------------ */

/* CUPTI. true: its callbacks come from now on; false: `why` says why not; NULL: it was said. */
bool frag_rec_cupti_start(const char **why);
/* Instead: the interposed entry points record from now on. False: the library is not preloaded. */
bool frag_rec_preload_start(const char *why_not_cupti);

#endif
