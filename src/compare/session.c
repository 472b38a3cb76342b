/* SPDX-License-Identifier: Apache-2.0 */
/* A session's beginning and end and its recordings. */
#include "session.h"

void frag_session_init(void *session)
{
	struct frag_session *s = session;

	frag_run_options_defaults(&s->run);
	s->run.losses = s->run.latency = true;
}

void frag_session_release(void *session)
{
	struct frag_session *s = session;

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

/* ---- recordings ------------------------------------------------------------------ */

/* A pipe can be read only once: one run, and nothing that follows the events. */
static int check_pipe(const struct frag_session *s, const struct frag_trace *head,
		      struct frag_err *err)
{
	if (head->devs_count > 1 || s->policies.count > 1 || s->policies.all)
		return FRAG_USAGE(err, "cannot stream several policies or devices from a pipe; "
				       "name a file, or drop --stream");
	if (head->devs_count && head->devs[0].has_evidence)
		return FRAG_USAGE(err, "cannot stream from a pipe: the recorded addresses follow "
				       "the events; name a file, or drop them (cufrag import "
				       "--no-evidence)");
	return 0;
}

int frag_session_open_recording(const struct frag_session *s, const char *path,
				struct frag_recording *out, struct frag_err *err)
{
	bool always = s->stream == FRAG_STREAM_ALWAYS;
	unsigned how = FRAG_OPEN_HISTORY;
	int rc;

	if (always && s->target.conf)
		return FRAG_USAGE(err, "--conf cannot be combined with --stream");
	if (always && !s->host.simulated)
		return FRAG_USAGE(err, "--stream works only for replays on the simulated card");
	if (always)
		how |= FRAG_OPEN_HEAD;
	else if (s->stream == FRAG_STREAM_AUTO && !s->target.conf && s->host.simulated)
		how |= FRAG_OPEN_LONG_HEAD;
	FRAG_TRY(frag_recording_open(out, path, &s->target, how, err));
	rc = always && out->pipe ? check_pipe(s, out->trace, err) : 0;
	if (rc)
		frag_recording_release(out);
	return rc;
}
