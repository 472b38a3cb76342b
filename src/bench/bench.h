/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cufrag bench` measures: latency of driver calls by size (driver_calls.c), and of
 * policies on the operations of a trace (policy.c).
 *
 * Ownership: tables own their samples; release gives them back.
 */
#ifndef FRAG_BENCH_BENCH_H
#define FRAG_BENCH_BENCH_H

#include <frag/device.h>
#include <frag/metrics.h>
#include <frag/policy.h>
#include <frag/trace.h>

#include "answer/answer.h"
#include "recording/policy_texts.h"
#include "recording/target.h"
#include "compare/session.h"

/* One call at one size: all samples, sorted. */
struct frag_bench_row {
	const char *item; /* the call, or a case of it */
	uint64_t bytes;
	uint32_t handles; /* of one call; 1 = an ordinary one */
	uint64_t *ns;
	size_t count, cap;
};

struct frag_bench {
	struct frag_device *dev;
	uint64_t budget_bytes; /* memory that may be held at a time */
	unsigned repeats;
	struct frag_bench_row *rows;
	size_t rows_count, rows_cap;
	bool warm; /* false: samples of the warm-up are dropped */
};

/* Opens the device: half of its free memory, 32 GiB or the limit may be held. pre: b->repeats. */
int frag_bench_open(struct frag_bench *b, const struct frag_session_host *host,
		    const struct frag_limit *limit, struct frag_err *err);
/* Closes it. */
void frag_bench_release(struct frag_bench *b);
/* q in 0..1 of a sorted row. */
uint64_t frag_bench_quantile(const struct frag_bench_row *r, double q);
/* All driver calls that the device has, twice: a warm-up and the measurement. */
int frag_bench_calls(struct frag_bench *b, struct frag_err *err);

extern const struct frag_shape frag_bench_shape; /* of both answers */
/* All rows, by call and size. */
void frag_bench_calls_answer(const struct frag_bench *b, struct frag_answer *a);

/* ---- policies ---------------------------------------------------------------------- */

/* Allocs and frees of one device of a trace, nothing else. */
struct frag_bench_op {
	uint64_t bytes; /* 0 = free */
	uint32_t slot;
	uint32_t stream;
};
struct frag_bench_ops {
	struct frag_bench_op *at;
	size_t count;
	uint32_t slots_count, streams_count;
};
int frag_bench_ops_take(const struct frag_trace_dev *dev, struct frag_bench_ops *out,
			struct frag_err *err);

/* Percentiles of single calls: each is taken in every timed pass by itself, so that one disturbed
 * pass does not show, and how far the passes are apart does. */
#define FRAG_BENCH_QUANTILES 5u /* p50, p90, p99, p99.9, the slowest call */
struct frag_bench_latency {
	uint64_t count; /* calls of a pass */
	struct frag_bench_spread {
		uint64_t median_ns, min_ns, max_ns; /* over the passes */
	} at[FRAG_BENCH_QUANTILES];
};

struct frag_bench_policy {
	uint64_t ops;
	double cold_ns, warm_ns, warm_min_ns, warm_max_ns; /* per operation, whole passes */
	uint64_t warm_driver_calls;			   /* of all warm passes */
	/* single calls of as many passes more */
	struct frag_bench_latency alloc_ns, free_ns, class_ns[FRAG_CLASS_COUNT];
	uint64_t clock_ns; /* what reading the clock takes, in every single call */
};
/* passes: warm ones, >= 1. limit as in frag_run_options. Errors: FRAG_ECHECK if memory runs out. */
int frag_bench_policy(const struct frag_policy_spec *spec, struct frag_device *dev,
		      const struct frag_bench_ops *ops, unsigned passes, uint64_t limit_bytes,
		      struct frag_bench_policy *out, struct frag_err *err);

/* Policies on traces. */
struct frag_bench_policies {
	const struct frag_session_host *host;
	const struct frag_limit *limit;
	struct frag_policy_texts *policies; /* none: pytorch */
	unsigned passes;
	struct frag_answer *a;
	/* rows, in memory of the answer */
	struct frag_bench_policy_row *rows;
	size_t rows_count;
};
/* A policy that cannot serve a trace, or not on this card, is left out with a note. */
int frag_bench_policies_answer(struct frag_bench_policies *b, char *const *paths, size_t count,
			       struct frag_err *err);

#endif
