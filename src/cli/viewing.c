/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of recordings; see viewing.h. */
#include "viewing.h"

#include "recordings.h"

#define EVENTS_MAX 8000000u /* of all lanes together, on pages of other commands */

int frag_cli_view_add(const struct frag_cli *cli, const struct frag_recording *in,
		      struct frag_policy_spec *const *specs, size_t count, size_t recorded,
		      struct frag_view *v, struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct frag_export_job job = { .trace = in->trace,
				       .path = in->source ? in->path : NULL,
				       .target = cli->target };

	frag_cli_show(&progress, "viewing", in->trace->name);
	FRAG_TRY(frag_view_add_file(v, in->trace, err));
	for (uint32_t d = 0; d < in->trace->devs_count; d++) {
		job.name = in->units[d].label;
		for (size_t i = 0; i < count; i++) {
			job.spec = specs[i];
			job.policy = frag_policy_spec_text(specs[i]);
			job.as_recorded = i == recorded;
			FRAG_TRY(frag_view_add(v, &job, d, err));
		}
	}
	return 0;
}

int frag_cli_view_page(const struct frag_cli *cli, const struct frag_recording *in,
		       struct frag_policy_spec *const *specs, size_t count, size_t recorded,
		       uint64_t event, const char *note, struct frag_answer *page,
		       struct frag_err *err)
{
	FRAG_AUTO(frag_view_release) struct frag_view v = { 0 };

	if (in->pipe || frag_trace_events_count(in->trace) * count > EVENTS_MAX)
		return 0;
	FRAG_TRY(frag_view_open(&v, err));
	FRAG_TRY(frag_cli_view_add(cli, in, specs, count, recorded, &v, err));
	if (note)
		FRAG_TRY(frag_view_note(&v, 0, event, note, err));
	return frag_view_put(&v, FRAG_VIEW_PAGE_MAX, page, err);
}
