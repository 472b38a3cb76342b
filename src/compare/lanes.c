/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of recordings; see lanes.h. */
#include "lanes.h"

#include "base/term.h"
#include "compare/optimum.h"

#define EVENTS_MAX 8000000u /* of all lanes together, on pages of other commands */

int frag_lanes_open(const struct frag_lanes *l, struct frag_view *v, struct frag_err *err)
{
	FRAG_AUTO(frag_catalog_release) struct frag_catalog catalog = { 0 };

	FRAG_TRY(frag_catalog_init(&catalog, l->cards, l->vendor, err));
	return frag_view_open(v, &catalog, err);
}

/* `planned` without a plan gets one, as compare gives it; where it can't, its lane says so. */
static int add_lane(struct frag_export_job *job, uint32_t dev, struct frag_view *v,
		    struct frag_err *err)
{
	FRAG_AUTO(frag_planned_release) struct frag_planned plan = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text name = { 0 };
	struct frag_err why = { 0 };
	int rc = 0;

	frag_text_add(&name, frag_policy_spec_text(job->spec));
	if (frag_lacks_plan(job->spec)) {
		rc = job->path ? frag_fail(&why, FRAG_ENOTSUP, "the recording is too long")
			       : frag_plan_ahead(&job->trace->devs[dev], job->spec, true, &plan,
						 &why);
		if (rc && rc != FRAG_ENOTSUP)
			return frag_fail(err, rc, "%s", why.msg);
		if (rc)
			frag_text_addf(&name, " without a plan: %s", why.msg);
		else
			frag_text_addf(&name, ", plan of the %s", plan.about);
		job->spec = plan.spec ? plan.spec : job->spec;
	}
	FRAG_TRY(frag_text_check(&name, err));
	job->policy = frag_text_str(&name);
	return frag_view_add(v, job, dev, err);
}

int frag_lanes_add(const struct frag_lanes *l, const struct frag_recording *in,
		   struct frag_policy_spec *const *specs, size_t count, size_t recorded,
		   struct frag_view *v, struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	char label[160];
	struct frag_export_job job = { .trace = in->trace,
				       .path = in->source ? in->path : NULL,
				       .target = *l->target };

	snprintf(label, sizeof(label), "viewing %.120s", in->trace->name ? in->trace->name : "");
	frag_progress_show(&progress, label);
	FRAG_TRY(frag_view_add_file(v, in->trace, err));
	for (uint32_t d = 0; d < in->trace->devs_count; d++) {
		job.name = in->units[d].label;
		for (size_t i = 0; i < count; i++) {
			job.spec = specs[i];
			job.as_recorded = i == recorded;
			FRAG_TRY(add_lane(&job, d, v, err));
		}
	}
	return 0;
}

int frag_lanes_page(const struct frag_lanes *l, const struct frag_recording *in,
		    struct frag_policy_spec *const *specs, size_t count, size_t recorded,
		    uint64_t event, const char *note, struct frag_answer *page,
		    struct frag_err *err)
{
	FRAG_AUTO(frag_view_release) struct frag_view v = { 0 };

	if (in->pipe || frag_trace_events_count(in->trace) * count > EVENTS_MAX) {
		page->live = "<p class=\"sub\">Too long for an interactive view here: <code>cufrag "
			     "view</code> shows the recording event by event.</p>\n";
		return 0;
	}
	FRAG_TRY(frag_lanes_open(l, &v, err));
	FRAG_TRY(frag_lanes_add(l, in, specs, count, recorded, &v, err));
	if (note)
		FRAG_TRY(frag_view_note(&v, 0, event, note, err));
	return frag_view_put(&v, FRAG_VIEW_PAGE_MAX, page, err);
}
