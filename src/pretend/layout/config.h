/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values within a file that the command names (JSON, YAML), in place of options: DeepSpeed's configuration, Accelerate's, or one's own.
 *
 *	ds.json:zero_optimization.stage={zero}
 *
 * The user's file stays as it is: a layout reads a copy, named after what is in it, so that recordings of the same values are found again.
 * Copies are kept in the user's cache; of more than 2,048, or 64 MiB, those that were used last stay.
 */
#ifndef FRAG_LAYOUT_CONFIG_H
#define FRAG_LAYOUT_CONFIG_H

#include "pretend/layout/axes.h"

#define FRAG_CONFIG_MAX 16u

/* settings: [FRAG_CONFIG_MAX + 1], ended by NULL; the text is copied. Errors: FRAG_EUSAGE. */
int frag_config_add(char **settings, const char *text, struct frag_err *err);
/* Copies of the files with the values of a layout take the place of their names in *words, which is the caller's. Errors: FRAG_EUSAGE, FRAG_EINPUT. */
int frag_config_apply(char *const *settings, const struct frag_axes *axes, size_t layout,
		      char **words, struct frag_err *err);
/* The text of a file with the value at a.b.c set, in new memory. Errors: FRAG_EINPUT. */
int frag_config_set(const char *text, bool yaml, const char *key, const char *value, char **out,
		    struct frag_err *err);
/* YAML by its name, or JSON; false: neither. */
bool frag_config_known(const char *path, bool *yaml);

#endif
