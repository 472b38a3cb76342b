/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pickles written as text, in the words of any dialect:
 *
 *	{ key value … }   [ item … ]   ( item … )   a dict, a list, a tuple (of plain values)
 *	12  0x1f  S0+2M  -5  0.6  true  false  none  numbers and constants
 *	word  "text with \xNN"                       strings
 *	&name VALUE … *name                          one object at two places (through the memo)
 *	$word                                        a string, once: fetched when it is there already
 *	!bytes                                       opcodes as they are, with C's escapes
 *	@block @segment @entry @oom @annotation      the dicts of a snapshot, see pickle_text.c
 *
 * A text may be a part of a pickle: another part closes what it leaves open.
 */
#ifndef TESTS_SUPPORT_PICKLE_TEXT_H
#define TESTS_SUPPORT_PICKLE_TEXT_H

#include <frag/trace.h>

/* Addresses and a Unix time: names in the texts, too. */
#define S0 0x7f0000000000ll
#define S1 0x7f1000000000ll
#define T0 1795186186043381ll

enum pickle_dialect {
	PICKLE_PYTHON,	 /* protocol 4: SHORT_BINUNICODE, MEMOIZE */
	PICKLE_PYTHON2,	 /* protocol 2 of Python: BINUNICODE, BINPUT */
	PICKLE_LIBTORCH, /* protocol 2 of libtorch: LONG1 of 8 bytes */
};

#define PICKLE_KNOWN 32
#define PICKLE_NAME 20

struct pickle_bytes {
	unsigned char *bytes;
	size_t len, cap;
	enum pickle_dialect dialect;
	uint32_t memo; /* next index */
	struct {
		char name[PICKLE_NAME];
		uint32_t memo;
	} known[PICKLE_KNOWN];
	unsigned known_count;
};

void pb_release(struct pickle_bytes *p);
void pb_raw(struct pickle_bytes *p, const void *bytes, size_t n);
void pb_op(struct pickle_bytes *p, int op);
/* n bytes, little-endian. */
void pb_le(struct pickle_bytes *p, uint64_t v, int n);
void pb_begin(struct pickle_bytes *p); /* PROTO, and FRAME where there is one */
void pb_text(struct pickle_bytes *p, const char *text);

void pickle_text(struct pickle_bytes *b, const char *text);
void pickle_textf(struct pickle_bytes *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A whole pickle of one value. The caller releases it. */
struct pickle_bytes pickle_of(enum pickle_dialect dialect, const char *text);

/* Reads a snapshot of PyTorch as a file named "snapshot": its code and *err, or *out. */
int snapshot_read(const void *bytes, size_t n, const char *options, struct frag_trace **out,
		  struct frag_err *err);
/* The same, and the test fails if it is refused. */
struct frag_trace *snapshot_read_good(const struct pickle_bytes *b);

#endif
