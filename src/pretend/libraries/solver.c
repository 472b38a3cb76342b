/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSOLVER's workspaces. PyTorch asks for the size, allocates it, and frees it after the call. The
 * rules reproduce all sizes of an H200 with CUDA 13.0, for sides up to 8,192 (git
 * 53bd34df:scripts/lab/library_workspaces.py; one query in five was held out while the rules were
 * derived).
 */
#include "pretend/card/card.h"

/* The cudaDataType of single precision, double precision, and their complex numbers. */
enum {
	SINGLE = 0,
	DOUBLE = 1,
	COMPLEX = 4,
	DOUBLE_COMPLEX = 5,
};

static int64_t number_bytes(int number)
{
	return number == DOUBLE_COMPLEX ? 16 : number == SINGLE ? 4 : 8;
}

static bool is_complex(int number)
{
	return number >= COMPLEX;
}

static int64_t square(int64_t n)
{
	return n * n;
}

static int64_t parts(int64_t n, int64_t of)
{
	return (n + of - 1) / of;
}

/* Most arrays are aligned to 32 elements. */
static int64_t whole(int64_t n)
{
	return (int64_t)frag_round_up((uint64_t)n, 32);
}

/* ---- elements, the same for each type of numbers --------------------------------------------- */

/* Eigenvalues of a batch: the tridiagonal problem and the reduction to it. */
static int64_t eigen(int64_t n, int64_t batch)
{
	int64_t small = whole(batch * (2 * n * n - 3 * n + 1)) + batch * (n * n + 770 * n + 65539);
	int64_t large = whole(batch * (3 * n * n - 4 * n + 1)) + batch * (n * n + 130 * n + 32899);

	return 32 + (n <= 32 ? small : whole(batch * n) + FRAG_MAX(small, large));
}

/* Jacobi's method works on blocks of 32 columns, above 4,000 of 2,048. */
static int64_t eigen_jacobi(int64_t n)
{
	int64_t blocks = parts(n, 2048);

	if (n >= 4096)
		return n * n + 4096 * n + 2 * square(2048) + 4 * square(blocks);
	blocks = parts(n, 32);
	return n * n + n + 4 * square(blocks) + 1025 * blocks + 1024;
}

static int64_t eigen_jacobi_batched(int64_t n, int64_t batch)
{
	int64_t blocks = parts(n, 32);

	return batch * (square(n + 1) + 1024 * blocks) + 1024 + 4 * square(blocks);
}

static int64_t geqrf(int64_t n)
{
	return 1024 * FRAG_MAX(n, 256) + 524288;
}

/* Householder reflectors, in blocks of up to 128. */
static int64_t orgqr(int64_t m, int64_t n, int64_t k)
{
	if (k >= 128)
		return 16640 + 128 * m + 256 * n;
	return whole(m * k) + FRAG_MAX(33024, 16640 + whole(2 * n * k));
}

static int64_t ormqr(int64_t m, int64_t n, int64_t k)
{
	int64_t most = FRAG_MAX(m, n);

	return 65792 + 256 * m + 512 * n + whole(k * (k + most)) + (most > 32 ? whole(n) : 0);
}

/* Tall matrices become square ones by QR first. */
static int64_t gesvd(int64_t m, int64_t n)
{
	int64_t qr, rest;

	if (m == n)
		return 65792 + 256 * n + whole(n * n) + whole(2 * n * n) +
		       (n <= 32 ? 3 : 4) * whole(n);
	qr = geqrf(n) + 32 + whole(n) + 2 * whole(n * n) + whole(m * n) + orgqr(m, m, n);
	rest = 65792 + 256 * m + 3 * whole(n) + whole(m) + 2 * whole(n * n) + 2 * whole(m * n);
	return FRAG_MAX(qr, rest + whole(n * n + m * n));
}

static int64_t gesvdj_square(int64_t n)
{
	int64_t blocks = parts(n, 32);

	return whole(2 * n * n) + 2048 * blocks + whole(4 * square(blocks) + blocks + n + 1024);
}

/* A wide matrix is transposed into a copy. */
static int64_t gesvdj(int64_t m, int64_t n)
{
	int64_t rows = FRAG_MAX(m, n), columns = FRAG_MIN(m, n), qr, rest;

	if (m == n)
		return gesvdj_square(n);
	qr = FRAG_MAX(geqrf(columns) + 32, ormqr(rows, columns, columns)) + whole(columns);
	rest = gesvdj_square(columns) + (m > n ? whole(n * n) : 0);
	return FRAG_MAX(qr, rest) + (m > n ? 0 : whole(m * n));
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Singular values of tall matrices by eigenvalues, in double precision; single precision is
 * converted first. */
static int64_t gesvda(int number, int64_t m, int64_t n, int64_t batch)
{
	int64_t bytes = is_complex(number) ? 16 : 8, matrices = whole(bytes * m * n * batch);
	int64_t values = bytes * (n <= 32 ? eigen_jacobi_batched(n, batch) : eigen(n, batch));

	if (number == SINGLE || number == COMPLEX)
		values = FRAG_MAX(matrices, values);
	return matrices + whole(bytes * n * (n + 2) * batch) + whole(8 * n * batch) + values;
}

/* A Hessenberg reduction, its reflectors, and 8 more rows, 7 for complex numbers. In pages of 512
 * bytes. */
static int64_t geev(int number, int64_t n)
{
	int64_t matrix = FRAG_MAX(orgqr(n - 1, n - 1, n - 1), n * n) + 32;
	int64_t bytes = number_bytes(number), lines = is_complex(number) ? 7 : 8;

	return (int64_t)frag_round_up((uint64_t)(matrix * bytes + lines * n * bytes / 2), 512);
}

/* A flag for each block of 32 by 32 numbers; from 1,500 rows on also panels. */
static int64_t getrf(int number, int64_t m, int64_t n)
{
	int64_t least = parts(FRAG_MIN(m, n), 32), columns = parts(n, 32), most = 1, flags, panels;

	while (most < least && most < 16)
		most *= 2;
	flags = 256 * (least + 1) + FRAG_MAX(256 * most, whole(4 * least * columns));
	panels = m > 2048 ? 2 : 1;
	if (m < 1536)
		return flags;
	return FRAG_MAX(flags, 256 * (least + 1 + 8 * panels) +
				       (8192 + 256 * panels) * number_bytes(number));
}

static int64_t potrf(int64_t n)
{
	return 128 + whole(FRAG_MAX(4 * square(parts(n, 32)), 32));
}

/* At least the workspace of LU for 4,096 columns. */
static int64_t sytrf(int number, int64_t n)
{
	int64_t width = n < 4096 ? 64 : 128;

	return FRAG_MAX((width * n + 64) * number_bytes(number), getrf(number, 4096, 4096) - 128);
}

#define NAME(t, routine) NAME3(t, , routine)
#define NAME3(t, kind, routine) NAME_OF(t, kind, routine)
#define NAME_OF(t, kind, routine) cusolverDn##t##kind##routine##_bufferSize
#define ELEMENTS(name, args, n) ELEMENTS_OF(name, args, n)
#define ELEMENTS_OF(name, args, n) PRETEND_ANSWER(name, args, *out = (int)(n))
#define BYTES(name, args, n) ELEMENTS(name, args, (n) / number_bytes(NUMBER))

#define NUMBER SINGLE
#define T S
#define OR or
#define SY sy
#include "solver.def"
#undef T
#undef NUMBER
#define NUMBER DOUBLE
#define T D
#include "solver.def"
#undef T
#undef OR
#undef SY
#undef NUMBER
#define NUMBER COMPLEX
#define T C
#define OR un
#define SY he
#include "solver.def"
#undef T
#undef NUMBER
#define NUMBER DOUBLE_COMPLEX
#define T Z
#include "solver.def"

/* ---- the interface with types as arguments: bytes on the card and on the host ------------- */

/* Nothing is computed on the host. */
static int both(size_t *dev, size_t *host, int64_t bytes)
{
	*dev = (size_t)bytes;
	*host = 0;
	return 0;
}

/* Those that count elements take this more. */
#define BESIDE 128

PRETEND_VALUE(int, cusolverDnXpotrf_bufferSize,
	      (void *h, void *p, int uplo, int64_t n, int type, void *a, int64_t lda, int compute,
	       size_t *dev, size_t *host),
	      both(dev, host, potrf(n)))
PRETEND_VALUE(int, cusolverDnXgeqrf_bufferSize,
	      (void *h, void *p, int64_t m, int64_t n, int type, void *a, int64_t lda, int tau_type,
	       void *tau, int compute, size_t *dev, size_t *host),
	      both(dev, host, geqrf(n) * number_bytes(type) + BESIDE))
PRETEND_VALUE(int, cusolverDnXsyevd_bufferSize,
	      (void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda,
	       int w_type, void *w, int compute, size_t *dev, size_t *host),
	      both(dev, host, eigen(n, 1) * number_bytes(type) + BESIDE))
PRETEND_VALUE(int, cusolverDnXsyevBatched_bufferSize,
	      (void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda,
	       int w_type, void *w, int compute, size_t *dev, size_t *host, int64_t batch),
	      both(dev, host, eigen(n, batch) * number_bytes(type) + BESIDE))
PRETEND_VALUE(int, cusolverDnXgeev_bufferSize,
	      (void *h, void *p, int left, int right, int64_t n, int type, void *a, int64_t lda,
	       int w_type, void *w, int vl_type, void *vl, int64_t ldvl, int vr_type, void *vr,
	       int64_t ldvr, int compute, size_t *dev, size_t *host),
	      both(dev, host, geev(type, n)))
PRETEND_VALUE(int, cusolverDnXsytrs_bufferSize,
	      (void *h, int uplo, int64_t n, int64_t sides, int type, void *a, int64_t lda,
	       void *pivots, int b_type, void *b, int64_t ldb, size_t *dev, size_t *host),
	      both(dev, host, sytrf(type, n)))
