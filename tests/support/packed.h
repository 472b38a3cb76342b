/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed bytes, for tests. */
#ifndef TESTS_SUPPORT_PACKED_H
#define TESTS_SUPPORT_PACKED_H

#include <stddef.h>

enum pack { PLAIN, GZIP, XZ, ZSTD, PACKS };

struct blob {
	unsigned char *bytes; /* the caller's (free) */
	size_t len;
};
struct blob packed(const void *bytes, size_t n, enum pack how);

#endif
