/* SPDX-License-Identifier: Apache-2.0 */
#include "live_rig.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/addr_map.h"
#include "lib/grow.h"

#define UNIT 4096u
#define LOW 0x700000000000ull
#define GRANULE FRAG_PAGE

struct clock {
	uint64_t at[FAKE_STREAMS];
};

struct event {
	struct clock clock;
	bool captured;
	struct event *next;
};

struct handle {
	uint64_t bytes, mappings;
	bool released;
};

static struct {
	pthread_mutex_t mutex;
	uint64_t capacity, next, random;
	unsigned ready;
	struct clock streams[FAKE_STREAMS], host;
	bool capturing[FAKE_STREAMS];
	struct frag_addr_map memory, ranges,
		mappings;	       /* address -> bytes; mappings -> handle number */
	struct frag_addr_map units[2]; /* of addresses, of physical memory -> index of uses */
	struct clock *uses;
	size_t uses_count, uses_cap;
	struct handle handles[65536];
	uint64_t handles_count;
	struct event *events;
} f = { .mutex = PTHREAD_MUTEX_INITIALIZER };
static _Thread_local int mode; /* of captures */
struct fake_seen fake;

#define LOCKED(body) \
	do { \
		pthread_mutex_lock(&f.mutex); \
		fake.calls++; \
		body; \
		pthread_mutex_unlock(&f.mutex); \
	} while (0)

static void fault(const char *what)
{
	fake.faults++;
	if (!*fake.first)
		snprintf(fake.first, sizeof(fake.first), "%s", what);
}

static void merge(struct clock *to, const struct clock *from)
{
	for (unsigned i = 0; i < FAKE_STREAMS; i++)
		to->at[i] = FRAG_MAX(to->at[i], from->at[i]);
}

static unsigned number_of(const void *stream)
{
	return stream ? (unsigned)((uintptr_t)stream / 256) : 0;
}

static bool any_capture(void)
{
	for (unsigned i = 0; i < FAKE_STREAMS; i++)
		if (f.capturing[i])
			return true;
	return false;
}

static void put(struct frag_addr_map *map, uint64_t addr, uint64_t value)
{
	if (frag_addr_map_reserve(map) || !frag_addr_map_add(map, addr, value))
		abort();
}

static uint64_t take(struct frag_addr_map *map, uint64_t addr)
{
	return (uint64_t)(uintptr_t)frag_addr_map_take(map, addr);
}

/* ---- memory and who used it ------------------------------------------------------------------ */

static struct clock *uses_of(unsigned space, uint64_t unit)
{
	struct frag_addr_cell *cell = frag_addr_map_find(&f.units[space], unit << 9);

	if (cell)
		return &f.uses[frag_addr_number(cell)];
	if (FRAG_GROW(f.uses, f.uses_count, f.uses_cap, "uses", NULL) ||
	    frag_addr_map_number(&f.units[space], unit << 9, f.uses_count))
		abort();
	memset(&f.uses[f.uses_count], 0, sizeof(*f.uses));
	return &f.uses[f.uses_count++];
}

/* Number of a piece of physical memory: of a mapped address, or of itself. 0: there is none. */
static uint64_t physical(uint64_t addr)
{
	uint64_t at = frag_round_down(addr, GRANULE);

	for (unsigned i = 0; i < 64; i++, at -= GRANULE) {
		const struct frag_addr_cell *cell = frag_addr_map_find(&f.mappings, at);

		if (cell && addr - at < f.handles[cell->value - 1].bytes)
			return (cell->value << 40) + (addr - at);
	}
	return addr;
}

static bool is_known(const struct clock *use, const struct clock *by)
{
	for (unsigned i = 0; i < FAKE_STREAMS; i++)
		if (use->at[i] > by->at[i])
			return false;
	return true;
}

static void work(unsigned stream, uint64_t addr, uint64_t bytes, bool fresh)
{
	struct clock *now = &f.streams[stream];

	merge(now, &f.host);
	now->at[stream]++;
	for (uint64_t at = frag_round_up(addr, UNIT); at + UNIT <= addr + bytes; at += UNIT) {
		struct clock *there;

		uses_of(0, at / UNIT)->at[stream] = now->at[stream];
		there = uses_of(1, physical(at) / UNIT); /* the table may have moved */
		if (fresh && !is_known(there, now)) {
			fake.races++;
			if (!*fake.first)
				snprintf(fake.first, sizeof(fake.first),
					 "race: stream %u works on 0x%" PRIx64
					 ", where other work may run",
					 stream, at);
		}
		there->at[stream] = now->at[stream];
	}
}

void fake_work(unsigned stream, uint64_t addr, uint64_t bytes, bool fresh)
{
	LOCKED(work(stream, addr, bytes, fresh));
}

static void all_done(void)
{
	for (unsigned i = 0; i < FAKE_STREAMS; i++)
		merge(&f.host, &f.streams[i]);
}

static void no_capture(const char *what)
{
	if (any_capture())
		fault(what);
}

static void relaxed(const char *what)
{
	if (any_capture() && mode != FRAG_CU_CAPTURE_RELAXED)
		fault(what);
}

/* ---- the calls: named as the driver's; an old driver lacks pools, too -------- */

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define CALL(name, args, ...) \
	static int name args \
	{ \
		__VA_ARGS__; \
		return 0; \
	}

static _Thread_local void *context;

CALL(cuInit, (unsigned flags))
CALL(cuDriverGetVersion, (int *version), *version = 13000)
CALL(cuGetErrorName, (int code, const char **text),
     *text = code == FRAG_CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR")
CALL(cuDeviceGet, (int *device, int ordinal), *device = ordinal; if (ordinal > 1) return 101)
CALL(cuDeviceGetCount, (int *count), *count = 2)
CALL(cuDeviceGetName, (char *text, int len, int device),
     snprintf(text, (size_t)len, "fake %d", device))
CALL(cuDeviceGetAttribute, (int *value, int which, int device),
     *value = which != FRAG_CU_ATTR_POOLS)
CALL(cuDeviceCanAccessPeer, (int *can, int device, int other), *can = 1)
CALL(cuDevicePrimaryCtxRetain, (void **out, int device),
     *out = (void *)(uintptr_t)(0x1000 + device))
CALL(cuCtxGetCurrent, (void **out), *out = context)
CALL(cuCtxPushCurrent_v2, (void *next), context = next)
CALL(cuCtxPopCurrent_v2, (void **out), *out = context; context = NULL)
CALL(cuThreadExchangeStreamCaptureMode, (int *other), int before = mode; mode = *other;
     *other = before)
CALL(cuMemGetAllocationGranularity,
     (size_t * bytes, const struct frag_cu_allocation *prop, int option), *bytes = GRANULE)
CALL(cuMemSetAccess, (uint64_t addr, size_t bytes, const struct frag_cu_access *list, size_t count))

/* ---- work, events, captures ------------------------------------------------------------------ */

CALL(cuCtxSynchronize, (void),
     LOCKED(no_capture("the card was waited for in a capture"); all_done()))
CALL(cuStreamIsCapturing, (void *stream, int *status),
     LOCKED(*status = f.capturing[number_of(stream)]))

static int cuStreamSynchronize(void *stream)
{
	LOCKED({
		if (f.capturing[number_of(stream)])
			fault("a captured stream was waited for");
		merge(&f.host, &f.streams[number_of(stream)]);
	});
	return 0;
}

static int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	const struct event *e = event;

	LOCKED({
		if (f.capturing[number_of(stream)] != e->captured)
			fault("a wait between a capture and what is not in it");
		merge(&f.streams[number_of(stream)], &e->clock);
	});
	return 0;
}

static int cuEventCreate(void **out, unsigned flags)
{
	struct event *e = calloc(1, sizeof(*e));

	*out = e;
	LOCKED({
		e->next = f.events;
		f.events = e;
	});
	return 0;
}

static int cuEventRecord(void *event, void *stream)
{
	struct event *e = event;

	LOCKED({
		e->captured = f.capturing[number_of(stream)];
		if (e->captured)
			fault("an event of the allocator became part of a graph");
		e->clock = f.streams[number_of(stream)];
		merge(&e->clock, &f.host);
	});
	return 0;
}

static int cuEventQuery(void *event)
{
	const struct event *e = event;
	int rc = FRAG_CU_NOT_READY;

	LOCKED({
		no_capture("an event was asked for in a capture");
		f.random = f.random * 6364136223846793005ull + 1442695040888963407ull;
		if ((f.random >> 33 & 255) < f.ready || is_known(&e->clock, &f.host)) {
			merge(&f.host, &e->clock);
			rc = 0;
		}
	});
	return rc;
}

static int cuEventSynchronize(void *event)
{
	const struct event *e = event;

	LOCKED({
		no_capture("an event was waited for in a capture");
		merge(&f.host, &e->clock);
	});
	return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

CALL(cuMemGetInfo_v2, (size_t * left, size_t *total),
     LOCKED(*left = f.capacity - fake.held_bytes; *total = f.capacity))

static int cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
	int rc = FRAG_CU_OUT_OF_MEMORY;

	LOCKED({
		relaxed("cuMemAlloc in a capture");
		if (frag_round_up(bytes, GRANULE) <= f.capacity - fake.held_bytes) {
			*out = f.next;
			f.next += frag_round_up(bytes, GRANULE) + GRANULE;
			fake.held_bytes += frag_round_up(bytes, GRANULE);
			put(&f.memory, *out, bytes);
			rc = 0;
		}
	});
	return rc;
}

static int cuMemFree_v2(uint64_t addr)
{
	LOCKED({
		uint64_t bytes = take(&f.memory, addr);

		relaxed("cuMemFree in a capture");
		if (!bytes)
			fault("cuMemFree of what is not there");
		fake.held_bytes -= frag_round_up(bytes, GRANULE);
		all_done();
	});
	return 0;
}

CALL(cuMemAllocManaged, (uint64_t * out, size_t bytes, unsigned flags),
     return cuMemAlloc_v2(out, bytes))

static int cuMemAddressReserve(uint64_t *out, size_t bytes, size_t align, uint64_t hint,
			       uint64_t flags)
{
	LOCKED({
		*out = f.next;
		f.next += bytes + 256 * FRAG_MIB;
		put(&f.ranges, *out, bytes);
	});
	return 0;
}

static int cuMemAddressFree(uint64_t addr, size_t bytes)
{
	LOCKED(if (take(&f.ranges, addr) != bytes) fault("cuMemAddressFree of what is not there"));
	return 0;
}

static int cuMemCreate(uint64_t *out, size_t bytes, const struct frag_cu_allocation *prop,
		       uint64_t flags)
{
	int rc = FRAG_CU_OUT_OF_MEMORY;

	LOCKED(if (bytes <= f.capacity - fake.held_bytes && f.handles_count < 65535) {
		f.handles[f.handles_count] = (struct handle){ .bytes = bytes };
		*out = ++f.handles_count;
		fake.held_bytes += bytes;
		rc = 0;
	});
	return rc;
}

static void drop(struct handle *h)
{
	if (h->released && !h->mappings)
		fake.held_bytes -= h->bytes;
}

static int cuMemRelease(uint64_t handle)
{
	LOCKED({
		struct handle *h = &f.handles[handle - 1];

		if (h->released)
			fault("cuMemRelease twice");
		h->released = true;
		drop(h);
	});
	return 0;
}

static int cuMemMap(uint64_t addr, size_t bytes, size_t offset, uint64_t handle, uint64_t flags)
{
	LOCKED({
		if (bytes != f.handles[handle - 1].bytes || frag_addr_map_find(&f.mappings, addr))
			fault("cuMemMap over something, or not of the whole handle");
		else
			put(&f.mappings, addr, handle);
		f.handles[handle - 1].mappings++;
	});
	return 0;
}

static int cuMemUnmap(uint64_t addr, size_t bytes)
{
	LOCKED({
		for (uint64_t at = addr; at < addr + bytes; at += UNIT)
			if (!is_known(uses_of(0, at / UNIT), &f.host))
				fault("cuMemUnmap while work may run there");
		for (uint64_t at = addr; at < addr + bytes;) {
			uint64_t handle = take(&f.mappings, at);

			if (!handle) {
				fault("cuMemUnmap of what is not mapped");
				break;
			}
			f.handles[handle - 1].mappings--;
			drop(&f.handles[handle - 1]);
			at += f.handles[handle - 1].bytes;
		}
	});
	return 0;
}

#define HAS(name, ...) .name = name,
static const struct frag_cu table = {
	FRAG_CU_LIST(HAS) HAS(cuDeviceCanAccessPeer) HAS(cuMemGetAllocationGranularity)
		HAS(cuMemAddressReserve) HAS(cuMemAddressFree) HAS(cuMemCreate) HAS(cuMemRelease)
			HAS(cuMemMap) HAS(cuMemUnmap) HAS(cuMemSetAccess) HAS(cuMemAllocManaged)
};

/* ---- for the test ---------------------------------------------------------------------------- */

void fake_reset(uint64_t capacity_bytes)
{
	while (f.events) {
		struct event *e = f.events;

		f.events = e->next;
		free(e);
	}
	frag_addr_map_release(&f.memory);
	frag_addr_map_release(&f.ranges);
	frag_addr_map_release(&f.mappings);
	frag_addr_map_release(&f.units[0]);
	frag_addr_map_release(&f.units[1]);
	f.uses_count = f.handles_count = 0;
	frag_host_free(f.uses);
	f.uses = NULL;
	f.uses_cap = 0;
	f.capacity = capacity_bytes;
	fake = (struct fake_seen){ 0 };
	f.next = LOW;
	f.random = 1;
	f.ready = 256;
	memset(f.streams, 0, sizeof(f.streams));
	memset(&f.host, 0, sizeof(f.host));
	memset(f.capturing, 0, sizeof(f.capturing));
	frag_cu_use(&table);
}

void *fake_stream(unsigned stream)
{
	return (void *)(uintptr_t)(stream * 256);
}

void fake_ready(unsigned in_256)
{
	f.ready = in_256;
}

void fake_capture(unsigned stream, bool on)
{
	f.capturing[stream] = on;
}

uint64_t fake_held(void)
{
	return f.memory.count + f.ranges.count + f.mappings.count;
}
