/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process. What leaves a process lies in a file without a name from then on, at its distance from the first
 * address of the cards; whoever opens it maps the same pages, in an address range of its own that takes no memory of the card.
 * So each sees what the other stores. Where the file cannot be had, the range holds zeros.
 */
#include "entries.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/grow.h"

#define PAGE 4096

union handle {
	struct {
		uint64_t bytes, offset;
		int process, file;
	};
	char all[64]; /* as long as CUDA's, which go by value */
};

/* Parts of the address space whose pages come from a file, this process's or another's. They may overlap. */
struct part {
	uint64_t low, high;
	bool foreign;
};
static pthread_mutex_t parts_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct part *parts;
static size_t parts_room;
static _Atomic size_t parts_count;
static int own_file = -1;

/* ---- parts -------------------------------------------------------------------------------- */

static bool note(uint64_t low, uint64_t high, bool foreign)
{
	FRAG_LOCKED(&parts_mutex);

	for (size_t i = 0; i < parts_count; i++)
		if (parts[i].low <= low && high <= parts[i].high)
			return true;
	if (FRAG_GROW(parts, parts_count, parts_room, "shared memory", NULL))
		return false;
	parts[parts_count++] = (struct part){ low, high, foreign };
	return true;
}

static bool meets(uint64_t low, uint64_t high, bool foreign_only)
{
	if (!parts_count)
		return false;
	FRAG_LOCKED(&parts_mutex);
	for (size_t i = 0; i < parts_count; i++)
		if (parts[i].low < high && low < parts[i].high &&
		    (parts[i].foreign || !foreign_only))
			return true;
	return false;
}

bool frag_nogpu_shared(const void *p, uint64_t bytes)
{
	return meets((uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + bytes, false);
}

bool frag_nogpu_foreign(const void *p)
{
	return meets((uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + 1, true);
}

/* In place of what lies there. */
static bool map_over(void *at, uint64_t bytes, int flags, int fd, uint64_t offset)
{
	int how = flags | MAP_NORESERVE | MAP_FIXED;
	/* cppcheck-suppress invalidFunctionArg ; -1 is what anonymous memory takes */
	const void *got = mmap(at, bytes, PROT_READ | PROT_WRITE, how, fd, (off_t)offset);

	/* cppcheck-suppress memleak ; it is where it was asked to be */
	return got == at;
}

/* A part that reaches beyond stays: its first or last page may hold memory of a neighbour. */
void frag_nogpu_unshare(void *p, uint64_t bytes)
{
	uint64_t low = (uint64_t)(uintptr_t)p, high = low + bytes;

	FRAG_LOCKED(&parts_mutex);
	for (size_t i = parts_count; i-- > 0;) {
		if (parts[i].high <= low || high <= parts[i].low)
			continue;
		if (!parts[i].foreign)
			madvise(p, bytes, MADV_REMOVE);
		if (low <= parts[i].low && parts[i].high <= high)
			parts[i] = parts[--parts_count];
	}
	if (map_over(p, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
		madvise(p, bytes, MADV_NOHUGEPAGE);
}

/* ---- handles ------------------------------------------------------------------------------- */

/* A file as long as the address space of the cards, of which only what is written takes memory. A limit on files would end
 * the program. */
static bool open_file(void)
{
	struct rlimit most;

	if (own_file >= 0)
		return true;
	if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur != RLIM_INFINITY)
		return false;
	own_file = memfd_create("cufrag", MFD_CLOEXEC);
	return own_file >= 0 && !ftruncate(own_file, (off_t)NOGPU_SPACE_BYTES);
}

/* What the host has pages for. */
static bool store(uint64_t low, uint64_t high)
{
	unsigned char there[1024];

	for (uint64_t at = low; at < high; at += sizeof(there) * PAGE) {
		uint64_t pages = FRAG_MIN((high - at) / PAGE, sizeof(there));

		if (mincore((void *)(uintptr_t)at, pages * PAGE, there))
			return false;
		for (uint64_t i = 0; i < pages; i++) {
			const char *page = (const char *)(uintptr_t)(at + i * PAGE);

			if ((there[i] & 1) &&
			    pwrite(own_file, page, PAGE, (off_t)frag_nogpu_space_at(page)) != PAGE)
				return false;
		}
	}
	return true;
}

/* pre: locked. */
static bool share(uint64_t low, uint64_t high)
{
	void *p = (void *)(uintptr_t)low;

	return open_file() && store(low, high) && note(low, high, false) &&
	       map_over(p, high - low, MAP_SHARED, own_file, frag_nogpu_space_at(p));
}

NOGPU_ENTRY(int, cudaIpcGetMemHandle, (union handle * out, void *p))
{
	uint64_t base, bytes;
	int device;

	memset(out, 0, sizeof(*out));
	if (!frag_nogpu_range(p, &base, &bytes, &device) || device < 0)
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	out->bytes = bytes;
	out->offset = frag_nogpu_space_at((void *)(uintptr_t)base);
	out->process = getpid();
	NOGPU_LOCKED;
	out->file = share(frag_round_down(base, PAGE), frag_round_up(base + bytes, PAGE)) ? own_file
											  : -1;
	return NOGPU_OK;
}

/* The pages of the other process, or zeros. */
static void map_foreign(char *to, const union handle *h, uint64_t bytes)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h->process, h->file);
	fd = h->file < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (note((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)to + bytes, true) &&
	    !map_over(to, bytes, MAP_SHARED, fd, frag_round_down(h->offset, PAGE)))
		frag_nogpu_unshare(to, bytes); /* zeros, and nobody else's */
	close(fd);
}

NOGPU_ENTRY(int, cudaIpcOpenMemHandle, (void **out, union handle h, unsigned flags))
{
	uint64_t inside = h.offset % PAGE;
	uint64_t bytes = frag_round_up(inside + h.bytes, FRAG_PAGE);

	if (!h.bytes || frag_nogpu_cuMemAddressReserve(out, bytes, 0, 0, 0))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	map_foreign(*out, &h, frag_round_up(inside + h.bytes, PAGE));
	*out = (char *)*out + inside;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaIpcCloseMemHandle, (void *p))
{
	uint64_t base, bytes;
	int device;

	if (!frag_nogpu_range(p, &base, &bytes, &device))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	p = (void *)(uintptr_t)base;
	frag_nogpu_forget(p, bytes);
	return frag_nogpu_cuMemAddressFree(p, bytes);
}
/* Work takes no time: an event of another process has happened. */
NOGPU_ANSWER(cudaIpcGetEventHandle, (union handle * out, void *event), memset(out, 0, sizeof(*out)))
NOGPU_VALUE(int, cudaIpcOpenEventHandle, (void **out, union handle h),
	    frag_nogpu_cudaEventCreateWithFlags(out, 0))
