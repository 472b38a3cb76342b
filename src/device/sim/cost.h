/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of driver calls: one curve of (bytes, ns) per item. An item is a kind of call (the first
 * FRAG_CALL_COUNT ones, with the same numbers) or a separately priced part of a call.
 *
 * Ownership: built-in profiles are static; loaded ones belong to the caller and are immutable, so
 * any number of devices and threads may borrow them.
 */
#ifndef FRAG_DEVICE_COST_H
#define FRAG_DEVICE_COST_H

#include <frag/device.h>

/* item, name in a profile file, meaning of the bytes in its rows */
#define FRAG_COST_PART_LIST(X) \
	X(MALLOC_HIT, "cudaMalloc.hit", "request that fits a page already open") \
	X(MALLOC_PAGE, "cudaMalloc.page", "small request that opens a page") \
	X(MALLOC_REFUSED, "cudaMalloc.refused", "request that is refused") \
	X(FREE_HIT, "cudaFree.hit", "small piece, its page stays open") \
	X(FREE_PAGE, "cudaFree.page", "last piece of a page") \
	X(CREATE_REFUSED, "cuMemCreate.refused", "request that is refused") \
	X(RELEASE_MAPPED, "cuMemRelease.mapped", "handle that is still mapped") \
	X(SET_ACCESS_NEXT, "cuMemSetAccess.next", "each handle after the first of a call") \
	X(UNMAP_NEXT, "cuMemUnmap.next", "each handle after the first of a call") \
	X(ASYNC_NEW, "cudaMallocAsync.new", "new physical bytes, on top of the call") \
	X(ASYNC_REMAP, "cudaMallocAsync.remap", \
	  "bytes moved to new addresses, on top of the call") \
	X(ASYNC_RELEASE, "cudaMemPool.release", "bytes returned by a sync, trim or destroy") \
	X(PAUSE, "pause", "ns without a driver call, before a cudaMalloc or cudaFree (no bytes)") \
	X(CLEAR, "memory.clear", "returned bytes, until they can be used again") \
	X(MANAGED_ZERO, "managed.zero", "bytes populated for the first time") \
	X(MANAGED_IN, "managed.in", "bytes moved from the host to the card") \
	X(MANAGED_OUT, "managed.out", "bytes moved from the card to the host") \
	X(MANAGED_TOUCH, "managed.touch", "bytes that fault in at a touch by a kernel (0: none)") \
	X(MANAGED_FAULT, "managed.fault", "bytes of a block zeroed by faults, on top of zeroing") \
	X(MANAGED_FAULT_IN, "managed.fault-in", "bytes moved in by faults, on top of moving") \
	X(HOST_PAIR, "host.pair", \
	  "cudaMalloc and cudaFree of 4 MiB in a row on the profile's host; not a price")

enum frag_cost_item {
	FRAG_COST_LAST_CALL_ = FRAG_CALL_COUNT - 1,
#define FRAG_X_(name, text, help) FRAG_COST_##name,
	FRAG_COST_PART_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_COST_COUNT
};

/* from here on, cudaMalloc and cudaFree scale differently */
#define FRAG_COST_BIG (512 * FRAG_MIB)

/* Most points of one curve; a profile measured on every power of two has 40. */
#define FRAG_COST_POINTS_MAX 64

/* slope: ns per byte from this point to the next, or beyond the last point. */
struct frag_cost_point {
	uint64_t bytes;
	double ns, slope;
};

struct frag_cost_curve {
	uint32_t count;
	const struct frag_cost_point *points; /* bytes strictly ascend */
};

struct frag_cost {
	struct frag_cost_curve curves[FRAG_COST_COUNT];
};

/* Name of an item as a profile file spells it. */
const char *frag_cost_name(unsigned item);

/* Times as long as an item takes on a host `ratio` times as slow (frag_cost_host_ratio). */
double frag_cost_host_times(unsigned item, uint64_t bytes, double ratio);

/* Beyond the first point: see frag_cost_ns. */
uint64_t frag_cost_ns_slow(const struct frag_cost_curve *curve, uint64_t bytes);

/*
 * Modelled ns of an item at a size: constant up to the first point, straight lines between points
 * (a cost per call plus a cost per byte), the last line continued beyond the last point, never
 * negative. An item without points costs nothing. O(points), and O(1) for one-point curves.
 */
static inline uint64_t frag_cost_ns(const struct frag_cost *cost, unsigned item, uint64_t bytes)
{
	const struct frag_cost_curve *curve = &cost->curves[item];

	if (!curve->count)
		return 0;
	if (bytes <= curve->points[0].bytes)
		return (uint64_t)curve->points[0].ns;
	return frag_cost_ns_slow(curve, bytes);
}

#endif
