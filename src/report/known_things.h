/* SPDX-License-Identifier: Apache-2.0 */
/* What this build knows: the answer of `cufrag list`. */
#ifndef FRAG_REPORT_KNOWN_THINGS_H
#define FRAG_REPORT_KNOWN_THINGS_H

#include "answer/answer.h"
#include "answer/row.h"

/* Only the list that was asked for has rows. */
#define FRAG_KNOWN(F, P, S) \
	F(S, LIST, policies, NULL, "of `list policies`", .of = &frag_known_policy_shape) \
	F(S, LIST, short_names, NULL, "of `list policies`", .of = &frag_known_short_shape) \
	F(S, LIST, devices, NULL, "of `list devices`", .of = &device_shape) \
	F(S, LIST, formats, NULL, "of `list formats`", .of = &format_shape) \
	F(S, LIST, gpus, NULL, "of `list gpus`", .of = &gpu_shape) \
	F(S, LIST, metrics, NULL, "of `list metrics`", .of = &metric_shape)
FRAG_ROW_STRUCT(frag_known, FRAG_KNOWN);
extern const struct frag_shape frag_known_shape;

/* One kind of thing. Adds its rows to `known`, and what people read, to the answer. */
typedef int (*frag_known_fn)(struct frag_answer *a, struct frag_known *known, struct frag_err *err);
int frag_known_devices(struct frag_answer *a, struct frag_known *known, struct frag_err *err);
int frag_known_formats(struct frag_answer *a, struct frag_known *known, struct frag_err *err);
int frag_known_gpus(struct frag_answer *a, struct frag_known *known, struct frag_err *err);

/* One metric of a replay or column of a sweep. */
#define FRAG_KNOWN_METRIC(F, P, S) \
	F(S, TEXT, name, "metric", "key in JSON, column in CSV") \
	F(S, TEXT, unit, "unit", "B, ns, 1/s; null = a plain number") \
	F(S, TEXT, help, "meaning", "what it counts")
FRAG_ROW_STRUCT(frag_known_metric, FRAG_KNOWN_METRIC);
void frag_known_metrics(struct frag_answer *a, struct frag_known *known,
			const struct frag_known_metric *rows, size_t count);

/* only: the one policy of this name, NULL = all; hidden: also those that are left out otherwise. */
int frag_known_policies(struct frag_answer *a, struct frag_known *known, const char *only,
			bool hidden, struct frag_err *err);
extern const struct frag_shape frag_known_policy_shape, frag_known_short_shape;

#endif
