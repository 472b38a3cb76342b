/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of all blocks except events, as tables shared by the writer and the readers: which field
 * of which struct is which column. */
#ifndef FRAG_TRACE_CFT_LAYOUT_H
#define FRAG_TRACE_CFT_LAYOUT_H

#include "cft.h"

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
	frag_cft_streams, frag_cft_pools, frag_cft_initial_segments, frag_cft_initial_blocks,
	frag_cft_seen, frag_cft_final_segments, frag_cft_final_blocks;

/* Single structs: all fields in one column of numbers. */
extern const struct frag_cft_records frag_cft_head, frag_cft_device, frag_cft_end;

/* Counts as the file declares them; the arrays are not read yet. */
struct frag_cft_head_values {
	struct frag_trace trace; /* numbers and counts only, no pointers */
	uint32_t strings_count;
};
struct frag_cft_device_values {
	struct frag_trace_dev dev; /* numbers and counts only, no pointers */
	uint64_t initial_segments, initial_blocks;
	bool has_addrs;
};
struct frag_cft_end_values {
	uint64_t blocks; /* before the end block */
	uint64_t events; /* of all devices */
};

/* scratch: room for count numbers. Errors: FRAG_ENOMEM. */
int frag_cft_pack_records(const struct frag_cft_records *r, const void *base, size_t count,
			  uint64_t *scratch, struct frag_cft_packer *p, struct frag_err *err);
/* Errors: FRAG_EINPUT, also for numbers that do not fit into their field. */
int frag_cft_unpack_records(const struct frag_cft_records *r, void *base, size_t count,
			    uint64_t *scratch, struct frag_cft_unpacker *u, struct frag_err *err);
int frag_cft_pack_struct(const struct frag_cft_records *r, const void *base,
			 struct frag_cft_packer *p, struct frag_err *err);
int frag_cft_unpack_struct(const struct frag_cft_records *r, void *base,
			   struct frag_cft_unpacker *u, struct frag_err *err);

/* Check everything except events, which the model checks. NULL, or what is wrong. Of a device:
 * streams, pools and initial state before its events, evidence and final snapshot after them. */
const char *frag_cft_check_head(const struct frag_trace *trace);
const char *frag_cft_check_device(const struct frag_trace_dev *dev);
const char *frag_cft_check_evidence(const struct frag_trace_dev *dev);

/*
 * The cards that a trace was recorded on, as text: a line for each device, in their order, "-" where
 * nothing is known, else
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

#endif
