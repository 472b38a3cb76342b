/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag's own trace format, .cft: what its writer and its readers share. docs/trace-format.md
 * describes every byte.
 *
 * A file is a magic number followed by blocks. The counts in earlier blocks determine which block
 * comes next: head, strings, frames, stacks, devices with their initial state; then per device its
 * events (each block followed by the addresses of its allocs, if recorded), evidence and final
 * snapshot; end. The checksum of a block includes its number, so that a lost, duplicated or swapped
 * block is noticed.
 *
 * Glossary. model: the slots of one device after the events so far; writer and reader update it in
 * the same way, and what it predicts is not stored. age: number of allocs between an alloc and its
 * free.
 */
#ifndef FRAG_TRACE_CFT_H
#define FRAG_TRACE_CFT_H

#include "cft_columns.h"
#include "trace/strings.h"

#include <frag/trace.h>

#define FRAG_CFT_MAGIC \
	"\x93" \
	"cft\r\n\x1a\n"
#define FRAG_CFT_MAGIC_BYTES 8u
/* Version 2 adds the releases of PyTorch at the end of the head, version 3 frag_trace.estimate after them, version 5 the cards (cft_layout.h). The writer
 * uses the lowest version that can hold the trace. */
#define FRAG_CFT_VERSION 5u
#define FRAG_CFT_PREAMBLE 16u /* magic, version, zero */

#define FRAG_CFT_BATCH 65536u		 /* most events or records in a block */
#define FRAG_CFT_PAYLOAD_MAX (16u << 20) /* most bytes of a block's payload */
#define FRAG_CFT_STRING_MAX (1u << 20)	 /* longest string */
#define FRAG_CFT_SLOTS_MAX (1u << 26)	 /* most blocks live at a time */
#define FRAG_CFT_DEVICES_MAX 4096u

enum frag_cft_block_type {
	FRAG_CFT_HEAD = 1,
	FRAG_CFT_STRINGS,
	FRAG_CFT_FRAMES,
	FRAG_CFT_STACK_FRAMES, /* frame numbers of all stacks */
	FRAG_CFT_STACKS,       /* where each stack ends in them */
	FRAG_CFT_DEVICE,
	FRAG_CFT_INITIAL_SEGMENTS,
	FRAG_CFT_INITIAL_BLOCKS,
	FRAG_CFT_EVENTS,
	FRAG_CFT_ADDRS,
	FRAG_CFT_SEEN,
	FRAG_CFT_FINAL_SEGMENTS,
	FRAG_CFT_FINAL_BLOCKS,
	FRAG_CFT_END,
	FRAG_CFT_TYPES
};

/* Before each payload, little-endian. */
struct frag_cft_block {
	uint8_t type; /* enum frag_cft_block_type */
	uint8_t zero;
	uint16_t dev;	  /* index of the device, 0 where none */
	uint32_t count;	  /* events or records */
	uint32_t payload; /* bytes that follow */
	uint32_t zero2;
	/* XXH3 of the 16 bytes before and the payload, seed = number of the block */
	uint64_t checksum;
};

/* ---- the model of slots (cft_model.c) ------------------------------------------ */

#define FRAG_CFT_NO_SLOT UINT32_MAX
#define FRAG_CFT_AGES 65536u /* ages that can be stored; for older ones the slot is stored */

enum frag_cft_slot_state { FRAG_CFT_FREE, FRAG_CFT_LIVE, FRAG_CFT_WAITING };

struct frag_cft_slot {
	uint64_t bytes_pool; /* live: bytes | pool << 48 */
	uint32_t prev,
		next; /* free: neighbours in the free list; live: prev = its alloc's number */
	uint16_t stream;
	uint8_t state;
	bool initial; /* live before the history began: may complete without a request */
};

/* The slots of one device. The free list begins with the slot freed last. Invariant: slots[0,
 * count) have been used or skipped; exactly those of state FREE are in the list. */
struct frag_cft_model {
	struct frag_cft_slot *slots;
	uint32_t count, cap;
	uint32_t free_head;
	uint64_t allocs, events;	  /* so far */
	uint64_t time_us;		  /* of the last event */
	uint32_t *recent;		  /* [FRAG_CFT_AGES]: slot by number of its alloc, modulo */
	const struct frag_trace *trace;	  /* its counts of stacks and strings are checked */
	const struct frag_trace_dev *dev; /* and of streams, pools, slots, initial blocks */
	uint32_t strings_count;
	bool beginning; /* initial blocks may still come */
};

int frag_cft_model_init(struct frag_cft_model *m, const struct frag_trace *trace,
			const struct frag_trace_dev *dev, struct frag_err *err);
void frag_cft_model_release(struct frag_cft_model *m);
/*
 * Call before each block: makes room for the slots that its events can use. A slot is then valid
 * iff it is below m->cap, which is at most the device's slots_count and at most two blocks more
 * than the allocs so far could have used, whatever the file says.
 */
int frag_cft_model_reserve(struct frag_cft_model *m, struct frag_err *err);
/* Checks an event and applies it. NULL, or what is wrong with it; then nothing has changed. */
const char *frag_cft_model_step(struct frag_cft_model *m, const struct frag_event *ev);

/* The slot that the next alloc takes by the rule. */
static inline uint32_t frag_cft_model_next(const struct frag_cft_model *m)
{
	return m->free_head != FRAG_CFT_NO_SLOT ? m->free_head : m->count;
}

/* An alloc takes the slot that _next named. pre: below m->cap. */
static inline void frag_cft_model_take(struct frag_cft_model *m, uint32_t slot, uint64_t bytes_pool,
				       uint16_t stream)
{
	struct frag_cft_slot *s = &m->slots[slot];

	if (slot == m->count) {
		m->count++;
	} else {
		m->free_head = s->next;
		if (s->next != FRAG_CFT_NO_SLOT)
			m->slots[s->next].prev = FRAG_CFT_NO_SLOT;
	}
	*s = (struct frag_cft_slot){ .bytes_pool = bytes_pool,
				     .prev = (uint32_t)m->allocs,
				     .stream = stream,
				     .state = FRAG_CFT_LIVE };
	m->recent[m->allocs++ % FRAG_CFT_AGES] = slot;
}

static inline void frag_cft_model_give(struct frag_cft_model *m, uint32_t slot)
{
	struct frag_cft_slot *s = &m->slots[slot];

	s->state = FRAG_CFT_FREE;
	s->prev = FRAG_CFT_NO_SLOT;
	s->next = m->free_head;
	if (m->free_head != FRAG_CFT_NO_SLOT)
		m->slots[m->free_head].prev = slot;
	m->free_head = slot;
}

/* What a kind of free does to a slot in this state: the new state, or -1 = not allowed. */
static inline int frag_cft_free_result(const struct frag_cft_slot *s, unsigned kind)
{
	switch (kind) {
	case FRAG_EV_FREE:
		return s->state == FRAG_CFT_LIVE ? FRAG_CFT_FREE : -1;
	case FRAG_EV_FREE_REQUESTED:
		return s->state == FRAG_CFT_LIVE ? FRAG_CFT_WAITING : -1;
	default:
		return s->state == FRAG_CFT_WAITING || (s->state == FRAG_CFT_LIVE && s->initial)
			       ? FRAG_CFT_FREE
			       : -1;
	}
}

/* ---- blocks of events (cft_pack.c, cft_unpack.c) --------------------------------------------- */

/*
 * Kind, flags and whether the event follows the rule of its kind are one byte per event. An alloc
 * that takes the slot freed last stores no slot. A free stores the age of its alloc, which repeats
 * from step to step much better than slots (a tenth of the size), and has the size, stream and pool
 * of that alloc. For all other events these three are one index into a table of the block. A time
 * is one byte, or an exception. The byte layout: docs/trace-format.md.
 */
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

struct frag_cft_coder { /* scratch for one block, about 3 MB */
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

/*
 * Packs the first events of ev[count] as one block and steps the model; *taken
 * of them, at least one. Errors: FRAG_EINPUT where an event breaks the rules of a
 * trace, with its index in err->offset; FRAG_ENOMEM.
 */
int frag_cft_pack_events(struct frag_cft_coder *c, struct frag_cft_model *m,
			 const struct frag_event *ev, size_t count, struct frag_cft_packer *p,
			 size_t *taken, struct frag_err *err);
/* Reads a block back into out[count], checks every event, steps the model. */
int frag_cft_unpack_events(struct frag_cft_coder *c, struct frag_cft_model *m,
			   struct frag_cft_unpacker *u, size_t count, struct frag_event *out,
			   struct frag_err *err);
/* Addresses of the allocs among ev[count]; the others have none. */
int frag_cft_pack_addrs(struct frag_cft_coder *c, const struct frag_event *ev,
			const frag_addr_t *addrs, size_t count, struct frag_cft_packer *p,
			struct frag_err *err);
int frag_cft_unpack_addrs(struct frag_cft_coder *c, struct frag_cft_unpacker *u,
			  const struct frag_event *ev, size_t count, frag_addr_t *out,
			  struct frag_err *err);

#endif
