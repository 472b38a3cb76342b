/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on names and numbers: tp*pp <= world && ac != 'full'.
 *
 * Numbers with + - * / %, comparisons, && || !, parentheses; texts in quotes, only for == and !=. A
 * name stands for its value, with braces or without; a value that is not a number is a text.
 * Evaluated while parsing, so there is no tree to free.
 */
#ifndef FRAG_LAYOUT_WHERE_H
#define FRAG_LAYOUT_WHERE_H

#include <stdbool.h>
#include <stddef.h>

#include <frag/error.h>

/* The value of a name, or NULL: unknown. Borrowed. */
typedef const char *(*frag_where_value)(const void *ctx, const char *name, size_t len);

/* Errors: FRAG_EUSAGE with the offset, from 0; also for a division by zero. */
int frag_where_holds(const char *text, frag_where_value value, const void *ctx, bool *holds,
		     struct frag_err *err);
/* Parses all of `text` as a number. */
bool frag_where_number(const char *text, size_t len, double *out);

#endif
