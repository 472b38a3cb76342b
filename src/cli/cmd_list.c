/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag list policies|devices|formats|gpus|metrics: what this build knows. */
#include <string.h>

#include <frag/metrics.h>
#include <frag/policy.h>

#include "cli/common.h"
#include "fleet/results.h"
#include "report/known_things.h"

#define METRICS_MAX 256u

struct options {
	bool all; /* hidden policies, too */
};

/* What a replay gives, then what else is a column in the results of a sweep. */
static int list_metrics(struct frag_answer *a, struct frag_known *known, struct frag_err *err)
{
	struct frag_known_metric *rows = frag_answer_new(a, METRICS_MAX, sizeof(*rows));
	const struct frag_metric_info *list;
	struct frag_column c;
	size_t n, used = 0;

	FRAG_CHECK_ALLOC(rows, "list of metrics", err);
	list = frag_metric_list(&n);
	FRAG_ASSERT(n < METRICS_MAX / 2);
	for (size_t i = 0; i < n; i++)
		rows[used++] =
			(struct frag_known_metric){ list[i].name, list[i].unit, list[i].help };
	for (size_t i = 0; (c = frag_results_trace_column(i)).name && used < METRICS_MAX; i++)
		rows[used++] = (struct frag_known_metric){ c.name, c.unit, c.help };
	for (size_t i = 0; (c = frag_results_item_column(i)).name && used < METRICS_MAX; i++)
		if (!c.metric && strcmp(c.name, "trace") != 0) /* a column of both */
			rows[used++] = (struct frag_known_metric){ c.name, c.unit, c.help };
	for (size_t i = 0; i < used; i++)
		rows[i].unit = *rows[i].unit ? rows[i].unit : NULL;
	frag_known_metrics(a, known, rows, used);
	return 0;
}

static const struct {
	const char *name;
	frag_known_fn list; /* NULL: policies, which take options */
} kinds[] = {
	{ "policies", NULL },
	{ "devices", frag_known_devices },
	{ "formats", frag_known_formats },
	{ "gpus", frag_known_gpus },
	{ "metrics", list_metrics },
};

static int find_kind(const char *name, size_t *out, struct frag_err *err)
{
	const char *names[FRAG_ARRAY_LEN(kinds) + 1] = { NULL };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(kinds); i++) {
		names[i] = kinds[i].name;
		if (!strcmp(kinds[i].name, name)) {
			*out = i;
			return 0;
		}
	}
	return frag_fail_unknown(err, "cannot list", name, names,
				 "; known are policies, devices, formats, gpus and metrics");
}

/* The parser knows how to say that a policy is unknown. */
static int check_policy(const char *name, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	if (!name || frag_policy_find(name))
		return 0;
	FRAG_TRY(frag_policy_spec_parse(name, &spec, err));
	return FRAG_USAGE(err, "'%.60s' is not the plain name of a policy", name);
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_FLAG, "all", 'a', FRAG_ARG_AT(struct options, all),
	  .help = "hidden policies, too" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { .title = "What cufrag knows" };
	const struct options *o = values;
	const char *only = cli->operands_count > 1 ? cli->operands[1] : NULL;
	struct frag_known known = { 0 };
	size_t kind = 0;

	FRAG_TRY(find_kind(cli->operands[0], &kind, err));
	if (only && kinds[kind].list)
		return FRAG_USAGE(err, "unexpected operand '%.60s'", only);
	FRAG_TRY(check_policy(only, err));
	FRAG_TRY(kinds[kind].list ? kinds[kind].list(&a, &known, err)
				  : frag_known_policies(&a, &known, only, o->all, err));
	frag_answer_data(&a, &frag_known_shape, &known);
	return frag_cli_show_answer(cli, &a, err);
}

const struct frag_cmd frag_cmd_list = {
	.name = "list",
	.summary = "policies, devices, formats, gpus or metrics that this build knows",
	.group = FRAG_GROUP_MEASURE,
	.operands = "policies|devices|formats|gpus|metrics [POLICY]",
	.about = "Lists what this build knows. For policies: where the rules come from, what the "
		 "device must be able to do, and every option with type, range, default and "
		 "meaning.",
	.examples = "  cufrag list gpus\n"
		    "  cufrag list policies buddy\n"
		    "  cufrag list metrics --json -\n",
	.answer = &frag_known_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.shared = FRAG_CLI_PAGE,
	.run = run,
};
