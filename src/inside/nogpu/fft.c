/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT: the workspace of a plan. Read off 8,408 plans of an H200 with CUDA 13.0, of which it gives 79 % within 1 %; of those
 * whose sides have no prime factor above 13, 92 % (scripts/lab/library_workspaces.py; docs/nogpu.md, "Other libraries"):
 *
 *	a side above 4,096 with a prime factor above 127	Bluestein's way: 4 times the data, 2.5 for real numbers
 *	real numbers, last side odd				the data, of one transform alone twice; up to 64 none
 *	an outer side above 4,096, or above 1,990 and no power of two	the data
 *	the last side: complex above 16,384			the data
 *	real, powers of two above 16,384, others above 1,024	the data
 *	else							none
 *
 * The data are complex numbers; of real ones, half of them.
 */
#include "nogpu.h"

static long long largest_prime(long long n)
{
	long long largest = 1;

	for (long long p = 2; p * p <= n; p++)
		for (; n % p == 0; n /= p)
			largest = p;
	return n > 1 ? n : largest;
}

#define LARGEST_PRIME 127 /* with a kernel of its own */

static bool is_bluestein(int rank, const long long *n)
{
	for (int i = 0; i < rank; i++)
		if (n[i] > 4096 && largest_prime(n[i]) > LARGEST_PRIME)
			return true;
	return false;
}

/* Does a side before the last take more than one pass? */
static bool is_long(int rank, const long long *n)
{
	for (int i = 0; i < rank - 1; i++)
		if (n[i] > (frag_is_pow2((uint64_t)n[i]) ? 4096 : 1990))
			return true;
	return false;
}

/* bytes: of one complex number; rows: transforms of the last side. */
static double real_bytes(int rank, const long long *n, double rows, double bytes)
{
	long long last = n[rank - 1], pairs = last / 2;
	double half = rows * (double)(pairs + 1) * bytes;

	if (last % 2 && last > (rank > 1 ? 64 : 128))
		return rows * (double)last * bytes * (rows > 1 ? 1 : 2);
	if (is_long(rank, n))
		return half;
	if (last <= (frag_is_pow2((uint64_t)last) ? 16384 : 1024))
		return 0;
	return last > 8192 ? half : rows * (double)pairs * bytes;
}

/* bytes: of one complex number. */
static int work(int rank, const long long *n, long long batch, double bytes, bool real, size_t *out)
{
	double rows = (double)batch, data;

	if (rank < 1 || rank > 3)
		return 4; /* CUFFT_INVALID_VALUE */
	for (int i = 0; i < rank - 1; i++)
		rows *= (double)n[i];
	data = rows * (double)n[rank - 1] * bytes;
	if (is_bluestein(rank, n))
		data *= real ? 2.53 * (rows > 1 || n[0] % 2 == 0 ? 1 : 2) : 4.02;
	else if (real)
		data = real_bytes(rank, n, rows, bytes);
	else if (!is_long(rank, n) && n[rank - 1] <= 16384)
		data = 0;
	*out = (size_t)data;
	return 0;
}
NOGPU_ENTRY(int, cufftXtMakePlanMany,
	    (int plan, int rank, long long *n, long long *inembed, long long istride,
	     long long idist, int in_type, long long *onembed, long long ostride, long long odist,
	     int out_type, long long batch, size_t *work_bytes, int type))
{
	/* cudaDataType: single, double and half precision are 0 1 2, their complex numbers 4 5 6 */
	static const int complex_bytes[] = { 8, 16, 4 };

	return work(rank, n, batch, complex_bytes[FRAG_MIN(in_type & 3, 2)],
		    in_type < 4 || out_type < 4, work_bytes);
}
/* cufftType: 0x40 is double precision; 0x29 and 0x69 have no real numbers */
NOGPU_ENTRY(int, cufftMakePlanMany,
	    (int plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
	     int ostride, int odist, int type, int batch, size_t *work_bytes))
{
	long long sides[3] = { 0 };

	for (int i = 0; i < FRAG_MIN(rank, 3); i++)
		sides[i] = n[i];
	return work(rank, sides, batch, type & 0x40 ? 16 : 8, (type & 0x3f) != 0x29, work_bytes);
}
NOGPU_VALUE(int, cufftMakePlan1d, (int plan, int n, int type, int batch, size_t *work_bytes),
	    frag_nogpu_cufftMakePlanMany(plan, 1, &n, NULL, 1, n, NULL, 1, n, type, batch,
					 work_bytes))
