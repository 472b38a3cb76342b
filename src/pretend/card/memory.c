/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the pretended cards: cudaMalloc and its kind, managed memory, host memory. */
#include "card.h"

#include <sys/mman.h>

#include <frag/device.h>

/* ---- segments ---------------------------------------------------------------------- */

/* What cudaMalloc costs the host while work is in flight: median of 1,600 segments in jobs on two
 * H200 (results/pretend/durations.md). */
#define SEGMENT_NS 150000u
#define SEGMENT_MIB_NS 450u

static int release(struct frag_device *sim, frag_addr_t addr, uint64_t bytes, bool managed)
{
	return managed ? frag_dev_managed_free(sim, addr, bytes, NULL)
		       : frag_dev_free(sim, addr, bytes, NULL);
}

/* Kernels do not run, so accesses to managed memory are unknown: all of it is on the card from the
 * start, as far as there is room, and moves to the host when other memory needs the room. */
static int take(void **out, uint64_t bytes, bool managed)
{
	PRETEND_LOCKED;
	int device = frag_pretend_device();
	struct frag_device *sim = frag_pretend_sim(device);
	frag_addr_t addr;
	void *p;

	frag_pretend_mark_begun();
	if (managed ? frag_dev_managed_alloc(sim, bytes, &addr, NULL)
		    : frag_dev_alloc(sim, bytes, &addr, NULL))
		return PRETEND_OUT_OF_MEMORY;
	p = frag_pretend_out(device, PRETEND_SEGMENTS, addr);
	if (frag_pretend_owner(p) != device || !frag_pretend_range_put(p, bytes, device)) {
		release(sim, addr, bytes, managed);
		return PRETEND_OUT_OF_MEMORY;
	}
	frag_pretend_range_of(p)->managed = managed;
	if (managed)
		(void)frag_dev_managed_touch(sim, addr, bytes, true, NULL);
	else
		frag_pretend_host_takes(SEGMENT_NS + SEGMENT_MIB_NS * (bytes / FRAG_MIB));
	*out = p;
	return PRETEND_OK;
}

/* for_nothing: the result for a request of 0 bytes. */
static int allocate(void **out, uint64_t bytes, bool managed, int for_nothing)
{
	*out = NULL;
	return bytes ? take(out, bytes, managed) : for_nothing;
}

PRETEND_VALUE(int, cudaMalloc, (void **out, size_t bytes),
	      frag_pretend_error(allocate(out, bytes, false, PRETEND_OK)))
/* The driver's calls leave the runtime's last error alone. */
PRETEND_VALUE(int, cuMemAlloc_v2, (void **out, size_t bytes),
	      allocate(out, bytes, false, PRETEND_INVALID_VALUE))
PRETEND_VALUE(int, cuMemAllocManaged, (void **out, size_t bytes, unsigned flags),
	      allocate(out, bytes, true, PRETEND_INVALID_VALUE))
PRETEND_RUNTIME(cudaMallocManaged, cuMemAllocManaged)

PRETEND_ENTRY(int, cudaFree, (void *p))
{
	PRETEND_LOCKED;
	const struct pretend_range *r = frag_pretend_range_of(p);
	bool managed = r && r->managed;
	uint64_t bytes;
	int device, rc;

	if (!p || frag_pretend_pool_give(p, NULL))
		return PRETEND_OK;
	if (!frag_pretend_range_take(p, &bytes, &device))
		return frag_pretend_error(PRETEND_INVALID_VALUE);
	rc = release(frag_pretend_sim(device), frag_pretend_in(device, PRETEND_SEGMENTS, p), bytes,
		     managed);
	frag_pretend_forget(p, bytes);
	return frag_pretend_error(rc ? PRETEND_INVALID_VALUE : PRETEND_OK);
}

PRETEND_ENTRY(int, cudaMemGetInfo, (size_t * free_bytes, size_t *total_bytes))
{
	PRETEND_LOCKED;
	uint64_t left = 0, total = frag_pretend_card()->total_bytes;
	struct frag_device *sim = frag_pretend_sim(frag_pretend_device());

	frag_dev_mem_info(sim, &left, &total, NULL);
	*free_bytes = left;
	*total_bytes = total;
	return PRETEND_OK;
}

/* ---- host memory -------------------------------------------------------------------- */

PRETEND_ENTRY(int, cudaHostAlloc, (void **out, size_t bytes, unsigned flags))
{
	PRETEND_LOCKED;
	size_t all = FRAG_MAX(bytes, 1u);
	void *p = mmap(NULL, all, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*out = NULL;
	if (p != MAP_FAILED && frag_pretend_range_put(p, all, -1))
		*out = p;
	else if (p != MAP_FAILED)
		munmap(p, all);
	return *out ? PRETEND_OK : frag_pretend_error(PRETEND_OUT_OF_MEMORY);
}
PRETEND_ENTRY(int, cudaFreeHost, (void *p))
{
	PRETEND_LOCKED;
	uint64_t bytes;
	int device;

	if (!p)
		return PRETEND_OK;
	if (!frag_pretend_range_take(p, &bytes, &device))
		return frag_pretend_error(PRETEND_INVALID_VALUE);
	munmap(p, bytes);
	return PRETEND_OK;
}

/* ---- pointer attributes -------------------------------------------------------------- */

struct pointer_attributes {
	int type, device; /* 0 unregistered, 1 host, 2 device, 3 managed */
	void *device_pointer, *host_pointer;
};

PRETEND_ENTRY(int, cudaPointerGetAttributes, (struct pointer_attributes * out, const void *p))
{
	PRETEND_LOCKED;
	const struct pretend_range *r = frag_pretend_range_of(p);

	out->type = !r ? 0 : r->device < 0 ? 1 : r->managed ? 3 : 2;
	out->device = !r ? -2 : FRAG_MAX(r->device, 0);
	out->device_pointer = r ? (void *)(uintptr_t)p : NULL;
	out->host_pointer = r && r->device >= 0 && !r->managed ? NULL : (void *)(uintptr_t)p;
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cuMemGetAddressRange_v2, (uint64_t * out_base, size_t *out_bytes, const void *p))
{
	struct pretend_range r;

	if (!frag_pretend_range(p, &r))
		return PRETEND_INVALID_VALUE;
	if (out_base)
		*out_base = r.base;
	if (out_bytes)
		*out_bytes = r.bytes;
	return PRETEND_OK;
}
