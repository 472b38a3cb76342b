/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For handover.sh: may calls that map memory be made by a second thread while the first launches kernels as a training does?
 *	handover prices           what each call costs, the card idle and busy; several handles at once
 *	handover threads ROUNDS   fixed launches beside calls of the same thread, of another one, and of none
 *	handover load SECONDS     a neighbour on the card: launches, waits and moves
 * Rows on standard output: for prices "what,card,mib,handles,count,mean_us,p50_us,p99_us"; for threads "regime,calls,by,round,
 * wall_ms,calls_count,call_us,launch_p50_us,launch_p99_us,launch_max_us".
 */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>

typedef std::chrono::steady_clock timer;

static double now_us()
{
	return std::chrono::duration<double, std::micro>(timer::now().time_since_epoch()).count();
}

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	exit(1);
}

template <typename Fn> static Fn entry(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *at = nullptr;

	cudaGetDriverEntryPointByVersion(name, &at, 12000, cudaEnableDefault, &found);
	must(!at, name);
	return (Fn)at;
}

static CUresult (*mem_create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			      unsigned long long);
static CUresult (*mem_reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
static CUresult (*mem_map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			   unsigned long long);
static CUresult (*mem_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
static CUresult (*mem_unmap)(CUdeviceptr, size_t);
static CUresult (*mem_release)(CUmemGenericAllocationHandle);

static CUmemAllocationProp prop;
static CUmemAccessDesc desc;
static CUdeviceptr space; /* 64 GiB of addresses */
static cudaStream_t stream;
static const size_t MIB = 1 << 20;

__global__ void spin(long long cycles)
{
	long long end = clock64() + cycles;

	while (clock64() < end)
		;
}

static void begin()
{
	must(cudaFree(nullptr), "cudaFree");
	mem_create = entry<decltype(mem_create)>("cuMemCreate");
	mem_reserve = entry<decltype(mem_reserve)>("cuMemAddressReserve");
	mem_map = entry<decltype(mem_map)>("cuMemMap");
	mem_access = entry<decltype(mem_access)>("cuMemSetAccess");
	mem_unmap = entry<decltype(mem_unmap)>("cuMemUnmap");
	mem_release = entry<decltype(mem_release)>("cuMemRelease");
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	desc.location = prop.location;
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	must(mem_reserve(&space, 65536 * MIB, 2 * MIB, 0, 0), "cuMemAddressReserve");
	must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
	spin<<<1, 32, 0, stream>>>(100);
	must(cudaStreamSynchronize(stream), "spin");
}

/* ---- prices ------------------------------------------------------------------------------ */

static void row(const char *what, const char *card, size_t mib, size_t handles,
		std::vector<double> &us)
{
	double sum = 0;

	std::sort(us.begin(), us.end());
	for (double x : us)
		sum += x;
	printf("%s,%s,%zu,%zu,%zu,%.2f,%.2f,%.2f\n", what, card, mib, handles, us.size(),
	       sum / us.size(), us[us.size() / 2], us[us.size() * 99 / 100]);
	us.clear();
}

/* The card has work for about `ms`. */
static void occupy(double ms)
{
	for (double at = 0; at < ms; at += 0.1)
		spin<<<1, 32, 0, stream>>>(170000);
}

/* `count` handles of `mib` are made, mapped in runs of `n`, granted by one call a run, unmapped, released. */
static void price(const char *card, size_t mib, size_t n, size_t count)
{
	std::vector<CUmemGenericAllocationHandle> handles(count);
	std::vector<double> us[5];
	size_t bytes = mib * MIB;
	bool busy = !strcmp(card, "busy");
	const char *names[] = { "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap",
				"cuMemRelease" };
	auto timed = [&](unsigned k, auto call) {
		double from = now_us();

		must(call(), names[k]);
		us[k].push_back(now_us() - from);
	};
	auto fill = [&] { busy &&cudaStreamQuery(stream) == cudaSuccess ? occupy(5) : (void)0; };

	for (size_t i = 0; i < count; i++) {
		fill();
		timed(0, [&] { return mem_create(&handles[i], bytes, &prop, 0); });
	}
	for (size_t i = 0; i < count; i += n) {
		fill();
		for (size_t k = i; k < i + n; k++)
			timed(1,
			      [&] { return mem_map(space + k * bytes, bytes, 0, handles[k], 0); });
		timed(2, [&] { return mem_access(space + i * bytes, n * bytes, &desc, 1); });
	}
	for (size_t i = 0; i < count; i += n) {
		fill();
		timed(3, [&] { return mem_unmap(space + i * bytes, n * bytes); });
	}
	for (size_t i = 0; i < count; i++) {
		fill();
		timed(4, [&] { return mem_release(handles[i]); });
	}
	for (unsigned k = 0; k < 5; k++)
		row(names[k], card, mib, k == 2 || k == 3 ? n : 1, us[k]);
	must(cudaStreamSynchronize(stream), "synchronise");
}

/* Can a part of a handle be mapped, at its front and further in? Can it be mapped twice? */
static void parts()
{
	CUmemGenericAllocationHandle h;
	int rc[3];

	must(mem_create(&h, 64 * MIB, &prop, 0), "cuMemCreate");
	rc[0] = mem_map(space, 2 * MIB, 0, h, 0);
	rc[1] = mem_map(space + 64 * MIB, 2 * MIB, 8 * MIB, h, 0);
	rc[2] = mem_map(space + 128 * MIB, 64 * MIB, 0, h, 0);
	printf("# part of a handle: from its front %d, from 8 MiB on %d, all of it at another "
	       "place %d (0: works)\n",
	       rc[0], rc[1], rc[2]);
	for (int i = 0; i < 3; i++)
		if (!rc[i])
			mem_unmap(space + i * 64 * MIB, i == 2 ? 64 * MIB : 2 * MIB);
	mem_release(h);
}

static void prices()
{
	printf("what,card,mib,handles,count,mean_us,p50_us,p99_us\n");
	price("warm", 2, 1, 64);
	for (const char *card : { "idle", "busy" }) {
		for (size_t mib : { 2, 4, 8, 16, 32, 64 })
			price(card, mib, 1, 256);
		for (size_t n : { 2, 4, 16, 64 })
			price(card, 2, n, 256);
		price(card, 8, 16, 256);
	}
	parts();
}

/* ---- threads ----------------------------------------------------------------------------- */

#define OPS_MAX 1000

/* What an operation is made of, in this order. */
struct ops {
	const char *name;
	size_t mib;
	bool unmap, release, create, map;
};

static const struct ops all_ops[] = {
	{ "new", 2, false, false, true, true },
	{ "new", 8, false, false, true, true },
	{ "new", 16, false, false, true, true },
	{ "create", 8, false, false, true, false },
	{ "map", 8, false, false, false, true },
	{ "unmap", 8, true, false, false, false },
	{ "unmap+release", 8, true, true, false, false },
	{ "move", 8, true, false, false, true }, /* in a ring of 65 places for 64 handles */
};

static bool in_ring(const struct ops *o)
{
	return o->unmap && o->map;
}

struct bench {
	const struct ops *o;
	std::vector<CUmemGenericAllocationHandle> handles; /* 0: none */
	size_t done;
	double spent_us;
};

static size_t count_of(const struct ops *o)
{
	return std::min<size_t>(OPS_MAX, 16384 / o->mib);
}

static void map_at(size_t at, size_t bytes, CUmemGenericAllocationHandle h)
{
	must(mem_map(space + at * bytes, bytes, 0, h, 0), "cuMemMap");
	must(mem_access(space + at * bytes, bytes, &desc, 1), "cuMemSetAccess");
}

static void prepare(struct bench *b, const struct ops *o)
{
	size_t bytes = o->mib * MIB, count = in_ring(o) ? 64 : count_of(o);

	*b = { o, std::vector<CUmemGenericAllocationHandle>(count_of(o)), 0, 0 };
	if (o->create)
		return;
	for (size_t i = 0; i < count; i++) {
		must(mem_create(&b->handles[i], bytes, &prop, 0), "cuMemCreate");
		if (o->unmap)
			map_at(i, bytes, b->handles[i]);
	}
}

/* One operation; false: none are left. */
static bool one(struct bench *b)
{
	const struct ops *o = b->o;
	size_t bytes = o->mib * MIB, i = b->done, at = i;
	double from = now_us();

	if (i >= (in_ring(o) ? 5 * OPS_MAX : b->handles.size()))
		return false;
	if (in_ring(o)) {
		at = (i + 64) % 65;
		must(mem_unmap(space + (i % 65) * bytes, bytes), "cuMemUnmap");
		map_at(at, bytes, b->handles[i % 64]);
	} else {
		if (o->unmap)
			must(mem_unmap(space + i * bytes, bytes), "cuMemUnmap");
		if (o->release)
			must(mem_release(b->handles[i]), "cuMemRelease");
		if (o->create)
			must(mem_create(&b->handles[i], bytes, &prop, 0), "cuMemCreate");
		if (o->map)
			map_at(i, bytes, b->handles[i]);
		if (o->release)
			b->handles[i] = 0;
	}
	b->spent_us += now_us() - from;
	b->done++;
	return true;
}

static void undo(struct bench *b)
{
	for (size_t i = 0; i < 65 || i < b->handles.size(); i++)
		mem_unmap(space + i * b->o->mib * MIB, b->o->mib * MIB); /* many are not mapped */
	for (CUmemGenericAllocationHandle h : b->handles)
		if (h)
			must(mem_release(h), "cuMemRelease");
}

struct regime {
	const char *name;
	long long cycles; /* of a kernel */
	int launches, wait_every;
	double think_us; /* of the host between two */
};

static const struct regime regimes[] = {
	{ "host-bound", 1000, 30000, 2000, 4 },
	{ "card-bound", 50000, 8000, 400, 4 },
};

#define EVERY_US 500.0

static void work(const struct regime *r, struct bench *own, std::vector<double> &us)
{
	static char *host, *card;
	double due = now_us();

	if (!host) {
		must(cudaMallocHost(&host, 4096), "cudaMallocHost");
		must(cudaMalloc(&card, 4096), "cudaMalloc");
	}
	for (int i = 0; i < r->launches; i++) {
		double from = now_us(), to;

		if (own && from >= due) {
			one(own);
			due += EVERY_US;
			from = now_us();
		}
		if (i % 50 == 49)
			cudaMemcpyAsync(card, host, 4096, cudaMemcpyHostToDevice, stream);
		else
			spin<<<1, 32, 0, stream>>>(r->cycles);
		to = now_us();
		us.push_back(to - from);
		while (now_us() - to < r->think_us)
			;
		if (i % r->wait_every == r->wait_every - 1)
			must(cudaStreamSynchronize(stream), "launches");
	}
	must(cudaStreamSynchronize(stream), "launches");
}

static void helper(struct bench *b, std::atomic<bool> *stop)
{
	double due = now_us();

	must(cudaSetDevice(0), "cudaSetDevice");
	while (!*stop) {
		if (now_us() < due) {
			std::this_thread::sleep_for(std::chrono::microseconds(20));
			continue;
		}
		due += EVERY_US;
		one(b);
	}
}

static void measure(const struct regime *r, const struct ops *o, const char *by, int round)
{
	bool own = !strcmp(by, "same");
	std::vector<double> us;
	struct bench b;
	std::atomic<bool> stop(false);
	std::thread other;
	double from, wall;

	if (o)
		prepare(&b, o);
	us.reserve(r->launches);
	must(cudaDeviceSynchronize(), "synchronise");
	from = now_us();
	if (o && !own)
		other = std::thread(helper, &b, &stop);
	work(r, own ? &b : nullptr, us);
	wall = now_us() - from;
	stop = true;
	if (other.joinable())
		other.join();
	std::sort(us.begin(), us.end());
	printf("%s,%s%s%s,%s,%d,%.2f,%zu,%.2f,%.2f,%.2f,%.1f\n", r->name, o ? o->name : "none",
	       o ? " " : "", o ? std::to_string(o->mib).c_str() : "", by, round, wall / 1000,
	       o ? b.done : 0, o && b.done ? b.spent_us / b.done : 0, us[us.size() / 2],
	       us[us.size() * 99 / 100], us.back());
	fflush(stdout);
	if (o)
		undo(&b);
}

static void threads(int rounds)
{
	printf("regime,calls,by,round,wall_ms,calls_count,call_us,launch_p50_us,launch_p99_us,"
	       "launch_max_us\n");
	for (int round = 0; round < rounds; round++)
		for (const struct regime &r : regimes) {
			measure(&r, nullptr, "nobody", round);
			for (const struct ops &o : all_ops) {
				measure(&r, &o, "same", round);
				measure(&r, &o, "other", round);
			}
			measure(&r, nullptr, "nobody", round);
		}
}

/* ---- a neighbour --------------------------------------------------------------------------- */

static void load(double seconds)
{
	struct bench b;
	double end = now_us() + seconds * 1e6;
	std::vector<double> us;
	struct regime r = { "load", 15000, 200, 200, 4 };

	prepare(&b, &all_ops[7]);
	while (now_us() < end) {
		us.clear();
		b.done %= 65 * 64;
		work(&r, &b, us);
	}
	undo(&b);
}

int main(int argc, char **argv)
{
	std::string what = argc > 1 ? argv[1] : "";

	begin();
	if (what == "prices")
		prices();
	else if (what == "threads")
		threads(argc > 2 ? atoi(argv[2]) : 1);
	else if (what == "load")
		load(argc > 2 ? atof(argv[2]) : 10);
	else
		return 2;
	return 0;
}
