/* SPDX-License-Identifier: Apache-2.0 */
/* The file `state`, left for cufrag by the library that holds writes back (src/pretend/files). */
#ifndef FRAG_BASE_HELD_H
#define FRAG_BASE_HELD_H

#include <stdint.h>

#define FRAG_HELD_LIBRARY "libcufrag_files.so"

#define FRAG_HELD_FULL 1u
#define FRAG_HELD_WAS_FULL 2u

struct frag_held_state {
	uint64_t changes;    /* of folders and names; 0: nothing was written yet */
	uint64_t links;	     /* copies of files with several hard links */
	uint64_t most_bytes; /* --writes-max */
	uint64_t full;	     /* it is reached, or the disk is full; was at some time */
	uint64_t unseen;     /* programs that do not load the library */
};

#endif
