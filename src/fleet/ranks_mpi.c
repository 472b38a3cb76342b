/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of an mpirun for `cufrag sweep`: a shared object of its own (cufrag_mpi.so), so that
 * the program needs no MPI. Built where mpi.h is found; the joint is ranks.h.
 */
#include <mpi.h>

#include <stdio.h>
#include <unistd.h>

#include "ranks.h"

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

static int sum(uint64_t *values, int count)
{
	MPI_Request request;
	int done = 0, rc = MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_UINT64_T, MPI_SUM,
					  MPI_COMM_WORLD, &request);

	/* a wait of MPI itself would take a core from those that still work */
	while (rc == MPI_SUCCESS && !done) {
		rc = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (!done)
			usleep(10000);
	}
	return rc != MPI_SUCCESS;
}

static void stop(void)
{
	MPI_Finalize();
}

extern const struct frag_ranks frag_ranks_mpi;
const struct frag_ranks frag_ranks_mpi = {
	.abi = FRAG_RANKS_ABI,
	.start = start,
	.sum = sum,
	.stop = stop,
};
