/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag verify: replays the recorded settings on a simulated card and
 * compares every address and every segment event with what was recorded. The last
 * line is the verdict; the exit status is 0 only if it says `identical`. Of a history that began
 * late it may say `undetermined`: the file does not determine what came of it. On a real card the
 * addresses are the card's: there the verdict is at best `same segments`, and a difference that
 * addresses decide is still `different`, but is shown to be one.
 */
#include <string.h>

#include <frag/replay.h>
#include <frag/trace.h>

#include "cli/recordings.h"
#include "answer/json.h"
#include "recording/settled_shape.h"

struct options {
	const char *conf; /* NULL = the recorded one */
	bool counters;
};

/* On a card: "served", and no word of addresses. */
static void print_card_counts(const struct frag_verify_result *r)
{
	printf("device %u: allocs %llu/%llu served, segment events %llu/%llu of the recorded kind "
	       "and size, ooms %llu/%llu\n",
	       r->device_ordinal, (unsigned long long)r->allocs_same, (unsigned long long)r->allocs,
	       (unsigned long long)r->segments_same, (unsigned long long)r->segments,
	       (unsigned long long)r->ooms_same, (unsigned long long)r->ooms);
}

static void print_counts(const struct frag_verify_result *r)
{
	printf("device %u: allocs %llu/%llu addresses identical, segment events %llu/%llu "
	       "identical, "
	       "ooms %llu/%llu\n",
	       r->device_ordinal, (unsigned long long)r->allocs_same, (unsigned long long)r->allocs,
	       (unsigned long long)r->segments_same, (unsigned long long)r->segments,
	       (unsigned long long)r->ooms_same, (unsigned long long)r->ooms);
}

static void print_device(const struct frag_verify_result *r, bool counters, bool card)
{
	if (r->finals_same != r->finals)
		printf("device %u: final blocks %llu/%llu identical\n", r->device_ordinal,
		       (unsigned long long)r->finals_same, (unsigned long long)r->finals);
	if (r->refusals)
		printf("device %u: the driver refused memory %llu times\n", r->device_ordinal,
		       (unsigned long long)r->refusals);
	if (r->uncertain)
		printf("device %u: %llu blocks at the start have a size that the file does not "
		       "determine\n",
		       r->device_ordinal, (unsigned long long)r->uncertain);
	for (const struct frag_counter *c = r->counters; counters && c && c->name; c++)
		printf("device %u: %s %lld\n", r->device_ordinal, c->name, (long long)c->value);
	if (!r->identical)
		printf("device %u: %s: %s\n", r->device_ordinal,
		       r->undetermined ? "undetermined" : "first difference",
		       *r->first_difference ? r->first_difference : "not located");
	if (r->cause != FRAG_CAUSE_NONE)
		printf("device %u: %s\n", r->device_ordinal, r->cause_text);
	if (card)
		print_card_counts(r);
	else
		print_counts(r);
}

static json_t *counters_json(const struct frag_verify_result *r)
{
	json_t *all = json_object();

	for (const struct frag_counter *c = r->counters; c && c->name; c++)
		json_object_set_new(all, c->name, json_integer(c->value));
	return all;
}

static json_t *device_json(const struct frag_verify_result *r)
{
	static const char *const causes[] = {
		[FRAG_CAUSE_ADDRESSES] = "addresses",
		[FRAG_CAUSE_INPUT] = "input",
		[FRAG_CAUSE_UNKNOWN] = "unknown",
	};
	json_t *difference = r->identical ? json_null() : json_string(r->first_difference);

	/* s?: null where nobody looked for a cause */
	return json_pack(
		"{s:i, s:b, s:b, s:o, s:s?, s:s?, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
		"s:I, "
		"s:I, s:o}",
		"device", (int)r->device_ordinal, "identical", r->identical, "undetermined",
		r->undetermined, "first_difference", difference, "difference_cause",
		causes[r->cause], "difference_cause_text",
		r->cause != FRAG_CAUSE_NONE ? r->cause_text : NULL, "allocs_count",
		(json_int_t)r->allocs, "allocs_identical_count", (json_int_t)r->allocs_same,
		"segment_events_count", (json_int_t)r->segments, "segment_events_identical_count",
		(json_int_t)r->segments_same, "ooms_count", (json_int_t)r->ooms,
		"ooms_identical_count", (json_int_t)r->ooms_same, "final_blocks_count",
		(json_int_t)r->finals, "final_blocks_identical_count", (json_int_t)r->finals_same,
		"driver_refusals_count", (json_int_t)r->refusals, "uncertain_count",
		(json_int_t)r->uncertain, "peak_reserved_bytes", (json_int_t)r->peak_reserved_bytes,
		"counters", counters_json(r));
}

static int check_evidence(const struct frag_trace *trace, const char *path, struct frag_err *err)
{
	for (uint32_t d = 0; d < trace->devs_count; d++)
		if (trace->devs[d].has_evidence)
			return 0;
	return frag_fail(err, FRAG_EINPUT,
			 "'%.200s' holds no segments (format %s): what its allocator took from the "
			 "card "
			 "and gave back was not recorded, so there is nothing to compare with; "
			 "replay and compare do work on it",
			 path, trace->format ? trace->format : "unknown");
}

/* --limit as it is given; else what the file says, or what was found (frag_settle). */
static uint64_t limit_of(const struct frag_cli *cli, const struct frag_trace_dev *dev)
{
	return cli->target.limit.text ? frag_target_limit(&cli->target) : dev->settled.limit_bytes;
}

static void print_settled(const struct frag_trace_dev *dev)
{
	char text[600];

	if (dev->settled.limit_source == FRAG_LIMIT_INFERRED || dev->settled.assumed_trims_count)
		printf("device %u: %s\n", dev->ordinal,
		       frag_settled_text(&dev->settled, text, sizeof(text)));
}

static int verify_one(const struct frag_cli *cli, const struct options *o, struct frag_trace *trace,
		      uint32_t d, uint64_t limit, struct frag_verify_result *r,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;

	frag_cli_show(&progress, "verifying", trace->name);
	if (cli->device == FRAG_CLI_DEVICE_SIM)
		return frag_verify(trace, d, &cli->target.card, limit, o->conf, r, err);
	FRAG_TRY(frag_cli_open_nth(cli, d, &dev, err));
	return frag_verify_card(trace, d, dev, &cli->target.card, limit, o->conf, r, err);
}

/* The worst of all devices and traces counts. */
enum verdict { VERDICT_SAME, VERDICT_UNDETERMINED, VERDICT_DIFFERENT };

static enum verdict verdict_of(const struct frag_verify_result *r)
{
	if (r->identical)
		return VERDICT_SAME;
	return r->undetermined ? VERDICT_UNDETERMINED : VERDICT_DIFFERENT;
}

static const char *verdict_word(const struct frag_cli *cli, enum verdict v)
{
	if (v != VERDICT_SAME)
		return v == VERDICT_UNDETERMINED ? "undetermined" : "different";
	return cli->device == FRAG_CLI_DEVICE_SIM ? "identical" : "same segments";
}

/* Verifies every device that has evidence. */
static int verify_all(const struct frag_cli *cli, const struct options *o, struct frag_trace *trace,
		      json_t *devices, enum verdict *out, struct frag_err *err)
{
	bool text = !cli->json || strcmp(cli->json, "-") != 0;

	*out = VERDICT_SAME;
	frag_cli_note_cards(cli, trace->devs_count);
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];
		struct frag_verify_result r = { 0 };
		json_t *one;

		if (!trace->devs[d].has_evidence) {
			frag_cli_note(cli, "device %u has no evidence, left out",
				      trace->devs[d].ordinal);
			continue;
		}
		FRAG_TRY(verify_one(cli, o, trace, d, limit_of(cli, dev), &r, err));
		if (text)
			print_settled(dev);
		if (text)
			print_device(&r, o->counters, cli->device != FRAG_CLI_DEVICE_SIM);
		one = device_json(&r);
		frag_settled_members(one, &dev->settled);
		json_array_append_new(devices, one);
		*out = FRAG_MAX(*out, verdict_of(&r));
		frag_verify_result_release(&r);
	}
	return 0;
}

static json_t *trace_json(const struct frag_cli *cli, const struct options *o,
			  const struct frag_trace *trace, json_t *devices, enum verdict v)
{
	const char *conf = o->conf ? o->conf : trace->settings.conf;
	uint64_t limit = limit_of(cli, &trace->devs[0]);
	json_t *all = json_object();

	json_object_set_new(all, "trace", json_string(trace->name ? trace->name : ""));
	json_object_set_new(all, "conf", json_string(conf ? conf : ""));
	json_object_set_new(all, "limit_bytes", frag_json_number(limit));
	json_object_set_new(all, "verdict", json_string(verdict_word(cli, v)));
	json_object_set(all, "devices", devices);
	return all;
}

/* One trace: its members beside those of the head. Several: "traces", and one verdict. */
static int write_json(const struct frag_cli *cli, json_t *traces, enum verdict v,
		      struct frag_err *err)
{
	json_t *root = frag_cli_json_head(cli);

	FRAG_CHECK_ALLOC(root, "JSON document", err);
	if (cli->operands_count == 1) {
		json_object_update(root, json_array_get(traces, 0));
	} else {
		json_object_set_new(root, "verdict", json_string(verdict_word(cli, v)));
		json_object_set(root, "traces", traces);
	}
	return frag_cli_json_write(cli, root, err);
}

static int verify_trace(const struct frag_cli *cli, const struct options *o, const char *path,
			json_t *traces, enum verdict *out, struct frag_err *err)
{
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	bool text = !cli->json || strcmp(cli->json, "-") != 0;
	json_auto_t *devices = json_array();
	const struct frag_trace *trace;
	int rc;

	FRAG_TRY(frag_recording_open(&r, path, &cli->target, FRAG_OPEN_AS_RECORDED, err));
	trace = r.trace;
	rc = check_evidence(trace, path, err);
	if (!rc && text && cli->operands_count > 1)
		printf("trace %s\n", trace->name ? trace->name : path);
	if (!rc)
		rc = verify_all(cli, o, r.trace, devices, out, err);
	if (rc == FRAG_EINPUT && !strstr(err->msg, path))
		frag_err_prefix(err, "'%.150s'", path);
	if (!rc)
		json_array_append_new(traces, trace_json(cli, o, trace, devices, *out));
	return rc;
}

/* *out: of all devices of all traces. */
static int verify(const struct frag_cli *cli, const struct options *o, enum verdict *out,
		  struct frag_err *err)
{
	json_auto_t *traces = json_array();
	int rc = 0;

	*out = VERDICT_SAME;
	for (size_t i = 0; !rc && i < cli->operands_count; i++) {
		enum verdict this = VERDICT_DIFFERENT;

		rc = verify_trace(cli, o, cli->operands[i], traces, &this, err);
		*out = FRAG_MAX(*out, this);
	}
	if (!rc && (!cli->json || strcmp(cli->json, "-") != 0))
		printf("verdict: %s\n", verdict_word(cli, *out));
	if (!rc && cli->json)
		rc = write_json(cli, traces, *out, err);
	return rc;
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "conf", FRAG_ARG_AT(struct options, conf), .set = frag_cli_set_conf,
	  .value = "TEXT",
	  .help = "settings as in PYTORCH_CUDA_ALLOC_CONF (default: those recorded)" },
	{ FRAG_ARG_FLAG, "counters", FRAG_ARG_AT(struct options, counters),
	  .help = "print the allocator's own statistics, too" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	enum verdict v = VERDICT_DIFFERENT;

	cli->target.conf = ((const struct options *)values)->conf;
	FRAG_TRY(verify(cli, values, &v, err));
	return v == VERDICT_SAME ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}

const struct frag_cmd frag_cmd_verify = {
	.name = "verify",
	.summary = "is the simulation what really happened? event by event",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 4,
	.operands = "TRACE...",
	.operands_min = 1,
	.operands_max = 10000,
	.about =
		"Replays a recording of PyTorch's allocator under its recorded settings and "
		"compares "
		"every segment event, every block address, every out-of-memory and the final "
		"snapshot with what was recorded. Exits with 0 only if all are identical, with 1 "
		"if something differs. A history that began late (a ring that was too short, a "
		"recorder switched on later) does not hold the whole state that it began with: "
		"what "
		"its choices show of it is found; where they do not show enough the verdict is "
		"undetermined, with the event from which on, and the status is 1, too. PyTorch "
		"does not record a memory limit: one is looked "
		"for with which the replay is identical, unless --limit gives it. With --device "
		"cuda the settings run on a card, and what does not depend "
		"on addresses is compared: requests served and refused, segments by kind and size. "
		"After a difference the simulated card, given the addresses of this one and then "
		"those recorded, shows whether addresses decided it, as they do ties between "
		"blocks of one size; the verdict stays different. "
		"Of several traces the verdict is one for all.",
	.examples = "  cufrag verify traces/gnn.default.cft\n"
		    "  cufrag verify oomcap.pickle.xz --limit 7.5G\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_DEVICE | FRAG_CLI_JSON,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.run = run,
};
