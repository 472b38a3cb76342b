/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of an array job this is; see sweep.h. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int frag_sweep_set_shard(void *field, const char *text, struct frag_err *err)
{
	struct frag_sweep_shard *s = field;
	char *slash, *end;
	unsigned long i = strtoul(text, &slash, 10), n;

	s->auto_i = slash == text;
	n = *slash == '/' ? strtoul(slash + 1, &end, 10) : 0;
	if (!n || *end || n > 10000000 || (!s->auto_i && i >= n))
		return frag_fail(err, FRAG_EUSAGE,
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
		return frag_fail(err, FRAG_EUSAGE,
				 "--shard /%u needs SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX in "
				 "the environment",
				 s->n);
	if (!s->n)
		s->n = n;
	if (i >= s->n)
		return frag_fail(err, FRAG_EUSAGE, "task %u of the array is not below --shard /%u",
				 i, s->n);
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

void frag_sweep_release(struct frag_sweep *s)
{
	for (size_t i = 0; i < s->limits_count; i++)
		frag_host_free((char *)(uintptr_t)s->limits[i].text);
	frag_policy_texts_release(&s->policies);
	frag_sweep_files_release(&s->files);
	FRAG_FREE(s->limits, s->cards, s->of_shard[0], s->of_shard[1]);
}
