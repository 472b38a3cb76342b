/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the folder of a cache small: removes the files that were used longest ago. */
#ifndef FRAG_BASE_OLDEST_H
#define FRAG_BASE_OLDEST_H

#include <stddef.h>
#include <stdint.h>

/*
 * Keeps `count` files that take `bytes`, and those used within the last in_use_s seconds. A file
 * was used at its date of access. A folder that cannot be read is left as it is.
 */
void frag_remove_oldest(const char *folder, size_t count, uint64_t bytes, int64_t in_use_s);

#endif
