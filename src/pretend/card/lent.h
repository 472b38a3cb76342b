/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a card that several processes have. Its pages come from a file without a name, which whoever is to have them
 * maps, too, so each sees what the others store. What lies there was computed, or was not, for all of them: the file says that
 * as well.
 *
 *	fd = lent_file(room)			lent_give(p, bytes, fd, offset)
 *	... another process gets the file ...
 *	lent_take(to, bytes, fd, offset)	what lies at `to` is what lies at p
 *
 * How a process gives memory away is ipc.c's (cudaIpc) and vmm.c's (exported handles).
 */
#ifndef FRAG_NOGPU_LENT_H
#define FRAG_NOGPU_LENT_H

#include <frag/base.h>

#define LENT_PAGE 4096u

/* For offsets below `room`, of which only what is written takes memory. -1: there is none. */
int lent_file(uint64_t room);
/* Whole pages of this process come from the file from now on, and hold what they held. */
bool lent_give(void *p, uint64_t bytes, int fd, uint64_t offset);
/* Whole pages come from the file of another process; if they cannot, they are zeros. */
void lent_take(void *to, uint64_t bytes, int fd, uint64_t offset);
/* How many parts of the address space several processes have: while it is 0, nobody needs to ask. */
const _Atomic size_t *frag_nogpu_lent(void);
/* The process whose memory it is. 0: this is nobody else's. */
long lent_owner(const void *p);
/* Where what lies there comes from (nogpu.h): of the worst known part. False: nobody else has it. */
__attribute__((visibility("default"))) bool frag_nogpu_lent_origin(const void *p, uint64_t bytes,
								   uint32_t *origin);
/* lower: unless it is known less already. */
__attribute__((visibility("default"))) void
frag_nogpu_lent_origin_set(const void *p, uint64_t bytes, uint32_t origin, bool lower);

#endif
