/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charts: one file src/report/charts/chart_<name>.c defines
 *
 *	const struct frag_chart_ops frag_chart_<name> = { … };
 *
 * make finds it, and scripts/plot/<name>.gp draws it from the CSV. Nothing
 * else is edited. Scripts get: CSV, output, format, title, subtitle, extra;
 * they read columns by name and take every policy name from the CSV.
 */
#ifndef FRAG_REPORT_CHART_H
#define FRAG_REPORT_CHART_H

#include "report/report.h"

struct frag_chart_job {
	const struct frag_report *report;
	const struct frag_section *section;
	const size_t *order; /* of the results, best first */
};

struct frag_chart_ops {
	const char *name;
	unsigned rank;	     /* place on the page */
	const char *heading; /* "Memory over time" */
	/* Optional: what the chart shows of this job, a sentence without its full stop, as the title;
	 * else the heading. */
	void (*finding)(const struct frag_chart_job *job, struct frag_text *out);
	/* Optional: is there anything to show? */
	bool (*wanted)(const struct frag_chart_job *job);
	/* Optional: the same of one result; one that has something is enough. */
	bool (*has)(const struct frag_chart_job *job, const struct frag_result *r);
	/* Header line and rows. Byte values exact, times as stated by the column name. */
	void (*csv)(const struct frag_chart_job *job, struct frag_text *out);
	/* What to see in it: one to three sentences. */
	void (*caption)(const struct frag_chart_job *job, struct frag_text *out);
	/* For those who do not see it: what it shows, with the figures that matter. */
	void (*alt)(const struct frag_chart_job *job, struct frag_text *out);
	/* Optional: the extra argument of the script. */
	const char *(*extra)(const struct frag_chart_job *job);
};

/* Chart at this place of the page, NULL after the last. */
const struct frag_chart_ops *frag_chart_at(size_t place);

/* The finding, or heading and trace; and the lines below it: heading, trace, card. */
void frag_chart_title(const struct frag_chart_ops *ops, const struct frag_chart_job *job,
		      struct frag_text *out);
void frag_chart_subtitle(const struct frag_chart_ops *ops, const struct frag_chart_job *job,
			 struct frag_text *out);

/* Pieces that charts share. */
/* "a needs 9.65 GiB, b needs …" of all results, best first. */
void frag_chart_list_peaks(const struct frag_chart_job *job, struct frag_text *out);
/* "; lower bound 9.10 GiB; offline placement 9.11 GiB", as far as they are to be shown. */
void frag_chart_list_optimum(const struct frag_chart_job *job, struct frag_text *out);
/* Seconds, or "" where the trace has no times. */
void frag_chart_add_seconds(const struct frag_chart_job *job, uint64_t us, struct frag_text *out);
/* "s" or "events" */
const char *frag_chart_x_unit(const struct frag_chart_job *job);
/* "modelled" or "measured": times in the driver */
const char *frag_chart_time_kind(const struct frag_chart_job *job);

/* "'a' peaks at 9.65 GiB, 4.78 GiB (33 %) below the recorded 14.43 GiB": of what is advised. */
void frag_chart_advised(const struct frag_chart_job *job, struct frag_text *out);
/* ",capacity_bytes,card_bytes,card" and their fields: what this replay could have, and what a process
 * has of the card that is advised; empty where there is none. */
#define FRAG_CHART_ROOM_HEAD "capacity_bytes,card_bytes,card"
void frag_chart_add_room(const struct frag_chart_job *job, struct frag_text *out);

#endif
