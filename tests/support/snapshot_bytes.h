/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch snapshots written by hand, and the reader's answer. Failures fail the cmocka test. */
#ifndef TESTS_SUPPORT_SNAPSHOT_BYTES_H
#define TESTS_SUPPORT_SNAPSHOT_BYTES_H

#include <frag/trace.h>

#include "pickle_bytes.h"

#define S0 0x7f0000000000ll
#define S1 0x7f1000000000ll
#define T0 1795186186043381ll
#define MIB (1ll << 20)

/* The dict of a snapshot; what belongs into it comes between the two. */
void sb_top(struct pickle_bytes *b);
void sb_finish(struct pickle_bytes *b);
/* 'device_traces' with its first list open; the next device: pb_close_list, pb_list. */
void sb_open_traces(struct pickle_bytes *b);
void sb_close_traces(struct pickle_bytes *b);
void sb_no_segments(struct pickle_bytes *b);
/* Within a list; blocks come between open and close. */
void sb_open_segment(struct pickle_bytes *b, int64_t device, int64_t addr, int64_t size,
		     const char *type, int64_t stream, int64_t pool);
void sb_block(struct pickle_bytes *b, int64_t addr, int64_t size, int64_t requested,
	      const char *state);
void sb_close_segment(struct pickle_bytes *b);
void sb_settings(struct pickle_bytes *b);
void sb_annotation(struct pickle_bytes *b, const char *name, const char *stage, int64_t time);
/* A little of everything: seven entries on device 0, none on 1, one segment left. */
void sb_everything(struct pickle_bytes *b);

/* Reads as a file named "snapshot"; *out is NULL if that fails. */
int sb_read(const void *bytes, size_t n, const char *options, struct frag_trace **out,
	    struct frag_err *err);
struct frag_trace *sb_read_good(const struct pickle_bytes *b);
/* The reader refuses b and says so; b is released. */
void sb_expect_fail(struct pickle_bytes *b, const char *says);

#endif
