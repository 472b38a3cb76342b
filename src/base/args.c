/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses command lines from tables. One pass over argv: a word is an option, its value, or an
 * operand. frag_opt_set reads numbers, sizes and words, like those of policies.
 */
#include "args.h"

#include <stdio.h>
#include <string.h>

#include <frag/opt.h>

#define NAMES_MAX 96 /* most options of one command, for "did you mean" */

/* Iterates over the rows of all tables; start with { tables, tables->rows }. */
struct walk {
	const struct frag_arg_table *table;
	const struct frag_arg *row;
};

static bool walk_next(struct walk *w)
{
	while (w->table->rows && w->row->type == FRAG_ARG_END) {
		w->table++;
		w->row = w->table->rows;
	}
	return w->table->rows != NULL;
}

#define FOR_ROWS(w, tables) for (struct walk w = { tables, (tables)->rows }; walk_next(&w); w.row++)

/* ---- values ------------------------------------------------------------------------ */

static void store(void *to, size_t size, uint64_t n)
{
	switch (size) {
	case 1:
		*(uint8_t *)to = (uint8_t)n;
		break;
	case 2:
		*(uint16_t *)to = (uint16_t)n;
		break;
	case 4:
		*(uint32_t *)to = (uint32_t)n;
		break;
	default:
		*(uint64_t *)to = n;
	}
}

int frag_parse_memory(const char *text, uint64_t *out, struct frag_err *err)
{
	FRAG_TRY(frag_parse_bytes(text, out, err));
	if (!*out || *out >= FRAG_MIB || text[strspn(text, "0123456789")])
		return 0;
	return FRAG_USAGE(err, "%s bytes? write %s%c or %sB", text, text, *out < 1024 ? 'G' : 'M',
			  text);
}

/* A number, a size or a word, by the rules of option tables. out: uint64_t, or of REAL double. */
static int read_number(const struct frag_arg *a, const char *text, void *out, struct frag_err *err)
{
	char key[64];
	uint64_t unused;
	struct frag_opt o[2] = { { .type = a->type == FRAG_ARG_UINT    ? FRAG_OPT_T_UINT
					   : a->type == FRAG_ARG_BYTES ? FRAG_OPT_T_BYTES
					   : a->type == FRAG_ARG_REAL  ? FRAG_OPT_T_DOUBLE
								       : FRAG_OPT_T_ENUM,
				   .key = key,
				   .min = a->min,
				   .max = a->max ? a->max : UINT64_MAX,
				   .fmin = a->fmin,
				   .fmax = a->fmax,
				   .words = a->words } };

	snprintf(key, sizeof(key), "--%s", a->name);
	/* what may have more than 1 GiB is memory of a card */
	if (a->type == FRAG_ARG_BYTES && (!a->max || a->max > FRAG_GIB) &&
	    !frag_parse_bytes(text, &unused, NULL) && frag_parse_memory(text, &unused, err))
		return frag_err_prefix(err, "option '%s'", key);
	return frag_opt_set(o, out, key, text, err);
}

static int read_set(const struct frag_arg *a, const char *text, uint64_t *out, struct frag_err *err)
{
	*out = 0;
	while (*text) {
		size_t n = strcspn(text, ",");
		uint64_t bit = 0;
		char word[64];

		snprintf(word, sizeof(word), "%.*s", (int)FRAG_MIN(n, sizeof(word) - 1), text);
		FRAG_TRY(read_number(a, word, &bit, err));
		*out |= 1ull << bit;
		text += n + (text[n] == ',');
	}
	return 0;
}

/* Sets one row from a text, like the parser. */
static int set_row(const struct frag_arg *a, void *base, const char *text, struct frag_err *err)
{
	void *to = (char *)base + a->offset;
	uint64_t n = 0;

	switch (a->type) {
	case FRAG_ARG_TEXT:
		*(const char **)to = text;
		return 0;
	case FRAG_ARG_OWN:
		return a->set(to, text, err) ? frag_err_prefix(err, "option '--%s'", a->name) : 0;
	case FRAG_ARG_FLAG:
		*(bool *)to = true;
		return 0;
	case FRAG_ARG_REAL:
		return read_number(a, text, to, err);
	case FRAG_ARG_SET:
		FRAG_TRY(read_set(a, text, &n, err));
		break;
	default:
		FRAG_TRY(read_number(a, text, &n, err));
	}
	store(to, a->size, n * (a->scale ? a->scale : 1));
	return 0;
}

int frag_args_defaults(const struct frag_arg_table *tables, struct frag_err *err)
{
	FOR_ROWS (w, tables)
		if (w.row->def)
			FRAG_TRY(set_row(w.row, w.table->base, w.row->def, err));
	return 0;
}

void frag_args_release(const struct frag_arg_table *tables)
{
	FOR_ROWS (w, tables)
		if (w.row->release)
			w.row->release((char *)w.table->base + w.row->offset);
}

size_t frag_args_value_text(const struct frag_arg *a, char *buf, size_t cap)
{
	size_t used = 0;

	if (cap)
		buf[0] = '\0';
	if (a->value)
		return (size_t)snprintf(buf, cap, "%s", a->value);
	for (size_t i = 0; a->words && a->words[i]; i++)
		if (*a->words[i])
			used += (size_t)snprintf(buf + FRAG_MIN(used, cap),
						 cap - FRAG_MIN(used, cap), "%s%s", used ? "|" : "",
						 a->words[i]);
	return used;
}

/* ---- look-up ----------------------------------------------------------------------- */

int frag_fail_unknown(struct frag_err *err, const char *what, const char *name,
		      const char *const *known, const char *rest)
{
	const char *near = frag_nearest(name, known);

	if (near)
		return FRAG_USAGE(err, "%s '%.60s'; did you mean '%s'?%s", what, name, near,
				  *rest == ';' ? "" : rest);
	return FRAG_USAGE(err, "%s '%.60s'%s", what, name, rest);
}

static int fail_unknown(const struct frag_arg_table *tables, const char *typed,
			struct frag_err *err)
{
	const char *names[NAMES_MAX + 1];
	const char *near;
	size_t n = 0;

	FOR_ROWS (w, tables)
		if (n < NAMES_MAX)
			names[n++] = w.row->name;
	names[n] = NULL;
	near = frag_nearest(typed, names);
	if (near)
		return FRAG_USAGE(err, "unknown option '--%.60s'; did you mean '--%s'?", typed,
				  near);
	return FRAG_USAGE(err, "unknown option '--%.60s'", typed);
}

/* Is `typed` the opposite of this flag: "no-x" of "x", or "x" of "no-x"? */
static bool is_opposite(const struct frag_arg *a, const char *typed)
{
	if (a->type != FRAG_ARG_FLAG)
		return false;
	return !strncmp(typed, "no-", 3)
		       ? !strcmp(typed + 3, a->name)
		       : !strncmp(a->name, "no-", 3) && !strcmp(a->name + 3, typed);
}

/* The row that `typed` names, negates, or abbreviates uniquely. */
static int find_long(const struct frag_arg_table *tables, const char *typed, struct walk *out,
		     bool *opposite, struct frag_err *err)
{
	struct walk found = { 0 };
	const char *second = NULL;
	size_t n = strlen(typed);

	*opposite = false;
	FOR_ROWS (w, tables) { /* "gpu" as a name takes precedence over the opposite of "no-gpu" */
		*out = w;
		if (!strcmp(w.row->name, typed))
			return 0;
	}
	FOR_ROWS (w, tables) {
		*opposite = is_opposite(w.row, typed);
		*out = w;
		if (*opposite)
			return 0;
		if (strncmp(w.row->name, typed, n) != 0)
			continue;
		if (found.row && !second)
			second = w.row->name;
		if (!found.row)
			found = w;
	}
	if (second)
		return FRAG_USAGE(err, "option '--%s' is ambiguous: '--%s' or '--%s'", typed,
				  found.row->name, second);
	*out = found;
	return found.row ? 0 : fail_unknown(tables, typed, err);
}

static int find_letter(const struct frag_arg_table *tables, char letter, struct walk *out,
		       struct frag_err *err)
{
	FOR_ROWS (w, tables) {
		if (w.row->letter == letter) {
			*out = w;
			return 0;
		}
	}
	FOR_ROWS (w, tables)
		if (w.row->name[0] == letter && !strncmp(w.row->name, "out", 3))
			return FRAG_USAGE(err, "unknown option '-%c'; write --%s", letter,
					  w.row->name);
	return FRAG_USAGE(err, "unknown option '-%c'", letter);
}

/* ---- argv -------------------------------------------------------------------------- */

struct parse {
	const struct frag_arg_table *tables;
	char **argv;
	int argc, at; /* the current word */
};

/* The value of the option in argv[at]: `given`, else the next word. */
static int take_value(struct parse *p, struct walk *w, const char *given, struct frag_err *err)
{
	const char *word = p->argv[p->at];

	if (!given && w->row->bare)
		given = w->row->bare;
	if (!given && p->at + 1 >= p->argc)
		return FRAG_USAGE(err, "option '%.60s' needs a value", word);
	if (!given)
		given = p->argv[++p->at];
	return set_row(w->row, w->table->base, given, err);
}

/* "--name" or "--name=value" */
static int take_long(struct parse *p, const char *word, struct frag_err *err)
{
	size_t n = strcspn(word, "=");
	struct walk w = { 0 };
	bool opposite;
	char name[64];

	if (n >= sizeof(name))
		return fail_unknown(p->tables, word, err);
	memcpy(name, word, n);
	name[n] = '\0';
	FRAG_TRY(find_long(p->tables, name, &w, &opposite, err));
	if (w.row->type != FRAG_ARG_FLAG)
		return take_value(p, &w, word[n] ? word + n + 1 : NULL, err);
	if (word[n])
		return FRAG_USAGE(err, "option '--%s' takes no value", w.row->name);
	*(bool *)((char *)w.table->base + w.row->offset) = !opposite;
	return 0;
}

/* "-abc": letters; the last one may take the rest, or the next word, as its value. */
static int take_letters(struct parse *p, const char *letters, struct frag_err *err)
{
	for (; *letters; letters++) {
		struct walk w = { 0 };

		FRAG_TRY(find_letter(p->tables, *letters, &w, err));
		if (w.row->type != FRAG_ARG_FLAG)
			return take_value(p, &w, letters[1] ? letters + 1 : NULL, err);
		FRAG_TRY(set_row(w.row, w.table->base, NULL, err));
	}
	return 0;
}

int frag_args_parse(const struct frag_arg_table *tables, int argc, char **argv, char **operands,
		    size_t *count, int *rest, const bool *stop, struct frag_err *err)
{
	struct parse p = { .tables = tables, .argv = argv, .argc = argc, .at = 1 };

	*count = 0;
	*rest = argc;
	for (; p.at < argc && !*stop; p.at++) {
		char *word = argv[p.at];

		if (!strcmp(word, "--")) {
			*rest = p.at + 1;
			return 0;
		}
		if (word[0] != '-' || !word[1])
			operands[(*count)++] = word;
		else
			FRAG_TRY(word[1] == '-' ? take_long(&p, word + 2, err)
						: take_letters(&p, word + 1, err));
	}
	return 0;
}

/* ---- the check of tables ----------------------------------------------------------- */

static int check_row(const struct frag_arg_table *tables, const struct frag_arg *a,
		     struct frag_err *err)
{
	struct walk w = { 0 };
	bool opposite;

	if (!a->help || !*a->help)
		return frag_fail(err, FRAG_ECHECK, "option '--%s' has no help", a->name);
	FRAG_TRY(find_long(tables, a->name, &w, &opposite, err));
	if (w.row == a && a->letter)
		FRAG_TRY(find_letter(tables, a->letter, &w, err));
	if (w.row != a)
		return frag_fail(err, FRAG_ECHECK, "option '--%s' occurs twice", a->name);
	return 0;
}

int frag_args_check(const struct frag_arg_table *tables, struct frag_err *err)
{
	FOR_ROWS (w, tables)
		FRAG_TRY(check_row(tables, w.row, err));
	return 0;
}
