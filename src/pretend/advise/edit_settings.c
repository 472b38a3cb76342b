/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the allocator, and another allocator: only an environment variable changes. */
#include "edit.h"

int frag_edit_settings(struct frag_advice_plan *p, struct frag_err *err)
{
	FRAG_AUTO(frag_tune_release) struct frag_tune tune = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text what = { 0 };
	const struct frag_tune_try *best;

	FRAG_TRY(frag_tune_settings(&p->env, p->story->dev, 0, &tune, err));
	best = tune.tries_count ? &tune.tries[0] : NULL;
	if (best && best->conf && best->completed) {
		frag_text_addf(&what, "PYTORCH_CUDA_ALLOC_CONF=%s", best->conf);
		FRAG_TRY(frag_text_check(&what, err));
		FRAG_TRY(frag_plan_try_policy(p, best->text, "settings", what.s, err));
	}
	return frag_plan_try_policy(p, "vmm", "vmm",
				    "cufrag's own allocator vmm in place of PyTorch's (cufrag run "
				    "--policy vmm)",
				    err);
}
