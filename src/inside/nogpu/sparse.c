/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSPARSE: matrices are described, a buffer is asked for, and nothing is computed. How many
 * elements a product has is known to the card only: taken to be what uniformly spread ones
 * would give. Buffers are not measured; those that hang on the number of elements are taken to be
 * one index for each, others to be none.
 */
#include "nogpu.h"

#include <stdlib.h>

struct matrix {
	int64_t rows, cols, elements;
};

static int make(struct matrix **out, int64_t rows, int64_t cols, int64_t elements)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return 2;
	**out = (struct matrix){ rows, cols, elements };
	return 0;
}

static int empty(void **out)
{
	*out = calloc(1, sizeof(struct matrix));
	return *out ? 0 : 2;
}

NOGPU_ENTRY(int, cusparseCreateCsr,
	    (struct matrix * *out, int64_t rows, int64_t cols, int64_t elements, void *starts,
	     void *columns, void *values, int start_type, int column_type, int base, int type))
{
	(void)starts, (void)columns, (void)values, (void)start_type, (void)column_type, (void)base,
		(void)type;
	return make(out, rows, cols, elements);
}
NOGPU_ENTRY(int, cusparseCreateCoo,
	    (struct matrix * *out, int64_t rows, int64_t cols, int64_t elements, void *row_index,
	     void *col_index, void *values, int index_type, int base, int type))
{
	(void)row_index, (void)col_index, (void)values, (void)index_type, (void)base, (void)type;
	return make(out, rows, cols, elements);
}
NOGPU_ENTRY(int, cusparseCreateDnMat,
	    (struct matrix * *out, int64_t rows, int64_t cols, int64_t lead, void *values, int type,
	     int order))
{
	(void)lead, (void)values, (void)type, (void)order;
	return make(out, rows, cols, rows * cols);
}
NOGPU_ENTRY(int, cusparseCreateDnVec,
	    (struct matrix * *out, int64_t elements, void *values, int type))
{
	(void)values, (void)type;
	return make(out, elements, 1, elements);
}
#define EMPTY(name) \
	NOGPU_ENTRY(int, name, (void **out)) \
	{ \
		return empty(out); \
	}
EMPTY(cusparseCreateMatDescr)
EMPTY(cusparseCreateBsrsv2Info)
EMPTY(cusparseCreateBsrsm2Info)
EMPTY(cusparseSpGEMM_createDescr)
EMPTY(cusparseSpSM_createDescr)
EMPTY(cusparseSpSV_createDescr)

NOGPU_ENTRY(int, cusparseSpMatGetSize,
	    (const struct matrix *a, int64_t *rows, int64_t *cols, int64_t *elements))
{
	*rows = a->rows;
	*cols = a->cols;
	*elements = a->elements;
	return 0;
}

/* ---- buffers -------------------------------------------------------------------------------- */

NOGPU_ENTRY(int, cusparseSpMM_bufferSize,
	    (void *h, int op_a, int op_b, void *alpha, void *a, void *b, void *beta, void *c,
	     int type, int algorithm, size_t *bytes))
{
	(void)h, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)beta, (void)c,
		(void)type, (void)algorithm;
	*bytes = 0;
	return 0;
}
NOGPU_ENTRY(int, cusparseSDDMM_bufferSize,
	    (void *h, int op_a, int op_b, void *alpha, void *a, void *b, void *beta, void *c,
	     int type, int algorithm, size_t *bytes))
{
	(void)h, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)beta, (void)c,
		(void)type, (void)algorithm;
	*bytes = 0;
	return 0;
}
NOGPU_ENTRY(int, cusparseSpMV_bufferSize,
	    (void *h, int op, void *alpha, void *a, void *x, void *beta, void *y, int type,
	     int algorithm, size_t *bytes))
{
	(void)h, (void)op, (void)alpha, (void)a, (void)x, (void)beta, (void)y, (void)type,
		(void)algorithm;
	*bytes = 0;
	return 0;
}
NOGPU_ENTRY(int, cusparseSpSM_bufferSize,
	    (void *h, int op_a, int op_b, void *alpha, const struct matrix *a, void *b, void *c,
	     int type, int algorithm, void *info, size_t *bytes))
{
	(void)h, (void)op_a, (void)op_b, (void)alpha, (void)b, (void)c, (void)type, (void)algorithm,
		(void)info;
	*bytes = (size_t)a->elements * 4;
	return 0;
}
NOGPU_ENTRY(int, cusparseSpSV_bufferSize,
	    (void *h, int op, void *alpha, const struct matrix *a, void *x, void *y, int type,
	     int algorithm, void *info, size_t *bytes))
{
	(void)h, (void)op, (void)alpha, (void)x, (void)y, (void)type, (void)algorithm, (void)info;
	*bytes = (size_t)a->elements * 4;
	return 0;
}
NOGPU_ENTRY(int, cusparseXcoosort_bufferSizeExt,
	    (void *h, int rows, int cols, int elements, void *row_index, void *col_index,
	     size_t *bytes))
{
	(void)h, (void)rows, (void)cols, (void)row_index, (void)col_index;
	*bytes = (size_t)elements * 16;
	return 0;
}
NOGPU_ENTRY(int, cusparseXcsrsort_bufferSizeExt,
	    (void *h, int rows, int cols, int elements, void *starts, void *col_index,
	     size_t *bytes))
{
	(void)h, (void)rows, (void)cols, (void)starts, (void)col_index;
	*bytes = (size_t)elements * 16;
	return 0;
}

/* ---- products of sparse matrices ------------------------------------------------------------ */

/* Of two matrices with so many elements each, spread evenly. */
static int64_t product_elements(const struct matrix *a, const struct matrix *b)
{
	double inner = (double)FRAG_MAX(a->cols, 1);
	double count = (double)a->elements * (double)b->elements / inner;

	return (int64_t)FRAG_MIN(count, (double)a->rows * (double)b->cols);
}

NOGPU_ENTRY(int, cusparseSpGEMM_workEstimation,
	    (void *h, int op_a, int op_b, void *alpha, const struct matrix *a,
	     const struct matrix *b, void *beta, struct matrix *c, int type, int algorithm,
	     void *info, size_t *bytes, void *buffer))
{
	(void)h, (void)op_a, (void)op_b, (void)alpha, (void)beta, (void)type, (void)algorithm,
		(void)info, (void)buffer;
	c->elements = product_elements(a, b);
	*bytes = (size_t)a->rows * 8;
	return 0;
}
NOGPU_ENTRY(int, cusparseSpGEMM_compute,
	    (void *h, int op_a, int op_b, void *alpha, const struct matrix *a,
	     const struct matrix *b, void *beta, struct matrix *c, int type, int algorithm,
	     void *info, size_t *bytes, void *buffer))
{
	(void)h, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)beta, (void)type,
		(void)algorithm, (void)info, (void)buffer;
	*bytes = (size_t)c->elements * 12;
	return 0;
}
/* A sum of two: at most the elements of both. */
#define SUM(t) \
	NOGPU_ENTRY(int, cusparse##t##csrgeam2_bufferSizeExt, \
		    (void *h, int m, int n, void *alpha, void *a, int a_elements, void *a_values, \
		     void *a_starts, void *a_columns, void *beta, void *b, int b_elements, \
		     void *b_values, void *b_starts, void *b_columns, void *c, void *c_values, \
		     void *c_starts, void *c_columns, size_t *bytes)) \
	{ \
		(void)h, (void)n, (void)alpha, (void)a, (void)a_elements, (void)a_values, \
			(void)a_starts, (void)a_columns, (void)beta, (void)b, (void)b_elements, \
			(void)b_values, (void)b_starts, (void)b_columns, (void)c, (void)c_values, \
			(void)c_starts, (void)c_columns; \
		*bytes = (size_t)m * 4; \
		return 0; \
	}
SUM(S)
SUM(D)
SUM(C)
SUM(Z)
NOGPU_ENTRY(int, cusparseXcsrgeam2Nnz,
	    (void *h, int m, int n, void *a, int a_elements, void *a_starts, void *a_columns,
	     void *b, int b_elements, void *b_starts, void *b_columns, void *c, void *c_starts,
	     int *elements, void *buffer))
{
	(void)h, (void)m, (void)n, (void)a, (void)a_starts, (void)a_columns, (void)b,
		(void)b_starts, (void)b_columns, (void)c, (void)c_starts, (void)buffer;
	*elements = a_elements + b_elements;
	return 0;
}
