/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program on the pretended card. Everything it needs goes by environment: Python
 * finds sitecustomize.py first and does the rest (src/inside/nogpu/python). Recordings come back
 * in a folder that is removed at the end.
 */
#include "record.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MAX 1024u
#define ENTRIES_DEFAULT 10000000u /* of commands that do not ask, as that of record */

struct job {
	const struct frag_cli *cli;
	const struct frag_record_options *o;
	struct frag_nogpu_home home;
	char folder[4096]; /* "" = none yet */
	bool stdout_to_stderr;
	unsigned ranks[RANKS_MAX];
	unsigned ranks_count, world, gpus;
};

/* ---- the environment of the program --------------------------------------------------- */

static void put_number(const char *name, unsigned long long n)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", n);
	setenv(name, text, 1);
}

static void put_card(const struct frag_cli *cli, unsigned gpus)
{
	const struct frag_sim_config *card = &cli->card;
	const struct frag_gpu *gpu = frag_gpu_find(cli->gpu_ ? cli->gpu_ : "h200");
	const struct frag_gpu_chip *chip = gpu ? frag_gpu_chip_find(gpu->name) : NULL;
	char text[512];
	int n;

	n = snprintf(text, sizeof(text), "total=%llu;context=%llu;count=%u",
		     (unsigned long long)card->total_bytes, (unsigned long long)card->context_bytes,
		     gpus);
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
	put_number("RANK", rank);
	put_number("WORLD_SIZE", j->world);
	put_number("LOCAL_RANK", rank % j->gpus);
	put_number("LOCAL_WORLD_SIZE", FRAG_MIN(j->world, j->gpus));
	put_number("GROUP_RANK", rank / j->gpus);
	setenv("MASTER_ADDR", "127.0.0.1", 0);
	setenv("MASTER_PORT", "29500", 0);
	setenv("CUFRAG_NOGPU_RANK", "1", 1);
}

void frag_nogpu_environment(const struct frag_cli *cli, const struct frag_nogpu_home *home,
			    unsigned asked, unsigned needed, const char *values)
{
	put_card(cli, asked ? asked : FRAG_MAX(needed, 1u));
	setenv("CUFRAG_NOGPU_CACHE", home->cache, 1);
	setenv("CUFRAG_NOGPU_VALUES", values, 1);
	put_number("CUFRAG_NOGPU_SEED", cli->seed);
	/* it is about the cards of this machine, unless pretended ones were counted */
	if (!asked)
		unsetenv("CUDA_VISIBLE_DEVICES");
	/* watchers of NCCL have nobody to watch */
	setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 0);
	setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", 0);
}

void frag_nogpu_python(const struct frag_nogpu_home *home)
{
	char *library = frag_path_join(home->home, "libcufrag_start.so");

	frag_record_put_front("PYTHONPATH", home->home);
	if (library)
		frag_record_preload(library);
	frag_host_free(library);
	setenv("CUFRAG_NOGPU_HOME", home->home, 1);
}

static void put_all(const struct job *j)
{
	char calls[sizeof(j->folder) + 16];
	uint64_t limit = frag_cli_limit(j->cli, j->cli->card.total_bytes);

	frag_nogpu_python(&j->home);
	setenv("CUFRAG_RECORD", j->folder, 1);
	put_number("CUFRAG_RECORD_ENTRIES",
		   j->o->max_entries ? j->o->max_entries : ENTRIES_DEFAULT);
	if (j->o->frames)
		setenv("CUFRAG_RECORD_FRAMES", "1", 1);
	if (limit != UINT64_MAX)
		put_number("CUFRAG_RECORD_LIMIT", limit);
	frag_nogpu_environment(j->cli, &j->home, j->o->gpus, j->gpus, j->o->values);
	snprintf(calls, sizeof(calls), "%s/calls", j->folder);
	setenv("CUFRAG_NOGPU_CALLS", calls, 1);
}

/* ---- the run ---------------------------------------------------------------------------- */

struct rank_run {
	const struct job *j;
	const unsigned *rank; /* NULL: not one of several */
};

static void prepare(const void *ctx)
{
	const struct rank_run *run = ctx;

	put_all(run->j);
	if (run->rank)
		put_rank(run->j, *run->rank);
	if (run->j->stdout_to_stderr)
		dup2(STDERR_FILENO, STDOUT_FILENO);
}

static int run_once(const struct job *j, char **program, const unsigned *rank, int *status,
		    struct frag_err *err)
{
	struct rank_run run = { j, rank };

	return frag_record_launch(program, prepare, &run, status, err);
}

/* "0,7" or "0-3,8". */
static int parse_ranks(struct job *j, struct frag_err *err)
{
	const char *at = j->o->ranks;
	unsigned most = 0;

	while (at && *at) {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (end != at && *end == '-')
			last = strtoul(at = end + 1, &end, 10);
		if (end == at || (*end && *end != ',') || last < first || last >= 1000000 ||
		    j->ranks_count + (last - first) >= RANKS_MAX)
			return frag_fail(err, FRAG_EUSAGE,
					 "'%.40s' is no list of ranks; give one as 0,7 or 0-3",
					 j->o->ranks);
		for (unsigned long r = first; r <= last; r++)
			j->ranks[j->ranks_count++] = (unsigned)r;
		most = FRAG_MAX(most, (unsigned)last);
		at = *end ? end + 1 : end;
	}
	j->world = j->o->world ? j->o->world : j->ranks_count ? most + 1 : 0;
	if (j->o->world && !j->ranks_count)
		j->ranks[j->ranks_count++] = 0;
	if (j->ranks_count && most >= j->world)
		return frag_fail(err, FRAG_EUSAGE, "rank %u of a job of %u ranks: the last is %u",
				 most, j->world, j->world - 1);
	j->gpus = j->o->gpus ? j->o->gpus : FRAG_MIN(j->world, 8u);
	return 0;
}

static int check_card(const struct frag_cli *cli, struct frag_err *err)
{
	const struct frag_gpu *gpu = frag_gpu_find(cli->gpu_ ? cli->gpu_ : "h200");

	if (gpu && !frag_gpu_chip_find(gpu->name))
		return frag_fail(err, FRAG_EUSAGE,
				 "'%s' is no card for CUDA programs and cannot be pretended "
				 "(cufrag "
				 "list gpus)",
				 gpu->name);
	return 0;
}

/* Names of calls that got an error, one a line, into one sentence. */
static void note_calls(const struct job *j)
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
		frag_cli_note(j->cli,
			      "%u CUDA %s unknown to the pretended card and got an error: %s",
			      count, count == 1 ? "call was" : "calls were", text);
	if (strstr(text, "cuGetExportTable"))
		frag_cli_note(j->cli,
			      "a library of the program has the CUDA runtime linked inside, and no "
			      "table of symbols; what it asks of the card fails (its makers build "
			      "it "
			      "with nvcc --cudart shared, or do not strip it)");
}

int frag_nogpu_record(const struct frag_cli *cli, const struct frag_record_options *o,
		      char **program, bool stdout_to_stderr, struct frag_trace **out, int *status,
		      struct frag_err *err)
{
	struct job *j;
	int rc;

	FRAG_TRY_CALLOC(j, 1, "recording", err);
	j->cli = cli;
	j->o = o;
	j->stdout_to_stderr = stdout_to_stderr;
	*status = 0;
	rc = check_card(cli, err) ?: parse_ranks(j, err) ?: frag_nogpu_home_open(&j->home, err);
	if (!rc)
		rc = frag_record_folder(j->folder, sizeof(j->folder), err);
	if (!rc && !j->ranks_count)
		rc = run_once(j, program, NULL, status, err);
	for (unsigned i = 0; !rc && i < j->ranks_count; i++)
		rc = run_once(j, program, &j->ranks[i], status, err);
	if (!rc) {
		note_calls(j);
		rc = frag_record_collect(j->folder, cli, out, err);
		if (rc == FRAG_EINPUT && *status)
			frag_err_prefix(err, "the program ended with status %d", *status);
		if (rc == FRAG_EINPUT && frag_record_ended())
			rc = frag_fail(err, FRAG_EINTR, "interrupted before anything was recorded");
		if (rc == FRAG_EINPUT && o->gpus && getenv("CUDA_VISIBLE_DEVICES"))
			frag_cli_note(cli,
				      "of %u pretended cards the program sees those of "
				      "CUDA_VISIBLE_DEVICES, '%.200s'",
				      o->gpus, getenv("CUDA_VISIBLE_DEVICES"));
	}
	frag_record_folder_remove(j->folder);
	frag_nogpu_home_release(&j->home);
	frag_host_free(j);
	if (!rc && o->again && !frag_record_ended()) {
		rc = frag_nogpu_record_again(cli, o, program, *out, err);
		if (frag_record_ended()) {
			rc = 0; /* the first run is whole */
		} else if (rc) {
			frag_trace_destroy(*out);
			*out = NULL;
		}
	}
	return rc;
}
