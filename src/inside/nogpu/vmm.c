/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: reservations, physical handles, mappings, as PyTorch's
 * expandable segments use them. A handle says its card in its top bits; the simulated device
 * keeps the rest.
 */
#include "nogpu.h"

#include <fcntl.h>
#include <unistd.h>

#include <frag/device.h>

#define DEVICE_SHIFT 56
#define HANDLE_MASK ((1ull << DEVICE_SHIFT) - 1)
/* Memory of another process: mapping it takes an address range and nothing of this card (ipc.c does it so, too). */
#define FOREIGN HANDLE_MASK
static unsigned foreign_maps;

/* CUmemAllocationProp: type, handle types, location {type, id} */
struct allocation_prop {
	int type, handle_types, location_type, location_id;
};

static int device_of(uint64_t handle)
{
	return (int)(handle >> DEVICE_SHIFT) % NOGPU_CARDS_MAX;
}

static int answer(int rc)
{
	return rc == FRAG_OOM ? NOGPU_OUT_OF_MEMORY : rc ? NOGPU_INVALID_VALUE : NOGPU_OK;
}

NOGPU_ENTRY(int, cuMemAddressReserve,
	    (void **out, size_t bytes, size_t align, uint64_t hint, uint64_t flags))
{
	NOGPU_LOCKED;
	int device = frag_nogpu_device();
	struct frag_device *sim = frag_nogpu_sim(device);
	frag_addr_t addr;
	void *p;

	*out = NULL;
	if (!sim || frag_dev_reserve(sim, bytes, 0, &addr, NULL))
		return NOGPU_OUT_OF_MEMORY;
	p = frag_nogpu_out(device, NOGPU_RESERVATIONS, addr);
	if (frag_nogpu_owner((char *)p + bytes) == device &&
	    frag_nogpu_range_put(p, bytes, device)) {
		*out = p;
		return NOGPU_OK;
	}
	frag_dev_unreserve(sim, addr, bytes, NULL);
	return NOGPU_OUT_OF_MEMORY;
}
NOGPU_ENTRY(int, cuMemAddressFree, (void *p, size_t bytes))
{
	NOGPU_LOCKED;
	uint64_t all;
	int device;

	if (!frag_nogpu_range_take(p, &all, &device))
		return NOGPU_INVALID_VALUE;
	return answer(frag_dev_unreserve(
		frag_nogpu_sim(device), frag_nogpu_in(device, NOGPU_RESERVATIONS, p), bytes, NULL));
}

NOGPU_ENTRY(int, cuMemCreate,
	    (uint64_t * out, size_t bytes, const struct allocation_prop *prop, uint64_t flags))
{
	NOGPU_LOCKED;
	int rc = NOGPU_OUT_OF_MEMORY, device = prop->location_id;
	struct frag_device *sim;
	uint64_t handle;

	if (device < 0 || device >= frag_nogpu_visible())
		return NOGPU_INVALID_DEVICE;
	sim = frag_nogpu_sim(device);
	frag_nogpu_mark_begun();
	if (sim)
		rc = answer(frag_dev_create(sim, bytes, &handle, NULL));
	if (!rc)
		*out = handle | (uint64_t)device << DEVICE_SHIFT;
	return rc;
}
NOGPU_ENTRY(int, cuMemRelease, (uint64_t handle))
{
	NOGPU_LOCKED;

	if ((handle & HANDLE_MASK) == FOREIGN)
		return NOGPU_OK;
	/* the bytes are for statistics only, which nobody reads here */
	return answer(
		frag_dev_release(frag_nogpu_sim(device_of(handle)), handle & HANDLE_MASK, 0, NULL));
}
NOGPU_ENTRY(int, cuMemMap, (void *p, size_t bytes, size_t offset, uint64_t handle, uint64_t flags))
{
	NOGPU_LOCKED;
	int device = device_of(handle);

	if ((handle & HANDLE_MASK) != FOREIGN)
		return answer(frag_dev_map(frag_nogpu_sim(device),
					   frag_nogpu_in(device, NOGPU_RESERVATIONS, p), bytes,
					   handle & HANDLE_MASK, NULL));
	foreign_maps++;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuMemUnmap, (void *p, size_t bytes))
{
	NOGPU_LOCKED;
	int rc, device = frag_nogpu_owner(p);

	if (device < 0)
		return NOGPU_INVALID_VALUE;
	rc = answer(frag_dev_unmap(frag_nogpu_sim(device),
				   frag_nogpu_in(device, NOGPU_RESERVATIONS, p), bytes, NULL));
	if (rc && foreign_maps) {
		foreign_maps--;
		rc = NOGPU_OK;
	}
	frag_nogpu_forget(p, bytes);
	return rc;
}
/* Of what leaves the process, the other one needs to know nothing: the file is one of no bytes. */
NOGPU_ENTRY(int, cuMemExportToShareableHandle,
	    (int *out, uint64_t handle, int type, uint64_t flags))
{
	*out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return *out < 0 ? NOGPU_INVALID_VALUE : NOGPU_OK;
}
NOGPU_ENTRY(int, cuMemImportFromShareableHandle, (uint64_t * out, void *file, int type))
{
	*out = FOREIGN | (uint64_t)frag_nogpu_device() << DEVICE_SHIFT;
	return NOGPU_OK;
}
