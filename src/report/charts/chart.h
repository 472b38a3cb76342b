/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charts: one file src/report/charts/chart_<name>.c defines
 *
 *	const struct frag_chart_ops frag_chart_<name> = { … };
 *
 * make finds it, and scripts/plot/<name>.gp draws it from its rows, which are a CSV beside the
 * page. Nothing else is edited. Scripts get: CSV, output, format, title, subtitle, extra; they read
 * columns by name and take every policy name from the CSV.
 */
#ifndef FRAG_REPORT_CHART_H
#define FRAG_REPORT_CHART_H

#include "answer/row.h"
#include "report/report.h"

struct frag_chart_job {
	const struct frag_report *report;
	const struct frag_section *section;
	const size_t *order;	    /* of the results, best first */
	struct frag_answer *answer; /* owns rows and texts (frag_answer_new, frag_answer_print) */
};

struct frag_chart_ops {
	const char *name;
	unsigned rank;	     /* place on the page, below 100 */
	const char *heading; /* "Memory over time" */
	/* Columns of its CSV (FRAG_CSV_ROW). Byte values are exact; times as their names say. */
	const struct frag_shape *shape;
	/* The rows; none where there is nothing to show, and then no chart. */
	struct frag_rows (*rows)(const struct frag_chart_job *job);
	/* Optional: what the chart shows of this job, a sentence without its full stop, as the
	 * title; else the heading. Its numbers go in by frag_title_bytes and the others. */
	void (*finding)(const struct frag_chart_job *job, struct frag_title *out);
	/* What to see in it: one to three sentences; then what depends on the job (optional). */
	const char *caption;
	void (*note)(const struct frag_chart_job *job, struct frag_text *out);
	/* Optional: the extra argument of the script. */
	const char *(*extra)(const struct frag_chart_job *job);
};

/* Most files name what they define alike: struct row and its functions. */
#define FRAG_CHART_HOOKS .finding = finding, .shape = &row_shape, .rows = rows

/* Adds to the page each chart that has something to show of this section. */
void frag_charts_parts(const struct frag_report *r, const struct frag_section *s,
		       struct frag_answer *a);

/* Pieces that charts share. */
/* The i-th best result. */
static inline const struct frag_result *frag_chart_result(const struct frag_chart_job *job,
							  size_t i)
{
	return &job->section->results[job->order[i]];
}
/* Seconds; null where the trace has no times. */
double frag_chart_seconds(const struct frag_chart_job *job, uint64_t us);
/* "s" or "events" */
const char *frag_chart_x_unit(const struct frag_chart_job *job);
/* "modelled" or "measured": times in the driver */
const char *frag_chart_time_kind(const struct frag_chart_job *job);

/* The causes of a struct frag_loss *l, as columns. */
#define FRAG_CHART_CAUSES(X, s) \
	X(s, BYTES, requested_bytes, l->requested_bytes) \
	X(s, BYTES, rounding_bytes, l->rounding_bytes) \
	X(s, BYTES, waiting_bytes, l->waiting_bytes) \
	X(s, BYTES, non_releasable_bytes, l->non_releasable_bytes) \
	X(s, BYTES, releasable_bytes, l->releasable_bytes) \
	X(s, BYTES, other_bytes, l->other_bytes)
/* What every row of a chart of memory has: the possible, what this replay could have, and what a process has of the
 * card that is advised (null: there is none), from a struct frag_chart_room *room. */
#define FRAG_CHART_ROOM(X, s) \
	X(s, BYTES, lower_bound_bytes, room->lower_bound_bytes) \
	X(s, BYTES, placement_bytes, room->placement_bytes) \
	X(s, BYTES, capacity_bytes, room->capacity_bytes) \
	X(s, BYTES, card_bytes, room->card_bytes) \
	X(s, TEXT, card, room->card)
struct frag_chart_room {
	FRAG_CHART_ROOM(FRAG_ROW_MEMBER_, )
};
void frag_chart_room(const struct frag_chart_job *job, struct frag_chart_room *out);

#endif
