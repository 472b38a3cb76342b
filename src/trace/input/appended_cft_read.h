/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines from the blocks of a growing .cft (base/appended_cft.h). */
#ifndef FRAG_TRACE_APPENDED_CFT_READ_H
#define FRAG_TRACE_APPENDED_CFT_READ_H

#include <sys/types.h>

#include <frag/base.h>

#include "base/appended_cft.h"

/* Up to n bytes as stored; 0 at the end of the file, -1 with errno. */
typedef ssize_t (*frag_appended_pull_fn)(void *ctx, void *dst, size_t n);

struct frag_appended_read {
	frag_appended_pull_fn pull;
	void *ctx;
	uint64_t number, offset; /* of the next block */
	char *text;
	size_t at, end;	   /* the rest of the current block */
	const char *wrong; /* after -1; NULL: errno says it */
};

/* Reads the preamble. -1: memory is short. */
int frag_appended_read_init(struct frag_appended_read *g, frag_appended_pull_fn pull, void *ctx);
void frag_appended_read_release(struct frag_appended_read *g);
/* Up to `room` bytes of lines; 0: no complete block is left; -1: see wrong and offset. */
ssize_t frag_appended_read(struct frag_appended_read *g, unsigned char *dst, size_t room);

#endif
