/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes text from a file or a command line safe for a terminal, a page or a shell. Bytes that are
 * not well-formed UTF-8, control a terminal (C0, DEL, C1) or change the text direction
 * (bidirectional controls) become '?', byte by byte, so lengths and offsets stay.
 */
#ifndef FRAG_BASE_CLEAN_H
#define FRAG_BASE_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Length of the character at s if it may be shown, else 0. pre: left > 0. */
size_t frag_clean_length(const char *s, size_t left);
/* Would frag_clean_text leave these bytes unchanged? */
bool frag_clean_is(const char *s, size_t len);
/* In place. Returns s. */
char *frag_clean_text(char *s, size_t len);

/*
 * The text as one word for a POSIX shell, in new memory: in single quotes if a character is special
 * to a shell; as $'a\012b' (POSIX.1-2024) if one may not be shown. NULL if memory is short.
 */
char *frag_shell_word(const char *s);

/* Do the texts differ in digits only, as the names of one job's ranks? */
bool frag_is_alike(const char *a, const char *b);
static inline bool frag_ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), e = strlen(end);

	return n >= e && !strcmp(text + n - e, end);
}
/* The length of a name without its ending; 0: it has another, or nothing before it. */
static inline size_t frag_stem(const char *name, const char *ending)
{
	return frag_ends_with(name, ending) ? strlen(name) - strlen(ending) : 0;
}

#endif
