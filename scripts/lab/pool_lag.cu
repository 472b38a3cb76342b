/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For pool_lag.sh: a real cudaMemPool under a card that lags behind by exactly so much recorded time as --work lag=US says.
 *	pool_lag LAG_US < FILE    (export --to csv --policy async --work lag=US, one stream)
 * Behind each call the stream waits in a kernel until the host lets it go on, so the card has passed what the model counts as passed
 * and nothing else. Prints what the pool reserves beside the simulated, where they part, and a row for each growth.
 */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unordered_map>
#include <unistd.h>
#include <vector>

#include <cuda_runtime.h>

struct op {
	bool alloc;
	double us;
	uint64_t bytes, addr, reserved;
};

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	exit(1);
}

/* The stream arrives behind a call, and goes on when the host lets it. */
__global__ void gate_behind(uint32_t call, volatile uint32_t *arrived, volatile uint32_t *passable)
{
	*arrived = call + 1;
	__threadfence_system();
	while (*passable < call + 1)
		__nanosleep(200);
}

static std::vector<op> read_ops()
{
	std::vector<op> ops;
	char line[4096], action[32];
	double s;
	op o;

	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line,
			   "%*d,%*d,%lf,%*d,%31[^,],%" SCNu64 ",%*d,%*d,%" SCNx64 ",%*d,%*d,%*d,"
										  "%" SCNu64,
			   &s, action, &o.bytes, &o.addr, &o.reserved) != 5)
			continue;
		o.alloc = !strcmp(action, "alloc");
		o.us = s * 1e6;
		if (o.alloc || !strcmp(action, "free"))
			ops.push_back(o);
	}
	return ops;
}

/* A call that waits for the card, which waits for us, ends here. */
static std::atomic<size_t> at(0);
static std::atomic<const char *> doing("nothing");
static std::atomic<bool> done(false);

static void guard(volatile uint32_t *passable)
{
	for (size_t seen = SIZE_MAX; !done;) {
		seen = at;
		for (int i = 0; i < 20 && seen == at && !done; i++)
			std::this_thread::sleep_for(std::chrono::milliseconds(100));
		if (seen != at || done)
			continue;
		printf("stuck at call %zu in %s\n", seen, doing.load());
		fflush(stdout);
		*passable = UINT32_MAX;
		_exit(3);
	}
}

#define DO(call) (doing = #call, must((call), #call))

/* All calls; the counts of where the two part. */
struct outcome {
	uint64_t peak, peak_model;
	size_t other_bytes, first, other_places;
};

static struct outcome run(const std::vector<op> &ops, double lag, cudaMemPool_t pool,
			  cudaStream_t stream, volatile uint32_t *words)
{
	volatile uint32_t *arrived = words, *passable = words + 256;
	std::unordered_map<uint64_t, void *> live; /* simulated address -> real */
	struct outcome r = { 0, 0, 0, SIZE_MAX, 0 };
	uint64_t base = 0, last = 0, now;
	size_t passed = 0;

	for (size_t i = 0; i < ops.size(); at = ++i) {
		const op &o = ops[i];
		void *p = nullptr;

		while (passed < i && ops[passed].us <= o.us - lag)
			passed++;
		*passable = passed ? passed - 1 : 0;
		doing = "waiting for the stream";
		while (*arrived < passed)
			;
		if (o.alloc) {
			DO(cudaMallocFromPoolAsync(&p, o.bytes, pool, stream));
			live[o.addr] = p;
			base = base ? base : (uint64_t)p - o.addr;
			r.other_places += (uint64_t)p - o.addr != base;
		} else {
			DO(cudaFreeAsync(live[o.addr], stream));
		}
		doing = "a launch";
		gate_behind<<<1, 1, 0, stream>>>(i, arrived, passable);
		DO(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &now));
		if (now != o.reserved) {
			r.other_bytes++;
			r.first = r.first == SIZE_MAX ? i : r.first;
		}
		if (now != last)
			fprintf(stderr, "%.0f,%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", lag, i,
				o.bytes, now, o.reserved);
		last = now;
		r.peak = std::max(r.peak, now);
		r.peak_model = std::max(r.peak_model, o.reserved);
	}
	*passable = UINT32_MAX;
	DO(cudaStreamSynchronize(stream));
	return r;
}

int main(int argc, char **argv)
{
	double lag = argc > 1 ? atof(argv[1]) : 0;
	std::vector<op> ops = read_ops();
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;
	uint64_t threshold = UINT64_MAX;
	uint32_t *words;
	cudaStream_t stream;
	struct outcome r;

	props.allocType = cudaMemAllocationTypePinned;
	props.location = { cudaMemLocationTypeDevice, 0 };
	must(cudaMemPoolCreate(&pool, &props), "pool");
	must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), "threshol"
											 "d");
	must(cudaStreamCreate(&stream), "stream");
	must(cudaHostAlloc(&words, 4096, cudaHostAllocMapped), "words");
	memset(words, 0, 4096);
	words[256] = 1; /* the kernel is loaded now, not while one waits */
	gate_behind<<<1, 1, 0, stream>>>(0, words, words + 256);
	must(cudaStreamSynchronize(stream), "gate");
	words[0] = words[256] = 0;
	std::thread other(guard, words + 256);
	r = run(ops, lag, pool, stream, words);
	done = true;
	other.join();
	printf("lag %.0f us: %zu calls, peak reserved %" PRIu64 " MiB, simulated %" PRIu64
	       "; other bytes reserved after %zu calls (first %zd), "
	       "other addresses %zu\n",
	       lag, ops.size(), r.peak >> 20, r.peak_model >> 20, r.other_bytes, (ssize_t)r.first,
	       r.other_places);
	return 0;
}
