/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed bytes, for tests. */
#ifndef TESTS_SUPPORT_PACKED_H
#define TESTS_SUPPORT_PACKED_H

#include <stddef.h>
#include <stdlib.h>

enum pack { PLAIN, GZIP, XZ, ZSTD, PACKS };

struct blob {
	unsigned char *bytes; /* the caller's */
	size_t len;
};
static inline void blob_release(struct blob *b)
{
	free(b->bytes);
}
struct blob packed(const void *bytes, size_t n, enum pack how);

#endif
