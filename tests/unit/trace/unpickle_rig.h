/* SPDX-License-Identifier: Apache-2.0 */
/* For unit tests of the pickle machine: reads a pickle from memory. Include after cmocka.h. */
#ifndef FRAG_TESTS_UNPICKLE_RIG_H
#define FRAG_TESTS_UNPICKLE_RIG_H

#include "trace/torch/unpickle.h"

struct result {
	struct frag_pickle *p;
	frag_pv root;
	struct frag_err err;
	int rc;
};

/* With the words "action" and "size". The caller destroys r.p. */
static inline struct result read_with(const void *bytes, size_t n, frag_record_fn fn, void *ctx)
{
	static const char *const words[] = { "action", "size" };
	struct result r = { 0 };
	struct frag_input *in = NULL;

	r.rc = frag_input_open_memory("test", bytes, n, &in, &r.err);
	if (!r.rc)
		r.rc = frag_pickle_create(words, 2, fn, ctx, &r.p, &r.err);
	if (!r.rc)
		r.rc = frag_pickle_read(r.p, in, &r.root, &r.err);
	frag_input_close(in);
	return r;
}

static inline struct result read_bytes(const void *bytes, size_t n)
{
	return read_with(bytes, n, NULL, NULL);
}

/* A pickle of one value. */
#define READ(text) read_bytes("\x80\x04" text ".", sizeof("\x80\x04" text ".") - 1)

#endif
