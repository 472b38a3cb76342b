/* SPDX-License-Identifier: Apache-2.0 */
/* The document of compare and replay: device, settings, traces, results, their spread. */
#include "rows.h"

#include <math.h>

#include "recording/ending.h"
#include "recording/settled_shape.h"

/* ---- traces and devices: what is possible, what is advised and what was refused ----------- */

#define OPTIMUM(F, P, S) \
	F(S, BYTES, lower_bound_bytes, NULL, "no allocator can reserve less") \
	F(S, BYTES, placement_bytes, NULL, "height of an offline placement") \
	F(S, TEXT, placement_rule, NULL, "how it was made")
FRAG_ROW(optimum_row, "optimum", OPTIMUM,
	 "what is possible with all knowledge; null: not asked for");

#define ADVICE(F, P, S) \
	F(S, TEXT, take, pick->policy, NULL, "advised policy") \
	F(S, TEXT, conf, x.conf, NULL, \
	  "setting that does it, \"\" = the defaults; null: not a setting") \
	F(S, TEXT, run, x.live == SIZE_MAX ? NULL : s->results[x.live].policy, NULL, \
	  "policy for `cufrag run` that needs even less") \
	F(S, BYTES, reserved_bytes, pick->m.peak_reserved_bytes, NULL, \
	  "peak reserved of the advised policy") \
	F(S, TEXT, compared_with, base->policy, NULL, "policy that savings are counted against") \
	F(S, INT, saved_bytes, INT64_MIN, NULL, "its peak minus that of the advised one") \
	F(S, RATIO, saved_ratio, NAN, NULL, "of its peak") \
	F(S, RATIO, cheap_ratio, FRAG_CHEAP_RATIO, NULL, \
	  "policies that spend less of the recorded time in the driver come first") \
	F(S, TEXT, smallest_card, x.card ? x.card->name : NULL, NULL, \
	  "smallest card with room and the margin, or the cheapest") \
	F(S, TEXT, smallest_card_label, x.card ? x.card->label : NULL, \
	  "card with room and the margin", "its full name", .if_any = true) \
	F(S, BOOL, smallest_card_other_kernels, x.other_kernels, NULL, \
	  "it is of another compute capability than the recording: another kernel " \
	  "choice is likely") \
	F(S, BYTES, spare_bytes, x.card ? x.spare_bytes : UINT64_MAX, "left on it", \
	  "beside its context and the peak reserved", .if_any = true) \
	F(S, RATIO, spare_ratio, \
	  x.card ? (double)x.spare_bytes / (double)x.card->total_bytes : NAN, \
	  "left, part of the card", "left bytes / its memory", .precision = 1, .if_any = true) \
	F(S, TEXT, tight_card, x.tight ? x.tight->name : NULL, NULL, \
	  "smallest card with room, but without the margin") \
	F(S, TEXT, tight_card_label, x.tight ? x.tight->label : NULL, \
	  "would just do, without the margin", "its full name", .if_any = true) \
	F(S, RATIO, margin_ratio, s->headroom.ratio, "margin asked for", \
	  "for libraries, and for inputs longer than those recorded", .if_any = true) \
	F(S, BYTES, margin_bytes, s->headroom.bytes, "margin asked for", \
	  "the margin in bytes, if --margin is in bytes", .if_any = true) \
	F(S, BYTES, outside_bytes, s->headroom.outside_bytes, "held outside of the allocator", \
	  "when recorded; it must have room, too", .if_any = true) \
	F(S, REAL, price_per_hour, price > 0 ? x.card->price_per_hour : NAN, "price an hour", \
	  "of that card", .precision = 2, .if_any = true) \
	F(S, REAL, job_price, price > 0 ? price : NAN, "price of what was recorded", \
	  "of the recorded time on that card", .precision = 3, .if_any = true)
FRAG_VALUED_ROW_AS(, frag_advice_shape, advice_row, "advice", ADVICE,
		   "what to take; null: no policy completes, or nothing was reserved");

#define SECTION(F, P, S) \
	F(S, TEXT, name, s->trace, NULL, "of the trace") \
	F(S, TEXT, format, s->format, NULL, "of its file") \
	F(S, TEXT, conf, s->conf, NULL, \
	  "recorded settings, \"\" = the defaults; null: not recorded") \
	F(S, COUNT, device_ordinal, s->ordinal, NULL, "device of the trace") \
	F(S, COUNT, events_count, s->events_count, NULL, "allocations, frees and others") \
	F(S, COUNT, streams_count, s->streams_count, NULL, "streams that were used") \
	F(S, COUNT, pools_count, s->pools_count, NULL, "private pools, and the common one") \
	F(S, US, duration_us, s->duration_us ? s->duration_us : UINT64_MAX, NULL, \
	  "recorded time; null: the trace has no times") \
	F(S, BOOL, truncated, s->truncated, NULL, "the recorder lost the beginning") \
	F(S, BOOL, estimated, s->estimated, NULL, "recorded without a GPU") \
	F(S, COUNT, initial_blocks_count, s->initial_blocks, NULL, \
	  "blocks that were live when it began") \
	F(S, OBJECT, optimum, optimum_of(s, a), NULL, "lower bound and offline placement", \
	  .of = &optimum_row_shape) \
	F(S, OBJECT, advice, frag_advice_data(s, a), NULL, "what to take", \
	  .of = &frag_advice_shape) \
	F(S, OBJECT, recording, frag_settled_row(a, &s->settled), NULL, \
	  "what settling found about the recording", .of = &frag_settled_shape) \
	F(S, OBJECT, ended_out_of_memory, \
	  frag_ending_row(a, frag_section_title_text(s, a), &s->ending), NULL, \
	  "so that its need is unknown; null: it did not", .of = &frag_ending_shape) \
	F(S, BYTES, limit_bytes, s->limit_bytes, NULL, "memory limit that held for these results") \
	F(S, COUNT, refused_when_recorded_count, frag_refusals_count(s), NULL, \
	  "requests that were refused when recorded") \
	F(S, LIST, refusals, frag_refusals_rows(s, a), NULL, "the first of them", \
	  .of = &frag_refusal_shape) \
	F(S, TEXT, missing, s->missing, NULL, "policies that an interruption left out")
FRAG_VALUED_ROW(section_row, "trace", SECTION, "one device of a trace");

static const void *optimum_of(const struct frag_section *s, struct frag_answer *a)
{
	const struct frag_optimum *o = &s->optimum;
	struct optimum_row row = { frag_section_bound(s), o->placed ? o->place_bytes : UINT64_MAX,
				   o->placed ? o->rule : NULL };

	return o->hidden ? NULL : FRAG_ANSWER_KEEP(a, row);
}

const void *frag_advice_data(const struct frag_section *s, struct frag_answer *a)
{
	const struct frag_result *base = &s->results[s->baseline], *pick;
	struct advice_row *row;
	struct frag_advice x;
	double price;

	frag_section_advice(s, &x);
	row = x.pick == SIZE_MAX ? NULL : frag_answer_new(a, 1, sizeof(*row));
	if (!row)
		return NULL;
	pick = &s->results[x.pick];
	price = frag_section_job_price(s, x.card);
	*row = FRAG_ROW_VALUES(advice_row, ADVICE);
	if (base->completed && base->m.peak_reserved_bytes && !s->not_reproduced_bytes) {
		row->saved_bytes =
			(int64_t)base->m.peak_reserved_bytes - (int64_t)pick->m.peak_reserved_bytes;
		row->saved_ratio = (double)row->saved_bytes / (double)base->m.peak_reserved_bytes;
	}
	return row;
}

static struct frag_rows section_rows(const struct frag_report *r, struct frag_answer *a)
{
	struct section_row *rows = frag_answer_new(a, r->count, sizeof(*rows));

	for (size_t i = 0; rows && i < r->count; i++) {
		const struct frag_section *s = &r->sections[i];

		rows[i] = FRAG_ROW_VALUES(section_row, SECTION);
	}
	return (struct frag_rows){ rows, rows ? r->count : 0 };
}

/* ---- the document --------------------------------------------------------------------- */

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
	F(S, LIST, traces, section_rows(r, a), NULL, "each device of each trace", \
	  .of = &section_row_shape) \
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
