/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that can fail on demand, and the abort for bugs. */
#include <frag/base.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls left before one fails, plus one; 0 = never. Only for tests, hence global. */
static _Atomic uint64_t fail_countdown;

void frag_bug(const char *file, int line, const char *what)
{
	fprintf(stderr, "cufrag: bug at %s:%d: %s\n", file, line, what);
	abort();
}

void frag_host_fail_after(uint64_t nth)
{
	atomic_store(&fail_countdown, nth ? nth + 1 : 0);
}

static bool must_fail(void)
{
	uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

	if (FRAG_LIKELY(!left))
		return false;
	if (left > 1)
		left = atomic_fetch_sub(&fail_countdown, 1) - 1;
	return left <= 1;
}

void *frag_host_alloc(size_t bytes)
{
	return must_fail() ? NULL : malloc(bytes ? bytes : 1);
}

void *frag_host_calloc(size_t count, size_t bytes)
{
	return must_fail() ? NULL : calloc(count ? count : 1, bytes ? bytes : 1);
}

void *frag_host_realloc(void *old, size_t count, size_t bytes)
{
	size_t total;

	if (must_fail() || __builtin_mul_overflow(count, bytes, &total))
		return NULL;
	return realloc(old, total ? total : 1);
}

char *frag_host_strdup(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = frag_host_alloc(n);

	return copy ? memcpy(copy, text, n) : NULL;
}

void frag_host_free(void *block)
{
	free(block);
}

void frag_host_free_list(void *const *blocks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(blocks[i]);
}

void frag_host_free_at(void *at)
{
	void *block;

	memcpy(&block, at, sizeof(block));
	free(block);
}

void frag_words_release(char ***words)
{
	for (char **w = *words; w && *w; w++)
		free(*w);
	free(*words);
	*words = NULL;
}

void frag_file_close_at(void *at)
{
	FILE *file;

	memcpy(&file, at, sizeof(file));
	if (file)
		fclose(file);
}
