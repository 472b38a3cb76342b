/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver has given: segments of cudaMalloc with the pages under them, and handles of
 * physical memory with their mappings. For devices that call a driver (cuda/, src/inject/live); the
 * driver checks ranges and mappings, this only counts.
 *
 * The driver cuts pages of 2 MiB for small segments, so a segment may share its first and last
 * page; the pages between belong to it alone. (Checked against cudaMemGetInfo, see observe in
 * cuda.c.) A handle's memory counts until it is released and its last mapping is gone.
 *
 * Each _room function comes before the driver's call, so that counting cannot fail after it. A
 * zeroed struct is ready for segments; for handles: frag_drvmem_init.
 */
#ifndef FRAG_DEVICE_DRIVER_MEMORY_H
#define FRAG_DEVICE_DRIVER_MEMORY_H

#include <frag/base.h>
#include <frag/error.h>

#include "lib/addr_map.h"
#include "lib/slabs.h"

struct frag_drvmem_handle {
	uint64_t raw, bytes; /* raw: the driver's */
	uint32_t mappings;
	bool released;
};

struct frag_drvmem {
	struct frag_addr_map segments; /* address -> bytes */
	struct frag_addr_map pages;    /* page that several segments may share -> count */
	struct frag_addr_map handles;  /* number -> handle */
	struct frag_addr_map mappings; /* address -> handle */
	struct frag_slab handle_slab;
	uint64_t last_handle;
	uint64_t bytes; /* pages under segments, and handles */
};

void frag_drvmem_init(struct frag_drvmem *m);
void frag_drvmem_release(struct frag_drvmem *m);

int frag_drvmem_segment_room(struct frag_drvmem *m, struct frag_err *err);
void frag_drvmem_segment_add(struct frag_drvmem *m, uint64_t addr, uint64_t bytes);
/* The cell (address -> bytes) of a segment that starts at addr; `call` goes into the message. */
int frag_drvmem_segment_find(const struct frag_addr_map *segments, const char *call, uint64_t addr,
			     struct frag_addr_cell **out, struct frag_err *err);
/* pre: cell comes from m->segments. */
void frag_drvmem_segment_remove(struct frag_drvmem *m, struct frag_addr_cell *cell);

int frag_drvmem_handle_room(struct frag_drvmem *m, struct frag_err *err);
/* Returns its number: the driver may use a raw handle again while old mappings live. */
uint64_t frag_drvmem_handle_add(struct frag_drvmem *m, uint64_t raw, uint64_t bytes);
int frag_drvmem_handle_find(const struct frag_drvmem *m, const char *call, uint64_t number,
			    struct frag_drvmem_handle **out, struct frag_err *err);
void frag_drvmem_handle_released(struct frag_drvmem *m, uint64_t number);

int frag_drvmem_mapping_room(struct frag_drvmem *m, struct frag_err *err);
void frag_drvmem_mapped(struct frag_drvmem *m, uint64_t addr, struct frag_drvmem_handle *h);
/* pre: the driver has unmapped [addr, addr + bytes), which it does for whole mappings only. */
int frag_drvmem_unmapped(struct frag_drvmem *m, uint64_t addr, uint64_t bytes,
			 struct frag_err *err);

#endif
