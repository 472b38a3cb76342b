/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSPARSE: matrices are described, a buffer is asked for, and nothing is computed. How many
 * elements a product has, only the card would know: assumed is what uniformly spread ones give. Sampled products
 * take one byte, as an H200 does unless they are nearly dense (scripts/lab/library_workspaces.py). Other buffers are not
 * measured: those that depend on the number of elements are one index for each, the others empty.
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

/* Of two matrices with so many elements each, spread evenly. */
static int64_t product_elements(const struct matrix *a, const struct matrix *b)
{
	double inner = (double)FRAG_MAX(a->cols, 1);
	double count = (double)a->elements * (double)b->elements / inner;

	return (int64_t)FRAG_MIN(count, (double)a->rows * (double)b->cols);
}

#define ANSWER NOGPU_ANSWER
#define VALUE NOGPU_VALUE
#include "sparse.def"
