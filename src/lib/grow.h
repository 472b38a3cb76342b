/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by doubling. Ownership: the array is the caller's, for frag_host_free. */
#ifndef FRAG_LIB_GROW_H
#define FRAG_LIB_GROW_H

#include <frag/base.h>
#include <frag/error.h>

/*
 * Room for `need` elements of `unit` bytes in *array_ptr, *cap of which there are; what is in it
 * stays. 0, or FRAG_ENOMEM with `what` in the message, and nothing has changed.
 */
int frag_grow_to(void *array_ptr, size_t need, size_t *cap, size_t unit, const char *what,
		 struct frag_err *err);

static inline int frag_grow(void *array_ptr, size_t count, size_t *cap, size_t unit,
			    const char *what, struct frag_err *err)
{
	return FRAG_LIKELY(count < *cap) ? 0
					 : frag_grow_to(array_ptr, count + 1, cap, unit, what, err);
}

/* Room for one more behind `count`. */
#define FRAG_GROW(array, count, cap, what, err) \
	frag_grow(&(array), (count), &(cap), sizeof(*(array)), (what), (err))

#endif
