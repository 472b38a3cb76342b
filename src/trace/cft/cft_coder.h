/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratch memory for a block of events, shared by cft_pack.c and cft_unpack.c. The byte layout:
 * docs/trace-format.md.
 *
 * Kind, flags and whether the event follows the rule of its kind are one byte per event. An alloc
 * that takes the slot freed last stores no slot. A free stores the age of its alloc, which repeats
 * from step to step much better than slots (a tenth of the size), and has the size, stream and pool
 * of that alloc. For all other events these three are one index into a table of the block. A time
 * is one byte, or an exception.
 */
#ifndef FRAG_TRACE_CFT_CODER_H
#define FRAG_TRACE_CFT_CODER_H

#include "cft.h"

#define FRAG_CFT_TIME_MASK ((1ull << 40) - 1)
#define FRAG_CFT_TIME_ESCAPE 255u /* in the column of times: an exception follows */
#define FRAG_CFT_CODES_MAX 256u

/* mode bits of a code */
#define FRAG_CFT_NAMED_SLOT 1u	/* the slot is stored */
#define FRAG_CFT_OWN_REQUEST 2u /* size, pool and stream are stored */

/* size and pool, stream; or one number and 0 */
struct frag_cft_pair {
	uint64_t a, b;
};

#define FRAG_CFT_HASH_SIZE (4u * FRAG_CFT_BATCH) /* at most half full */

struct frag_cft_coder {
	uint8_t code[FRAG_CFT_BATCH], time[FRAG_CFT_BATCH];
	uint16_t age[FRAG_CFT_BATCH], index[FRAG_CFT_BATCH];
	uint64_t late[FRAG_CFT_BATCH];	/* times that do not fit into a byte */
	uint64_t named[FRAG_CFT_BATCH]; /* slots that are stored */
	uint64_t number[FRAG_CFT_BATCH];
	struct frag_cft_pair pair[FRAG_CFT_BATCH], distinct[FRAG_CFT_BATCH];
	uint32_t words[FRAG_CFT_CODES_MAX]; /* kind | flags << 8 | mode << 16 */
	size_t codes;
	/* packing only */
	uint32_t hash[FRAG_CFT_HASH_SIZE]; /* place in distinct + 1 */
	uint32_t hash_mask;		   /* how much of it is in use */
	uint16_t code_of[1u << 13];	   /* code + 1 by kind, flags, mode */
};

/* Number of values in each column of a block. */
struct frag_cft_counts {
	size_t events, late, ages, named, requests;
};

static inline bool frag_cft_is_free(unsigned kind)
{
	return kind >= FRAG_EV_FREE && kind <= FRAG_EV_FREE_COMPLETED;
}

#endif
