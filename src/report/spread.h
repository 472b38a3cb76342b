/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several ranks, devices or traces: how a policy's peak differs between them. The worst one
 * decides which card will do; far apart, the cards are loaded unevenly.
 *
 * A unit is a section of the report. Policies are told apart by their texts; those that
 * some unit does not have are left out.
 */
#ifndef FRAG_REPORT_SPREAD_H
#define FRAG_REPORT_SPREAD_H

#include "answer/answer.h"
#include "report.h"

struct frag_spread_row {
	const char *policy;  /* borrowed from a result */
	bool setting;	     /* of PyTorch */
	size_t worst, least; /* sections */
	uint64_t units_count, completed_count;
	/* of those that completed alone; null where none did */
	const char *worst_trace, *least_trace;
	uint64_t worst_bytes, worst_device_ordinal, median_bytes, least_bytes, least_device_ordinal,
		spread_bytes;
	double imbalance_ratio, above_mean_ratio; /* worst / mean; 1 = all alike. That minus 1 */
	const char *card_label; /* with room for each of them; NULL = none, or none completes */
	const char *completes, *worst_title;
};

extern const struct frag_shape frag_spread_shape;
/* Those that complete everywhere first, by their worst. None where the report has one unit. */
struct frag_rows frag_spread_rows(const struct frag_report *r, struct frag_answer *a);
/* What the units are: "devices", "traces" or "traces and devices". */
const char *frag_spread_noun(const struct frag_report *r);
/* Heading, table, conclusion and, for a page, the chart; nothing where the report has one unit. */
void frag_spread_parts(const struct frag_report *r, bool page, struct frag_answer *a);

#endif
