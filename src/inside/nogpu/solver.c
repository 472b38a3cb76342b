/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSOLVER: workspaces. PyTorch asks for the size, allocates it, and frees it after the call. The rules were read off
 * the answers of an H200 with CUDA 13.0
 * (scripts/lab/library_workspaces.py; docs/nogpu.md, "Other libraries").
 */
#include "nogpu.h"

enum routine {
	GETRF,
	POTRF,
	SYTRF,
	SYEVD,
	SYEVJ,
	SYEVJ_BATCHED,
	GEQRF,
	GESVD,
	ORGQR,
	ORMQR,
	GESVDJ,
	GESVDJ_BATCHED,
	GESVDA,
	GEEV,
	SYEV_BATCHED,
};

static int64_t square(int64_t n)
{
	return n * n;
}

static int64_t parts(int64_t n, int64_t of)
{
	return (n + of - 1) / of;
}

/* A tridiagonal problem and what leads to it. */
static int64_t eigen(int64_t n)
{
	return FRAG_MAX(3 * square(n) + 768 * n + (n > 32 ? 65603 : 65571),
			4 * square(n) + 126 * n + FRAG_MAX(n, 1024) + 32963);
}

/* In single precision; other types take as many bytes. */
static int64_t getrf(int64_t m, int64_t n)
{
	int64_t least = FRAG_MIN(m, n), blocks = parts(least, 32), most = 1;

	if (least > 1024)
		return 64 + 6 * 128 * parts(least, 128);
	while (most < blocks && most < 16)
		most *= 2;
	return 64 * (blocks + most + 1);
}

/* Reflectors, side by side where there are many. */
static int64_t orgqr(int64_t m, int64_t n, int64_t k)
{
	return 33024 + (k < 128 ? parts(m * k, 32) * 32 : m * n + square(128));
}

/* Singular values of tall matrices, one after the other. */
static int64_t gesvda(int64_t m, int64_t n)
{
	return 4 * m * n + (n <= 32 ? 1000 : n <= 256 ? 131072 + 25 * square(n) : 8 * square(n));
}

/* Elements; k: reflectors, of orgqr and ormqr. Blocks of 32 to 1024 columns show in the numbers. */
static int64_t work(enum routine routine, int64_t m, int64_t n, int64_t k, int64_t batch)
{
	switch (routine) {
	case GETRF:
		return getrf(m, n);
	case POTRF:
		return 32 + parts(FRAG_MAX(square(parts(n, 32)), 8), 8) * 8;
	case SYTRF:
		return FRAG_MAX(64 * n + 64, 24608);
	case SYEVD:
		return eigen(n);
	case SYEV_BATCHED:
		return batch * (eigen(n) - 64) + 64;
	case SYEVJ:
	case SYEVJ_BATCHED:
		return batch * (square(n) + 34 * FRAG_MAX(n, 32) + 1027);
	case GEQRF:
		return 1024 * FRAG_MAX(n, 256) + 524288;
	case ORGQR:
		return orgqr(m, n, k);
	case ORMQR:
		return 65536 + 256 * m + 512 * n + k * (m + n);
	case GESVD:
		return m == n ? 3 * square(n) + 256 * n + 66208 : 819200 + 4 * m * n;
	case GESVDJ:
		return m == n ? 2 * square(n) + 72 * n + 3136
			      : FRAG_MAX(2 * m * n + 72 * n, 786496);
	case GESVDJ_BATCHED:
		return 992;
	case GESVDA:
		return batch * gesvda(m, n);
	case GEEV:
		return n < 512 ? 32768 + 127 * square(n) / 100 : square(n) + 4 * n + 128;
	}
	return 0;
}

/* LU and Cholesky take the same bytes for numbers of any type. */
static int64_t elements(enum routine routine, int64_t element_bytes, int64_t m, int64_t n,
			int64_t k, int64_t batch)
{
	int64_t all = work(routine, m, n, k, batch);

	return routine == GETRF || routine == POTRF ? all * 4 / element_bytes : all;
}

#define NAME(t, routine) NAME3(t, , routine)
#define NAME3(t, kind, routine) NAME_OF(t, kind, routine)
#define NAME_OF(t, kind, routine) cusolverDn##t##kind##routine##_bufferSize
#define WORK(name, args, routine, m, n, k, batch) WORK_OF(name, args, routine, m, n, k, batch)
#define WORK_OF(name, args, routine, m, n, k, batch) \
	NOGPU_ANSWER(name, args, *out = (int)elements(routine, ELEMENT, m, n, k, batch))

#define ELEMENT 4
#define T S
#define OR or
#define SY sy
#include "solver.def"
#undef T
#undef ELEMENT
#define ELEMENT 8
#define T D
#include "solver.def"
#undef T
#undef OR
#undef SY
#define T C
#define OR un
#define SY he
#include "solver.def"
#undef T
#undef ELEMENT
#define ELEMENT 16
#define T Z
#include "solver.def"

/* ---- the interface with types as arguments: bytes of the card and of the host ------------- */

static int64_t element_bytes(int cuda_type)
{
	/* cudaDataType: 32-bit real 0, 64-bit real 1, their complex forms 4 and 5 */
	return cuda_type == 5 ? 16 : cuda_type == 0 ? 4 : 8;
}

static int both(size_t *dev, size_t *host, int type, enum routine routine, int64_t m, int64_t n,
		int64_t k, int64_t batch)
{
	bool beside = routine == GEQRF || routine == SYEVD || routine == SYEV_BATCHED;
	int64_t bytes = element_bytes(type);

	*dev = (size_t)(elements(routine, bytes, m, n, k, batch) * bytes + (beside ? 128 : 0));
	*host = 0;
	return 0;
}

NOGPU_VALUE(int, cusolverDnXpotrf_bufferSize,
	    (void *h, void *p, int uplo, int64_t n, int type, void *a, int64_t lda, int compute,
	     size_t *dev, size_t *host),
	    both(dev, host, type, POTRF, n, n, 0, 1))
NOGPU_VALUE(int, cusolverDnXgeqrf_bufferSize,
	    (void *h, void *p, int64_t m, int64_t n, int type, void *a, int64_t lda, int tau_type,
	     void *tau, int compute, size_t *dev, size_t *host),
	    both(dev, host, type, GEQRF, m, n, 0, 1))
NOGPU_VALUE(int, cusolverDnXsyevd_bufferSize,
	    (void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda,
	     int w_type, void *w, int compute, size_t *dev, size_t *host),
	    both(dev, host, type, SYEVD, n, n, vectors, 1))
NOGPU_VALUE(int, cusolverDnXsyevBatched_bufferSize,
	    (void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda,
	     int w_type, void *w, int compute, size_t *dev, size_t *host, int64_t batch),
	    both(dev, host, type, SYEV_BATCHED, n, n, vectors, batch))
NOGPU_VALUE(int, cusolverDnXgeev_bufferSize,
	    (void *h, void *p, int left, int right, int64_t n, int type, void *a, int64_t lda,
	     int w_type, void *w, int vl_type, void *vl, int64_t ldvl, int vr_type, void *vr,
	     int64_t ldvr, int compute, size_t *dev, size_t *host),
	    both(dev, host, type, GEEV, n, n, right, 1))
NOGPU_VALUE(int, cusolverDnXsytrs_bufferSize,
	    (void *h, int uplo, int64_t n, int64_t sides, int type, void *a, int64_t lda,
	     void *pivots, int b_type, void *b, int64_t ldb, size_t *dev, size_t *host),
	    both(dev, host, type, SYTRF, n, n, sides, 1))
