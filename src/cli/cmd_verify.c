/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag verify: replays the recorded settings and compares every address and every segment event
 * with the recording. The last line is the verdict; the exit status is 0 only if it says
 * `identical`. On a real card addresses differ, so the verdict is at best `same segments`.
 */
#include <string.h>

#include "cli/common.h"
#include "recording/estimate.h"
#include "recording/verified.h"

struct options {
	const char *conf; /* NULL = the recorded one */
	bool counters;
};

static int check_evidence(const struct frag_trace *trace, const char *path, struct frag_err *err)
{
	bool evidence = false;

	for (uint32_t d = 0; d < trace->devs_count; d++) {
		evidence |= trace->devs[d].has_evidence;
		if (trace->devs[d].has_evidence && trace->devs[d].recorded_count)
			return 0;
	}
	if (evidence)
		return FRAG_INPUT(err,
				  "'%.200s' holds a state, but no history that led to it, so there "
				  "is nothing to verify (was "
				  "torch.cuda.memory._record_memory_history() called?)",
				  path);
	return FRAG_INPUT(err,
			  "'%.200s' holds no segments (format %s): it does not record what the "
			  "allocator took from the card and gave back, so there is nothing to "
			  "compare with; use replay or compare instead",
			  path, trace->format ? trace->format : "unknown");
}

static int verify_one(const struct frag_cli *cli, const char *conf, struct frag_trace *trace,
		      uint32_t d, struct frag_verify_result *r, struct frag_err *err)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct frag_sim_config card = cli->target.card;
	uint64_t limit = trace->devs[d].settled.limit_bytes;

	frag_cli_show(&progress, "verifying", trace->name);
	if (!cli->target.card_given)
		frag_estimate_card(trace, &card);
	if (cli->device == FRAG_CLI_DEVICE_SIM)
		return frag_verify(trace, d, &card, limit, conf, r, err);
	FRAG_TRY(frag_cli_open_nth(cli, d, &dev, err));
	return frag_verify_card(trace, d, dev, &cli->target.card, limit, conf, r, err);
}

/* Every device that has evidence. */
static int verify_devices(const struct frag_cli *cli, const char *conf, struct frag_trace *trace,
			  struct frag_verified *v, struct frag_err *err)
{
	FRAG_TRY(frag_verified_begin(v, trace, conf ? conf : trace->settings.conf,
				     trace->devs[0].settled.limit_bytes, err));
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };

		if (!trace->devs[d].has_evidence || !trace->devs[d].recorded_count) {
			frag_cli_note(cli,
				      "device %u has no evidence or no history and is left out",
				      trace->devs[d].ordinal);
			continue;
		}
		FRAG_TRY(verify_one(cli, conf, trace, d, &r, err));
		FRAG_TRY(frag_verified_add(v, &trace->devs[d], &r, err));
	}
	return 0;
}

static int verify(const struct frag_cli *cli, const char *conf, const char *path,
		  struct frag_verified *v, struct frag_err *err)
{
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	int rc;

	FRAG_TRY(frag_recording_open(&r, path, &cli->target, FRAG_OPEN_AS_RECORDED, err));
	rc = check_evidence(r.trace, path, err) ?: verify_devices(cli, conf, r.trace, v, err);
	if (rc == FRAG_EINPUT && !strstr(err->msg, path))
		frag_err_prefix(err, "'%.150s'", path);
	return rc;
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "conf", FRAG_ARG_AT(struct options, conf), .set = frag_cli_set_conf,
	  .value = "TEXT",
	  .help = "settings as in PYTORCH_CUDA_ALLOC_CONF (default: those recorded)" },
	{ FRAG_ARG_FLAG, "counters", FRAG_ARG_AT(struct options, counters), .rare = true,
	  .help = "print the allocator's own statistics, too" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_verified_release)
	struct frag_verified v = { .a = &a,
				   .card = cli->device != FRAG_CLI_DEVICE_SIM,
				   .counters = o->counters };

	cli->target.conf = o->conf;
	for (size_t i = 0; i < cli->operands_count; i++)
		FRAG_TRY(verify(cli, o->conf, cli->operands[i], &v, err));
	FRAG_TRY(frag_verified_answer(&v, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	return v.verdict == FRAG_VERDICT_SAME ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}

const struct frag_cmd frag_cmd_verify = {
	.name = "verify",
	.summary = "is the simulation what really happened? event by event",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 4,
	.operands = "TRACE...",
	.about =
		"Replays a recording of PyTorch's allocator under its recorded settings and "
		"compares every segment event, every block address, every refusal and the final "
		"snapshot with the recording. Exits with 0 only if all are identical, else with 1. "
		"A history that began late (the ring buffer was too short, or the recorder was "
		"switched on later) does not hold its initial state. verify infers this state from "
		"later decisions; if they do not show enough, the verdict is undetermined from a "
		"named event on, and the status is 1, too. PyTorch does not record a memory limit: "
		"unless --limit gives it, verify searches for one with which the replay is "
		"identical. With --device cuda the settings run on a card, and verify compares "
		"what does not depend on addresses: requests served and refused, segments by kind "
		"and size. After a difference, a simulated card replays with the addresses of the "
		"real card and with the recorded ones; this shows whether addresses decided it. "
		"The verdict stays different. A recording made without a GPU is replayed on its "
		"own card unless --gpu names another. Several recordings get one verdict.",
	.examples = "  cufrag verify traces/gnn.default.cft\n"
		    "  cufrag verify oomcap.pickle.xz --limit 7.5G\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_DEVICE | FRAG_CLI_PAGE,
	.answer = &frag_verified_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
