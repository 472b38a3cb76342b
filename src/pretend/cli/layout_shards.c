/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts as shards of an array job, and their results for fleet; see layout_shards.h. */
#include "layout_shards.h"

#include <stdlib.h>
#include <string.h>

#include "lib/grow.h"

/* "/16" under mpirun or srun: its rank, unless it is in an array, each task of which may be rank 0 of a job of its own. */
static void find_mpi_rank(struct frag_sweep_shard *s)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
					     "MV2_COMM_WORLD_RANK", "SLURM_PROCID" };
	bool array = getenv("SLURM_ARRAY_TASK_ID") || getenv("JOB_COMPLETION_INDEX");

	for (size_t k = 0; s->auto_i && !array && k < FRAG_ARRAY_LEN(names); k++) {
		const char *rank = getenv(names[k]);

		if (rank && strtoul(rank, NULL, 10) < s->n) {
			s->i = (unsigned)strtoul(rank, NULL, 10);
			s->auto_i = false;
		}
	}
}

extern char **environ;

/* cufrag's own job is not the planned one: programs read their rank from these. */
static void forget_array_job(void)
{
	static const char *const of_jobs[] = { "SLURM_", "OMPI_", "PMI_",
					       "PMIX_",	 "MV2_",  "JOB_COMPLETION_INDEX=" };
	char name[200];

	for (char **at = environ; *at;) {
		bool found = false;

		for (size_t k = 0; k < FRAG_ARRAY_LEN(of_jobs); k++)
			found |= !strncmp(*at, of_jobs[k], strlen(of_jobs[k]));
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
		if (found && !unsetenv(name))
			at = environ;
		else
			at++;
	}
}

int frag_layout_find_shard(struct frag_layouts *x, struct frag_sweep_shard *shard,
			   const char *store, struct frag_err *err)
{

	find_mpi_rank(shard);
	if (shard->n)
		FRAG_TRY(frag_sweep_find_index(shard, err));
	x->shard_i = shard->i;
	x->shard_n = shard->n;
	if (x->shard_n)
		forget_array_job();
	if (x->shard_n && (!x->keep || store))
		return frag_fail(err, FRAG_EUSAGE,
				 "shards of an array job need --keep DIR, and no --store: when all "
				 "are done, the same command with --keep DIR --shard all --store "
				 "FILE");
	if (x->resume && !x->keep)
		return frag_fail(err, FRAG_EUSAGE, "--shard all needs --keep DIR");
	if (store && !x->keep)
		return frag_fail(err, FRAG_EUSAGE,
				 "--store needs --keep DIR: its results are of these recordings");
	return 0;
}

/* What `cufrag sweep DIR -o FILE` writes, on the cards of the plan. */
int frag_layout_store(struct frag_cli *cli, const struct frag_layouts *x, const char *path,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_sweep_release) struct frag_sweep s = { 0 };
	struct frag_rows failures = { 0 };
	char *operands[] = { (char *)(uintptr_t)x->keep, NULL };

	s.target = cli->target;
	s.threads = x->jobs;
	s.operands = operands;
	s.operands_count = 1;
	s.output = path;
	FRAG_TRY(frag_policy_texts_default(&s.policies, FRAG_SWEEP_POLICIES, err));
	for (size_t c = 0; c < x->cards_count; c++) {
		FRAG_TRY(FRAG_GROW(s.cards, s.cards_count, s.cards_cap, "cards", err));
		s.cards[s.cards_count++] = x->cards[c];
	}
	FRAG_TRY(frag_sweep_run(&s, &a, &failures, err));
	frag_cli_note(cli, "wrote %s, for cufrag fleet", path);
	return 0;
}
