/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT: the workspace of a plan. The rules were derived from plans of an H200 with CUDA 13.0 (git
 * 53bd34df:scripts/lab/library_workspaces.py; 98.3 % of 16,058 plans are exact). A side takes
 *
 *	one pass	a single kernel: no workspace
 *	more passes	a copy of the data
 *	Bluestein	if a prime factor is above 127 and the side above 4,096: two arrays for
 *			convolutions of at least 2 n - 1 points, a product of 2, 3 and 5
 *
 * For real numbers, the last side is computed with complex numbers: pairs of numbers if it is even,
 * else pairs of transforms.
 */
#include "pretend/card/card.h"

struct plan {
	int rank;
	const long long *n;
	long long batch, bytes; /* of one complex number */
	bool twice;		/* double precision */
};

static long long largest_prime(long long n)
{
	long long largest = 1;

	for (long long p = 2; p * p <= n; p++)
		for (; n % p == 0; n /= p)
			largest = p;
	return n > 1 ? n : largest;
}

static bool is_pow2(long long n)
{
	return frag_is_pow2((uint64_t)n);
}

static bool is_one_of(long long n, const short *list)
{
	while (*list && *list != n)
		list++;
	return *list != 0;
}

/* For an odd number with prime factors up to 11: do powers never rise from a prime to the next? */
static bool has_falling_powers(long long n)
{
	int before = 64;

	for (int p = 3; p <= 11; p += 2) {
		int power = 0;

		for (; n % p == 0; n /= p)
			power++;
		if (power > before)
			return false;
		if (power)
			before = power;
	}
	return true;
}

/* Contiguous complex numbers. */
static bool is_one_pass(const struct plan *plan, long long n, long long rows)
{
	long long prime = largest_prime(n);

	if (is_pow2(n))
		return n <= 16384 || (n == 32768 && rows >= 128 && !plan->twice);
	if (prime > 127)
		return n <= 4096;
	if (prime > 31)
		return n == prime;
	if (plan->twice)
		return n <= (prime <= 7 ? 10000 : prime <= 13 ? 4096 : 512);
	return n == 24000 || n <= (prime <= 7 ? 16384 : prime <= 13 ? 8192 : 4096);
}

/* Primes from 13 to 31 times `rest`. */
static bool is_mixed_one_pass(long long n, long long prime, long long rest)
{
	if (prime > 23)
		return rest == 8 || rest == 12 || n > 1300;
	if (prime == 23)
		return rest == 4 || rest == 6 || rest == 8 || n > 1300;
	if (rest < 6)
		return prime == 13 ? rest == 2 : rest == 4;
	return n == 91 || n == prime * prime || (rest != 7 && rest % prime);
}

/* Strided complex numbers: all sides but the last. */
static bool is_strided_one_pass(const struct plan *plan, long long n)
{
	long long prime = largest_prime(n), rest = n / prime, half = rest / 2;

	if (is_pow2(n))
		return n <= (plan->twice ? 2048 : 4096);
	if (n > 4096)
		return false;
	if (prime > 127 || n == prime)
		return true;
	if (prime > 31)
		return false;
	if (plan->twice)
		return (prime <= 11 && n <= 480) || n == 800 || n == 26;
	if (rest % 2 == 0 && half >= 7 && half == largest_prime(half) && n != 182)
		return false;
	if (prime > 11)
		return is_mixed_one_pass(n, prime, rest);
	return n % 2 ? n <= 1024 && has_falling_powers(n) : n != 294 && n != 2000;
}

/* Real numbers without conversion to complex ones. */
static bool is_real_one_pass(const struct plan *plan, long long n, long long rows)
{
	/* lengths with kernels of their own, and some without */
	static const short more[] = { 68,  76,	104, 136, 152, 156,  184,  260,	 272, 304,
				      364, 416, 464, 468, 496, 1296, 1728, 1920, 0 };
	static const short less[] = { 98, 154, 196, 500, 700, 882, 900, 0 };
	long long prime = largest_prime(n);

	if (is_pow2(n))
		return n <= (plan->twice ? 4096 : rows < 128 ? 16384 : 65536);
	if (n % 2 == 0 && (n == 26 || (!plan->twice && is_one_of(n, more))))
		return true;
	if (n % 2 == 0)
		return n <= 1000 && prime <= 11 && n % 121 && !is_one_of(n, less);
	if (n == prime)
		return n <= 127;
	if (prime > 11)
		return n == prime * prime && prime <= 31;
	return n <= 1024 && has_falling_powers(n);
}

static long long pages(long long bytes)
{
	return (long long)frag_round_up((uint64_t)bytes, 1024);
}

/* Length of the convolution for a side; 0: not by Bluestein's algorithm. */
static long long convolution(const struct plan *plan, long long n)
{
	long long least = 2 * n - 1, best = 1;

	if (n <= (plan->twice ? 2048 : 4096) || largest_prime(n) <= 127)
		return 0;
	if (n <= 4096)
		return 8192;
	while (best < least)
		best *= 2;
	for (long long five = 1; five < best; five *= 5)
		for (long long three = five; three < best; three *= 3) {
			long long length = three;

			while (length < least)
				length *= 2;
			best = FRAG_MIN(best, length);
		}
	return best;
}

/* Product of the first sides. */
static long long product(const struct plan *plan, int sides)
{
	long long all = 1;

	for (int i = 0; i < sides; i++)
		all *= plan->n[i];
	return all;
}

/* Bluestein's workspace for all sides but the last; `all` numbers are transformed. */
static long long outer_bytes(const struct plan *plan, long long all)
{
	long long bytes = 0;

	for (int i = 0; i < plan->rank - 1; i++) {
		long long length = convolution(plan, plan->n[i]) * (all / plan->n[i]);

		bytes = FRAG_MAX(bytes, 2 * pages(length * plan->bytes));
	}
	return bytes;
}

static bool is_outer_one_pass(const struct plan *plan)
{
	for (int i = 0; i < plan->rank - 1; i++)
		if (!is_strided_one_pass(plan, plan->n[i]))
			return false;
	return true;
}

static long long complex_bytes(const struct plan *plan)
{
	long long n = plan->n[plan->rank - 1], rows = product(plan, plan->rank - 1) * plan->batch;
	long long bytes = 2 * pages(convolution(plan, n) * rows * plan->bytes);

	bytes = FRAG_MAX(bytes, outer_bytes(plan, rows * n));
	if (bytes || (is_outer_one_pass(plan) && is_one_pass(plan, n, rows)))
		return bytes;
	return rows * n * plan->bytes;
}

/* The last side, computed with complex numbers. */
static long long paired_bytes(const struct plan *plan, bool to_real, long long side, long long rows)
{
	bool odd = plan->n[plan->rank - 1] % 2, one, copied;
	long long data = side * rows * plan->bytes, length = convolution(plan, side);

	if (length)
		return data + 2 * pages((length + 1) * rows * plan->bytes);
	one = is_one_pass(plan, side, rows) &&
	      (is_outer_one_pass(plan) || (odd && (!to_real || plan->batch % 2)));
	copied = odd || (largest_prime(side) > 127 && side > (plan->twice ? 1024 : 2048));
	length = (one ? side : side + 1) * rows * plan->bytes;
	return copied ? data + pages(length) : length;
}

static long long real_bytes(const struct plan *plan, bool to_real)
{
	long long n = plan->n[plan->rank - 1], outer = product(plan, plan->rank - 1);
	long long half = outer * plan->batch * (n / 2 + 1);
	long long side = n % 2 ? n : n / 2,
		  rows = outer * (n % 2 ? (plan->batch + 1) / 2 : plan->batch);
	long long bytes = outer_bytes(plan, half);

	if (is_real_one_pass(plan, n, outer * plan->batch))
		return bytes || is_outer_one_pass(plan) ? bytes : half * plan->bytes;
	if (bytes && to_real)
		bytes += side * rows * plan->bytes;
	return FRAG_MAX(bytes, paired_bytes(plan, to_real, side, rows));
}

enum direction {
	COMPLEX,
	FROM_REAL,
	TO_REAL,
};

static int work(const struct plan *plan, enum direction direction, size_t *out)
{
	if (plan->rank < 1 || plan->rank > 3)
		return 4; /* CUFFT_INVALID_VALUE */
	for (int i = 0; i < plan->rank; i++)
		if (plan->n[i] < 1)
			return 8; /* CUFFT_INVALID_SIZE */
	*out = (size_t)(direction == COMPLEX ? complex_bytes(plan)
					     : real_bytes(plan, direction == TO_REAL));
	return 0;
}

PRETEND_ENTRY(int, cufftXtMakePlanMany,
	      (int plan, int rank, long long *n, long long *inembed, long long istride,
	       long long idist, int in_type, long long *onembed, long long ostride, long long odist,
	       int out_type, long long batch, size_t *work_bytes, int type))
{
	/* cudaDataType: single, double and half precision are 0 1 2, complex 4 5 6 */
	static const int number_bytes[] = { 8, 16, 4 };
	int precision = FRAG_MIN(in_type & 3, 2);
	struct plan p = { rank, n, batch, number_bytes[precision], precision == 1 };

	return work(&p, in_type < 4 ? FROM_REAL : out_type < 4 ? TO_REAL : COMPLEX, work_bytes);
}
/* cufftType: 0x40 is double precision; 0x29 and 0x69 are complex to complex, 0x2c and 0x6c complex
 * to real */
PRETEND_ENTRY(int, cufftMakePlanMany,
	      (int plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
	       int ostride, int odist, int type, int batch, size_t *work_bytes))
{
	bool twice = type & 0x40;
	long long sides[3] = { 0 };
	struct plan p = { rank, sides, batch, twice ? 16 : 8, twice };
	int kind = type & 0x3f;

	for (int i = 0; i < FRAG_MIN(rank, 3); i++)
		sides[i] = n[i];
	return work(&p, kind == 0x29 ? COMPLEX : kind == 0x2c ? TO_REAL : FROM_REAL, work_bytes);
}
PRETEND_VALUE(int, cufftMakePlan1d, (int plan, int n, int type, int batch, size_t *work_bytes),
	      frag_pretend_cufftMakePlanMany(plan, 1, &n, NULL, 1, n, NULL, 1, n, type, batch,
					     work_bytes))
