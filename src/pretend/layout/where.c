/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions, by recursive descent; see where.h. Depth and length of the text are bounded. */
#include "where.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int any(struct reader *r, struct value *out);

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
		if (any(r, out))
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

static double compute(char sign, double a, double b)
{
	switch (sign) {
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

/* Left-associative operators of one precedence. */
static int chain(struct reader *r, const char *signs, int (*next)(struct reader *, struct value *),
		 struct value *out)
{
	if (next(r, out))
		return FRAG_EUSAGE;
	for (;;) {
		struct value right;
		const char *at;

		skip_blanks(r);
		at = r->at;
		if (!*at || !strchr(signs, *at))
			return 0;
		r->at++;
		if (next(r, &right) || need_number(r, at, out) || need_number(r, at, &right))
			return FRAG_EUSAGE;
		if (strchr("/%", *at) && right.number == 0)
			return fail(r, at, "division by zero");
		out->number = compute(*at, out->number, right.number);
	}
}

static int product(struct reader *r, struct value *out)
{
	return chain(r, "*/%", unary, out);
}

static int sum(struct reader *r, struct value *out)
{
	return chain(r, "+-", product, out);
}

static bool compare(const char *sign, double order)
{
	bool equal = order == 0;

	if (sign[0] == '=' || sign[0] == '!')
		return equal == (sign[0] == '=');
	return (sign[1] == '=' && equal) || (sign[0] == '<' ? order < 0 : order > 0);
}

static int comparison(struct reader *r, struct value *out)
{
	static const char *const signs[] = { "<=", ">=", "==", "!=", "<", ">" };
	struct value right;
	const char *at;
	double order;

	if (sum(r, out))
		return FRAG_EUSAGE;
	skip_blanks(r);
	at = r->at;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (!take(r, signs[i]))
			continue;
		if (sum(r, &right))
			return FRAG_EUSAGE;
		if (!out->text != !right.text || (out->text && i != 2 && i != 3))
			return fail(r, at, "a text can only be compared with a text, by == or !=");
		order = out->text ? out->len != right.len ||
					    memcmp(out->text, right.text, out->len) != 0
				  : out->number - right.number;
		*out = (struct value){ .number = compare(signs[i], order) };
		return 0;
	}
	return 0;
}

/* Operands joined by && or, with any, by ||. */
static int joined(struct reader *r, struct value *out, const char *sign, bool any,
		  int (*operand)(struct reader *r, struct value *out))
{
	if (operand(r, out))
		return FRAG_EUSAGE;
	while (take(r, sign)) {
		const char *at = r->at;
		struct value right;

		if (operand(r, &right) || need_number(r, at, out) || need_number(r, at, &right))
			return FRAG_EUSAGE;
		out->number = any ? out->number != 0 || right.number != 0
				  : out->number != 0 && right.number != 0;
	}
	return 0;
}

static int both(struct reader *r, struct value *out)
{
	return joined(r, out, "&&", false, comparison);
}

static int any(struct reader *r, struct value *out)
{
	return joined(r, out, "||", true, both);
}

int frag_where_holds(const char *text, frag_where_value value, const void *ctx, bool *holds,
		     struct frag_err *err)
{
	struct reader r = { text, text, value, ctx, 0, err };
	struct value v;

	if (strnlen(text, LENGTH_MAX + 1) > LENGTH_MAX)
		return fail(&r, text + LENGTH_MAX, "longer than 1000 bytes");
	if (any(&r, &v) || need_number(&r, text, &v))
		return FRAG_EUSAGE;
	skip_blanks(&r);
	if (*r.at)
		return fail(&r, r.at, "expected an operator or the end");
	*holds = v.number != 0;
	return 0;
}
