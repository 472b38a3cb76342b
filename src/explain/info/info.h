/* SPDX-License-Identifier: Apache-2.0 */
/* What is in recordings: the answer of `cufrag info`. */
#ifndef FRAG_EXPLAIN_INFO_H
#define FRAG_EXPLAIN_INFO_H

#include "answer/answer.h"
#include "info_scan.h"
#include "recording/recording.h"

struct frag_info_trace;
/* Zeroed to begin with; `a` owns what it points to. */
struct frag_infos {
	struct frag_answer *a;
	struct frag_info_trace *list;
	size_t count, cap;
};

/*
 * One recording, scanned and settled. r: opened by FRAG_OPEN_SOURCE; infos[r->trace->devs_count].
 * Both may be freed afterwards. Errors: FRAG_ENOMEM.
 */
int frag_infos_add(struct frag_infos *all, const struct frag_recording *r,
		   const struct frag_info *infos, struct frag_err *err);
/* All of one, a line for each device of several. Errors: FRAG_ENOMEM. */
extern const struct frag_shape frag_infos_shape;
int frag_infos_answer(struct frag_infos *all, struct frag_err *err);
void frag_infos_release(struct frag_infos *all);

#endif
