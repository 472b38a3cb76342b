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

#include <stdio.h>

#include <frag/trace.h>

#include "trace/input/input.h"
#include "trace/strings.h"

#define FRAG_CFT_MAGIC \
	"\x93" \
	"cft\r\n\x1a\n"
#define FRAG_CFT_MAGIC_BYTES 8u
/* Version 2 adds the releases of PyTorch at the end of the head, version 3 frag_trace.estimate
 * after them, version 5 the cards. The writer uses the lowest version that can hold the trace. */
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

/* ---- columns (cft_columns.c) ----
 *
 * Columns of a block are arrays of values of one type, packed one after another, in two shapes.
 * raw: little-endian values of 1, 2 or 4 bytes, as the hot loops need them. numbers: 64-bit values,
 * optionally as differences, cut to the width of the largest and stored byte plane by byte plane.
 * Both are compressed with zstd where that makes them smaller.
 *
 * Ownership: columns own their buffers (release; all zero at first). The bytes that they are read from
 * are the caller's and must stay until it is done.
 */
#define FRAG_CFT_COLUMN_MAX (1u << 20) /* values in a column, and so in a block */

struct frag_cft_columns {
	bool reads;				/* else they are packed */
	const unsigned char *begin, *pos, *end; /* payload of one block that is read */
	uint64_t offset;			/* of `begin` in the input */
	unsigned char *out;			/* packed columns so far */
	size_t len, cap;			/* len 0: begin again */
	unsigned char *planes;			/* scratch */
	size_t planes_cap;
	void *zstd; /* ZSTD_DCtx or ZSTD_CCtx, once there is something to do */
};

void frag_cft_columns_release(struct frag_cft_columns *c);
/* values: count x width bytes. Errors: FRAG_ENOMEM. */
int frag_cft_pack_raw(struct frag_cft_columns *p, const void *values, size_t count, unsigned width,
		      struct frag_err *err);
/* differences: stores v[i] - v[i-1] modulo 2^64. Errors: FRAG_ENOMEM. */
int frag_cft_pack_numbers(struct frag_cft_columns *p, const uint64_t *values, size_t count,
			  bool differences, struct frag_err *err);

/* Offset in the input of the next byte. */
uint64_t frag_cft_columns_at(const struct frag_cft_columns *u);

/* Reads the next column, which must have exactly this shape, into out[count]. Errors: FRAG_EINPUT
 * with the offset, FRAG_ENOMEM. */
int frag_cft_unpack_raw(struct frag_cft_columns *u, void *out, size_t count, unsigned width,
			struct frag_err *err);
int frag_cft_unpack_numbers(struct frag_cft_columns *u, uint64_t *out, size_t count,
			    struct frag_err *err);
/* Number of values in the next column, without reading it; FRAG_EINPUT if more than `max`. */
int frag_cft_unpack_count(struct frag_cft_columns *u, size_t max, size_t *out,
			  struct frag_err *err);
/* FRAG_EINPUT unless the payload has been read to its end. */
int frag_cft_unpack_end(struct frag_cft_columns *u, struct frag_err *err);

/* FRAG_EINPUT "damaged .cft trace at byte N: what". */
int frag_cft_bad(struct frag_err *err, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

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
			 const struct frag_event *ev, size_t count, struct frag_cft_columns *p,
			 size_t *taken, struct frag_err *err);
/* Reads a block back into out[count], checks every event, steps the model. */
int frag_cft_unpack_events(struct frag_cft_coder *c, struct frag_cft_model *m,
			   struct frag_cft_columns *u, size_t count, struct frag_event *out,
			   struct frag_err *err);
/* Addresses of the allocs among ev[count]; the others have none. */
int frag_cft_pack_addrs(struct frag_cft_coder *c, const struct frag_event *ev,
			const frag_addr_t *addrs, size_t count, struct frag_cft_columns *p,
			struct frag_err *err);
int frag_cft_unpack_addrs(struct frag_cft_coder *c, struct frag_cft_columns *u,
			  const struct frag_event *ev, size_t count, frag_addr_t *out,
			  struct frag_err *err);
/* ---- everything but events (cft_layout.c, cft_model.c) ----
 *
 * Tables shared by the writer and the readers: which field of which struct is which column. */

struct frag_cft_field {
	uint16_t offset;
	uint8_t bytes; /* 1, 2, 4 or 8 */
	uint8_t flags;
};
#define FRAG_CFT_DIFFERENCES 1u
#define FRAG_CFT_TRUTH 2u /* a bool: 0 or 1 */

/* An array of structs: one column per field. */
struct frag_cft_records {
	uint8_t type; /* enum frag_cft_block_type */
	uint8_t fields_count;
	uint16_t stride;
	const struct frag_cft_field *fields;
	const char *what; /* for messages */
};

extern const struct frag_cft_records frag_cft_frames, frag_cft_stack_frames, frag_cft_stacks,
	frag_cft_streams, frag_cft_pools, frag_cft_seen;
/* Single structs: all fields in one column of numbers. */
extern const struct frag_cft_records frag_cft_head, frag_cft_device, frag_cft_end;

/* An array of a device with blocks of its own: where it and its count are in the device. */
struct frag_cft_part {
	const struct frag_cft_records *records;
	uint16_t array, count; /* offsets; the count is a size_t */
};
/* Before its events: the initial state. After them: evidence and final snapshot. */
#define FRAG_CFT_BEFORE 2
#define FRAG_CFT_AFTER 3
extern const struct frag_cft_part frag_cft_before[FRAG_CFT_BEFORE], frag_cft_after[FRAG_CFT_AFTER];

static inline size_t *frag_cft_part_count(const struct frag_cft_part *part,
					  const struct frag_trace_dev *dev)
{
	return (size_t *)((char *)dev + part->count);
}

/* Counts as the file declares them; the arrays are not read yet. */
struct frag_cft_head_values {
	struct frag_trace trace; /* numbers, counts and texts */
	uint32_t strings_count;
};
struct frag_cft_device_values {
	struct frag_trace_dev dev; /* numbers and counts only, no pointers */
	bool has_addrs;
};
struct frag_cft_end_values {
	uint64_t blocks; /* before the end block */
	uint64_t events; /* of all devices */
};

/* Packs, or (c->reads) reads back. scratch: room for count numbers. Errors: FRAG_ENOMEM;
 * FRAG_EINPUT, also for numbers that do not fit into their field. */
int frag_cft_do_records(const struct frag_cft_records *r, void *base, size_t count,
			uint64_t *scratch, struct frag_cft_columns *c, struct frag_err *err);
int frag_cft_do_struct(const struct frag_cft_records *r, void *base, struct frag_cft_columns *c,
		       struct frag_err *err);

/* The whole head: values, and texts of v->trace, which are the caller's also after an error. */
int frag_cft_do_head(uint32_t version, struct frag_cft_head_values *v, char **cards,
		     struct frag_cft_columns *c, struct frag_err *err);

/* Check everything except events, which the model checks. NULL, or what is wrong. Of a device:
 * streams, pools and initial state before its events, evidence and final snapshot after them. */
const char *frag_cft_check_head(const struct frag_trace *trace);
const char *frag_cft_check_device(const struct frag_trace_dev *dev);
const char *frag_cft_check_evidence(const struct frag_trace_dev *dev);

/*
 * The cards that a trace was recorded on, as text: a line for each device, in their order, "-"
 * where nothing is known, else
 *
 *	TOTAL CONTEXT BESIDE FRACTION NAME
 *
 * bytes of the card, of the CUDA context and of all that was held outside of the allocator (0 =
 * unknown), the part of the card that the process was allowed, and the card's name ("?" for what is
 * not ASCII).
 */
/* Is something known of a card? Then .cft has version 5. */
bool frag_cft_has_cards(const struct frag_trace *t);
/* In new memory (free); NULL: memory is short. */
char *frag_cft_cards_text(const struct frag_trace *t);
/* NULL, or what is wrong with the text. */
const char *frag_cft_cards_read(const char *text, struct frag_trace *t);

/*
 * Sums of what the requests of a device ask for. Files may hold any sizes; a trace with sums that
 * no device could reach is refused when it is read, so that code behind the readers need not expect
 * 64-bit sums to overflow.
 */
#define FRAG_LIVE_MAX (1ull << 50) /* as much as the largest card may have that can be described */
#define FRAG_FLOW_MAX (1ull << 62)

struct frag_sums { /* of one device; init by zeroing */
	uint64_t live, flow;
};

/* The next events of a device; first: number of the first. Errors: FRAG_EINPUT. */
int frag_sums_add(struct frag_sums *s, const struct frag_event *events, size_t count,
		  uint64_t first, struct frag_err *err);

/* ---- reading (cft_parse.c) ----
 *
 * Block by block, for the reader of whole traces and for the source that reads in order. One block
 * is in memory at a time. Ownership: the input is the caller's; the trace is the parser's until it
 * is taken. */
struct frag_cft_parser {
	struct frag_input *in;
	struct frag_trace *trace;		 /* take it and set this to NULL */
	struct frag_cft_device_values *declared; /* [trace->devs_count] */
	struct frag_cft_block block;		 /* the current one */
	uint32_t version;			 /* of the format */
	uint64_t offset;			 /* where it began */
	uint64_t blocks, events;		 /* read so far */
	uint32_t dev;				 /* now, an index; the next block is one of its */
	uint64_t handed, seen_handed;		 /* events and pieces of evidence of it */
	uint64_t unpacked;			 /* bytes of arrays in memory */
	struct frag_cft_model model;		 /* of it, once events were unpacked */
	unsigned char *payload;			 /* [FRAG_CFT_PAYLOAD_MAX] */
	uint64_t *scratch;			 /* [FRAG_CFT_BATCH] */
	struct frag_cft_columns columns;	 /* of that block */
	struct frag_cft_coder *coder;
};

/* For probes: does it begin like a .cft? */
bool frag_cft_is_magic(const unsigned char *bytes, size_t len);

/* Reads everything before the events: p->trace then has settings, strings, stacks and devices with
 * streams, pools, initial state, and events_count and slots_count as declared. Errors: FRAG_EINPUT,
 * FRAG_ENOMEM. Release it in any case. */
int frag_cft_parser_open(struct frag_cft_parser *p, struct frag_input *in, struct frag_err *err);
void frag_cft_parser_release(struct frag_cft_parser *p);
/* Before so many more bytes of arrays are kept: FRAG_EINPUT where a small file has too many. */
int frag_cft_parser_charge(struct frag_cft_parser *p, uint64_t bytes, struct frag_err *err);

/* The next events of p->dev, *count of them, at most FRAG_CFT_BATCH; NULL: checksums only. Their
 * addresses likewise. pre: it has events left. */
int frag_cft_parser_events(struct frag_cft_parser *p, struct frag_event *out, frag_addr_t *addrs,
			   size_t *count, struct frag_err *err);
/* The next records of the evidence of p->dev, of which `left` are left: 1 to FRAG_CFT_BATCH. */
int frag_cft_parser_seen(struct frag_cft_parser *p, uint64_t left, struct frag_evidence *out,
			 size_t *count, struct frag_err *err);
/* Reads what is behind the events of p->dev (keep), or passes over it; then the next device is the
 * current one. After the last one also reads the end block, and checks that nothing follows. */
int frag_cft_parser_leave(struct frag_cft_parser *p, bool keep, struct frag_err *err);

/* Makes room for at least `need` elements in *array_ptr. Grows by doubling, up to `declared`:
 * memory depends on what was read, not on what the file declares. */
int frag_cft_grow(void *array_ptr, size_t *cap, uint64_t need, uint64_t declared, size_t unit,
		  struct frag_err *err);

/* ---- writing (cft_write.c) ---- */

struct frag_cft_writer;

/* Errors: FRAG_EINPUT if it breaks rules of the format, FRAG_ENOMEM. The caller checks `to`. */
int frag_cft_write_stream(const struct frag_trace *trace, FILE *to, struct frag_err *err);

/* Checksum of block `number` (from 0). */
uint64_t frag_cft_checksum(const struct frag_cft_block *b, const void *payload, uint64_t number);

/* A file whose events are made on the way: `put` hands over those of all devices. head: everything
 * else, with exact counts. The bytes are those of frag_trace_write_cft for the same trace. Errors:
 * FRAG_EOUTPUT, and as above. */
typedef int (*frag_cft_put_fn)(void *ctx, struct frag_cft_writer *w, struct frag_err *err);
int frag_cft_write_made(const struct frag_trace *head, const char *path, frag_cft_put_fn put,
			void *ctx, struct frag_err *err);
/* Takes *taken of the next events of a device: all at its end, else whole blocks only, which may
 * need FRAG_CFT_BATCH of them. addrs: NULL, if none were recorded. */
int frag_cft_put_events(struct frag_cft_writer *w, uint32_t dev, const struct frag_event *events,
			const frag_addr_t *addrs, size_t count, bool end, size_t *taken,
			struct frag_err *err);

#endif
