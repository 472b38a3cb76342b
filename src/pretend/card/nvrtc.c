/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels compiled at run time, as by torch.jit: the image only holds a pointer to the source. They
 * do nothing, and bypass the dispatcher, so what they store must be marked unknown (cubin.c): stale
 * memory would pass for computed values. The source shows what they store: NAME[...] = .
 */
#include "nogpu.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MARK "cufragRT"
#define MARK_BYTES (sizeof(MARK) - 1)
#define NAME_BYTES 128
#define PARAMETERS_MAX 64

NOGPU_ENTRY(int, nvrtcCreateProgram, (void **out, const char *source))
{
	int rc = frag_nogpu_handle(out);

	if (!rc)
		*(char **)*out = strdup(source); /* modules keep a pointer to it */
	return rc;
}

NOGPU_ENTRY(int, nvrtcGetCUBIN, (void *program, char *image))
{
	const char *source = *(char **)program;

	memset(image, 0, NOGPU_CUBIN_BYTES);
	memcpy(image, MARK, MARK_BYTES);
	memcpy(image + MARK_BYTES, &source, sizeof(source));
	return NOGPU_OK;
}

const char *frag_nogpu_source_of(const void *image)
{
	const char *source = NULL;

	if (image && !strncmp(image, MARK, MARK_BYTES))
		memcpy(&source, (const char *)image + MARK_BYTES, sizeof(source));
	return source;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Pointer past the next occurrence of the word, or NULL. */
static const char *behind_word(const char *begin, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = begin; (at = strstr(at, word)); at += length)
		if ((at == begin || !in_word(at[-1])) && !in_word(at[length]))
			return at + length;
	return NULL;
}

static const char *behind_blanks(const char *at)
{
	return at + strspn(at, " \t\n");
}

static bool stores(const char *body, const char *name)
{
	for (const char *at = body; (at = behind_word(at, name));) {
		int depth = 0;

		at = behind_blanks(at);
		if (*at != '[')
			continue;
		do
			depth += (*at == '[') - (*at == ']');
		while (*at++ && depth);
		at = behind_blanks(at);
		if (at[0] == '=' && at[1] != '=')
			return true;
	}
	return false;
}

/* The name of a parameter, its last word, if it is a pointer. */
static bool pointer_name(const char *from, const char *to, char name[NAME_BYTES])
{
	const char *begin;

	while (to > from && !in_word(to[-1]))
		to--;
	for (begin = to; begin > from && in_word(begin[-1]); begin--)
		;
	if (!memchr(from, '*', (size_t)(begin - from)) || to - begin >= NAME_BYTES)
		return false;
	memcpy(name, begin, (size_t)(to - begin));
	name[to - begin] = '\0';
	return true;
}

uint64_t frag_nogpu_stored_by(const char *source, const char *kernel)
{
	const char *at = behind_word(source, "__global__"), *body, *end;
	uint64_t stored = 0;
	char name[NAME_BYTES];

	at = at ? behind_word(at, kernel) : NULL;
	at = at ? behind_blanks(at) : NULL;
	body = at && *at == '(' ? strchr(at, ')') : NULL;
	for (unsigned i = 0; body && at < body && i < PARAMETERS_MAX; i++, at = end) {
		end = at + 1 + strcspn(at + 1, ",)");
		if (pointer_name(at + 1, end, name) && stores(body, name))
			stored |= 1ull << i;
	}
	return stored;
}
