/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted text: which characters may be shown, and quoting for a shell. */
#include "clean.h"

#include <stdio.h>
#include <string.h>

#include <frag/base.h>

/* Length of the character by its first byte; 0: not a first byte (80 to bf continue a character, c0
 * and c1 are overlong ASCII). */
static size_t claimed_length(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* U+202A to 202E, U+2066 to 2069 change the direction: the text shows differently. */
static bool turns_direction(const unsigned char *u)
{
	return u[0] == 0xe2 && ((u[1] == 0x80 && u[2] >= 0xaa && u[2] <= 0xae) ||
				(u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9));
}

size_t frag_clean_length(const char *s, size_t left)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = claimed_length(u[0]);

	if (!n || n > left || u[0] < 0x20 || u[0] == 0x7f)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	if ((u[0] == 0xc2 && u[1] < 0xa0) ||				      /* C1 */
	    (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) || /* surrogates */
	    (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
		return 0;
	return n == 3 && turns_direction(u) ? 0 : n;
}

bool frag_clean_is(const char *s, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = frag_clean_length(s + i, len - i);
		if (!n)
			return false;
	}
	return true;
}

char *frag_clean_text(char *s, size_t len)
{
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = frag_clean_length(s + i, len - i);
		if (!n)
			s[i] = '?';
	}
	return s;
}

/* $'…' with octal numbers for all that may not be shown. */
static char *escaped_word(const char *s, size_t len)
{
	char *word = frag_host_alloc(4 * len + 4), *to = word;

	if (!word)
		return NULL;
	to += sprintf(to, "$'");
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = frag_clean_length(s + i, len - i);
		if (!n)
			to += sprintf(to, "\\%03o", (unsigned char)s[i]);
		else if (s[i] == '\'' || s[i] == '\\')
			to += sprintf(to, "\\%c", s[i]);
		else
			to = (char *)memcpy(to, s + i, n) + n;
	}
	sprintf(to, "'");
	return word;
}

char *frag_shell_word(const char *s)
{
	static const char harmless[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/@%+=";
	size_t len = strlen(s), quotes = 0;
	char *word, *to;

	if (len && strspn(s, harmless) == len)
		return frag_host_strdup(s);
	if (!frag_clean_is(s, len))
		return escaped_word(s, len);
	for (size_t i = 0; i < len; i++)
		quotes += s[i] == '\'';
	to = word = frag_host_alloc(len + 3 * quotes + 3);
	if (!word)
		return NULL;
	*to++ = '\'';
	for (; *s; s++) {
		if (*s == '\'') {
			memcpy(to, "'\\''", 4);
			to += 4;
		} else {
			*to++ = *s;
		}
	}
	*to++ = '\'';
	*to = '\0';
	return word;
}

static const char *behind_digits(const char *s)
{
	return s + strspn(s, "0123456789");
}

bool frag_is_alike(const char *a, const char *b)
{
	a = behind_digits(a);
	b = behind_digits(b);
	for (; *a && *a == *b; a = behind_digits(a + 1))
		b = behind_digits(b + 1);
	return *a == *b;
}
