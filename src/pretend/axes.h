/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in a command line and their values: --vary '{mb}=1..8'. A layout is a value for each name.
 *
 * Ownership: axes own names and values; the caller owns a made command (frag_words_release).
 */
#ifndef FRAG_START_AXES_H
#define FRAG_START_AXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frag/base.h>
#include <frag/error.h>

#define FRAG_AXES_MAX 16u
#define FRAG_AXIS_NAME 40u
#define FRAG_AXIS_VALUES 4096u
#define FRAG_LAYOUTS_MAX 100000u

/* How memory changes with the values, in the order of the list. */
enum frag_axis_order { FRAG_AXIS_ANY, FRAG_AXIS_RISING, FRAG_AXIS_FALLING };

struct frag_axis {
	char name[FRAG_AXIS_NAME]; /* without braces */
	char **values;
	size_t count;
	enum frag_axis_order order;
	bool implied;	    /* it need not be in the command: the number of ranks */
	const char **words; /* [count] constant words in place of each value, or NULL */
};

struct frag_axes {
	struct frag_axis list[FRAG_AXES_MAX];
	size_t count;
	uint16_t *at; /* [layouts_count * count]: the values of each layout */
	size_t layouts_count;
};

/* "{tp}=1,2,4", "mb=1..8", "seq=1024..65536*2" (powers), "{ac}=none,full". Errors: FRAG_EUSAGE. */
int frag_axes_add(struct frag_axes *x, const char *text, struct frag_err *err);
/* Names with commas, with braces or without. */
int frag_axes_set_order(struct frag_axes *x, const char *names, enum frag_axis_order order,
			struct frag_err *err);
/* Sets the order of undeclared axes by their usual names: batch, micro-batch, sequence rise; recomputation falls. */
void frag_axes_guess_order(struct frag_axes *x);
/* Checks that every name is used in the command or the settings, and that every {name} there has values. {{name}} is a literal {name}. */
int frag_axes_check(const struct frag_axes *x, char *const *words, char *const *settings,
		    struct frag_err *err);
/* Lists all layouts that meet all conditions. */
int frag_axes_expand(struct frag_axes *x, const char *const *where, size_t where_count,
		     struct frag_err *err);
void frag_axes_release(struct frag_axes *x);

const char *frag_axes_value(const struct frag_axes *x, size_t layout, size_t axis);
/* "tp=2 mb=4", escaped for display; skip: omits this axis, SIZE_MAX = none. */
void frag_axes_text(const struct frag_axes *x, size_t layout, size_t skip, char *buf, size_t cap);
/* Adds a word, which is the list's then; NULL: memory is short. *words: NULL at first. */
int frag_words_add(char ***words, char *word, struct frag_err *err);
/* The command of a layout, in new memory. */
int frag_axes_words(const struct frag_axes *x, size_t layout, char *const *words, char ***out,
		    struct frag_err *err);

/* ---- conditions (where.c) ------------------------------------------------------------- */

/*
 * Conditions on names and numbers: tp*pp <= world && ac != 'full'.
 *
 * Numbers with + - * / %, comparisons, && || !, parentheses; texts in quotes, only for == and !=. A
 * name stands for its value, with braces or without; a value that is not a number is a text.
 * Evaluated while parsing, so there is no tree to free.
 */
/* The value of a name, or NULL: unknown. Borrowed. */
typedef const char *(*frag_where_value)(const void *ctx, const char *name, size_t len);

/* Errors: FRAG_EUSAGE with the offset, from 0; also for a division by zero. */
int frag_where_holds(const char *text, frag_where_value value, const void *ctx, bool *holds,
		     struct frag_err *err);
/* Parses all of `text` as a number. */
bool frag_where_number(const char *text, size_t len, double *out);

#endif
