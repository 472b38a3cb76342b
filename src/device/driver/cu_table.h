/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver: a table of functions, found in libcuda.so.1 at run time. No header of CUDA is
 * needed to build this; types and numbers are those of the driver's ABI since CUDA 11.
 *
 * A running PyTorch may have any version of the runtime, or a copy of its own. Its streams and
 * primary contexts are the driver's.
 */
#ifndef FRAG_DEVICE_CU_TABLE_H
#define FRAG_DEVICE_CU_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frag/error.h>

/* CUresult */
enum {
	FRAG_CU_OK = 0,
	FRAG_CU_OUT_OF_MEMORY = 2,
	FRAG_CU_NOT_READY = 600,
};
/* CUdevice_attribute */
enum {
	FRAG_CU_ATTR_MANAGED = 83,
	FRAG_CU_ATTR_VMM = 102,
	FRAG_CU_ATTR_POOLS = 115,
};
/* CUmemPool_attribute */
enum {
	FRAG_CU_POOL_FOLLOW_EVENTS = 1,
	FRAG_CU_POOL_OPPORTUNISTIC = 2,
	FRAG_CU_POOL_INTERNAL = 3,
	FRAG_CU_POOL_THRESHOLD = 4,
	FRAG_CU_POOL_RESERVED = 5,
	FRAG_CU_POOL_RESERVED_HIGH = 6,
	FRAG_CU_POOL_USED = 7,
	FRAG_CU_POOL_USED_HIGH = 8,
};
#define FRAG_CU_EVENT_DISABLE_TIMING 2u
#define FRAG_CU_CAPTURE_RELAXED 2

struct frag_cu_location {
	int type, id; /* type 1: a device */
};
struct frag_cu_allocation { /* CUmemAllocationProp */
	int type;	    /* 1: pinned */
	int handle_types;
	struct frag_cu_location location;
	void *win32;
	unsigned char flags[8];
};
struct frag_cu_access { /* CUmemAccessDesc */
	struct frag_cu_location location;
	int flags; /* 3: read and write */
};
struct frag_cu_pool_props { /* CUmemPoolProps */
	int type, handle_types;
	struct frag_cu_location location;
	void *security;
	size_t most;
	unsigned short usage;
	unsigned char reserved[54];
};

/* name, parameters; all return a CUresult */
#define FRAG_CU_LIST(X) \
	X(cuInit, (unsigned flags)) \
	X(cuDriverGetVersion, (int *version)) \
	X(cuGetErrorName, (int code, const char **text)) \
	X(cuDeviceGet, (int *device, int ordinal)) \
	X(cuDeviceGetCount, (int *count)) \
	X(cuDeviceGetName, (char *text, int len, int device)) \
	X(cuDeviceGetAttribute, (int *value, int which, int device)) \
	X(cuDevicePrimaryCtxRetain, (void **context, int device)) \
	X(cuCtxGetCurrent, (void **context)) \
	X(cuCtxPushCurrent_v2, (void *context)) \
	X(cuCtxPopCurrent_v2, (void **context)) \
	X(cuCtxSynchronize, (void)) \
	X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes)) \
	X(cuMemAlloc_v2, (uint64_t * out, size_t bytes)) \
	X(cuMemFree_v2, (uint64_t addr)) \
	X(cuStreamSynchronize, (void *stream)) \
	X(cuStreamWaitEvent, (void *stream, void *event, unsigned flags)) \
	X(cuStreamIsCapturing, (void *stream, int *status)) \
	X(cuThreadExchangeStreamCaptureMode, (int *mode)) \
	X(cuEventCreate, (void **event, unsigned flags)) \
	X(cuEventRecord, (void *event, void *stream)) \
	X(cuEventQuery, (void *event)) \
	X(cuEventSynchronize, (void *event))

/* there since CUDA 11.2; a driver without them serves fewer policies */
#define FRAG_CU_OPTIONAL_LIST(X) \
	X(cuDeviceCanAccessPeer, (int *can, int device, int peer)) \
	X(cuMemGetAllocationGranularity, \
	  (size_t * bytes, const struct frag_cu_allocation *prop, int option)) \
	X(cuMemAddressReserve, \
	  (uint64_t * out, size_t bytes, size_t align, uint64_t hint, uint64_t flags)) \
	X(cuMemAddressFree, (uint64_t addr, size_t bytes)) \
	X(cuMemCreate, (uint64_t * handle, size_t bytes, const struct frag_cu_allocation *prop, \
			uint64_t flags)) \
	X(cuMemRelease, (uint64_t handle)) \
	X(cuMemMap, (uint64_t addr, size_t bytes, size_t offset, uint64_t handle, uint64_t flags)) \
	X(cuMemUnmap, (uint64_t addr, size_t bytes)) \
	X(cuMemSetAccess, \
	  (uint64_t addr, size_t bytes, const struct frag_cu_access *list, size_t count)) \
	X(cuMemAllocManaged, (uint64_t * out, size_t bytes, unsigned flags)) \
	X(cuMemPoolCreate, (void **pool, const struct frag_cu_pool_props *props)) \
	X(cuMemPoolDestroy, (void *pool)) \
	X(cuMemPoolSetAttribute, (void *pool, int which, void *value)) \
	X(cuMemPoolGetAttribute, (void *pool, int which, void *value)) \
	X(cuMemPoolTrimTo, (void *pool, size_t keep_bytes)) \
	X(cuMemAllocFromPoolAsync, (uint64_t * out, size_t bytes, void *pool, void *stream)) \
	X(cuMemFreeAsync, (uint64_t addr, void *stream))

struct frag_cu {
#define FRAG_X_(name, args) int(*name) args;
	FRAG_CU_LIST(FRAG_X_)
	FRAG_CU_OPTIONAL_LIST(FRAG_X_)
#undef FRAG_X_
};

/* The driver, opened once for the process; NULL with err filled where there is none. */
const struct frag_cu *frag_cu_open(struct frag_err *err);
/* For tests: this table instead. */
void frag_cu_use(const struct frag_cu *table);
/* 0 for success; else FRAG_EDEVICE with the call and the error's name. */
int frag_cu_check(const struct frag_cu *cu, int rc, const char *call, struct frag_err *err);
/* The same; FRAG_OOM where the card has no memory left. */
static inline int frag_cu_check_alloc(const struct frag_cu *cu, int rc, const char *call,
				      struct frag_err *err)
{
	return rc == FRAG_CU_OUT_OF_MEMORY ? FRAG_OOM : frag_cu_check(cu, rc, call, err);
}
/* Every call goes through one of these macros, or its result is looked at where it is made.
 * FRAG_CU(cu, err, cuEventCreate, …): calls it; the name goes into the message. See FRAG_CARD_CALL,
 * too (cu_card.h). */
#define FRAG_CU(cu, err, call, ...) frag_cu_check((cu), (cu)->call(__VA_ARGS__), #call, (err))

#endif
