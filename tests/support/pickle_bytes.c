/* SPDX-License-Identifier: Apache-2.0 */
#include "pickle_bytes.h"

#include <stdlib.h>
#include <string.h>

void pb_release(struct pickle_bytes *p)
{
	free(p->bytes);
	*p = (struct pickle_bytes){ .dialect = p->dialect };
}

void pb_raw(struct pickle_bytes *p, const void *bytes, size_t n)
{
	if (p->len + n > p->cap) {
		p->cap = 2 * (p->len + n) + 64;
		p->bytes = realloc(p->bytes, p->cap);
		if (!p->bytes)
			abort();
	}
	memcpy(p->bytes + p->len, bytes, n);
	p->len += n;
}

void pb_op(struct pickle_bytes *p, int op)
{
	unsigned char b = (unsigned char)op;

	pb_raw(p, &b, 1);
}

void pb_le(struct pickle_bytes *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		pb_op(p, (int)(v >> 8 * i & 0xff));
}

void pb_begin(struct pickle_bytes *p)
{
	pb_op(p, 0x80);
	pb_op(p, p->dialect == PICKLE_PYTHON ? 4 : 2);
	if (p->dialect != PICKLE_PYTHON)
		return;
	pb_op(p, 0x95);
	pb_le(p, 12345, 8);
}

void pb_end(struct pickle_bytes *p)
{
	pb_op(p, '.');
}

void pb_remember(struct pickle_bytes *p)
{
	if (p->dialect == PICKLE_PYTHON) {
		pb_op(p, 0x94);
	} else if (p->memo < 256) {
		pb_op(p, 'q');
		pb_le(p, p->memo, 1);
	} else {
		pb_op(p, 'r');
		pb_le(p, p->memo, 4);
	}
	p->memo++;
}

void pb_text(struct pickle_bytes *p, const char *text)
{
	size_t n = strlen(text);

	if (p->dialect == PICKLE_PYTHON && n < 256) {
		pb_op(p, 0x8c);
		pb_le(p, n, 1);
	} else {
		pb_op(p, 'X');
		pb_le(p, n, 4);
	}
	pb_raw(p, text, n);
	pb_remember(p);
}

void pb_text_once(struct pickle_bytes *p, const char *text, uint32_t *index)
{
	if (!*index) {
		*index = p->memo;
		pb_text(p, text);
	} else {
		pb_op(p, *index < 256 ? 'h' : 'j');
		pb_le(p, *index, *index < 256 ? 1 : 4);
	}
}

void pb_int(struct pickle_bytes *p, int64_t v)
{
	int n = 8;

	if (v >= 0 && v < 256) {
		pb_op(p, 'K');
		pb_le(p, (uint64_t)v, 1);
	} else if (v >= 0 && v < 65536) {
		pb_op(p, 'M');
		pb_le(p, (uint64_t)v, 2);
	} else if (v >= INT32_MIN && v <= INT32_MAX) {
		pb_op(p, 'J');
		pb_le(p, (uint64_t)v, 4);
	} else {
		while (p->dialect != PICKLE_LIBTORCH && n > 1 &&
		       v >> (8 * (n - 1) - 1) == (v < 0 ? -1 : 0))
			n--;
		pb_op(p, 0x8a);
		pb_le(p, (uint64_t)n, 1);
		pb_le(p, (uint64_t)v, n);
	}
}

void pb_bool(struct pickle_bytes *p, int v)
{
	pb_op(p, v ? 0x88 : 0x89);
}

void pb_float(struct pickle_bytes *p, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, 8);
	pb_op(p, 'G');
	for (int i = 7; i >= 0; i--)
		pb_op(p, (int)(bits >> 8 * i & 0xff));
}

void pb_dict(struct pickle_bytes *p)
{
	pb_op(p, '}');
	if (p->dialect != PICKLE_LIBTORCH)
		pb_remember(p);
	pb_op(p, '(');
}

void pb_list(struct pickle_bytes *p)
{
	pb_op(p, ']');
	if (p->dialect != PICKLE_LIBTORCH)
		pb_remember(p);
	pb_op(p, '(');
}

void pb_close_dict(struct pickle_bytes *p)
{
	pb_op(p, 'u');
}

void pb_close_list(struct pickle_bytes *p)
{
	pb_op(p, 'e');
}

void pb_text_int(struct pickle_bytes *p, const char *key, int64_t v)
{
	pb_text(p, key);
	pb_int(p, v);
}

void pb_text_text(struct pickle_bytes *p, const char *key, const char *v)
{
	pb_text(p, key);
	pb_text(p, v);
}

void pb_entry(struct pickle_bytes *p, const char *action, int64_t addr, int64_t size,
	      int64_t stream, int64_t time_us)
{
	pb_dict(p);
	pb_text_text(p, "action", action);
	pb_text_int(p, strcmp(action, "oom") ? "addr" : "device_free", addr);
	pb_text_int(p, "size", size);
	pb_text_int(p, "stream", stream);
	pb_text_int(p, "time_us", time_us);
	pb_text_text(p, "compile_context", "N/A");
	pb_text_text(p, "user_metadata", "");
	pb_close_dict(p);
}
