/* SPDX-License-Identifier: Apache-2.0 */
/* What an input holds, plain: the file "input", or where `bytes` is not NULL, those in memory. Failures fail the test. */
#ifndef TESTS_SUPPORT_PLAIN_BYTES_H
#define TESTS_SUPPORT_PLAIN_BYTES_H

#include <stdio.h>

/* Reads one by one, and again in pieces of all sizes. The result is that of the input, with test_err. */
int plain_bytes(const void *bytes, size_t count, FILE *to);
/* Each allocation fails once. */
void plain_bytes_short_of_memory(const void *bytes, size_t count);
/* A .zst of them goes to `to`, with a checksum, as the zstd program writes it. */
void pack_zstd(const void *bytes, size_t count, FILE *to);

#endif
