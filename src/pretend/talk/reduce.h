/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's arithmetic: elements of its types, combined by its operations. */
#ifndef FRAG_PRETEND_REDUCE_H
#define FRAG_PRETEND_REDUCE_H

#include <frag/base.h>

/* From REDUCE_MADE on: premultiplied sums, made by the program. */
enum reduce_op { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_AVG, REDUCE_MADE };

/* Of a ncclDataType_t; 1 for 8 bits and unknown types. */
size_t reduce_type_bytes(int type);
/* A premultiplied sum. Its number is reused after many more, so read the factor at the call. */
int reduce_make(const void *factor, int type);
double reduce_factor(int op); /* 1 for unknown operations */
/* False for FP8 and for operations that were not made. */
bool reduce_known(int type, int op);
/* into[i] = into[i] op from[i]; bytes is the size of each. pre: reduce_known. */
void reduce_with(void *into, const void *from, size_t bytes, int type, int op);
/* Finishes a reduction over `ranks`: divides for REDUCE_AVG, multiplies by the factor of
 * REDUCE_MADE. */
void reduce_end(void *into, size_t bytes, int type, int op, int ranks, double factor);

#endif
