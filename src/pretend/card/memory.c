/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the pretended cards: cudaMalloc and its kind, copies and fills.
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
#include "nogpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
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

struct range {
	uint64_t base, bytes;
	int device;
	bool managed;
};

pthread_mutex_t frag_nogpu_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct frag_device *sims[NOGPU_CARDS_MAX];
static struct range *ranges;
static size_t ranges_count, ranges_room;

/* ---- address space ---------------------------------------------------------------- */

static uint64_t share_bytes(void)
{
	return NOGPU_SPACE_BYTES / (uint64_t)frag_nogpu_card()->count / 3 / FRAG_GIB * FRAG_GIB * 3;
}

static uint64_t zone_base(int ordinal, enum nogpu_zone zone)
{
	uint64_t share = share_bytes();

	return BASE + (uint64_t)ordinal * share + (zone == NOGPU_RESERVATIONS ? share / 3 : 0);
}

/* Segments in the zone of reservations lie at its low end, below all others, as on a card. */
void *frag_nogpu_out(int ordinal, enum nogpu_zone zone, frag_addr_t addr)
{
	uint64_t base = zone_base(ordinal, zone);

	if (zone == NOGPU_RESERVATIONS || addr < SIM_TOP - share_bytes() / 3)
		return (void *)(uintptr_t)(addr - SIM_LOW + base);
	return (void *)(uintptr_t)(addr - SIM_TOP + base + share_bytes() / 3);
}

frag_addr_t frag_nogpu_in(int ordinal, enum nogpu_zone zone, const void *p)
{
	uint64_t at = (uint64_t)(uintptr_t)p - zone_base(ordinal, zone);

	if (zone == NOGPU_RESERVATIONS || at < share_bytes() / 6)
		return at + SIM_LOW;
	return at + SIM_TOP - share_bytes() / 3;
}

uint64_t frag_nogpu_space_at(const void *p)
{
	return (uint64_t)(uintptr_t)p - BASE;
}

int frag_nogpu_owner(const void *p)
{
	uint64_t at = frag_nogpu_space_at(p);

	return at < NOGPU_SPACE_BYTES ? (int)(at / share_bytes()) : -1;
}

/* Aborts, because the program would take an error code for a full card. */
static void __attribute__((noreturn)) fail_space(void)
{
	dprintf(STDERR_FILENO,
		"cufrag: cannot reserve %llu TiB of addresses for the pretended card: %s (it needs "
		"ulimit -v and -d unlimited, and vm.overcommit_memory other than 2)\n",
		(unsigned long long)(share_bytes() >> 40), strerror(errno));
	_exit(4);
}

/* NULL: no memory, or (unless `must`) no address space. */
static struct frag_device *sim_of(int ordinal, bool must)
{
	const struct nogpu_card *c = frag_nogpu_card();
	const struct frag_sim_config cfg = { .name = c->name,
					     .total_bytes = c->total_bytes,
					     .context_bytes = c->context_bytes,
					     .work_lag_ns = 1,
					     .local_bytes =
						     frag_nogpu_local_bytes(NOGPU_LOCAL_CONTEXT),
					     .host = frag_nogpu_host_look,
					     .host_ctx = (void *)(intptr_t)ordinal };
	void *at = (void *)(uintptr_t)zone_base(ordinal, NOGPU_SEGMENTS);
	void *got;

	if (sims[ordinal])
		return sims[ordinal];
	got = mmap(at, share_bytes(), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (got == MAP_FAILED) {
		if (must)
			fail_space();
		return NULL;
	}
	/* else each small copy takes 2 MiB of host memory */
	madvise(got, share_bytes(), frag_nogpu_in_full() ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (got != at || frag_sim_open(&cfg, &sims[ordinal], NULL)) {
		munmap(got, share_bytes());
		return NULL;
	}
	frag_nogpu_host_look(cfg.host_ctx);
	return sims[ordinal];
}

struct frag_device *frag_nogpu_sim(int ordinal)
{
	return sim_of(ordinal, true);
}

struct frag_device *frag_nogpu_places(int ordinal)
{
	return sim_of(ordinal, false);
}

void frag_nogpu_hold(uint64_t bytes)
{
	NOGPU_LOCKED;
	struct frag_device *sim = frag_nogpu_places(frag_nogpu_device());

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

bool frag_nogpu_range_put(const void *base, uint64_t bytes, int device)
{
	uint64_t addr = (uint64_t)(uintptr_t)base;
	size_t at = range_after(addr);

	if (FRAG_GROW(ranges, ranges_count, ranges_room, "live ranges", NULL))
		return false;
	memmove(&ranges[at + 1], &ranges[at], (ranges_count - at) * sizeof(*ranges));
	ranges[at] = (struct range){ addr, bytes, device, false };
	ranges_count++;
	return true;
}

bool frag_nogpu_range_take(const void *base, uint64_t *bytes, int *device)
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

/* The range that contains p, or NULL. pre: locked. */
static const struct range *range_of(const void *p)
{
	uint64_t addr = (uint64_t)(uintptr_t)p;
	size_t at = range_after(addr);

	return at < ranges_count && ranges[at].base <= addr ? &ranges[at] : NULL;
}

bool frag_nogpu_range(const void *p, uint64_t *base, uint64_t *bytes, int *device)
{
	NOGPU_LOCKED;
	const struct range *r = range_of(p);

	if (!r)
		return false;
	*base = r->base;
	*bytes = r->bytes;
	*device = r->device;
	return true;
}

void frag_nogpu_forget(void *p, uint64_t bytes)
{
	uint64_t low = frag_round_up((uint64_t)(uintptr_t)p, 4096);
	uint64_t high = frag_round_down((uint64_t)(uintptr_t)p + bytes, 4096);

	if (high <= low)
		return;
	if (frag_nogpu_shared((void *)(uintptr_t)low, high - low))
		frag_nogpu_unshare((void *)(uintptr_t)low, high - low);
	else
		madvise((void *)(uintptr_t)low, high - low, MADV_DONTNEED);
}

void frag_nogpu_clear(void *p, uint64_t bytes)
{
	uint64_t at = (uint64_t)(uintptr_t)p, end = at + bytes;
	uint64_t low = FRAG_MIN(frag_round_up(at, 4096), end);
	uint64_t high = FRAG_MAX(frag_round_down(end, 4096), low);

	if (frag_nogpu_shared(p, bytes)) {
		memset(p, 0, bytes);
		return;
	}
	memset(p, 0, low - at);
	frag_nogpu_forget((void *)(uintptr_t)low, high - low);
	memset((void *)(uintptr_t)high, 0, end - high);
}

/* If its parent's death would kill this process (SGLang), asks for SIGTERM: SIGKILL loses the
 * recording. */
static void end_with_parent(void)
{
	int number = 0;

	if (!prctl(PR_GET_PDEATHSIG, &number) && number == SIGKILL)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* A process that took memory of a card leaves PID.begun in the folder of recordings; whoever writes
 * its recording removes it, so cufrag can report lost ones. pre: locked. */
void frag_nogpu_mark_begun(void)
{
	static int marked;
	const char *folder = getenv(CUFRAG_RECORD);
	char path[4096];
	int fd;

	if (marked == getpid() || !folder)
		return;
	marked = getpid();
	end_with_parent();
	snprintf(path, sizeof(path), "%s/%d.begun", folder, marked);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

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
	if (!sim || frag_dev_alloc(sim, bytes, &addr, NULL))
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
	if (!sim || frag_dev_managed_alloc(sim, bytes, &addr, NULL))
		return NOGPU_OUT_OF_MEMORY;
	p = frag_nogpu_out(device, NOGPU_SEGMENTS, addr);
	if (frag_nogpu_owner(p) != device || !frag_nogpu_range_put(p, bytes, device)) {
		frag_dev_managed_free(sim, addr, bytes, NULL);
		return NOGPU_OUT_OF_MEMORY;
	}
	ranges[range_after((uint64_t)(uintptr_t)p)].managed = true;
	(void)frag_dev_managed_touch(sim, addr, bytes, true, NULL);
	*out = p;
	return NOGPU_OK;
}

NOGPU_ENTRY(int, cudaFree, (void *p))
{
	NOGPU_LOCKED;
	const struct range *r = range_of(p);
	bool managed = r && r->managed;
	frag_addr_t addr;
	uint64_t bytes;
	int device, rc;

	if (!p || frag_nogpu_pool_give(p, NULL))
		return NOGPU_OK;
	if (!frag_nogpu_range_take(p, &bytes, &device))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	addr = frag_nogpu_in(device, NOGPU_SEGMENTS, p);
	rc = managed ? frag_dev_managed_free(sims[device], addr, bytes, NULL)
		     : frag_dev_free(sims[device], addr, bytes, NULL);
	frag_nogpu_forget(p, bytes);
	return frag_nogpu_error(rc ? NOGPU_INVALID_VALUE : NOGPU_OK);
}
NOGPU_VALUE(int, cudaMallocManaged, (void **out, size_t bytes, unsigned flags),
	    frag_nogpu_error(take_managed(out, bytes)))
NOGPU_VALUE(int, cuMemAllocManaged, (void **out, size_t bytes, unsigned flags),
	    take_managed(out, bytes))

NOGPU_ENTRY(int, cudaMemGetInfo, (size_t * free_bytes, size_t *total_bytes))
{
	NOGPU_LOCKED;
	uint64_t left = 0, total = frag_nogpu_card()->total_bytes;
	struct frag_device *sim = frag_nogpu_sim(frag_nogpu_device());

	if (sim)
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
	const struct range *r = range_of(p);

	out->type = !r ? 0 : r->device < 0 ? 1 : r->managed ? 3 : 2;
	out->device = !r ? -2 : FRAG_MAX(r->device, 0);
	out->device_pointer = r ? (void *)(uintptr_t)p : NULL;
	out->host_pointer = r && r->device >= 0 && !r->managed ? NULL : (void *)(uintptr_t)p;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuMemGetAddressRange_v2, (uint64_t * out_base, size_t *out_bytes, const void *p))
{
	uint64_t base, bytes;
	int device;

	if (!frag_nogpu_range(p, &base, &bytes, &device))
		return NOGPU_INVALID_VALUE;
	if (out_base)
		*out_base = base;
	if (out_bytes)
		*out_bytes = bytes;
	return NOGPU_OK;
}
