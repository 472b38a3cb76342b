/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's pool, fixed-size, binning and arena resources over a pretended device:
 *	drive_rmm OPS SEGMENTS pool|fixed|binning|arena [NUMBER...]
 *	pool [INITIAL], fixed [BLOCK BLOCKS_PER_CHUNK], binning [MIN_EXPONENT MAX_EXPONENT], arena SIZE
 * The CUDA runtime is stood in for at the bottom: streams are numbers, events are made in rising order of
 * address (FALLING_EVENTS in the environment: falling), nothing ever waits.
 */
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/fixed_size_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <functional>
#include <new>

#include "drive.h"

/* The device as RMM sees one. */
struct device_resource {
	void *allocate(cuda::stream_ref, std::size_t bytes, std::size_t)
	{
		void *p = dev_take(bytes);

		if (!p)
			throw rmm::out_of_memory("device");
		return p;
	}
	void deallocate(cuda::stream_ref, void *p, std::size_t, std::size_t) noexcept { dev_give(p); }
	void *allocate_sync(std::size_t bytes, std::size_t a) { return allocate(cuda::stream_ref{ cudaStream_t{} }, bytes, a); }
	void deallocate_sync(void *p, std::size_t n, std::size_t a) noexcept { deallocate(cuda::stream_ref{ cudaStream_t{} }, p, n, a); }
	bool operator==(device_resource const &) const { return true; }
	bool operator!=(device_resource const &) const { return false; }
	friend void get_property(device_resource const &, cuda::mr::device_accessible) noexcept {}
};

static std::function<void *(size_t, cudaStream_t)> take_from;
static std::function<void(void *, size_t, cudaStream_t)> give_to;

static cudaStream_t stream_of(unsigned stream)
{
	return stream ? reinterpret_cast<cudaStream_t>(uintptr_t{ 0x1000 } + stream * 16) : cudaStream_t{};
}

static void *take(size_t bytes, unsigned stream)
{
	try {
		return take_from(bytes, stream_of(stream));
	} catch (std::bad_alloc const &) {
		return nullptr;
	}
}
static void give(void *ptr, size_t bytes, unsigned stream) { give_to(ptr, bytes, stream_of(stream)); }

template <class R> static void drive_resource(R *r)
{
	take_from = [r](size_t n, cudaStream_t s) { return r->allocate(cuda::stream_ref{ s }, n, 256); };
	give_to = [r](void *p, size_t n, cudaStream_t s) { r->deallocate(cuda::stream_ref{ s }, p, n, 256); };
}

int main(int argc, char **argv)
{
	static const drive_ops ops = { take, give, nullptr };
	std::string kind = argc > 3 ? argv[3] : "";
	auto number = [&](int i, size_t otherwise) { return argc > i ? strtoull(argv[i], nullptr, 0) : otherwise; };
	device_resource device;

	if (argc < 4)
		return 2;
	dev_load(argv[2]);
	if (kind == "pool") {
		drive_resource(new rmm::mr::pool_memory_resource(device, number(4, 0)));
	} else if (kind == "fixed") {
		drive_resource(new rmm::mr::fixed_size_memory_resource(device, number(4, 1 << 20), number(5, 128)));
	} else if (kind == "binning") {
		auto *pool = new rmm::mr::pool_memory_resource(device, number(6, 0));
		drive_resource(new rmm::mr::binning_memory_resource(*pool, (int8_t)number(4, 18), (int8_t)number(5, 22)));
	} else if (kind == "arena") {
		drive_resource(new rmm::mr::arena_memory_resource(device, number(4, 0)));
	} else {
		return 2;
	}
	exit(drive(argv[1], &ops));
}

/* ---- RMM's logger, which logs nothing ---- */

namespace rmm {
rapids_logger::sink_ptr default_sink() { return nullptr; }
std::string default_pattern() { return ""; }
rapids_logger::logger &default_logger()
{
	static rapids_logger::logger l;
	return l;
}
} // namespace rmm

/* ---- the CUDA runtime, as far as it is called ---- */

extern "C" {
static uintptr_t events = 0x100000;
static const intptr_t event_step = getenv("FALLING_EVENTS") ? -64 : 64;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) { *e = reinterpret_cast<cudaEvent_t>(events += event_step); return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *id) { *id = reinterpret_cast<uintptr_t>(s); return cudaSuccess; }
cudaError_t cudaGetDevice(int *d) { *d = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *n) { *n = 1; return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) { *free_bytes = *total = 150109880320ull; return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char *cudaGetErrorName(cudaError_t) { return "error"; }
const char *cudaGetErrorString(cudaError_t) { return "error"; }
}
