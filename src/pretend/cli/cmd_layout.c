/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag layout: how many cards, which layout, which card: the program itself, recorded with each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/show_answer.h"
#include "pretend/start/held.h"
#include "pretend/layout/layouts.h"
#include "pretend/layout/preset.h"
#include "lib/grow.h"
#include "plan/fit/fit_cards.h"
#include "plan/kvcache/kvcache.h"
#include "fleet/sweep.h"

#define VARY_MAX FRAG_AXES_MAX

struct options {
	struct frag_layouts all;
	const char *gpus, *world, *rising, *falling, *preset, *price;
	const char *vary[VARY_MAX];
	size_t vary_count;
	char degrees[3][32]; /* of a serving command: "pp=2" */
	bool fresh;
	const char *store;
	struct frag_sweep_shard shard;
};

static int set_vary(void *whole, const char *text, struct frag_err *err)
{
	struct options *o = whole;

	if (o->vary_count == VARY_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u names vary", VARY_MAX);
	o->vary[o->vary_count++] = text;
	return 0;
}

static int set_setting(void *whole, const char *text, struct frag_err *err)
{
	return frag_config_add(((struct options *)whole)->all.settings, text, err);
}

static int set_where(void *whole, const char *text, struct frag_err *err)
{
	struct options *o = whole;

	if (o->all.where_count == FRAG_LAYOUT_WHERE)
		return frag_fail(err, FRAG_EUSAGE, "more than %u conditions", FRAG_LAYOUT_WHERE);
	o->all.where[o->all.where_count++] = text;
	return 0;
}

static int set_card(struct frag_layouts *x, const struct frag_catalog *catalog, const char *name,
		    struct frag_err *err)
{
	const struct frag_gpu *card = NULL;

	for (size_t g = 0; g < catalog->count; g++)
		if (catalog->path && !strcmp(catalog->cards[g]->name, name))
			card = catalog->cards[g];
	card = card ? card : frag_gpu_find(name);
	if (!card)
		return frag_fail(err, FRAG_EUSAGE, "unknown card '%.60s' (cufrag list gpus)", name);
	for (size_t c = 0; c < x->cards_count; c++)
		if (x->cards[c] == card)
			return 0;
	if (x->cards_count == FRAG_LAYOUT_CARDS)
		return frag_fail(err, FRAG_EUSAGE, "more than %u cards", FRAG_LAYOUT_CARDS);
	x->cards[x->cards_count++] = card;
	return 0;
}

/* The next entry of a list; NULL: the end. entry[80]. */
static const char *next_entry(const char *text, char *entry)
{
	size_t n = strcspn(text, ",");

	if (!*text)
		return NULL;
	snprintf(entry, 80, "%.*s", (int)FRAG_MIN(n, 79u), text);
	return text + n + (text[n] == ',');
}

static int set_cards(struct frag_layouts *x, const struct frag_catalog *catalog, const char *list,
		     struct frag_err *err)
{
	char name[80];

	while ((list = next_entry(list, name)))
		FRAG_TRY(set_card(x, catalog, name, err));
	return 0;
}

/* "h100=2.5,h200=3" */
static int set_prices(struct frag_layouts *x, const char *list, struct frag_err *err)
{
	char entry[80], *equals, *end;

	while ((list = next_entry(list, entry))) {
		struct frag_layout_price *p = &x->prices[x->prices_count];

		equals = strchr(entry, '=');
		if (equals && x->prices_count < FRAG_LAYOUT_CARDS) {
			*equals = '\0';
			p->per_hour = strtod(equals + 1, &end);
			snprintf(p->card, sizeof(p->card), "%.39s", entry);
		}
		if (!equals || x->prices_count == FRAG_LAYOUT_CARDS || end == equals + 1 || *end ||
		    !(p->per_hour >= 0) || isinf(p->per_hour))
			return frag_fail(err, FRAG_EUSAGE,
					 "invalid price '%.60s': expected CARD=PRICE, as h100=2.5",
					 entry);
		x->prices_count++;
	}
	return 0;
}

static int set_axes(struct options *o, struct frag_axes *axes, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	o->all.world = SIZE_MAX;
	if (o->world) {
		frag_text_addf(&t, "{world}=%s", o->world);
		FRAG_TRY(frag_text_check(&t, err));
		FRAG_TRY(frag_axes_add(axes, t.s, err));
		axes->list[0].implied = true;
		o->all.world = 0;
	}
	for (size_t i = 0; i < o->vary_count; i++)
		FRAG_TRY(frag_axes_add(axes, o->vary[i], err));
	if (!axes->count)
		return frag_fail(err, FRAG_EUSAGE,
				 "nothing varies: give --vary '{NAME}=VALUES', or --world");
	if (o->rising)
		FRAG_TRY(frag_axes_set_order(axes, o->rising, FRAG_AXIS_RISING, err));
	if (o->falling)
		FRAG_TRY(frag_axes_set_order(axes, o->falling, FRAG_AXIS_FALLING, err));
	frag_axes_guess_order(axes);
	return 0;
}

/* A serving command as it is: its preset, and tensor parallelism as far as nothing else varies. */
static int set_serve(struct frag_cli *cli, struct options *o, struct frag_err *err)
{
	static const char *const engines[] = { "vllm", "sglang" };

	if (!o->all.serve)
		return 0;
	o->all.pretend.no_gpu = true;
	if (!o->all.requests)
		return frag_fail(err, FRAG_EUSAGE, "--serve needs --requests and --tokens");
	for (size_t e = 0; !o->preset && cli->program && e < FRAG_ARRAY_LEN(engines); e++)
		for (char **w = cli->program; *w && !o->preset; w++)
			o->preset = strstr(*w, engines[e]) ? engines[e] : NULL;
	if (!o->vary_count && !o->world) {
		if (!o->preset)
			return frag_fail(err, FRAG_EUSAGE,
					 "the command does not name a known serving engine: give "
					 "--preset or --vary");
		o->vary[o->vary_count++] = "tp=1,2,4,8";
		o->falling = o->falling ? o->falling : "tp";
	}
	return 0;
}

static bool varies(const struct options *o, const char *name)
{
	for (size_t i = 0; i < o->vary_count; i++) {
		const char *text = o->vary[i] + (o->vary[i][0] == '{');

		if (!strncmp(text, name, strlen(name)) && strspn(text + strlen(name), "}=") > 0)
			return true;
	}
	return false;
}

/* The degrees of a serving command that do not vary decide how many cards it takes, too. */
static int set_degrees(struct frag_cli *cli, struct options *o, struct frag_err *err)
{
	static const char *const names[FRAG_ARRAY_LEN(o->degrees)] = { "tp", "pp", "dp" };

	for (size_t k = 0; k < FRAG_ARRAY_LEN(names) && o->all.requests && !o->world; k++) {
		const char *value = o->preset && cli->program && !varies(o, names[k])
					    ? frag_preset_value(o->preset, names[k], cli->program)
					    : NULL;

		if (!value || strspn(value, "0123456789") != strlen(value))
			continue;
		snprintf(o->degrees[k], sizeof(o->degrees[k]), "%s=%.20s", names[k], value);
		FRAG_TRY(set_vary(o, o->degrees[k], err));
	}
	return 0;
}

static void tell(void *cli, const char *text)
{
	frag_cli_note(cli, "%s", text);
}

/* Policies are those of `fit`, jobs a processor each, host memory a share of the machine each. */
static int set_rest(struct frag_cli *cli, struct options *o, struct frag_err *err)
{
	struct frag_layouts *x = &o->all;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	FRAG_TRY(frag_fit_policies(&x->policies, err));
	if (!x->jobs)
		x->jobs =
			processors > 0 ? (unsigned)FRAG_MIN(processors, (long)FRAG_LAYOUT_JOBS) : 1;
	x->pretend.no_gpu = true;
	x->exact |= x->requests != 0;
	x->pretend.reuse = !o->fresh && !x->requests; /* what it prints counts */
	if (x->pretend.memory_bytes)
		x->pretend.memory_bytes = FRAG_MAX(x->pretend.memory_bytes / x->jobs, FRAG_MIB);
	if (!x->requests) /* the engine's own option sets its share of the card */
		x->headroom = cli->headroom;
	x->seed = cli->target.seed;
	x->tell = tell;
	x->ctx = cli;
	return 0;
}

/* ---- array jobs, and results for fleet --------------------------------------------------- */

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

/* The job that cufrag runs in is not the job that is planned: programs read their rank from these. */
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

static int find_shard(struct options *o, struct frag_err *err)
{
	struct frag_layouts *x = &o->all;

	find_mpi_rank(&o->shard);
	if (o->shard.n)
		FRAG_TRY(frag_sweep_find_index(&o->shard, err));
	x->shard_i = o->shard.i;
	x->shard_n = o->shard.n;
	if (x->shard_n)
		forget_array_job();
	if (x->shard_n && (!x->keep || o->store))
		return frag_fail(err, FRAG_EUSAGE,
				 "shards of an array job need --keep DIR, and no --store: when all "
				 "are done, the same command with --keep DIR --resume --store FILE "
				 "and without --shard");
	if (x->resume && !x->keep)
		return frag_fail(err, FRAG_EUSAGE, "--resume needs --keep DIR");
	if (o->store && !x->keep)
		return frag_fail(err, FRAG_EUSAGE,
				 "--store needs --keep DIR: its results are of these recordings");
	return 0;
}

/* What `cufrag sweep DIR -o FILE` writes, on the cards of the plan. */
static int store(struct frag_cli *cli, struct options *o, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_sweep_release) struct frag_sweep s = { 0 };
	const struct frag_layouts *x = &o->all;
	struct frag_rows failures = { 0 };
	char *operands[] = { (char *)(uintptr_t)x->keep, NULL };

	s.target = cli->target;
	s.threads = x->jobs;
	s.operands = operands;
	s.operands_count = 1;
	s.output = o->store;
	FRAG_TRY(frag_policy_texts_default(&s.policies, FRAG_SWEEP_POLICIES, err));
	for (size_t c = 0; c < x->cards_count; c++) {
		FRAG_TRY(FRAG_GROW(s.cards, s.cards_count, s.cards_cap, "cards", err));
		s.cards[s.cards_count++] = x->cards[c];
	}
	FRAG_TRY(frag_sweep_run(&s, &a, &failures, err));
	frag_cli_note(cli, "wrote %s, for cufrag fleet", o->store);
	return 0;
}

static int plan(struct frag_cli *cli, struct options *o, const struct frag_catalog *catalog,
		struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_words_release) char **words = NULL;
	struct frag_layouts *x = &o->all;
	uint64_t enough = 0;

	FRAG_TRY(set_serve(cli, o, err));
	FRAG_TRY(set_degrees(cli, o, err));
	if (!cli->program || !x->pretend.no_gpu)
		return frag_fail(err, FRAG_EUSAGE,
				 "layouts are recorded without a GPU: give --no-gpu and -- "
				 "PROGRAM");
	if (!x->requests != !x->request_tokens)
		return frag_fail(err, FRAG_EUSAGE, "--requests and --tokens go together");
	FRAG_TRY(set_axes(o, &x->axes, err));
	FRAG_TRY(frag_preset_apply(o->preset, &x->axes, cli->program, x->settings, &words, err));
	x->words = words;
	FRAG_TRY(set_cards(x, catalog, o->gpus ? o->gpus : "h100,h200", err));
	FRAG_TRY(set_prices(x, o->price ? o->price : "", err));
	FRAG_TRY(set_rest(cli, o, err));
	FRAG_TRY(find_shard(o, err));
	FRAG_TRY(frag_layouts_open(x, err));
	FRAG_TRY(frag_layouts_run(x, err));
	FRAG_TRY(frag_layouts_answer(x, &a, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	if (x->interrupted) {
		frag_cli_note(cli, "interrupted; the same command goes on from the recordings that "
				   "are kept");
		return frag_code_exit(FRAG_EINTR);
	}
	if (o->store)
		FRAG_TRY(store(cli, o, err));
	for (size_t c = 0; c < x->cards_count; c++)
		enough |= frag_layout_fewest(x, c);
	return enough ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_FLAG, "no-gpu", AT(all.pretend.no_gpu), .rare = true,
	  .help = "record on pretended cards (needed)" },
	{ FRAG_ARG_TEXT, "gpu", AT(gpus), .value = "LIST",
	  .help = "cards to plan for, separated by commas (default: h100,h200)" },
	{ FRAG_ARG_TEXT, "world", AT(world), .value = "NUMBERS",
	  .help = "numbers of ranks, one on each card: 8, 1..8, 1..64*2 or a list; {world} in the "
		  "command. cufrag starts the ranks itself, in place of torchrun, accelerate "
		  "launch and deepspeed" },
	{ FRAG_ARG_OWN, "vary", .set = set_vary, .value = "{NAME}=VALUES",
	  .help = "values in place of {NAME} in the command: a list, 1..8, or 1..64*2 (powers); "
		  "{{NAME}} in the command stands for {NAME} itself" },
	{ FRAG_ARG_OWN, "set", .set = set_setting, .value = "FILE:KEY=VALUE", .rare = true,
	  .help = "a value in a file that the command names (.json, .yaml), as "
		  "ds.json:zero_optimization.stage={zero}; the program reads a copy; may be "
		  "repeated" },
	{ FRAG_ARG_OWN, "where", .set = set_where, .value = "CONDITION", .rare = true,
	  .help = "only layouts that meet it, as 'tp*pp <= world && ac != \"full\"': + - * / %, "
		  "comparisons, && || !; may be repeated" },
	{ FRAG_ARG_TEXT, "rising", AT(rising), .value = "NAMES", .rare = true,
	  .help = "names whose values need more memory the later they are listed; found by "
		  "bisection (default: mb, mbs, bs, batch, micro_batch, seq, seq_len and the like, "
		  "where their values ascend)" },
	{ FRAG_ARG_TEXT, "falling", AT(falling), .value = "NAMES", .rare = true,
	  .help = "names whose values need less memory the later they are listed (default: ac and "
		  "recompute, as none, selective, full)" },
	{ FRAG_ARG_TEXT, "preset", AT(preset), .value = "LAUNCHER",
	  .help = "a launcher that names its options: --vary tp=1,2 sets them without braces "
		  "(megatron, torchtitan, deepspeed, huggingface, vllm, sglang)" },
	{ FRAG_ARG_TEXT, "ranks", AT(all.pretend.ranks), .value = "LIST", .def = "roles",
	  .help = "which ranks of a job run, as 0,7; roles: one of each group of identical "
		  "ranks" },
	{ FRAG_ARG_TEXT, "price", AT(price), .value = "LIST",
	  .help = "price of a card for an hour, as h100=2.5,h200=3.2 (also: price_per_hour of "
		  "--cards)" },
	FRAG_CLI_POLICIES("policies", struct options, all.policies,
			  "policies, separated by ';' (default: those of fit)"),
	{ FRAG_ARG_UINT, "jobs", AT(all.jobs), .value = "N", .min = 1, .max = FRAG_LAYOUT_JOBS,
	  .rare = true, .help = "layouts that run at a time (default: one per processor)" },
	{ FRAG_ARG_BYTES, "memory", AT(all.pretend.memory_bytes), .value = "SIZE", .min = FRAG_MIB,
	  .max = UINT64_MAX, .rare = true,
	  .help = "memory of the host for all ranks that run at a time: each job takes its share, "
		  "and its ranks take turns" },
	{ FRAG_ARG_UINT, "time-limit", AT(all.time_limit_s), .value = "SECONDS", .max = 1000000,
	  .def = "1800", .rare = true, .help = "end a layout after this time, 0 = never" },
	{ FRAG_ARG_UINT, "check", AT(all.checks), .value = "N", .max = 1000000, .def = "10",
	  .rare = true,
	  .help = "run at most N layouts with assumed answers as a check, one for every 20" },
	{ FRAG_ARG_FLAG, "exact", AT(all.exact), .rare = true,
	  .help = "record each layout on each card itself, for programs that adapt to its memory" },
	{ FRAG_ARG_FLAG, "serve", AT(all.serve),
	  .help = "the command is a serving engine's, as 'vllm serve MODEL': without --vary on 1, "
		  "2, 4 and 8 cards (tensor parallelism), with its preset, without a GPU; it is "
		  "asked to end when it waits for requests" },
	{ FRAG_ARG_UINT, "requests", AT(all.requests), .value = "N", .min = 1,
	  .max = FRAG_KVCACHE_TOKENS_MAX, .rare = true,
	  .help = "the program is a serving engine that prints the size of its cache (vLLM, "
		  "SGLang): a layout fits if the cache holds N requests of --tokens" },
	{ FRAG_ARG_UINT, "tokens", AT(all.request_tokens), .value = "N", .min = 1,
	  .max = FRAG_KVCACHE_TOKENS_MAX, .rare = true, .help = "of a request, prompt and output" },
	{ FRAG_ARG_UINT, "block", AT(all.block_tokens), .value = "N", .min = 1, .max = 1u << 20,
	  .def = "16", .rare = true, .help = "tokens of a block of the cache" },
	FRAG_HOLD_ROWS(struct options, all.pretend.hold),
	{ FRAG_ARG_TEXT, "values", AT(all.pretend.values), .value = "FILE", .def = "rules",
	  .rare = true, .help = "the values that no kernel computes, as for record" },
	{ FRAG_ARG_TEXT, "keep", AT(all.keep), .value = "DIR", .rare = true,
	  .help = "keep the recordings there, for sweep and fleet" },
	{ FRAG_ARG_FLAG, "resume", AT(all.resume), .rare = true,
	  .help = "reuse recordings of this command that --keep already has" },
	{ FRAG_ARG_OWN, "shard", AT(shard), .set = frag_sweep_set_shard, .value = "I/N",
	  .rare = true,
	  .help = "one of N array jobs, which share --keep; /N: I from SLURM_ARRAY_TASK_ID, "
		  "JOB_COMPLETION_INDEX or the rank of mpirun or srun" },
	{ FRAG_ARG_TEXT, "store", AT(store), .value = "FILE", .file = FRAG_ARG_WRITES, .rare = true,
	  .help = "for fleet: the results of all recordings of --keep, in a SQLite file like "
		  "sweep's" },
	{ FRAG_ARG_FLAG, "fresh", AT(fresh), .rare = true,
	  .help = "record again, even if an earlier call recorded the same command with the "
		  "same environment and files" },
	{ FRAG_ARG_FLAG, "anew", AT(all.anew), .rare = true,
	  .help = "start Python anew for each layout, instead of forking a process that has loaded "
		  "what the first layout imported" },
	{ 0 },
};

static void release(void *values)
{
	frag_layouts_release(&((struct options *)values)->all);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_catalog_release) struct frag_catalog catalog = { 0 };

	FRAG_TRY(frag_catalog_init(&catalog, cli->cards, cli->vendor, err));
	return plan(cli, values, &catalog, err);
}

const struct frag_cmd frag_cmd_layout = {
	.name = "layout",
	.summary = "how many cards a job needs, and which layout on them",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 2,
	.program = "PROGRAM",
	.about = "Runs the job's own command without a GPU, with values in place of names in "
		 "braces, and finds the fewest cards on which it completes. For each card and "
		 "number of ranks it names the layouts that fit, the rank that needs most, "
		 "the kinds of its memory, and the line to paste. It records each layout once "
		 "for each compute capability, with enough memory, and judges it as fit does; "
		 "it also records the advised layout on the card itself. Of identical ranks "
		 "only one runs. Along names whose values need more and more memory "
		 "(--rising), it finds by bisection how far layouts fit; it names the layouts "
		 "that it assumed to fit or not, and runs some of them as a check. It keeps "
		 "recordings: the same command, or one with more values, reuses them. It "
		 "marks layouts that fail for another reason than memory, or do not end. "
		 "Exits with 1 if no layout fits any card.",
	.examples =
		"  cufrag layout --no-gpu --vary '{mb}=1..64' -- python train.py --batch {mb}\n"
		"  cufrag layout --no-gpu --gpu h100,b200 --world 1..8*2 -- torchrun train.py\n"
		"  cufrag layout --no-gpu --world 8 --vary '{tp}=1,2' -- torchrun x.py --tp {tp}\n"
		"  cufrag layout --no-gpu --preset megatron --world 8 --vary tp=1,2 -- torchrun "
		"x.py\n",
	.shared = FRAG_CLI_CARDS | FRAG_CLI_PAGE,
	.answer = &frag_layouts_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
	.release = release,
};
