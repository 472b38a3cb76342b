/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for large arrays, in huge pages if the system has them: a page fault costs more than
 * reading the bytes that fill the page. Small arrays come from the usual allocator, which frees and
 * resizes all of them (frag_host_free, frag_host_realloc).
 */
#ifndef FRAG_TRACE_PAGES_H
#define FRAG_TRACE_PAGES_H

#include <frag/base.h>

/* From this size on, too: in a process that reads many files, the usual memory is free. */
#define FRAG_PAGES_HUGE ((size_t)2 << 20)

/* Grows an array, or makes a new one (old = NULL), of `count` elements of `unit` bytes. The contents
 * are kept; new elements are not initialised. Returns NULL and keeps the old array if memory is
 * short or the size overflows. pre: count >= old_count. */
void *frag_pages_grow(void *old, size_t old_count, size_t count, size_t unit);

#endif
