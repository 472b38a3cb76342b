/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag list policies|devices|formats|gpus|metrics: what this build knows. Each
 * kind fills one table (text) and one array (JSON) from the registry it names.
 */
#include <string.h>

#include <frag/metrics.h>
#include <frag/opt.h>
#include <frag/policy.h>
#include <frag/trace.h>

#include "cli/sweep/sweep_columns.h"
#include "list.h"

#define CUDA_DEVICES_MAX 64

/* One row: cells for the text, an object for JSON. */
struct sink {
	struct frag_table table;
	json_t *array;
};

/* Multiprocessors and compute capability, as a program sees them; chip: NULL = no CUDA card. */
static void add_chip(struct frag_table *t, const struct frag_gpu_chip *chip)
{
	if (chip) {
		frag_table_cell(t, "%d", chip->multiprocessors);
		frag_table_cell(t, "%d.%d", chip->major, chip->minor);
	} else {
		frag_table_cell(t, "-");
		frag_table_cell(t, "-");
	}
}

static void put_chip(json_t *row, const struct frag_gpu_chip *chip)
{
	char text[32];

	if (!row || !chip)
		return;
	snprintf(text, sizeof(text), "%d.%d", chip->major, chip->minor);
	json_object_set_new(row, "multiprocessors", json_integer(chip->multiprocessors));
	json_object_set_new(row, "compute_capability", json_string(text));
}

static void add_gpus(struct sink *s)
{
	static const char *const names[] = { "name", "card",	   "memory",	   "context",
					     "SMs",  "capability", "driver calls", "source" };
	const struct frag_gpu *gpus;
	static const char *const spare[] = { "driver calls", "capability", "SMs",
					     "context",	     "source",	   NULL };
	json_t *row;
	size_t n;

	frag_list_heads(&s->table, FRAG_ARRAY_LEN(names), 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5,
			names);
	s->table.spare = spare;
	gpus = frag_gpu_list(&n);
	for (size_t i = 0; i < n; i++) {
		const struct frag_gpu *g = &gpus[i];

		frag_table_cell(&s->table, "%s", g->name);
		frag_table_cell(&s->table, "%s", g->label);
		frag_table_cell(&s->table, "%s", FRAG_BYTES(g->total_bytes));
		frag_table_cell(&s->table, "%s", FRAG_BYTES(g->context_bytes));
		add_chip(&s->table, frag_gpu_chip_find(g->name));
		frag_table_cell(&s->table, "%s%s",
				strcmp(g->profile, g->name) ? "as on " : "measured",
				strcmp(g->profile, g->name) ? g->profile : "");
		frag_table_cell(&s->table, "%s", g->source);
		row = json_pack("{s:s, s:s, s:I, s:I, s:s, s:s}", "name", g->name, "label",
				g->label, "total_bytes", (json_int_t)g->total_bytes,
				"context_bytes", (json_int_t)g->context_bytes, "cost_profile",
				g->profile, "source", g->source);
		put_chip(row, frag_gpu_chip_find(g->name));
		json_array_append_new(s->array, row);
	}
}

static void add_metric(struct sink *s, const char *name, const char *unit, const char *help)
{
	frag_table_cell(&s->table, "%s", name);
	frag_table_cell(&s->table, "%s", *unit ? unit : "-");
	frag_table_cell(&s->table, "%s", help);
	json_array_append_new(
		s->array, json_pack("{s:s, s:s, s:s}", "name", name, "unit", unit, "help", help));
}

/* What a replay gives, then what else is a column in the results of a sweep. */
static void add_metrics(struct sink *s)
{
	static const char *const names[] = { "metric", "unit", "meaning" };
	const struct frag_metric_info *list;
	struct frag_column c;
	size_t n;

	frag_list_heads(&s->table, FRAG_ARRAY_LEN(names), 0, names);
	list = frag_metric_list(&n);
	for (size_t i = 0; i < n; i++)
		add_metric(s, list[i].name, list[i].unit, list[i].help);
	for (size_t i = 0; (c = frag_sweep_trace_column(i)).name; i++)
		add_metric(s, c.name, c.unit, c.help);
	for (size_t i = 0; (c = frag_sweep_item_column(i)).name; i++)
		if (!c.metric && strcmp(c.name, "trace") != 0) /* a column of both */
			add_metric(s, c.name, c.unit, c.help);
}

static void add_formats(struct sink *s)
{
	static const char *const names[] = { "format", "what it is" };
	const struct frag_reader_ops *const *list;
	size_t n;

	frag_list_heads(&s->table, FRAG_ARRAY_LEN(names), 0, names);
	list = frag_reader_list(&n);
	for (size_t i = 0; i < n; i++) {
		frag_table_cell(&s->table, "%s", list[i]->name);
		frag_table_cell(&s->table, "%s", list[i]->summary);
		json_array_append_new(s->array, json_pack("{s:s, s:s}", "name", list[i]->name,
							  "summary", list[i]->summary));
	}
}

/* dev NULL: not there, for the reason in err. Closes it. */
static void add_device(struct sink *s, const char *name, struct frag_device *dev,
		       const struct frag_err *err)
{
	struct frag_device_info info;
	char can[120];

	frag_table_cell(&s->table, "%s", name);
	if (!dev) {
		frag_table_cell(&s->table, "not here: %s", err->msg);
		frag_table_cell(&s->table, "-");
		frag_table_cell(&s->table, "-");
		json_array_append_new(s->array, json_pack("{s:s, s:b, s:s}", "name", name,
							  "available", 0, "reason", err->msg));
		return;
	}
	frag_dev_info(dev, &info);
	frag_policy_needs_text(info.can, can, sizeof(can));
	frag_table_cell(&s->table, "%s",
			strcmp(info.name, name) != 0 ? info.name : dev->ops->summary);
	if (!strcmp(dev->ops->name, "null"))
		frag_table_cell(&s->table, "endless");
	else
		frag_table_cell(&s->table, "%s", FRAG_BYTES(info.total_bytes));
	frag_table_cell(&s->table, "%s", can);
	json_array_append_new(s->array,
			      json_pack("{s:s, s:b, s:s, s:s, s:I, s:I, s:s, s:b}", "name", name,
					"available", 1, "label", info.name, "summary",
					dev->ops->summary, "total_bytes",
					(json_int_t)FRAG_MIN(info.total_bytes, (uint64_t)INT64_MAX),
					"granule_bytes", (json_int_t)info.granule_bytes, "can", can,
					"modelled", info.modelled));
	frag_dev_close(dev);
}

static void add_devices(struct sink *s)
{
	static const char *const names[] = { "device", "what it is", "memory", "can" };
	struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };
	struct frag_device *dev = NULL;
	struct frag_err err = { 0 };
	char name[24];

	frag_list_heads(&s->table, FRAG_ARRAY_LEN(names), 1u << 2, names);
	add_device(s, "sim", frag_sim_open(&h200, &dev, &err) ? NULL : dev, &err);
	for (int i = 0; i < CUDA_DEVICES_MAX; i++) {
		bool there = !frag_cuda_open(i, &dev, &err);

		if (!there && i)
			break;
		snprintf(name, sizeof(name), "cuda:%d", i);
		add_device(s, name, there ? dev : NULL, &err);
		if (!there)
			break;
	}
	add_device(s, "null", frag_null_open(&dev, &err) ? NULL : dev, &err);
}

/* ---- the command ------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*add)(struct sink *s); /* NULL: policies, which have their own file */
} kinds[] = {
	{ "policies", NULL }, { "devices", add_devices }, { "formats", add_formats },
	{ "gpus", add_gpus }, { "metrics", add_metrics },
};

static int find_kind(const char *name, size_t *out, struct frag_err *err)
{
	const char *names[FRAG_ARRAY_LEN(kinds) + 1] = { NULL };
	const char *near;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(kinds); i++) {
		names[i] = kinds[i].name;
		if (!strcmp(kinds[i].name, name)) {
			*out = i;
			return 0;
		}
	}
	near = frag_nearest(name, names);
	if (near)
		return frag_fail(err, FRAG_EUSAGE, "cannot list '%.60s'; did you mean '%s'?", name,
				 near);
	return frag_fail(err, FRAG_EUSAGE,
			 "cannot list '%.60s'; known are policies, devices, formats, gpus and "
			 "metrics",
			 name);
}

static int write_json(const struct frag_cli *cli, const char *kind, json_t *array,
		      struct frag_err *err)
{
	json_t *root = frag_cli_json_head(cli);

	if (json_object_set_new(root, kind, array)) {
		json_decref(root);
		root = NULL;
	}
	return frag_cli_json_write(cli, root, err);
}

static int list_policies(const struct frag_cli *cli, const struct frag_list_options *o,
			 struct frag_err *err)
{
	struct frag_policy_spec *spec;

	/* the parser knows how to say that a policy is unknown */
	if (o->only && !frag_policy_find(o->only)) {
		FRAG_TRY(frag_policy_spec_parse(o->only, &spec, err));
		frag_policy_spec_destroy(spec);
		return frag_fail(err, FRAG_EUSAGE, "'%.60s' is not the plain name of a policy",
				 o->only);
	}
	if (cli->json)
		return write_json(cli, "policies", frag_list_policies_json(o), err);
	return frag_list_policies(cli, o, err);
}

static int list_table(const struct frag_cli *cli, size_t kind, bool markdown, struct frag_err *err)
{
	struct sink s = { .array = json_array() };
	int rc;

	kinds[kind].add(&s);
	if (cli->json)
		rc = write_json(cli, kinds[kind].name, json_incref(s.array), err);
	else if (markdown)
		rc = frag_list_markdown(&s.table, err);
	else
		rc = frag_list_print(&s.table, 0, err);
	json_decref(s.array);
	frag_table_release(&s.table);
	return rc;
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_FLAG, "all", 'a', FRAG_ARG_AT(struct frag_list_options, all),
	  .help = "hidden policies, too" },
	{ FRAG_ARG_FLAG, "markdown", FRAG_ARG_AT(struct frag_list_options, markdown),
	  .help = "as tables of Markdown, for docs/" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct frag_list_options *o = values;
	size_t kind = 0;

	FRAG_TRY(find_kind(cli->operands[0], &kind, err));
	o->only = cli->operands_count > 1 ? cli->operands[1] : NULL;
	if (!kinds[kind].add)
		return list_policies(cli, o, err);
	if (o->only)
		return frag_fail(err, FRAG_EUSAGE, "unexpected operand '%.60s'", o->only);
	return list_table(cli, kind, o->markdown, err);
}

const struct frag_cmd frag_cmd_list = {
	.name = "list",
	.summary = "policies, devices, formats, gpus or metrics that this build knows",
	.group = FRAG_GROUP_MEASURE,
	.operands = "policies|devices|formats|gpus|metrics [POLICY]",
	.operands_min = 1,
	.operands_max = 2,
	.about = "Lists what this build knows. For policies: where the rules come from, what the "
		 "device must be able to do, and every option with type, range, default and "
		 "meaning.",
	.examples = "  cufrag list policies buddy\n"
		    "  cufrag list gpus --json -\n",
	.shared = FRAG_CLI_JSON,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct frag_list_options),
	.run = run,
};
