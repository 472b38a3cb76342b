/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the pretended cards: cudaMalloc and its kind, managed memory, host memory. */
#include "nogpu.h"

#include <sys/mman.h>

#include <frag/device.h>

/* ---- segments ---------------------------------------------------------------------- */

/* What cudaMalloc costs the host while work is in flight: median of 1,600 segments in jobs on two
 * H200 (results/nogpu/durations.md). */
#define SEGMENT_NS 150000u
#define SEGMENT_MIB_NS 450u

/* pre: locked. */
static int take_segment(void **out, uint64_t bytes)
{
	int device = frag_nogpu_device();
	struct frag_device *sim = frag_nogpu_sim(device);
	frag_addr_t addr;

	frag_nogpu_mark_begun();
	if (frag_dev_alloc(sim, bytes, &addr, NULL))
		return NOGPU_OUT_OF_MEMORY;
	frag_nogpu_host_takes(SEGMENT_NS + SEGMENT_MIB_NS * (bytes / FRAG_MIB));
	*out = frag_nogpu_out(device, NOGPU_SEGMENTS, addr);
	if (frag_nogpu_owner(*out) == device && frag_nogpu_range_put(*out, bytes, device))
		return NOGPU_OK;
	frag_dev_free(sim, addr, bytes, NULL);
	return NOGPU_OUT_OF_MEMORY;
}

/* for_nothing: the result for a request of 0 bytes. */
static int allocate(void **out, uint64_t bytes, int for_nothing)
{
	NOGPU_LOCKED;

	*out = NULL;
	return bytes ? take_segment(out, bytes) : for_nothing;
}

NOGPU_VALUE(int, cudaMalloc, (void **out, size_t bytes),
	    frag_nogpu_error(allocate(out, bytes, NOGPU_OK)))
/* The driver's calls leave the runtime's last error alone. */
NOGPU_VALUE(int, cuMemAlloc_v2, (void **out, size_t bytes),
	    allocate(out, bytes, NOGPU_INVALID_VALUE))

/* Kernels do not run, so accesses to managed memory are unknown: all of it is on the card from the
 * start, as far as there is room, and moves to the host when other memory needs the room. */
static int take_managed(void **out, uint64_t bytes)
{
	NOGPU_LOCKED;
	int device = frag_nogpu_device();
	struct frag_device *sim;
	frag_addr_t addr;
	void *p;

	*out = NULL;
	if (!bytes)
		return NOGPU_INVALID_VALUE;
	sim = frag_nogpu_sim(device);
	frag_nogpu_mark_begun();
	if (frag_dev_managed_alloc(sim, bytes, &addr, NULL))
		return NOGPU_OUT_OF_MEMORY;
	p = frag_nogpu_out(device, NOGPU_SEGMENTS, addr);
	if (frag_nogpu_owner(p) != device || !frag_nogpu_range_put(p, bytes, device)) {
		frag_dev_managed_free(sim, addr, bytes, NULL);
		return NOGPU_OUT_OF_MEMORY;
	}
	frag_nogpu_range_of(p)->managed = true;
	(void)frag_dev_managed_touch(sim, addr, bytes, true, NULL);
	*out = p;
	return NOGPU_OK;
}

NOGPU_ENTRY(int, cudaFree, (void *p))
{
	NOGPU_LOCKED;
	const struct nogpu_range *r = frag_nogpu_range_of(p);
	bool managed = r && r->managed;
	struct frag_device *sim;
	frag_addr_t addr;
	uint64_t bytes;
	int device, rc;

	if (!p || frag_nogpu_pool_give(p, NULL))
		return NOGPU_OK;
	if (!frag_nogpu_range_take(p, &bytes, &device))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	addr = frag_nogpu_in(device, NOGPU_SEGMENTS, p);
	sim = frag_nogpu_sim(device);
	rc = managed ? frag_dev_managed_free(sim, addr, bytes, NULL)
		     : frag_dev_free(sim, addr, bytes, NULL);
	frag_nogpu_forget(p, bytes);
	return frag_nogpu_error(rc ? NOGPU_INVALID_VALUE : NOGPU_OK);
}
NOGPU_PAIR(cudaMallocManaged, cuMemAllocManaged, (void **out, size_t bytes, unsigned flags),
	   take_managed(out, bytes))

NOGPU_ENTRY(int, cudaMemGetInfo, (size_t * free_bytes, size_t *total_bytes))
{
	NOGPU_LOCKED;
	uint64_t left = 0, total = frag_nogpu_card()->total_bytes;
	struct frag_device *sim = frag_nogpu_sim(frag_nogpu_device());

	frag_dev_mem_info(sim, &left, &total, NULL);
	*free_bytes = left;
	*total_bytes = total;
	return NOGPU_OK;
}

/* ---- host memory -------------------------------------------------------------------- */

NOGPU_ENTRY(int, cudaHostAlloc, (void **out, size_t bytes, unsigned flags))
{
	NOGPU_LOCKED;
	size_t all = FRAG_MAX(bytes, 1u);
	void *p = mmap(NULL, all, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*out = NULL;
	if (p != MAP_FAILED && frag_nogpu_range_put(p, all, -1))
		*out = p;
	else if (p != MAP_FAILED)
		munmap(p, all);
	return *out ? NOGPU_OK : frag_nogpu_error(NOGPU_OUT_OF_MEMORY);
}
NOGPU_ENTRY(int, cudaFreeHost, (void *p))
{
	NOGPU_LOCKED;
	uint64_t bytes;
	int device;

	if (!p)
		return NOGPU_OK;
	if (!frag_nogpu_range_take(p, &bytes, &device))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	munmap(p, bytes);
	return NOGPU_OK;
}

/* ---- pointer attributes -------------------------------------------------------------- */

struct pointer_attributes {
	int type, device; /* 0 unregistered, 1 host, 2 device, 3 managed */
	void *device_pointer, *host_pointer;
};

NOGPU_ENTRY(int, cudaPointerGetAttributes, (struct pointer_attributes * out, const void *p))
{
	NOGPU_LOCKED;
	const struct nogpu_range *r = frag_nogpu_range_of(p);

	out->type = !r ? 0 : r->device < 0 ? 1 : r->managed ? 3 : 2;
	out->device = !r ? -2 : FRAG_MAX(r->device, 0);
	out->device_pointer = r ? (void *)(uintptr_t)p : NULL;
	out->host_pointer = r && r->device >= 0 && !r->managed ? NULL : (void *)(uintptr_t)p;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuMemGetAddressRange_v2, (uint64_t * out_base, size_t *out_bytes, const void *p))
{
	struct nogpu_range r;

	if (!frag_nogpu_range(p, &r))
		return NOGPU_INVALID_VALUE;
	if (out_base)
		*out_base = r.base;
	if (out_bytes)
		*out_bytes = r.bytes;
	return NOGPU_OK;
}
