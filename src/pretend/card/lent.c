/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a card that several processes share, by cudaIpc and by exported handles (card_vmm.c).
 * Its pages come from an unnamed file that each of them maps:
 *
 *	fd = lent_file(room)					frag_pretend_lend(p, bytes, fd, offset)
 *	... another process gets the file ...
 *	lent_take(to, bytes, fd, offset)			`to` and p share their pages
 *
 * A file has its pages, one byte per GRAIN bytes of them with the origin of the values (enum Origin
 * of values/values.h), then a struct tail.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/grow.h"
#include "card.h"

#define GRAIN 512u /* alignment of tensors */

struct tail {
	uint64_t room;
	long process;
};

/* Ranges whose pages come from a file, of this process or another. They may overlap. */
struct part {
	uint64_t low, high;
	long process;
	unsigned char *origins; /* from low on; NULL: unknown */
	void *map;		/* mapping that contains them */
	uint64_t map_bytes;
};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct part *parts;
static size_t room_of_parts;
static _Atomic size_t parts_count;

/* ---- parts -------------------------------------------------------------------------------- */

/* The range mapped last there. pre: locked. */
static const struct part *part_at(uint64_t low, uint64_t high)
{
	for (size_t i = parts_count; i-- > 0;)
		if (parts[i].low < high && low < parts[i].high)
			return &parts[i];
	return NULL;
}

const _Atomic size_t *frag_pretend_lent(void)
{
	return &parts_count;
}

long lent_owner(const void *p)
{
	const struct part *found;

	if (!parts_count)
		return 0;
	FRAG_LOCKED(&mutex);
	found = part_at((uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + 1);
	return found ? found->process : 0;
}

bool frag_pretend_foreign(const void *p)
{
	long owner = lent_owner(p);

	return owner && owner != getpid();
}

bool frag_pretend_shared(const void *p, uint64_t bytes)
{
	if (!parts_count)
		return false;
	FRAG_LOCKED(&mutex);
	return part_at((uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + bytes) != NULL;
}

static void map_origins(struct part *p, int fd, uint64_t offset, uint64_t room)
{
	const uint64_t first = room + offset / GRAIN, from = frag_round_down(first, LENT_PAGE);
	const uint64_t end = room + frag_round_up(offset + (p->high - p->low), GRAIN) / GRAIN;
	void *map = mmap(NULL, end - from, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)from);

	if (map == MAP_FAILED)
		return;
	p->map = map;
	p->map_bytes = end - from;
	p->origins = (unsigned char *)map + (first - from);
}

static bool note(uint64_t low, uint64_t bytes, int fd, uint64_t offset, const struct tail *t)
{
	struct part p = { .low = low, .high = low + bytes, .process = t->process };

	FRAG_LOCKED(&mutex);
	for (size_t i = 0; i < parts_count; i++)
		if (parts[i].low <= p.low && p.high <= parts[i].high)
			return true;
	if (FRAG_GROW(parts, parts_count, room_of_parts, "shared memory", NULL))
		return false;
	map_origins(&p, fd, offset, t->room);
	parts[parts_count++] = p;
	return true;
}

/* Replaces the mapping at `at`. */
static bool map_over(void *at, uint64_t bytes, int flags, int fd, uint64_t offset)
{
	int how = flags | MAP_NORESERVE | MAP_FIXED;
	/* cppcheck-suppress invalidFunctionArg ; -1 is what anonymous memory takes */
	const void *got = mmap(at, bytes, PROT_READ | PROT_WRITE, how, fd, (off_t)offset);

	/* cppcheck-suppress memleak ; it is mapped in place */
	return got == at;
}

static void drop(size_t i)
{
	if (parts[i].map)
		munmap(parts[i].map, parts[i].map_bytes);
	parts[i] = parts[--parts_count];
}

/* A range that reaches beyond stays: its first or last page may hold memory of a neighbour. */
void frag_pretend_unshare(void *p, uint64_t bytes)
{
	uint64_t low = (uint64_t)(uintptr_t)p, high = low + bytes;

	FRAG_LOCKED(&mutex);
	for (size_t i = parts_count; i-- > 0;) {
		if (parts[i].high <= low || high <= parts[i].low)
			continue;
		if (parts[i].process == getpid())
			madvise(p, bytes, MADV_REMOVE);
		if (low <= parts[i].low && parts[i].high <= high)
			drop(i);
	}
	if (map_over(p, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
		madvise(p, bytes, MADV_NOHUGEPAGE);
}

/* ---- origins ------------------------------------------------------------------------------- */

/* Origins of [p, p + bytes), as far as one range has them; *count (0 before): how many. NULL:
 * unknown. */
static unsigned char *origins_of(const struct part *part, uint64_t low, uint64_t bytes,
				 size_t *count)
{
	const uint64_t end = FRAG_MIN(low + bytes, part->high);

	if (!part->origins || low < part->low)
		return NULL;
	if (!bytes)
		return part->origins;
	*count = (frag_round_up(end - part->low, GRAIN) - frag_round_down(low - part->low, GRAIN)) /
		 GRAIN;
	return part->origins + (low - part->low) / GRAIN;
}

bool frag_pretend_lent_origin(const void *p, uint64_t bytes, uint32_t *origin)
{
	const uint64_t low = (uint64_t)(uintptr_t)p;
	const struct part *part;
	const unsigned char *o;
	size_t count = 0;

	if (!parts_count)
		return false;
	FRAG_LOCKED(&mutex);
	part = part_at(low, low + FRAG_MAX(bytes, 1u));
	if (!part)
		return false;
	o = origins_of(part, low, bytes, &count);
	*origin = o ? PRETEND_COMPUTED : PRETEND_UNKNOWN;
	for (size_t i = 0; i < count; i++)
		*origin = FRAG_MIN(*origin, o[i]);
	return true;
}

void frag_pretend_lent_origin_set(const void *p, uint64_t bytes, uint32_t origin, bool lower)
{
	const uint64_t low = (uint64_t)(uintptr_t)p;
	const struct part *part;
	unsigned char *o;
	size_t count = 0;

	if (!parts_count)
		return;
	FRAG_LOCKED(&mutex);
	part = part_at(low, low + bytes);
	o = part ? origins_of(part, low, bytes, &count) : NULL;
	for (size_t i = 0; i < count; i++)
		o[i] = lower ? FRAG_MIN(o[i], (unsigned char)origin) : (unsigned char)origin;
}

/* ---- files --------------------------------------------------------------------------------- */

static uint64_t tail_at(uint64_t room)
{
	return room + frag_round_up(room, GRAIN) / GRAIN;
}

/* Beyond the limit on file sizes, a signal would end the program. */
int lent_file(uint64_t room)
{
	const struct tail t = { room, getpid() };
	struct rlimit most;
	int fd;

	if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur != RLIM_INFINITY)
		return -1;
	fd = memfd_create("cufrag", MFD_CLOEXEC);
	if (fd >= 0 && pwrite(fd, &t, sizeof(t), (off_t)tail_at(room)) == (ssize_t)sizeof(t))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool read_tail(int fd, struct tail *t)
{
	off_t end = lseek(fd, 0, SEEK_END);

	return end >= (off_t)sizeof(*t) &&
	       pread(fd, t, sizeof(*t), end - (off_t)sizeof(*t)) == (ssize_t)sizeof(*t) &&
	       t->room < (uint64_t)end && tail_at(t->room) + sizeof(*t) == (uint64_t)end;
}

/* Writes the pages that the host has. */
static bool store(uint64_t low, uint64_t high, int fd, uint64_t offset)
{
	unsigned char there[1024];

	for (uint64_t at = low; at < high; at += sizeof(there) * LENT_PAGE) {
		uint64_t pages = FRAG_MIN((high - at) / LENT_PAGE, sizeof(there));

		if (mincore((void *)(uintptr_t)at, pages * LENT_PAGE, there))
			return false;
		for (uint64_t i = 0; i < pages; i++) {
			const uint64_t page = at + i * LENT_PAGE;
			const off_t to = (off_t)(offset + (page - low));

			if ((there[i] & 1) && pwrite(fd, (const char *)(uintptr_t)page, LENT_PAGE,
						     to) != (ssize_t)LENT_PAGE)
				return false;
		}
	}
	return true;
}

bool lent_give(void *p, uint64_t bytes, int fd, uint64_t offset)
{
	const uint64_t low = (uint64_t)(uintptr_t)p;
	struct tail t;

	return fd >= 0 && read_tail(fd, &t) && store(low, low + bytes, fd, offset) &&
	       note(low, bytes, fd, offset, &t) && map_over(p, bytes, MAP_SHARED, fd, offset);
}

void lent_take(void *to, uint64_t bytes, int fd, uint64_t offset)
{
	struct tail t;

	if (fd >= 0 && read_tail(fd, &t) && offset + bytes <= t.room &&
	    note((uint64_t)(uintptr_t)to, bytes, fd, offset, &t) &&
	    !map_over(to, bytes, MAP_SHARED, fd, offset))
		frag_pretend_unshare(to, bytes); /* zeros, and private again */
}
