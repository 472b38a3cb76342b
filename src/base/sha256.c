/* SPDX-License-Identifier: Apache-2.0 */
/* See sha256.h. */
#include "base/sha256.h"

#include <stdio.h>

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <nettle/version.h>

void frag_sha256(const void *bytes, size_t len, char text[FRAG_SHA256_TEXT])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, len, bytes);
#if NETTLE_VERSION_MAJOR < 4
	sha256_digest(&ctx, sizeof(digest), digest);
#else
	sha256_digest(&ctx, digest);
#endif
	base16_encode_update(text, sizeof(digest), digest);
	text[FRAG_SHA256_TEXT - 1] = '\0';
}

int frag_sha256_file(const char *path, char text[FRAG_SHA256_TEXT], struct frag_err *err)
{
	FRAG_AUTO_FREE unsigned char *bytes = frag_host_alloc(FRAG_SHA256_FILE_MAX + 1);
	FRAG_AUTO_FILE FILE *in = fopen(path, "rb");
	size_t n;

	if (!in)
		return FRAG_INPUT(err, "cannot open '%.200s': %m", path);
	FRAG_CHECK_ALLOC(bytes, "hash of a file", err);
	n = fread(bytes, 1, FRAG_SHA256_FILE_MAX + 1, in);
	if (ferror(in) || n > FRAG_SHA256_FILE_MAX)
		return FRAG_INPUT(err, "'%.200s' cannot be read, or has over 256 MiB", path);
	frag_sha256(bytes, n, text);
	return 0;
}
