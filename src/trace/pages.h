/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for large arrays in huge pages where the system gives them: a page fault costs
 * more than reading the bytes that fill the page. What is small comes from the usual
 * allocator.
 */
#ifndef FRAG_TRACE_PAGES_H
#define FRAG_TRACE_PAGES_H

#include <frag/base.h>

#define FRAG_PAGES_HUGE ((size_t)2 << 20)
/* From here on it pays: to fill a huge page takes about as long as 100 faults of 4 KiB. */
#define FRAG_PAGES_FROM (FRAG_PAGES_HUGE / 4)
/* Of results: in a process that reads again and again, the usual allocator has used memory for what
 * is not large, and that costs nothing. */
#define FRAG_PAGES_RESULT_FROM FRAG_PAGES_HUGE

/* Array of `count` elements of `unit` bytes, not filled; old: one from here of old_count elements,
 * or NULL. Its contents stay and move without being copied. NULL, and the old one is left alone,
 * if there is no memory or the size overflows. pre: count >= old_count. */
void *frag_pages_grow(void *old, size_t old_count, size_t count, size_t unit);
/* NULL is allowed. */
void frag_pages_free(void *array, size_t count, size_t unit);

/* An array that the usual functions free and resize (frag_host_free, frag_host_realloc). */
void *frag_pages_result(size_t count, size_t unit);

#endif
