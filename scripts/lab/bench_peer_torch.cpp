/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives PyTorch's own caching allocator with the operations of a trace (cufrag bench --ops),
 * from C++ with one thread and no Python, the way `cufrag bench TRACE` drives policies: a cold
 * pass, warm passes timed as wholes, one pass with the clock read around every call. Prints one
 * CSV row with the columns of `cufrag bench --csv`.
 *
 *	bench_peer_torch OPS TRACE_NAME LABEL PASSES
 */
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace allocator = c10::cuda::CUDACachingAllocator;

struct op {
	uint64_t bytes; /* 0 = free */
	uint32_t slot, stream;
};

struct trace {
	std::vector<op> ops;
	std::vector<void *> blocks;
	std::vector<cudaStream_t> streams;
};

static uint64_t clock_ns()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool read_ops(const char *path, trace &t)
{
	FILE *f = std::fopen(path, "r");
	unsigned long long count, slots, streams, bytes, slot, stream;
	char kind;

	if (!f || std::fscanf(f, "cufrag-ops 1 %llu %llu %llu", &count, &slots, &streams) != 3)
		return false;
	t.ops.reserve(count);
	while (t.ops.size() < count && std::fscanf(f, " %c %llu", &kind, &slot) == 2) {
		stream = bytes = 0;
		if (kind == 'a' && std::fscanf(f, "%llu %llu", &stream, &bytes) != 2)
			break;
		t.ops.push_back({ bytes, (uint32_t)slot, (uint32_t)stream });
	}
	std::fclose(f);
	t.blocks.assign(slots + 1, nullptr);
	t.streams.assign(streams + 1, nullptr); /* 0: the default stream */
	for (size_t i = 1; i < streams; i++)
		if (cudaStreamCreateWithFlags(&t.streams[i], cudaStreamNonBlocking))
			return false;
	return t.ops.size() == count;
}

static inline void run_op(trace &t, const op &o)
{
	if (o.bytes) {
		t.blocks[o.slot] = allocator::raw_alloc_with_stream(o.bytes, t.streams[o.stream]);
	} else {
		allocator::raw_delete(t.blocks[o.slot]);
		t.blocks[o.slot] = nullptr;
	}
}

static void clear(trace &t)
{
	for (void *&b : t.blocks) {
		if (b)
			allocator::raw_delete(b);
		b = nullptr;
	}
}

static double pass(trace &t)
{
	uint64_t begin = clock_ns();

	for (const op &o : t.ops)
		run_op(t, o);
	begin = clock_ns() - begin;
	clear(t);
	return (double)begin / (double)t.ops.size();
}

static void quantiles(std::vector<uint64_t> &ns)
{
	static const double q[] = { 0.5, 0.9, 0.99, 0.999 };

	std::sort(ns.begin(), ns.end());
	for (double p : q)
		std::printf(",%llu",
			    (unsigned long long)ns[std::min((size_t)(p * (double)ns.size()),
								     ns.size() - 1)]);
	std::printf(",%llu", (unsigned long long)ns.back());
}

int main(int argc, char **argv)
{
	trace t;
	uint64_t tick = UINT64_MAX;
	std::vector<uint64_t> ns[2];
	std::vector<double> warm;
	double cold;

	if (argc != 5)
		return 2;
	c10::cuda::set_device(0);
	allocator::init(c10::cuda::device_count());
	if (!read_ops(argv[1], t)) {
		std::fprintf(stderr, "bench_peer_torch: cannot read %s\n", argv[1]);
		return 3;
	}
	for (int i = 0; i < 1000; i++) {
		uint64_t begin = clock_ns();

		tick = std::min(tick, clock_ns() - begin);
	}
	cold = pass(t);
	for (int i = 0; i < std::max(1, std::atoi(argv[4])); i++)
		warm.push_back(pass(t));
	std::sort(warm.begin(), warm.end());
	for (const op &o : t.ops) {
		uint64_t begin = clock_ns();

		run_op(t, o);
		ns[o.bytes == 0].push_back(clock_ns() - begin);
	}
	clear(t);
	std::printf("%s,%s,cuda,%zu,%.1f,%.1f,%.1f,%.1f,", argv[2], argv[3], t.ops.size(), cold,
		    warm[warm.size() / 2], warm.front(), warm.back());
	quantiles(ns[0]);
	quantiles(ns[1]);
	std::printf(",%llu\n", (unsigned long long)tick);
	return 0;
}
