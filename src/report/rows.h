/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as data of an answer: a row for each result, for each trace and device, and the document
 * around them. Tables for people are made of the same rows.
 */
#ifndef FRAG_REPORT_ROWS_H
#define FRAG_REPORT_ROWS_H

#include "answer/answer.h"
#include "answer/row.h"
#include "report/report.h"

/* One policy on one device of a trace; the metrics stand between these two lists. */
#define FRAG_RESULT_HEAD(F, P, S) \
	F(S, TEXT, trace, s->trace, NULL, "name of the trace") \
	F(S, COUNT, device_ordinal, s->ordinal, NULL, "device of the trace") \
	F(S, TEXT, policy, res->policy, "policy", "allocation policy and its options") \
	F(S, TEXT, params, res->params ? res->params : "", NULL, \
	  "all options of the policy, with those that were not given") \
	F(S, BOOL, completed, res->completed, NULL, "the replay came to the end of the trace") \
	F(S, COUNT, first_oom, oom ? res->oom.event : UINT64_MAX, NULL, \
	  "event of the first request that could not be served") \
	F(S, US, first_oom_time_us, oom ? res->oom.time_us : UINT64_MAX, NULL, \
	  "its recorded time") \
	F(S, BYTES, first_oom_bytes, oom ? res->oom.bytes : UINT64_MAX, NULL, "its size") \
	F(S, COUNT, first_oom_step, oom ? res->oom.step : UINT64_MAX, NULL, \
	  "steps completed before it") \
	F(S, BYTES, placement_bytes, s->optimum.placed ? s->optimum.place_bytes : UINT64_MAX, \
	  NULL, "offline placement of the trace")
#define FRAG_RESULT_TAIL(F, P, S) \
	F(S, TEXT, plan, res->plan, NULL, "source of the plan of `planned`") \
	F(S, BOOL, is_recorded, s->baseline_recorded &&res == &s->results[s->baseline], NULL, \
	  "the recorded settings themselves") \
	F(S, RATIO, driver_ratio, s->duration_us ? frag_section_driver_ratio(s, res) : NAN, NULL, \
	  "driver time / recorded time") \
	F(S, OBJECT, oom, oom_of(&res->oom, a), NULL, \
	  "the first request that could not be served", .of = &oom_row_shape) \
	F(S, MAP, alloc_ns, latencies(res->alloc_modelled_ns, a), NULL, "driver time per alloc", \
	  .of = &latency_entry_shape) \
	F(S, OBJECT, free_ns, latency_data(&res->free_modelled_ns, a), NULL, \
	  "driver time per free", .of = &latency_shape) \
	F(S, MAP, calls, calls_of(res, a), NULL, "driver calls by their name", \
	  .of = &call_row_shape) \
	F(S, MAP, counters, frag_counter_rows(a, res->counters), NULL, \
	  "statistics of the policy's own", .of = &frag_counter_shape) \
	F(S, OBJECT, host, r->omit_host ? NULL : host_of(res, a), NULL, \
	  "figures measured on this machine", .of = &host_row_shape) \
	P(S, TEXT, outcome, outcome_of(res, a), "result", \
	  "ok, or where the policy ran out of memory")
struct frag_result_row {
	FRAG_ROW_MEMBERS(FRAG_RESULT_HEAD)
	FRAG_ROW_MEMBERS(FRAG_RESULT_TAIL)
	struct frag_metrics m;
};
extern const struct frag_shape frag_result_shape;
/* Of `r`, a result of `s`. */
void frag_result_row(const struct frag_report *r, const struct frag_section *s,
		     const struct frag_result *res, struct frag_answer *a,
		     struct frag_result_row *out);

/* Tables of the detail of a replay; nothing where there is nothing to show. */
void frag_latency_table(const char *title, const struct frag_hist *alloc,
			const struct frag_hist *release, struct frag_answer *a);
void frag_calls_table(const struct frag_result *res, struct frag_answer *a);
void frag_counters_table(const struct frag_result *res, struct frag_answer *a);
/* "where the bytes are", with its sum and the largest free block */
void frag_loss_table(const struct frag_loss *l, struct frag_answer *a);
extern const struct frag_shape frag_loss_shape; /* of struct frag_loss */

/* What to take there; NULL where nothing is advised. */
extern const struct frag_shape frag_advice_shape;
const void *frag_advice_data(const struct frag_section *s, struct frag_answer *a);

/* The document of compare and replay: data and CSV of `a`. Results as the sections are ordered. */
void frag_report_data(const struct frag_report *r, struct frag_answer *a);

/* ---- what text and page share ----------------------------------------------------------- */

/* "varlen.default, device 0" */
const char *frag_section_title_text(const struct frag_section *s, struct frag_answer *a);
/* Trace, its size, card, settings, what it turned out to be. named: the command, too. */
void frag_section_remarks(const struct frag_report *r, const struct frag_section *s, bool named,
			  struct frag_answer *a);
/* The policies, best first, then what is possible; and what was left out. */
void frag_section_table(const struct frag_report *r, const struct frag_section *s,
			struct frag_answer *a);
/* The sentence, and the lines that set what it advises. */
void frag_section_conclusion(const struct frag_section *s, struct frag_answer *a);

/*
 * ---- the requests that were refused when a trace was recorded: where memory stood, and what each
 * policy does with them. A report opens with them. ----
 */

/* How many were refused when recorded. */
uint64_t frag_refusals_count(const struct frag_section *s);
/* The first FRAG_REFUSED_KEPT of them, as data. */
extern const struct frag_shape frag_refusal_shape;
struct frag_rows frag_refusals_rows(const struct frag_section *s, struct frag_answer *a);
/* "9 requests were refused when recorded; the first one wanted 40 MiB …" and, with `tables`, the
 * moment of each and how many every policy serves; nothing where nothing was refused. */
void frag_refusals_parts(const struct frag_section *s, bool tables, struct frag_answer *a);

/*
 * ---- several ranks, devices or traces: how a policy's peak differs between them. The worst one
 * decides which card will do; if the peaks are far apart, the load of the cards is uneven.
 *
 * A unit is a section of the report. Policies are told apart by their texts; those that
 * some unit does not have are left out. ----
 */

/* What only those that completed have is null where none did. */
#define FRAG_SPREAD(F, P, S) \
	F(S, TEXT, policy, "policy", "allocation policy and its options") \
	F(S, COUNT, units_count, NULL, "traces and devices") \
	F(S, COUNT, completed_count, NULL, "of them on which the replay came to its end") \
	F(S, BYTES, worst_bytes, "worst", "largest peak reserved of all of them", FRAG_SPREAD_GIB) \
	F(S, TEXT, worst_trace, NULL, "the trace that needs most") \
	F(S, COUNT, worst_device_ordinal, NULL, "its device") \
	F(S, BYTES, median_bytes, "median", "half of them need less", FRAG_SPREAD_GIB, .spare = 4) \
	F(S, BYTES, least_bytes, "least", "smallest peak reserved", FRAG_SPREAD_GIB, .spare = 5) \
	F(S, TEXT, least_trace, NULL, "the trace that needs least") \
	F(S, COUNT, least_device_ordinal, NULL, "its device") \
	F(S, BYTES, spread_bytes, "spread", "worst - least", FRAG_SPREAD_GIB, .spare = 3) \
	F(S, REAL, imbalance_ratio, "worst/mean", "imbalance: 1.00 = all need the same", \
	  .precision = 2, .spare = 1) \
	F(S, RATIO, above_mean_ratio, NULL, "imbalance - 1") \
	F(S, BYTES, sum_bytes, NULL, "sum of the peaks of those that complete") \
	F(S, TEXT, card_label, NULL, "card with room for each of them") \
	P(S, TEXT, completes, "completes", "on how many of them the replay came to its end", \
	  .right = true, .spare = 2) \
	P(S, TEXT, worst_title, "worst one", "the trace and device that needs most")
#define FRAG_SPREAD_GIB .unit = "GiB", .precision = 2
struct frag_spread_row {
	FRAG_ROW_MEMBERS(FRAG_SPREAD)
	bool setting;		   /* of PyTorch */
	size_t worst, least, most; /* sections; most: by the recorded peak */
	double ratio_logs,
		most_ratio; /* to the recorded peaks: sum of logarithms; NAN: not known */
};
extern const struct frag_shape frag_spread_shape;
/* Those that complete everywhere first, by their worst. None where the report has one unit. */
struct frag_rows frag_spread_rows(const struct frag_report *r, struct frag_answer *a);
/* Heading, table, conclusion and, for a page, the chart; nothing where the report has one unit. */
void frag_spread_parts(const struct frag_report *r, bool page, struct frag_answer *a);

#endif
