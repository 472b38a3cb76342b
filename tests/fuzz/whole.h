/* SPDX-License-Identifier: Apache-2.0 */
/* What diagnose, explain and export do with a trace that reads well: an answer, or an error that says why. */
#ifndef FUZZ_WHOLE_H
#define FUZZ_WHOLE_H

#include "explain/diagnose/diagnose.h"
#include "trace/writers/export.h"
#include "explain/moment/explain.h"
#include "fuzz.h"

/* Whatever fails says why. */
static inline int said(int rc, const struct frag_err *err)
{
	must(!rc || (rc == err->code && err->msg[0] && memchr(err->msg, 0, sizeof(err->msg))));
	return rc;
}

static inline void diagnose_whole(const struct frag_case *in)
{
	struct frag_answer texts = { 0 };
	struct frag_findings found = { .texts = &texts };
	struct frag_err err = { 0 };

	said(frag_diagnose(in, "fuzz", &found, &err), &err);
	frag_findings_release(&found);
	frag_answer_release(&texts);
}

static inline void explain_whole(const struct frag_case *in, struct frag_at at,
				 enum frag_site_by by)
{
	const struct frag_explain_options opt = { .at = at, .by = by, .top = 10, .series = true };
	struct frag_answer texts = { 0 };
	struct frag_explained x = { 0 };
	struct frag_err err = { 0 };

	if (!said(frag_explain(in, &opt, &texts, &x, &err), &err)) {
		said(frag_explained_answer(&x, "fuzz", "fuzz", &err), &err);
		frag_explained_release(&x);
	}
	frag_answer_release(&texts);
}

/* In every form, as recorded and by the policy. */
static inline void export_whole(const struct frag_trace *t, const struct frag_policy_spec *spec,
				const struct frag_target *target)
{
	for (unsigned i = 0; frag_export_formats[i / 2]; i++) {
		char *text = NULL;
		size_t len;
		struct frag_err err = { 0 };
		struct frag_export_job job = { .trace = t,
					       .spec = spec,
					       .as_recorded = i & 1,
					       .target = *target,
					       .name = "fuzz",
					       .policy = "pytorch",
					       .to = open_memstream(&text, &len) };

		must(job.to != NULL);
		said(frag_export_formats[i / 2]->write(&job, &err), &err);
		fclose(job.to);
		free(text);
	}
}

#endif
