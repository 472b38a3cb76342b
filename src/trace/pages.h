/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for large arrays, in huge pages if the system has them: a page fault costs more than
 * reading the bytes that fill the page. Small arrays come from the usual allocator.
 */
#ifndef FRAG_TRACE_PAGES_H
#define FRAG_TRACE_PAGES_H

#include <frag/base.h>

#define FRAG_PAGES_HUGE ((size_t)2 << 20)
/* From this size on it pays: filling a huge page takes about as long as 100 faults of 4 KiB. */
#define FRAG_PAGES_FROM (FRAG_PAGES_HUGE / 4)
/* For results the bar is higher: in a process that reads many files, the usual memory is free. */
#define FRAG_PAGES_RESULT_FROM FRAG_PAGES_HUGE

/* Grows an array from this function, or a new one (old = NULL), to `count` elements of `unit`
 * bytes. The contents are kept, large ones without copying; new elements are not initialised.
 * Returns NULL and keeps the old array if memory is short or the size overflows. pre: count >=
 * old_count. */
void *frag_pages_grow(void *old, size_t old_count, size_t count, size_t unit);
/* NULL is allowed. */
void frag_pages_free(void *array, size_t count, size_t unit);

/* An array that the usual functions free and resize (frag_host_free, frag_host_realloc). */
void *frag_pages_result(size_t count, size_t unit);

#endif
