/* SPDX-License-Identifier: Apache-2.0 */
/* Large arrays begin at multiples of a huge page: only then can huge pages back all of them. */
#include "pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *frag_pages_grow(void *old, size_t old_count, size_t count, size_t unit)
{
	size_t bytes;
	void *at;

	if (__builtin_mul_overflow(count, unit, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	if (bytes < FRAG_PAGES_HUGE)
		return frag_host_realloc(old, count, unit);
	bytes = frag_round_up(bytes, FRAG_PAGES_HUGE);
	at = frag_host_alloc(1); /* fails on demand (frag_host_fail_after) */
	frag_host_free(at);
	at = at ? aligned_alloc(FRAG_PAGES_HUGE, bytes) : NULL;
	if (!at)
		return NULL;
	(void)madvise(at, bytes, MADV_HUGEPAGE); /* advice: it may be refused */
	if (old)
		memcpy(at, old, old_count * unit);
	frag_host_free(old);
	return at;
}
