/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

#include "test.h"

void cases_error(FILE *out, const struct frag_err *err)
{
	int status = frag_code_exit(err->code);

	if (status != 3)
		fprintf(out, "exit %d, ", status);
	fprintf(out, "at %llu: %s", (ull)err->offset, err->msg);
}

static char escaped(const char **at)
{
	static const char from[] = "nrt0\\\"'", to[] = "\n\r\t\0\\\"'";
	const char *which;

	if (**at == 'x') {
		char digits[] = { (*at)[1], (*at)[2], 0 };

		*at += 3;
		return (char)strtoul(digits, NULL, 16);
	}
	which = strchr(from, **at);
	assert_true(which && *which);
	(*at)++;
	return to[which - from];
}

char *cases_unescape(const char *text, size_t *length)
{
	char *out = malloc(strlen(text) + 1), *to = out;

	assert_non_null(out);
	while (*text) {
		if (*text == '\\') {
			text++;
			*to++ = escaped(&text);
		} else {
			*to++ = *text++;
		}
	}
	*to = 0;
	*length = (size_t)(to - out);
	return out;
}

char *cases_word(char **at)
{
	char *word = *at + strspn(*at, " \t");
	bool quoted = *word == '"';

	if (!*word)
		return NULL;
	word += quoted;
	*at = word + strcspn(word, quoted ? "\"" : " \t");
	if (**at)
		*(*at)++ = 0;
	return word;
}

static const struct {
	const char *text;
	uint64_t times;
} units[] = {
	{ "", 1 },	    { "K", KIB },   { "M", MIB },      { "G", GIB },
	{ "T", GIB << 10 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
};

struct name_list {
	const struct cases_name *at;
	size_t count;
};

static bool name_value(const char *word, size_t length, const struct name_list *l, uint64_t *value)
{
	for (size_t i = 0; i < l->count; i++)
		if (strlen(l->at[i].name) == length && !memcmp(l->at[i].name, word, length)) {
			*value = l->at[i].value;
			return true;
		}
	return false;
}

/* A number, a name, or a product of several. */
static bool term(const char *text, size_t n, const struct name_list *names, uint64_t *out)
{
	const char *times = memchr(text, '*', n);
	uint64_t other;
	size_t left;
	char *end;

	if (times) {
		if (!term(text, (size_t)(times - text), names, out) ||
		    !term(times + 1, n - 1 - (size_t)(times - text), names, &other))
			return false;
		*out *= other;
		return true;
	}
	if (!n || *text < '0' || *text > '9')
		return n && name_value(text, n, names, out);
	*out = strtoull(text, &end, 0);
	left = n - (size_t)(end - text);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++)
		if (strlen(units[i].text) == left && !memcmp(units[i].text, end, left)) {
			*out *= units[i].times;
			return true;
		}
	return false;
}

bool cases_number(const char *text, const struct cases_name *names, size_t names_count,
		  uint64_t *out)
{
	const struct name_list list = { names, names_count };
	bool minus = *text == '-';

	*out = 0;
	for (text += minus;; text++) {
		size_t n = strcspn(text, "+-");
		uint64_t value;

		if (!term(text, n, &list, &value))
			return false;
		*out += minus ? -value : value;
		text += n;
		if (!*text)
			return true;
		minus = *text == '-';
	}
}

uint64_t cases_must_number(const char *text, const struct cases_name *names, size_t names_count)
{
	uint64_t value = 0;

	if (!text || !cases_number(text, names, names_count, &value))
		fail_msg("'%s' is not a number", text ? text : "");
	return value;
}
