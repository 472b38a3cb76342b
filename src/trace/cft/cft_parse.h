/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a .cft file apart, block by block: what the whole reader and the
 * source in order share. The parser has one block in memory at a time.
 *
 * Ownership: the input is the caller's. The trace under construction belongs to the
 * parser until it is taken.
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
	unsigned char *payload;
	size_t payload_cap;
	uint64_t *scratch; /* [FRAG_CFT_BATCH] */
	struct frag_cft_unpacker unpacker;
	struct frag_cft_coder *coder;
};

/* Does it begin like a .cft? For probes. */
bool frag_cft_is_magic(const unsigned char *bytes, size_t len);

/*
 * Reads everything before the events. Then p->trace has settings, strings, stacks and
 * devices with streams, pools and initial state; events_count and slots_count as the file declares,
 * no events yet. Errors: FRAG_EINPUT, FRAG_ENOMEM; release is due in any case.
 */
int frag_cft_parser_open(struct frag_cft_parser *p, struct frag_input *in, struct frag_err *err);
void frag_cft_parser_release(struct frag_cft_parser *p);

/* Reads the next block: of this type and device, with 1 .. most records. */
int frag_cft_parser_next(struct frag_cft_parser *p, enum frag_cft_block_type type, unsigned dev,
			 uint64_t most, struct frag_err *err);
/* Unpacks the current EVENTS block into out[p->block.count]. */
int frag_cft_parser_events(struct frag_cft_parser *p, struct frag_cft_model *model,
			   struct frag_event *out, struct frag_err *err);
/* A whole array over as many blocks as it needs. *array is grown as they arrive. */
int frag_cft_parser_array(struct frag_cft_parser *p, const struct frag_cft_records *r, unsigned dev,
			  uint64_t count, void *array_ptr, struct frag_err *err);
/* Passes over such an array. */
int frag_cft_parser_skip(struct frag_cft_parser *p, const struct frag_cft_records *r, unsigned dev,
			 uint64_t count, struct frag_err *err);
/* Reads the end block, checks its totals, and that nothing follows. */
int frag_cft_parser_end(struct frag_cft_parser *p, struct frag_err *err);

/*
 * Makes *array_ptr hold at least `need` elements; grows by doubling, so that memory follows
 * what was read and not what a file declares, but never above `declared`.
 */
int frag_cft_grow(void *array_ptr, size_t *cap, uint64_t need, uint64_t declared, size_t unit,
		  struct frag_err *err);

#endif
