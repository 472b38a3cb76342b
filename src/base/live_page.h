/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process holds of its cards, live, for others to see (cufrag monitor): a page in POSIX shared
 * memory, /cufrag-PID, of the layout below. Who writes never waits: a sequence number is odd while it writes,
 * and who reads takes a copy and tries again. A page that was not written for FRAG_LIVE_STALE_NS is that of a
 * dead process. The layout is documented in docs/record.md; all numbers are 8 bytes, UINT64_MAX = not known.
 *
 * Needs nothing else of cufrag: it goes into the libraries that are put into programs.
 */
#ifndef FRAG_BASE_LIVE_PAGE_H
#define FRAG_BASE_LIVE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define FRAG_LIVE_MAGIC "cufragp1"
#define FRAG_LIVE_DEVICES 32u
#define FRAG_LIVE_STALE_NS 10000000000ull

struct frag_live_device {
	uint64_t device; /* CUDA ordinal of the process */
	uint64_t requested_bytes, allocated_bytes, reserved_bytes;
	uint64_t nonreleasable_bytes, largest_hole_bytes;
	uint64_t allocs_count, refused_count; /* since the start */
};

struct frag_live_page {
	char magic[8];
	uint64_t devices_count;
	uint64_t pid;
	uint64_t sequence;
	uint64_t beat_ns; /* of the last writing, CLOCK_MONOTONIC */
	char by[24];	  /* who writes: "record", or a policy */
	struct frag_live_device devices[FRAG_LIVE_DEVICES];
};

/* Of this process; NULL where there is no shared memory. One writer at a time. */
struct frag_live_page *frag_live_page_create(const char *by);
/* At least every few seconds, also if nothing has changed. */
void frag_live_page_write(struct frag_live_page *page, const struct frag_live_device *devices,
			  uint32_t count);
/* Takes the name away; the memory stays to the end of the process, as another thread may be writing. NULL is
 * allowed. In a forked child call nothing: the page is its parent's. */
void frag_live_page_remove(struct frag_live_page *page);

/* Of a process that is gone, and was killed before it could. */
void frag_live_page_forget(uint64_t pid);

/* A copy of the page of another process. False: there is none, or nobody writes it any more. */
bool frag_live_page_read(uint64_t pid, struct frag_live_page *out);

#endif
