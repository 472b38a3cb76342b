/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real card, private to src/device/cuda*.c. Virtual memory management goes through
 * the driver API, whose entry points are asked of the runtime when a card is opened (so the
 * program needs no libcuda to start); everything else through the runtime.
 *
 * What is counted. The back-end counts what it was given: pages of 2 MiB
 * under cudaMalloc, resident managed memory, handles, and what the driver says that its
 * pools hold. cudaMemGetInfo and NVML are only a check.
 *
 * Ownership: struct cuda belongs to the back-end (`priv`); one thread uses it, the
 * one that opened it (the runtime's current device is per thread).
 */
#ifndef FRAG_DEVICE_CUDA_INTERNAL_H
#define FRAG_DEVICE_CUDA_INTERNAL_H

#include <sched.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <frag/clock.h>
#include <frag/device.h>

#include "device/nvml.h"
#include "lib/addr_map.h"
#include "lib/slab.h"
#include "device/sim/uvm_resident.h"

/* Driver functions in use; all are there since CUDA 11. */
#define CUDA_ENTRY_LIST(X) \
	X(cuDeviceGet) \
	X(cuDeviceGetAttribute) \
	X(cuGetErrorName) \
	X(cuGetErrorString) \
	X(cuMemGetAllocationGranularity) \
	X(cuMemAddressReserve) \
	X(cuMemAddressFree) \
	X(cuMemCreate) \
	X(cuMemRelease) \
	X(cuMemMap) \
	X(cuMemUnmap) \
	X(cuMemSetAccess)

struct cuda_entries {
#define FRAG_X_(name) __typeof__(name) *name;
	CUDA_ENTRY_LIST(FRAG_X_)
#undef FRAG_X_
};

/* A segment. */
struct cuda_piece {
	frag_addr_t addr;
	uint64_t bytes;
};

struct cuda_handle {
	CUmemGenericAllocationHandle handle;
	uint64_t bytes, mappings;
	bool released;
};

struct cuda_mempool {
	cudaMemPool_t pool;
	uint64_t reserved_bytes; /* as the driver said last */
	bool stale;		 /* ask again */
	struct cuda_mempool *next;
};

struct cuda_fence {
	cudaEvent_t event;
	uint64_t serial; /* of the fence that uses it now */
	bool open;	 /* recorded, not yet seen done */
};

/* Kernels and what they report (cuda_content.c). */
struct cuda_content {
	bool loaded;
	cudaStream_t stream; /* all work on contents, in order */
	cudaEvent_t order;   /* between that and the streams of a pool */
	cudaKernel_t fill, verify, touch, delay;
	cudaLibrary_t libraries[8];
	unsigned libraries_count;
	void *fault;		       /* on the card */
	struct cuda_fault *fault_host; /* pinned copy */
	uint64_t verifies;
	bool busy; /* something may be running */
};

/* The core that measurements run on (cuda_core.c). */
struct cuda_core {
	bool chosen;
	cpu_set_t allowed; /* where the program could run before */
	uint64_t pair_ns;  /* cudaMalloc and cudaFree of 4 MiB on the chosen one */
};

struct cuda {
	struct frag_cuda_config cfg;
	char name[96], driver[96];
	struct cuda_entries cu;
	CUdevice device;
	uint64_t total_bytes, context_bytes;
	uint64_t
		limit_bytes; /* of reserved: total - context where a part is used, else UINT64_MAX */
	uint64_t granule_bytes;
	uint64_t free_at_start_bytes;
	int processors;
	uint32_t can;
	bool concurrent_managed;

	/* cudaMalloc */
	struct frag_slab pieces;
	struct frag_addr_map segments; /* address -> cuda_piece */
	struct frag_addr_map pages;    /* page that several pieces may share -> count */
	uint64_t segment_bytes;	       /* pages under segments */

	/* managed memory */
	struct uvm_resident managed;
	uint64_t managed_bytes; /* asked for, out now */
	bool managed_ready;	/* the driver's spare memory is used up, the observed counts know */
	struct frag_managed_usage usage;

	/* virtual memory management */
	struct frag_slab handle_slab;
	struct frag_addr_map handles;  /* id -> cuda_handle */
	struct frag_addr_map mappings; /* address -> cuda_handle */
	uint64_t last_handle;
	uint64_t handle_bytes;

	struct cuda_mempool *pools;

	cudaStream_t *streams;
	uint32_t streams_count;
	struct cuda_fence *fences;
	uint32_t fences_count, fence_next;
	uint64_t fence_serial;

	struct cuda_core core;
	struct cuda_content content;
	void *nvml_card; /* NULL: NVML does not know it */
	struct frag_dev_observed observed;
	uint64_t observed_bytes; /* the most that was reserved when cudaMemGetInfo was asked */
	uint64_t nvml_start_bytes, nvml_asked_ns;
};

/* ---- errors (cuda_driver.c) ------------------------------------------------------ */

/* 0 for success; else FRAG_EDEVICE with the call, the error's name and its text. Clears it. */
int frag_cuda_rt_check(cudaError_t rc, const char *call, struct frag_err *err);
int frag_cuda_cu_check(const struct cuda *c, CUresult rc, const char *call, struct frag_err *err);
/* RT(err, cudaFree, ptr): calls it; the code's name goes into the message. */
#define RT(err, call, ...) frag_cuda_rt_check(call(__VA_ARGS__), #call, (err))
#define CU(c, err, call, ...) frag_cuda_cu_check((c), (c)->cu.call(__VA_ARGS__), #call, (err))

/* Entry points of the driver. pre: a context exists. */
int frag_cuda_entries(struct cuda_entries *out, struct frag_err *err);

/*
 * Calls that give memory back wait for work on contents first. The wait is the
 * check's, not the call's: begin returns the clock after it (0: nothing was
 * running, the front measures), end writes the call's own time.
 */
uint64_t frag_cuda_quiesce(struct cuda *c);
static inline void frag_cuda_took(uint64_t since, uint64_t *ns)
{
	if (since)
		*ns = frag_clock_ns() - since;
}

/* May `bytes` more be taken under the configured capacity? */
static inline bool frag_cuda_room(const struct cuda *c, uint64_t held, uint64_t bytes)
{
	return held <= c->limit_bytes && bytes <= c->limit_bytes - held;
}
uint64_t frag_cuda_held(struct cuda *c);
/* The observed bytes count from what is free now, as if that and what the device holds had been free at
 * the opening. pre: no managed memory is out. */
int frag_cuda_count_from_here(struct cuda *c, struct frag_err *err);

/* cuda_ready.c: see frag_dev_make_ready. */
int frag_cuda_make_ready(void *priv, uint64_t given_back_bytes, struct frag_err *err);

/*
 * cuda_core.c: moves the calling thread to the core on which driver calls are fastest at present;
 * release lets it run where it could before. Where a system does not allow it, it stays.
 */
void frag_cuda_core_choose(struct cuda *c);
void frag_cuda_core_release(struct cuda *c);
/* How long a cudaMalloc and a cudaFree of 4 MiB take on the chosen core now; 0: none was chosen, or no room. */
uint64_t frag_cuda_core_pair(struct cuda *c);

/* ---- the parts: as in struct frag_device_ops ------------------------------------- */

/* cuda_malloc.c */
int frag_cuda_malloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		     struct frag_err *err);
int frag_cuda_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err);
/* cudaFree for every address of a map, which stays as it is. */
void frag_cuda_free_all(const struct frag_addr_map *map);
void frag_cuda_malloc_release(struct cuda *c);

/* cuda_managed.c */
int frag_cuda_managed_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
			    struct frag_err *err);
int frag_cuda_managed_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err);
int frag_cuda_managed_touch(void *priv, frag_addr_t addr, uint64_t bytes, bool prefetch,
			    uint64_t *ns, struct frag_err *err);
void frag_cuda_managed_usage(void *priv, struct frag_managed_usage *out);
/* Leaves the driver no memory to spare, if any is managed. */
int frag_cuda_managed_use_up(struct cuda *c);
void frag_cuda_managed_release(struct cuda *c);

/* cuda_vmm.c */
int frag_cuda_reserve(void *priv, uint64_t bytes, frag_addr_t hint, frag_addr_t *out, uint64_t *ns,
		      struct frag_err *err);
int frag_cuda_unreserve(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			struct frag_err *err);
int frag_cuda_create(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
		     struct frag_err *err);
int frag_cuda_release(void *priv, uint64_t handle, uint64_t *ns, struct frag_err *err);
int frag_cuda_map(void *priv, frag_addr_t addr, uint64_t handle, uint64_t *ns,
		  struct frag_err *err);
int frag_cuda_set_access(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			 struct frag_err *err);
int frag_cuda_unmap(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
		    struct frag_err *err);
int frag_cuda_granule(struct cuda *c, struct frag_err *err);
void frag_cuda_vmm_release(struct cuda *c);

/* cuda_mempool.c */
int frag_cuda_mempool_create(void *priv, const struct frag_mempool_attr *attr, uint64_t *pool,
			     uint64_t *ns, struct frag_err *err);
int frag_cuda_mempool_destroy(void *priv, uint64_t pool, uint64_t *ns, struct frag_err *err);
int frag_cuda_mempool_alloc(void *priv, uint64_t pool, uint64_t bytes, uint32_t stream,
			    frag_addr_t *out, uint64_t *ns, struct frag_err *err);
int frag_cuda_mempool_free(void *priv, uint64_t pool, frag_addr_t addr, uint32_t stream,
			   uint64_t *ns, struct frag_err *err);
int frag_cuda_mempool_trim(void *priv, uint64_t pool, uint64_t keep_bytes, uint64_t *ns,
			   struct frag_err *err);
void frag_cuda_mempool_usage(void *priv, uint64_t pool, struct frag_mempool_usage *out);
uint64_t frag_cuda_mempools_bytes(struct cuda *c);
void frag_cuda_mempools_stale(struct cuda *c);
void frag_cuda_mempools_release(struct cuda *c);

/* cuda_stream.c */
int frag_cuda_stream(struct cuda *c, uint32_t stream, cudaStream_t *out, struct frag_err *err);
int frag_cuda_fence_record(void *priv, uint32_t stream, uint64_t *fence, uint64_t *ns,
			   struct frag_err *err);
int frag_cuda_fence_done(void *priv, uint64_t fence, uint64_t lag_ns, bool *done, uint64_t *ns,
			 struct frag_err *err);
int frag_cuda_sync(void *priv, uint32_t stream, bool whole_device, uint64_t *ns,
		   struct frag_err *err);
void frag_cuda_streams_release(struct cuda *c);

/* cuda_content.c */
int frag_cuda_content(void *priv, enum frag_content_op op, const struct frag_content *b,
		      struct frag_err *err);
int frag_cuda_content_fault(void *priv, bool wait, struct frag_content_fault *out,
			    struct frag_err *err);
/* Kernels must see what `stream` did before (after: the other way round). */
int frag_cuda_content_follows(struct cuda *c, cudaStream_t stream, struct frag_err *err);
int frag_cuda_content_precedes(struct cuda *c, cudaStream_t stream, struct frag_err *err);
/* Touches on `stream`, without the check stream. */
int frag_cuda_touch(struct cuda *c, frag_addr_t addr, uint64_t bytes, cudaStream_t stream,
		    struct frag_err *err);
/* Loads the kernels and runs the one that touches: from here on it takes no more memory. */
int frag_cuda_touch_ready(struct cuda *c, struct frag_err *err);
void frag_cuda_content_release(struct cuda *c);

#endif
