/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded calls, for both ways of seeing them; recorder.h says what their shapes mean. */
#ifndef FRAG_RECORD_CALLS_H
#define FRAG_RECORD_CALLS_H

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

#endif
