/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For record_proofs.sh: a program with the runtime linked statically, which asks for memory in every way that record
 * knows and says how much it was granted, or makes N pairs of calls and says how long one took.
 *	record_proofs every | pairs N
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda.h>
#include <cuda_runtime.h>

static unsigned long long allocs, bytes, frees, refused;

static void took(bool good, size_t n)
{
	allocs += good;
	bytes += good ? n : 0;
	refused += !good;
}

template <typename Fn> static Fn driver(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *at = nullptr;

	cudaGetDriverEntryPointByVersion(name, &at, 12000, cudaEnableDefault, &found);
	if (!at)
		exit(2);
	return (Fn)at;
}

static void map_pages()
{
	auto create = driver<CUresult (*)(CUmemGenericAllocationHandle *, size_t,
					  const CUmemAllocationProp *, unsigned long long)>("cuMemCreate");
	auto reserve = driver<CUresult (*)(CUdeviceptr *, size_t, size_t, CUdeviceptr,
					   unsigned long long)>("cuMemAddressReserve");
	auto map = driver<CUresult (*)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
				       unsigned long long)>("cuMemMap");
	auto unmap = driver<CUresult (*)(CUdeviceptr, size_t)>("cuMemUnmap");
	auto release = driver<CUresult (*)(CUmemGenericAllocationHandle)>("cuMemRelease");
	CUmemAllocationProp prop = {};
	CUdeviceptr at;
	const size_t page = 2 << 20;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	if (reserve(&at, 8 * page, 0, 0, 0))
		exit(3);
	for (int i = 0; i < 8; i++) {
		CUmemGenericAllocationHandle handle;
		bool good = !create(&handle, page, &prop, 0);

		took(good, page);
		if (!good || map(at + i * page, page, 0, handle, 0) || release(handle))
			exit(4);
	}
	if (unmap(at, 8 * page))
		exit(5);
	frees += 8;
}

static void every()
{
	void *p, *list[100];
	size_t pitch;
	cudaStream_t stream;
	cudaMemPool_t pool;

	cudaStreamCreate(&stream);
	cudaDeviceGetDefaultMemPool(&pool, 0);
	for (int i = 0; i < 100; i++)
		took(!cudaMalloc(&list[i], 1000 * (i + 1)), 1000 * (i + 1));
	for (int i = 0; i < 100; i++, frees++)
		cudaFree(list[(i * 37) % 100]);
	for (int i = 0; i < 100; i++)
		took(!cudaMallocAsync(&list[i], 777 * (i + 1), stream), 777 * (i + 1));
	took(!cudaMallocFromPoolAsync(&p, 5000, pool, stream), 5000);
	for (int i = 0; i < 100; i++, frees++)
		cudaFreeAsync(list[i], stream);
	frees += !cudaFreeAsync(p, stream);
	took(!cudaMallocManaged(&p, 3 << 20), 3 << 20);
	frees += !cudaFree(p);
	took(!cudaMallocPitch(&p, &pitch, 1000, 64), 0);
	bytes += pitch * 64;
	frees += !cudaFree(p);
	took(!cudaMalloc(&p, (size_t)1 << 42), 0);
	map_pages();
	took(!cudaMalloc(&p, 12345), 12345); /* never freed, until the context is gone */
	cudaStreamSynchronize(stream);
	cudaDeviceReset();
	frees++;
	printf("%llu allocs %llu bytes %llu frees %llu refused\n", allocs, bytes, frees, refused);
}

static void pairs(long n)
{
	cudaStream_t stream;
	void *p;

	cudaStreamCreate(&stream);
	for (int i = 0; i < 1000; i++) {
		cudaMallocAsync(&p, 1 << 20, stream);
		cudaFreeAsync(p, stream);
	}
	auto begin = std::chrono::steady_clock::now();
	for (long i = 0; i < n; i++) {
		cudaMallocAsync(&p, (1 << 20) + (i & 1023), stream);
		cudaFreeAsync(p, stream);
	}
	double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
			    .count();
	cudaStreamSynchronize(stream);
	printf("%.1f\n", ns / (2.0 * (double)n));
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "pairs"))
		pairs(atol(argv[2]));
	else
		every();
	return 0;
}
