/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cufrag bench` measures: latency of driver calls by size. What policies cost is measured by
 * the suite (src/suite).
 *
 * Ownership: tables own their samples; release gives them back.
 */
#ifndef FRAG_BENCH_BENCH_H
#define FRAG_BENCH_BENCH_H

#include <frag/device.h>

#include "answer/answer.h"
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

extern const struct frag_shape frag_bench_shape;
/* All rows, by call and size. */
void frag_bench_calls_answer(const struct frag_bench *b, struct frag_answer *a);

#endif
