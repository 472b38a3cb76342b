/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUB's CachingDeviceAllocator over a pretended device:
 *	drive_cub OPS SEGMENTS
 * The CUDA runtime is stood in for at the bottom; an event that was recorded has come to pass, as under
 * cub:lag-us=0. Trim is FreeAllCached.
 */
#include <cub/util_allocator.cuh>

#include "drive.h"

static cub::CachingDeviceAllocator *cache;

static cudaStream_t stream_of(unsigned stream)
{
	return stream ? reinterpret_cast<cudaStream_t>(uintptr_t{ 0x1000 } + stream * 16) : cudaStream_t{};
}
static void *take(size_t bytes, unsigned stream)
{
	void *p = nullptr;

	return cache->DeviceAllocate(&p, bytes, stream_of(stream)) == cudaSuccess ? p : nullptr;
}
static void give(void *ptr, size_t, unsigned) { cache->DeviceFree(ptr); }
static void trim() { cache->FreeAllCached(); }

int main(int argc, char **argv)
{
	static const drive_ops ops = { take, give, trim };

	if (argc < 3)
		return 2;
	dev_load(argv[2]);
	cache = new cub::CachingDeviceAllocator();
	exit(drive(argv[1], &ops));
}

extern "C" {
static uintptr_t events = 0x100000;

cudaError_t cudaMalloc(void **p, size_t bytes) { return (*p = dev_take(bytes)) ? cudaSuccess : cudaErrorMemoryAllocation; }
cudaError_t cudaFree(void *p) { dev_give(p); return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) { *e = reinterpret_cast<cudaEvent_t>(events += 64); return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaGetDevice(int *d) { *d = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char *cudaGetErrorName(cudaError_t) { return "error"; }
const char *cudaGetErrorString(cudaError_t) { return "error"; }
}
