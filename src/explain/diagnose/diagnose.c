/* SPDX-License-Identifier: Apache-2.0 */
/* One device of one recording through all rules; see diagnose.h. */
#include "diagnose.h"

/* Ranks differ where the fullest needs so much more than the emptiest, and so many bytes. */
#define IMBALANCE_RATIO 1.25
#define IMBALANCE_BYTES (256 * FRAG_MIB)

static const char *const from_words[] = {
	[FRAG_STEPS_NONE] = "no steps: too few requests to tell them",
	[FRAG_STEPS_MARKS] = "marked in the recording",
	[FRAG_STEPS_PERIOD] = "found from a request that comes back evenly",
	[FRAG_STEPS_WINDOWS] = "equal parts: no steps are marked and nothing comes back evenly",
};

static void options_of(const struct frag_case *c, struct frag_run_options *opt)
{
	frag_run_options_defaults(opt);
	opt->limit_bytes = c->limit_bytes;
	opt->seed = c->seed;
	opt->skip_oom = true;
	opt->restore = frag_settled_restores(frag_events_dev(&c->ev), &c->card, c->limit_bytes);
}

/* Stops at the ends of steps, before and after trims, after refusals, in order. */
static int look(struct frag_case *c, struct frag_cursor *s, struct frag_err *err)
{
	const struct frag_history *h = &c->history;
	size_t step = 0, trim = 0, refusal = 0;
	size_t trims = FRAG_MIN(h->trims_count, (uint64_t)FRAG_REFUSALS_KEPT);
	size_t refusals = FRAG_MIN(h->refusals_count, (uint64_t)FRAG_REFUSALS_KEPT);

	while (step < h->count || trim < trims || refusal < refusals) {
		uint64_t a = step < h->count ? h->steps[step].end - 1 : UINT64_MAX;
		uint64_t b = trim < trims ? h->trims[trim].event : UINT64_MAX;
		uint64_t r = refusal < refusals ? h->refusals[refusal].event : UINT64_MAX;
		struct frag_loss loss;

		if (b <= a && b <= r) {
			if (b)
				FRAG_TRY(frag_cursor_to(s, b - 1, err));
			c->trim_before[trim] = frag_cursor_reserved(s);
			FRAG_TRY(frag_cursor_to(s, b, err));
			c->trim_after[trim++] = frag_cursor_reserved(s);
		} else if (r <= a) {
			FRAG_TRY(frag_cursor_to(s, r, err));
			c->refused_reserved[refusal++] = frag_cursor_reserved(s);
		} else {
			FRAG_TRY(frag_cursor_to(s, a, err));
			frag_run_loss(s->run, a, s->now_us, &loss);
			c->reserved[step] = loss.reserved_bytes;
			c->held[step++] = loss.non_releasable_bytes;
		}
	}
	return frag_cursor_to(s, UINT64_MAX - 1, err);
}

static int replay(struct frag_case *c, struct frag_err *err)
{
	struct frag_run_options opt;
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	options_of(c, &opt);
	FRAG_TRY(frag_cursor_open(&s, &c->ev, c->spec, &c->card, &opt, err));
	FRAG_TRY(look(c, &s, err));
	frag_result_release(&c->result);
	return frag_run_finish(s.run, &c->result, err);
}

/* Without a limit that is known, the replay may hold more than was ever reserved: then something
 * kept the recorded one down, and it is the limit as far as anyone can tell. */
static int replay_as_recorded(struct frag_case *c, struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->ev);
	uint64_t peak = td->has_evidence && !c->ev.path ? frag_recorded_peak(td) : 0;

	if (c->limit_bytes == UINT64_MAX)
		c->limit_bytes = frag_settled_limit(c->ev.trace, c->ev.dev);
	if (c->limit_bytes == UINT64_MAX && peak && c->history.refusals_count) {
		c->limit_bytes = peak;
		c->limit_guessed = true;
	}
	FRAG_TRY(replay(c, err));
	if (c->limit_bytes != UINT64_MAX || !peak || td->initial.blocks_count ||
	    c->result.m.peak_reserved_bytes <= peak)
		return 0;
	c->limit_bytes = peak;
	c->limit_guessed = true;
	return replay(c, err);
}

static void note_steps(const struct frag_case *c, struct frag_findings *out)
{
	const struct frag_history *h = &c->history;

	frag_text_addf(&out->notes, "%s: ", c->about);
	if (h->from == FRAG_STEPS_NONE)
		frag_text_addf(&out->notes, "%s\n", from_words[h->from]);
	else
		frag_text_addf(&out->notes, "%zu steps, %s%s\n", h->count * h->stride,
			       from_words[h->from],
			       h->stride > 1 ? " (several at a time are taken as one)" : "");
	if (c->limit_guessed) {
		frag_text_addf(&out->notes,
			       "%s: the limit is not recorded; taken is the most that was "
			       "reserved, ",
			       c->about);
		frag_text_add_bytes(&out->notes, c->limit_bytes);
		frag_text_add(&out->notes, " (--limit tells it)\n");
	}
}

static int rules(struct frag_case *c, struct frag_findings *out, struct frag_err *err)
{
	size_t before = out->count;
	struct frag_finding *f;

	FRAG_TRY(frag_find_oom(c, out, err));
	FRAG_TRY(frag_find_leak(c, out, err));
	FRAG_TRY(frag_find_spike(c, out, err));
	FRAG_TRY(frag_find_fragmentation(c, out, err));
	FRAG_TRY(frag_find_cache(c, out, err));
	if (out->count > before)
		return 0;
	f = frag_findings_add(out, FRAG_FOUND_STEADY, c->about, err);
	if (!f)
		return FRAG_ENOMEM;
	frag_text_add(&f->text, "nothing to complain of: peak live ");
	frag_text_add_bytes(&f->text, c->result.m.peak_active_bytes);
	frag_text_add(&f->text, ", peak reserved ");
	frag_text_add_bytes(&f->text, c->result.m.peak_reserved_bytes);
	frag_finding_number(f, "peak_active_bytes", (double)c->result.m.peak_active_bytes);
	frag_finding_number(f, "peak_reserved_bytes", (double)c->result.m.peak_reserved_bytes);
	return 0;
}

int frag_diagnose(const struct frag_events *ev, const char *about,
		  const struct frag_policy_spec *spec, const struct frag_target *target,
		  struct frag_findings *out, uint64_t *peak_active, struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_case *c = NULL;
	int rc;

	FRAG_TRY_CALLOC(c, 1, "diagnosis", err);
	c->ev = *ev;
	c->about = about;
	c->spec = spec;
	c->card = target->card;
	c->limit_bytes = frag_target_limit(target);
	c->seed = target->seed;
	rc = frag_history_make(ev, &c->history, err)
		     ?: frag_sites_init(&c->sites, ev->trace, FRAG_BY_LINE, NULL, err);
	if (!rc) {
		c->reserved = frag_host_calloc(c->history.count + 1, sizeof(*c->reserved));
		c->held = frag_host_calloc(c->history.count + 1, sizeof(*c->held));
		if (!c->reserved || !c->held)
			rc = frag_fail_nomem(err, "diagnosis");
	}
	if (!rc)
		rc = replay_as_recorded(c, err);
	if (!rc) {
		note_steps(c, out);
		rc = rules(c, out, err);
		*peak_active = c->result.m.peak_active_bytes;
	}
	frag_history_release(&c->history);
	frag_sites_release(&c->sites);
	frag_result_release(&c->result);
	FRAG_FREE(c->reserved, c->held);
	return rc;
}

int frag_diagnose_ranks(char *const *names, const uint64_t *peaks, size_t n,
			struct frag_findings *out, struct frag_err *err)
{
	size_t most = 0, least = 0;
	struct frag_finding *f;

	for (size_t i = 1; i < n; i++) {
		most = peaks[i] > peaks[most] ? i : most;
		least = peaks[i] < peaks[least] ? i : least;
	}
	if (n < 2 || peaks[most] - peaks[least] < IMBALANCE_BYTES ||
	    (double)peaks[most] < IMBALANCE_RATIO * (double)peaks[least])
		return 0;
	f = frag_findings_add(out, FRAG_FOUND_IMBALANCE, "all", err);
	if (!f)
		return FRAG_ENOMEM;
	frag_text_addf(&f->text, "%s needs ", names[most]);
	frag_text_add_bytes(&f->text, peaks[most]);
	frag_text_addf(&f->text, ", %s only ", names[least]);
	frag_text_add_bytes(&f->text, peaks[least]);
	frag_text_add(&f->text, ": the fullest card decides; move work to the other");
	frag_finding_number(f, "most_bytes", (double)peaks[most]);
	frag_finding_number(f, "least_bytes", (double)peaks[least]);
	return 0;
}
