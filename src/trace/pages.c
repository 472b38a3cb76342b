/* SPDX-License-Identifier: Apache-2.0 */
/* Large arrays are mappings aligned to huge pages: only then can huge pages back them, and move
 * whole when they grow. Under the address sanitizer everything comes from the usual allocator,
 * which the sanitizer watches. */
#include "pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define OWN_MAPPINGS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define OWN_MAPPINGS 0
#endif
#endif
#ifndef OWN_MAPPINGS
#define OWN_MAPPINGS 1
#endif

static bool is_mapping(size_t bytes)
{
	return OWN_MAPPINGS && bytes >= FRAG_PAGES_FROM;
}

/* Mappings fail on demand like the usual allocator (frag_host_fail_after). */
static bool may_allocate(void)
{
	void *probe = frag_host_alloc(1);

	frag_host_free(probe);
	return probe != NULL;
}

static size_t whole_pages(size_t bytes)
{
	return frag_round_up(bytes, FRAG_PAGES_HUGE);
}

/* Room for `bytes` at a multiple of a huge page, neither readable nor writable yet. */
static char *reserve(size_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *from, *begin;
	size_t head;

	/* cppcheck-suppress invalidFunctionArg ; -1 is what anonymous memory takes */
	from = mmap(NULL, bytes + FRAG_PAGES_HUGE, PROT_NONE, flags, -1, 0);
	if (from == MAP_FAILED)
		return NULL;
	head = (size_t)(-(uintptr_t)from & (FRAG_PAGES_HUGE - 1));
	begin = from + head;
	if (head)
		munmap(from, head);
	munmap(begin + bytes, FRAG_PAGES_HUGE - head);
	return begin;
}

static void *map(size_t bytes)
{
	char *at = reserve(bytes);

	if (!at)
		return NULL;
	if (mprotect(at, bytes, PROT_READ | PROT_WRITE)) {
		munmap(at, bytes);
		return NULL;
	}
	/* advice: it may be refused */
	(void)madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

static void *remap(void *old, size_t old_bytes, size_t bytes)
{
	void *at = mremap(old, old_bytes, bytes, 0);
	char *room;

	if (at != MAP_FAILED)
		return at;
	room = reserve(bytes);
	if (!room)
		return NULL;
	at = mremap(old, old_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	if (at != MAP_FAILED)
		return at;
	munmap(room, bytes);
	return NULL;
}

void *frag_pages_grow(void *old, size_t old_count, size_t count, size_t unit)
{
	size_t bytes, old_bytes = old_count * unit;
	void *at;

	if (__builtin_mul_overflow(count, unit, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	if (!is_mapping(bytes))
		return frag_host_realloc(old, count, unit);
	if (!may_allocate())
		return NULL;
	if (old && is_mapping(old_bytes))
		return whole_pages(bytes) == whole_pages(old_bytes)
			       ? old
			       : remap(old, whole_pages(old_bytes), whole_pages(bytes));
	at = map(whole_pages(bytes));
	if (at && old) {
		memcpy(at, old, old_bytes);
		frag_host_free(old);
	}
	return at;
}

void frag_pages_free(void *array, size_t count, size_t unit)
{
	if (array && is_mapping(count * unit))
		munmap(array, whole_pages(count * unit));
	else
		frag_host_free(array);
}

void *frag_pages_result(size_t count, size_t unit)
{
	size_t bytes;
	void *at;

	if (__builtin_mul_overflow(count, unit, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	if (!OWN_MAPPINGS || bytes < FRAG_PAGES_RESULT_FROM)
		return frag_host_realloc(NULL, count, unit);
	if (!may_allocate())
		return NULL;
	at = aligned_alloc(FRAG_PAGES_HUGE, whole_pages(bytes));
	if (at)
		(void)madvise(at, whole_pages(bytes), MADV_HUGEPAGE);
	return at;
}
