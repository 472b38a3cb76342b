/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSPARSE: matrices are described and buffers sized, but nothing is computed. The number of
 * elements of a product is only known on a card; assumed is the expectation for uniformly
 * distributed elements. Sampled products take one byte, as on an H200 unless they are nearly dense
 * (git 53bd34df:scripts/lab/library_workspaces.py). Apart from products with a dense matrix, other
 * buffers were not measured: one index per element where they depend on that number, else empty.
 */
#include "pretend/card/card.h"

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

/* Of two matrices with so many elements each, uniformly distributed. */
static int64_t product_elements(const struct matrix *a, const struct matrix *b)
{
	double inner = (double)FRAG_MAX(a->cols, 1);
	double count = (double)a->elements * (double)b->elements / inner;

	return (int64_t)FRAG_MIN(count, (double)a->rows * (double)b->cols);
}

enum { CSR_ALG1 = 4, CSR_ALG2 = 6 }; /* cusparseSpMMAlg_t */

/* Of a product with a dense matrix: one number per block. Equal to all 24 sizes of an H200 with
 * CUDA 13.0, for 16 columns; other algorithms were not measured. */
static size_t product_bytes(const struct matrix *a, int algorithm)
{
	size_t n = (size_t)a->elements;

	return algorithm == CSR_ALG1   ? 4 * ((n + 255) / 256) + 7
	       : algorithm == CSR_ALG2 ? 8 * ((n + 23) / 24) + 7
				       : 0;
}

#define ANSWER PRETEND_ANSWER
#define VALUE PRETEND_VALUE
#define SAME PRETEND_SAME
#include "sparse.def"
