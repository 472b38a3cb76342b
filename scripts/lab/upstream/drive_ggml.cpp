/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml's own pool for cards without virtual memory management, struct ggml_cuda_pool_leg, which run.sh takes out of the fetched
 * ggml-cuda.cu (POOL names the file), because the rest of that needs nvcc and a card:
 *	drive_ggml OPS SEGMENTS
 * A pool per stream. Trim is clear_pool of each.
 */
#include <map>
#include <memory>
#include <new>

#include "drive.h"

#define GGML_ASSERT(x) ((x) ? (void)0 : abort())
#define GGML_LOG_DEBUG(...) ((void)0)
#define GGML_CUDA_NAME "CUDA"
#define CUDA_CHECK(x) do { if ((x) != cudaSuccess) throw std::bad_alloc(); } while (0)

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };

static void ggml_cuda_set_device(int) {}
static cudaError_t cudaGetLastError() { return cudaSuccess; }
static cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

static cudaError_t cudaFree(void *ptr)
{
	dev_give(ptr);
	return cudaSuccess;
}

static cudaError_t ggml_cuda_device_malloc(void **ptr, size_t bytes, int)
{
	*ptr = dev_take(bytes);
	return *ptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

struct ggml_cuda_pool {
	virtual ~ggml_cuda_pool() = default;
	virtual void *alloc(size_t size, size_t *actual_size) = 0;
	virtual void free(void *ptr, size_t size) = 0;
};

#include POOL

static std::map<unsigned, std::unique_ptr<ggml_cuda_pool_leg>> pools;
static std::map<void *, size_t> granted;

static void *take(size_t bytes, unsigned stream)
{
	auto &pool = pools[stream];
	size_t actual;

	if (!pool)
		pool = std::make_unique<ggml_cuda_pool_leg>(0);
	try {
		void *ptr = pool->alloc(bytes, &actual);

		granted[ptr] = actual;
		return ptr;
	} catch (const std::bad_alloc &) {
		return nullptr;
	}
}

static void give(void *ptr, size_t, unsigned stream)
{
	pools[stream]->free(ptr, granted[ptr]);
}

static void trim()
{
	for (auto &pool : pools)
		pool.second->clear_pool();
}

int main(int argc, char **argv)
{
	const drive_ops ops = { take, give, trim };
	int rc;

	if (argc < 3)
		return 2;
	dev_load(argv[2]);
	rc = drive(argv[1], &ops);
	_Exit(rc); /* its pools hold blocks that are never freed */
}
