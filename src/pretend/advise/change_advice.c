/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of an advice, and its curve; see change_advice.h. */
#include "change_advice.h"

#include <string.h>

#include <frag/metrics.h>

#include "base/clean.h"

#define TEXTS(x) \
	{ \
		&(x)->change, &(x)->what, &(x)->where, &(x)->numerics, &(x)->left_out, \
			&(x)->group, &(x)->pattern \
	}

static void set_text(const char **at, const char *text)
{
	char *copy = frag_host_strdup(text ? text : "");

	*at = copy ? frag_clean_text(copy, strlen(copy)) : NULL;
}

int frag_advice_own(struct frag_advice *x, struct frag_err *err)
{
	const char **texts[] = TEXTS(x);
	bool all = true;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		set_text(texts[i], *texts[i]);
		all &= *texts[i] != NULL;
	}
	return all ? 0 : frag_fail_nomem(err, "advice");
}

void frag_advice_leave_out(struct frag_advice *x, const char *why)
{
	frag_host_free((void *)(uintptr_t)x->left_out);
	set_text(&x->left_out, why);
}

void frag_advices_release(struct frag_advice *list, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		const char **texts[] = TEXTS(&list[k]);

		for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++)
			frag_host_free((void *)(uintptr_t)*texts[i]);
	}
	frag_host_free(list);
}

/* A point has the maximum up to the next point, so no peak is lost. */
void frag_curve_take(struct frag_curve *c, const struct frag_series *s)
{
	c->count = 0;
	for (size_t i = 0; i < s->count && c->count < FRAG_CURVE_POINTS; i++)
		c->points[c->count++] =
			(struct frag_curve_sample){ .time_us = s->windows[i].first_us,
						    .requested = s->windows[i].requested_max,
						    .active = s->windows[i].active_max,
						    .reserved = s->windows[i].reserved_max };
}
