/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles, protocol 2; see pickle_write.h. Lists and dicts are one MARK … APPENDS or SETITEMS. */
#include "pickle_write.h"

#include <stdarg.h>
#include <string.h>

#include <frag/base.h>

#include "lib/grow.h"

#define BATCH 1000u /* as Python's own pickler */

static void number(FILE *to, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		fputc((int)(v >> (8 * i) & 0xff), to);
}

int frag_pickle_write_begin(struct frag_pickle_writer *w, FILE *to, struct frag_err *err)
{
	*w = (struct frag_pickle_writer){ .to = to };
	FRAG_TRY(FRAG_GROW(w->ids, 0, w->ids_cap, "pickle", err));
	w->ids[0] = 0;
	fputs("\x80\x02", to);
	return frag_strings_create(&w->texts, err);
}

int frag_pickle_write_end(struct frag_pickle_writer *w, struct frag_err *err)
{
	bool failed = w->failed;

	fputc('.', w->to);
	frag_strings_destroy(w->texts);
	frag_host_free(w->ids);
	*w = (struct frag_pickle_writer){ 0 };
	return failed ? frag_fail_nomem(err, "pickle") : 0;
}

void frag_pickle_put_list_more(struct frag_pickle_writer *w)
{
	if (++w->in_list < BATCH)
		return;
	fputs("e(", w->to);
	w->in_list = 0;
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

static void put_text(struct frag_pickle_writer *w, const char *text)
{
	uint32_t known = frag_strings_count(w->texts), i = 0;
	size_t n = strlen(text);

	w->failed |= frag_strings_intern(w->texts, text, n, &i, NULL) ||
		     FRAG_GROW(w->ids, i, w->ids_cap, "pickle", NULL);
	if (w->failed)
		return;
	if (i == known)
		w->ids[i] = 0;
	if (w->ids[i]) {
		frag_pickle_put_again(w, w->ids[i] - 1);
		return;
	}
	fputc('X', w->to); /* BINUNICODE */
	number(w->to, n, 4);
	fwrite(text, 1, n, w->to);
	w->ids[i] = frag_pickle_put_memo(w) + 1;
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

static void put_double(struct frag_pickle_writer *w, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	fputc('G', w->to); /* BINFLOAT, the highest byte first */
	number(w->to, __builtin_bswap64(bits), 8);
}

void frag_pickle_put(struct frag_pickle_writer *w, const char *form, ...)
{
	va_list args;

	va_start(args, form);
	for (; *form; form++)
		switch (*form) {
		case 's':
			put_text(w, va_arg(args, const char *));
			break;
		case 'p':
			put_uint(w, va_arg(args, uint64_t));
			put_uint(w, va_arg(args, uint64_t));
			fputs("\x86", w->to); /* TUPLE2 */
			break;
		case 'u':
			put_uint(w, va_arg(args, uint64_t));
			break;
		case 'd':
			put_double(w, va_arg(args, double));
			break;
		case 'b':
			fputs(va_arg(args, int) ? "\x88" : "\x89", w->to);
			break;
		case '{':
			fputs("}(", w->to);
			break;
		case '[':
			fputs("](", w->to);
			w->in_list = 0;
			break;
		default:
			fputc(*form == '}' ? 'u' : 'e', w->to);
		}
	va_end(args);
}
