/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, formats, cards and metrics that this build knows; see known_things.h. */
#include "known_things.h"

#include <stdio.h>
#include <string.h>

#include <frag/device.h>
#include <frag/policy.h>
#include <frag/trace.h>

#define DEVICES_MAX 66u /* sim, null and 64 cards */

/* The list that was asked for: CSV, table and, as what is returned, JSON. */
static struct frag_rows show(struct frag_answer *a, const struct frag_shape *shape,
			     const void *rows, size_t count)
{
	frag_answer_csv(a, shape, rows, count);
	frag_answer_table(a, shape, rows, count)->wraps = true;
	return (struct frag_rows){ rows, count };
}

/* ---- cards ------------------------------------------------------------------------------ */

#define GPU(F, P, S) \
	F(S, TEXT, name, g->name, "name", "what --gpu takes") \
	F(S, TEXT, label, g->label, "card", "its full name") \
	F(S, BYTES, total_bytes, g->total_bytes, "memory", \
	  "total memory, as the CUDA runtime reports it") \
	F(S, BYTES, context_bytes, g->context_bytes, "context", \
	  "part of it that the CUDA context takes", .spare = 4) \
	F(S, COUNT, multiprocessors, chip ? (uint64_t)chip->multiprocessors : UINT64_MAX, "SMs", \
	  "multiprocessors", .spare = 3) \
	F(S, TEXT, compute_capability, \
	  chip ? frag_answer_print(a, "%d.%d", chip->major, chip->minor) : NULL, "capability", \
	  "compute capability", .spare = 2, .right = true) \
	F(S, TEXT, cost_profile, g->profile, NULL, "the card whose driver calls were measured") \
	P(S, TEXT, cost_text, own ? "measured" : frag_answer_print(a, "as on %s", g->profile), \
	  "driver calls", "where their cost was measured", .spare = 1) \
	F(S, TEXT, source, g->source, "source", "of the memory figures", .spare = 5)
FRAG_VALUED_ROW(gpu, "gpu", GPU, "a known card");

int frag_known_gpus(struct frag_answer *a, struct frag_known *known, struct frag_err *err)
{
	size_t n;
	const struct frag_gpu *gpus = frag_gpu_list(&n);
	struct gpu *rows = frag_answer_new(a, n, sizeof(*rows));

	FRAG_CHECK_ALLOC(rows, "list of cards", err);
	for (size_t i = 0; i < n; i++) {
		const struct frag_gpu *g = &gpus[i];
		const struct frag_gpu_chip *chip = frag_gpu_chip_find(g->name);
		bool own = !strcmp(g->profile, g->name);

		rows[i] = FRAG_ROW_VALUES(gpu, GPU);
	}
	known->gpus = show(a, &gpu_shape, rows, n);
	return 0;
}

/* ---- metrics and formats ---------------------------------------------------------------- */

FRAG_ROW_SHAPE(static, metric_shape, frag_known_metric, "metric", FRAG_KNOWN_METRIC,
	       "a result of a replay or a sweep");

void frag_known_metrics(struct frag_answer *a, struct frag_known *known,
			const struct frag_known_metric *rows, size_t count)
{
	known->metrics = show(a, &metric_shape, rows, count);
}

#define FORMAT(F, P, S) \
	F(S, TEXT, name, "format", "what --format of import takes") \
	F(S, TEXT, summary, "what it is", "whose format, and what it records")
FRAG_ROW(format, "format", FORMAT, "a format that recordings are read from");

int frag_known_formats(struct frag_answer *a, struct frag_known *known, struct frag_err *err)
{
	size_t n;
	const struct frag_reader_ops *const *list = frag_reader_list(&n);
	struct format *rows = frag_answer_new(a, n, sizeof(*rows));

	FRAG_CHECK_ALLOC(rows, "list of formats", err);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct format){ list[i]->name, list[i]->summary };
	known->formats = show(a, &format_shape, rows, n);
	return 0;
}

/* ---- devices ---------------------------------------------------------------------------- */

#define DEVICE(F, P, S) \
	F(S, TEXT, name, "device", "what --device takes") \
	F(S, BOOL, available, NULL, "can it be used here") \
	F(S, TEXT, reason, NULL, "why not") \
	P(S, TEXT, shown, "what it is", "the card, or why it cannot be used here") \
	F(S, TEXT, label, NULL, "name of the card") \
	F(S, TEXT, summary, NULL, "what kind of device it is") \
	F(S, BYTES, total_bytes, "memory", "its memory; null = endless") \
	F(S, BYTES, granule_bytes, NULL, "smallest piece of physical memory") \
	F(S, TEXT, can, "can", "which kinds of memory it serves") \
	F(S, BOOL, modelled, NULL, "simulated, not a real card")
FRAG_ROW(device, "device", DEVICE, "where a replay takes memory from");

/* dev NULL: not there, for the reason in err. Closes it. */
static struct device device_row(struct frag_answer *a, const char *name, struct frag_device *dev,
				const struct frag_err *why)
{
	struct frag_device_info info;
	struct device row = { .name = frag_answer_print(a, "%s", name) };
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
	struct device *rows = frag_answer_new(a, DEVICES_MAX, sizeof(*rows));
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
	known->devices = show(a, &device_shape, rows, n);
	return 0;
}

/* ---- all of it -------------------------------------------------------------------------- */

FRAG_ROW_SHAPE(, frag_known_shape, frag_known, "list", FRAG_KNOWN,
	       "what this build knows; one of the lists has rows");
