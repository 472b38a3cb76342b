/* SPDX-License-Identifier: Apache-2.0 */
/* What this build knows: the answer of `cufrag list`. */
#ifndef FRAG_REPORT_KNOWN_THINGS_H
#define FRAG_REPORT_KNOWN_THINGS_H

#include "answer/answer.h"

/* Only the list that was asked for has rows. */
struct frag_known {
	struct frag_rows policies, short_names, devices, formats, gpus, metrics;
};
extern const struct frag_shape frag_known_shape;

/* One kind of thing. Adds its rows to `known`, and what people read, to the answer. */
typedef int (*frag_known_fn)(struct frag_answer *a, struct frag_known *known, struct frag_err *err);
int frag_known_devices(struct frag_answer *a, struct frag_known *known, struct frag_err *err);
int frag_known_formats(struct frag_answer *a, struct frag_known *known, struct frag_err *err);
int frag_known_gpus(struct frag_answer *a, struct frag_known *known, struct frag_err *err);

/* One metric of a replay or column of a sweep. */
struct frag_known_metric {
	const char *name, *unit, *help;
};
void frag_known_metrics(struct frag_answer *a, struct frag_known *known,
			const struct frag_known_metric *rows, size_t count);

/* only: the one policy of this name, NULL = all; hidden: also those that are left out otherwise. */
int frag_known_policies(struct frag_answer *a, struct frag_known *known, const char *only,
			bool hidden, struct frag_err *err);
extern const struct frag_shape frag_known_policy_shape, frag_known_short_shape;

#endif
