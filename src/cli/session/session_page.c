/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says about itself: its date, and whether the recording was reproduced. */
#include "session.h"

#include <inttypes.h>

#include "cli/common.h"
#include "answer/textbuf.h"

/* With --no-host, which leaves out all that differs from run to run, the clock is not asked. */
void frag_session_date(struct frag_session *s)
{
	if (!s->date)
		s->date_text = frag_cli_day(!s->omit_host);
	s->report.date = s->date ? s->date : s->date_text;
	s->report.title = s->title;
	s->report.author = s->author;
}

int frag_session_verdict(struct frag_section *sec, struct frag_err *err)
{
	const struct frag_settled *s = &sec->settled;
	struct frag_text t = { 0 };

	/* settings that are not known here leave nothing to verify: what was settled says why */
	if (!s->checked || !s->followed)
		return 0;
	if (s->undetermined)
		frag_text_add(&t, "undetermined: ");
	else
		frag_text_addf(&t, "%s what was recorded: ",
			       s->identical ? "identical to" : "different from");
	frag_text_add_grouped(&t, s->allocs.same);
	frag_text_add(&t, " of ");
	frag_text_add_grouped(&t, s->allocs.all);
	frag_text_addf(&t,
		       " addresses, %" PRIu64 " of %" PRIu64 " segment events, %" PRIu64
		       " of %" PRIu64 " refusals",
		       s->segments.same, s->segments.all, s->ooms.same, s->ooms.all);
	if (*s->difference)
		frag_text_addf(&t, "; %s: %s", s->undetermined ? "why" : "first difference",
			       s->difference);
	FRAG_TRY(frag_text_check(&t, err));
	sec->verdict = t.s;
	return 0;
}
