/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a pickle: protocol 2, with the few operations that every reader of snapshots knows. A
 * text is written once and referred to afterwards.
 *
 * Ownership: the caller owns the stream and checks its errors; frag_pickle_write_end frees the
 * memo.
 */
#ifndef FRAG_EXPLAIN_PICKLE_WRITE_H
#define FRAG_EXPLAIN_PICKLE_WRITE_H

#include <stdio.h>

#include "trace/strings.h"

struct frag_pickle_writer {
	FILE *to;
	struct frag_strings *texts; /* that were written */
	uint32_t *ids;		    /* of them + 1; 0: not written */
	size_t ids_cap;
	uint32_t next_id;
	uint32_t in_list; /* items since the last APPENDS of the innermost long list */
	bool failed;	  /* memory was short */
};

int frag_pickle_write_begin(struct frag_pickle_writer *w, FILE *to, struct frag_err *err);
/* The end of the file; FRAG_ENOMEM if anything was lost. */
int frag_pickle_write_end(struct frag_pickle_writer *w, struct frag_err *err);

/*
 * Values in a row, as `form` says: s a text, u a uint64_t, d a double, b a bool, p a tuple of two
 * uint64_t; { and } around keys and values in turn, [ and ] around items.
 */
void frag_pickle_put(struct frag_pickle_writer *w, const char *form, ...);
/* After an item of a list that may be long: readers keep the items of one batch on their stack. */
void frag_pickle_put_list_more(struct frag_pickle_writer *w);
/* Gives what was just written a number, and puts it once more by its number. */
uint32_t frag_pickle_put_memo(struct frag_pickle_writer *w);
void frag_pickle_put_again(struct frag_pickle_writer *w, uint32_t id);

#endif
