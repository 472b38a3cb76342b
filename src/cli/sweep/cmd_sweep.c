/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag sweep: many traces under many policies, on every core, rank or node there is. */
#include <stdlib.h>
#include <string.h>

#include "sweep.h"

/* ---- lists ------------------------------------------------------------------------- */

static int add_text(struct frag_sweep_texts *t, const char *from, size_t n, struct frag_err *err)
{
	char *copy = frag_host_alloc(n + 1);
	char **list = frag_host_realloc(t->text, t->count + 1, sizeof(*list));

	if (list)
		t->text = list;
	if (!copy || !list) {
		frag_host_free(copy);
		return frag_fail_nomem(err, "list");
	}
	memcpy(copy, from, n);
	copy[n] = '\0';
	t->text[t->count++] = copy;
	return 0;
}

static int set_list(void *field, const char *text, const char *separator, struct frag_err *err)
{
	while (*text) {
		size_t n = strcspn(text, separator);

		if (!n)
			return frag_fail(err, FRAG_EUSAGE, "empty entry in the list '%.100s'",
					 text);
		FRAG_TRY(add_text(field, text, n, err));
		text += n + (text[n] != '\0');
	}
	return 0;
}

static int set_commas(void *field, const char *text, struct frag_err *err)
{
	return set_list(field, text, ",", err);
}

static int set_semicolons(void *field, const char *text, struct frag_err *err)
{
	return set_list(field, text, ";", err);
}

static void texts_release(struct frag_sweep_texts *t)
{
	for (size_t i = 0; i < t->count; i++)
		frag_host_free(t->text[i]);
	frag_host_free(t->text);
}

/* ---- shards --------------------------------------------------------------------------- */

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

/* "3/16": the fourth of sixteen; "/16": which one, an array job says. */
static int set_shard(void *field, const char *text, struct frag_err *err)
{
	struct frag_sweep_shard *s = field;
	char *slash, *end;
	unsigned long i = strtoul(text, &slash, 10), n;

	s->auto_i = slash == text;
	n = *slash == '/' ? strtoul(slash + 1, &end, 10) : 0;
	if (!n || *end || n > 10000000 || (!s->auto_i && i >= n))
		return frag_fail(err, FRAG_EUSAGE,
				 "shard '%.40s' is no i/n with 0 <= i < n; /n takes i from the "
				 "environment of an array job",
				 text);
	s->i = (unsigned)i;
	s->n = (unsigned)n;
	return 0;
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

static int find_shard(struct frag_sweep_shard *s, struct frag_err *err)
{
	unsigned i = 0, n = 0;
	bool array = slurm_index(&i, &n);

	if (s->n && !s->auto_i)
		return 0;
	if (!s->n && !(array && n))
		return 0;
	if (!array && !env_number("JOB_COMPLETION_INDEX", &i))
		return frag_fail(err, FRAG_EUSAGE,
				 "--shard /%u needs SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX in "
				 "the "
				 "environment",
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

/* ---- the command --------------------------------------------------------------------- */

struct options {
	struct frag_sweep sweep;
	char *output; /* of a shard */
};

#define AT(field) FRAG_ARG_AT(struct options, sweep.field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "output", 'o', AT(output), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "the results, SQLite (needed; a shard puts its number into the name)" },
	{ FRAG_ARG_TEXT, "list", AT(list), .value = "FILE",
	  .help = "a file with a trace, folder or pattern in each line; - = standard input" },
	{ FRAG_ARG_OWN, "policies", AT(policies), .set = frag_policy_texts_set_list,
	  .value = "POLICIES",
	  .help = "policies separated by ';' (default: recorded;caching;expandable;vmm)" },
	{ FRAG_ARG_OWN, "settings", AT(settings), .set = set_semicolons, .value = "LIST",
	  .help = "also pytorch with each of these texts of PYTORCH_CUDA_ALLOC_CONF, separated by "
		  "';'" },
	{ FRAG_ARG_OWN, "limits", AT(limits), .set = set_commas, .value = "LIST",
	  .help = "each under these limits: sizes, fractions of the card, none" },
	{ FRAG_ARG_OWN, "gpus", AT(gpus), .set = set_commas, .value = "LIST",
	  .help = "each on these cards (default: the one of --gpu or --capacity)" },
	{ FRAG_ARG_FLAG, "fit", AT(fit),
	  .help = "also the smallest card that each result needs, by bisection (about 60 times the "
		  "work)" },
	{ FRAG_ARG_FLAG, "resume", AT(resume), .help = "go on where a sweep into this file ended" },
	{ FRAG_ARG_FLAG, "merge", AT(merge),
	  .help = "the operands are results of shards: make one file of them" },
	{ FRAG_ARG_OWN, "shard", AT(shard), .set = set_shard, .value = "I/N",
	  .help = "only every N-th trace, from the I-th on; /N: I from SLURM_ARRAY_TASK_ID or "
		  "JOB_COMPLETION_INDEX; an array job of Slurm is recognised by itself" },
	{ FRAG_ARG_BYTES, "memory", AT(memory_bytes), .value = "SIZE", .min = 64ull << 20,
	  .max = 1ull << 50,
	  .help = "host memory of each worker (default: its share of the machine)" },
	{ FRAG_ARG_TEXT, "costs", AT(costs), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "CSV of the time that each trace took" },
	{ 0 },
};

static void release(void *values)
{
	struct options *o = values;

	frag_policy_texts_release(&o->sweep.policies);
	texts_release(&o->sweep.settings);
	texts_release(&o->sweep.limits);
	texts_release(&o->sweep.gpus);
	frag_sweep_files_release(&o->sweep.files);
	FRAG_FREE(o->sweep.cards, o->output);
}

static int add_settings(struct frag_sweep *s, struct frag_err *err)
{
	for (size_t i = 0; i < s->settings.count; i++) {
		char *text = frag_host_alloc(strlen(s->settings.text[i]) + 16);
		int rc;

		FRAG_CHECK_ALLOC(text, "settings", err);
		sprintf(text, "pytorch:%s", s->settings.text[i]);
		rc = frag_policy_texts_add(&s->policies, text, err);
		frag_host_free(text);
		FRAG_TRY(rc);
	}
	return 0;
}

static int find_cards(struct frag_sweep *s, struct frag_err *err)
{
	FRAG_TRY_CALLOC(s->cards, s->gpus.count + 1, "cards", err);
	for (size_t i = 0; i < s->gpus.count; i++) {
		s->cards[i] = frag_gpu_find(s->gpus.text[i]);
		if (!s->cards[i])
			return frag_fail(err, FRAG_EUSAGE,
					 "unknown card '%.60s' (cufrag list gpus)",
					 s->gpus.text[i]);
	}
	s->cards_count = s->gpus.count;
	return 0;
}

static int check_limits(const struct frag_sweep *s, struct frag_err *err)
{
	struct frag_limit unused;

	for (size_t i = 0; i < s->limits.count; i++)
		if (strcmp(s->limits.text[i], "none") != 0)
			FRAG_TRY(frag_limit_parse(s->limits.text[i], &unused, err));
	return 0;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	static const char *const usual = "recorded;caching;expandable;vmm";
	struct options *o = values;
	struct frag_sweep *s = &o->sweep;
	uint32_t flags;

	s->cli = cli;
	if (!s->output || !strcmp(s->output, "-"))
		return frag_fail(err, FRAG_EUSAGE, "no results file given: -o FILE");
	if (!s->policies.count && !s->settings.count)
		FRAG_TRY(frag_policy_texts_list(&s->policies, usual, err));
	FRAG_TRY(add_settings(s, err));
	FRAG_TRY(frag_policy_texts_check(&s->policies, &flags, err));
	FRAG_TRY(check_limits(s, err));
	FRAG_TRY(find_cards(s, err));
	if (!s->merge)
		FRAG_TRY(find_shard(&s->shard, err));
	if (s->shard.n) {
		o->output = shard_path(s->output, &s->shard);
		FRAG_CHECK_ALLOC(o->output, "results", err);
		s->output = o->output;
	}
	return frag_sweep_run(s, err);
}

const struct frag_cmd frag_cmd_sweep = {
	.name = "sweep",
	.summary = "many traces under many policies into one file of results",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 6,
	.operands = "[TRACE...]",
	.operands_min = 0,
	.operands_max = 1u << 20,
	.about =
		"Replays traces (files, folders, patterns) under policies, settings, limits and "
		"cards, "
		"and writes all results into one SQLite file, whose tables docs/fleet.md "
		"describes; "
		"`cufrag list metrics` names the columns. Every trace is a process's own: one that "
		"is "
		"broken or too large fails alone. It runs on all cores; under mpirun on all ranks; "
		"in "
		"array jobs (Slurm, Kubernetes) as shards, put together by --merge. Results arrive "
		"as "
		"they come; a sweep that was ended goes on with --resume. The same traces give the "
		"same bytes, on any number of workers.",
	.examples = "  cufrag sweep recordings/ -o results.sqlite --csv results.csv\n"
		    "  mpirun -n 64 cufrag sweep --list traces.txt -o results.sqlite\n"
		    "  cufrag sweep recordings/ --shard 3/16 -o results.sqlite\n"
		    "  cufrag sweep --merge results.*-of-16.sqlite -o results.sqlite\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_CSV | FRAG_CLI_SEED | FRAG_CLI_THREADS,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.run = run,
	.release = release,
};
