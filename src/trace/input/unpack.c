/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are packed; see unpack.h. */
#include "unpack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- libarchive by dlopen: a table of symbols, all of them compulsory ---- */

static struct {
	pthread_once_t once;
	bool there;
	char fault[256]; /* what the loader said */
	struct frag_archive_lib lib;
} shared = { .once = PTHREAD_ONCE_INIT };

static void start(void)
{
	static const char *const files[] = { "libarchive.so.13", "libarchive.so", NULL };
	static const struct frag_symbol symbols[] = {
#define X(name) FRAG_SYMBOL(struct frag_archive_lib, name, #name),
		FRAG_ARCHIVE_FUNCTIONS(X)
#undef X
	};
	void *library = frag_library_open(files);
	const char *said = library ? NULL : dlerror();
	const char *missing = library ? FRAG_SYMBOLS_FIND(library, symbols, &shared.lib) : NULL;

	shared.there = library && !missing;
	if (missing)
		snprintf(shared.fault, sizeof(shared.fault), "it has no %s", missing);
	else if (!library)
		snprintf(shared.fault, sizeof(shared.fault), "%s", said ? said : "no reason given");
}

const struct frag_archive_lib *frag_archive_lib(const char **fault)
{
	pthread_once(&shared.once, start);
	*fault = shared.fault;
	return shared.there ? &shared.lib : NULL;
}

/* ---- CRC-32 (RFC 1952, reflected 0xedb88320), eight bytes at a time through eight tables ---- */

#define GZIP_MAGIC 0x1f8b08u /* gzip, deflate */

void frag_gzip_check_init(struct frag_gzip_check *c)
{
	*c = (struct frag_gzip_check){ .crc = 0 };
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;

		for (int k = 0; k < 8; k++)
			v = v >> 1 ^ (v & 1 ? 0xedb88320u : 0);
		c->table[0][i] = v;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			c->table[k][i] =
				c->table[k - 1][i] >> 8 ^ c->table[0][c->table[k - 1][i] & 0xff];
}

static uint32_t le32(const unsigned char *b)
{
	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

void frag_gzip_check_plain(struct frag_gzip_check *c, const unsigned char *b, size_t n)
{
	uint32_t crc = ~c->crc;

	c->plain_bytes += n;
	for (; n >= 8; n -= 8, b += 8) {
		uint32_t low = le32(b) ^ crc, high = le32(b + 4);

		crc = c->table[7][low & 0xff] ^ c->table[6][low >> 8 & 0xff] ^
		      c->table[5][low >> 16 & 0xff] ^ c->table[4][low >> 24] ^
		      c->table[3][high & 0xff] ^ c->table[2][high >> 8 & 0xff] ^
		      c->table[1][high >> 16 & 0xff] ^ c->table[0][high >> 24];
	}
	for (; n; n--, b++)
		crc = crc >> 8 ^ c->table[0][(crc ^ *b) & 0xff];
	c->crc = ~crc;
}

void frag_gzip_check_stored(struct frag_gzip_check *c, const unsigned char *b, size_t n)
{
	size_t keep = FRAG_MIN(n, sizeof(c->tail));

	for (size_t i = 0; i < n && !c->members; i++) {
		c->recent = (c->recent << 8 | b[i]) & 0xffffff;
		c->members = c->recent == GZIP_MAGIC && c->stored_bytes + i > 2;
	}
	memmove(c->tail, c->tail + keep, sizeof(c->tail) - keep);
	memcpy(c->tail + sizeof(c->tail) - keep, b + n - keep, keep);
	c->stored_bytes += n;
}

bool frag_gzip_check_good(const struct frag_gzip_check *c)
{
	if ((uint32_t)c->plain_bytes == le32(c->tail + 4))
		return c->crc == le32(c->tail);
	return c->members;
}

/* ---- a .cft that grows: block by block, each checked before a line of it is given out ---- */

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
