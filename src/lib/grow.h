/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by doubling. Ownership: the caller frees the array with frag_host_free. */
#ifndef FRAG_LIB_GROW_H
#define FRAG_LIB_GROW_H

#include <frag/base.h>
#include <frag/error.h>

/*
 * Makes room for `need` elements of `unit` bytes in *array_ptr, which has *cap; keeps the contents.
 * 0, or FRAG_ENOMEM with `what` in the message and nothing changed.
 */
int frag_grow_to(void *array_ptr, size_t need, size_t *cap, size_t unit, const char *what,
		 struct frag_err *err);

static inline int frag_grow(void *array_ptr, size_t count, size_t *cap, size_t unit,
			    const char *what, struct frag_err *err)
{
	return FRAG_LIKELY(count < *cap) ? 0
					 : frag_grow_to(array_ptr, count + 1, cap, unit, what, err);
}

/* Makes room for one more after `count`. */
#define FRAG_GROW(array, count, cap, what, err) \
	frag_grow(&(array), (count), &(cap), sizeof(*(array)), (what), (err))

#endif
