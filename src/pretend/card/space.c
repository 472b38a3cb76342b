/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space of the pretended cards, and their live ranges.
 *
 * Each card is a simulated device, which decides where memory lies and when it is full. Its
 * addresses are shifted into two zones of this process's address space, so that they can be read
 * and written:
 *
 *	BASE + ordinal * SHARE		segments, SHARE / 3
 *	… + SHARE / 3			reservations, 2 SHARE / 3
 *
 * Only written pages take host memory; freeing a segment drops them.
 *
 * Invariant: ranges[] holds the live segments and reservations, ascending, disjoint.
 */
#include "card.h"
#include "protocol_list.inc"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <frag/device.h>

#include "lib/bisect.h"
#include "lib/grow.h"

#define BASE 0x100000000000ull /* 16 TiB: on Linux, only the program itself lies below */
/* Edges of the simulated zones: segments lie below the first, reservations above the second. */
#define SIM_TOP 0x7f8000000000ull
#define SIM_LOW 0x300000000ull

pthread_mutex_t frag_pretend_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct frag_device *sims[PRETEND_CARDS_MAX];
static struct pretend_range *ranges;
static size_t ranges_count, ranges_room;

/* ---- address space ---------------------------------------------------------------- */

static uint64_t share_bytes(void)
{
	return PRETEND_SPACE_BYTES / (uint64_t)frag_pretend_card()->count / 3 / FRAG_GIB *
	       FRAG_GIB * 3;
}

static uint64_t zone_base(int ordinal, enum pretend_zone zone)
{
	uint64_t share = share_bytes();

	return BASE + (uint64_t)ordinal * share + (zone == PRETEND_RESERVATIONS ? share / 3 : 0);
}

/* Segments in the zone of reservations lie at its low end, below all others, as on a card. */
void *frag_pretend_out(int ordinal, enum pretend_zone zone, frag_addr_t addr)
{
	uint64_t base = zone_base(ordinal, zone);

	if (zone == PRETEND_RESERVATIONS || addr < SIM_TOP - share_bytes() / 3)
		return (void *)(uintptr_t)(addr - SIM_LOW + base);
	return (void *)(uintptr_t)(addr - SIM_TOP + base + share_bytes() / 3);
}

frag_addr_t frag_pretend_in(int ordinal, enum pretend_zone zone, const void *p)
{
	uint64_t at = (uint64_t)(uintptr_t)p - zone_base(ordinal, zone);

	if (zone == PRETEND_RESERVATIONS || at < share_bytes() / 6)
		return at + SIM_LOW;
	return at + SIM_TOP - share_bytes() / 3;
}

uint64_t frag_pretend_space_at(const void *p)
{
	return (uint64_t)(uintptr_t)p - BASE;
}

int frag_pretend_owner(const void *p)
{
	uint64_t at = frag_pretend_space_at(p);

	return at < PRETEND_SPACE_BYTES ? (int)(at / share_bytes()) : -1;
}

struct frag_device *frag_pretend_places(int ordinal)
{
	const struct pretend_card *c = frag_pretend_card();
	const struct frag_sim_config cfg = { .name = c->name,
					     .total_bytes = c->total_bytes,
					     .context_bytes = c->context_bytes,
					     .work_lag_ns = 1,
					     .local_bytes = (uint64_t)c->sms *
							    (uint64_t)c->threads_per_sm *
							    PRETEND_CONTEXT_THREAD_BYTES,
					     .host = frag_pretend_host_look,
					     .host_ctx = frag_pretend_host_space(ordinal) };
	void *at = (void *)(uintptr_t)zone_base(ordinal, PRETEND_SEGMENTS);
	void *got;

	if (sims[ordinal])
		return sims[ordinal];
	got = mmap(at, share_bytes(), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (got == MAP_FAILED)
		return NULL;
	/* else each small copy takes 2 MiB of host memory */
	madvise(got, share_bytes(), c->in_full ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (got != at || frag_sim_open(&cfg, &sims[ordinal], NULL)) {
		munmap(got, share_bytes());
		return NULL;
	}
	frag_pretend_host_begin(cfg.host_ctx, sims[ordinal]);
	frag_sim_share(sims[ordinal], frag_pretend_others, (void *)(intptr_t)ordinal);
	return sims[ordinal];
}

/* Without it, ends the process: the program would take an error code for a full card. */
struct frag_device *frag_pretend_sim(int ordinal)
{
	struct frag_device *sim = frag_pretend_places(ordinal);

	if (sim)
		return sim;
	dprintf(STDERR_FILENO,
		"cufrag: cannot reserve %llu TiB of addresses for the pretended card: %s (it needs "
		"ulimit -v and -d unlimited, and vm.overcommit_memory other than 2)\n",
		(unsigned long long)(share_bytes() >> 40), strerror(errno));
	_exit(4);
}

void frag_pretend_hold(uint64_t bytes)
{
	PRETEND_LOCKED;
	struct frag_device *sim = frag_pretend_places(frag_pretend_device());

	if (sim)
		frag_sim_hold(sim, bytes);
}

/* ---- live ranges ------------------------------------------------------------------- */

/* The first range that ends above addr. */
static size_t range_after(uint64_t addr)
{
	size_t at;

	FRAG_BISECT(at, 0, ranges_count, ranges[at].base + ranges[at].bytes <= addr);
	return at;
}

bool frag_pretend_range_put(const void *base, uint64_t bytes, int device)
{
	uint64_t addr = (uint64_t)(uintptr_t)base;
	size_t at = range_after(addr);

	if (FRAG_GROW(ranges, ranges_count, ranges_room, "live ranges", NULL))
		return false;
	memmove(&ranges[at + 1], &ranges[at], (ranges_count - at) * sizeof(*ranges));
	ranges[at] = (struct pretend_range){ addr, bytes, device, false, NULL };
	ranges_count++;
	return true;
}

bool frag_pretend_range_take(const void *base, uint64_t *bytes, int *device)
{
	size_t at = range_after((uint64_t)(uintptr_t)base);

	if (at == ranges_count || ranges[at].base != (uint64_t)(uintptr_t)base)
		return false;
	*bytes = ranges[at].bytes;
	*device = ranges[at].device;
	ranges_count--;
	memmove(&ranges[at], &ranges[at + 1], (ranges_count - at) * sizeof(*ranges));
	return true;
}

struct pretend_range *frag_pretend_range_of(const void *p)
{
	uint64_t addr = (uint64_t)(uintptr_t)p;
	size_t at = range_after(addr);

	return at < ranges_count && ranges[at].base <= addr ? &ranges[at] : NULL;
}

bool frag_pretend_range(const void *p, struct pretend_range *out)
{
	PRETEND_LOCKED;
	const struct pretend_range *r = frag_pretend_range_of(p);

	if (r)
		*out = *r;
	return r != NULL;
}

void frag_pretend_forget(void *p, uint64_t bytes)
{
	uint64_t low = frag_round_up((uint64_t)(uintptr_t)p, 4096);
	uint64_t high = frag_round_down((uint64_t)(uintptr_t)p + bytes, 4096);

	if (high <= low)
		return;
	if (frag_pretend_shared((void *)(uintptr_t)low, high - low))
		frag_pretend_unshare((void *)(uintptr_t)low, high - low);
	else
		madvise((void *)(uintptr_t)low, high - low, MADV_DONTNEED);
}

void frag_pretend_clear(void *p, uint64_t bytes)
{
	uint64_t at = (uint64_t)(uintptr_t)p, end = at + bytes;
	uint64_t low = FRAG_MIN(frag_round_up(at, 4096), end);
	uint64_t high = FRAG_MAX(frag_round_down(end, 4096), low);

	if (frag_pretend_shared(p, bytes)) {
		memset(p, 0, bytes);
		return;
	}
	memset(p, 0, low - at);
	frag_pretend_forget((void *)(uintptr_t)low, high - low);
	memset((void *)(uintptr_t)high, 0, end - high);
}

/* A process that took memory of a card leaves PID.begun in the folder of recordings; whoever writes
 * its recording removes it, so cufrag can report lost ones. pre: locked. */
void frag_pretend_mark_begun(void)
{
	static int marked;
	const char *folder = getenv(CUFRAG_RECORD);
	char path[4096];
	int fd, number = 0;

	if (marked == getpid() || !folder)
		return;
	marked = getpid();
	/* SIGTERM where its parent's death would kill it (SGLang): SIGKILL loses the recording */
	if (!prctl(PR_GET_PDEATHSIG, &number) && number == SIGKILL)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	snprintf(path, sizeof(path), "%s/%d.begun", folder, marked);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}
