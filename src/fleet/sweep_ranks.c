/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this a rank of an mpirun? Each one sweeps its share, as a shard of an array job, and rank 0
 * merges them (sweep_run.c).
 *
 * MPI itself is behind a shared object beside the program (cufrag_mpi.so, src/fleet), opened only
 * by a process that mpirun or srun has started: nothing else of cufrag needs an MPI at run time.
 */
#include "sweep.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULE "cufrag_mpi.so"

/* Beside the program, or where make install puts it. */
static void *open_module(char *tried, size_t cap)
{
	static const char *const places[] = { "", "../lib/cufrag/" };
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *module = NULL;
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		slash[1] = '\0';
	for (size_t i = 0; !module && i < FRAG_ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path), "%s%s" MODULE, self, places[i]);
		module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	}
	snprintf(tried, cap, "%.300s", module ? "" : dlerror());
	return module;
}

int frag_sweep_ranks_open(const struct frag_ranks **out, struct frag_err *err)
{
	static const char *const signs[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
					     "MPI_LOCALNRANKS" };
	const struct frag_ranks *ranks;
	const char *size = NULL;
	char why[301];
	void *module;

	*out = NULL;
	for (size_t i = 0; !size && i < FRAG_ARRAY_LEN(signs); i++)
		size = getenv(signs[i]);
	if (!size || strtol(size, NULL, 10) < 2)
		return 0;
	module = open_module(why, sizeof(why));
	if (!module)
		return frag_fail(err, FRAG_EUSAGE,
				 "this is a rank of an mpirun, but " MODULE
				 " cannot be opened (%.200s); it is built where mpi.h is found",
				 why);
	ranks = dlsym(module, "frag_ranks_mpi");
	if (!ranks || ranks->abi != FRAG_RANKS_ABI)
		return frag_fail(err, FRAG_EUSAGE, MODULE " is of another version of cufrag");
	*out = ranks;
	return 0;
}
