/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as data of an answer: a row for each result, for each trace and device, and the document
 * around them. Tables for people are made of the same rows.
 */
#ifndef FRAG_REPORT_ROWS_H
#define FRAG_REPORT_ROWS_H

#include "answer/answer.h"
#include "report/report.h"

/* One policy on one device of a trace. NULL, UINT64_MAX, NaN: not available. */
struct frag_result_row {
	const char *trace, *policy, *params, *plan;
	uint64_t device_ordinal;
	bool is_recorded, completed;
	uint64_t first_oom, first_oom_time_us, first_oom_bytes, first_oom_step, placement_bytes;
	struct frag_metrics m;
	double driver_ratio;
	const void *oom, *free_ns, *host;
	struct frag_rows alloc_ns, calls, counters;
	const char *outcome; /* "ok", "out of memory at event 12" */
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

/* A trace and device. */
extern const struct frag_shape frag_section_shape;
struct frag_rows frag_section_rows(const struct frag_report *r, struct frag_answer *a);

/* What to take there; NULL where nothing is advised. */
extern const struct frag_shape frag_advice_shape;
const void *frag_advice_data(const struct frag_section *s, struct frag_answer *a);

/* The document of compare and replay: data and CSV of `a`. Results as the sections are ordered. */
void frag_report_data(const struct frag_report *r, struct frag_answer *a);

#endif
