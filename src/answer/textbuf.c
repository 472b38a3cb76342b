/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows, and the escaping rules of what we write: HTML and CSV. */
#include "answer/textbuf.h"

#include <frag/opt.h>

#include "base/clean.h"
#include "base/outfile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void frag_text_release(struct frag_text *t)
{
	frag_host_free(t->s);
	memset(t, 0, sizeof(*t));
}

const char *frag_text_str(const struct frag_text *t)
{
	return t->s && !t->failed ? t->s : "";
}

int frag_text_check(const struct frag_text *t, struct frag_err *err)
{
	return t->failed ? frag_fail_nomem(err, "text of a report") : 0;
}

int frag_text_put(const struct frag_text *t, const char *path, struct frag_err *err)
{
	FRAG_TRY(frag_text_check(t, err));
	return frag_outfile_put(path, frag_text_str(t), t->len, err);
}

int frag_text_show(const struct frag_text *t, struct frag_err *err)
{
	FRAG_TRY(frag_text_check(t, err));
	fputs(frag_text_str(t), stdout);
	return 0;
}

/* Room for n more bytes and the NUL. */
static bool reserve(struct frag_text *t, size_t n)
{
	size_t cap = t->cap ? t->cap : 256;
	char *s;

	if (t->failed)
		return false;
	if (n < t->cap - t->len)
		return true;
	while (cap - t->len <= n)
		cap *= 2;
	s = frag_host_realloc(t->s, cap, 1);
	if (!s) {
		t->failed = true;
		return false;
	}
	t->s = s;
	t->cap = cap;
	return true;
}

void frag_text_addn(struct frag_text *t, const char *s, size_t n)
{
	if (!reserve(t, n))
		return;
	memcpy(t->s + t->len, s, n);
	t->len += n;
	t->s[t->len] = '\0';
}

void frag_text_add(struct frag_text *t, const char *s)
{
	frag_text_addn(t, s, strlen(s));
}

void frag_text_addf(struct frag_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!reserve(t, 128))
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->s + t->len, t->cap - t->len, fmt, ap);
	va_end(ap);
	if ((size_t)n >= t->cap - t->len) {
		if (!reserve(t, (size_t)n))
			return;
		va_start(ap, fmt);
		vsnprintf(t->s + t->len, t->cap - t->len, fmt, ap);
		va_end(ap);
	}
	t->len += (size_t)n;
}

void frag_text_repeat(struct frag_text *t, const char *s, size_t n)
{
	while (n--)
		frag_text_add(t, s);
}

void frag_text_add_href(struct frag_text *t, const char *path)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/";

	/* "javascript:x" is a folder's name, too */
	if (*path != '/')
		frag_text_add(t, "./");
	for (; *path; path++) {
		if (strchr(plain, *path))
			frag_text_addn(t, path, 1);
		else
			frag_text_addf(t, "%%%02X", (unsigned char)*path);
	}
}

void frag_text_add_html(struct frag_text *t, const char *s)
{
	static const char special[] = "&<>\"'";
	static const char *const escaped[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };

	for (size_t left = strlen(s), n; left; s += n, left -= n) {
		const char *at = strchr(special, *s);

		n = frag_clean_length(s, left);
		/* HTML forbids controls, even escaped, and stray bytes */
		if (at)
			frag_text_add(t, escaped[at - special]);
		else
			frag_text_addn(t, n || *s == '\n' || *s == '\t' ? s : "?", n ? n : 1);
		n = n ? n : 1;
	}
}

void frag_text_add_clean(struct frag_text *t, const char *s, size_t n)
{
	for (size_t len; n; s += len, n -= len) {
		len = frag_clean_length(s, n);
		frag_text_addn(t, len || *s == '\n' ? s : "?", len ? len : 1);
		len = len ? len : 1;
	}
}

void frag_text_add_shell(struct frag_text *t, const char *word)
{
	FRAG_AUTO_FREE char *quoted = frag_shell_word(word);

	if (quoted)
		frag_text_add(t, quoted);
	else
		t->failed = true;
}

void frag_text_add_csv(struct frag_text *t, const char *s)
{
	/* a spreadsheet would take it for a formula */
	const char *mark = *s && strchr("=+-@\t\r", *s) ? "'" : "";
	bool quoted = strpbrk(s, ",\"\r\n") || *s == ' ';

	frag_text_add(t, quoted ? "\"" : "");
	frag_text_add(t, mark);
	for (size_t n; (n = strcspn(s, "\"")), n || *s; s += n + (s[n] == '"')) {
		frag_text_add_clean(t, s, n);
		frag_text_add(t, s[n] ? "\"\"" : "");
	}
	frag_text_add(t, quoted ? "\"" : "");
}

void frag_text_add_number(struct frag_text *t, double v)
{
	if (isfinite(v))
		frag_text_addf(t, "%.15g", v);
}

const char *frag_format_grouped(uint64_t n, char *buf, size_t cap)
{
	char digits[24];
	size_t count = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;

	FRAG_ASSERT(cap >= sizeof(digits) + sizeof(digits) / 3);
	for (size_t i = 0; i < count; i++) {
		if (i && (count - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

const char *frag_format_ns(uint64_t ns, char *buf, size_t cap)
{
	static const struct {
		uint64_t from;
		const char *unit;
	} units[] = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" } };
	size_t i = 0;
	double v;

	while (i < FRAG_ARRAY_LEN(units) && ns < units[i].from)
		i++;
	if (i == FRAG_ARRAY_LEN(units)) {
		snprintf(buf, cap, "%" PRIu64 " ns", ns);
		return buf;
	}
	v = (double)ns / (double)units[i].from;
	snprintf(buf, cap, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[i].unit);
	return buf;
}

size_t frag_text_width(const char *s)
{
	size_t width = 0;

	for (; *s; s++)
		width += ((unsigned char)*s & 0xc0) != 0x80;
	return width;
}

size_t frag_text_line(const char *s, size_t room, bool whole)
{
	size_t n = 0, width = 0, word = 0, fits = 1;

	for (; s[n] && s[n] != '\n'; n++) {
		width += ((unsigned char)s[n] & 0xc0) != 0x80;
		if (s[n] == ' ' && width - 1 <= room)
			word = n;
		if (width <= room)
			fits = n + 1;
		else if (word || !whole || s[n] == ' ')
			return word ? word : whole ? n : fits;
	}
	return n;
}

#define ROOM_LEAST 20u

void frag_text_add_lines(struct frag_text *t, const char *first, const char *rest, const char *text,
			 unsigned columns)
{
	size_t indent = frag_text_width(first);
	size_t room = !columns			      ? SIZE_MAX
		      : columns > indent + ROOM_LEAST ? columns - indent
						      : ROOM_LEAST;

	do {
		size_t n = frag_text_line(text, room, true);

		frag_text_add(t, first);
		frag_text_add_clean(t, text, n);
		frag_text_add(t, "\n");
		text += n;
		text += *text == '\n' ? 1 : strspn(text, " ");
		first = rest;
	} while (*text);
}
