/* SPDX-License-Identifier: Apache-2.0 */
/* Puts options of launchers into a command; see preset.h. */
#include "preset.h"

#include <stdio.h>
#include <string.h>

#include <frag/base.h>

#include "base/args.h"

const struct frag_preset frag_presets[] = {
#define FRAG_PRESET(n, s, e) { .preset = n, .summary = s, .serves = e },
#define FRAG_NAME(n, o, ...) { .name = n, .option = o, __VA_ARGS__ },
#define FRAG_RISES(n, o, ...) { .name = n, .option = o, .rises = true, __VA_ARGS__ },
#include "presets.def"
	{ 0 },
};

static int find(const char *name, const struct frag_preset **out, struct frag_err *err)
{
	const char *names[FRAG_ARRAY_LEN(frag_presets)] = { NULL };
	size_t n = 0;

	for (*out = frag_presets; (*out)->preset || (*out)->name; ++*out) {
		if (!(*out)->preset)
			continue;
		names[n++] = (*out)->preset;
		if (!strcmp((*out)->preset, name))
			return 0;
	}
	return frag_fail_unknown(err, "unknown preset", name, names, "");
}

/* The row of a name; a row without a name: not found. */
static const struct frag_preset *find_name(const struct frag_preset *p, const char *name)
{
	for (p++; p->name && strcmp(p->name, name) != 0;)
		p++;
	return p;
}

const char *frag_preset_engine(char *const *words)
{
	for (; *words; words++)
		for (const struct frag_preset *p = frag_presets; p->preset || p->name; p++)
			if (p->serves && strstr(*words, p->preset))
				return p->preset;
	return NULL;
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

	for (const struct frag_preset *o = p + 1; o->name; o++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 *known ? ", " : "", o->name);
	return frag_fail(err, FRAG_EUSAGE,
			 "preset %s has no name '%s', and the command no {%s}; it has %.300s",
			 p->preset, name, name, known);
}

/* Sets the words for each value of the axis, if the preset has words for its values. */
static int choose(struct frag_axis *a, const struct frag_preset *o, struct frag_err *err)
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
			return frag_fail(err, FRAG_EUSAGE,
					 "unknown value '%.60s' of %s; known: %s, %s …",
					 a->values[v], a->name, o->values[0], o->values[1]);
	}
	return 0;
}

/* Replaces a word, and frees it. */
static int replace(char **word, struct frag_err *err, const char *fmt, const char *a, const char *b)
{
	char text[256];

	snprintf(text, sizeof(text), fmt, a, b);
	frag_host_free(*word);
	*word = frag_host_strdup(text);
	FRAG_CHECK_ALLOC(*word, "command", err);
	return 0;
}

static char without_underscore(char c)
{
	return c == '_' ? '-' : c;
}

/* Is the word this option, alone or with its value? Underscores equal hyphens. */
static bool is_option(const char *word, const char *option, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (without_underscore(word[i]) != without_underscore(option[i]))
			return false;
	return !word[len] || word[len] == '=';
}

static bool is_one_of(const char *word, const char *options)
{
	for (size_t n; options && *options; options += n + (options[n] == ' ')) {
		n = strcspn(options, " ");
		if (is_option(word, options, n))
			return true;
	}
	return false;
}

static void remove_word(char **word)
{
	frag_host_free(*word);
	for (; (word[0] = word[1]); word++)
		;
}

static char *const *find_option(char *const *words, const struct frag_preset *o)
{
	while (*words && !(o->option && is_one_of(*words, o->option)) &&
	       !is_one_of(*words, o->also))
		words++;
	return words;
}

/* Is the option followed by a value in one of its words? */
static bool takes_value(const struct frag_preset *o)
{
	for (size_t k = 0; k < FRAG_PRESET_CHOICES && o->words[k]; k++)
		if (!strncmp(o->words[k], o->option, strlen(o->option)) &&
		    o->words[k][strlen(o->option)] == ' ')
			return true;
	return false;
}

/* Is this word the value of the option before it? */
static bool is_value(const char *word)
{
	return word && word[0] != '-' && !strchr(word, '{');
}

static void drop(char **words, const struct frag_preset *o)
{
	while (*words) {
		if (!is_one_of(*words, o->drop)) {
			words++;
			continue;
		}
		if (!strchr(*words, '=') && is_value(words[1]))
			remove_word(words + 1);
		remove_word(words);
	}
}

/* Puts {name} for the option, its value or both; appends them if missing. words: room for two. */
static int set(char **words, const struct frag_preset *o, struct frag_err *err)
{
	FRAG_AUTO_FREE char *option = NULL;
	char **at, *equals;

	drop(words, o);
	at = words + (find_option(words, o) - words);
	equals = *at ? strchr(*at, '=') : NULL;
	if (o->values[0]) {
		if (*at && !equals && takes_value(o) && is_value(at[1]))
			remove_word(at + 1);
		return replace(at, err, "{%s}%s", o->name, "");
	}
	option = frag_host_strdup(*at ? *at : o->option);
	FRAG_CHECK_ALLOC(option, "command", err);
	option[strcspn(option, "=")] = '\0'; /* as the user spells it */
	FRAG_TRY(replace(at, err, equals ? "%s={%s}" : "%s", option, o->name));
	return equals ? 0 : replace(at + 1, err, "{%s}%s", o->name, "");
}

/* ---- files --------------------------------------------------------------------------------- */

/* A configuration file in the command with a key for this name, as "FILE:KEY={name}"; or false. */
static bool find_file(char *const *words, const struct frag_preset *o, char *buf, size_t cap)
{
	for (char *const *w = words + 1; words[0] && *w; w++) {
		const char *equals = **w == '-' ? strchr(*w, '=') : NULL;
		const char *option = equals ? *w : w[-1], *file = equals ? equals + 1 : *w, *key;
		bool yaml;

		key = !frag_config_known(file, &yaml) ? NULL : yaml ? o->yaml : o->json;
		if (!key || *option != '-' ||
		    !(strstr(option, "config") || strstr(option, "deepspeed")))
			continue;
		snprintf(buf, cap, "%.900s:%s={%s}", file, key, o->name);
		return true;
	}
	return false;
}

/* Applies one name to the command or to a configuration file of it. */
static int apply(struct frag_axis *a, const struct frag_preset *o, char **words, char **settings,
		 struct frag_err *err)
{
	char text[1200];

	if (o->rises && a->order == FRAG_AXIS_ANY)
		a->order = FRAG_AXIS_RISING;
	if (!*find_option(words, o) && find_file(words, o, text, sizeof(text)))
		return frag_config_add(settings, text, err);
	if (!o->option)
		return frag_fail(err, FRAG_EUSAGE,
				 "'%s' is a value of a configuration file, and the command names "
				 "none that is .json or .yaml",
				 a->name);
	FRAG_TRY(choose(a, o, err));
	return set(words, o, err);
}

const char *frag_preset_value(const char *preset, const char *name, char *const *words)
{
	const struct frag_preset *o;
	const struct frag_preset *p = NULL;
	struct frag_err unknown;
	char *const *at;

	if (find(preset, &p, &unknown))
		return NULL;
	o = find_name(p, name);
	at = o->name ? find_option(words, o) : NULL;
	if (!at || !*at)
		return NULL;
	return strchr(*at, '=') ? strchr(*at, '=') + 1 : is_value(at[1]) ? at[1] : NULL;
}

int frag_preset_apply(const char *preset, struct frag_axes *axes, char *const *words,
		      char **settings, char ***out, struct frag_err *err)
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
		const struct frag_preset *o = find_name(p, a->name);

		if (has_braces(words, a->name) || has_braces(settings, a->name) ||
		    (!o->name && a->implied))
			continue;
		if (!o->name)
			return fail_unknown(p, a->name, err);
		FRAG_TRY(apply(a, o, *out, settings, err));
	}
	return 0;
}
