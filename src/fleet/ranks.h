/* SPDX-License-Identifier: Apache-2.0 */
/* The joint between `cufrag sweep` and the module that speaks MPI (ranks_mpi.c). */
#ifndef FRAG_MPI_RANKS_H
#define FRAG_MPI_RANKS_H

#include <stddef.h>

/* The ranks of an mpirun, behind a shared object that is opened where this is one. */
#define FRAG_RANKS_ABI 1u
struct frag_ranks {
	unsigned abi;
	/* 0 or an error text in why[200] */
	int (*start)(int *rank, int *size, char *why);
	int (*send)(int rank, const void *bytes, size_t len);
	/* The next message of `from` (-1: anybody) if there is one: 1, *rank and a new buffer. */
	int (*poll)(int from, int *rank, void **bytes, size_t *len);
	void (*stop)(void);
};

#endif
