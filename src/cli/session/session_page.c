/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says about itself: its date, and whether the recording was reproduced. */
#include "session.h"

#include <inttypes.h>
#include <string.h>

#include "cli/common.h"
#include "report/text/textbuf.h"

/* With --no-host, which leaves out all that differs from run to run, the clock is not asked. */
void frag_session_date(struct frag_session *s)
{
	if (!s->date)
		s->date_text = frag_cli_day(!s->omit_host);
	s->report.date = s->date ? s->date : s->date_text;
	s->report.title = s->title;
	s->report.author = s->author;
}

static void say(const struct frag_verify_result *r, struct frag_text *out)
{
	if (r->undetermined)
		frag_text_add(out, "undetermined: ");
	else
		frag_text_addf(out, "%s what was recorded: ",
			       r->identical ? "identical to" : "different from");
	frag_text_add_grouped(out, r->allocs_same);
	frag_text_add(out, " of ");
	frag_text_add_grouped(out, r->allocs);
	frag_text_addf(out,
		       " addresses, %" PRIu64 " of %" PRIu64 " segment events, %" PRIu64
		       " of %" PRIu64 " refusals",
		       r->segments_same, r->segments, r->ooms_same, r->ooms);
	if (!r->identical && *r->first_difference)
		frag_text_addf(out, "; %s: %s", r->undetermined ? "why" : "first difference",
			       r->first_difference);
}

int frag_session_verdict(struct frag_section *sec, struct frag_trace *trace, uint32_t dev,
			 struct frag_err *err)
{
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	struct frag_verify_result r = { 0 };
	struct frag_text t = { 0 };

	/* settings that are not known here leave nothing to verify: what was settled says why */
	if (!trace->devs[dev].has_evidence || !trace->devs[dev].events ||
	    (trace->devs[dev].settled.checked && !trace->devs[dev].settled.followed))
		return 0;
	FRAG_TRY(frag_verify(trace, dev, &card,
			     trace->settings.limit_known ? trace->settings.limit_bytes : UINT64_MAX,
			     NULL, &r, err));
	say(&r, &t);
	sec->identical = r.identical;
	frag_verify_result_release(&r);
	FRAG_TRY(frag_text_check(&t, err));
	sec->verdict = t.s;
	return 0;
}
