/* SPDX-License-Identifier: Apache-2.0 */
/* See sha256.h. The names are those of FIPS 180-4. */
#include "base/sha256.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <frag/base.h>

#define BLOCK 64u

struct sha256 {
	uint32_t h[8], k[BLOCK];
	uint64_t bytes;
	unsigned char rest[BLOCK];
	size_t rest_len;
};

/* The first 32 bits of the fraction of a root: exact, because a long double has 64 digits. */
static uint32_t fraction(long double root)
{
	return (uint32_t)((root - floorl(root)) * 4294967296.0L);
}

/* The constants are roots of the first 64 primes. */
static void begin(struct sha256 *s)
{
	unsigned n = 0;

	*s = (struct sha256){ 0 };
	for (unsigned p = 2; n < BLOCK; p++) {
		unsigned d = 2;

		while (p % d)
			d++;
		if (d < p)
			continue;
		if (n < 8)
			s->h[n] = fraction(sqrtl(p));
		s->k[n++] = fraction(cbrtl(p));
	}
}

static uint32_t turn(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void mix(struct sha256 *s, const unsigned char *block)
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
	memcpy(v, s->h, sizeof(v));
	for (unsigned t = 0; t < BLOCK; t++) {
		uint32_t a = v[0], e = v[4], t1, t2;

		t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
		     s->k[t] + w[t];
		t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
		     ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (unsigned i = 0; i < 8; i++)
		s->h[i] += v[i];
}

static void add(struct sha256 *s, const unsigned char *bytes, size_t len)
{
	s->bytes += len;
	while (len) {
		size_t n = FRAG_MIN(len, BLOCK - s->rest_len);

		memcpy(s->rest + s->rest_len, bytes, n);
		bytes += n;
		len -= n;
		s->rest_len += n;
		if (s->rest_len == BLOCK) {
			mix(s, s->rest);
			s->rest_len = 0;
		}
	}
}

static void end(struct sha256 *s, char text[FRAG_SHA256_TEXT])
{
	uint64_t bits = s->bytes * 8;
	unsigned char tail[8];

	for (unsigned i = 0; i < 8; i++)
		tail[i] = (unsigned char)(bits >> (56 - 8 * i));
	add(s, (const unsigned char *)"\x80", 1);
	while (s->rest_len != BLOCK - 8)
		add(s, (const unsigned char *)"", 1);
	add(s, tail, sizeof(tail));
	for (unsigned i = 0; i < 8; i++)
		snprintf(text + (size_t)8 * i, 9, "%08x", s->h[i]);
}

void frag_sha256(const void *bytes, size_t len, char text[FRAG_SHA256_TEXT])
{
	struct sha256 s;

	begin(&s);
	add(&s, bytes, len);
	end(&s, text);
}

int frag_sha256_file(const char *path, char text[FRAG_SHA256_TEXT], struct frag_err *err)
{
	static const size_t chunk = 1 << 18;
	FRAG_AUTO_FREE unsigned char *buf = frag_host_alloc(chunk);
	FRAG_AUTO_FILE FILE *in = fopen(path, "rb");
	struct sha256 s;
	size_t n;

	if (!in)
		return frag_fail(err, FRAG_EINPUT, "cannot open '%.200s': %m", path);
	FRAG_CHECK_ALLOC(buf, "hash of a file", err);
	begin(&s);
	while ((n = fread(buf, 1, chunk, in)) > 0)
		add(&s, buf, n);
	if (ferror(in))
		return frag_fail(err, FRAG_EINPUT, "cannot read '%.200s': %m", path);
	end(&s, text);
	return 0;
}
