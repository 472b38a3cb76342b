/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes what a process holds on its cards, live, for other programs (cufrag monitor): a page in
 * POSIX shared memory, /cufrag-PID, with the layout below. The writer never waits: a sequence
 * number is odd during a write, and a reader takes a copy and tries again. A page not written for
 * FRAG_LIVE_STALE_NS belongs to a dead process. docs/record.md documents the layout; all numbers
 * have 8 bytes, UINT64_MAX = unknown.
 *
 * Depends on nothing else in cufrag, because it is part of the libraries loaded into programs.
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
	uint64_t beat_ns; /* time of the last write, CLOCK_MONOTONIC */
	char by[24];	  /* the writer: "record", or a policy */
	struct frag_live_device devices[FRAG_LIVE_DEVICES];
};

/* Opens the page of this process; NULL without shared memory. One writer at a time. */
struct frag_live_page *frag_live_page_create(const char *by);
/* Call at least every few seconds, even if nothing has changed. */
void frag_live_page_write(struct frag_live_page *page, const struct frag_live_device *devices,
			  uint32_t count);
/* Removes the name. The memory stays until the process ends, because another thread may be writing.
 * NULL is allowed. Do not call in a forked child: the page belongs to its parent. */
void frag_live_page_remove(struct frag_live_page *page);

/* Removes the page of a killed process. */
void frag_live_page_forget(uint64_t pid);

/* Copies the page of another process. False: there is none, or it is stale. */
bool frag_live_page_read(uint64_t pid, struct frag_live_page *out);

#endif
