/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnosis: one finding per thing that is wrong, with the numbers that it rests on and the lines
 * of the program. Every rule is stated in docs/explain.md with its thresholds; a finding is
 * made where the numbers are beyond doubt, everything below is a note or nothing.
 *
 * Ownership: findings own their texts; the list is released as a whole.
 */
#ifndef FRAG_EXPLAIN_DIAGNOSE_H
#define FRAG_EXPLAIN_DIAGNOSE_H

#include <frag/replay.h>

#include "answer/answer.h"
#include "explain/case.h"
#include "explain/curve_point.h"
#include "trend.h"

/* In the order in which they are told: the first one found is the verdict. */
#define FRAG_FINDING_LIST(X) \
	X(OOM_FRAGMENTATION, "oom: fragmentation", "oom-fragmentation") \
	X(OOM_NEEDED, "oom: the program needs it", "oom-needed") \
	X(LEAK, "leak", "leak") \
	X(SPIKE, "spike", "spike") \
	X(FRAGMENTATION, "fragmentation", "fragmentation") \
	X(CACHE, "cache too eager", "cache") \
	X(RELEASED, "released", "released") \
	X(IMBALANCE, "imbalance", "imbalance") \
	X(STEADY, "steady", "steady")
enum frag_finding_kind {
#define FRAG_X_(name, text, word) FRAG_FOUND_##name,
	FRAG_FINDING_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_FOUND_KINDS
};
const char *frag_finding_text(enum frag_finding_kind kind);

struct frag_number {
	const char *name; /* with its unit; constant text */
	double value;
};

#define FRAG_FINDING_LINES 3
#define FRAG_FINDING_NUMBERS 16
struct frag_finding {
	enum frag_finding_kind kind;
	char *about; /* trace, device, card of a log */
	struct frag_text text;
	char *lines
		[FRAG_FINDING_LINES]; /* to blame, the worst first; NULL-terminated unless full */
	struct frag_number numbers[FRAG_FINDING_NUMBERS];
	size_t numbers_count;
};

/* A device that was looked at. */
struct frag_checked_device {
	char *name;
	uint64_t peak_active_bytes;
	struct frag_curve_point *points; /* its memory over the steps */
	size_t points_count;
};

struct frag_findings {
	struct frag_finding *list;
	size_t count, cap;
	struct frag_text notes; /* a line each: worth knowing, nothing wrong */
	struct frag_checked_device *devices;
	size_t devices_count, devices_cap;
};
/* A new one at the end; NULL when memory is short. */
struct frag_finding *frag_findings_add(struct frag_findings *f, enum frag_finding_kind kind,
				       const char *about, struct frag_err *err);
void frag_finding_number(struct frag_finding *f, const char *name, double value);
/* Takes over `line`; NULL and doubles are left out. */
void frag_finding_line(struct frag_finding *f, char *line);
/* A new one at the end; NULL when memory is short. */
struct frag_checked_device *frag_findings_add_device(struct frag_findings *f, const char *name,
						     struct frag_err *err);
/* Compares the devices, and orders findings by kind, else as found; FRAG_ENOMEM if a text is incomplete. */
int frag_findings_finish(struct frag_findings *f, struct frag_err *err);
void frag_findings_release(struct frag_findings *f);
/* The answer of diagnose, which borrows the findings. pre: finished, at least one. Errors: FRAG_ENOMEM. */
extern const struct frag_shape frag_diagnosis_shape;
int frag_findings_answer(const struct frag_findings *f, struct frag_answer *a,
			 struct frag_err *err);

/* What the rules look at. */
struct frag_checkup {
	struct frag_case in;
	const char *about;
	struct frag_result result; /* of the replay */
	/* the replay at the end of each step, and around each trim */
	uint64_t *reserved, *pinned; /* [history.count + 1]: reserved, non-releasable */
	uint64_t trim_before[FRAG_REFUSALS_KEPT], trim_after[FRAG_REFUSALS_KEPT];
	uint64_t refused_reserved[FRAG_REFUSALS_KEPT]; /* after the refusal */
};

/* All rules on one device. in: not opened. Errors: those of replays, FRAG_ENOMEM. */
int frag_diagnose(const struct frag_case *in, const char *about, struct frag_findings *out,
		  struct frag_err *err);
/* Ranks or cards of one job. */
int frag_find_imbalance(const struct frag_checked_device *devices, size_t n,
			struct frag_findings *out, struct frag_err *err);
/* A log of memory in use: see memlog.h. */
struct frag_memlog;
int frag_diagnose_log(const struct frag_memlog *log, struct frag_findings *out,
		      struct frag_err *err);

/*
 * Is this series of bytes kept a leak? It climbs as a whole and still in its second half, at no
 * less than a third of the pace of the first (a cache that fills up fades). strict: its points are
 * not ends of steps, so it must climb nearly all the time.
 */
struct frag_climb {
	double per_step, first_half, second_half, z, p, tau, grown;
};
int frag_climbs(const double *kept, size_t n, bool strict, double least_bytes,
		struct frag_climb *out, bool *climbs, struct frag_err *err);

/* The rules, one file each. Each adds what it finds. */
int frag_find_oom(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);
int frag_find_leak(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);
int frag_find_spike(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);
int frag_find_fragmentation(struct frag_checkup *c, struct frag_findings *out,
			    struct frag_err *err);
int frag_find_cache(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err);

/* Was a refusal fragmentation? find_oom.c has the rule; all as they were then. */
bool frag_oom_is_fragmentation(uint64_t live, uint64_t request, uint64_t reserved, uint64_t limit);

#endif
