/* SPDX-License-Identifier: Apache-2.0 */
/* Options of launchers put into a command; see preset.h. */
#include "preset.h"

#include <stdio.h>
#include <string.h>

#include <frag/base.h>
#include <frag/opt.h>

#define FRAG_ENTRY(name) extern const struct frag_preset frag_preset_##name;
#include "preset_list.inc"
#undef FRAG_ENTRY

static const struct frag_preset *const presets[] = {
#define FRAG_ENTRY(name) &frag_preset_##name,
#include "preset_list.inc"
#undef FRAG_ENTRY
	NULL
};

#define PRESETS (FRAG_ARRAY_LEN(presets) - 1)

const struct frag_preset *const *frag_presets(void)
{
	return presets;
}

static int find(const char *name, const struct frag_preset **out, struct frag_err *err)
{
	const char *names[PRESETS + 1] = { NULL }, *near;

	for (size_t i = 0; i < PRESETS; i++) {
		names[i] = presets[i]->name;
		if (!strcmp(names[i], name)) {
			*out = presets[i];
			return 0;
		}
	}
	near = frag_nearest(name, names);
	return near ? frag_fail(err, FRAG_EUSAGE, "unknown preset '%.60s'; did you mean '%s'?",
				name, near)
		    : frag_fail(err, FRAG_EUSAGE, "unknown preset '%.60s'", name);
}

/* Is {name} in the command? */
static bool has_braces(char *const *words, const char *name)
{
	char braces[FRAG_AXIS_NAME + 2];

	snprintf(braces, sizeof(braces), "{%s}", name);
	for (; *words; words++)
		if (strstr(*words, braces))
			return true;
	return false;
}

static int fail_unknown(const struct frag_preset *p, const char *name, struct frag_err *err)
{
	char known[400] = "";

	for (const struct frag_preset_option *o = p->options; o->name; o++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 *known ? ", " : "", o->name);
	return frag_fail(err, FRAG_EUSAGE,
			 "preset %s has no name '%s', and the command no {%s}; it has %.300s",
			 p->name, name, name, known);
}

/* Words of their own for each value of the axis; those that have none keep the option with its value. */
static int choose(struct frag_axis *a, const struct frag_preset_option *o, struct frag_err *err)
{
	const char **chosen;

	if (!o->values[0])
		return 0;
	FRAG_TRY_CALLOC(chosen, a->count, "preset", err);
	a->words = chosen;
	for (size_t v = 0; v < a->count; v++) {
		for (size_t k = 0; k < FRAG_PRESET_CHOICES && o->values[k]; k++)
			if (!strcmp(o->values[k], a->values[v]))
				chosen[v] = o->words[k];
		if (!chosen[v])
			return frag_fail(err, FRAG_EUSAGE, "'%.60s' is no value of %s: %s, %s …",
					 a->values[v], a->name, o->values[0], o->values[1]);
	}
	return 0;
}

/* In place of a word; it is freed. */
static int replace(char **word, struct frag_err *err, const char *fmt, const char *a, const char *b)
{
	char text[256];

	snprintf(text, sizeof(text), fmt, a, b);
	frag_host_free(*word);
	*word = frag_host_strdup(text);
	FRAG_CHECK_ALLOC(*word, "command", err);
	return 0;
}

/* The option, its value or both become {name}, where they are; else they follow at the end. pre: room for two words. */
static int set(char **words, const struct frag_preset_option *o, struct frag_err *err)
{
	size_t len = strlen(o->option);
	bool alone = o->values[0];

	while (*words &&
	       (strncmp(*words, o->option, len) || ((*words)[len] && (*words)[len] != '=')))
		words++;
	if (alone && *words && words[1] && !(*words)[len] && words[1][0] != '-') { /* its value */
		frag_host_free(words[1]);
		for (char **w = words + 1; (w[0] = w[1]); w++)
			;
	}
	if (alone)
		return replace(words, err, "{%s}%s", o->name, "");
	if (*words && (*words)[len])
		return replace(words, err, "%s={%s}", o->option, o->name);
	return replace(words, err, "%s%s", o->option, "")
		       ?: replace(words + 1, err, "{%s}%s", o->name, "");
}

int frag_preset_apply(const char *preset, struct frag_axes *axes, char *const *words, char ***out,
		      struct frag_err *err)
{
	const struct frag_preset *p = NULL;
	size_t count = 0;

	if (preset)
		FRAG_TRY(find(preset, &p, err));
	while (words[count])
		count++;
	FRAG_TRY_CALLOC(*out, count + 2 * FRAG_AXES_MAX + 1, "command", err);
	for (size_t i = 0; i < count; i++) {
		(*out)[i] = frag_host_strdup(words[i]);
		FRAG_CHECK_ALLOC((*out)[i], "command", err);
	}
	for (size_t i = 0; p && i < axes->count; i++) {
		struct frag_axis *a = &axes->list[i];
		const struct frag_preset_option *o = p->options;

		while (o->name && strcmp(o->name, a->name) != 0)
			o++;
		if (has_braces(words, a->name) || (!o->name && a->implied))
			continue;
		if (!o->name)
			return fail_unknown(p, a->name, err);
		FRAG_TRY(choose(a, o, err));
		if (o->rises && a->order == FRAG_AXIS_ANY)
			a->order = FRAG_AXIS_RISING;
		FRAG_TRY(set(*out, o, err));
	}
	return 0;
}
