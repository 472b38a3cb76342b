/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process, by cudaIpc. Exported memory moves into a file (lent.h), at its offset
 * from the first address of the cards; an importer maps the same pages at new addresses, which
 * takes no memory of its card.
 */
#include "lent.h"

#include "nogpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
		file = lent_file(NOGPU_SPACE_BYTES);
	return file;
}

/* pre: locked. */
static bool share(uint64_t low, uint64_t high)
{
	void *p = (void *)(uintptr_t)low;

	return frag_nogpu_lend(p, high - low, own_file(), frag_nogpu_space_at(p));
}

NOGPU_ENTRY(int, cudaIpcGetMemHandle, (union handle * out, void *p))
{
	struct nogpu_range r;

	memset(out, 0, sizeof(*out));
	if (!frag_nogpu_range(p, &r) || r.device < 0)
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	out->bytes = r.bytes;
	out->offset = frag_nogpu_space_at((void *)(uintptr_t)r.base);
	out->process = getpid();
	NOGPU_LOCKED;
	out->file = share(frag_round_down(r.base, LENT_PAGE),
			  frag_round_up(r.base + r.bytes, LENT_PAGE))
			    ? own_file()
			    : -1;
	return NOGPU_OK;
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

NOGPU_ENTRY(int, cudaIpcOpenMemHandle, (void **out, union handle h, unsigned flags))
{
	uint64_t inside = h.offset % LENT_PAGE;
	uint64_t bytes = frag_round_up(inside + h.bytes, FRAG_PAGE);

	if (!h.bytes || frag_nogpu_cuMemAddressReserve(out, bytes, 0, 0, 0))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	map_foreign(*out, &h, frag_round_up(inside + h.bytes, LENT_PAGE));
	*out = (char *)*out + inside;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaIpcCloseMemHandle, (void *p))
{
	struct nogpu_range r;

	if (!frag_nogpu_range(p, &r))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	p = (void *)(uintptr_t)r.base;
	frag_nogpu_forget(p, r.bytes);
	return frag_nogpu_cuMemAddressFree(p, r.bytes);
}
/* An event of another process is always complete: work takes no time. */
NOGPU_ANSWER(cudaIpcGetEventHandle, (union handle * out, void *event), memset(out, 0, sizeof(*out)))
NOGPU_VALUE(int, cudaIpcOpenEventHandle, (void **out, union handle h),
	    frag_nogpu_cudaEventCreateWithFlags(out, 0))
