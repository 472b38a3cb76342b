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

#include "report.h"
#include "answer/table.h"

struct frag_spread {
	const char *policy;  /* borrowed from a result */
	bool setting;	     /* of PyTorch */
	size_t completed;    /* of the units; the rest is of these alone */
	size_t worst, least; /* sections */
	uint64_t worst_bytes, median_bytes, least_bytes;
	double imbalance_ratio; /* worst / mean; 1 = all alike */
};

struct frag_spreads {
	struct frag_spread *list; /* those that complete everywhere first, by their worst */
	size_t count, units;
};

/* Nothing (count 0) where the report has one unit. Errors: FRAG_ENOMEM. */
int frag_spreads_init(struct frag_spreads *s, const struct frag_report *r, struct frag_err *err);
void frag_spreads_release(struct frag_spreads *s);

/* What the units are: "devices", "traces" or "traces and devices". */
const char *frag_spreads_noun(const struct frag_report *r);
/* A row per policy. Release the table. */
void frag_spreads_table(const struct frag_spreads *s, const struct frag_report *r,
			struct frag_table *out);
/* "With 'x' each card must hold …": of PyTorch's settings where there are any. */
void frag_spreads_answer(const struct frag_spreads *s, const struct frag_report *r,
			 struct frag_text *out);
/* The same of a whole report; nothing where it has one unit. Errors: FRAG_ENOMEM. */
int frag_report_spread_csv(const struct frag_report *r, struct frag_text *out,
			   struct frag_err *err);
/* An array, NULL when host memory is short. */
json_t *frag_spreads_json(const struct frag_spreads *s, const struct frag_report *r);

#endif
