/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a sweep's results; see results_columns.h. */
#include "results_columns.h"

#include <frag/base.h>
#include <frag/metrics.h>

#include "report/report.h"

#define METRICS_MAX 256u
#define OWN(...) \
	{ \
		__VA_ARGS__, false \
	}

struct frag_column frag_results_trace_column(size_t i)
{
	static const struct frag_column columns[] = {
		OWN("path", "TEXT NOT NULL", "", "of a sweep: where the trace was found"),
		OWN("trace", "TEXT NOT NULL", "", "of a sweep: XXH3-128 of the file"),
		OWN("name", "TEXT", "", "of a sweep: name that the trace gives itself"),
		OWN("format", "TEXT", "", "of a sweep: format of the trace"),
		OWN("settings", "TEXT", "", "of a sweep: recorded allocator settings"),
		OWN("devices", "INTEGER", "", "of a sweep: devices of the trace"),
		OWN("events", "INTEGER", "", "of a sweep: events of all its devices"),
		OWN("start_us", "INTEGER", "us",
		    "of a sweep: Unix time of the first event, 0 = unknown"),
		OWN("duration_us", "INTEGER", "us", "of a sweep: from the first event to the last"),
		OWN("estimate", "INTEGER", "", "of a sweep: 1 = recorded without a GPU"),
		OWN("error", "TEXT", "", "of a sweep: why the trace failed, empty = it did not"),
	};

	return i < FRAG_ARRAY_LEN(columns) ? columns[i] : (struct frag_column){ 0 };
}

struct frag_column frag_results_item_column(size_t i)
{
	static const struct frag_column columns[] = {
		OWN("item", "TEXT NOT NULL", "", "of a sweep: key of the result"),
		OWN("trace", "TEXT NOT NULL", "", "of a sweep: XXH3-128 of the file"),
		OWN("device", "INTEGER", "", "of a sweep: device of the trace"),
		OWN("policy", "TEXT", "", "of a sweep: policy and settings"),
		OWN("recorded", "INTEGER", "", "of a sweep: 1 = the recording's own settings"),
		OWN("gpu", "TEXT", "", "of a sweep: card of --gpus"),
		OWN("limit", "TEXT", "", "of a sweep: limit as it was asked for"),
		OWN("capacity_bytes", "INTEGER", "B", "of a sweep: memory of the card"),
		OWN("context_bytes", "INTEGER", "B",
		    "of a sweep: of it, what the CUDA context takes"),
		OWN("status", "TEXT", "",
		    "of a sweep: completed; refused = a request was; failed = see message"),
		OWN("message", "TEXT", "", "of a sweep: why it failed"),
		OWN("first_oom_event", "INTEGER", "",
		    "of a sweep: index of the first refused request"),
		OWN("first_oom_bytes", "INTEGER", "B", "of a sweep: its size"),
		OWN("min_capacity_bytes", "INTEGER", "B",
		    "of a sweep --fit: smallest card that does"),
		OWN("safe_capacity_bytes", "INTEGER", "B",
		    "of a sweep --fit: from this capacity on no replay failed"),
	};
	static const struct frag_column curve =
		OWN("curve", "TEXT", "",
		    "of a sweep: reserved over time, [[us, bytes], ...] (not in CSV)");
	static struct frag_column all[FRAG_ARRAY_LEN(columns) + METRICS_MAX + 2];
	static size_t n; /* asked for with every row: put together once */

	if (!n) {
		size_t count;
		const struct frag_metric_info *m = frag_metric_list(&count);

		for (size_t k = 0; k < FRAG_ARRAY_LEN(columns); k++)
			all[n++] = columns[k];
		for (size_t k = 0; k < count && k < METRICS_MAX; k++)
			if (!frag_report_is_host(&m[k]))
				all[n++] = (struct frag_column){ m[k].name,
								 m[k].type == FRAG_METRIC_T_U64
									 ? "INTEGER"
									 : "REAL",
								 m[k].unit, m[k].help, true };
		all[n++] = curve;
	}
	return i < n ? all[i] : (struct frag_column){ 0 };
}
