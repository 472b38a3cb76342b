/* SPDX-License-Identifier: Apache-2.0 */
#include "grow.h"

#include <string.h>

/* With a sanitizer, short arrays always move: tests then see a pointer that was kept. */
#ifdef __SANITIZE_ADDRESS__
#define FIRST 1u
#define STEP(cap) ((cap) < 64 ? (cap) + 1 : 2 * (cap))
#else
#define FIRST 64u
#define STEP(cap) (2 * (cap))
#endif

int frag_grow_to(void *array_ptr, size_t need, size_t *cap, size_t unit, const char *what,
		 struct frag_err *err)
{
	size_t want = FRAG_MAX(need, *cap ? STEP(*cap) : FIRST);
	void *old, *more;

	if (need <= *cap)
		return 0;
	memcpy(&old, array_ptr, sizeof(old));
	more = frag_host_realloc(old, want, unit);
	FRAG_CHECK_ALLOC(more, what, err);
	memcpy(array_ptr, &more, sizeof(more));
	*cap = want;
	return 0;
}
