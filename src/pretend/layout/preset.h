/* SPDX-License-Identifier: Apache-2.0 */
/* Launchers that name their own options, so that no braces are needed: presets.def lists them. */
#ifndef FRAG_LAYOUT_PRESET_H
#define FRAG_LAYOUT_PRESET_H

#include "pretend/layout/config.h"

#define FRAG_PRESET_CHOICES 6u

/* A preset, or one of its names: these follow it. */
struct frag_preset {
	const char *preset;  /* of --preset; NULL: a name of the preset above */
	const char *summary; /* what it is, and the releases that were looked at */
	const char *name;    /* of --vary */
	const char *option;  /* "--micro-batch-size"; NULL: it is in files alone */
	/* values that stand for words of their own ("" = none), in place of option and value; each ends with NULL */
	const char *values[FRAG_PRESET_CHOICES], *words[FRAG_PRESET_CHOICES];
	const char *also; /* other spellings, with a blank between; - and _ are the same */
	const char *drop; /* options that go with it, and are left out of the command */
	/* its key in a configuration file, if the command lacks the option; NULL = none */
	const char *json, *yaml;
	bool serves; /* a serving engine, which has this name in its command */
	bool rises;  /* memory rises with the value */
};

/* The last row has neither preset nor name. */
extern const struct frag_preset frag_presets[];
/* The serving engine that the command names; NULL: none. */
const char *frag_preset_engine(char *const *words);
/* What the command gives for a name of a preset; NULL: nothing. */
const char *frag_preset_value(const char *preset, const char *name, char *const *words);
/*
 * The command with the options of the names that vary: a value that is there already is replaced,
 * else the option is added at the end. Names with braces in the command or the settings are left as
 * they are. preset NULL: a copy. settings: [FRAG_CONFIG_MAX + 1], to which values in files are
 * added (config.h). *out: frag_words_release. Errors: FRAG_EUSAGE (unknown preset or name).
 */
int frag_preset_apply(const char *preset, struct frag_axes *axes, char *const *words,
		      char **settings, char ***out, struct frag_err *err);

#endif
