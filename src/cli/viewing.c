/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of recordings; see viewing.h. */
#include "viewing.h"

#include "recordings.h"

static int add_lane(const struct frag_cli *cli, const struct frag_recording *in, uint32_t dev,
		    const char *policy, const struct frag_policy_spec *spec, struct frag_view *v,
		    struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	const struct frag_export_job job = { .trace = in->trace,
					     .path = in->source ? in->path : NULL,
					     .spec = spec,
					     .as_recorded = frag_policy_is_recorded(policy),
					     .target = cli->target,
					     .name = in->units[dev].label,
					     .policy = frag_policy_spec_text(spec) };

	frag_cli_show(&progress, "replaying", in->units[dev].label);
	return frag_view_add(v, &job, dev, err);
}

int frag_cli_view_add(const struct frag_cli *cli, struct frag_recording *in,
		      const struct frag_policy_texts *policies, struct frag_view *v,
		      struct frag_err *err)
{
	size_t count = policies && policies->count ? policies->count : 1;

	FRAG_TRY(frag_view_add_file(v, in->trace, err));
	for (size_t i = 0; i < count; i++) {
		const char *text = policies && policies->count ? policies->text[i] : NULL;
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

		FRAG_TRY(frag_cli_spec(cli, in, text, &spec, err));
		for (uint32_t d = 0; d < in->trace->devs_count; d++)
			FRAG_TRY(add_lane(cli, in, d, text, spec, v, err));
	}
	return 0;
}

int frag_cli_view_page(const struct frag_cli *cli, struct frag_recording *in,
		       const struct frag_policy_texts *policies, uint64_t event, const char *note,
		       struct frag_answer *page, struct frag_err *err)
{
	FRAG_AUTO(frag_view_release) struct frag_view v = { 0 };

	FRAG_TRY(frag_view_open(&v, err));
	FRAG_TRY(frag_cli_view_add(cli, in, policies, &v, err));
	if (note)
		FRAG_TRY(frag_view_note(&v, 0, event, note, err));
	return frag_view_put(&v, FRAG_VIEW_PAGE_MAX, page, err);
}
