/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by doubling. */
#ifndef FRAG_TRACE_GROW_H
#define FRAG_TRACE_GROW_H

#include <frag/base.h>
#include <frag/error.h>

/* Makes room for one more element behind `count` in *array_ptr, doubling; 0 or FRAG_ENOMEM. */
int frag_grow(void *array_ptr, size_t count, size_t *cap, size_t unit, const char *what,
	      struct frag_err *err);

#endif
