/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions, by precedence of operators; see axes.h. Depth and length of the text are bounded. */
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

/* The first that matches is taken. */
#define COMPARE 2
#define UNARY 5
static const struct sign {
	const char *text;
	int level;
} signs[] = { { "||", 0 },	 { "&&", 1 },	    { "<=", COMPARE }, { ">=", COMPARE },
	      { "==", COMPARE }, { "!=", COMPARE }, { "<", COMPARE },  { ">", COMPARE },
	      { "+", 3 },	 { "-", 3 },	    { "*", 4 },	       { "/", 4 },
	      { "%", 4 } };

static int fail(const struct reader *r, const char *at, const char *what)
{
	return frag_fail(r->err, FRAG_EUSAGE, "--where '%.100s' at offset %zu: %s", r->text,
			 (size_t)(at - r->text), what);
}

static int need_number(const struct reader *r, const char *at, const struct value *v)
{
	return v->text ? fail(r, at, "a text where a number is expected") : 0;
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

/* A number, a name or a text in quotes. */
static int read_word(struct reader *r, struct value *out)
{
	const bool quoted = *r->at == '\'' || *r->at == '"', braces = *r->at == '{';
	const char *word = r->at + (quoted || braces), *end = word, *found = word;
	size_t digits = strspn(word, "0123456789.");

	while (!quoted && (isalnum((unsigned char)*end) || *end == '_'))
		end++;
	if (quoted && !(end = strchr(word, *r->at)))
		return fail(r, r->at, "the text does not end");
	if (digits && !quoted && !braces) {
		if (!frag_where_number(word, digits, &out->number))
			return fail(r, r->at, "invalid number");
		*out = (struct value){ .number = out->number };
		r->at += digits;
		return 0;
	}
	if (!quoted && (end == word || (braces && *end != '}')))
		return fail(r, r->at, "expected a number, a name, a text in quotes or (");
	if (!quoted && !(found = r->value(r->ctx, word, (size_t)(end - word))))
		return fail(r, r->at, "unknown name: nothing gives it values");
	*out = (struct value){ found, quoted ? (size_t)(end - word) : strlen(found), 0 };
	if (!quoted && frag_where_number(found, out->len, &out->number))
		out->text = NULL;
	r->at = end + (quoted || braces);
	return 0;
}

static const struct sign *sign_at(struct reader *r)
{
	r->at += strspn(r->at, " \t\n");
	for (const struct sign *s = signs; s < signs + FRAG_ARRAY_LEN(signs); s++)
		if (!strncmp(r->at, s->text, strlen(s->text)))
			return s;
	return NULL;
}

static double compute(const char *sign, double a, double b)
{
	switch (*sign) {
	case '|':
		return a != 0 || b != 0;
	case '&':
		return a != 0 && b != 0;
	case '<':
		return a < b || (sign[1] && !(a > b));
	case '>':
		return a > b || (sign[1] && !(a < b));
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	case '/':
		return a / b;
	case '%':
		return fmod(a, b);
	default: /* ==, != */
		return !(a < b || a > b) == (*sign == '=');
	}
}

/* at: of the left operand or the sign. */
static int apply(const struct reader *r, const char *at, const struct sign *s, struct value *left,
		 const struct value *right)
{
	bool same = left->len == right->len && left->text && right->text &&
		    !memcmp(left->text, right->text, left->len);

	if (s->level == COMPARE) {
		if (!left->text != !right->text || (left->text && !strchr("=!", *s->text)))
			return fail(r, at, "a text can only be compared with a text, by == or !=");
		*left = (struct value){ .number = left->text ? same == (*s->text == '=')
							     : compute(s->text, left->number,
								       right->number) };
		return 0;
	}
	if (need_number(r, at, left) || need_number(r, at, right))
		return FRAG_EUSAGE;
	if (strchr("/%", *s->text) && right->number == 0)
		return fail(r, at, "division by zero");
	left->number = compute(s->text, left->number, right->number);
	return 0;
}

static int read_all(struct reader *r, int level, struct value *out);

static int read_operand(struct reader *r, struct value *out)
{
	const char *at = r->at += strspn(r->at, " \t\n");
	const bool sign = *at == '-' || (*at == '!' && at[1] != '=');

	if (!sign && *at != '(')
		return read_word(r, out);
	r->at++;
	if (read_all(r, sign ? UNARY : 0, out))
		return FRAG_EUSAGE;
	if (!sign) {
		r->at += strspn(r->at, " \t\n");
		return *r->at++ == ')' ? 0 : fail(r, r->at - 1, "expected )");
	}
	if (need_number(r, at, out))
		return FRAG_EUSAGE;
	out->number = *at == '-' ? -out->number : out->number == 0;
	return 0;
}

/* An operand, and operators of this level and above; of comparisons there is one. */
static int read_all(struct reader *r, int level, struct value *out)
{
	const struct sign *s;
	int most = UNARY;

	if (++r->depth > DEPTH_MAX)
		return fail(r, r->at, "too deep");
	if (read_operand(r, out))
		return FRAG_EUSAGE;
	while ((s = sign_at(r)) && s->level >= level && s->level <= most) {
		const char *at = r->at;
		struct value right;

		r->at += strlen(s->text);
		if (read_all(r, s->level + 1, &right) || apply(r, at, s, out, &right))
			return FRAG_EUSAGE;
		most = s->level == COMPARE ? COMPARE - 1 : most;
	}
	r->depth--;
	return 0;
}

int frag_where_holds(const char *text, frag_where_value value, const void *ctx, bool *holds,
		     struct frag_err *err)
{
	struct reader r = { text, text, value, ctx, 0, err };
	struct value v;

	if (strnlen(text, LENGTH_MAX + 1) > LENGTH_MAX)
		return fail(&r, text + LENGTH_MAX, "longer than 1000 bytes");
	if (read_all(&r, 0, &v) || need_number(&r, text, &v))
		return FRAG_EUSAGE;
	if (*r.at)
		return fail(&r, r.at, "expected an operator or the end");
	*holds = v.number != 0;
	return 0;
}
