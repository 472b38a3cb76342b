/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the settings text; see pt_words.h. */
#include "pt_words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pt_is_mark(char c)
{
	return c == ',' || c == ':' || c == '[' || c == ']' || c == '=';
}

bool pt_next_word(struct pt_words *t)
{
	size_t n = 0;

	while (isspace((unsigned char)*t->at))
		t->at++;
	if (!*t->at)
		return false;
	if (pt_is_mark(*t->at)) {
		t->word[n++] = *t->at++;
	} else {
		for (; *t->at && !pt_is_mark(*t->at); t->at++)
			if (!isspace((unsigned char)*t->at) && n + 1 < sizeof(t->word))
				t->word[n++] = *t->at;
	}
	t->word[n] = 0;
	return true;
}

int pt_list_text(struct pt_words *t, const char *key, char *out, size_t cap, struct frag_err *err)
{
	const char *from = t->at, *close;

	if (strcmp(t->word, "[") != 0) {
		snprintf(out, cap, "%s", t->word);
		return 0;
	}
	close = strchr(from, ']');
	if (!close)
		return FRAG_USAGE(err, "%s: ']' is missing", key);
	if ((size_t)(close - from) + 2 >= cap)
		return FRAG_USAGE(err, "%s: list too long", key);
	snprintf(out, cap, "[%.*s]", (int)(close - from), from);
	t->at = close + 1;
	return 0;
}

int pt_want_uint(const char *key, const char *word, uint64_t *out, struct frag_err *err)
{
	char *end;

	errno = 0;
	*out = strtoull(word, &end, 10);
	if (end == word || errno == ERANGE)
		return FRAG_USAGE(err, "option '%s' wants an integer, not '%s'", key, word);
	return 0;
}

int pt_want_double(const char *key, const char *word, double *out, struct frag_err *err)
{
	char *end;

	*out = strtod(word, &end);
	if (end == word)
		return FRAG_USAGE(err, "option '%s' wants a number, not '%s'", key, word);
	return 0;
}

int pt_want_bool(const char *key, const char *word, bool *out, struct frag_err *err)
{
	*out = !strcmp(word, "True");
	if (!*out && strcmp(word, "False") != 0)
		return FRAG_USAGE(err, "option '%s' wants True or False, not '%s'", key, word);
	return 0;
}
