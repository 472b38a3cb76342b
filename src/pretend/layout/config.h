/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values in a JSON or YAML file of the command: the configuration of DeepSpeed, of Accelerate, or the user's own.
 *
 *	ds.json:zero_optimization.stage={zero}
 *
 * The user's file is never written: a layout reads a copy. A hash of its contents names the copy, so recordings of the same values
 * can be reused. The user's cache keeps the 2,048 copies, 64 MiB at most, that were used last.
 */
#ifndef FRAG_LAYOUT_CONFIG_H
#define FRAG_LAYOUT_CONFIG_H

#include "pretend/axes.h"

#define FRAG_CONFIG_MAX 16u

/* field, settings: [FRAG_CONFIG_MAX + 1], ended by NULL; the text is copied. Errors: FRAG_EUSAGE. */
int frag_config_add(void *field, const char *text, struct frag_err *err);
/* Replaces file names in words by copies with a layout's values. Errors: FRAG_EUSAGE, FRAG_EINPUT. */
int frag_config_apply(char *const *settings, const struct frag_axes *axes, size_t layout,
		      char **words, struct frag_err *err);
/* The text of a file with the value at a.b.c set, in new memory. A part of the key has at most 303 bytes. Errors: FRAG_EINPUT. */
int frag_config_set(const char *text, bool yaml, const char *key, const char *value, char **out,
		    struct frag_err *err);
/* Is it JSON or YAML, by the ending of its name? */
bool frag_config_known(const char *path, bool *yaml);

#endif
