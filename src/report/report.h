/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as an answer: text, CSV, JSON, charts and one page.
 *
 * Words. section: one device of one trace with the results of every policy on
 * it. baseline: the result that savings are counted against (the recorded
 * settings where they are among the policies, else the first).
 *
 * Host time is measured, everything else on `sim` is computed. Measured values
 * are kept apart ("host" in JSON, last columns of the CSV) and can be left out
 * (omit_host): then the same input gives the same bytes.
 *
 * Ownership: a section owns its strings and results. A report borrows its
 * sections, strings and traces.
 */
#ifndef FRAG_REPORT_REPORT_H
#define FRAG_REPORT_REPORT_H

#include <frag/base.h>
#include <frag/device.h>
#include <frag/error.h>
#include <frag/metrics.h>
#include <frag/trace.h>

#include "answer/answer.h"
#include "answer/draw/plot.h"

/* Negligible driver time: below this part of the recorded time. */
#define FRAG_CHEAP_RATIO 0.01

/* What is possible with all knowledge of the trace. */
struct frag_optimum {
	bool hidden;	      /* show neither bound nor placement */
	bool placed;	      /* an offline placement was made, and checked */
	uint64_t place_bytes; /* its height */
	uint64_t bound_bytes; /* largest load of the whole trace; 0 = not looked for */
	const char *rule;     /* how it was made; constant text */
	char note[200];	      /* why there is none, "" = not asked for */
};

struct frag_layout; /* layout.h */

struct frag_section {
	char *trace, *format; /* names */
	char *conf;	      /* recorded settings, "" = defaults; NULL = not recorded */
	uint32_t ordinal;     /* of the device in the trace */
	uint32_t devs_count;  /* of the trace */
	uint32_t streams_count, pools_count;
	uint64_t events_count, start_us, duration_us; /* duration 0: the trace has no times */
	uint64_t initial_blocks;		      /* live before the history began */
	bool truncated;				      /* the recorder lost the beginning */
	bool estimated;				      /* made without a card */
	const struct frag_gpu_chip *chip;    /* that it was recorded on; NULL = not known */
	const struct frag_trace_dev *events; /* for charts of the trace itself; NULL = gone */
	struct frag_result *results;	     /* in the order they were asked for */
	size_t count;
	size_t baseline;
	bool baseline_recorded;	 /* it is what was recorded: settings, limit and outcome */
	bool baseline_simulated; /* the recorded settings, but not what came of them */
	/* reserved when recorded, where the baseline was to reserve that and does not: there is no
	 * saving to tell; else 0 */
	uint64_t not_reproduced_bytes;
	struct frag_settled settled; /* what the recording turned out to be */
	struct frag_ending ending;
	uint64_t limit_bytes; /* that held for its results; UINT64_MAX = none */
	bool first_of_trace;
	char *folder; /* of its own report inside of a larger one, or NULL */
	struct frag_optimum optimum;
	const struct frag_catalog *catalog; /* cards that advice may name; NULL = the known ones */
	struct frag_headroom headroom;	    /* what advice leaves free on a card */
	struct frag_layout *layouts;	    /* [layouts_count] for the address-space map */
	size_t layouts_count;
	char *missing; /* what an interruption left out: "tlsf, buddy"; NULL = nothing */
};

/* Names and sizes of trace->devs[dev], no results yet. Borrows trace->devs[dev] as `events`
 * (set it to NULL when the trace goes). Errors: FRAG_ENOMEM. */
int frag_section_init(struct frag_section *s, const struct frag_trace *trace, uint32_t dev,
		      struct frag_err *err);
void frag_section_release(struct frag_section *s);

struct frag_report {
	const char *live, *live_policy; /* of the page, as in struct frag_answer; NULL = none */
	bool counters;			/* the detail of a replay shows everything */
	struct frag_section *sections;
	size_t count;
	const char *command;	  /* "compare", "replay" */
	const char *command_line; /* exact, quoted for a shell */
	const char *device;	  /* "sim", "cuda" */
	struct frag_device_info card;
	char cost_profile[96]; /* of what modelled times were measured: "h200"; "" = not modelled */
	bool cost_borrowed;    /* which is another card than the one that is simulated */
	uint64_t limit_bytes;  /* UINT64_MAX = none */
	uint64_t seed;
	bool skip_oom, free_at_request;
	bool omit_host;
	const char *missing; /* traces that an interruption left out, NULL = none */
	/* of the page; NULL = none. Only the page has a date: data do not depend on the clock */
	const char *title, *author, *date;
};

/* Is this metric measured on the host clock? */
bool frag_report_is_host(const struct frag_metric_info *info);

/* Indices of s->results: completed, requests refused, peak reserved, as asked. out: s->count. */
void frag_section_order(const struct frag_section *s, size_t *out);
/* Does a come before b? Policies that failed or refused reserved less only because of that. */
bool frag_result_better(const struct frag_result *a, const struct frag_result *b);
/* Index of the best result, SIZE_MAX if none completed. */
size_t frag_section_best(const struct frag_section *s);
/* Did the replay end at its first out of memory (it may have been told to go on)? */
bool frag_result_stopped(const struct frag_result *r);
/* The cards to choose from: the section's, or the known ones in `known`, which needs no release. */
const struct frag_catalog *frag_section_catalog(const struct frag_section *s,
						struct frag_catalog *known);
/* The card to take for `reserved_bytes`: room beside its own context and, unless `bare`, the
 * headroom; the cheapest where all have a price, else the smallest. NULL = none. */
const struct frag_gpu *frag_section_card(const struct frag_section *s, uint64_t reserved_bytes,
					 bool bare);
/* "the smallest known card", "the cheapest card of cards.csv": what frag_section_card chose. */
void frag_section_card_kind(const struct frag_section *s, struct frag_text *out);
/* Driver time over recorded time; 0 where the trace has no times. */
double frag_section_driver_ratio(const struct frag_section *s, const struct frag_result *r);
/* What the job cost on this card for the time it was recorded; 0 = not known. */
double frag_section_job_price(const struct frag_section *s, const struct frag_gpu *gpu);
/* Largest lower bound of results (early stops saw less of the trace); 0 = not shown. */
uint64_t frag_section_bound(const struct frag_section *s);
/* The null policy and the null device: no candidates. */
bool frag_result_reserved_nothing(const struct frag_result *r);

/*
 * What to take of what was compared. A recording of PyTorch is best served by a setting of
 * PyTorch's: nothing but a line to export. Among these (else among all but `planned`, which
 * knows the future) those that spend less than 1 % of the recorded time in the driver come first.
 */
struct frag_advice {
	size_t pick;  /* index of the advised result, SIZE_MAX = none completes */
	size_t least; /* index of the policy that needs least, at any cost */
	size_t live;  /* of what serves a PyTorch program by cufrag run, costs little and needs
		      * less than `pick`; SIZE_MAX = none */
	bool of_settings, of_cheap; /* it is the best of PyTorch's, of those that cost little */
	const char *conf; /* for PYTORCH_CUDA_ALLOC_CONF, "" = the defaults; NULL = no setting */
	uint64_t refused; /* requests that `pick` does not serve: then no card is named */
	const struct frag_gpu *card;  /* with room and headroom, or NULL */
	const struct frag_gpu *tight; /* smaller or cheaper, but without headroom; or NULL */
	uint64_t spare_bytes;	      /* left on `card` */
	bool other_kernels; /* `card` is of another compute capability than that of the recording */
};
void frag_section_advice(const struct frag_section *s, struct frag_advice *out);
/* One sentence: what to take, what that saves, which known card it fits. */
const char *frag_section_answer(const struct frag_section *s, struct frag_answer *texts);
/* "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"; NULL where it is no setting. */
const char *frag_section_export(const struct frag_section *s, struct frag_answer *texts);
/* "cufrag run --policy vmm -- python train.py"; NULL where that would save nothing. */
const char *frag_section_run(const struct frag_section *s, struct frag_answer *texts);
/* What the plan of `planned` was made from, and how much it served; NULL without a plan. */
const char *frag_section_planned(const struct frag_section *s, struct frag_answer *texts);
/* "varlen.default, device 0" (the device only where there are several). */
void frag_section_title(const struct frag_section *s, struct frag_text *out);
/* A line of what the recording turned out to be, where it had a limit or is not identical; else NULL. */
const char *frag_section_settled(const struct frag_report *r, const struct frag_section *s,
				 struct frag_answer *a);
/* "recorded with expandable_segments:True" */
const char *frag_section_recorded(const struct frag_section *s, struct frag_answer *a);
/* "NVIDIA H200 141 GB, limit 7.50 GiB, seed 0": card and settings of the replay; section NULL: of
 * all of them, as asked for. */
const char *frag_report_settings(const struct frag_report *r, const struct frag_section *s,
				 struct frag_answer *a);
/* Does an axis of time show the events? Not if they are few, without times, or if half of them would be on a tenth of
 * it. Times: after a quarter and three quarters of the events, and at their end. */
bool frag_report_timed(uint64_t events, uint64_t quarter_us, uint64_t three_quarters_us,
		       uint64_t end_us);
/* Unit of the x axis: "s" of recorded time, or "events" if short or time does not show it. */
const char *frag_section_x_unit(const struct frag_section *s);

/* The data of compare and replay (frag_answer.shape), also of pages, and what each prints. */
extern const struct frag_shape frag_report_shape;
void frag_report_compare(const struct frag_report *r, struct frag_answer *a);
void frag_report_replay(const struct frag_report *r, struct frag_answer *a);
/* The page of one trace, which is still in memory; the page above several: a row and a link (to the
 * section's folder) for each. */
void frag_report_page(const struct frag_report *r, struct frag_answer *a);
void frag_report_index(const struct frag_report *r, struct frag_answer *a);

/*
 * These pages as report.html in `dir`, with results.csv, results.json and charts beside it: all or
 * nothing (frag_answer_put_page). Errors: FRAG_EOUTPUT (no gnuplot, no scripts, folder not
 * writable), FRAG_ENOMEM.
 */
int frag_report_write(const struct frag_report *r, const char *dir, unsigned formats,
		      unsigned threads, struct frag_err *err);
int frag_report_write_index(const struct frag_report *r, const char *dir, unsigned formats,
			    unsigned threads, struct frag_err *err);

#endif
