/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory: packed, and of traces. The caller releases them. */
#ifndef TESTS_SUPPORT_PACKED_H
#define TESTS_SUPPORT_PACKED_H

#include <stddef.h>
#include <stdlib.h>

#include <frag/trace.h>

enum pack { PLAIN, GZIP, XZ, ZSTD, PACKS };

struct blob {
	unsigned char *bytes;
	size_t len;
};
static inline void blob_release(struct blob *b)
{
	free(b->bytes);
}
struct blob packed(const void *bytes, size_t n, enum pack how);
/* A .cft; aborts if the trace cannot be written. */
struct blob cft_image_of(const struct frag_trace *t);
/* What its reader says; *out is NULL if it says no. */
int cft_image_read(const void *bytes, size_t len, const char *options, struct frag_trace **out,
		   struct frag_err *err);

#endif
