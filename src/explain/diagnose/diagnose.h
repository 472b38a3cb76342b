/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnosis: one finding for each thing that is wrong, with the numbers that support it and the
 * line of the program. docs/understand.md states every rule with its thresholds. A finding is made
 * only if its numbers leave no doubt; what is less certain is a note, or not mentioned.
 *
 * Ownership: the answer owns the texts; the list is released as a whole.
 */
#ifndef FRAG_EXPLAIN_DIAGNOSE_H
#define FRAG_EXPLAIN_DIAGNOSE_H

#include <frag/replay.h>

#include "answer/answer.h"
#include "answer/row.h"
#include "explain/case.h"
#include "explain/curve_point.h"
#include "recording/ending.h"

/* The worst first: the first one found is the verdict. */
#define FRAG_FINDING_LIST(X) \
	X(OOM_FRAGMENTATION, "oom: fragmentation", "oom-fragmentation") \
	X(OOM_NEEDED, "oom: the program needs it", "oom-needed") \
	X(OOM_OTHERS, "oom: others hold the card", "oom-others") \
	X(OOM_UNCLEAR, "oom: the text does not say why", "oom-unclear") \
	X(LEAK, "leak", "leak") \
	X(GROWTH, "growth inside a phase", "growth") \
	X(SPIKE, "spike", "spike") \
	X(IMBALANCE, "imbalance", "imbalance") \
	X(FRAGMENTATION, "fragmentation", "fragmentation") \
	X(CACHE, "cache too eager", "cache") \
	X(RELEASED, "released", "released") \
	X(UNDECIDED, "undecided", "undecided") \
	X(STEADY, "steady", "steady")
enum frag_finding_kind {
#define FRAG_X_(name, text, word) FRAG_FOUND_##name,
	FRAG_FINDING_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_FOUND_KINDS
};
const char *frag_finding_text(enum frag_finding_kind kind);

/* Fields of the rows (answer/row.h). */
#define FRAG_NUMBER_ROW(F, P, S) \
	F(S, TEXT, name, NULL, "its name ends with the unit") \
	P(S, TEXT, label, "number", "what it is") \
	P(S, TEXT, text, "value", "with its unit", .right = true) \
	F(S, REAL, value, NULL, "value")
FRAG_ROW_STRUCT(frag_number, FRAG_NUMBER_ROW);
extern const struct frag_shape frag_number_shape;

#define FRAG_FINDING_ROW(F, P, S) \
	F(S, TEXT, verdict, "verdict", "the problem, or steady") \
	F(S, TEXT, about, "of", "trace, device or card") \
	F(S, TEXT, text, "finding", "one sentence") \
	F(S, TEXTS, lines, "lines", "lines of the program to blame") \
	F(S, MAP, numbers, NULL, "the figures behind the finding", .of = &frag_number_shape)
#define FRAG_FINDING_NUMBERS 16
struct frag_finding {
	FRAG_ROW_MEMBERS(FRAG_FINDING_ROW)
	enum frag_finding_kind kind;
	struct frag_answer *texts; /* owns them */
	struct frag_text words;	   /* of `text`, until it is finished */
	const char *line;	   /* to blame, or NULL */
	const char *next;	   /* command that goes on; NULL: by its kind */
	struct frag_number list[FRAG_FINDING_NUMBERS];
};

/* A device that was checked. */
struct frag_checked_device {
	const char *name;
	uint64_t peak_active_bytes, peak_reserved_bytes, steps_count;
	bool simulated; /* not the recorded peak: the file does not say, or a what-if */
	bool truncated; /* its oldest entries were lost */
	struct frag_neighbours shared; /* processes of its recording on one card, at most */
	struct frag_rows points;       /* its memory over the steps: struct frag_curve_point */
};

#define FRAG_DIAGNOSIS_ROW(F, P, S) \
	F(S, TEXT, verdict, "verdict", "that of the worst finding") \
	F(S, LIST, findings, NULL, "the worst first", .of = &frag_finding_shape) \
	F(S, TEXTS, notes, NULL, "worth knowing, nothing wrong") \
	F(S, OBJECT, ended_out_of_memory, NULL, \
	  "the first recording that did, so its need is unknown; null: none", \
	  .of = &frag_ending_shape)
/* Init: { .texts = &answer }, which owns the texts and remembers if memory was short. */
struct frag_findings {
	FRAG_ROW_MEMBERS(FRAG_DIAGNOSIS_ROW)
	struct frag_answer *texts;
	struct frag_finding *list;
	struct frag_checked_device *devices;
	const char **notes_list;
	size_t count, cap, devices_count, devices_cap, notes_count, notes_cap;
};
/* A new one at the end, to be filled before the next. */
struct frag_finding *frag_findings_add(struct frag_findings *f, enum frag_finding_kind kind,
				       const char *about);
/* More of its sentence; SAY: of f's. */
#define SAY(...) frag_finding_say(f, __VA_ARGS__)
void frag_finding_say(struct frag_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void frag_finding_number(struct frag_finding *f, const char *name, double value);
double frag_finding_value(const struct frag_finding *f, const char *name); /* 0: none */
/* The line to blame; takes it over. NULL: none. */
void frag_finding_line(struct frag_finding *f, char *line);
#define NOTE(...) frag_findings_note(out, __VA_ARGS__)
void frag_findings_note(struct frag_findings *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void frag_findings_add_device(struct frag_findings *f, const struct frag_checked_device *dev);
void frag_findings_release(struct frag_findings *f);
/* Compares the devices, orders findings by kind, else as found, and makes the answer, which borrows
 * them. pre: at least one. Errors: FRAG_ENOMEM. */
extern const struct frag_shape frag_diagnosis_shape;
int frag_findings_answer(struct frag_findings *f, struct frag_err *err);

/* The facts that the rules judge. */
struct frag_checkup {
	struct frag_case in;
	const char *about;
	struct frag_result result; /* of the replay */
	/* the recorded peak, where that is known, and most in use; does the replay reserve that? */
	uint64_t peak_reserved_bytes, peak_active_bytes, replayed_peak_bytes;
	bool reproduced;
	/* after a tenth of the events: least reserved, most in use; the rest stays unused */
	uint64_t late_reserved_bytes, late_active_bytes;
	const char *lost_text; /* what no common setting saves; NULL: at most a tenth */
	/* the replay: most reserved in each step, non-releasable at its end and around each trim */
	uint64_t *reserved, *non_releasable; /* [history.count + 1] */
	uint64_t trim_before[FRAG_REFUSALS_KEPT], trim_after[FRAG_REFUSALS_KEPT];
	struct frag_refusals refused;
};
void frag_checkup_destroy(struct frag_checkup *c); /* its case, too */
FRAG_AUTO_AT(struct frag_checkup *, frag_checkup_destroy)

/* All rules on one device. in: not opened. Errors: those of replays, FRAG_ENOMEM. */
int frag_diagnose(const struct frag_case *in, const char *about, struct frag_findings *out,
		  struct frag_err *err);
/* Ranks or cards of one job. */
void frag_find_imbalance(const struct frag_checked_device *devices, size_t n,
			 struct frag_findings *out);

/*
 * Logs of memory in use, for people without a recording: of nvidia-smi in all its shapes, and any
 * CSV whose header names a time and columns of bytes. Memory is bounded: a series beyond
 * FRAG_MEMLOG_SAMPLES keeps every second sample, then every fourth, and so on; the maximum is never
 * lost.
 *
 * Ownership: a log owns its series.
 */
#define FRAG_MEMLOG_SAMPLES 65536u
#define FRAG_MEMLOG_SERIES 1024u
#define FRAG_MEMLOG_NAME 128u
#define FRAG_MEMLOG_IN_USE "memory in use of "

struct frag_memlog_series {
	char name[FRAG_MEMLOG_NAME]; /* "memory in use of GPU 0", the name of the column */
	struct frag_memlog_sample {
		double time, bytes; /* seconds since the first sample */
	} * list;
	size_t count, cap;
	uint64_t stride, seen; /* every stride-th sample is kept */
	double most;	       /* bytes, of all samples */
	double total;	       /* of the card, 0 = not in the log */
};

struct frag_memlog {
	const char *format; /* constant text */
	const char *unit;   /* of its times where these are no seconds: "step", "sample" */
	struct frag_memlog_series *list;
	size_t count, cap;
	double first_time; /* of the first sample, in seconds; NaN: none yet */
};

/* 1; 0: the file does not begin like one of these. Errors: FRAG_EINPUT with the line. */
int frag_memlog_read(const char *path, struct frag_memlog *out, struct frag_err *err);
void frag_memlog_release(struct frag_memlog *log);
int frag_diagnose_log(const struct frag_memlog *log, struct frag_findings *out,
		      struct frag_err *err);
/* PyTorch's export_memory_timeline, likewise: 1; 0: the file is not one; or an error. */
int frag_diagnose_timeline(const char *path, struct frag_findings *out, struct frag_err *err);
/* The text of an out-of-memory error or a memory summary, for people that have nothing else. 1; 0:
 * there is none in it; or an error of reading. */
int frag_diagnose_text(const char *path, struct frag_findings *out, struct frag_err *err);

/*
 * Does a series grow? The Mann-Kendall test (Mann 1945, Kendall 1975) asks whether later values are
 * larger than earlier ones, whatever their distribution, with the correction for ties. The slope is
 * the Theil-Sen estimate (Theil 1950, Sen 1968): the median of the slopes of all pairs, which stays
 * put even if almost a third of the values are outliers.
 */
struct frag_trend {
	double tau;   /* Kendall's: -1 … 1 */
	double z;     /* of Mann-Kendall; 0 where n < 4 */
	double p;     /* that no trend looks like this, one-sided (upwards) */
	double slope; /* Theil-Sen, units per step of the series */
};

/* Series longer than FRAG_TREND_MAX are thinned evenly. O(n^2), n <= FRAG_TREND_MAX. */
#define FRAG_TREND_MAX 1024u
int frag_trend_of(const double *y, size_t n, struct frag_trend *out, struct frag_err *err);
/* Of y, which it sorts; 0 if n = 0. */
double frag_median(double *y, size_t n);

/*
 * Is this series of bytes kept a leak? It climbs as a whole and still in its second half, at no
 * less than a third of the pace of the first (a cache that fills up fades).
 */
struct frag_climb {
	double per_step, first_half, second_half, z, p, tau, grown;
};
int frag_climbs(const double *kept, size_t n, double least_bytes, struct frag_climb *out,
		bool *climbs, struct frag_err *err);

/* Sets what an answer concludes with, if a recording leaks: no card is enough then. Errors: those of
 * the events, FRAG_ENOMEM. */
int frag_leak_caveat(const struct frag_events *events, struct frag_answer *a, struct frag_err *err);

/* Does a private pool begin in most passes of [from, to)? Then it captures CUDA graphs, and what
 * they keep is no leak. */
int frag_is_capturing(const struct frag_checkup *c, uint64_t from, uint64_t to, double passes,
		      bool *is, struct frag_err *err);

/* The rules, one file each. Each adds what it finds. */
int frag_find_oom(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);
int frag_find_leak(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);
int frag_find_spike(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);
int frag_find_fragmentation(struct frag_checkup *c, struct frag_findings *out,
			    struct frag_err *err);
int frag_find_cache(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);

/* Memory that climbs from pass to pass within one step, or in a program without steps. */
int frag_find_growth(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);
#define FRAG_GRAPHS_REMEDY \
	"no backward pass releases it: run it under torch.no_grad() or torch.inference_mode(), " \
	".detach() what is remembered, and move collected outputs to the host (.cpu())"
#define FRAG_GRAPHS_TRY \
	"; cufrag advise --changes no_grad,kept_tensors,kept_graphs -- " \
	"python TRAIN.py tries it"
/* Of a growth. */
const char *frag_growth_remedy(const struct frag_finding *f);
/* Blames a frame (UINT32_MAX: none) for a share of what grew. */
void frag_finding_lines(const struct frag_checkup *c, struct frag_finding *f, uint32_t frame,
			double share);

/* Bytes that a leak or a growth had gathered until an event. */
double frag_growth_until(const struct frag_checkup *c, const struct frag_finding *f,
			 uint64_t event);
/* Were they still there, of what was live when a request was refused? */
bool frag_growth_is_held(const struct frag_checkup *c, const struct frag_finding *f,
			 const struct frag_refused_at *then);
/* And are they why it was refused: free bytes would not have held it, or far less of them is
 * pinned than grew? */
bool frag_growth_is_reason(const struct frag_checkup *c, const struct frag_finding *f,
			   const struct frag_refused_at *then);
#define FRAG_FAR_LARGER 4 /* a loss against another one, which it then comes before */

/* Who holds most after an event: the largest call site by live bytes. Errors: FRAG_ENOMEM. */
int frag_finding_holders(struct frag_checkup *c, uint64_t event, struct frag_finding *f,
			 struct frag_err *err);

/* Before an optimizer step ended; without marks, where next to nothing was given back before. */
bool frag_oom_in_first_step(const struct frag_case *c, const struct frag_refusal *r);

/* Does no request follow it? */
bool frag_oom_is_last(const struct frag_case *c, const struct frag_refusal *r);
/* Was a refusal fragmentation? find_oom.c has the rule. */
bool frag_oom_is_fragmentation(const struct frag_case *c, const struct frag_refused_at *then);

#endif
