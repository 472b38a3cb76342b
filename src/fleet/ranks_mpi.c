/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of an mpirun for `cufrag sweep`: a shared object of its own (cufrag_mpi.so), so that
 * the program needs no MPI. Built where mpi.h is found; the joint is ranks.h.
 *
 * One thread calls, messages are bytes with one tag. MPI's own buffers are its own; a message that
 * poll returns comes from malloc and is the caller's.
 */
#include <mpi.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "ranks.h"

#define TAG 1

static int start(int *rank, int *size, char *why)
{
	int have, rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &have);

	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_rank(MPI_COMM_WORLD, rank);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_size(MPI_COMM_WORLD, size);
	/* errors go to the caller, which names the rank */
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rc != MPI_SUCCESS)
		snprintf(why, 200, "error %d", rc);
	return rc != MPI_SUCCESS;
}

static int send_bytes(int rank, const void *bytes, size_t len)
{
	return len > INT_MAX ||
	       MPI_Send(bytes, (int)len, MPI_BYTE, rank, TAG, MPI_COMM_WORLD) != MPI_SUCCESS;
}

static int poll_bytes(int from, int *rank, void **bytes, size_t *len)
{
	MPI_Status status;
	int there = 0, n;

	if (MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, TAG, MPI_COMM_WORLD, &there, &status) !=
		    MPI_SUCCESS ||
	    !there || MPI_Get_count(&status, MPI_BYTE, &n) != MPI_SUCCESS)
		return 0;
	*bytes = malloc((size_t)n + 1);
	if (!*bytes || MPI_Recv(*bytes, n, MPI_BYTE, status.MPI_SOURCE, TAG, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE) != MPI_SUCCESS) {
		free(*bytes);
		return 0;
	}
	*rank = status.MPI_SOURCE;
	*len = (size_t)n;
	return 1;
}

static void stop(void)
{
	MPI_Finalize();
}

extern const struct frag_ranks frag_ranks_mpi;
const struct frag_ranks frag_ranks_mpi = {
	.abi = FRAG_RANKS_ABI,
	.start = start,
	.send = send_bytes,
	.poll = poll_bytes,
	.stop = stop,
};
