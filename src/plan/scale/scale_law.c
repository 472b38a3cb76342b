/* SPDX-License-Identifier: Apache-2.0 */
/* The size of one request as a law of the parameter; see scale.h. All arithmetic is exact. */
#include "scale.h"

/* sizes below 2^48, values and their differences below 2^24: a size and three of these fit */
__extension__ typedef __int128 wide;

const char *frag_scaling_law_name(enum frag_scaling_law law)
{
	static const char *const names[] = {
		[FRAG_SCALING_CONSTANT] = "constant",
		[FRAG_SCALING_LINEAR] = "c n",
		[FRAG_SCALING_SQUARE] = "c n^2",
		[FRAG_SCALING_AFFINE] = "c + d n",
		[FRAG_SCALING_QUADRATIC] = "c + d n + e n^2",
		[FRAG_SCALING_UNKNOWN] = "unknown",
		[FRAG_SCALING_ONCE] = "in only one recording",
	};

	return names[law];
}

struct point {
	wide n, s;
};

static bool proportional(const struct point *p, size_t count, bool square)
{
	for (size_t i = 1; i < count; i++) {
		wide a = p[0].n, b = p[i].n;

		if (p[i].s * a * (square ? a : 1) != p[0].s * b * (square ? b : 1))
			return false;
	}
	return true;
}

static bool affine(const struct point *p, size_t count)
{
	for (size_t i = 2; i < count; i++)
		if ((p[i].s - p[0].s) * (p[1].n - p[0].n) != (p[1].s - p[0].s) * (p[i].n - p[0].n))
			return false;
	return p[count - 1].s >= p[0].s;
}

static wide ceil_div(wide a, wide b)
{
	return a <= 0 ? -(-a / b) : (a + b - 1) / b;
}

/* Newton's polynomial through the first three points: its value at n, over a common denominator. */
static wide second_order(const struct point *p, wide n, wide *denominator)
{
	wide a = p[1].n - p[0].n, b = p[2].n - p[1].n, c = p[2].n - p[0].n;
	wide d1 = p[1].s - p[0].s, d2 = p[2].s - p[1].s;

	*denominator = a * b * c;
	return p[0].s * a * b * c + d1 * (n - p[0].n) * b * c +
	       (d2 * a - d1 * b) * (n - p[0].n) * (n - p[1].n);
}

/* Any three points lie on some polynomial, so a fourth must fit, and no size may shrink. */
static bool quadratic(const struct point *p, size_t count)
{
	wide denominator;

	if (count < 4 || p[1].s < p[0].s || p[count - 1].s < p[count - 2].s)
		return false;
	for (size_t i = 3; i < count; i++)
		if (second_order(p, p[i].n, &denominator) != p[i].s * denominator)
			return false;
	return true;
}

static enum frag_scaling_law find_law(const struct point *p, size_t count)
{
	bool constant = true;

	for (size_t i = 1; i < count; i++)
		constant &= p[i].s == p[0].s;
	if (count < 2)
		return FRAG_SCALING_ONCE;
	if (constant)
		return FRAG_SCALING_CONSTANT;
	if (proportional(p, count, false))
		return FRAG_SCALING_LINEAR;
	if (proportional(p, count, true))
		return FRAG_SCALING_SQUARE;
	if (affine(p, count))
		return FRAG_SCALING_AFFINE;
	return quadratic(p, count) ? FRAG_SCALING_QUADRATIC : FRAG_SCALING_UNKNOWN;
}

/* Without a law: the size in the nearest recording, or in proportion from there. */
static wide bounded(const struct point *p, size_t count, wide n, enum frag_scaling_bound bound)
{
	size_t near = 0;

	for (size_t i = 1; i < count; i++) {
		wide a = p[i].n > n ? p[i].n - n : n - p[i].n;
		wide b = p[near].n > n ? p[near].n - n : n - p[near].n;

		near = a <= b ? i : near;
	}
	if (bound == FRAG_SCALING_LOW || n <= p[near].n)
		return p[near].s;
	return ceil_div(p[near].s * n, p[near].n);
}

uint64_t frag_scaling_size(const uint64_t *values, const uint64_t *sizes, size_t count, size_t base,
			   uint64_t value, enum frag_scaling_bound bound,
			   enum frag_scaling_law *law)
{
	struct point p[FRAG_SCALING_PARTS];
	size_t known = 0;
	wide n = (wide)value, at, denominator;

	for (size_t i = 0; i < count; i++)
		if (sizes[i] != UINT64_MAX)
			p[known++] = (struct point){ (wide)values[i], (wide)sizes[i] };
	*law = find_law(p, known);
	if (value == values[base])
		return sizes[base];
	switch (*law) {
	case FRAG_SCALING_CONSTANT:
		at = p[0].s;
		break;
	case FRAG_SCALING_LINEAR:
		at = ceil_div(p[0].s * n, p[0].n);
		break;
	case FRAG_SCALING_SQUARE:
		at = ceil_div(p[0].s * n * n, p[0].n * p[0].n);
		break;
	case FRAG_SCALING_AFFINE:
		at = p[0].s + ceil_div((p[1].s - p[0].s) * (n - p[0].n), p[1].n - p[0].n);
		break;
	case FRAG_SCALING_QUADRATIC:
		at = second_order(p, n, &denominator);
		at = ceil_div(at, denominator);
		break;
	default:
		at = bounded(p, known, n, bound);
	}
	if (at < 1)
		return 1;
	return at > (wide)FRAG_MAX_REQUEST ? UINT64_MAX : (uint64_t)at;
}
