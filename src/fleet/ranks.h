/* SPDX-License-Identifier: Apache-2.0 */
/* The joint between `cufrag sweep` and the module that speaks MPI (ranks_mpi.c). */
#ifndef FRAG_MPI_RANKS_H
#define FRAG_MPI_RANKS_H

#include <stdint.h>

/* The ranks of an mpirun, behind a shared object that is opened where this is one. */
#define FRAG_RANKS_ABI 2u
struct frag_ranks {
	unsigned abi;
	/* 0 or an error text in why[200] */
	int (*start)(int *rank, int *size, char *why);
	/* Waits until all ranks have come here; values[count] become the sums. 0, or they cannot. */
	int (*sum)(uint64_t *values, int count);
	void (*stop)(void);
};

#endif
