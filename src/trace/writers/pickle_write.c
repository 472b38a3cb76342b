/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles, protocol 2; see pickle_write.h. Lists and dicts are one MARK … APPENDS or SETITEMS. */
#include "pickle_write.h"

#include <string.h>

#include <frag/base.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/grow.h"

#define MEMO_TEXT_MAX 4096u
#define BATCH 1000u /* as Python's own pickler */

static void number(FILE *to, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		fputc((int)(v >> (8 * i) & 0xff), to);
}

int frag_pickle_write_begin(struct frag_pickle_writer *w, FILE *to, struct frag_err *err)
{
	*w = (struct frag_pickle_writer){ .to = to, .mask = 1023 };
	FRAG_TRY_CALLOC(w->cells, w->mask + 1, "pickle", err);
	fputs("\x80\x02", to);
	return 0;
}

int frag_pickle_write_end(struct frag_pickle_writer *w, struct frag_err *err)
{
	bool failed = w->failed;

	fputc('.', w->to);
	for (uint32_t i = 0; i < w->memo_count; i++)
		frag_host_free(w->memo[i].text);
	FRAG_FREE(w->memo, w->cells);
	*w = (struct frag_pickle_writer){ 0 };
	return failed ? frag_fail_nomem(err, "pickle") : 0;
}

void frag_pickle_put_dict(struct frag_pickle_writer *w)
{
	fputs("}(", w->to);
}

void frag_pickle_put_dict_end(struct frag_pickle_writer *w)
{
	fputc('u', w->to);
}

void frag_pickle_put_list(struct frag_pickle_writer *w)
{
	fputs("](", w->to);
	w->in_list = 0;
}

void frag_pickle_put_list_more(struct frag_pickle_writer *w)
{
	if (++w->in_list < BATCH)
		return;
	fputs("e(", w->to);
	w->in_list = 0;
}

void frag_pickle_put_list_end(struct frag_pickle_writer *w)
{
	fputc('e', w->to);
}

/* Cell of the text, or the empty one where it would be. */
static uint32_t *cell_of(struct frag_pickle_writer *w, const char *text, size_t n)
{
	uint32_t at = (uint32_t)XXH3_64bits(text, n) & w->mask;

	while (w->cells[at] && strcmp(w->memo[w->cells[at] - 1].text, text) != 0)
		at = (at + 1) & w->mask;
	return &w->cells[at];
}

static void grow_cells(struct frag_pickle_writer *w)
{
	uint32_t mask = w->mask * 2 + 1;
	uint32_t *cells = frag_host_calloc((size_t)mask + 1, sizeof(*cells)), *old = w->cells;

	w->failed |= !cells;
	if (!cells)
		return;
	w->cells = cells;
	w->mask = mask;
	for (uint32_t i = 0; i < w->memo_count; i++)
		*cell_of(w, w->memo[i].text, strlen(w->memo[i].text)) = i + 1;
	frag_host_free(old);
}

uint32_t frag_pickle_put_memo(struct frag_pickle_writer *w)
{
	fputc('r', w->to); /* LONG_BINPUT */
	number(w->to, w->next_id, 4);
	return w->next_id++;
}

void frag_pickle_put_again(struct frag_pickle_writer *w, uint32_t id)
{
	fputc('j', w->to); /* LONG_BINGET */
	number(w->to, id, 4);
}

/* Remembers the text that was just written. */
static void remember(struct frag_pickle_writer *w, uint32_t *cell, const char *text)
{
	w->failed |= FRAG_GROW(w->memo, w->memo_count, w->memo_cap, "texts", NULL) != 0;
	if (w->memo_count == w->memo_cap)
		return;
	w->memo[w->memo_count].text = frag_host_strdup(text);
	if (!w->memo[w->memo_count].text) {
		w->failed = true;
		return;
	}
	w->memo[w->memo_count].id = frag_pickle_put_memo(w);
	*cell = ++w->memo_count;
	if (w->memo_count * 2 > w->mask)
		grow_cells(w);
}

void frag_pickle_put_text(struct frag_pickle_writer *w, const char *text)
{
	size_t n = strlen(text);
	uint32_t *cell = n <= MEMO_TEXT_MAX && !w->failed ? cell_of(w, text, n) : NULL;

	if (cell && *cell) {
		frag_pickle_put_again(w, w->memo[*cell - 1].id);
		return;
	}
	fputc('X', w->to); /* BINUNICODE */
	number(w->to, n, 4);
	fwrite(text, 1, n, w->to);
	if (cell)
		remember(w, cell, text);
}

static void put_uint(struct frag_pickle_writer *w, uint64_t v)
{
	unsigned n = 1;

	if (v <= 0xff) {
		fputc('K', w->to); /* BININT1 */
		number(w->to, v, 1);
	} else if (v <= 0xffff) {
		fputc('M', w->to); /* BININT2 */
		number(w->to, v, 2);
	} else if (v <= INT32_MAX) {
		fputc('J', w->to); /* BININT */
		number(w->to, v, 4);
	} else {
		while (n < 9 && v >> (8 * n - 1)) /* two's complement: the top bit stays 0 */
			n = n == 8 ? 9 : n + 1;
		fputs("\x8a", w->to); /* LONG1 */
		fputc((int)n, w->to);
		number(w->to, v, FRAG_MIN(n, 8u));
		if (n == 9)
			fputc(0, w->to);
	}
}

void frag_pickle_set_double(struct frag_pickle_writer *w, const char *key, double v)
{
	uint64_t bits;

	frag_pickle_put_text(w, key);
	memcpy(&bits, &v, sizeof(bits));
	fputc('G', w->to); /* BINFLOAT, the highest byte first */
	for (int i = 7; i >= 0; i--)
		fputc((int)(bits >> (8 * i) & 0xff), w->to);
}

void frag_pickle_set_bool(struct frag_pickle_writer *w, const char *key, bool v)
{
	frag_pickle_put_text(w, key);
	fputs(v ? "\x88" : "\x89", w->to);
}

void frag_pickle_set_pair(struct frag_pickle_writer *w, const char *key, uint64_t a, uint64_t b)
{
	frag_pickle_put_text(w, key);
	put_uint(w, a);
	put_uint(w, b);
	fputs("\x86", w->to); /* TUPLE2 */
}

void frag_pickle_set_text(struct frag_pickle_writer *w, const char *key, const char *text)
{
	frag_pickle_put_text(w, key);
	frag_pickle_put_text(w, text);
}

void frag_pickle_set_uint(struct frag_pickle_writer *w, const char *key, uint64_t v)
{
	frag_pickle_put_text(w, key);
	put_uint(w, v);
}

void frag_pickle_set_list(struct frag_pickle_writer *w, const char *key)
{
	frag_pickle_put_text(w, key);
	frag_pickle_put_list(w);
}

void frag_pickle_set_dict(struct frag_pickle_writer *w, const char *key)
{
	frag_pickle_put_text(w, key);
	frag_pickle_put_dict(w);
}
