/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL computes: elements of its types, combined by its operations. */
#ifndef FRAG_NOGPU_REDUCE_H
#define FRAG_NOGPU_REDUCE_H

#include <frag/base.h>

/* From REDUCE_MADE on: sums times a factor, which the program makes. */
enum reduce_op { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_AVG, REDUCE_MADE };

/* Of ncclDataType_t; one byte for those of 8 bits and for unknown ones. */
size_t reduce_type_bytes(int type);
/* A sum times this number of the type. It is forgotten when many more were made, so take the factor when it is used. */
int reduce_make(const void *factor, int type);
double reduce_factor(int op); /* 1 of what nobody made */
/* Is it computed here? Not floating point of 8 bits, nor operations that nobody made. */
bool reduce_known(int type, int op);
/* into[i] = into[i] op from[i], bytes of both. pre: reduce_known. */
void reduce_with(void *into, const void *from, size_t bytes, int type, int op);
/* What remains to do when all `ranks` are in: the mean of REDUCE_AVG, the factor of what was made. */
void reduce_end(void *into, size_t bytes, int type, int op, int ranks, double factor);

#endif
