/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs beside each other; see diff.h. */
#include "diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"

#define UNCHANGED 0.01 /* less than this is no change of live memory, or of a step */

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

int frag_side_of(const struct frag_explained *x, const struct frag_explained *live,
		 const char *name, const char *setting, struct frag_side *out, struct frag_err *err)
{
	const struct frag_history *h = &x->history;
	int rc = begin(out, name, setting, err);

	out->peak_reserved = x->peak_reserved_bytes;
	out->peak_live = h->peak_live;
	out->has_loss = true;
	out->loss = x->loss;
	out->sites = frag_host_calloc(live->rows_count + 1, sizeof(*out->sites));
	out->steps = frag_host_calloc(h->count + 1, sizeof(*out->steps));
	if (!rc && (!out->sites || !out->steps))
		rc = frag_fail_nomem(err, "comparison");
	for (size_t i = 0; x->curves && i < x->curves->points; i++) {
		out->reserved[i] = x->curves->reserved[i];
		out->active[i] = x->curves->active[i];
		out->us[i] = x->curves->us[i];
		out->points = i + 1;
	}
	for (size_t i = 0; !rc && i < live->rows_count; i++)
		rc = add_site(out, live->rows[i].name, live->rows[i].requested_bytes, err);
	for (size_t i = 0; !rc && i < h->count; i++)
		out->steps[out->steps_count++] = h->steps[i].peak_live;
	if (rc)
		frag_side_release(out);
	else
		qsort(out->sites, out->sites_count, sizeof(*out->sites), by_name);
	return rc;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

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
	out->estimate = json_is_object(json_object_get(root, "estimate"));
	if (!rc && !out->peak_reserved) {
		rc = frag_fail(err, FRAG_EINPUT,
			       "'%.200s' is no result of replay, compare or explain: it has no "
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
	const struct frag_change_row *x = a, *y = b;
	uint64_t p = distance(x->before, x->after), q = distance(y->before, y->after);

	return FRAG_ORDER(q, p) ?: strcmp(x->name, y->name);
}

static double growth(uint64_t before, uint64_t after)
{
	return before ? (double)after / (double)before - 1 : 0;
}

int frag_sides_compare(const struct frag_side *before, const struct frag_side *after,
		       struct frag_compared *out, struct frag_err *err)
{
	size_t i = 0, k = 0;

	*out = (struct frag_compared){ .first_step = SIZE_MAX };
	out->reserved_growth = growth(before->peak_reserved, after->peak_reserved);
	out->live_growth = growth(before->peak_live, after->peak_live);
	FRAG_TRY_CALLOC(out->rows, before->sites_count + after->sites_count + 1, "comparison", err);
	/* both are sorted by name: a merge. A run without sites says nothing about them. */
	while (before->sites_count && after->sites_count &&
	       (i < before->sites_count || k < after->sites_count)) {
		int order = i == before->sites_count ? 1
			    : k == after->sites_count
				    ? -1
				    : strcmp(before->sites[i].name, after->sites[k].name);
		struct frag_change_row row = {
			order <= 0 ? before->sites[i].name : after->sites[k].name,
			order <= 0 ? before->sites[i].bytes : 0,
			order >= 0 ? after->sites[k].bytes : 0,
		};

		i += order <= 0;
		k += order >= 0;
		if (row.before != row.after)
			out->rows[out->count++] = row;
	}
	qsort(out->rows, out->count, sizeof(*out->rows), by_change);
	for (i = 0; i < before->steps_count && i < after->steps_count; i++) {
		if (fabs(growth(before->steps[i], after->steps[i])) <= UNCHANGED)
			continue;
		out->first_step = i;
		break;
	}
	return 0;
}

void frag_compared_release(struct frag_compared *c)
{
	frag_host_free(c->rows);
	*c = (struct frag_compared){ 0 };
}

static const char *settings_of(const char *policy)
{
	const char *colon = strchr(policy, ':');

	return !strncmp(policy, "pytorch", 7) ? (colon ? colon + 1 : "the defaults") : policy;
}

static void tell_live(const struct frag_side *before, const struct frag_side *after,
		      const struct frag_compared *c, struct frag_text *out)
{
	if (!before->peak_live || !after->peak_live)
		return;
	if (fabs(c->live_growth) <= UNCHANGED) {
		frag_text_add(out, "; live unchanged");
		return;
	}
	frag_text_add(out, "; live ");
	frag_text_add_bytes(out, before->peak_live);
	frag_text_add(out, " -> ");
	frag_text_add_bytes(out, after->peak_live);
	frag_text_addf(out, " (%+.1f %%)", 100 * c->live_growth);
	if (c->count)
		frag_text_addf(out, ", most at %s", c->rows[0].name);
}

void frag_compared_verdict(const struct frag_side *before, const struct frag_side *after,
			   const struct frag_compared *c, struct frag_text *out)
{
	bool same = !strcmp(before->setting, after->setting);

	frag_text_add(out, "peak reserved ");
	frag_text_add_bytes(out, before->peak_reserved);
	frag_text_add(out, " -> ");
	frag_text_add_bytes(out, after->peak_reserved);
	frag_text_addf(out, " (%+.1f %%): ", 100 * c->reserved_growth);
	if (same)
		frag_text_add(out, "the same settings");
	else
		frag_text_addf(out, "%s instead of %s", settings_of(after->setting),
			       settings_of(before->setting));
	tell_live(before, after, c, out);
}
