/* SPDX-License-Identifier: Apache-2.0 */
/* The document of compare and replay: device, settings, traces, results, their spread. */
#include "rows.h"

#define DEVICE(F, P, S) \
	F(S, TEXT, kind, r->device, NULL, "sim, cuda or null") \
	F(S, TEXT, name, r->card.name, NULL, "of the card") \
	F(S, BYTES, total_bytes, r->card.total_bytes, NULL, "memory of the card") \
	F(S, BYTES, context_bytes, r->card.context_bytes, NULL, \
	  "part of it that the CUDA context takes") \
	F(S, BYTES, granule_bytes, r->card.granule_bytes, NULL, "of physical memory") \
	F(S, BOOL, modelled, r->card.modelled, NULL, "driver times are modelled, not measured") \
	F(S, TEXT, cost_profile, *r->cost_profile ? r->cost_profile : NULL, NULL, \
	  "source of modelled times; null: not modelled") \
	F(S, BOOL, cost_borrowed, r->cost_borrowed, NULL, \
	  "the profile was measured on another card than the simulated one")
FRAG_VALUED_ROW(device_row, "device", DEVICE, "the card of the replay");

#define SETTINGS(F, P, S) \
	F(S, BYTES, limit_bytes, NULL, "memory limit, where it is the same for all traces") \
	F(S, COUNT, seed, NULL, "of everything random") \
	F(S, TEXT, on_oom, NULL, "stop or skip") \
	F(S, BOOL, free_at_request, NULL, "blocks can be reused before all streams are done")
FRAG_ROW(settings_row, "settings", SETTINGS, "how it was replayed");

#define REPORT(F, P, S) \
	F(S, TEXT, trace, r->count ? r->sections[0].trace : NULL, NULL, "name of the first trace") \
	F(S, OBJECT, device, device, NULL, "the card", .of = &device_row_shape) \
	F(S, OBJECT, settings, settings, NULL, "how it was replayed", .of = &settings_row_shape) \
	F(S, LIST, traces, frag_section_rows(r, a), NULL, "each device of each trace", \
	  .of = &frag_section_shape) \
	F(S, LIST, results, results_of(r, a), NULL, "each policy on each of them", \
	  .of = &frag_result_shape) \
	F(S, LIST, spread, frag_spread_rows(r, a), NULL, \
	  "each policy over all of them; empty for one", .of = &frag_spread_shape) \
	F(S, TEXT, missing, r->missing, NULL, "traces that an interruption left out")
FRAG_VALUED_ROW_AS(, frag_report_shape, report_row, "compare", REPORT,
		   "policies on traces; `replay` writes the same for one policy");

/* That held for all of them; each has its own, too. */
static uint64_t common_limit(const struct frag_report *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->sections[i].limit_bytes != r->sections[0].limit_bytes)
			return UINT64_MAX;
	return r->count ? r->sections[0].limit_bytes : r->limit_bytes;
}

static struct frag_rows results_of(const struct frag_report *r, struct frag_answer *a)
{
	struct frag_result_row *rows;
	size_t count = 0, n = 0;

	for (size_t i = 0; i < r->count; i++)
		count += r->sections[i].count;
	rows = frag_answer_new(a, count, sizeof(*rows));
	for (size_t i = 0; rows && i < r->count; i++)
		for (size_t k = 0; k < r->sections[i].count; k++)
			frag_result_row(r, &r->sections[i], &r->sections[i].results[k], a,
					&rows[n++]);
	return (struct frag_rows){ rows, n };
}

void frag_report_data(const struct frag_report *r, struct frag_answer *a)
{
	struct device_row *device = frag_answer_new(a, 1, sizeof(*device));
	struct settings_row *settings = frag_answer_new(a, 1, sizeof(*settings));
	struct report_row *x = frag_answer_new(a, 1, sizeof(*x));

	if (!device || !settings || !x)
		return;
	*device = FRAG_ROW_VALUES(device_row, DEVICE);
	*settings = (struct settings_row){ common_limit(r), r->seed, r->skip_oom ? "skip" : "stop",
					   r->free_at_request };
	*x = FRAG_ROW_VALUES(report_row, REPORT);
	for (size_t i = 0; i < r->count; i++)
		a->estimated |= r->sections[i].estimated;
	frag_answer_data(a, &frag_report_shape, x);
	frag_answer_csv(a, &frag_result_shape, x->results.rows, x->results.count);
}
