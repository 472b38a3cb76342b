/* SPDX-License-Identifier: Apache-2.0 */
/* See sha256.h. The steps are those of FIPS 180-4. */
#include "base/sha256.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <frag/base.h>

#define BLOCK 64u

/* The first 32 bits of the fraction of a root: exact, because a long double has 64 digits. */
static uint32_t fraction(long double root)
{
	return (uint32_t)((root - floorl(root)) * 4294967296.0L);
}

/* The constants are roots of the first 64 primes. */
static void begin(uint32_t h[8], uint32_t k[BLOCK])
{
	for (unsigned p = 2, n = 0; n < BLOCK; p++) {
		unsigned d = 2;

		while (p % d)
			d++;
		if (d < p)
			continue;
		if (n < 8)
			h[n] = fraction(sqrtl(p));
		k[n++] = fraction(cbrtl(p));
	}
}

static uint32_t turn(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void mix(uint32_t h[8], const uint32_t k[BLOCK], const unsigned char *block)
{
	uint32_t w[BLOCK], v[8];

	for (unsigned t = 0; t < 16; t++, block += 4)
		w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
		       (uint32_t)block[2] << 8 | block[3];
	for (unsigned t = 16; t < BLOCK; t++) {
		uint32_t a = w[t - 15], b = w[t - 2];

		w[t] = w[t - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 7] +
		       (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
	}
	memcpy(v, h, sizeof(v));
	for (unsigned t = 0; t < BLOCK; t++) {
		uint32_t a = v[0], e = v[4];
		uint32_t t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
			      ((e & v[5]) ^ (~e & v[6])) + k[t] + w[t];

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
		       ((a & v[2]) ^ (a & v[3]) ^ (v[2] & v[3]));
	}
	for (unsigned i = 0; i < 8; i++)
		h[i] += v[i];
}

void frag_sha256(const void *bytes, size_t len, char text[FRAG_SHA256_TEXT])
{
	size_t whole = len / BLOCK * BLOCK, rest = len - whole;
	size_t padded = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	unsigned char tail[2 * BLOCK] = { 0 };
	uint32_t h[8], k[BLOCK];

	begin(h, k);
	for (size_t i = 0; i < whole; i += BLOCK)
		mix(h, k, (const unsigned char *)bytes + i);
	memcpy(tail, (const unsigned char *)bytes + whole, rest);
	tail[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		tail[padded - 1 - i] = (unsigned char)((uint64_t)len * 8 >> (8 * i));
	for (size_t i = 0; i < padded; i += BLOCK)
		mix(h, k, tail + i);
	for (unsigned i = 0; i < 8; i++)
		snprintf(text + (size_t)8 * i, 9, "%08x", h[i]);
}

int frag_sha256_file(const char *path, char text[FRAG_SHA256_TEXT], struct frag_err *err)
{
	FRAG_AUTO_FREE unsigned char *bytes = frag_host_alloc(FRAG_SHA256_FILE_MAX + 1);
	FRAG_AUTO_FILE FILE *in = fopen(path, "rb");
	size_t n;

	if (!in)
		return frag_fail(err, FRAG_EINPUT, "cannot open '%.200s': %m", path);
	FRAG_CHECK_ALLOC(bytes, "hash of a file", err);
	n = fread(bytes, 1, FRAG_SHA256_FILE_MAX + 1, in);
	if (ferror(in) || n > FRAG_SHA256_FILE_MAX)
		return frag_fail(err, FRAG_EINPUT, "'%.200s' cannot be read, or has over 256 MiB",
				 path);
	frag_sha256(bytes, n, text);
	return 0;
}
