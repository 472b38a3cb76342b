/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a card that several processes share. Its pages come from an unnamed file that each of
 * them maps. The file also records which values were computed.
 *
 *	fd = lent_file(room)			lent_give(p, bytes, fd, offset)
 *	... another process gets the file ...
 *	lent_take(to, bytes, fd, offset)	`to` and p share their pages
 *
 * How a process exports memory: ipc.c (cudaIpc) and vmm.c (exported handles).
 */
#ifndef FRAG_NOGPU_LENT_H
#define FRAG_NOGPU_LENT_H

#include <frag/base.h>

#define LENT_PAGE 4096u

/* A sparse file for offsets below `room`. -1: none. */
int lent_file(uint64_t room);
/* Moves whole pages of this process, with their contents, into the file. */
bool lent_give(void *p, uint64_t bytes, int fd, uint64_t offset);
/* Maps whole pages of another process's file; zeros if that fails. */
void lent_take(void *to, uint64_t bytes, int fd, uint64_t offset);
/* Number of shared ranges: while it is 0, callers can skip the other calls. */
const _Atomic size_t *frag_nogpu_lent(void);
/* The process that owns shared memory. 0: not shared, or this one. */
long lent_owner(const void *p);
/* The least known origin (nogpu.h) in the range. False: not shared. */
__attribute__((visibility("default"))) bool frag_nogpu_lent_origin(const void *p, uint64_t bytes,
								   uint32_t *origin);
/* lower: never raises an origin. */
__attribute__((visibility("default"))) void
frag_nogpu_lent_origin_set(const void *p, uint64_t bytes, uint32_t origin, bool lower);

#endif
