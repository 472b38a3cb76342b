/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of an option table as text: as one would type them, options that differ from their
 * defaults, ranges. opt.c reads everything printed here back unchanged.
 */
#include <frag/opt.h>

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const void *field_const(const struct frag_opt *o, const void *params)
{
	return (const char *)params + o->offset;
}

/* "20MiB" if exact in a unit, plain bytes if not, "max". */
static int format_bytes(uint64_t n, char *buf, size_t cap)
{
	static const char *const units[] = { "", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned i = 0;

	if (n == UINT64_MAX)
		return snprintf(buf, cap, "max");
	for (; n && n % 1024 == 0; n /= 1024)
		i++;
	return snprintf(buf, cap, "%llu%s", (unsigned long long)n, units[i]);
}

/* The shortest text that reads back as the same number. */
static int format_double(double x, char *buf, size_t cap)
{
	char text[40];
	int digits = 1;

	do {
		snprintf(text, sizeof(text), "%.*g", digits, x);
	} while (strtod(text, NULL) != x && digits++ < 17);
	return snprintf(buf, cap, "%s", text);
}

/* Does this text need brackets, so that reading it back neither splits nor trims it? */
static bool fragile(const char *s)
{
	size_t n = strlen(s);

	return n && (strpbrk(s, ",(/") || isspace((unsigned char)s[0]) ||
		     isspace((unsigned char)s[n - 1]));
}

size_t frag_opt_format(const struct frag_opt *opt, const void *params, char *buf, size_t cap)
{
	const void *from = field_const(opt, params);
	int n = 0;

	switch (opt->type) {
	case FRAG_OPT_T_BYTES:
		n = format_bytes(*(const uint64_t *)from, buf, cap);
		break;
	case FRAG_OPT_T_UINT:
		if (*(const uint64_t *)from == UINT64_MAX)
			n = snprintf(buf, cap, "max");
		else
			n = snprintf(buf, cap, "%llu", (unsigned long long)*(const uint64_t *)from);
		break;
	case FRAG_OPT_T_DOUBLE:
		n = format_double(*(const double *)from, buf, cap);
		break;
	case FRAG_OPT_T_BOOL:
		n = snprintf(buf, cap, "%s", *(const bool *)from ? "true" : "false");
		break;
	case FRAG_OPT_T_ENUM:
		n = snprintf(buf, cap, "%s", opt->words[*(const uint64_t *)from]);
		break;
	case FRAG_OPT_T_STRING:
		n = snprintf(buf, cap, fragile(from) ? "(%s)" : "%s", (const char *)from);
		break;
	case FRAG_OPT_T_END:
		FRAG_BUG("option type");
	}
	return (size_t)n;
}

static bool is_default(const struct frag_opt *o, const void *params)
{
	const void *from = field_const(o, params);

	switch (o->type) {
	case FRAG_OPT_T_DOUBLE: {
		double x = *(const double *)from;

		return !(x < o->fdef) && !(x > o->fdef);
	}
	case FRAG_OPT_T_BOOL:
		return *(const bool *)from == (o->def != 0);
	case FRAG_OPT_T_STRING:
		return !strcmp(from, o->sdef ? o->sdef : "");
	default:
		return *(const uint64_t *)from == o->def;
	}
}

/* Appends to buf; keeps counting when it is full. */
static void append(char *buf, size_t cap, size_t *used, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void append(char *buf, size_t cap, size_t *used, const char *fmt, ...)
{
	size_t at = FRAG_MIN(*used, cap);
	va_list ap;

	va_start(ap, fmt);
	*used += (size_t)vsnprintf(cap ? buf + at : NULL, cap - at, fmt, ap);
	va_end(ap);
}

size_t frag_opt_echo(const struct frag_opt *opts, const void *params, char between, char *buf,
		     size_t cap)
{
	char value[FRAG_OPT_STRING_MAX + 2];
	size_t used = 0;

	if (cap)
		buf[0] = '\0';
	for (const struct frag_opt *o = opts; o && o->type != FRAG_OPT_T_END; o++) {
		if (is_default(o, params))
			continue;
		if (between == ':' && o->type == FRAG_OPT_T_STRING)
			snprintf(value, sizeof(value), "%s", (const char *)field_const(o, params));
		else
			frag_opt_format(o, params, value, sizeof(value));
		if (between == ':' && o->type == FRAG_OPT_T_BOOL)
			value[0] = (char)toupper((unsigned char)value[0]);
		append(buf, cap, &used, "%s%s%c%s", used ? "," : "", o->key, between, value);
	}
	return used;
}

const char *frag_opt_type_name(enum frag_opt_type type)
{
	static const char *const names[] = {
		[FRAG_OPT_T_END] = "",	       [FRAG_OPT_T_BYTES] = "bytes",
		[FRAG_OPT_T_UINT] = "integer", [FRAG_OPT_T_DOUBLE] = "number",
		[FRAG_OPT_T_BOOL] = "bool",    [FRAG_OPT_T_ENUM] = "word",
		[FRAG_OPT_T_STRING] = "text",
	};

	return names[type];
}

static void append_bound(char *buf, size_t cap, size_t *used, const struct frag_opt *o, bool upper)
{
	char text[40];

	if (o->type == FRAG_OPT_T_DOUBLE)
		format_double(upper ? o->fmax : o->fmin, text, sizeof(text));
	else if (o->type == FRAG_OPT_T_BYTES)
		format_bytes(upper ? o->max : o->min, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%llu", (unsigned long long)(upper ? o->max : o->min));
	append(buf, cap, used, "%s", text);
}

size_t frag_opt_range(const struct frag_opt *o, char *buf, size_t cap)
{
	size_t used = 0;

	if (cap)
		buf[0] = '\0';
	switch (o->type) {
	case FRAG_OPT_T_BOOL:
		append(buf, cap, &used, "true, false");
		break;
	case FRAG_OPT_T_ENUM:
		for (size_t i = 0; o->words[i]; i++)
			append(buf, cap, &used, "%s%s", i ? ", " : "", o->words[i]);
		break;
	case FRAG_OPT_T_STRING:
	case FRAG_OPT_T_END:
		break;
	default:
		if (o->type != FRAG_OPT_T_DOUBLE && o->max == UINT64_MAX && !o->min) {
			append(buf, cap, &used, "any");
			break;
		}
		append_bound(buf, cap, &used, o, false);
		if (o->type != FRAG_OPT_T_DOUBLE && o->max == UINT64_MAX) {
			append(buf, cap, &used, " or more");
			break;
		}
		append(buf, cap, &used, " to ");
		append_bound(buf, cap, &used, o, true);
	}
	return used;
}
