/* SPDX-License-Identifier: Apache-2.0 */
/* What verify found of recordings, as an answer. */
#ifndef FRAG_RECORDING_VERIFIED_H
#define FRAG_RECORDING_VERIFIED_H

#include <frag/replay.h>

#include "answer/answer.h"
#include "recording.h"

/* In the order of how bad they are: the worst of all devices and recordings counts. */
enum frag_verdict { FRAG_VERDICT_SAME, FRAG_VERDICT_UNDETERMINED, FRAG_VERDICT_DIFFERENT };

struct frag_verified_trace;
/* Init: .a, .card, .counters; `a` owns what it points to. */
struct frag_verified {
	struct frag_answer *a;
	bool card;     /* on a real card: addresses are not compared */
	bool counters; /* text shows the allocator's own statistics, too */
	enum frag_verdict verdict;
	struct frag_verified_trace *list;
	size_t count, cap;
};

/* A recording; its devices follow. conf: verified settings; limit_bytes: UINT64_MAX = none. */
int frag_verified_begin(struct frag_verified *v, const struct frag_trace *trace, const char *conf,
			uint64_t limit_bytes, struct frag_err *err);
/* One device of it. Texts are copied. */
int frag_verified_add(struct frag_verified *v, const struct frag_trace_dev *dev,
		      const struct frag_verify_result *r, struct frag_err *err);
/* Errors: FRAG_ENOMEM. */
extern const struct frag_shape frag_verified_shape;
int frag_verified_answer(struct frag_verified *v, struct frag_err *err);
void frag_verified_release(struct frag_verified *v);

#endif
