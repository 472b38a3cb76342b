/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pickles written as text, in the words of any dialect:
 *
 *	{ key value … }   [ item … ]   ( item … )   a dict, a list, a tuple (of plain values)
 *	12  0x1f  S0+2M  -5  0.6  true  false  none  numbers and constants
 *	word  "text with \xNN"                       strings
 *	&name VALUE … *name                          one object at two places (through the memo)
 *	!bytes                                       opcodes as they are, with C's escapes
 *	@block @segment @entry @oom @annotation      the dicts of a snapshot, see pickle_text.c
 *
 * A text may also be a part of a pickle: what it leaves open, another part closes.
 */
#ifndef TESTS_SUPPORT_PICKLE_TEXT_H
#define TESTS_SUPPORT_PICKLE_TEXT_H

#include <frag/trace.h>

#include "pickle_bytes.h"

/* Addresses and a Unix time: names in the texts, too. */
#define S0 0x7f0000000000ll
#define S1 0x7f1000000000ll
#define T0 1795186186043381ll

void pickle_text(struct pickle_bytes *b, const char *text);
/* A whole pickle of one value. The caller releases it. */
struct pickle_bytes pickle_of(enum pickle_dialect dialect, const char *text);

/* Reads a snapshot of PyTorch as a file named "snapshot": its code and *err, or *out. */
int snapshot_read(const void *bytes, size_t n, const char *options, struct frag_trace **out,
		  struct frag_err *err);
/* The same, and the test fails if it is refused. */
struct frag_trace *snapshot_read_good(const struct pickle_bytes *b);

#endif
