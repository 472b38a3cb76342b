/* SPDX-License-Identifier: Apache-2.0 */
#include "grow.h"

#include <string.h>

#define FIRST 64u

int frag_grow_to(void *array_ptr, size_t need, size_t *cap, size_t unit, const char *what,
		 struct frag_err *err)
{
	size_t want = FRAG_MAX(need, *cap ? *cap * 2 : FIRST);
	void *old, *more;

	if (need <= *cap)
		return 0;
	memcpy(&old, array_ptr, sizeof(old));
	more = frag_host_realloc(old, want, unit);
	if (!more)
		return frag_fail_nomem(err, what);
	memcpy(array_ptr, &more, sizeof(more));
	*cap = want;
	return 0;
}
