/* SPDX-License-Identifier: Apache-2.0 */
/* What two runs needed, and where they differ; see diff.h. */
#include "diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"

static int begin(struct frag_side *s, const char *name, const char *setting, struct frag_err *err)
{
	*s = (struct frag_side){ .name = frag_host_strdup(name),
				 .setting = frag_host_strdup(setting) };
	FRAG_CHECK_ALLOC(s->name && s->setting, "comparison", err);
	frag_clean_text(s->name, strlen(s->name));
	frag_clean_text(s->setting, strlen(s->setting));
	return 0;
}

static int add_site(struct frag_side *s, const char *name, uint64_t bytes, struct frag_err *err)
{
	char *copy = frag_host_strdup(name);

	FRAG_CHECK_ALLOC(copy, "comparison", err);
	frag_clean_text(copy, strlen(copy));
	s->sites[s->sites_count++] = (struct frag_side_site){ copy, bytes };
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct frag_side_site *)a)->name,
		      ((const struct frag_side_site *)b)->name);
}

/* x: at the peak of reserved memory; live: at that of live memory. */
static int fill(struct frag_side *out, const struct frag_explained *x,
		const struct frag_explained *live, const char *name, struct frag_err *err)
{
	const struct frag_history *h = &x->in.history;

	FRAG_TRY(begin(out, name, frag_policy_spec_text(x->in.spec), err));
	out->estimate = x->in.events.trace->estimate != NULL;
	out->peak_reserved = x->m.peak_reserved_bytes;
	out->peak_live = h->peak_live;
	out->has_loss = true;
	out->loss = x->loss;
	for (size_t i = 0; x->curves && i < x->curves->points; i++) {
		out->reserved[i] = x->curves->reserved[i];
		out->active[i] = x->curves->active[i];
		out->us[i] = x->curves->us[i];
		out->points = i + 1;
	}
	FRAG_TRY_CALLOC(out->sites, live->rows_count + 1, "comparison", err);
	FRAG_TRY_CALLOC(out->steps, h->count + 1, "comparison", err);
	for (size_t i = 0; i < live->rows_count; i++)
		FRAG_TRY(add_site(out, live->rows[i].site, live->rows[i].requested_bytes, err));
	for (size_t i = 0; i < h->count; i++)
		out->steps[out->steps_count++] = h->steps[i].peak_live;
	qsort(out->sites, out->sites_count, sizeof(*out->sites), by_name);
	return 0;
}

/* The call sites are those of the peak of live memory, which no policy moves. */
static int take(struct frag_side *side, const struct frag_case *in, const struct frag_explained *x,
		const char *name, struct frag_err *err)
{
	const struct frag_explain_options at_live = {
		.at = { FRAG_AT_EVENT, x->in.history.peak_event },
		.by = x->opt.by,
		.frame = x->opt.frame,
	};
	FRAG_AUTO_FREE struct frag_explained *live = NULL;
	int rc;

	FRAG_TRY_CALLOC(live, 1, "comparison", err);
	FRAG_TRY(frag_explain(in, &at_live, x->texts, live, err));
	frag_side_release(side);
	rc = fill(side, x, live, name, err);
	frag_explained_release(live);
	if (rc)
		frag_side_release(side);
	return rc;
}

int frag_side_take(struct frag_side *side, const struct frag_case *in,
		   const struct frag_explain_options *opt, const char *name, struct frag_err *err)
{
	struct frag_explain_options at_peak = *opt;
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
	FRAG_AUTO_FREE struct frag_explained *x = NULL;
	int rc = 0;

	at_peak.at = (struct frag_at){ .what = FRAG_AT_PEAK };
	at_peak.top = 0;
	FRAG_TRY_CALLOC(x, 1, "comparison", err);
	FRAG_TRY(frag_explain(in, &at_peak, &texts, x, err));
	if (!side->name || x->m.peak_reserved_bytes > side->peak_reserved)
		rc = take(side, in, x, name, err);
	frag_explained_release(x);
	return rc;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

json_t *frag_side_read_json(const char *path)
{
	json_t *root = NULL;
	FILE *f = strcmp(path, "-") != 0 ? fopen(path, "rb") : NULL;
	int c;

	if (!f)
		return NULL;
	do
		c = fgetc(f);
	while (c == ' ' || c == '\n' || c == '\t' || c == '\r');
	rewind(f);
	if (c == '{')
		root = json_loadf(f, JSON_REJECT_DUPLICATES, NULL);
	fclose(f);
	if (json_object_get(root, "schema"))
		return root;
	json_decref(root);
	return NULL;
}

/* 0 where it is absent or no size. */
static uint64_t bytes_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static int sites_of_json(struct frag_side *s, const json_t *list, struct frag_err *err)
{
	size_t n = json_array_size(list), i;
	const json_t *one;

	FRAG_TRY_CALLOC(s->sites, n + 1, "comparison", err);
	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "site"));

		if (name)
			FRAG_TRY(add_site(s, name, bytes_of(one, "allocated_bytes"), err));
	}
	qsort(s->sites, s->sites_count, sizeof(*s->sites), by_name);
	return 0;
}

int frag_side_of_json(const json_t *root, const char *name, struct frag_side *out,
		      struct frag_err *err)
{
	const json_t *r = json_array_get(json_object_get(root, "results"), 0);
	const json_t *sites = json_object_get(root, "sites");
	const char *policy;
	int rc;

	if (!r)
		r = root;
	policy = json_string_value(json_object_get(r, "policy"));
	rc = begin(out, name, policy ? policy : "", err);
	out->peak_reserved = bytes_of(r, "peak_reserved_bytes");
	out->peak_live = FRAG_MAX(bytes_of(r, "lower_bound_bytes"), bytes_of(r, "peak_live_bytes"));
	/* "estimate": an object, up to schema 2 */
	out->estimate = json_is_true(json_object_get(root, "estimated")) ||
			json_is_object(json_object_get(root, "estimate"));
	if (!rc && !out->peak_reserved) {
		rc = frag_fail(err, FRAG_EINPUT,
			       "'%.200s' is not a result of replay, compare or explain: it lacks "
			       "peak_reserved_bytes",
			       name);
	} else if (!rc) {
		out->loss.requested_bytes = bytes_of(r, "at_peak_requested_bytes");
		out->loss.non_releasable_bytes = bytes_of(r, "non_releasable_bytes");
		out->loss.releasable_bytes = bytes_of(r, "releasable_bytes");
		rc = sites_of_json(out, sites, err);
	}
	if (rc)
		frag_side_release(out);
	return rc;
}

void frag_side_release(struct frag_side *s)
{
	for (size_t i = 0; i < s->sites_count; i++)
		frag_host_free(s->sites[i].name);
	FRAG_FREE(s->sites, s->steps, s->name, s->setting);
	*s = (struct frag_side){ 0 };
}

/* ---- comparison ------------------------------------------------------------------------------ */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static int by_change(const void *a, const void *b)
{
	const struct frag_change *x = a, *y = b;
	uint64_t p = distance(x->before_bytes, x->after_bytes);
	uint64_t q = distance(y->before_bytes, y->after_bytes);

	return FRAG_ORDER(q, p) ?: strcmp(x->site, y->site);
}

static double growth(uint64_t before, uint64_t after)
{
	return before && after ? (double)after / (double)before - 1 : NAN;
}

static bool same_step(uint64_t before, uint64_t after)
{
	return !before || fabs((double)after / (double)before - 1) <= FRAG_DIFF_UNCHANGED;
}

int frag_sides_compare(const struct frag_side *before, const struct frag_side *after,
		       struct frag_compared *out, struct frag_err *err)
{
	size_t i = 0, k = 0;

	*out = (struct frag_compared){
		.before = before,
		.after = after,
		.first_step = SIZE_MAX,
		.reserved_growth = growth(before->peak_reserved, after->peak_reserved),
		.live_growth = growth(before->peak_live, after->peak_live),
	};
	FRAG_TRY_CALLOC(out->changes, before->sites_count + after->sites_count + 1, "comparison",
			err);
	/* both are sorted by name: a merge. A run without sites says nothing about them. */
	while (before->sites_count && after->sites_count &&
	       (i < before->sites_count || k < after->sites_count)) {
		int order = i == before->sites_count ? 1
			    : k == after->sites_count
				    ? -1
				    : strcmp(before->sites[i].name, after->sites[k].name);
		struct frag_change row = {
			.site = order <= 0 ? before->sites[i].name : after->sites[k].name,
			.before_bytes = order <= 0 ? before->sites[i].bytes : 0,
			.after_bytes = order >= 0 ? after->sites[k].bytes : 0,
		};

		i += order <= 0;
		k += order >= 0;
		if (row.before_bytes != row.after_bytes)
			out->changes[out->count++] = row;
	}
	qsort(out->changes, out->count, sizeof(*out->changes), by_change);
	for (i = 0; i < before->steps_count && i < after->steps_count; i++) {
		if (same_step(before->steps[i], after->steps[i]))
			continue;
		out->first_step = i;
		break;
	}
	return 0;
}

void frag_compared_release(struct frag_compared *c)
{
	frag_host_free(c->changes);
	*c = (struct frag_compared){ 0 };
}
