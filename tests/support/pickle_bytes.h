/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles written by hand, opcode by opcode. Aborts if memory is short. */
#ifndef TESTS_SUPPORT_PICKLE_BYTES_H
#define TESTS_SUPPORT_PICKLE_BYTES_H

#include <stddef.h>
#include <stdint.h>

enum pickle_dialect {
	PICKLE_PYTHON,	 /* protocol 4: SHORT_BINUNICODE, MEMOIZE */
	PICKLE_PYTHON2,	 /* protocol 2 of Python: BINUNICODE, BINPUT */
	PICKLE_LIBTORCH, /* protocol 2 of libtorch: LONG1 of 8 bytes */
};

struct pickle_bytes {
	unsigned char *bytes;
	size_t len, cap;
	enum pickle_dialect dialect;
	uint32_t memo; /* next index */
};

void pb_release(struct pickle_bytes *p);
void pb_raw(struct pickle_bytes *p, const void *bytes, size_t n);
void pb_op(struct pickle_bytes *p, int op);
/* n bytes, little-endian. */
void pb_le(struct pickle_bytes *p, uint64_t v, int n);

/* In the words of the dialect. */
void pb_begin(struct pickle_bytes *p); /* PROTO, and FRAME where there is one */
void pb_end(struct pickle_bytes *p);
void pb_remember(struct pickle_bytes *p);
void pb_text(struct pickle_bytes *p, const char *text);
/* The text written before as memo entry *index, or now if *index is 0. */
void pb_text_once(struct pickle_bytes *p, const char *text, uint32_t *index);
void pb_int(struct pickle_bytes *p, int64_t v);
void pb_bool(struct pickle_bytes *p, int v);
void pb_float(struct pickle_bytes *p, double v);
void pb_dict(struct pickle_bytes *p); /* EMPTY_DICT, remembered, MARK */
void pb_list(struct pickle_bytes *p);
void pb_close_dict(struct pickle_bytes *p); /* SETITEMS */
void pb_close_list(struct pickle_bytes *p); /* APPENDS */
void pb_text_int(struct pickle_bytes *p, const char *key, int64_t v);
void pb_text_text(struct pickle_bytes *p, const char *key, const char *v);

/* One trace entry as PyTorch 2.11 writes it. */
void pb_entry(struct pickle_bytes *p, const char *action, int64_t addr, int64_t size,
	      int64_t stream, int64_t time_us);

#endif
