/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite: allocators measured on a fixed set of workloads, by rules that make results
 * comparable (docs/suite.md).
 *
 * suite_run.c hands rows out to processes (measure.c: the simulated division, suite_card.c: a card)
 * and writes the file that result.c reads; score.c computes scores from its rows.
 *
 * Words. row: one policy on one workload. division: "simulated" (the same bytes on every machine)
 * or "card". turn: one replay on a card; all policies take turns. baseline: PyTorch's default.
 */
#ifndef FRAG_SUITE_SUITE_H
#define FRAG_SUITE_SUITE_H

#include <jansson.h>

#include <frag/device.h>
#include <frag/error.h>
#include <frag/trace.h>

#include "answer/answer.h"
#include "answer/row.h"
#include "base/sha256.h"
#include "recording/policy_texts.h"
#include "recording/recording.h"

#define FRAG_SUITE_BASELINE "pytorch"
#define FRAG_SUITE_MAJOR 1 /* of the version of workloads and rules that this program knows */

/* ---- workloads ---------------------------------------------------------------------- */

struct frag_suite_workload {
	const char *name, *class, *about;
	const char *file, *gen; /* one of them; gen: KIND [--seed N] [--scale N] of `cufrag gen` */
	const char *sha256;	/* of the file */
	int quick, card;	/* taken by --quick; measured on a card, too */
};

struct frag_suite_manifest {
	json_t *doc; /* owns the texts */
	char *dir;   /* that files are relative to */
	char sha256[FRAG_SHA256_TEXT];
	const char *version;
	uint64_t events_max; /* a workload is so many events of a recording, from the beginning */
	const char **classes, **abouts; /* names, NULL-terminated; what each is about */
	struct frag_suite_workload *workloads;
	size_t classes_count, workloads_count;
};

/* path NULL: the one that comes with the program. Errors: FRAG_EINPUT naming file and place. */
int frag_suite_manifest_open(struct frag_suite_manifest *m, const char *path, struct frag_err *err);
/* The beginnings that --quick and a card, on which calls take real time, are content with. */
#define FRAG_SUITE_SHORT_EVENTS 20000u
/* Keeps the workloads of these classes (names with commas; NULL: all), those with `quick` or
 * `card`. Errors: FRAG_EUSAGE with the nearest name, or if none is left; FRAG_EINPUT: a file is
 * missing, or not that of the manifest. */
int frag_suite_manifest_choose(struct frag_suite_manifest *m, const char *classes, bool quick,
			       bool card, struct frag_err *err);
void frag_suite_manifest_release(struct frag_suite_manifest *m);

/* A workload, ready to be replayed. */
struct frag_suite_trace {
	struct frag_recording recording;
	struct frag_trace_dev *dev; /* its first device, cut */
	uint64_t requests, live_peak_bytes;
};
/* Errors: those of readers, and words of gen that are none. */
int frag_suite_trace_open(const struct frag_suite_manifest *m, const struct frag_suite_workload *w,
			  const struct frag_target *target, struct frag_suite_trace *out,
			  struct frag_err *err);
void frag_suite_trace_release(struct frag_suite_trace *t);

/* What the workloads are like (`suite list`). */
int frag_suite_describe(const struct frag_suite_manifest *m, const struct frag_target *target,
			struct frag_answer *a, struct frag_err *err);

/* ---- rows --------------------------------------------------------------------------- */

#define FRAG_SUITE_CAPACITIES 6		   /* live peaks in percent: 100, 102, 105, 110, 125, 150 */
#define FRAG_SUITE_CREEP_EVENTS 2000000ull /* more in a row are not replayed */
extern const unsigned frag_suite_percents[FRAG_SUITE_CAPACITIES];

/* Null: not measured. Every value is a whole number, so that it is the same everywhere. */
#define FRAG_SUITE_ROW(F, P, S) \
	F(S, TEXT, workload, "workload", "its name") \
	F(S, TEXT, class, "class", "of the workload") \
	F(S, TEXT, policy, "policy", "with its options") \
	F(S, TEXT, state, "state", \
	  "done, refused (completes on no card), broken (breaks the rules of policies), " \
	  "unsupported, failed, crashed or timeout") \
	F(S, TEXT, why, NULL, "why it is not done") \
	F(S, COUNT, events_count, NULL, "of the workload") \
	F(S, COUNT, requests_count, NULL, "allocations among them") \
	F(S, BYTES, live_peak_bytes, NULL, "largest sum of live requests: the lower bound") \
	F(S, BYTES, reserved_bytes, "reserved", "peak without a limit", .unit = "mem") \
	F(S, BYTES, capacity_bytes, "capacity", \
	  "smallest card, without its context, that refuses nothing", .unit = "mem") \
	F(S, COUNT, refused_100_count, NULL, "requests refused on a card of the live peak") \
	F(S, COUNT, refused_102_count, NULL, "with 2 % more") \
	F(S, COUNT, refused_105_count, NULL, "with 5 % more") \
	F(S, COUNT, refused_110_count, NULL, "with 10 % more") \
	F(S, COUNT, refused_125_count, NULL, "with 25 % more") \
	F(S, COUNT, refused_150_count, NULL, "with 50 % more") \
	F(S, BYTES, after_1_bytes, NULL, "reserved after the workload ran once") \
	F(S, BYTES, after_10_bytes, NULL, "after 10 runs in one process") \
	F(S, BYTES, after_100_bytes, NULL, "after 100") \
	F(S, NS, driver_ns, "driver", "driver time per 1,000 requests without a limit", \
	  .unit = "us", .precision = 1) \
	F(S, NS, driver_low_ns, NULL, "card: 95 % interval of it") \
	F(S, NS, driver_high_ns, NULL, "card: its end") \
	F(S, COUNT, turns_count, NULL, "card: replays") \
	F(S, BOOL, settled, NULL, "card: the interval is at most 2 % to each side") \
	F(S, COUNT, clock_mhz, NULL, "card: lowest clock of its processors after a replay") \
	F(S, COUNT, throttled_count, NULL, "card: replays after which it had reason to slow down") \
	F(S, NS, host_p50_ns, NULL, "card: host time of a request, median") \
	F(S, NS, host_p99_ns, NULL, "card: 99 % are faster") \
	F(S, NS, host_p999_ns, NULL, "card: 99.9 % are faster")
FRAG_ROW_STRUCT(frag_suite_row, FRAG_SUITE_ROW);
extern const struct frag_shape frag_suite_row_shape;

/* A row without values. */
struct frag_suite_row frag_suite_row_empty(const struct frag_suite_workload *w,
					   const struct frag_suite_trace *t, const char *policy);
/* It has failed with this error. */
void frag_suite_row_fail(struct frag_suite_row *row, int rc, const struct frag_err *err);
/* From its JSON, which keeps the texts. false: a member is missing or of another kind. */
bool frag_suite_row_read(struct frag_suite_row *row, json_t *from);

/* ---- a run -------------------------------------------------------------------------- */

struct frag_suite {
	struct frag_suite_manifest manifest;
	struct frag_target target;
	struct frag_policy_texts policies; /* the baseline is among them */
	bool card;
	int ordinal; /* of the card */
	/* Opens the card; NULL ctx otherwise. */
	int (*open)(const void *ctx, uint32_t dev, struct frag_device **out, struct frag_err *err);
	const void *ctx;
	unsigned jobs;
	uint64_t timeout_s; /* of a row, or of a turn */
	uint64_t budget_s;  /* of the card, for this call; 0 = none */
	const char *out;    /* folder */
};
/* The card of the simulated division: an H200. Errors: FRAG_EUSAGE. */
int frag_suite_target(struct frag_target *t, struct frag_err *err);
/* Those that were asked for, else all that need nothing else; with the baseline first. */
int frag_suite_policies(struct frag_policy_texts *p, struct frag_err *err);
/* Writes OUT/suite.json, complete or absent. Errors: FRAG_EINTR, with what was done kept in
 * OUT/suite.part for the next call; FRAG_EDEVICE: another process is on the card. */
int frag_suite_run(struct frag_suite *s, struct frag_err *err);

/* In a process of its own: fills the row, whatever comes of it. */
void frag_suite_measure(const struct frag_suite *s, const struct frag_suite_trace *t,
			const char *policy, struct frag_suite_row *row);
/* The same on the card: one turn. */
void frag_suite_turn(const struct frag_suite *s, const struct frag_suite_trace *t,
		     const char *policy, struct frag_suite_row *row);
/* Turns of one row into the row, which has the first of them. true: no more turns are needed. */
bool frag_suite_sum_turns(const struct frag_suite_row *turns, size_t count,
			  struct frag_suite_row *row);
#define FRAG_SUITE_TURNS_MIN 5u
#define FRAG_SUITE_TURNS_MAX 15u
/* What the card says of itself, without being opened for work. */
struct frag_suite_card {
	char name[64], driver[96];
	uint64_t clock_mhz; /* of its processors now; UINT64_MAX = not known */
	bool throttled;	    /* it has reason to run slower than it could */
	unsigned processes; /* that hold memory on it */
};
/* Errors: FRAG_EDEVICE: NVML does not answer. */
int frag_suite_card_look(int ordinal, struct frag_suite_card *out, struct frag_err *err);

/* ---- results ------------------------------------------------------------------------- */

struct frag_suite_result {
	json_t *doc; /* owns the texts */
	bool card, complete;
	const char *version, *cufrag, *device, *driver, *hash;
	const char **policies, **classes; /* in their order */
	size_t policies_count, classes_count;
	struct frag_suite_row *rows;
	size_t rows_count;
};
/* The document for these rows; a new reference, NULL: no memory. card: NULL = simulated. */
json_t *frag_suite_result_make(const struct frag_suite *s, json_t *rows,
			       const struct frag_suite_card *card);
/* Errors: FRAG_EINPUT: broken, edited, of another version, or settings are missing. */
int frag_suite_result_open(struct frag_suite_result *r, const char *path, struct frag_err *err);
void frag_suite_result_release(struct frag_suite_result *r);
/* NULL: there is none. */
const struct frag_suite_row *frag_suite_result_find(const struct frag_suite_result *r,
						    const char *workload, const char *policy);
/* Reads a JSON document of a file. Errors: FRAG_EINPUT naming it and the byte. */
int frag_suite_json_open(const char *path, json_t **out, struct frag_err *err);

/* ---- scores -------------------------------------------------------------------------- */

bool frag_suite_is_done(const struct frag_suite_row *row); /* NULL: no */
/* Done, or refused by the card or its memory, which is a result, too. */
bool frag_suite_is_measured(const struct frag_suite_row *row);
/* Over that of the baseline: below 1 is better. NaN: no row for it. */
struct frag_suite_measure {
	double ratio, low, high; /* low, high: of the classes */
	size_t rank;		 /* from 1; 0 = none: incomplete */
};
struct frag_suite_score {
	const char *policy;
	struct frag_suite_measure space, time;
	size_t rows, done; /* that there are, and that are done */
};
/* Of a row, over the baseline's: geometric mean of reserved memory and capacity; driver time. */
double frag_suite_space(const struct frag_suite_row *row, const struct frag_suite_row *base);
double frag_suite_time(const struct frag_suite_row *row, const struct frag_suite_row *base);
/* One per policy, scores[policies_count]. without: a class to leave out, SIZE_MAX = none. */
void frag_suite_scores(const struct frag_suite_result *r, size_t without,
		       struct frag_suite_score *scores);

/* Without the least and the largest: mean, and the 95 % interval of Student's t to each side.
 * pre: count >= 4. Sorts. */
void frag_suite_interval(double *values, size_t count, double *mean, double *half);

/* ---- answers ------------------------------------------------------------------------- */

extern const struct frag_shape frag_suite_like_shape, frag_suite_change_shape;
/* Of all answers: each has its own part. */
#define FRAG_SUITE_DATA(F, P, S) \
	F(S, TEXT, version, NULL, "of workloads and rules") \
	F(S, TEXT, cufrag, NULL, "revision that measured") \
	F(S, TEXT, division, NULL, "simulated or card") \
	F(S, TEXT, device, NULL, "the card") \
	F(S, TEXT, driver, NULL, "its driver; empty: simulated") \
	F(S, TEXT, hash, NULL, "SHA-256 of the result without it") \
	F(S, BOOL, complete, NULL, "every row is there, and none has failed") \
	F(S, LIST, scores, NULL, "by rank in space", .of = &score_row_shape) \
	F(S, LIST, rows, NULL, "each policy on each workload", .of = &frag_suite_row_shape) \
	F(S, LIST, workloads, NULL, "list: what they are like", .of = &frag_suite_like_shape) \
	F(S, LIST, changes, NULL, "compare: rows that differ", .of = &frag_suite_change_shape)
FRAG_ROW_STRUCT(frag_suite_data, FRAG_SUITE_DATA);
extern const struct frag_shape frag_suite_shape;
int frag_suite_answer(const struct frag_suite_result *r, struct frag_answer *a,
		      struct frag_err *err);
/* Pareto picture, heat map, capacity curves: parts of that answer. */
void frag_suite_charts(const struct frag_suite_result *r, const struct frag_suite_score *scores,
		       struct frag_answer *a);
/* *differ: rows that differ beyond noise. */
int frag_suite_compare(const struct frag_suite_result *a_, const struct frag_suite_result *b_,
		       struct frag_answer *a, size_t *differ, struct frag_err *err);

#endif
