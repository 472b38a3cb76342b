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
