/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes byte sizes, and finds the nearest known word for a typing error.
 *
 * Sizes are exact: the fraction of "1.5GiB" is kept as an integer over a power of ten and
 * multiplied in 128 bits, so no size depends on binary floating point.
 */
#include <frag/opt.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char unit_letters[] = "KMGTPE";

/* 10^18, the largest power of ten that leaves room for one more digit in 64 bits. */
#define FRACTION_SCALE_MAX 1000000000000000000u

struct decimal {
	uint64_t whole, fraction, scale; /* whole + fraction / scale */
	int digits;
};

/* Digits with an optional fraction. Returns the rest of the text, NULL on overflow. */
static const char *read_decimal(const char *p, struct decimal *d)
{
	*d = (struct decimal){ .scale = 1 };
	for (; isdigit((unsigned char)*p); p++, d->digits++) {
		if (__builtin_mul_overflow(d->whole, 10u, &d->whole) ||
		    __builtin_add_overflow(d->whole, (uint64_t)(*p - '0'), &d->whole))
			return NULL;
	}
	if (*p != '.')
		return p;
	for (p++; isdigit((unsigned char)*p); p++, d->digits++) {
		if (d->scale == FRACTION_SCALE_MAX)
			continue; /* less than a byte in any unit: ignored */
		d->scale *= 10;
		d->fraction = d->fraction * 10 + (uint64_t)(*p - '0');
	}
	return p;
}

/* The shift of a unit "", "B", "K", "KiB", …; -1 for anything else. */
static int read_unit(const char *p)
{
	const char *u;

	if (*p == ' ' && p[1])
		p++;
	if (!*p || !strcmp(p, "B"))
		return 0;
	u = strchr(unit_letters, toupper((unsigned char)*p));
	if (!u || (p[1] && strcasecmp(p + 1, "ib") != 0))
		return -1;
	return (int)(u - unit_letters + 1) * 10;
}

int frag_parse_bytes(const char *text, uint64_t *out, struct frag_err *err)
{
	struct decimal d;
	const char *rest = read_decimal(text, &d), *unit;
	unsigned __int128 bytes;
	int shift;

	if (!rest)
		return FRAG_USAGE(err, "size '%s' is too large", text);
	shift = d.digits ? read_unit(rest) : -1;
	unit = rest + (*rest == ' ');
	if (d.digits && strlen(unit) == 2 && (unit[1] | 0x20) == 'b' &&
	    strchr(unit_letters, toupper((unsigned char)*unit)))
		return FRAG_USAGE(err, "'%s' is not a size; write %.*s%c for %.*s %ciB", text,
				  (int)(rest - text), text, *unit, (int)(rest - text), text,
				  toupper((unsigned char)*unit));
	if (shift < 0 || (!shift && d.fraction))
		return FRAG_USAGE(err,
				  "'%s' is not a size; write bytes, or a number with K, M, G or T "
				  "(KiB, MiB, …: powers of 1024)",
				  text);
	bytes = ((unsigned __int128)d.whole << shift) +
		(((unsigned __int128)d.fraction << shift) / d.scale);
	if (bytes > UINT64_MAX)
		return FRAG_USAGE(err, "size '%s' is too large", text);
	*out = (uint64_t)bytes;
	return 0;
}

char *frag_format_bytes(uint64_t bytes, char *buf, size_t cap)
{
	unsigned power = bytes < 1024 ? 0 : frag_log2(bytes) / 10;
	uint64_t unit = 1ull << (10 * power);

	if (!power)
		snprintf(buf, cap, "%llu B", (unsigned long long)bytes);
	else if (bytes % unit == 0)
		snprintf(buf, cap, "%llu %ciB", (unsigned long long)(bytes / unit),
			 unit_letters[power - 1]);
	else
		snprintf(buf, cap, "%.2f %ciB", (double)bytes / (double)unit,
			 unit_letters[power - 1]);
	return buf;
}

#define WORD_MAX 63

static char fold(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

/*
 * Edit distance where swapped neighbours count as one edit (optimal string alignment); ignores case
 * and '-' versus '_'. Three rows of the table are enough. pre: both at most WORD_MAX long.
 */
static unsigned distance(const char *a, size_t an, const char *b, size_t bn)
{
	unsigned rows[3][WORD_MAX + 1];
	unsigned *before = rows[0], *prev = rows[1], *row = rows[2];

	for (unsigned j = 0; j <= bn; j++)
		prev[j] = j;
	for (unsigned i = 1; i <= an; i++) {
		unsigned *spare = before;

		row[0] = i;
		for (unsigned j = 1; j <= bn; j++) {
			bool same = fold(a[i - 1]) == fold(b[j - 1]);
			unsigned best = prev[j - 1] + !same;

			best = FRAG_MIN(best, prev[j] + 1);
			best = FRAG_MIN(best, row[j - 1] + 1);
			if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
			    fold(a[i - 2]) == fold(b[j - 1]))
				best = FRAG_MIN(best, before[j - 2] + 1);
			row[j] = best;
		}
		before = prev;
		prev = row;
		row = spare;
	}
	return prev[bn];
}

/* A prefix of at least three letters counts as one edit away. */
static bool begins(const char *word, size_t n, const char *known)
{
	return n >= 3 && strlen(known) > n && !strncasecmp(word, known, n);
}

const char *frag_nearest(const char *word, const char *const *words)
{
	size_t n = strlen(word);
	unsigned limit = n > 1 ? 1 + (unsigned)(n - 1) / 3 : 0;
	unsigned best = limit + 1;
	const char *found = NULL;

	if (n > WORD_MAX)
		return NULL;
	for (; *words; words++) {
		size_t m = strlen(*words);
		unsigned d;

		if (m > WORD_MAX)
			continue;
		d = distance(word, n, *words, m);
		if (d > 1 && begins(word, n, *words))
			d = 1;
		if (d < best) {
			best = d;
			found = *words;
		}
	}
	return found;
}
