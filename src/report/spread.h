/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several ranks, devices or traces: how a policy's peak differs between them. The worst one
 * decides which card will do; if the peaks are far apart, the load of the cards is uneven.
 *
 * A unit is a section of the report. Policies are told apart by their texts; those that
 * some unit does not have are left out.
 */
#ifndef FRAG_REPORT_SPREAD_H
#define FRAG_REPORT_SPREAD_H

#include "answer/answer.h"
#include "answer/row.h"
#include "report.h"

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
	F(S, TEXT, card_label, NULL, "card with room for each of them") \
	P(S, TEXT, completes, "completes", "on how many of them the replay came to its end", \
	  .right = true, .spare = 2) \
	P(S, TEXT, worst_title, "worst one", "the trace and device that needs most")
#define FRAG_SPREAD_GIB .unit = "GiB", .precision = 2
struct frag_spread_row {
	FRAG_ROW_MEMBERS(FRAG_SPREAD)
	bool setting;	     /* of PyTorch */
	size_t worst, least; /* sections */
};
extern const struct frag_shape frag_spread_shape;
/* Those that complete everywhere first, by their worst. None where the report has one unit. */
struct frag_rows frag_spread_rows(const struct frag_report *r, struct frag_answer *a);
/* What the units are: "devices", "traces" or "traces and devices". */
const char *frag_spread_noun(const struct frag_report *r);
/* Heading, table, conclusion and, for a page, the chart; nothing where the report has one unit. */
void frag_spread_parts(const struct frag_report *r, bool page, struct frag_answer *a);

#endif
