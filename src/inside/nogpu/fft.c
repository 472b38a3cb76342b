/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT: the workspace of a plan, as a fraction of its data as complex numbers. Read off 1,227 plans of an
 * H200 with CUDA 13.0 (scripts/lab/library_workspaces.py; docs/nogpu.md, "Other libraries"):
 *
 *	a prime factor above 2,048	Bluestein's way: 4.2 of it, 2.6 for real numbers
 *	real numbers, last side odd	1, of one transform alone 2; up to 64 none
 *	one side, complex		above 16,384: 1
 *	one side, real			powers of two above 16,384, others above 1,024: 1/2
 *	else				none
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

/* Hundredths of the data. */
static long long percent(int rank, const long long *n, long long batch, bool real)
{
	long long last = n[rank - 1], prime = 1;

	for (int i = 0; i < rank; i++)
		prime = FRAG_MAX(prime, largest_prime(n[i]));
	if (prime > 2048)
		return real ? 262 * (batch == 1 ? 2 : 1) : 422;
	if (real && last % 2 && last > (rank > 1 ? 64 : 128))
		return batch == 1 ? 200 : 100;
	if (rank > 1)
		return 0;
	if (!real)
		return last > 16384 ? 100 : 0;
	return last > ((last & (last - 1)) ? 1024 : 16384) ? 50 : 0;
}

/* bytes: of one complex number. */
static int work(int rank, const long long *n, long long batch, double bytes, bool real, size_t *out)
{
	if (rank < 1 || rank > 3)
		return 4; /* CUFFT_INVALID_VALUE */
	for (int i = 0; i < rank; i++)
		bytes *= (double)n[i];
	*out = (size_t)(bytes * (double)batch / 100 * (double)percent(rank, n, batch, real));
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
