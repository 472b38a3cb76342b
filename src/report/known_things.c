/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, formats, cards and metrics that this build knows; see known_things.h. */
#include "known_things.h"

#include <stdio.h>
#include <string.h>

#include <frag/device.h>
#include <frag/policy.h>
#include <frag/trace.h>

#define DEVICES_MAX 66u /* sim, null and 64 cards */

/* ---- cards ------------------------------------------------------------------------------------ */

struct gpu_row {
	const char *name, *label, *cost_profile, *cost_text, *source, *compute_capability;
	uint64_t total_bytes, context_bytes, multiprocessors;
};

static const struct frag_field gpu_fields[] = {
	FRAG_FIELD(TEXT, struct gpu_row, name, "name", "what --gpu takes"),
	FRAG_FIELD(TEXT, struct gpu_row, label, "card", "its full name"),
	FRAG_FIELD(BYTES, struct gpu_row, total_bytes, "memory",
		   "total memory, as the CUDA runtime reports it"),
	FRAG_FIELD(BYTES, struct gpu_row, context_bytes, "context",
		   "what the CUDA context takes of it", .spare = 4),
	FRAG_FIELD(COUNT, struct gpu_row, multiprocessors, "SMs", "multiprocessors", .spare = 3),
	FRAG_FIELD(TEXT, struct gpu_row, compute_capability, "capability", "compute capability",
		   .spare = 2, .right = true),
	FRAG_FIELD(TEXT, struct gpu_row, cost_profile, NULL,
		   "the card whose driver calls were measured"),
	FRAG_FIELD_SHOWN(TEXT, struct gpu_row, cost_text, "driver calls",
			 "where their cost was measured", .spare = 1),
	FRAG_FIELD(TEXT, struct gpu_row, source, "source", "of the memory figures", .spare = 5),
	FRAG_FIELD_END,
};
static const struct frag_shape gpu_shape =
	FRAG_SHAPE("gpu", struct gpu_row, gpu_fields, "a known card");

int frag_known_gpus(struct frag_answer *a, struct frag_known *known, struct frag_err *err)
{
	size_t n;
	const struct frag_gpu *gpus = frag_gpu_list(&n);
	struct gpu_row *rows = frag_answer_new(a, n, sizeof(*rows));

	FRAG_CHECK_ALLOC(rows, "list of cards", err);
	for (size_t i = 0; i < n; i++) {
		const struct frag_gpu *g = &gpus[i];
		const struct frag_gpu_chip *chip = frag_gpu_chip_find(g->name);
		bool own = !strcmp(g->profile, g->name);

		rows[i] = (struct gpu_row){
			.name = g->name,
			.label = g->label,
			.cost_profile = g->profile,
			.cost_text =
				own ? "measured" : frag_answer_print(a, "as on %s", g->profile),
			.source = g->source,
			.total_bytes = g->total_bytes,
			.context_bytes = g->context_bytes,
			.multiprocessors = chip ? (uint64_t)chip->multiprocessors : UINT64_MAX,
			.compute_capability =
				chip ? frag_answer_print(a, "%d.%d", chip->major, chip->minor)
				     : NULL,
		};
	}
	known->gpus = (struct frag_rows){ rows, n };
	frag_answer_csv(a, &gpu_shape, rows, n);
	frag_answer_table(a, &gpu_shape, rows, n)->wraps = true;
	return 0;
}

/* ---- metrics and formats ------------------------------------------------------------------------ */

static const struct frag_field metric_fields[] = {
	FRAG_FIELD(TEXT, struct frag_known_metric, name, "metric", "key in JSON, column in CSV"),
	FRAG_FIELD(TEXT, struct frag_known_metric, unit, "unit",
		   "B, ns, 1/s; null = a plain number"),
	FRAG_FIELD(TEXT, struct frag_known_metric, help, "meaning", "what it counts"),
	FRAG_FIELD_END,
};
static const struct frag_shape metric_shape = FRAG_SHAPE(
	"metric", struct frag_known_metric, metric_fields, "a result of a replay or a sweep");

void frag_known_metrics(struct frag_answer *a, struct frag_known *known,
			const struct frag_known_metric *rows, size_t count)
{
	known->metrics = (struct frag_rows){ rows, count };
	frag_answer_csv(a, &metric_shape, rows, count);
	frag_answer_table(a, &metric_shape, rows, count)->wraps = true;
}

struct format_row {
	const char *name, *summary;
};

static const struct frag_field format_fields[] = {
	FRAG_FIELD(TEXT, struct format_row, name, "format", "what --format of import takes"),
	FRAG_FIELD(TEXT, struct format_row, summary, "what it is",
		   "whose format, and what it records"),
	FRAG_FIELD_END,
};
static const struct frag_shape format_shape = FRAG_SHAPE("format", struct format_row, format_fields,
							 "a format that recordings are read from");

int frag_known_formats(struct frag_answer *a, struct frag_known *known, struct frag_err *err)
{
	size_t n;
	const struct frag_reader_ops *const *list = frag_reader_list(&n);
	struct format_row *rows = frag_answer_new(a, n, sizeof(*rows));

	FRAG_CHECK_ALLOC(rows, "list of formats", err);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct format_row){ list[i]->name, list[i]->summary };
	known->formats = (struct frag_rows){ rows, n };
	frag_answer_csv(a, &format_shape, rows, n);
	frag_answer_table(a, &format_shape, rows, n)->wraps = true;
	return 0;
}

/* ---- devices ------------------------------------------------------------------------------------ */

struct device_row {
	const char *name, *shown, *label, *summary, *can, *reason;
	bool available, modelled;
	uint64_t total_bytes, granule_bytes;
};

static const struct frag_field device_fields[] = {
	FRAG_FIELD(TEXT, struct device_row, name, "device", "what --device takes"),
	FRAG_FIELD(BOOL, struct device_row, available, NULL, "can it be used here"),
	FRAG_FIELD(TEXT, struct device_row, reason, NULL, "why not"),
	FRAG_FIELD_SHOWN(TEXT, struct device_row, shown, "what it is",
			 "the card, or why it cannot be used here"),
	FRAG_FIELD(TEXT, struct device_row, label, NULL, "name of the card"),
	FRAG_FIELD(TEXT, struct device_row, summary, NULL, "what kind of device it is"),
	FRAG_FIELD(BYTES, struct device_row, total_bytes, "memory", "its memory; null = endless"),
	FRAG_FIELD(BYTES, struct device_row, granule_bytes, NULL,
		   "smallest piece of physical memory"),
	FRAG_FIELD(TEXT, struct device_row, can, "can", "which kinds of memory it serves"),
	FRAG_FIELD(BOOL, struct device_row, modelled, NULL, "simulated, not a real card"),
	FRAG_FIELD_END,
};
static const struct frag_shape device_shape =
	FRAG_SHAPE("device", struct device_row, device_fields, "where a replay takes memory from");

/* dev NULL: not there, for the reason in err. Closes it. */
static struct device_row device_row(struct frag_answer *a, const char *name,
				    struct frag_device *dev, const struct frag_err *why)
{
	struct frag_device_info info;
	struct device_row row = { .name = frag_answer_print(a, "%s", name) };
	char can[120];

	row.total_bytes = row.granule_bytes = UINT64_MAX;
	if (!dev) {
		row.reason = frag_answer_print(a, "%s", why->msg);
		row.shown = frag_answer_print(a, "not here: %s", why->msg);
		return row;
	}
	frag_dev_info(dev, &info);
	frag_policy_needs_text(info.can, can, sizeof(can));
	row.available = true;
	row.label = frag_answer_print(a, "%s", info.name);
	row.summary = dev->ops->summary;
	row.shown = strcmp(info.name, name) != 0 ? row.label : row.summary;
	row.granule_bytes = info.granule_bytes;
	row.can = frag_answer_print(a, "%s", can);
	row.modelled = info.modelled;
	if (strcmp(dev->ops->name, "null") != 0)
		row.total_bytes = info.total_bytes;
	frag_dev_close(dev);
	return row;
}

int frag_known_devices(struct frag_answer *a, struct frag_known *known, struct frag_err *err)
{
	struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };
	struct device_row *rows = frag_answer_new(a, DEVICES_MAX, sizeof(*rows));
	struct frag_device *dev = NULL;
	struct frag_err why = { 0 };
	bool there = true;
	size_t n = 0;

	FRAG_CHECK_ALLOC(rows, "list of devices", err);
	rows[n++] = device_row(a, "sim", frag_sim_open(&h200, &dev, &why) ? NULL : dev, &why);
	for (int i = 0; there && n + 1 < DEVICES_MAX; i++) {
		char name[24];

		there = !frag_cuda_open(i, &dev, &why);
		snprintf(name, sizeof(name), "cuda:%d", i);
		/* the first one that is missing is not said where there are others */
		if (there || !i)
			rows[n++] = device_row(a, name, there ? dev : NULL, &why);
	}
	rows[n++] = device_row(a, "null", frag_null_open(&dev, &why) ? NULL : dev, &why);
	known->devices = (struct frag_rows){ rows, n };
	frag_answer_csv(a, &device_shape, rows, n);
	frag_answer_table(a, &device_shape, rows, n)->wraps = true;
	return 0;
}

/* ---- all of it ---------------------------------------------------------------------------------- */

static const struct frag_field known_fields[] = {
	FRAG_FIELD(LIST, struct frag_known, policies, NULL, "of `list policies`",
		   .of = &frag_known_policy_shape),
	FRAG_FIELD(LIST, struct frag_known, short_names, NULL, "of `list policies`",
		   .of = &frag_known_short_shape),
	FRAG_FIELD(LIST, struct frag_known, devices, NULL, "of `list devices`",
		   .of = &device_shape),
	FRAG_FIELD(LIST, struct frag_known, formats, NULL, "of `list formats`",
		   .of = &format_shape),
	FRAG_FIELD(LIST, struct frag_known, gpus, NULL, "of `list gpus`", .of = &gpu_shape),
	FRAG_FIELD(LIST, struct frag_known, metrics, NULL, "of `list metrics`",
		   .of = &metric_shape),
	FRAG_FIELD_END,
};
const struct frag_shape frag_known_shape =
	FRAG_SHAPE("list", struct frag_known, known_fields,
		   "what this build knows; one of the lists has rows");
