/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a .cft file block by block, for the reader of whole traces and for the source that reads in
 * order. One block is in memory at a time.
 *
 * Ownership: the input is the caller's; the trace is the parser's until it is taken.
 */
#ifndef FRAG_TRACE_CFT_PARSE_H
#define FRAG_TRACE_CFT_PARSE_H

#include "cft_layout.h"
#include "trace/input/input.h"

struct frag_cft_parser {
	struct frag_input *in;
	struct frag_trace *trace;		 /* take it and set this to NULL */
	struct frag_cft_device_values *declared; /* [trace->devs_count] */
	struct frag_cft_block block;		 /* the current one */
	uint32_t version;			 /* of the format */
	uint64_t offset;			 /* where it began */
	uint64_t blocks, events;		 /* read so far */
	char *cards;				 /* their text, NULL = none */
	unsigned char *payload;
	size_t payload_cap;
	uint64_t *scratch; /* [FRAG_CFT_BATCH] */
	struct frag_cft_unpacker unpacker;
	struct frag_cft_coder *coder;
};

/* For probes: does it begin like a .cft? */
bool frag_cft_is_magic(const unsigned char *bytes, size_t len);

/* Reads everything before the events: p->trace then has settings, strings, stacks and devices with
 * streams, pools, initial state, and events_count and slots_count as declared. Errors: FRAG_EINPUT,
 * FRAG_ENOMEM. Release it in any case. */
int frag_cft_parser_open(struct frag_cft_parser *p, struct frag_input *in, struct frag_err *err);
void frag_cft_parser_release(struct frag_cft_parser *p);

/* Reads the next block, which must be of this type and device and have 1 to `most` records. */
int frag_cft_parser_next(struct frag_cft_parser *p, enum frag_cft_block_type type, unsigned dev,
			 uint64_t most, struct frag_err *err);
/* Unpacks the current EVENTS block into out[p->block.count]. */
int frag_cft_parser_events(struct frag_cft_parser *p, struct frag_cft_model *model,
			   struct frag_event *out, struct frag_err *err);
/* Reads an array of any number of blocks; *array grows as they arrive. */
int frag_cft_parser_array(struct frag_cft_parser *p, const struct frag_cft_records *r, unsigned dev,
			  uint64_t count, void *array_ptr, struct frag_err *err);
/* Skips such an array. */
int frag_cft_parser_skip(struct frag_cft_parser *p, const struct frag_cft_records *r, unsigned dev,
			 uint64_t count, struct frag_err *err);
/* Reads the end block, and checks its totals and that nothing follows. */
int frag_cft_parser_end(struct frag_cft_parser *p, struct frag_err *err);

/* Makes room for at least `need` elements in *array_ptr. Grows by doubling, up to `declared`:
 * memory depends on what was read, not on what the file declares. */
int frag_cft_grow(void *array_ptr, size_t *cap, uint64_t need, uint64_t declared, size_t unit,
		  struct frag_err *err);

#endif
