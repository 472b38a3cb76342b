/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a job on the pretended card: all together, one of each role, a few at a time, or one alone. */
#include "pretend_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TOGETHER_MAX 64u /* processes at a time */

/* Ranks that run at the same time. */
struct turn {
	char folder[4096]; /* where they talk */
	const unsigned *ranks;
	unsigned count;
	unsigned known; /* the first of these ran before: their recordings are dropped */
	bool played;	/* they play the other ranks of the job */
};

struct rank_run {
	const struct pretend_job *j;
	char **program;
	const unsigned *rank;	 /* NULL: not one of several */
	const struct turn *turn; /* NULL: no turn of several */
	const char *scout;	 /* folder of its own; NULL: no scout */
};

static void prepare_rank(const void *ctx, unsigned i)
{
	const struct rank_run *run = ctx;

	frag_pretend_put_rank(run->j, run->turn->ranks[i]);
	if (i < run->turn->known)
		setenv(CUFRAG_RECORD, run->turn->folder, 1);
}

/* It leaves no recording. */
static void prepare_scout(const struct pretend_job *j, const char *folder)
{
	char path[sizeof(j->folder) + 16];

	setenv(CUFRAG_RECORD, folder, 1);
	frag_roles_path(path, sizeof(path), j->folder);
	setenv(CUFRAG_PRETEND_SCOUT, path, 1);
}

static void over_path(char *path, size_t room, const struct turn *t)
{
	snprintf(path, room, "%s/over", t->folder);
}

static void __attribute__((noreturn)) become_turn(const struct rank_run *run)
{
	char path[sizeof(run->turn->folder) + 16];

	frag_roles_path(path, sizeof(path), run->turn->folder);
	if (run->turn->played)
		setenv(CUFRAG_PRETEND_ROLES, path, 1);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	frag_launch_put_number("MASTER_PORT", frag_launch_free_port());
	over_path(path, sizeof(path), run->turn);
	frag_launch_become_ranks(run->program, run->turn->count, prepare_rank, run,
				 run->j->o->memory_bytes, path);
}

/* If every rank runs, they exchange messages (src/pretend/talk/talk.h): the program starts all of
 * them, or we do. */
static void prepare(const void *ctx)
{
	const struct rank_run *run = ctx;

	frag_pretend_put_all(run->j);
	if (run->j->l->stdout_to_stderr)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	if (run->scout)
		prepare_scout(run->j, run->scout);
	if (run->rank) {
		frag_pretend_put_rank(run->j, *run->rank);
		setenv(CUFRAG_PRETEND_RANK, "1", 1);
		return;
	}
	setenv(CUFRAG_PRETEND_TALK, run->turn ? run->turn->folder : run->j->folder, 1);
	if (run->turn)
		become_turn(run);
}

/* Its writes are held back until it has ended. */
static int run_program(const struct rank_run *run, int *status, struct frag_err *err)
{
	const struct pretend_job *j = run->j;
	int rc;

	FRAG_TRY(frag_held_begin(&j->o->hold, j->folder, &j->files, err));
	rc = frag_launch_run(run->program, prepare, run, status, err);
	frag_held_end(&j->o->hold, j->folder);
	return rc;
}

static int run_once(const struct pretend_job *j, char **program, const unsigned *rank, int *status,
		    struct frag_err *err)
{
	struct rank_run run = { j, program, rank, NULL, NULL };

	return run_program(&run, status, err);
}

/* Finds identical ranks. Rank 0 runs alone until they are known. */
static int find_roles(struct pretend_job *j, char **program, struct frag_roles *roles,
		      struct frag_err *err)
{
	static const unsigned first = 0;
	char folder[sizeof(j->folder)] = "";
	struct rank_run run = { j, program, &first, NULL, folder };
	struct rusage used;
	int rc, status = 0;
	bool alone;

	FRAG_TRY(frag_launch_folder(folder, sizeof(folder), err));
	rc = run_program(&run, &status, err);
	frag_launch_folder_remove(folder);
	FRAG_TRY(rc);
	if (!getrusage(RUSAGE_CHILDREN, &used))
		j->scout_bytes = (uint64_t)used.ru_maxrss * 1024;
	FRAG_TRY(frag_roles_read(j->folder, roles, err));
	alone = !status && !roles->runs_count;
	if (alone)
		FRAG_TRY(frag_roles_read_alone(j->folder, roles, err));
	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted before the roles were known");
	if (!roles->runs_count || status)
		return frag_fail(err, FRAG_EINPUT,
				 "the roles of the ranks are not known: run alone, rank 0 ended "
				 "with status %d before its first step",
				 status);
	if (alone)
		frag_launch_note(j->l, "the program made no group of ranks: each is on its own");
	return 0;
}

static bool is_in(const unsigned *list, size_t count, unsigned rank)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == rank)
			return true;
	return false;
}

/* Orders the ranks: the roles first, then the others to run; with roles only, those that check
 * them. */
static unsigned order_ranks(const struct pretend_job *j, const struct frag_roles *roles,
			    unsigned *order)
{
	const unsigned *runs = j->roles ? roles->runs : j->ranks;
	size_t runs_count = j->roles ? roles->runs_count : j->ranks_count;
	unsigned count = 0;

	for (size_t i = 0; i < roles->count; i++)
		order[count++] = roles->list[i].rank;
	for (size_t i = 0; i < roles->order_count; i++)
		if (is_in(runs, runs_count, roles->order[i]) &&
		    !is_in(order, roles->count, roles->order[i]))
			order[count++] = roles->order[i];
	return count;
}

static int run_turn(const struct pretend_job *j, char **program, struct turn *t,
		    const struct frag_roles *roles, bool *over, int *status, struct frag_err *err)
{
	struct rank_run run = { j, program, NULL, t, NULL };
	char path[sizeof(t->folder) + 16];
	int rc, ended = 0;

	t->folder[0] = '\0';
	FRAG_TRY(frag_launch_folder(t->folder, sizeof(t->folder), err));
	rc = roles ? frag_roles_write(roles, t->folder, t->ranks, t->count, err) : 0;
	if (!rc)
		rc = run_program(&run, &ended, err);
	over_path(path, sizeof(path), t);
	*over = !access(path, F_OK);
	if (!*over && !*status)
		*status = ended;
	frag_launch_folder_remove(t->folder);
	return rc;
}

static int too_short(const struct pretend_job *j, size_t together, struct frag_err *err)
{
	return frag_fail(err, FRAG_EUSAGE,
			 "%zu ranks have to run at a time, and rank 0 alone took %.1f MiB of the "
			 "host; %s",
			 together, (double)j->scout_bytes / FRAG_MIB,
			 j->o->memory_bytes ? "raise --memory" : "name some ranks with --ranks");
}

/* The ranks of the roles run in every turn, because they play the absent ones; the others a few at
 * a time, together with their pipeline: as many as there are roles. */
static int run_turns(struct pretend_job *j, char **program, int *status, struct frag_err *err)
{
	FRAG_AUTO(frag_roles_release) struct frag_roles roles = { 0 };
	unsigned order[2 * FRAG_PRETEND_RANKS], count, chain, at, fits = TOGETHER_MAX;
	char path[sizeof(j->folder) + 16];

	j->roles_known = j->roles_known && frag_roles_know(&roles, j->o->known_roles);
	FRAG_TRY(j->roles_known
			 ? frag_roles_write(&roles, j->folder, roles.runs, roles.runs_count, err)
			 : find_roles(j, program, &roles, err));
	if (!j->roles) { /* every rank is recorded, none is played */
		frag_roles_path(path, sizeof(path), j->folder);
		unlink(path);
	}
	if (roles.count > TOGETHER_MAX || roles.runs_count > FRAG_PRETEND_RANKS)
		return too_short(j, roles.count, err);
	count = order_ranks(j, &roles, order);
	chain = at = (unsigned)roles.count;
	if (j->o->memory_bytes)
		fits = (unsigned)FRAG_MIN(j->o->memory_bytes / FRAG_MAX(j->scout_bytes, 1u), fits);
	fits = FRAG_MAX(fits / chain, 1u + (count > chain)) * chain;
	do {
		unsigned now[2 * TOGETHER_MAX], others = FRAG_MIN(count - at, fits - chain);
		struct turn t = { .ranks = now,
				  .count = chain + others,
				  .known = at > chain ? chain : 0,
				  .played = true };
		bool over;

		memcpy(now, order, chain * sizeof(*now));
		memcpy(now + chain, order + at, others * sizeof(*now));
		FRAG_TRY(run_turn(j, program, &t, &roles, &over, status, err));
		if (frag_launch_interrupted())
			return 0;
		if (over && others <= chain)
			return too_short(j, t.count, err);
		if (over)
			fits = (1 + FRAG_MAX(others / chain / 2, 1u)) * chain;
		else
			at += others;
	} while (at < count && !*status);
	return 0;
}

/* Are all ranks of the job to run, and few enough to run at once? */
static bool all_together(const struct pretend_job *j)
{
	return j->world > 1 && j->world <= TOGETHER_MAX && j->ranks_count == j->world;
}

/* True: the job's groups differ from those of the job whose roles it reused, so it starts again. */
static int are_unlike(struct pretend_job *j, bool *unlike, struct frag_err *err)
{
	char path[sizeof(j->folder) + 16];

	snprintf(path, sizeof(path), "%s/unlike", j->folder);
	*unlike = !access(path, F_OK);
	if (!*unlike)
		return 0;
	frag_launch_folder_remove(j->folder);
	return frag_launch_folder(j->folder, sizeof(j->folder), err);
}

/* Runs one rank of each role. A job that fails with known roles is run again with its own. */
static int run_roles(struct pretend_job *j, char **program, int *status, struct frag_err *err)
{
	bool unlike = false;

	j->roles_known = j->o->known_roles && !j->o->memory_bytes && j->roles;
	FRAG_TRY(run_turns(j, program, status, err));
	if (j->roles_known && !frag_launch_interrupted())
		FRAG_TRY(are_unlike(j, &unlike, err));
	if (!unlike)
		return 0;
	j->roles_known = false;
	*status = 0;
	return run_turns(j, program, status, err);
}

static int run_ranks(struct pretend_job *j, char **program, int *status, struct frag_err *err)
{
	struct turn all = { .ranks = j->ranks, .count = j->ranks_count };
	bool over;

	if (j->roles || (j->o->memory_bytes && j->ranks_count == j->world))
		return run_roles(j, program, status, err);
	if (all_together(j))
		return run_turn(j, program, &all, NULL, &over, status, err);
	for (unsigned i = 0; i < j->ranks_count; i++)
		FRAG_TRY(run_once(j, program, &j->ranks[i], status, err));
	return 0;
}

/* A rank named twice runs once. */
static void add_rank(struct pretend_job *j, unsigned rank)
{
	if (!is_in(j->ranks, j->ranks_count, rank))
		j->ranks[j->ranks_count++] = rank;
}

int frag_pretend_parse_ranks(struct pretend_job *j, struct frag_err *err)
{
	const char *at = j->o->ranks;
	unsigned most = 0;

	j->roles = at && !strcmp(at, "roles");
	if (j->roles && j->o->world < 2)
		return frag_fail(err, FRAG_EUSAGE,
				 "--ranks roles needs --world: the number of ranks of the job");
	while (at && *at && !j->roles) {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (end != at && *end == '-')
			last = strtoul(at = end + 1, &end, 10);
		if (end == at || (*end && *end != ',') || last < first || last >= 1000000 ||
		    j->ranks_count + (last - first) >= FRAG_PRETEND_RANKS)
			return frag_fail(err, FRAG_EUSAGE,
					 "invalid ranks '%.40s': expected a list as 0,7 or 0-3, or "
					 "roles",
					 j->o->ranks);
		for (unsigned long r = first; r <= last; r++)
			add_rank(j, (unsigned)r);
		most = FRAG_MAX(most, (unsigned)last);
		at = *end ? end + 1 : end;
	}
	j->world = j->o->world ? j->o->world : j->ranks_count ? most + 1 : 0;
	if (j->o->world && !j->ranks_count)
		j->ranks[j->ranks_count++] = 0;
	if (j->ranks_count && most >= j->world)
		return frag_fail(err, FRAG_EUSAGE,
				 "rank %u is not in a job of %u ranks: the last one is %u", most,
				 j->world, j->world - 1);
	j->gpus = j->o->gpus ? j->o->gpus : FRAG_MIN(j->world, 8u);
	return 0;
}

int frag_pretend_run_ranks(struct pretend_job *j, char **program, int *status, struct frag_err *err)
{
	if (j->o->memory_bytes && !j->ranks_count)
		return frag_fail(err, FRAG_EUSAGE,
				 "--memory needs --ranks: cufrag then starts the ranks, and they "
				 "take turns");
	return j->ranks_count ? run_ranks(j, program, status, err)
			      : run_once(j, program, NULL, status, err);
}
