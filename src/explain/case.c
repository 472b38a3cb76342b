/* SPDX-License-Identifier: Apache-2.0 */
/* One device of a recording and how it is replayed; see case.h. */
#include "case.h"

#include <stdio.h>

#include "recording/estimate.h"

/* An unknown limit is at least what was reserved, and not much more if requests were refused. */
bool frag_case_guess_limit(struct frag_case *c)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->events);
	uint64_t peak = td->has_evidence && !c->events.path ? frag_recorded_peak(td) : 0;

	if (!peak)
		return false;
	c->limit_bytes = peak;
	c->limit_guessed = true;
	c->restores = false;
	return true;
}

/* Without a GPU the pretended card refused: its size was the limit. Another card has its own. */
static bool find_card(struct frag_case *c)
{
	struct frag_sim_config *card = &c->target.card, own = *card;

	if (!frag_estimate_card(c->events.trace, &own))
		return false;
	c->other_card = c->target.card_given;
	*card = c->other_card ? *card : own;
	c->limit_bytes = card->total_bytes - card->context_bytes;
	return true;
}

static void find_limit(struct frag_case *c)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->events);

	c->limit_bytes = frag_target_limit(&c->target);
	if (c->limit_bytes == UINT64_MAX) {
		c->limit_bytes = frag_settled_limit(c->events.trace, c->events.dev);
		if (td->settled.identical && td->settled.limit_source == FRAG_LIMIT_INFERRED) {
			c->limit_low_bytes = td->settled.limit_low_bytes;
			c->limit_high_bytes = td->settled.limit_high_bytes;
		}
	}
	if (c->limit_bytes == UINT64_MAX && c->history.refusals_count && find_card(c))
		return;
	c->restores = c->recorded && frag_settled_restores(td, &c->target.card, c->limit_bytes);
	if (c->limit_bytes == UINT64_MAX && c->history.refusals_count)
		frag_case_guess_limit(c);
}

int frag_case_open(struct frag_case *c, enum frag_site_by by, const char *frame,
		   struct frag_err *err)
{
	FRAG_TRY(frag_history_make(&c->events, &c->history, err));
	FRAG_TRY(frag_sites_init(&c->sites, c->events.trace, by, frame, err));
	find_limit(c);
	return 0;
}

void frag_case_close(struct frag_case *c)
{
	frag_sites_release(&c->sites);
	frag_history_release(&c->history);
}

void frag_case_run_options(const struct frag_case *c, struct frag_run_options *run)
{
	frag_run_options_defaults(run);
	run->limit_bytes = c->limit_bytes;
	run->seed = c->target.seed;
	run->skip_oom = true;
	run->restore = c->restores;
}

int frag_case_replay(const struct frag_case *c, struct frag_cursor *s, struct frag_err *err)
{
	struct frag_run_options run;

	frag_case_run_options(c, &run);
	return frag_cursor_open(s, &c->events, c->spec, &c->target.card, &run, err);
}

const char *frag_case_step_text(const struct frag_case *c, size_t step, bool in, char *buf,
				size_t size)
{
	const struct frag_history *h = &c->history;
	const char *before = in ? "in " : "";

	if (h->from == FRAG_STEPS_NONE)
		snprintf(buf, size, "%sthe recording", before);
	else if (step >= h->count)
		snprintf(buf, size, "%safter the last step", in ? "" : "the part ");
	else if (h->from == FRAG_STEPS_WINDOWS)
		snprintf(buf, size, "%spart %zu of %zu", before, step + 1, h->count);
	else
		snprintf(buf, size, "%sstep %zu", before, step * h->stride + 1);
	return buf;
}

uint64_t frag_case_step_number(const struct frag_case *c, size_t step)
{
	const struct frag_history *h = &c->history;

	return h->from == FRAG_STEPS_NONE || step >= h->count ? UINT64_MAX : step * h->stride + 1;
}
