/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions, by recursive descent; see axes.h. Depth and length of the text are bounded. */
#include "axes.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <frag/base.h>

#define DEPTH_MAX 64u
#define NUMBER_MAX 64u
#define LENGTH_MAX 1000u /* it is parsed once for each of up to millions of layouts */

struct reader {
	const char *text, *at;
	frag_where_value value;
	const void *ctx;
	unsigned depth;
	struct frag_err *err;
};

struct value {
	const char *text; /* NULL: a number */
	size_t len;
	double number;
};

static int fail(const struct reader *r, const char *at, const char *what)
{
	return frag_fail(r->err, FRAG_EUSAGE, "--where '%.100s' at offset %zu: %s", r->text,
			 (size_t)(at - r->text), what);
}

static void skip_blanks(struct reader *r)
{
	r->at += strspn(r->at, " \t\n");
}

static bool take(struct reader *r, const char *sign)
{
	size_t n = strlen(sign);

	skip_blanks(r);
	if (strncmp(r->at, sign, n) != 0)
		return false;
	r->at += n;
	return true;
}

bool frag_where_number(const char *text, size_t len, double *out)
{
	char copy[NUMBER_MAX], *end;

	if (!len || len >= sizeof(copy) || strspn(text, "0123456789.+-eE") < len)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	*out = strtod(copy, &end);
	return !*end && isfinite(*out);
}

static int binary(struct reader *r, unsigned level, struct value *out);

static int read_name(struct reader *r, struct value *out)
{
	bool braces = *r->at == '{';
	const char *name = r->at + braces, *end = name, *found;

	while (isalnum((unsigned char)*end) || *end == '_')
		end++;
	if (end == name || isdigit((unsigned char)*name) || (braces && *end != '}'))
		return fail(r, r->at, "expected a number, a name, a text in quotes or (");
	found = r->value(r->ctx, name, (size_t)(end - name));
	if (!found)
		return fail(r, r->at, "unknown name: nothing gives it values");
	r->at = end + braces;
	*out = (struct value){ .text = found, .len = strlen(found) };
	if (frag_where_number(found, out->len, &out->number))
		out->text = NULL;
	return 0;
}

static int read_text(struct reader *r, struct value *out)
{
	const char *end = strchr(r->at + 1, *r->at);

	if (!end)
		return fail(r, r->at, "the text does not end");
	*out = (struct value){ .text = r->at + 1, .len = (size_t)(end - r->at - 1) };
	r->at = end + 1;
	return 0;
}

static int first(struct reader *r, struct value *out)
{
	size_t digits;

	skip_blanks(r);
	if (*r->at == '\'' || *r->at == '"')
		return read_text(r, out);
	if (take(r, "(")) {
		if (binary(r, 0, out))
			return FRAG_EUSAGE;
		return take(r, ")") ? 0 : fail(r, r->at, "expected )");
	}
	digits = strspn(r->at, "0123456789.");
	if (!digits)
		return read_name(r, out);
	*out = (struct value){ 0 };
	if (!frag_where_number(r->at, digits, &out->number))
		return fail(r, r->at, "invalid number");
	r->at += digits;
	return 0;
}

static int need_number(const struct reader *r, const char *at, const struct value *v)
{
	return v->text ? fail(r, at, "a text where a number is expected") : 0;
}

static int unary(struct reader *r, struct value *out)
{
	const char *at;
	bool minus, no;
	int rc;

	skip_blanks(r);
	at = r->at;
	if (++r->depth > DEPTH_MAX)
		return fail(r, at, "too deep");
	minus = *at == '-';
	no = *at == '!' && at[1] != '=';
	r->at += minus || no;
	rc = minus || no ? unary(r, out) : first(r, out);
	r->depth--;
	if (rc || !(minus || no))
		return rc;
	if (need_number(r, at, out))
		return FRAG_EUSAGE;
	out->number = minus ? -out->number : out->number == 0;
	return 0;
}

/* The operators that are read at each level; the first that matches is taken. */
#define COMPARE 2u
static const char *const levels[][6] = {
	{ "||" }, { "&&" }, { "<=", ">=", "==", "!=", "<", ">" }, { "+", "-" }, { "*", "/", "%" }
};

static const char *take_sign(struct reader *r, unsigned level)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(levels[level]) && levels[level][i]; i++)
		if (take(r, levels[level][i]))
			return levels[level][i];
	return NULL;
}

static bool compare(const char *sign, double order)
{
	bool equal = order == 0;

	if (sign[0] == '=' || sign[0] == '!')
		return equal == (sign[0] == '=');
	return (sign[1] == '=' && equal) || (sign[0] == '<' ? order < 0 : order > 0);
}

/* A text can only be equal to another, or not. at: of the sign. */
static int compare_values(const struct reader *r, const char *at, const char *sign,
			  struct value *out, const struct value *right)
{
	bool same = out->len == right->len && out->text && right->text &&
		    !memcmp(out->text, right->text, out->len);

	if (!out->text != !right->text || (out->text && !strchr("=!", *sign)))
		return fail(r, at, "a text can only be compared with a text, by == or !=");
	*out = (struct value){ .number = compare(sign,
						 out->text ? !same : out->number - right->number) };
	return 0;
}

static double compute(char sign, double a, double b)
{
	switch (sign) {
	case '|':
		return a != 0 || b != 0;
	case '&':
		return a != 0 && b != 0;
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	case '/':
		return a / b;
	default:
		return fmod(a, b);
	}
}

/* Operands of operators of this level and above, from the left; of comparisons there is one. */
static int binary(struct reader *r, unsigned level, struct value *out)
{
	const char *at, *sign;

	if (level == FRAG_ARRAY_LEN(levels))
		return unary(r, out);
	if (binary(r, level + 1, out))
		return FRAG_EUSAGE;
	for (skip_blanks(r); at = r->at, (sign = take_sign(r, level)); skip_blanks(r)) {
		struct value right;

		if (level < COMPARE)
			at = r->at;
		if (binary(r, level + 1, &right))
			return FRAG_EUSAGE;
		if (level == COMPARE)
			return compare_values(r, at, sign, out, &right);
		if (need_number(r, at, out) || need_number(r, at, &right))
			return FRAG_EUSAGE;
		if (strchr("/%", *sign) && right.number == 0)
			return fail(r, at, "division by zero");
		out->number = compute(*sign, out->number, right.number);
	}
	return 0;
}

int frag_where_holds(const char *text, frag_where_value value, const void *ctx, bool *holds,
		     struct frag_err *err)
{
	struct reader r = { text, text, value, ctx, 0, err };
	struct value v;

	if (strnlen(text, LENGTH_MAX + 1) > LENGTH_MAX)
		return fail(&r, text + LENGTH_MAX, "longer than 1000 bytes");
	if (binary(&r, 0, &v) || need_number(&r, text, &v))
		return FRAG_EUSAGE;
	skip_blanks(&r);
	if (*r.at)
		return fail(&r, r.at, "expected an operator or the end");
	*holds = v.number != 0;
	return 0;
}
