/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real card for measurements, private to src/device/cuda*.c: that of device/driver, whose operations call the driver,
 * with more around it. Kernels, managed memory and streams come from the runtime, which is static.
 *
 * Counting. The back end counts what it got: pages of 2 MiB for cudaMalloc, resident managed
 * memory, handles, and the driver's figure for its pools. cudaMemGetInfo is only a check.
 *
 * Ownership: struct cuda is the back end's `priv`. Only the thread that opened it uses it (the
 * runtime's current device is per thread).
 */
#ifndef FRAG_DEVICE_CUDA_INTERNAL_H
#define FRAG_DEVICE_CUDA_INTERNAL_H

#include <sched.h>

#include <cuda_runtime_api.h>

#include <frag/clock.h>
#include <frag/device.h>

#include "device/driver/cu_card.h"
#include "device/nvml.h"
#include "device/sim/uvm_resident.h"

/* Kernels and what they report (cuda_content.c). */
struct cuda_content {
	bool loaded;
	cudaStream_t stream; /* all work on contents, in order */
	cudaEvent_t order;   /* orders it with the streams of a pool */
	cudaKernel_t fill, verify, touch, delay;
	cudaLibrary_t libraries[8];
	unsigned libraries_count;
	void *fault;		       /* on the card */
	struct cuda_fault *fault_host; /* pinned copy */
	uint64_t verifies;
	bool busy; /* work may be running */
};

/* The core that measurements run on (cuda_core.c). */
struct cuda_core {
	bool chosen;
	cpu_set_t allowed; /* cores that the program could use before */
	uint64_t pair_ns;  /* cudaMalloc and cudaFree of 4 MiB on the chosen one */
};

struct cuda {
	struct frag_cu_card card; /* first: its operations that need no more take this, too */
	struct frag_cuda_config cfg;
	char driver[96];
	uint64_t limit_bytes; /* most reserved bytes: total - context if a part is used, else
			       * UINT64_MAX */
	uint64_t free_at_start_bytes;
	int processors;
	bool concurrent_managed;

	/* managed memory */
	struct uvm_resident managed;
	uint64_t managed_bytes; /* requested and not freed */
	bool managed_ready;	/* the kernel that touches it is loaded */
	struct frag_managed_usage usage;

	struct cuda_core core;
	struct cuda_content content;
	struct frag_dev_observed observed;
	uint64_t observed_bytes; /* highest reserved bytes at a call of cudaMemGetInfo */
};

/* 0 for success; else FRAG_EDEVICE with the call, the error's name and text. Clears the error. */
int frag_cuda_rt_check(cudaError_t rc, const char *call, struct frag_err *err);
/* RT(err, cudaFree, ptr): calls it and puts the call's name into the message. */
#define RT(err, call, ...) frag_cuda_rt_check(call(__VA_ARGS__), #call, (err))

/* May `bytes` more be taken under the configured capacity? */
static inline bool frag_cuda_room(const struct cuda *c, uint64_t held, uint64_t bytes)
{
	return held <= c->limit_bytes && bytes <= c->limit_bytes - held;
}
uint64_t frag_cuda_held(struct cuda *c);

/* cuda_ready.c: see frag_dev_make_ready. */
int frag_cuda_make_ready(void *priv, uint64_t given_back_bytes, struct frag_err *err);

/*
 * cuda_core.c: moves the calling thread to the core on which driver calls are fastest now; release
 * restores its cores. If the system does not allow this, the thread stays.
 */
void frag_cuda_core_choose(struct cuda *c);
void frag_cuda_core_release(struct cuda *c);
/* Time of a cudaMalloc and cudaFree of 4 MiB on the chosen core; 0: no core, or no room. */
uint64_t frag_cuda_core_pair(struct cuda *c);

/* ---- the parts ------------------------------------------------------------------- */

FRAG_DEVICE_DECLARE(frag_cuda)

/* cuda_calls.c */
int frag_cuda_stream(struct cuda *c, uint32_t stream, cudaStream_t *out, struct frag_err *err);

/* cuda_content.c */
/* Calls that return memory or wait do so behind the work on contents. */
void frag_cuda_before(void *priv, enum frag_call call);
int frag_cuda_content(void *priv, enum frag_content_op op, const struct frag_content *b,
		      struct frag_err *err);
int frag_cuda_content_fault(void *priv, bool wait, struct frag_content_fault *out,
			    struct frag_err *err);
/* Orders kernels after the work of `stream` (after: the other way round). */
int frag_cuda_content_follows(struct cuda *c, cudaStream_t stream, struct frag_err *err);
int frag_cuda_content_precedes(struct cuda *c, cudaStream_t stream, struct frag_err *err);
/* Touches on `stream`, without the check stream. */
int frag_cuda_touch(struct cuda *c, frag_addr_t addr, uint64_t bytes, cudaStream_t stream,
		    struct frag_err *err);
/* Loads the kernels and runs the touch kernel, so that they take no more memory later. */
int frag_cuda_touch_ready(struct cuda *c, struct frag_err *err);
void frag_cuda_content_release(struct cuda *c);

#endif
