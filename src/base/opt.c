/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option tables: the one place where "key=value" text meets a params struct.
 *
 * Order of the file: table look-up, reading values (one function per type), lists "key=value,…",
 * the check of a table. opt_format.c writes values. A list is split at commas outside brackets, so
 * a value may hold a list "[256:1,512:2]" or, in round brackets, a whole policy text
 * "(rmm-pool:initial=1G,maximum=2G)"; the round brackets are removed.
 */
#include <frag/opt.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 64 /* most words of one table, for "did you mean" */

static void *field(const struct frag_opt *o, void *params)
{
	return (char *)params + o->offset;
}

static size_t words_count(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* ---- look-up --------------------------------------------------------------- */

static bool same_key(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b))
			return false;
	return *a == *b;
}

const struct frag_opt *frag_opt_find(const struct frag_opt *opts, const char *key)
{
	for (; opts && opts->type != FRAG_OPT_T_END; opts++)
		if (same_key(opts->key, key))
			return opts;
	return NULL;
}

static int fail_unknown(const struct frag_opt *opts, const char *key, struct frag_err *err)
{
	const char *keys[KEYS_MAX + 1];
	char list[200] = "";
	const char *near;
	size_t n = 0, used = 0;

	for (; opts && opts->type != FRAG_OPT_T_END && n < KEYS_MAX; opts++)
		keys[n++] = opts->key;
	keys[n] = NULL;
	near = frag_nearest(key, keys);
	if (near)
		return FRAG_USAGE(err, "unknown option '%s'; did you mean '%s'?", key, near);
	if (!n)
		return FRAG_USAGE(err, "unknown option '%s'; there are none", key);
	for (size_t i = 0; i < n && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 keys[i]);
	return FRAG_USAGE(err, "unknown option '%s'; known are %s%s", key, list,
			  used < sizeof(list) ? "" : " …");
}

/* ---- values in --------------------------------------------------------------- */

static int fail_range(const struct frag_opt *o, const char *value, struct frag_err *err)
{
	char range[96];

	frag_opt_range(o, range, sizeof(range));
	return FRAG_USAGE(err, "value '%s' of option '%s' is out of range: %s", value, o->key,
			  range);
}

static bool has_unit(const struct frag_opt *o, uint64_t n)
{
	if (!o->unit || !n || n == UINT64_MAX)
		return true;
	return o->unit == FRAG_OPT_POW2 ? frag_is_pow2(n) : n % o->unit == 0;
}

static int set_bytes(const struct frag_opt *o, uint64_t *out, const char *value,
		     struct frag_err *err)
{
	uint64_t n = UINT64_MAX;

	if (strcmp(value, "max") != 0 && frag_parse_bytes(value, &n, err))
		return frag_err_prefix(err, "option '%s'", o->key), FRAG_EUSAGE;
	if (n < o->min || n > o->max)
		return fail_range(o, value, err);
	if (!has_unit(o, n) && o->unit == FRAG_OPT_POW2)
		return FRAG_USAGE(err, "value '%s' of option '%s' is not a power of two", value,
				  o->key);
	if (!has_unit(o, n))
		return FRAG_USAGE(err, "value '%s' of option '%s' is not a multiple of %llu", value,
				  o->key, (unsigned long long)o->unit);
	*out = n;
	return 0;
}

static int set_uint(const struct frag_opt *o, uint64_t *out, const char *value,
		    struct frag_err *err)
{
	unsigned long long n = UINT64_MAX;
	char *end;

	if (strcmp(value, "max") != 0) {
		errno = 0;
		n = strtoull(value, &end, 10);
		if (!isdigit((unsigned char)value[0]) || *end)
			return FRAG_USAGE(err, "value '%s' of option '%s' is not a whole number",
					  value, o->key);
		if (errno)
			return fail_range(o, value, err);
	}
	if (n < o->min || n > o->max)
		return fail_range(o, value, err);
	*out = n;
	return 0;
}

static int set_double(const struct frag_opt *o, double *out, const char *value,
		      struct frag_err *err)
{
	char *end;
	double x = strtod(value, &end);

	if (end == value || *end || isspace((unsigned char)value[0]) || !isfinite(x))
		return FRAG_USAGE(err, "value '%s' of option '%s' is not a number", value, o->key);
	if (x < o->fmin || x > o->fmax)
		return fail_range(o, value, err);
	*out = x;
	return 0;
}

static int set_bool(const struct frag_opt *o, bool *out, const char *value, struct frag_err *err)
{
	static const char *const yes[] = { "true", "True", "yes", "on", "1" };
	static const char *const no[] = { "false", "False", "no", "off", "0" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(yes); i++) {
		if (!strcmp(value, yes[i]) || !strcmp(value, no[i])) {
			*out = !strcmp(value, yes[i]);
			return 0;
		}
	}
	return FRAG_USAGE(err, "value '%s' of option '%s' is neither true nor false", value,
			  o->key);
}

static int set_enum(const struct frag_opt *o, uint64_t *out, const char *value,
		    struct frag_err *err)
{
	char list[160];
	const char *near;

	for (uint64_t i = 0; o->words[i]; i++) {
		if (same_key(o->words[i], value)) {
			*out = i;
			return 0;
		}
	}
	near = frag_nearest(value, o->words);
	if (near)
		return FRAG_USAGE(err, "unknown value '%s' of option '%s'; did you mean '%s'?",
				  value, o->key, near);
	frag_opt_range(o, list, sizeof(list));
	return FRAG_USAGE(err, "unknown value '%s' of option '%s'; known are %s", value, o->key,
			  list);
}

/* The change of depth by a bracket: 1 or -1; 0 for any other character. */
static int bracket(char c)
{
	return c && strchr("([{", c) ? 1 : c && strchr(")]}", c) ? -1 : 0;
}

bool frag_opt_balanced(const char *text, size_t n)
{
	int depth = 0;

	for (size_t i = 0; i < n && depth >= 0; i++)
		depth += bracket(text[i]);
	return !depth;
}

static int set_string(const struct frag_opt *o, char *out, const char *value, struct frag_err *err)
{
	size_t n = strlen(value);
	bool wrapped = n >= 2 && value[0] == '(' && value[n - 1] == ')';

	if (!frag_opt_balanced(value + wrapped, n - 2 * wrapped))
		return FRAG_USAGE(err, "brackets in the value of option '%s' do not match", o->key);
	if (n - 2 * wrapped >= FRAG_OPT_STRING_MAX)
		return FRAG_USAGE(err, "value of option '%s' is longer than %d bytes", o->key,
				  FRAG_OPT_STRING_MAX - 1);
	snprintf(out, FRAG_OPT_STRING_MAX, "%.*s", (int)(n - 2 * wrapped), value + wrapped);
	return 0;
}

static int set_value(const struct frag_opt *o, void *params, const char *value,
		     struct frag_err *err)
{
	void *to = field(o, params);

	switch (o->type) {
	case FRAG_OPT_T_BYTES:
		return set_bytes(o, to, value, err);
	case FRAG_OPT_T_UINT:
		return set_uint(o, to, value, err);
	case FRAG_OPT_T_DOUBLE:
		return set_double(o, to, value, err);
	case FRAG_OPT_T_BOOL:
		return set_bool(o, to, value, err);
	case FRAG_OPT_T_ENUM:
		return set_enum(o, to, value, err);
	case FRAG_OPT_T_STRING:
		return set_string(o, to, value, err);
	case FRAG_OPT_T_END:
		break;
	}
	FRAG_BUG("option type");
}

int frag_opt_set(const struct frag_opt *opts, void *params, const char *key, const char *value,
		 struct frag_err *err)
{
	const struct frag_opt *o = frag_opt_find(opts, key);

	return o ? set_value(o, params, value, err) : fail_unknown(opts, key, err);
}

void frag_opt_defaults(const struct frag_opt *opts, void *params)
{
	for (const struct frag_opt *o = opts; o && o->type != FRAG_OPT_T_END; o++) {
		void *to = field(o, params);

		switch (o->type) {
		case FRAG_OPT_T_DOUBLE:
			*(double *)to = o->fdef;
			break;
		case FRAG_OPT_T_BOOL:
			*(bool *)to = o->def != 0;
			break;
		case FRAG_OPT_T_STRING:
			snprintf(to, FRAG_OPT_STRING_MAX, "%s", o->sdef ? o->sdef : "");
			break;
		default:
			*(uint64_t *)to = o->def;
		}
	}
}

/* ---- lists -------------------------------------------------------------------- */

const char *frag_opt_item_end(const char *text)
{
	int depth = 0;

	for (; *text; text++) {
		depth = FRAG_MAX(depth + bracket(*text), 0);
		if (*text == ',' && !depth)
			break;
	}
	return text;
}

/* Removes blanks at both ends, in place. */
static char *trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

static int parse_item(const struct frag_opt *opts, void *params, char *item, struct frag_err *err)
{
	char *value = strchr(item, '=');
	const struct frag_opt *o;
	char *key;

	if (value)
		*value++ = '\0';
	key = trim(item);
	if (!*key)
		return FRAG_USAGE(err, "empty option name; options are written "
				       "key=value,key=value");
	o = frag_opt_find(opts, key);
	if (!o)
		return fail_unknown(opts, key, err);
	if (!value && o->type != FRAG_OPT_T_BOOL)
		return FRAG_USAGE(err, "option '%s' needs a value: %s=…", o->key, o->key);
	return set_value(o, params, value ? trim(value) : "true", err);
}

int frag_opt_parse(const struct frag_opt *opts, void *params, const char *text,
		   struct frag_err *err)
{
	char item[2 * FRAG_OPT_STRING_MAX];

	if (!text || !*text)
		return 0;
	for (;;) {
		const char *end = frag_opt_item_end(text);
		size_t n = (size_t)(end - text);

		if (n >= sizeof(item))
			return FRAG_USAGE(err, "option '%.40s…' is too long", text);
		memcpy(item, text, n);
		item[n] = '\0';
		FRAG_TRY(parse_item(opts, params, item, err));
		if (!*end)
			return 0;
		text = end + 1;
	}
}

int frag_opt_check(const struct frag_opt *opts, size_t params_size, struct frag_err *err)
{
	static const size_t sizes[] = {
		[FRAG_OPT_T_BYTES] = sizeof(uint64_t), [FRAG_OPT_T_UINT] = sizeof(uint64_t),
		[FRAG_OPT_T_DOUBLE] = sizeof(double),  [FRAG_OPT_T_BOOL] = sizeof(bool),
		[FRAG_OPT_T_ENUM] = sizeof(uint64_t),  [FRAG_OPT_T_STRING] = FRAG_OPT_STRING_MAX,
	};

	for (const struct frag_opt *o = opts; o && o->type != FRAG_OPT_T_END; o++) {
		bool real = o->type == FRAG_OPT_T_DOUBLE;

		if (!o->key || !*o->key || strpbrk(o->key, "=, :/()"))
			return frag_fail(err, FRAG_ECHECK, "option %d has no valid key",
					 (int)(o - opts));
		if (!o->help || !*o->help)
			return frag_fail(err, FRAG_ECHECK, "option '%s' has no help", o->key);
		if (o->offset + sizes[o->type] > params_size)
			return frag_fail(err, FRAG_ECHECK, "option '%s' lies outside its params",
					 o->key);
		if (frag_opt_find(opts, o->key) != o || o - opts >= KEYS_MAX)
			return frag_fail(err, FRAG_ECHECK, "option '%s' occurs twice", o->key);
		if (o->type == FRAG_OPT_T_STRING)
			continue;
		if (o->type == FRAG_OPT_T_ENUM ? !o->words || o->def >= words_count(o->words)
		    : real		       ? !(o->fdef >= o->fmin && o->fdef <= o->fmax)
			   : o->def < o->min || o->def > o->max || !has_unit(o, o->def))
			return frag_fail(err, FRAG_ECHECK,
					 "default of option '%s' is outside its range", o->key);
	}
	return 0;
}
