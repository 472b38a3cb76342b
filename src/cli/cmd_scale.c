/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag scale: what a program needs at a batch size or length that was not recorded. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/program.h"
#include "plan/scale/prediction.h"

struct list {
	uint64_t n[FRAG_PREDICTION_VALUES];
	size_t count;
};

struct options {
	struct frag_pretend pretend; /* first: its rows count from here */
	struct frag_policy_texts policies;
	struct list at, to;
	const char *output;
	unsigned most;
};

static int set_list(void *field, const char *text, struct frag_err *err)
{
	struct list *l = field;
	const char *at = text;

	for (;;) {
		char *end;
		unsigned long long n = strtoull(at, &end, 10);

		if (end == at || (*end && *end != ',') || n < 1 || n > FRAG_SCALING_MAX ||
		    *at == '-' || l->count == FRAG_PREDICTION_VALUES)
			return FRAG_USAGE(err,
					  "invalid list '%.60s': expected numbers from 1 to %u, as "
					  "16,32,64",
					  text, FRAG_SCALING_MAX);
		l->n[l->count++] = n;
		if (!*end)
			return 0;
		at = end + 1;
	}
}

/* ---- the recordings -------------------------------------------------------------- */

static int read_parts(struct frag_prediction *p, const struct frag_cli *cli,
		      const struct options *o, struct frag_err *err)
{
	if (!o->at.count)
		return FRAG_USAGE(err, "give the values of the recordings, in their order: --at "
				       "2,4,8");
	if (o->at.count != cli->operands_count)
		return FRAG_USAGE(err, "%zu values for %zu recordings", o->at.count,
				  cli->operands_count);
	for (size_t i = 0; i < cli->operands_count; i++) {
		struct frag_prediction_part *part = &p->parts[p->parts_count];

		part->value = o->at.n[i];
		FRAG_TRY(frag_recording_open(&part->recording, cli->operands[i], &cli->target,
					     FRAG_OPEN_HISTORY, err));
		p->parts_count++;
	}
	return 0;
}

struct recorder {
	const struct frag_cli *cli;
	const struct options *o;
	const char *name;
};

static int record(const struct recorder *r, uint64_t n, struct frag_trace **out, bool *completes,
		  struct frag_err *err)
{
	const struct frag_program program = frag_cli_program(r->cli, &r->o->pretend);
	uint64_t refused;
	int status;

	FRAG_TRY(frag_program_vary(&program, r->name, n, out, &status, &refused, err));
	*completes = !refused && !status;
	return 0;
}

static int record_parts(struct frag_prediction *p, const struct recorder *r, const struct list *at,
			struct frag_err *err)
{
	for (size_t i = 0; i < at->count; i++) {
		struct frag_prediction_part *part = &p->parts[p->parts_count];
		struct frag_trace *trace;
		bool completes;

		FRAG_TRY(record(r, at->n[i], &trace, &completes, err));
		if (!completes) {
			frag_trace_destroy(trace);
			return FRAG_INPUT(err,
					  "the program runs out of memory with %s = %" PRIu64
					  " already; begin with a smaller value",
					  r->name, at->n[i]);
		}
		part->value = at->n[i];
		FRAG_TRY(frag_recording_take(&part->recording, trace, &r->cli->target, 0, err));
		p->parts_count++;
	}
	return 0;
}

static int get_parts(struct frag_prediction *p, const struct recorder *r, char *name,
		     struct frag_err *err)
{
	const struct frag_cli *cli = r->cli;
	const struct options *o = r->o;
	struct list at = { 0 };
	const char *rest;

	if (!cli->program != !o->pretend.vary)
		return FRAG_USAGE(err, "a program is recorded with --vary '{batch}=2,4,8' -- "
				       "PROGRAM, which has {batch} in it");
	if (cli->program && (cli->operands_count || o->at.count))
		return FRAG_USAGE(err, "give recordings or a program, not both");
	if (o->pretend.vary) {
		rest = frag_vary_name(o->pretend.vary, name);
		if (!rest)
			return FRAG_USAGE(err,
					  "invalid value '%.60s' of --vary: expected {NAME}=N,N,…, "
					  "as {batch}=2,4,8",
					  o->pretend.vary);
		FRAG_TRY(set_list(&at, rest, err));
	}
	if (FRAG_MAX(at.count, cli->operands_count) < 2 ||
	    FRAG_MAX(at.count, cli->operands_count) > FRAG_SCALING_PARTS)
		return FRAG_USAGE(err, "scale takes two to %u recordings", FRAG_SCALING_PARTS);
	return o->pretend.vary ? record_parts(p, r, &at, err) : read_parts(p, cli, o, err);
}

/* ---- the command ----------------------------------------------------------------- */

/* Is the greatest value so? The program is recorded at it. */
static int try_value(void *ctx, uint64_t value, bool *completes, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;

	return record(ctx, value, &trace, completes, err);
}

static int predict(struct frag_prediction *p, const struct options *o, struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;

	frag_cli_show(&progress, "replaying", p->parts[0].recording.trace->name);
	return frag_prediction_make(p, &o->policies, o->to.n, o->to.count, o->most, err);
}

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "at", AT(at), .set = set_list, .value = "N,N,…",
	  .help = "the values at which the TRACEs were recorded, in their order" },
	{ FRAG_ARG_OWN, "to", AT(to), .set = set_list, .value = "N,N,…",
	  .help = "values to predict (default: the largest, doubled until it is too much, four "
		  "times at most, and the greatest that completes)" },
	{ FRAG_ARG_UINT, "most", AT(most), .value = "N", .min = 1, .max = FRAG_SCALING_MAX,
	  .def = "1048576", .rare = true, .help = "the greatest value to try" },
	FRAG_CLI_POLICIES("policies", struct options, policies,
			  "policies, separated by ';' (default: recorded, and pytorch with "
			  "expandable_segments:True)"),
	FRAG_CLI_POLICY(struct options, policies),
	{ FRAG_ARG_TEXT, "output", .letter = 'o', AT(output), .value = "FILE",
	  .file = FRAG_ARG_WRITES_TRACE,
	  .help = "also write the trace at --to N, for the other commands" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_prediction_release) struct frag_prediction p = { .target = &cli->target };
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	struct options *o = values;
	char name[FRAG_VARY_NAME] = "value", card[40];
	struct recorder r = { cli, o, name };

	if (o->output && o->to.count != 1)
		return FRAG_USAGE(err, "-o writes the trace at one value: give --to N");
	FRAG_TRY(frag_policy_texts_default(&o->policies,
					   "recorded;pytorch:expandable_segments:True", err));
	FRAG_TRY(frag_policy_texts_check(&o->policies, NULL, err));
	FRAG_TRY(get_parts(&p, &r, name, err));
	p.name = name;
	FRAG_TRY(predict(&p, o, err));
	if (cli->program && p.largest_low[0] != UINT64_MAX)
		FRAG_TRY(frag_prediction_confirm(&p, try_value, &r, err));
	if (o->output)
		FRAG_TRY(frag_prediction_write(&p, o->to.n[0], o->output, err));
	a.estimated = cli->estimated;
	FRAG_TRY(frag_prediction_answer(&p, frag_cli_card(cli, card, sizeof(card)), &a, err));
	return frag_cli_show_answer(cli, &a, err);
}

const struct frag_cmd frag_cmd_scale = {
	.name = "scale",
	.summary = "what a program needs at other batch sizes or lengths",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 3,
	.operands = "TRACE...",
	.operands_max = FRAG_SCALING_PARTS,
	.program = "[PROGRAM]",
	.about = "Predicts the memory that a program needs at other numbers, from two to eight "
		 "recordings that differ in one number, its batch size or a length. Requests are "
		 "matched one by one; the size of each follows a law of the number (constant, c n, "
		 "c n^2, c + d n) that all recordings meet exactly; the trace made of them is "
		 "replayed under every policy. That is exact to the byte if the program makes the "
		 "same requests; where recordings differ, or a size follows no law, it gives a "
		 "range. With three recordings the largest is predicted from the others, as a "
		 "test. Names the greatest number that --gpu takes. A program is recorded here, "
		 "and at that number once more.",
	.examples = "  cufrag scale --at 2,4,8 b2.cft b4.cft b8.cft --to 16,32 --gpu l40s\n"
		    "  cufrag scale --vary '{batch}=2,4,8' -- python train.py --batch {batch}\n"
		    "  cufrag scale --at 4,8 b4.cft b8.cft --to 24 -o b24.cft\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_PAGE,
	.answer = &frag_scale_shape,
	FRAG_CMD_OPTIONS(struct options, options, frag_pretend_scale_rows, frag_pretend_rows,
			 frag_pretend_implied),
	.run = run,
};
