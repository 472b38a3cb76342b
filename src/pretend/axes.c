/* SPDX-License-Identifier: Apache-2.0 */
/* Names and their values; see axes.h. All texts are the user's. */
#include "axes.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/base.h>

#include "base/clean.h"
#include "lib/grow.h"

/* ---- one name -------------------------------------------------------------------------- */

static bool is_letter(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

/* The length of a name at the front; 0: none. */
static size_t name_length(const char *text)
{
	size_t n = 0;

	if (!is_letter(*text))
		return 0;
	while (is_letter(text[n]) || isdigit((unsigned char)text[n]))
		n++;
	return n < FRAG_AXIS_NAME ? n : 0;
}

static int add_value(struct frag_axis *a, const char *text, size_t len, struct frag_err *err)
{
	size_t cap = a->count;
	char *copy;

	if (a->count == FRAG_AXIS_VALUES)
		return frag_fail(err, FRAG_EUSAGE, "--vary {%s} has more than %u values", a->name,
				 FRAG_AXIS_VALUES);
	for (size_t i = 0; i < a->count; i++)
		if (strlen(a->values[i]) == len && !memcmp(a->values[i], text, len))
			return frag_fail(err, FRAG_EUSAGE, "--vary {%s} has the value '%s' twice",
					 a->name, a->values[i]);
	FRAG_TRY(FRAG_GROW(a->values, a->count, cap, "values", err));
	copy = frag_host_alloc(len + 1);
	FRAG_CHECK_ALLOC(copy, "values", err);
	memcpy(copy, text, len);
	copy[len] = '\0';
	a->values[a->count++] = copy;
	return 0;
}

/* Is it meant as "1..8" or "1024..65536*2"? "../data" is not. */
static bool is_range(const char *text)
{
	text += *text == '-' || *text == '+';
	return isdigit((unsigned char)*text) &&
	       !strncmp(text + strspn(text, "0123456789"), "..", 2);
}

static int add_range(struct frag_axis *a, const char *text, size_t len, struct frag_err *err)
{
	unsigned long long first, last, factor = 0;
	char copy[60];
	int n = 0, all = 0;

	snprintf(copy, sizeof(copy), "%.*s", (int)FRAG_MIN(len, sizeof(copy) - 1), text);
	if (strspn(copy, "0123456789.*") < len ||
	    sscanf(copy, "%10llu..%10llu%n*%10llu%n", &first, &last, &n, &factor, &all) < 2 ||
	    copy[FRAG_MAX(n, all)] || FRAG_MAX(first, FRAG_MAX(last, factor)) >= UINT32_MAX)
		return frag_fail(err, FRAG_EUSAGE,
				 "--vary {%s}: invalid range '%s'; expected FIRST..LAST or "
				 "FIRST..LAST*FACTOR, with numbers from 0 to %u",
				 a->name, copy, UINT32_MAX - 1);
	if (first > last || (all && (!first || factor < 2)))
		return frag_fail(err, FRAG_EUSAGE,
				 "--vary {%s}: the range is empty; expected FIRST..LAST or "
				 "FIRST..LAST*FACTOR",
				 a->name);
	for (; first <= last; first = all ? first * factor : first + 1) {
		char number[24];

		FRAG_TRY(add_value(a, number, (size_t)sprintf(number, "%llu", first), err));
	}
	return 0;
}

static int add_values(struct frag_axis *a, const char *text, struct frag_err *err)
{
	for (;;) {
		size_t n = strcspn(text, ",");

		if (!n)
			return frag_fail(err, FRAG_EUSAGE, "--vary {%s} has an empty value",
					 a->name);
		FRAG_TRY(is_range(text) ? add_range(a, text, n, err) : add_value(a, text, n, err));
		if (!text[n])
			return 0;
		text += n + 1;
	}
}

static struct frag_axis *find(const struct frag_axes *x, const char *name, size_t len)
{
	for (size_t i = 0; i < x->count; i++)
		if (strlen(x->list[i].name) == len && !memcmp(x->list[i].name, name, len))
			return (struct frag_axis *)&x->list[i];
	return NULL;
}

int frag_axes_add(struct frag_axes *x, const char *text, struct frag_err *err)
{
	bool braces = *text == '{';
	const char *name = text + braces;
	size_t len = name_length(name);
	struct frag_axis *a = &x->list[x->count];

	if (!len || (braces && name[len] != '}') || name[len + braces] != '=')
		return frag_fail(err, FRAG_EUSAGE,
				 "invalid --vary '%.60s': expected {NAME}=VALUES, as {mb}=1..8 or "
				 "{ac}=none,full",
				 text);
	if (find(x, name, len))
		return frag_fail(err, FRAG_EUSAGE, "--vary {%.*s} is there twice", (int)len, name);
	if (x->count == FRAG_AXES_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u names vary", FRAG_AXES_MAX);
	*a = (struct frag_axis){ 0 };
	memcpy(a->name, name, len);
	x->count++;
	return add_values(a, name + len + braces + 1, err);
}

int frag_axes_set_order(struct frag_axes *x, const char *names, enum frag_axis_order order,
			struct frag_err *err)
{
	while (*names) {
		bool braces = *names == '{';
		size_t len = name_length(names + braces);
		struct frag_axis *a = find(x, names + braces, len);

		names += braces + len + braces;
		if (!a || (*names && *names != ','))
			return frag_fail(err, FRAG_EUSAGE,
					 "--%s takes names that vary, separated by commas",
					 order == FRAG_AXIS_RISING ? "rising" : "falling");
		a->order = order;
		names += *names == ',';
	}
	return 0;
}

/* none, selective, full: more recomputation needs less memory. */
static bool is_recomputation(const struct frag_axis *a)
{
	static const char *const known[] = { "none", "selective", "full" };
	size_t at = 0;

	if (strcmp(a->name, "ac") != 0 && strcmp(a->name, "recompute") != 0)
		return false;
	for (size_t v = 0; v < a->count; v++, at++) {
		while (at < FRAG_ARRAY_LEN(known) && strcmp(known[at], a->values[v]) != 0)
			at++;
		if (at == FRAG_ARRAY_LEN(known))
			return false;
	}
	return true;
}

void frag_axes_guess_order(struct frag_axes *x)
{
	static const char known[] = " mb mbs bs batch batch_size micro_batch micro_batch_size seq "
				    "seq_len seq_length sequence ";

	for (size_t i = 0; i < x->count; i++) {
		struct frag_axis *a = &x->list[i];
		double before = -INFINITY, n;
		char name[FRAG_AXIS_NAME + 2];
		bool ascending = true;

		snprintf(name, sizeof(name), " %s ", a->name);
		for (size_t v = 0; v < a->count; v++, before = n) {
			ascending &= frag_where_number(a->values[v], strlen(a->values[v]), &n);
			if (!ascending)
				break;
			ascending = n > before;
		}
		if (strstr(known, name) && ascending && a->order == FRAG_AXIS_ANY)
			a->order = FRAG_AXIS_RISING;
		if (a->order == FRAG_AXIS_ANY && is_recomputation(a))
			a->order = FRAG_AXIS_FALLING;
	}
}

void frag_axes_release(struct frag_axes *x)
{
	for (size_t i = 0; i < x->count; i++) {
		for (size_t v = 0; v < x->list[i].count; v++)
			frag_host_free(x->list[i].values[v]);
		frag_host_free(x->list[i].values);
		frag_host_free(x->list[i].words);
	}
	frag_host_free(x->at);
	*x = (struct frag_axes){ 0 };
}

/* ---- layouts --------------------------------------------------------------------------- */

const char *frag_axes_value(const struct frag_axes *x, size_t layout, size_t axis)
{
	return x->list[axis].values[x->at[layout * x->count + axis]];
}

struct layout {
	const struct frag_axes *axes;
	const uint16_t *at;
};

static const char *value_of(const void *ctx, const char *name, size_t len)
{
	const struct layout *l = ctx;
	const struct frag_axis *a = find(l->axes, name, len);

	return a ? a->values[l->at[a - l->axes->list]] : NULL;
}

/* Advances to the next layout; the last name varies fastest. False: there is none. */
static bool step(const struct frag_axes *x, uint16_t *at)
{
	for (size_t i = x->count; i-- > 0;) {
		if (++at[i] < x->list[i].count)
			return true;
		at[i] = 0;
	}
	return false;
}

int frag_axes_expand(struct frag_axes *x, const char *const *where, size_t where_count,
		     struct frag_err *err)
{
	uint16_t at[FRAG_AXES_MAX] = { 0 };
	const struct layout layout = { x, at };
	size_t cap = 0, tried = 0;

	do {
		bool holds = true;

		if (++tried > 20 * FRAG_LAYOUTS_MAX || x->layouts_count == FRAG_LAYOUTS_MAX)
			return frag_fail(err, FRAG_EUSAGE,
					 "more than %u layouts: give fewer values, or a --where "
					 "that leaves out more",
					 FRAG_LAYOUTS_MAX);
		for (size_t i = 0; holds && i < where_count; i++)
			FRAG_TRY(frag_where_holds(where[i], value_of, &layout, &holds, err));
		if (!holds)
			continue;
		if (x->layouts_count == cap) {
			uint16_t *more;

			cap = cap ? 2 * cap : 64;
			more = frag_host_realloc(x->at, cap * x->count, sizeof(*more));
			FRAG_CHECK_ALLOC(more, "layouts", err);
			x->at = more;
		}
		memcpy(x->at + x->layouts_count * x->count, at, x->count * sizeof(*at));
		x->layouts_count++;
	} while (step(x, at));
	if (!x->layouts_count)
		return frag_fail(err, FRAG_EUSAGE, "no layout is left: --where holds for none");
	return 0;
}

void frag_axes_text(const struct frag_axes *x, size_t layout, size_t skip, char *buf, size_t cap)
{
	size_t len = 0;

	*buf = '\0';
	for (size_t i = 0; i < x->count && len < cap; i++)
		if (i != skip)
			len += (size_t)snprintf(buf + len, cap - len, "%s%s=%s", len ? " " : "",
						x->list[i].name, frag_axes_value(x, layout, i));
	frag_clean_text(buf, strlen(buf));
}

/* ---- the command ----------------------------------------------------------------------- */

/* 1 = {name}, 2 = {{name}}, 0 = anything else. */
static unsigned braces_at(const char *at, const char **name, size_t *len)
{
	unsigned n = at[0] != '{' ? 0 : at[1] == '{' ? 2 : 1;

	*name = at + n;
	*len = n ? name_length(*name) : 0;
	if (!*len || (*name)[*len] != '}' || (n == 2 && (*name)[*len + 1] != '}'))
		return 0;
	return n;
}

static int check_words(const struct frag_axes *x, char *const *words, bool *used,
		       struct frag_err *err)
{
	for (; *words; words++) {
		for (const char *at = *words; (at = strchr(at, '{')); at++) {
			const char *name;
			size_t len;
			unsigned n = braces_at(at, &name, &len);
			const struct frag_axis *a = find(x, name, len);

			if (n == 1 && !a)
				return frag_fail(err, FRAG_EUSAGE,
						 "the command has {%.*s}, and no --vary gives it "
						 "values; {{%.*s}} stands for the word itself",
						 (int)len, name, (int)len, name);
			if (n == 1)
				used[a - x->list] = true;
			at += n == 2;
		}
	}
	return 0;
}

int frag_axes_check(const struct frag_axes *x, char *const *words, char *const *settings,
		    struct frag_err *err)
{
	bool used[FRAG_AXES_MAX] = { false };

	FRAG_TRY(check_words(x, words, used, err));
	FRAG_TRY(check_words(x, settings, used, err));
	for (size_t i = 0; i < x->count; i++)
		if (!used[i] && !x->list[i].implied)
			return frag_fail(err, FRAG_EUSAGE,
					 "--vary {%s} changes nothing: the command has no {%s}",
					 x->list[i].name, x->list[i].name);
	return 0;
}

static char *substitute(const struct frag_axes *x, size_t layout, const char *word)
{
	FRAG_AUTO_FREE char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	while (*word) {
		const char *name;
		size_t len;
		unsigned n = braces_at(word, &name, &len);
		const struct frag_axis *a = n == 1 ? find(x, name, len) : NULL;

		if (a)
			fputs(frag_axes_value(x, layout, (size_t)(a - x->list)), to);
		else if (n == 2)
			fprintf(to, "{%.*s}", (int)len, name);
		else
			fputc(*word, to);
		word = a || n == 2 ? name + len + n : word + 1;
	}
	return fclose(to) ? NULL : FRAG_GIVE(text);
}

int frag_words_add(char ***words, char *word, struct frag_err *err)
{
	size_t n = 0;
	char **more;

	while (*words && (*words)[n])
		n++;
	more = word ? frag_host_realloc(*words, n + 2, sizeof(*more)) : NULL;
	if (!more) {
		frag_host_free(word);
		return frag_fail_nomem(err, "command");
	}
	more[n] = word;
	more[n + 1] = NULL;
	*words = more;
	return 0;
}

/* A word that is only {name}, and whose value is several words. */
static const char *words_of(const struct frag_axes *x, size_t layout, const char *word)
{
	const char *name;
	size_t len;
	const struct frag_axis *a = braces_at(word, &name, &len) == 1 ? find(x, name, len) : NULL;

	return a && a->words && !name[len + 1]
		       ? a->words[x->at[layout * x->count + (size_t)(a - x->list)]]
		       : NULL;
}

int frag_axes_words(const struct frag_axes *x, size_t layout, char *const *words, char ***out,
		    struct frag_err *err)
{
	FRAG_AUTO(frag_words_release) char **all = NULL;

	*out = NULL;
	for (; *words; words++) {
		const char *several = words_of(x, layout, *words);

		if (!several)
			FRAG_TRY(frag_words_add(&all, substitute(x, layout, *words), err));
		for (size_t n; several && *several; several += n + (several[n] == ' ')) {
			n = strcspn(several, " ");
			FRAG_TRY(frag_words_add(&all, strndup(several, n), err));
		}
	}
	*out = FRAG_GIVE(all);
	return 0;
}
