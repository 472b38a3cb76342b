/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as JSON values; new references, NULL when memory is short. */
#ifndef FRAG_ANSWER_JSON_H
#define FRAG_ANSWER_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* null above 2^63 - 1: there "none" and "unknown" are, and no number of ours is. */
static inline json_t *frag_json_number(uint64_t n)
{
	return n > INT64_MAX ? json_null() : json_integer((json_int_t)n);
}

#endif
