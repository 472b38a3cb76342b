/* SPDX-License-Identifier: Apache-2.0 */
/* A session's beginning and end. */
#include "session.h"

void frag_session_init(struct frag_session *s)
{
	frag_run_options_defaults(&s->run);
	s->run.losses = s->run.latency = true;
}

void frag_session_release(struct frag_session *s)
{
	for (size_t i = 0; i < s->sections_count; i++)
		frag_section_release(&s->sections[i]);
	FRAG_FREE(s->sections, s->date_text, s->command_line);
	frag_catalog_release(&s->catalog);
	frag_text_release(&s->missing);
	frag_policy_texts_release(&s->policies);
	*s = (struct frag_session){ 0 };
}

int frag_session_interrupted(const struct frag_session *s, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	for (size_t i = 0; i < s->sections_count; i++) {
		if (!s->sections[i].missing)
			continue;
		frag_text_add(&out, out.len ? "; " : "");
		frag_section_title(&s->sections[i], &out);
		frag_text_addf(&out, ": %s", s->sections[i].missing);
	}
	if (s->missing.len)
		frag_text_addf(&out, "%s%s", out.len ? "; " : "", s->missing.s);
	if (out.len)
		frag_fail(err, FRAG_EINTR, "interrupted; missing: %.300s", out.s);
	return out.len ? FRAG_EINTR : 0;
}

bool frag_session_ran_out(const struct frag_session *s)
{
	for (size_t i = 0; i < s->sections_count; i++)
		for (size_t k = 0; k < s->sections[i].count; k++)
			if (s->sections[i].results[k].m.ooms_count)
				return true;
	return false;
}
