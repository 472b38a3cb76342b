/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management, as PyTorch's expandable segments use it: reservations, physical
 * handles, mappings; and memory of another process, by cudaIpc. The top bits of a handle are its card; the simulated device keeps the rest.
 */
#include "card.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <frag/device.h>

#include "lib/addr_map.h"

#define DEVICE_SHIFT 56
#define HANDLE_MASK ((1ull << DEVICE_SHIFT) - 1)
/* Memory of another process: mapping it takes addresses but no memory of this card.
 * Low bits: 1 + the descriptor of its file. */
#define FOREIGN (1ull << (DEVICE_SHIFT - 1))
static unsigned foreign_maps;
#define FABRIC 8 /* handle type */
/* A handle of this process that may be exported. */
struct shareable {
	void *at; /* NULL: not mapped */
	uint64_t bytes;
	int fd; /* file with its pages, -1: none */
};
static struct frag_addr_map shareables; /* by handle */

/* CUmemAllocationProp: type, handle types, location {type, id} */
struct allocation_prop {
	int type, handle_types, location_type, location_id;
};

static bool is_foreign(uint64_t handle)
{
	return handle & FOREIGN;
}

static int file_of(uint64_t handle)
{
	return (int)(handle & (FOREIGN - 1)) - 1;
}

static int device_of(uint64_t handle)
{
	return (int)(handle >> DEVICE_SHIFT) % PRETEND_CARDS_MAX;
}

static int answer(int rc)
{
	return rc == FRAG_OOM ? PRETEND_OUT_OF_MEMORY : rc ? PRETEND_INVALID_VALUE : PRETEND_OK;
}

PRETEND_ENTRY(int, cuMemAddressReserve,
	      (void **out, size_t bytes, size_t align, uint64_t hint, uint64_t flags))
{
	PRETEND_LOCKED;
	int device = frag_pretend_device();
	struct frag_device *sim = frag_pretend_sim(device);
	frag_addr_t addr;
	void *p;

	*out = NULL;
	if (frag_dev_reserve(sim, bytes, 0, &addr, NULL))
		return PRETEND_OUT_OF_MEMORY;
	p = frag_pretend_out(device, PRETEND_RESERVATIONS, addr);
	if (frag_pretend_owner((char *)p + bytes) == device &&
	    frag_pretend_range_put(p, bytes, device)) {
		*out = p;
		return PRETEND_OK;
	}
	frag_dev_unreserve(sim, addr, bytes, NULL);
	return PRETEND_OUT_OF_MEMORY;
}
PRETEND_ENTRY(int, cuMemAddressFree, (void *p, size_t bytes))
{
	PRETEND_LOCKED;
	uint64_t all;
	int device;

	if (!frag_pretend_range_take(p, &all, &device))
		return PRETEND_INVALID_VALUE;
	return answer(frag_dev_unreserve(frag_pretend_sim(device),
					 frag_pretend_in(device, PRETEND_RESERVATIONS, p), bytes,
					 NULL));
}

/* If there is no room it cannot be exported later, and the importer sees zeros. pre: locked. */
static void note_shareable(uint64_t handle)
{
	struct shareable *s = frag_host_calloc(1, sizeof(*s));

	if (!s || frag_addr_map_reserve(&shareables)) {
		frag_host_free(s);
		return;
	}
	s->fd = -1;
	frag_addr_map_add(&shareables, handle, (uintptr_t)s);
}

PRETEND_ENTRY(int, cuMemCreate,
	      (uint64_t * out, size_t bytes, const struct allocation_prop *prop, uint64_t flags))
{
	PRETEND_LOCKED;
	int rc, device = prop->location_id;
	uint64_t handle;

	if (device < 0 || device >= frag_pretend_visible())
		return PRETEND_INVALID_DEVICE;
	if (prop->handle_types & FABRIC)
		return PRETEND_NOT_SUPPORTED; /* as without IMEX: programs take files then */
	frag_pretend_mark_begun();
	rc = answer(frag_dev_create(frag_pretend_sim(device), bytes, &handle, NULL));
	if (rc)
		return rc;
	*out = handle | (uint64_t)device << DEVICE_SHIFT;
	if (prop->handle_types)
		note_shareable(*out);
	return PRETEND_OK;
}

/* pre: locked. */
static struct shareable *shareable_of(uint64_t handle)
{
	const struct frag_addr_cell *cell = frag_addr_map_find(&shareables, handle);

	return cell ? (struct shareable *)(uintptr_t)cell->value : NULL;
}

/* pre: locked. */
static void forget_shareable(uint64_t handle)
{
	struct shareable *s = shareable_of(handle);

	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	frag_host_free(s);
	frag_addr_map_remove(&shareables, frag_addr_map_find(&shareables, handle));
}

PRETEND_ENTRY(int, cuMemRelease, (uint64_t handle))
{
	PRETEND_LOCKED;

	if (is_foreign(handle)) {
		close(file_of(handle));
		return PRETEND_OK;
	}
	forget_shareable(handle);
	/* the bytes are only for statistics, unused here */
	return answer(frag_dev_release(frag_pretend_sim(device_of(handle)), handle & HANDLE_MASK, 0,
				       NULL));
}
PRETEND_ENTRY(int, cuMemMap,
	      (void *p, size_t bytes, size_t offset, uint64_t handle, uint64_t flags))
{
	PRETEND_LOCKED;
	struct shareable *s;
	int rc, device = device_of(handle);

	if (is_foreign(handle)) {
		foreign_maps++;
		lent_take(p, bytes, file_of(handle), offset);
		return PRETEND_OK;
	}
	rc = answer(frag_dev_map(frag_pretend_sim(device),
				 frag_pretend_in(device, PRETEND_RESERVATIONS, p), bytes,
				 handle & HANDLE_MASK, NULL));
	s = rc ? NULL : shareable_of(handle);
	if (s) {
		s->at = p;
		s->bytes = bytes;
	}
	return rc;
}
PRETEND_ENTRY(int, cuMemUnmap, (void *p, size_t bytes))
{
	PRETEND_LOCKED;
	int rc, device = frag_pretend_owner(p);

	if (device < 0)
		return PRETEND_INVALID_VALUE;
	rc = answer(frag_dev_unmap(frag_pretend_sim(device),
				   frag_pretend_in(device, PRETEND_RESERVATIONS, p), bytes, NULL));
	if (rc && foreign_maps) {
		foreign_maps--;
		rc = PRETEND_OK;
	}
	frag_pretend_forget(p, bytes);
	return rc;
}

/* The file that backs the memory from now on, or -1. pre: locked. */
static int file_with(struct shareable *s)
{
	int fd;

	if (!s || !s->at || s->fd >= 0)
		return s ? s->fd : -1;
	fd = lent_file(s->bytes);
	if (fd >= 0 && frag_pretend_lend(s->at, s->bytes, fd, 0))
		s->fd = fd;
	else if (fd >= 0)
		close(fd);
	return s->fd;
}

/* Without a file the importer gets an empty one, and sees zeros. */
PRETEND_ENTRY(int, cuMemExportToShareableHandle,
	      (int *out, uint64_t handle, int type, uint64_t flags))
{
	PRETEND_LOCKED;
	int fd = file_with(shareable_of(handle));

	*out = fd < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return *out < 0 ? PRETEND_INVALID_VALUE : PRETEND_OK;
}
PRETEND_ENTRY(int, cuMemImportFromShareableHandle, (uint64_t * out, void *file, int type))
{
	int fd = fcntl((int)(intptr_t)file, F_DUPFD_CLOEXEC, 0);

	*out = FOREIGN | (uint64_t)(fd + 1) | (uint64_t)frag_pretend_device() << DEVICE_SHIFT;
	return fd < 0 ? PRETEND_INVALID_VALUE : PRETEND_OK;
}

/* ---- cudaIpc --------------------------------------------------------------------------------- */

/*
 * Exported memory moves into a file, at its offset from the first address of the cards; an importer
 * maps the same pages at new addresses, which takes no memory of its card.
 */
union handle {
	struct {
		uint64_t bytes, offset;
		int process, file;
	};
	char all[64]; /* CUDA's size, because it is passed by value */
};

/* One sparse file for all, as long as the address space of the cards. pre: locked. */
static int own_file(void)
{
	static int file = -1;

	if (file < 0)
		file = lent_file(PRETEND_SPACE_BYTES);
	return file;
}

PRETEND_ENTRY(int, cudaIpcGetMemHandle, (union handle * out, void *p))
{
	struct pretend_range r;
	uint64_t low;
	void *at;

	memset(out, 0, sizeof(*out));
	if (!frag_pretend_range(p, &r) || r.device < 0)
		return frag_pretend_error(PRETEND_INVALID_VALUE);
	out->bytes = r.bytes;
	out->offset = frag_pretend_space_at((void *)(uintptr_t)r.base);
	out->process = getpid();
	PRETEND_LOCKED;
	low = frag_round_down(r.base, LENT_PAGE);
	at = (void *)(uintptr_t)low;
	out->file = frag_pretend_lend(at, frag_round_up(r.base + r.bytes, LENT_PAGE) - low,
				      own_file(), frag_pretend_space_at(at))
			    ? own_file()
			    : -1;
	return PRETEND_OK;
}

/* Maps the pages of the other process, or zeros. */
static void map_foreign(char *to, const union handle *h, uint64_t bytes)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h->process, h->file);
	fd = h->file < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	lent_take(to, bytes, fd, frag_round_down(h->offset, LENT_PAGE));
	close(fd);
}

PRETEND_ENTRY(int, cudaIpcOpenMemHandle, (void **out, union handle h, unsigned flags))
{
	uint64_t inside = h.offset % LENT_PAGE;
	uint64_t bytes = frag_round_up(inside + h.bytes, FRAG_PAGE);

	if (!h.bytes || frag_pretend_cuMemAddressReserve(out, bytes, 0, 0, 0))
		return frag_pretend_error(PRETEND_INVALID_VALUE);
	map_foreign(*out, &h, frag_round_up(inside + h.bytes, LENT_PAGE));
	*out = (char *)*out + inside;
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cudaIpcCloseMemHandle, (void *p))
{
	struct pretend_range r;

	if (!frag_pretend_range(p, &r))
		return frag_pretend_error(PRETEND_INVALID_VALUE);
	p = (void *)(uintptr_t)r.base;
	frag_pretend_forget(p, r.bytes);
	return frag_pretend_cuMemAddressFree(p, r.bytes);
}
/* An event of another process is always complete: work takes no time. */
PRETEND_ANSWER(cudaIpcGetEventHandle, (union handle * out, void *event),
	       memset(out, 0, sizeof(*out)))
PRETEND_VALUE(int, cudaIpcOpenEventHandle, (void **out, union handle h),
	      frag_pretend_cudaEventCreateWithFlags(out, 0))
