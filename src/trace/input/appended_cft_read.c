/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a .cft that grows: block by block, each checked before a line of it is given out. */
#include "appended_cft_read.h"

#include <string.h>

/* 1: all n bytes are there, 0: the file ends before, -1: errno. */
static int take(struct frag_appended_read *g, void *dst, size_t n)
{
	char *to = dst;

	while (n) {
		ssize_t got = g->pull(g->ctx, to, n);

		if (got <= 0)
			return (int)got;
		to += got;
		n -= (size_t)got;
	}
	return 1;
}

int frag_appended_read_init(struct frag_appended_read *g, frag_appended_pull_fn pull, void *ctx)
{
	unsigned char preamble[FRAG_APPENDED_PREAMBLE];

	*g = (struct frag_appended_read){ .pull = pull, .ctx = ctx, .offset = sizeof(preamble) };
	g->text = frag_host_alloc(FRAG_APPENDED_TEXT_MAX);
	return g->text && take(g, preamble, sizeof(preamble)) == 1 ? 0 : -1;
}

void frag_appended_read_release(struct frag_appended_read *g)
{
	frag_host_free(g->text);
	g->text = NULL;
}

static int next_block(struct frag_appended_read *g)
{
	struct frag_appended_block b, want;
	int rc = take(g, &b, sizeof(b));

	if (rc <= 0)
		return rc;
	g->wrong = frag_appended_check(&b);
	if (g->wrong)
		return -1;
	rc = take(g, g->text, b.bytes);
	if (rc <= 0)
		return rc;
	want = frag_appended_head(g->text, b.bytes, g->number);
	if (memcmp(&want, &b, sizeof(b)) != 0) {
		g->wrong = "checksum differs";
		return -1;
	}
	g->number++;
	g->offset += sizeof(b) + b.bytes;
	g->at = 0;
	g->end = b.bytes;
	return 1;
}

ssize_t frag_appended_read(struct frag_appended_read *g, unsigned char *dst, size_t room)
{
	size_t n;

	if (g->at == g->end) {
		int rc = next_block(g);

		if (rc <= 0)
			return rc;
	}
	n = FRAG_MIN(room, g->end - g->at);
	memcpy(dst, g->text + g->at, n);
	g->at += n;
	return (ssize_t)n;
}
