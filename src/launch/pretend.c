/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program on the pretended card. All that it needs is in the environment: Python finds
 * sitecustomize.py first, which does the rest (src/inside/nogpu/python). Recordings come back in a folder,
 * which is removed at the end.
 */
#include "pretend.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/outfile.h"
#include "launch/kept.h"
#include "launch/roles.h"

#define RANKS_MAX 1024u
#define TOGETHER_MAX 64u	  /* processes at a time */
#define ENTRIES_DEFAULT 10000000u /* as that of cufrag record */

struct job {
	const struct frag_launch *l;
	const struct frag_pretend *o;
	struct frag_inside_files files;
	struct frag_kept kept; /* where a recording may be reused */
	char folder[4096];     /* "" = none yet */
	unsigned ranks[RANKS_MAX];
	unsigned ranks_count, world, gpus;
	bool roles;	      /* one rank of each, which a scout finds */
	bool roles_known;     /* they are those of another job */
	uint64_t scout_bytes; /* of the host, that it needed */
};

/* Some ranks that run at a time. */
struct turn {
	char folder[4096]; /* where they talk */
	const unsigned *ranks;
	unsigned count;
	unsigned known; /* the first of these ran before: their recordings are not kept */
	bool played;	/* the others of the job are played by them */
};

/* ---- the environment of the program --------------------------------------------------- */

const struct frag_gpu *frag_pretend_gpu(const struct frag_launch *l)
{
	return frag_gpu_find(l->gpu ? l->gpu : "h200");
}

static void put_card(const struct frag_launch *l, unsigned gpus)
{
	const struct frag_sim_config *card = &l->card;
	const struct frag_gpu *gpu = frag_pretend_gpu(l);
	const struct frag_gpu_chip *chip = gpu ? frag_gpu_chip_find(gpu->name) : NULL;
	char text[512];
	int n;

	/* whose context is given by hand holds that and nothing else beside the program's memory */
	n = snprintf(text, sizeof(text), "total=%llu;context=%llu;count=%u;libraries=%d",
		     (unsigned long long)card->total_bytes, (unsigned long long)card->context_bytes,
		     gpus, gpu && card->context_bytes == gpu->context_bytes);
	if (chip)
		snprintf(text + n, sizeof(text) - (size_t)n,
			 ";name=%s;cc=%d.%d;sms=%d;l2=%llu;bus=%d;clock=%d", chip->shown,
			 chip->major, chip->minor, chip->multiprocessors,
			 (unsigned long long)chip->l2_mib * FRAG_MIB, chip->bus_bits,
			 chip->clock_mhz * 1000);
	setenv("CUFRAG_NOGPU", text, 1);
	if (chip) {
		snprintf(text, sizeof(text), "%.17g,%.17g", chip->bytes_per_ns,
			 chip->tflops * 1000);
		setenv("CUFRAG_NOGPU_ROOF", text, 1);
	}
}

static void put_rank(const struct job *j, unsigned rank)
{
	frag_launch_put_number("RANK", rank);
	frag_launch_put_number("WORLD_SIZE", j->world);
	frag_launch_put_number("LOCAL_RANK", rank % j->gpus);
	frag_launch_put_number("LOCAL_WORLD_SIZE", FRAG_MIN(j->world, j->gpus));
	frag_launch_put_number("GROUP_RANK", rank / j->gpus);
	setenv("MASTER_ADDR", "127.0.0.1", 0);
	if (!getenv("MASTER_PORT")) /* one of its own: other jobs of this machine may listen at the usual one */
		frag_launch_put_number("MASTER_PORT", frag_launch_free_port() ?: 29500u);
}

void frag_pretend_environment(const struct frag_launch *l, const struct frag_inside_files *files,
			      unsigned asked, unsigned needed, const char *values)
{
	FRAG_AUTO_FREE char *programs = frag_path_join(files->folder, "bin");

	put_card(l, asked ? asked : FRAG_MAX(needed, 1u));
	if (programs)
		frag_launch_prepend("PATH", programs);
	setenv("CUFRAG_NOGPU_CACHE", files->cache, 1);
	setenv("CUFRAG_NOGPU_VALUES", values, 1);
	frag_launch_put_number("CUFRAG_NOGPU_SEED", l->seed);
	/* it is about the cards of this machine, unless pretended ones were counted */
	if (!asked)
		unsetenv("CUDA_VISIBLE_DEVICES");
	/* results that are computed beside the card come and go: in the heap, what is small and stays would pin them */
	setenv("MALLOC_MMAP_THRESHOLD_", "1048576", 0);
	/* watchers of NCCL have nobody to watch */
	setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 0);
	setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", 0);
}

void frag_pretend_python(const struct frag_inside_files *files)
{
	char *library = frag_path_join(files->folder, "libcufrag_start.so");

	frag_launch_prepend("PYTHONPATH", files->folder);
	if (library)
		frag_launch_preload(library);
	frag_host_free(library);
	setenv("CUFRAG_NOGPU_HOME", files->folder, 1);
}

static void put_read_files(const struct job *j)
{
	char list[sizeof(j->folder) + 16];
	FRAG_AUTO_FREE char *library = frag_path_join(j->files.folder, "libcufrag_files.so");

	snprintf(list, sizeof(list), "%s/read", j->folder);
	setenv("CUFRAG_READ_FILES", list, 1);
	if (library)
		frag_launch_preload(library);
}

static void put_all(const struct job *j)
{
	char calls[sizeof(j->folder) + 16];

	frag_pretend_python(&j->files);
	setenv("CUFRAG_RECORD", j->folder, 1);
	frag_launch_put_number("CUFRAG_RECORD_ENTRIES",
			       j->l->max_entries ? j->l->max_entries : ENTRIES_DEFAULT);
	if (j->l->frames)
		setenv("CUFRAG_RECORD_FRAMES", "1", 1);
	if (j->l->limit_bytes != UINT64_MAX)
		frag_launch_put_number("CUFRAG_RECORD_LIMIT", j->l->limit_bytes);
	frag_pretend_environment(j->l, &j->files, j->o->gpus, j->gpus, j->o->values);
	snprintf(calls, sizeof(calls), "%s/calls", j->folder);
	setenv("CUFRAG_NOGPU_CALLS", calls, 1);
	if (j->kept.stem)
		put_read_files(j);
}

/* ---- the run ---------------------------------------------------------------------------- */

struct rank_run {
	const struct job *j;
	char **program;
	const unsigned *rank;	 /* NULL: not one of several */
	const struct turn *turn; /* NULL: no turn of several */
	const char *scout;	 /* folder of its own; NULL: no scout */
};

static void prepare_rank(const void *ctx, unsigned i)
{
	const struct rank_run *run = ctx;

	put_rank(run->j, run->turn->ranks[i]);
	if (i < run->turn->known)
		setenv("CUFRAG_RECORD", run->turn->folder, 1);
}

static int open_log(const struct job *j, int flags)
{
	char path[sizeof(j->folder) + 16];

	snprintf(path, sizeof(path), "%s/scout.log", j->folder);
	return open(path, flags | O_CLOEXEC, 0600);
}

/* It leaves no recording, and what it says is only shown if it fails. */
static void prepare_scout(const struct job *j, const char *folder)
{
	char path[sizeof(j->folder) + 16];
	int fd = open_log(j, O_WRONLY | O_CREAT);

	setenv("CUFRAG_RECORD", folder, 1);
	frag_roles_path(path, sizeof(path), j->folder);
	setenv("CUFRAG_NOGPU_SCOUT", path, 1);
	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
	}
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
		setenv("CUFRAG_NOGPU_ROLES", path, 1);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	frag_launch_put_number("MASTER_PORT", frag_launch_free_port());
	over_path(path, sizeof(path), run->turn);
	frag_launch_become_ranks(run->program, run->turn->count, prepare_rank, run,
				 run->j->o->memory_bytes, path);
}

/* Where every rank is there, they talk (src/inside/nogpu/talk.h): the program starts all of them, or we do. */
static void prepare(const void *ctx)
{
	const struct rank_run *run = ctx;

	put_all(run->j);
	if (run->j->l->stdout_to_stderr)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	if (run->scout)
		prepare_scout(run->j, run->scout);
	if (run->rank) {
		put_rank(run->j, *run->rank);
		setenv("CUFRAG_NOGPU_RANK", "1", 1);
		return;
	}
	setenv("CUFRAG_NOGPU_TALK", run->turn ? run->turn->folder : run->j->folder, 1);
	if (run->turn)
		become_turn(run);
}

static int run_once(const struct job *j, char **program, const unsigned *rank, int *status,
		    struct frag_err *err)
{
	struct rank_run run = { j, program, rank, NULL, NULL };

	return frag_launch_run(program, prepare, &run, status, err);
}

/* What the scout said, for a job that it could not read. */
static void show_scout(const struct job *j)
{
	int fd = open_log(j, O_RDONLY);
	char text[4096];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
		if (write(STDERR_FILENO, text, (size_t)n) != n)
			break;
	if (fd >= 0)
		close(fd);
}

/* Which ranks are alike? Rank 0 runs alone until that is known. */
static int find_roles(struct job *j, char **program, struct frag_roles *roles, struct frag_err *err)
{
	static const unsigned first = 0;
	char folder[sizeof(j->folder)] = "";
	struct rank_run run = { j, program, &first, NULL, folder };
	struct rusage used;
	int rc, status = 0;

	FRAG_TRY(frag_launch_folder(folder, sizeof(folder), err));
	rc = frag_launch_run(program, prepare, &run, &status, err);
	frag_launch_folder_remove(folder);
	FRAG_TRY(rc);
	if (!getrusage(RUSAGE_CHILDREN, &used))
		j->scout_bytes = (uint64_t)used.ru_maxrss * 1024;
	FRAG_TRY(frag_roles_read(j->folder, roles, err));
	if (!roles->runs_count || status)
		show_scout(j);
	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted before the roles were known");
	if (!roles->runs_count || status)
		return frag_fail(err, FRAG_EINPUT,
				 "the roles of the ranks are not known: run alone, rank 0 ended "
				 "with "
				 "status %d before its first step",
				 status);
	return 0;
}

static bool is_in(const unsigned *list, size_t count, unsigned rank)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == rank)
			return true;
	return false;
}

/* The roles first, then the other ranks that are to run: of the roles alone those that check them. */
static unsigned order_ranks(const struct job *j, const struct frag_roles *roles, unsigned *order)
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

static int run_turn(const struct job *j, char **program, struct turn *t,
		    const struct frag_roles *roles, bool *over, int *status, struct frag_err *err)
{
	struct rank_run run = { j, program, NULL, t, NULL };
	char path[sizeof(t->folder) + 16];
	int rc, ended = 0;

	t->folder[0] = '\0';
	FRAG_TRY(frag_launch_folder(t->folder, sizeof(t->folder), err));
	rc = roles ? frag_roles_write(roles, t->folder, t->ranks, t->count, err) : 0;
	if (!rc)
		rc = frag_launch_run(program, prepare, &run, &ended, err);
	over_path(path, sizeof(path), t);
	*over = !access(path, F_OK);
	if (!*over && !*status)
		*status = ended;
	frag_launch_folder_remove(t->folder);
	return rc;
}

static int too_short(const struct job *j, size_t together, struct frag_err *err)
{
	return frag_fail(err, FRAG_EUSAGE,
			 "%zu ranks have to run at a time, and rank 0 alone took %.1f MiB of the "
			 "host; %s",
			 together, (double)j->scout_bytes / FRAG_MIB,
			 j->o->memory_bytes ? "raise --memory" : "name some ranks with --ranks");
}

/* Those of a job with the same groups, which were checked there. */
static int take_roles(const struct job *j, struct frag_roles *roles, struct frag_err *err)
{
	if (!frag_roles_know(roles, j->o->known_roles))
		return frag_fail(err, FRAG_EINPUT, "cannot read '%.200s'", j->o->known_roles);
	return frag_roles_write(roles, j->folder, roles->runs, roles->runs_count, err);
}

/* The ranks of the roles run in every turn, as they speak for those that do not; the others a few at a time, with all that are
 * in a chain of stages with them: as many as there are roles. */
static int run_turns(struct job *j, char **program, int *status, struct frag_err *err)
{
	FRAG_AUTO(frag_roles_release) struct frag_roles roles = { 0 };
	unsigned order[2 * RANKS_MAX], count, chain, at, fits = TOGETHER_MAX;
	char path[sizeof(j->folder) + 16];

	if (!j->roles_known)
		FRAG_TRY(find_roles(j, program, &roles, err));
	else
		FRAG_TRY(take_roles(j, &roles, err));
	if (!j->roles) { /* every rank is recorded, and none stands for others */
		frag_roles_path(path, sizeof(path), j->folder);
		unlink(path);
	}
	if (roles.count > TOGETHER_MAX || roles.runs_count > RANKS_MAX)
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

/* Is every rank of the job to run, and are they few enough to run at a time? */
static bool all_together(const struct job *j)
{
	return j->world > 1 && j->world <= TOGETHER_MAX && j->ranks_count == j->world;
}

/* True: the job makes other groups than that of which it took the roles, so it begins again. */
static int are_unlike(struct job *j, bool *unlike, struct frag_err *err)
{
	char path[sizeof(j->folder) + 16];

	snprintf(path, sizeof(path), "%s/unlike", j->folder);
	*unlike = !access(path, F_OK);
	if (!*unlike)
		return 0;
	frag_launch_folder_remove(j->folder);
	return frag_launch_folder(j->folder, sizeof(j->folder), err);
}

/* One rank of each role. Its roles may be known; a job that fails with them fails with its own. */
static int run_roles(struct job *j, char **program, int *status, struct frag_err *err)
{
	bool unlike = false;

	j->roles_known = j->o->known_roles && !j->o->memory_bytes && j->roles &&
			 !access(j->o->known_roles, R_OK);
	FRAG_TRY(run_turns(j, program, status, err));
	if (j->roles_known && !frag_launch_interrupted())
		FRAG_TRY(are_unlike(j, &unlike, err));
	if (!unlike)
		return 0;
	j->roles_known = false;
	*status = 0;
	return run_turns(j, program, status, err);
}

static int run_ranks(struct job *j, char **program, int *status, struct frag_err *err)
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

/* Once: a rank named twice runs once. */
static void add_rank(struct job *j, unsigned rank)
{
	if (!is_in(j->ranks, j->ranks_count, rank))
		j->ranks[j->ranks_count++] = rank;
}

/* "0,7", "0-3,8" or "roles". */
static int parse_ranks(struct job *j, struct frag_err *err)
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
		    j->ranks_count + (last - first) >= RANKS_MAX)
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

static int check_card(const struct frag_launch *l, struct frag_err *err)
{
	const struct frag_gpu *gpu = frag_pretend_gpu(l);

	if (gpu && !frag_gpu_chip_find(gpu->name))
		return frag_fail(err, FRAG_EUSAGE,
				 "'%s' does not run CUDA programs, so it cannot be pretended "
				 "(cufrag list gpus)",
				 gpu->name);
	return 0;
}

/* Names of calls that got an error, one a line, into one sentence. Returns how many. */
static unsigned note_calls(const struct job *j)
{
	char path[sizeof(j->folder) + 16], line[200], text[1000] = "";
	unsigned count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/calls", j->folder);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		size_t len = strlen(text);

		line[strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "_")] = '\0';
		if (!*line || strstr(text, line))
			continue;
		count++;
		if (len + strlen(line) + 3 < sizeof(text))
			snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "", line);
	}
	if (f)
		fclose(f);
	if (count)
		frag_launch_note(j->l, "%u CUDA %s missing from the pretended card, and failed: %s",
				 count, count == 1 ? "call is" : "calls are", text);
	if (strstr(text, "cuGetExportTable"))
		frag_launch_note(j->l, "a stripped library of the program links the CUDA runtime "
				       "statically; its CUDA calls fail (built with nvcc --cudart "
				       "shared, or not stripped, it works)");
	return count;
}

/* What was said above, and a run that did not come to its end, belong to one run only. */
static void keep(struct job *j, int status)
{
	const char *const own[] = { j->folder, j->files.root, NULL };
	char list[sizeof(j->folder) + 16];

	snprintf(list, sizeof(list), "%s/read", j->folder);
	if (!frag_launch_interrupted())
		frag_kept_read(&j->kept, list, status, own);
}

/* A folder in which nothing is: why? */
static int explain_nothing(const struct job *j, int status, struct frag_err *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted before anything was recorded");
	if (j->o->gpus && visible)
		frag_launch_note(j->l,
				 "of %u pretended cards, CUDA_VISIBLE_DEVICES shows the program "
				 "only '%.200s'",
				 j->o->gpus, visible);
	if (status)
		frag_err_prefix(err, "the program ended with status %d", status);
	return FRAG_EINPUT;
}

static int run_ranks_or_one(struct job *j, char **program, int *status, struct frag_err *err)
{
	if (j->o->memory_bytes && !j->ranks_count)
		return frag_fail(err, FRAG_EUSAGE,
				 "--memory needs --ranks: cufrag then starts the ranks, and they "
				 "take "
				 "turns");
	return j->ranks_count ? run_ranks(j, program, status, err)
			      : run_once(j, program, NULL, status, err);
}

static int run_all(struct job *j, char **program, struct frag_trace **out, int *status,
		   struct frag_err *err)
{
	unsigned missing;
	int rc;

	FRAG_TRY(check_card(j->l, err));
	FRAG_TRY(parse_ranks(j, err));
	FRAG_TRY(frag_inside_files_open(&j->files, err));
	if (j->o->reuse)
		frag_kept_init(&j->kept, j->l, j->o, program, &j->files);
	if (!j->o->trial && frag_kept_get(&j->kept, j->l, out, status))
		return 0;
	FRAG_TRY(frag_launch_folder(j->folder, sizeof(j->folder), err));
	FRAG_TRY(run_ranks_or_one(j, program, status, err));
	missing = note_calls(j);
	rc = frag_pretend_collect(j->l, j->folder, *status, out, err);
	if (!rc && !*status && j->roles && !j->roles_known && j->o->known_roles)
		frag_roles_pass_on(j->folder, (*out)->estimate, j->o->known_roles);
	if (!rc && !missing)
		keep(j, *status);
	return rc == FRAG_EINPUT ? explain_nothing(j, *status, err) : rc;
}

/* The second run, with other values; an interruption leaves the first. */
static int run_again(const struct job *j, char **program, struct frag_trace **out,
		     struct frag_err *err)
{
	int rc = frag_pretend_again(j->l, j->o, program, *out, err);

	if (!rc || frag_launch_interrupted())
		return 0;
	frag_trace_destroy(*out);
	*out = NULL;
	return rc;
}

int frag_pretend_run_into(const struct frag_launch *l, const struct frag_pretend *o, char **program,
			  const char *folder, int *status, struct frag_err *err)
{
	struct job *j;
	int rc;

	FRAG_TRY_CALLOC(j, 1, "recording", err);
	j->l = l;
	j->o = o;
	*status = 0;
	snprintf(j->folder, sizeof(j->folder), "%s", folder);
	rc = check_card(l, err)
		     ?: parse_ranks(j, err)
				?: frag_inside_files_open(&j->files, err)
					   ?: run_ranks_or_one(j, program, status, err);
	frag_inside_files_release(&j->files);
	frag_host_free(j);
	return rc;
}

int frag_pretend_record(const struct frag_launch *l, const struct frag_pretend *o, char **program,
			struct frag_trace **out, int *status, struct frag_err *err)
{
	struct job *j;
	int rc;

	FRAG_TRY_CALLOC(j, 1, "recording", err);
	j->l = l;
	j->o = o;
	*status = 0;
	rc = run_all(j, program, out, status, err);
	frag_launch_folder_remove(j->folder);
	frag_inside_files_release(&j->files);
	if (!rc && o->again && *j->folder && !frag_launch_interrupted())
		rc = run_again(j, program, out, err);
	if (!rc && !o->trial && !frag_launch_interrupted())
		frag_kept_put(&j->kept, *out);
	frag_kept_release(&j->kept);
	frag_host_free(j);
	return rc;
}
