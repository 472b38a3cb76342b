/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search. */
#ifndef FRAG_LIB_BISECT_H
#define FRAG_LIB_BISECT_H

#include <stddef.h>

/*
 * Sets `at` to the first number in [from, to) for which `before`, an expression in `at`, is false,
 * else to `to`. pre: it is true up to some number and false from there on. `at`: a variable of any
 * unsigned type that can hold `to`.
 */
#define FRAG_BISECT(at, from, to, before) \
	do { \
		size_t low_ = (from), high_ = (to); \
		while (low_ < high_) { \
			(at) = (__typeof__(at))(low_ + (high_ - low_) / 2); \
			if (before) \
				low_ = (size_t)(at) + 1; \
			else \
				high_ = (at); \
		} \
		(at) = (__typeof__(at))low_; \
	} while (0)

#endif
