/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSOLVER: how much a routine works in. PyTorch asks for it, takes it from its allocator and
 * gives it back after the call. Rules read off what an H200 with CUDA 13.0 answered
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
	return n <= 512 ? 3 * square(n) + 768 * n + 65603
			: 4 * square(n) + 126 * n + FRAG_MAX(n, 1024) + 32963;
}

static int64_t getrf(int64_t m, int64_t n)
{
	int64_t least = FRAG_MIN(m, n);

	return least <= 64 ? 192 : 64 + (n > 1024 ? 6 : 4) * 128 * parts(least, 128);
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
		return 32 + FRAG_MAX(square(parts(n, 32)), 8);
	case SYTRF:
		return FRAG_MAX(64 * n + 64, 24608);
	case SYEVD:
		return eigen(n);
	case SYEV_BATCHED:
		return batch * eigen(n);
	case SYEVJ:
	case SYEVJ_BATCHED:
		return batch * (square(n) + 34 * FRAG_MAX(n, 32) + 1027);
	case GEQRF:
		return 1024 * FRAG_MAX(n, 256) + 524288;
	case ORGQR:
		return 33024 + m * FRAG_MIN(k, 128);
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

static int lwork(int *out, enum routine routine, int64_t m, int64_t n, int64_t k, int64_t batch)
{
	*out = (int)work(routine, m, n, k, batch);
	return 0;
}

/* The functions of one letter, S D C Z; or: what reads or and sy, un and he for complex numbers. */
#define OF_TYPE(t, or, sy) \
	NOGPU_ENTRY(int, cusolverDn##t##getrf_bufferSize, \
		    (void *h, int m, int n, void *a, int lda, int *out)) \
	{ \
		(void)h, (void)a, (void)lda; \
		return lwork(out, GETRF, m, n, 0, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##geqrf_bufferSize, \
		    (void *h, int m, int n, void *a, int lda, int *out)) \
	{ \
		(void)h, (void)a, (void)lda; \
		return lwork(out, GEQRF, m, n, 0, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##potrf_bufferSize, \
		    (void *h, int uplo, int n, void *a, int lda, int *out)) \
	{ \
		(void)h, (void)uplo, (void)a, (void)lda; \
		return lwork(out, POTRF, n, n, 0, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##sytrf_bufferSize, \
		    (void *h, int n, void *a, int lda, int *out)) \
	{ \
		(void)h, (void)a, (void)lda; \
		return lwork(out, SYTRF, n, n, 0, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##gesvd_bufferSize, (void *h, int m, int n, int *out)) \
	{ \
		(void)h; \
		return lwork(out, GESVD, m, n, 0, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##gesvdj_bufferSize, \
		    (void *h, int vectors, int econ, int m, int n, void *a, int lda, void *s, \
		     void *u, int ldu, void *v, int ldv, int *out, void *p)) \
	{ \
		(void)h, (void)econ, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v, \
			(void)ldv, (void)p; \
		return lwork(out, GESVDJ, m, n, vectors, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##gesvdjBatched_bufferSize, \
		    (void *h, int vectors, int m, int n, void *a, int lda, void *s, void *u, \
		     int ldu, void *v, int ldv, int *out, void *p, int batch)) \
	{ \
		(void)h, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v, (void)ldv, \
			(void)p; \
		return lwork(out, GESVDJ_BATCHED, m, n, vectors, batch); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##gesvdaStridedBatched_bufferSize, \
		    (void *h, int vectors, int rank, int m, int n, void *a, int lda, \
		     long long a_step, void *s, long long s_step, void *u, int ldu, \
		     long long u_step, void *v, int ldv, long long v_step, int *out, int batch)) \
	{ \
		(void)h, (void)rank, (void)a, (void)lda, (void)a_step, (void)s, (void)s_step, \
			(void)u, (void)ldu, (void)u_step, (void)v, (void)ldv, (void)v_step; \
		return lwork(out, GESVDA, m, n, vectors, batch); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t## or ##gqr_bufferSize, \
		    (void *h, int m, int n, int k, void *a, int lda, void *tau, int *out)) \
	{ \
		(void)h, (void)a, (void)lda, (void)tau; \
		return lwork(out, ORGQR, m, n, k, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t## or ##mqr_bufferSize, \
		    (void *h, int side, int trans, int m, int n, int k, void *a, int lda, \
		     void *tau, void *c, int ldc, int *out)) \
	{ \
		(void)h, (void)side, (void)trans, (void)a, (void)lda, (void)tau, (void)c, \
			(void)ldc; \
		return lwork(out, ORMQR, m, n, k, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##sy##evd_bufferSize, \
		    (void *h, int vectors, int uplo, int n, void *a, int lda, void *w, int *out)) \
	{ \
		(void)h, (void)uplo, (void)a, (void)lda, (void)w; \
		return lwork(out, SYEVD, n, n, vectors, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##sy##evj_bufferSize, \
		    (void *h, int vectors, int uplo, int n, void *a, int lda, void *w, int *out, \
		     void *p)) \
	{ \
		(void)h, (void)uplo, (void)a, (void)lda, (void)w, (void)p; \
		return lwork(out, SYEVJ, n, n, vectors, 1); \
	} \
	NOGPU_ENTRY(int, cusolverDn##t##sy##evjBatched_bufferSize, \
		    (void *h, int vectors, int uplo, int n, void *a, int lda, void *w, int *out, \
		     void *p, int batch)) \
	{ \
		(void)h, (void)uplo, (void)a, (void)lda, (void)w, (void)p; \
		return lwork(out, SYEVJ_BATCHED, n, n, vectors, batch); \
	}
OF_TYPE(S, or, sy)
OF_TYPE(D, or, sy)
OF_TYPE(C, un, he)
OF_TYPE(Z, un, he)

/* ---- the interface with types as arguments: bytes of the card and of the host ------------- */

static int64_t element_bytes(int cuda_type)
{
	/* cudaDataType: 32-bit real 0, 64-bit real 1, their complex forms 4 and 5 */
	return cuda_type == 5 ? 16 : cuda_type == 0 ? 4 : 8;
}

static int both(size_t *dev, size_t *host, int type, enum routine routine, int64_t m, int64_t n,
		int64_t k, int64_t batch)
{
	*dev = (size_t)(work(routine, m, n, k, batch) * element_bytes(type));
	*host = 0;
	return 0;
}

NOGPU_ENTRY(int, cusolverDnXpotrf_bufferSize,
	    (void *h, void *p, int uplo, int64_t n, int type, void *a, int64_t lda, int compute,
	     size_t *dev, size_t *host))
{
	(void)h, (void)p, (void)uplo, (void)a, (void)lda, (void)compute;
	return both(dev, host, type, POTRF, n, n, 0, 1);
}
NOGPU_ENTRY(int, cusolverDnXgeqrf_bufferSize,
	    (void *h, void *p, int64_t m, int64_t n, int type, void *a, int64_t lda, int tau_type,
	     void *tau, int compute, size_t *dev, size_t *host))
{
	(void)h, (void)p, (void)a, (void)lda, (void)tau_type, (void)tau, (void)compute;
	return both(dev, host, type, GEQRF, m, n, 0, 1);
}
NOGPU_ENTRY(int, cusolverDnXsyevd_bufferSize,
	    (void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda,
	     int w_type, void *w, int compute, size_t *dev, size_t *host))
{
	(void)h, (void)p, (void)uplo, (void)a, (void)lda, (void)w_type, (void)w, (void)compute;
	return both(dev, host, type, SYEVD, n, n, vectors, 1);
}
NOGPU_ENTRY(int, cusolverDnXsyevBatched_bufferSize,
	    (void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda,
	     int w_type, void *w, int compute, size_t *dev, size_t *host, int64_t batch))
{
	(void)h, (void)p, (void)uplo, (void)a, (void)lda, (void)w_type, (void)w, (void)compute;
	return both(dev, host, type, SYEV_BATCHED, n, n, vectors, batch);
}
NOGPU_ENTRY(int, cusolverDnXgeev_bufferSize,
	    (void *h, void *p, int left, int right, int64_t n, int type, void *a, int64_t lda,
	     int w_type, void *w, int vl_type, void *vl, int64_t ldvl, int vr_type, void *vr,
	     int64_t ldvr, int compute, size_t *dev, size_t *host))
{
	(void)h, (void)p, (void)left, (void)a, (void)lda, (void)w_type, (void)w, (void)vl_type,
		(void)vl, (void)ldvl, (void)vr_type, (void)vr, (void)ldvr, (void)compute;
	return both(dev, host, type, GEEV, n, n, right, 1);
}
NOGPU_ENTRY(int, cusolverDnXsytrs_bufferSize,
	    (void *h, int uplo, int64_t n, int64_t sides, int type, void *a, int64_t lda,
	     void *pivots, int b_type, void *b, int64_t ldb, size_t *dev, size_t *host))
{
	(void)h, (void)uplo, (void)a, (void)lda, (void)pivots, (void)b_type, (void)b, (void)ldb;
	return both(dev, host, type, SYTRF, n, n, sides, 1);
}
