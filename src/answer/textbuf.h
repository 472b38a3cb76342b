/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that grows. Additions after host memory ran out are ignored and
 * remembered, so that callers check once, at the end (frag_text_check).
 *
 * Ownership: init by zeroing; release by frag_text_release.
 */
#ifndef FRAG_ANSWER_TEXTBUF_H
#define FRAG_ANSWER_TEXTBUF_H

#include <frag/base.h>
#include <frag/error.h>

struct frag_text {
	char *s; /* NUL-terminated once anything was added, else NULL */
	size_t len, cap;
	bool failed;
};

void frag_text_release(struct frag_text *t);
/* Never NULL: "" when empty or failed. Borrowed until the next addition. */
const char *frag_text_str(const struct frag_text *t);
/* 0, or FRAG_ENOMEM if an addition was lost. */
int frag_text_check(const struct frag_text *t, struct frag_err *err);
/* Checks it and writes it to a file, complete or not at all; "-" is standard output. */
int frag_text_put(const struct frag_text *t, const char *path, struct frag_err *err);
/* Checks it and prints it. */
int frag_text_show(const struct frag_text *t, struct frag_err *err);

void frag_text_add(struct frag_text *t, const char *s);
void frag_text_addn(struct frag_text *t, const char *s, size_t n);
void frag_text_addf(struct frag_text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* `s` n times. */
void frag_text_repeat(struct frag_text *t, const char *s, size_t n);
/* What may be shown of the first n bytes, and line ends; '?' for each other byte. */
void frag_text_add_clean(struct frag_text *t, const char *s, size_t n);

/* Text inside HTML or an attribute in double quotes. */
void frag_text_add_html(struct frag_text *t, const char *s);
/* A path as the value of href: never taken for a scheme, whatever its name. */
void frag_text_add_href(struct frag_text *t, const char *path);
/* One word as a shell would take it back. */
void frag_text_add_shell(struct frag_text *t, const char *word);
/* One CSV field, clean, quoted where commas, quotes or line ends require it (RFC 4180). */
void frag_text_add_csv(struct frag_text *t, const char *s);
/* A number for CSV: up to 15 significant digits; nothing for NaN and infinities. */
void frag_text_add_number(struct frag_text *t, double v);

/* As FRAG_BYTES, texts that live as long as the block they stand in: "1,234,567" */
#define FRAG_GROUPED(n) frag_format_grouped((n), (char[32]){ 0 }, 32)
const char *frag_format_grouped(uint64_t n, char *buf, size_t cap);
/* "812 ns", "3.1 us", "45.2 ms", "1.20 s" */
#define FRAG_NS(ns) frag_format_ns((ns), (char[32]){ 0 }, 32)
const char *frag_format_ns(uint64_t ns, char *buf, size_t cap);

/* Columns that `s` takes on a terminal: UTF-8 characters, without combining marks. */
size_t frag_text_width(const char *s);
/*
 * Bytes of the line that `s` begins with: up to '\n', or to the last blank with at most `room`
 * columns before it. A longer word is cut there; whole: it stays whole.
 */
size_t frag_text_line(const char *s, size_t room, bool whole);
/* `text` in lines of `columns` (0: as it is), the first behind `first`, others behind `rest`. */
void frag_text_add_lines(struct frag_text *t, const char *first, const char *rest, const char *text,
			 unsigned columns);

#endif
