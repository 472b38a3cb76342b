/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of an array job, or rank of an mpirun, this is; see sweep.h. */
#include "sweep.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int frag_sweep_set_shard(void *field, const char *text, struct frag_err *err)
{
	struct frag_sweep_shard *s = field;
	char *slash, *end;
	unsigned long i = strtoul(text, &slash, 10), n;

	s->auto_i = slash == text;
	n = *slash == '/' ? strtoul(slash + 1, &end, 10) : 0;
	if (!n || *end || n > 10000000 || (!s->auto_i && i >= n))
		return FRAG_USAGE(err,
				  "invalid shard '%.40s': expected I/N with 0 <= I < N, or /N to "
				  "read I from the array job",
				  text);
	s->i = (unsigned)i;
	s->n = (unsigned)n;
	return 0;
}

static bool env_number(const char *name, unsigned *out)
{
	const char *text = getenv(name);
	char *end;
	unsigned long n = text ? strtoul(text, &end, 10) : 0;

	if (!text || !*text || *end || n > 10000000)
		return false;
	*out = (unsigned)n;
	return true;
}

/* Of a Slurm array, the place among its tasks, whatever numbers these have. */
static bool slurm_index(unsigned *i, unsigned *n)
{
	unsigned id, low = 0, step = 1;

	if (!env_number("SLURM_ARRAY_TASK_ID", &id))
		return false;
	env_number("SLURM_ARRAY_TASK_MIN", &low);
	if (!env_number("SLURM_ARRAY_TASK_STEP", &step) || !step)
		step = 1;
	*i = id >= low ? (id - low) / step : 0;
	env_number("SLURM_ARRAY_TASK_COUNT", n);
	return true;
}

int frag_sweep_find_index(struct frag_sweep_shard *s, bool of_mpi, struct frag_err *err)
{
	static const char *const ranks[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
					     "MV2_COMM_WORLD_RANK", "SLURM_PROCID" };
	unsigned i = 0, n = 0;
	bool array = slurm_index(&i, &n), found = array || env_number("JOB_COMPLETION_INDEX", &i);

	for (size_t k = 0; of_mpi && !found && k < FRAG_ARRAY_LEN(ranks); k++)
		found = env_number(ranks[k], &i);
	if ((s->n && !s->auto_i) || (!s->n && !(array && n)))
		return 0;
	if (!found)
		return FRAG_USAGE(err,
				  "--shard /%u needs SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX "
				  "in the environment",
				  s->n);
	if (!s->n)
		s->n = n;
	if (i >= s->n)
		return FRAG_USAGE(err, "task %u of the array is not below --shard /%u", i, s->n);
	s->i = i;
	return 0;
}

/* results.sqlite -> results.3-of-16.sqlite, so that shards of one command do not meet. */
static char *shard_path(const char *path, const struct frag_sweep_shard *s)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	size_t front = dot && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
	char *out = frag_host_alloc(strlen(path) + 32);

	if (out)
		sprintf(out, "%.*s.%u-of-%u%s", (int)front, path, s->i, s->n, path + front);
	return out;
}

int frag_sweep_find_shard(struct frag_sweep *s, struct frag_err *err)
{
	const char **const outputs[] = { &s->output, &s->csv };

	FRAG_TRY(frag_sweep_find_index(&s->shard, false, err));
	for (size_t i = 0; s->shard.n && i < FRAG_ARRAY_LEN(outputs); i++) {
		if (!*outputs[i] || !strcmp(*outputs[i], "-"))
			continue;
		s->of_shard[i] = shard_path(*outputs[i], &s->shard);
		FRAG_CHECK_ALLOC(s->of_shard[i], "results", err);
		*outputs[i] = s->of_shard[i];
	}
	return 0;
}

/*
 * ---- a rank of an mpirun sweeps its share, as a shard of an array job, and rank 0 merges them
 * (sweep_run.c). MPI itself is behind a shared object beside the program (cufrag_mpi.so,
 * ranks_mpi.c), opened only by a process that mpirun or srun has started: nothing else of cufrag
 * needs an MPI. ----
 */

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
		return FRAG_USAGE(err,
				  "this is a rank of an mpirun, but " MODULE
				  " cannot be opened (%.200s); it is built where mpi.h is found",
				  why);
	ranks = dlsym(module, "frag_ranks_mpi");
	if (!ranks || ranks->abi != FRAG_RANKS_ABI)
		return FRAG_USAGE(err, MODULE " is of another version of cufrag");
	*out = ranks;
	return 0;
}

void frag_sweep_release(struct frag_sweep *s)
{
	for (size_t i = 0; i < s->limits_count; i++)
		frag_host_free((char *)(uintptr_t)s->limits[i].text);
	frag_policy_texts_release(&s->policies);
	frag_sweep_files_release(&s->files);
	FRAG_FREE(s->limits, s->cards, s->of_shard[0], s->of_shard[1]);
}
