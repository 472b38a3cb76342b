/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of two recordings, matched; see scale_match.c. */
#ifndef FRAG_PLAN_SCALE_MATCH_H
#define FRAG_PLAN_SCALE_MATCH_H

#include <frag/error.h>
#include <frag/trace.h>

struct frag_scale_item {
	uint64_t bytes;
	uint16_t pool, stream;
};
struct frag_scale_list { /* the requests of a device, in order */
	struct frag_scale_item *items;
	size_t count;
};
int frag_scale_list_make(const struct frag_trace_dev *dev, struct frag_scale_list *out,
			 struct frag_err *err);
void frag_scale_list_release(struct frag_scale_list *l);

/* match[i]: the request of `other` that matches request i of base, SIZE_MAX = none; ascending. */
int frag_scale_match(const struct frag_scale_list *base, uint64_t base_value,
		     const struct frag_scale_list *other, uint64_t value, size_t *match,
		     struct frag_err *err);

#endif
