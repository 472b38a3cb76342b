/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchers with options of their own, so that users need no braces: one plug-in per file
 * preset_NAME.c, which defines struct frag_preset frag_preset_NAME; make finds it.
 */
#ifndef FRAG_LAYOUT_PRESET_H
#define FRAG_LAYOUT_PRESET_H

#include "pretend/layout/config.h"

#define FRAG_PRESET_OPTIONS 24u
#define FRAG_PRESET_CHOICES 6u

/* What a name stands for. */
struct frag_preset_option {
	const char *name;   /* of --vary */
	const char *option; /* "--micro-batch-size"; NULL: it is in files alone */
	bool rises;
	/* values that stand for words of their own ("" = none), in place of option and value; each ends with NULL */
	const char *values[FRAG_PRESET_CHOICES], *words[FRAG_PRESET_CHOICES];
	const char *also; /* other spellings, with a blank between; - and _ are the same */
	const char *drop; /* options that go with it, and are left out of the command */
	/* key of a configuration file that the command names, which is taken where the command has no such option; NULL = none */
	const char *json, *yaml;
};

struct frag_preset {
	const char *name;    /* of --preset */
	const char *summary; /* of what, and the releases that were looked at */
	struct frag_preset_option options[FRAG_PRESET_OPTIONS];
};

/* All of them by name, NULL-terminated. */
const struct frag_preset *const *frag_presets(void);
/* What the command gives for a name of a preset; NULL: nothing. */
const char *frag_preset_value(const char *preset, const char *name, char *const *words);
/*
 * The command with the options of the names that vary: a value that is there already is replaced, else the option is added at
 * the end. Names with braces in the command or the settings are left as they are. preset NULL: a copy. settings: [FRAG_CONFIG_MAX + 1],
 * to which values in files are added (config.h). *out: frag_words_release. Errors: FRAG_EUSAGE (unknown preset or name).
 */
int frag_preset_apply(const char *preset, struct frag_axes *axes, char *const *words,
		      char **settings, char ***out, struct frag_err *err);

#endif
