/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag scale: what a program needs at a batch size or length at which nobody recorded it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launching.h"
#include "scale_sheet.h"

struct list {
	uint64_t n[FRAG_SHEET_VALUES];
	size_t count;
};

struct options {
	struct frag_pretend pretend; /* first: its rows count from here */
	struct frag_policy_texts policies;
	struct list at, to;
	const char *vary, *output;
	unsigned most;
	bool confirm;
};

/* ---- the recordings -------------------------------------------------------------------------- */

static int set_list(void *field, const char *text, struct frag_err *err)
{
	struct list *l = field;
	const char *at = text;

	for (;;) {
		char *end;
		unsigned long long n = strtoull(at, &end, 10);

		if (end == at || (*end && *end != ',') || n < 1 || n > FRAG_SCALING_MAX ||
		    *at == '-' || l->count == FRAG_SHEET_VALUES)
			return frag_fail(err, FRAG_EUSAGE,
					 "'%.60s' is no list of numbers from 1 to %u; give one as "
					 "16,32,64",
					 text, FRAG_SCALING_MAX);
		l->n[l->count++] = n;
		if (!*end)
			return 0;
		at = end + 1;
	}
}

static int by_value(const void *x, const void *y)
{
	const struct frag_sheet_part *a = x, *b = y;

	return FRAG_ORDER(a->value, b->value);
}

static int read_parts(struct frag_sheet *s, const struct options *o, struct frag_err *err)
{
	const struct frag_cli *cli = s->cli;

	if (!o->at.count)
		return frag_fail(err, FRAG_EUSAGE,
				 "give the values of the recordings, in their order: --at 2,4,8");
	if (o->at.count != cli->operands_count)
		return frag_fail(err, FRAG_EUSAGE, "%zu values for %zu recordings", o->at.count,
				 cli->operands_count);
	for (size_t i = 0; i < cli->operands_count; i++) {
		struct frag_sheet_part *part = &s->parts[s->parts_count];

		part->value = o->at.n[i];
		FRAG_TRY(frag_recording_open(&part->recording, cli->operands[i], &cli->target, 0,
					     err));
		s->parts_count++;
	}
	return 0;
}

static int record(const struct frag_sheet *s, const struct options *o, uint64_t n,
		  struct frag_trace **out, int *status, uint64_t *refused, struct frag_err *err)
{
	struct frag_launch launch = frag_cli_launch(s->cli);

	launch.stdout_to_stderr = true;
	return frag_vary_record(&launch, &o->pretend, s->cli->program, s->name, n, out, status,
				refused, err);
}

static int record_parts(struct frag_sheet *s, const struct options *o, const struct list *at,
			struct frag_err *err)
{
	for (size_t i = 0; i < at->count; i++) {
		struct frag_sheet_part *part = &s->parts[s->parts_count];
		struct frag_trace *trace;
		uint64_t refused;
		int status;

		FRAG_TRY(record(s, o, at->n[i], &trace, &status, &refused, err));
		if (!refused) {
			part->value = at->n[i];
			FRAG_TRY(frag_recording_take(&part->recording, trace, &s->cli->target, 0,
						     err));
			s->parts_count++;
			continue;
		}
		frag_trace_destroy(trace);
		return frag_fail(err, FRAG_EINPUT,
				 "with %s = %" PRIu64
				 " the program was refused memory already; begin with less",
				 s->name, at->n[i]);
	}
	return 0;
}

static int get_parts(struct frag_sheet *s, const struct options *o, struct frag_err *err)
{
	const struct frag_cli *cli = s->cli;
	struct list at = { 0 };
	const char *rest;

	if (!cli->program != !o->vary || (cli->program && !o->pretend.no_gpu))
		return frag_fail(err, FRAG_EUSAGE,
				 "a program is recorded with --no-gpu --vary '{batch}=2,4,8' -- "
				 "PROGRAM, which has {batch} in it");
	if (cli->program && (cli->operands_count || o->at.count))
		return frag_fail(err, FRAG_EUSAGE, "recordings and a program: give one of them");
	if (o->vary) {
		rest = frag_vary_name(o->vary, s->name);
		if (!rest)
			return frag_fail(err, FRAG_EUSAGE,
					 "'%.60s' names nothing; give {batch}=2,4,8", o->vary);
		FRAG_TRY(set_list(&at, rest, err));
	}
	if (FRAG_MAX(at.count, cli->operands_count) < 2 ||
	    FRAG_MAX(at.count, cli->operands_count) > FRAG_SCALING_PARTS)
		return frag_fail(err, FRAG_EUSAGE, "scale wants two to %u recordings",
				 FRAG_SCALING_PARTS);
	FRAG_TRY(o->vary ? record_parts(s, o, &at, err) : read_parts(s, o, err));
	qsort(s->parts, s->parts_count, sizeof(s->parts[0]), by_value);
	return 0;
}

/* ---- the values -------------------------------------------------------------------------------- */

static void add_value(struct frag_sheet *s, uint64_t n)
{
	size_t at = s->values_count;

	while (at > 0 && s->values[at - 1] > n)
		at--;
	if ((at > 0 && s->values[at - 1] == n) || s->values_count == FRAG_SHEET_VALUES)
		return;
	memmove(&s->values[at + 1], &s->values[at], (s->values_count - at) * sizeof(s->values[0]));
	s->values[at] = n;
	s->values_count++;
}

static void choose_values(struct frag_sheet *s, const struct list *to)
{
	uint64_t last = s->parts[s->parts_count - 1].value;

	for (size_t i = 0; i < s->parts_count; i++)
		add_value(s, s->parts[i].value);
	for (size_t i = 0; i < to->count; i++)
		add_value(s, to->n[i]);
	for (unsigned i = 0; !to->count && i < 4; i++)
		add_value(s, FRAG_MIN(last <<= 1, FRAG_SCALING_MAX));
}

/* ---- is it so? The greatest value, by recording it ------------------------------------------------ */

static int probe(struct frag_sheet *s, const struct options *o, uint64_t n, bool *fits,
		 struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	uint64_t refused;
	int status;

	FRAG_TRY(record(s, o, n, &trace, &status, &refused, err));
	*fits = !refused && !status;
	s->confirm_runs++;
	return 0;
}

/* From the prediction in doubling steps to the first that does the opposite, then bisection: mostly
 * two recordings. What completes need not do so with every smaller value: this one and the
 * next are what was tried. */
static int confirm(struct frag_sheet *s, const struct options *o, struct frag_err *err)
{
	uint64_t known = s->parts[s->parts_count - 1].value, low = known;
	uint64_t high = (uint64_t)o->most + 1;
	uint64_t at = FRAG_MIN(s->largest_low[0], o->most), step = 1;

	while (low + 1 < high) {
		bool fits;

		at = FRAG_MIN(FRAG_MAX(at, low + 1), high - 1);
		FRAG_TRY(probe(s, o, at, &fits, err));
		if (fits)
			low = at;
		else
			high = at;
		if (low > known && high <= o->most)
			at = low + (high - low) / 2;
		else
			at = fits ? low + step : high - FRAG_MIN(step, high);
		step *= 2;
	}
	s->confirmed = true;
	s->confirmed_value = low;
	return 0;
}

/* ---- the command ----------------------------------------------------------------------------------- */

static int scale(struct frag_sheet *s, struct options *o, struct frag_err *err)
{
	struct frag_progress progress;
	uint32_t flags;
	int rc;

	snprintf(s->name, sizeof(s->name), "value");
	if (o->output && o->to.count != 1)
		return frag_fail(err, FRAG_EUSAGE, "-o writes the trace at one value: give --to N");
	if (!o->policies.count) {
		FRAG_TRY(frag_policy_texts_add(&o->policies, "recorded", err));
		FRAG_TRY(frag_policy_texts_add(&o->policies, "pytorch:expandable_segments:True",
					       err));
	}
	FRAG_TRY(frag_policy_texts_check(&o->policies, &flags, err));
	FRAG_TRY(get_parts(s, o, err));
	choose_values(s, &o->to);
	frag_cli_show(&progress, "replaying", s->parts[0].recording.trace->name);
	rc = frag_sheet_fill(s, &o->policies, o->most, err);
	frag_progress_end(&progress);
	FRAG_TRY(rc);
	if (s->cli->program && o->confirm && s->largest_low[0] != UINT64_MAX)
		FRAG_TRY(confirm(s, o, err));
	if (o->output)
		FRAG_TRY(frag_sheet_write(s, o->to.n[0], o->output, err));
	return frag_sheet_print(s, err);
}

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "at", AT(at), .set = set_list, .value = "N,N,…",
	  .help = "the values at which the TRACEs were recorded, in their order" },
	{ FRAG_ARG_OWN, "to", AT(to), .set = set_list, .value = "N,N,…",
	  .help = "values to predict (default: the largest, doubled four times)" },
	{ FRAG_ARG_TEXT, "vary", AT(vary), .value = "{NAME}=N,N,…",
	  .help = "with --no-gpu: record the program with these numbers in place of {NAME}" },
	{ FRAG_ARG_FLAG, "confirm", AT(confirm),
	  .help = "with --no-gpu: record the program at the greatest value found and beside it, "
		  "until it is the "
		  "greatest" },
	{ FRAG_ARG_UINT, "most", AT(most), .value = "N", .min = 1, .max = FRAG_SCALING_MAX,
	  .def = "1048576", .help = "the greatest value to try" },
	{ FRAG_ARG_OWN, "policies", AT(policies), .set = frag_policy_texts_set_list,
	  .value = "POLICIES",
	  .help = "policies, separated by ';' (default: recorded, and pytorch with "
		  "expandable_segments:True)" },
	{ FRAG_ARG_OWN, "policy", AT(policies), .set = frag_policy_texts_set_one, .value = "POLICY",
	  .help = "one policy; may be repeated; recorded = the settings of the recording" },
	{ FRAG_ARG_TEXT, "output", .letter = 'o', AT(output), .value = "FILE",
	  .file = FRAG_ARG_WRITES_TRACE,
	  .help = "also write the trace at --to N, for the other commands" },
	{ 0 },
};

static void init(void *values)
{
	((struct options *)values)->confirm = true;
}

static void release(void *values)
{
	frag_policy_texts_release(&((struct options *)values)->policies);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_sheet_release) struct frag_sheet sheet = { .cli = cli };

	return scale(&sheet, values, err);
}

const struct frag_cmd frag_cmd_scale = {
	.name = "scale",
	.summary = "what a program needs at other batch sizes or lengths",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 3,
	.operands = "TRACE...",
	.operands_min = 0,
	.operands_max = FRAG_SCALING_PARTS,
	.program = "[PROGRAM]",
	.about =
		"From two to eight recordings of one program that differ in one number, its batch "
		"size or a length, the memory it needs at other numbers. Requests are matched "
		"one by one; the size of each is a law of the number (constant, c n, c n^2, c + d "
		"n) that all recordings meet exactly; the trace made of them is replayed under "
		"every "
		"policy. That is exact to the byte where the program makes the same requests; "
		"where recordings differ, or a size follows no law, it says so and gives "
		"a range. With three recordings the last one is predicted from the others, as a "
		"test. "
		"Names the greatest number that --gpu takes. With --no-gpu the program is recorded "
		"here, and at that number once more.",
	.examples = "  cufrag scale --at 2,4,8 b2.cft b4.cft b8.cft --to 16,32 --gpu l40s\n"
		    "  cufrag scale --no-gpu --vary '{batch}=2,4,8' -- python train.py "
		    "--batch {batch}\n"
		    "  cufrag scale --at 4,8 b4.cft b8.cft --to 24 -o b24.cft\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_JSON | FRAG_CLI_CSV | FRAG_CLI_OUT |
		  FRAG_CLI_SEED,
	.options = FRAG_CMD_OPTIONS(options, frag_pretend_rows),
	.options_size = sizeof(struct options),
	.init = init,
	.run = run,
	.release = release,
};
