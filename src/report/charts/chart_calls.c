/* SPDX-License-Identifier: Apache-2.0 */
/* Calls into the driver and the time they take, per policy. */
#include "chart.h"

#include <inttypes.h>

#define COLUMNS(X, s) \
	X(s, COUNT, rank, i) \
	X(s, TEXT, policy, r->policy) \
	X(s, TEXT, call, c < FRAG_CALL_COUNT ? frag_call_name((enum frag_call)c) : "all") \
	X(s, COUNT, count, st->count) \
	X(s, COUNT, failed, st->failed) \
	X(s, BYTES, bytes, st->bytes) \
	X(s, NS, ns, st->ns)
FRAG_CSV_ROW(row, COLUMNS)

/* One row per kind of call that was made, and one that sums them up ("all"). */
static struct frag_rows rows(const struct frag_chart_job *job)
{
	size_t count = job->section->count, n = 0;
	struct row *list =
		frag_answer_new(job->answer, count * (FRAG_CALL_COUNT + 1), sizeof(*list));

	for (size_t i = 0; list && i < count; i++) {
		const struct frag_result *r = frag_chart_result(job, i);
		struct frag_call_stat all = { 0 };

		for (unsigned c = 0; c <= FRAG_CALL_COUNT; c++) {
			const struct frag_call_stat *st = c < FRAG_CALL_COUNT ? &r->calls[c] : &all;

			if (st != &all && !st->count && !st->failed)
				continue;
			list[n++] = FRAG_CSV_VALUES(row, COLUMNS);
			all.count += st->count;
			all.failed += st->failed;
			all.bytes += st->bytes;
			all.ns += st->ns;
		}
	}
	return (struct frag_rows){ list, n };
}

static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *most = &s->results[0];
	double ratio;

	for (size_t i = 1; i < s->count; i++)
		if (s->results[i].m.modelled_ns > most->m.modelled_ns)
			most = &s->results[i];
	if (!most->m.modelled_ns)
		return;
	frag_text_addf(&out->text, "%s spends most in the driver: %s", most->policy,
		       frag_title_ns(out, "driver_ns", most->m.modelled_ns));
	ratio = frag_section_driver_ratio(s, most);
	if (s->duration_us)
		frag_text_addf(&out->text, ", %s of the recorded time",
			       frag_title_percent(out, "driver_ratio", ratio, ratio < 0.1 ? 1 : 0));
}

const struct frag_chart_ops frag_chart_calls = {
	.name = "calls",
	.rank = 40,
	.heading = "Driver calls and driver time",
	FRAG_CHART_HOOKS,
	.caption = "Left: how often each policy called the driver. Right: time spent in those "
		   "calls. Both axes are logarithmic. A policy that saves memory by mapping or "
		   "freeing often pays for it here; policies are in the order of their peak.",
	.extra = frag_chart_time_kind,
};
