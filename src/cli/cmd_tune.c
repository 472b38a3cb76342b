/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag tune: the settings that serve a trace best, as a line to export. */
#include <string.h>

#include "recording/policy_texts.h"
#include "tune_print.h"

struct options {
	struct frag_policy_texts spaces;
	const char *baseline;
	enum frag_tune_objective objective;
	uint64_t budget, cap;
	struct frag_tune_show show;
};

/* The recorded settings if all traces agree on them, else PyTorch's defaults. */
static int find_baseline(const struct frag_recordings *u, char **out, struct frag_err *err)
{
	*out = NULL;
	for (size_t i = 0; i < u->units_count; i++) {
		struct frag_policy_spec *spec;
		bool same;

		FRAG_TRY(frag_recording_spec(u->units[i].trace, "recorded", &spec, err));
		same = spec && (!i || !strcmp(*out, frag_policy_spec_text(spec)));
		if (same && !i)
			*out = frag_host_strdup(frag_policy_spec_text(spec));
		frag_policy_spec_destroy(spec);
		if (!same) {
			frag_host_free(*out);
			*out = frag_host_strdup("pytorch");
			break;
		}
	}
	return *out ? 0 : frag_fail_nomem(err, "baseline");
}

/* The releases that may have made the recordings, or the one of --torch; both 0: not known. */
static void find_releases(const struct frag_cli *cli, const struct frag_recordings *u,
			  struct frag_tune_show *show)
{
	show->first_release = show->last_release = cli->target.torch;
	for (size_t i = 0; i < u->units_count && !cli->target.torch; i++) {
		const struct frag_trace_settings *s = &u->units[i].trace->settings;

		if (!s->torch_last)
			continue;
		if (!show->first_release || s->torch_first < show->first_release)
			show->first_release = s->torch_first;
		show->last_release = FRAG_MAX(show->last_release, s->torch_last);
	}
}

#define BUDGET 800u /* settings */
#define CALLS_MAX \
	(1ull << 22) /* driver calls of all replays; recordings have a few thousand each */

static int search(const struct frag_cli *cli, const struct options *o,
		  const struct frag_recordings *u, const char *baseline, struct frag_tune *out,
		  struct frag_err *err)
{
	struct frag_tune_options opt = {
		.spaces = (const char *const *)o->spaces.text,
		.spaces_count = o->spaces.count,
		.baseline = baseline,
		.objective = o->objective,
		.budget = o->budget ? o->budget : BUDGET,
		.calls_max = o->budget ? 0 : CALLS_MAX,
		.seed = cli->target.seed,
		.release = o->show.first_release,
	};
	FRAG_AUTO_FREE const struct frag_trace_dev **devs =
		frag_host_calloc(u->units_count, sizeof(*devs));
	FRAG_AUTO_FREE uint64_t *limits = frag_host_calloc(u->units_count, sizeof(*limits));
	struct frag_plan_env env;
	struct frag_progress progress;
	char label[128];
	int rc;

	FRAG_CHECK_ALLOC(devs && limits, "tune", err);
	for (size_t i = 0; i < u->units_count; i++) {
		devs[i] = u->units[i].dev;
		limits[i] = frag_target_limit_for(&cli->target, u->units[i].dev);
	}
	/* the smallest card is looked for without it */
	if (o->objective != FRAG_TUNE_CARD)
		opt.limits = limits;
	frag_plan_env_init(&env, &cli->target, cli->threads);
	if (o->cap)
		env.run.limit_bytes = FRAG_MIN(env.run.limit_bytes, o->cap);
	snprintf(label, sizeof(label), "tuning %.80s", u->units[0].label);
	frag_progress_begin(&progress, label);
	env.watch = progress.watch;
	rc = frag_tune_run(&env, devs, u->units_count, &opt, out, err);
	frag_progress_end(&progress);
	return rc;
}

static int tune(const struct frag_cli *cli, struct options *o, struct frag_tune *out,
		struct frag_err *err)
{
	FRAG_AUTO(frag_recordings_release) struct frag_recordings units = { 0 };
	uint32_t flags;
	FRAG_AUTO_FREE char *baseline = NULL;
	int rc = 0;

	if (!o->spaces.count)
		FRAG_TRY(frag_policy_texts_add(&o->spaces, "pytorch", err));
	FRAG_TRY(frag_policy_texts_check(&o->spaces, &flags, err));
	FRAG_TRY(frag_recordings_open(&units, cli->operands, cli->operands_count, &cli->target, 0,
				      err));
	find_releases(cli, &units, &o->show);
	if (frag_policy_is_recorded(o->baseline))
		rc = find_baseline(&units, &baseline, err);
	if (!rc)
		rc = search(cli, o, &units, baseline ? baseline : o->baseline, out, err);
	if (!rc) {
		o->show.cli = cli;
		o->show.units = &units;
		o->show.objective = o->objective;
		o->show.budget = out->budget;
		o->show.cap = o->cap;
		rc = frag_tune_print(&o->show, out, err);
		o->show.units = NULL;
	}
	return rc;
}

/* ---- the command ----------------------------------------------------------------- */

static const char *const objectives[] = { "peak", "card", "time", NULL };

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "space", AT(spaces), .set = frag_policy_texts_set_list, .value = "POLICIES",
	  .help = "policies whose options are searched, separated by ';'; options given there stay "
		  "as they are (default: pytorch)" },
	{ FRAG_ARG_WORD, "objective", AT(objective), .words = objectives, .def = "peak",
	  .help = "peak: least reserved; card: smallest card; time: least driver time under the "
		  "--cap" },
	{ FRAG_ARG_BYTES, "cap", AT(cap), .value = "SIZE",
	  .help = "most that may be reserved (default: the card)" },
	{ FRAG_ARG_UINT, "budget", AT(budget), .value = "N", .min = 1, .max = 1000000,
	  .help = "settings to try in each space; a larger space is searched, not exhausted "
		  "(default: 800; "
		  "fewer where replays make millions of driver calls)" },
	{ FRAG_ARG_TEXT, "baseline", AT(baseline), .value = "POLICY", .def = "recorded",
	  .help = "settings to compare with" },
	{ FRAG_ARG_UINT, "top", AT(show.top), .value = "N", .min = 1, .max = 1000, .def = "10",
	  .help = "settings to print" },
	{ 0 },
};

static void release(void *values)
{
	frag_policy_texts_release(&((struct options *)values)->spaces);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct options *o = values;
	FRAG_AUTO(frag_tune_release) struct frag_tune found = { 0 };
	int status = tune(cli, o, &found, err);

	if (!status && !found.complete) {
		frag_cli_note(
			cli,
			"interrupted after %zu of at most %llu settings; the answer is the "
			"best of these",
			found.tries_count,
			(unsigned long long)(1 + found.budget * FRAG_MAX(o->spaces.count, 1u)));
		status = frag_code_exit(FRAG_EINTR);
	} else if (!status) {
		status = found.tries[0].completed && !found.tries[0].refused_count
				 ? FRAG_EXIT_DONE
				 : FRAG_EXIT_CONDITION;
	}
	return status;
}

const struct frag_cmd frag_cmd_tune = {
	.name = "tune",
	.summary = "search for the best allocator settings",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 2,
	.operands = "TRACE...",
	.operands_min = 1,
	.operands_max = 4096,
	.about = "Replays a trace under many settings of PyTorch's allocator (or of any policy: "
		 "--space) and prints the best as a PYTORCH_CUDA_ALLOC_CONF line, what it gains, "
		 "the "
		 "runners-up, and the settings of which no other has both less reserved and less "
		 "driver time. The limit of a recording holds, too, unless --limit gives one; what "
		 "refuses fewest requests is best then. garbage_collection_threshold is searched "
		 "where there is a limit: PyTorch ignores it without one. Only what every release "
		 "of PyTorch knows that may "
		 "have made the recording is tried, or the one of --torch. Small spaces are "
		 "exhausted, larger ones searched "
		 "from the space's own text and from random settings, always to the best setting "
		 "that differs in one option. Several traces or ranks: the worst peak counts.",
	.examples =
		"  cufrag tune traces/gnn.default.cft\n"
		"  cufrag tune run.pickle --objective time --cap 20G\n"
		"  cufrag tune run.pickle --space 'pytorch;tlsf;buddy' --budget 2000 --json -\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_JSON | FRAG_CLI_CSV | FRAG_CLI_SEED |
		  FRAG_CLI_THREADS,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.run = run,
	.release = release,
};
