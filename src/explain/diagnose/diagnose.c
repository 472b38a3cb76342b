/* SPDX-License-Identifier: Apache-2.0 */
/* All rules on one device of a recording; see diagnose.h. */
#include "diagnose.h"

#include <math.h>
#include <string.h>

#include <frag/opt.h>

#include "base/clean.h"
#include "recording/recording.h"

/* Ranks are out of balance if the fullest needs this multiple of the emptiest, and so much more. */
#define IMBALANCE_RATIO 1.25
#define IMBALANCE_BYTES (256 * FRAG_MIB)
#define LEFT_PART 0.1 /* of the peak: reserved, and unused after its beginning */
#define LEFT_MIN (64 * FRAG_MIB)

static const char *const from_words[] = {
	[FRAG_STEPS_NONE] = "no steps: too few requests to tell",
	[FRAG_STEPS_MARKS] = "marked in the recording",
	[FRAG_STEPS_PERIOD] = "found from a request that repeats evenly",
	[FRAG_STEPS_WINDOWS] = "no steps: few are marked and no request repeats evenly",
};

/* To an event, noting the most that is reserved on the way: in this step. */
static int advance(struct frag_checkup *c, struct frag_cursor *s, size_t step, uint64_t event,
		   struct frag_err *err)
{
	for (uint64_t i = s->next; i <= event && i < c->in.history.events; i++) {
		bool ended = !c->in.recorded_peak_bytes && frag_run_refuses_more(s->run);
		uint64_t active;

		FRAG_TRY(frag_cursor_to(s, i, err));
		if (ended) /* a what-if ends at the request that it refuses */
			continue;
		c->reserved[step] = FRAG_MAX(c->reserved[step], frag_cursor_reserved(s));
		c->replayed_peak_bytes = FRAG_MAX(c->replayed_peak_bytes, c->reserved[step]);
		active = s->run->allocated + s->run->waiting;
		c->peak_active_bytes = FRAG_MAX(c->peak_active_bytes, active);
		if (10 * (i + 1) <= c->in.history.events)
			continue;
		c->late_reserved_bytes = FRAG_MIN(c->late_reserved_bytes, frag_cursor_reserved(s));
		c->late_active_bytes = FRAG_MAX(c->late_active_bytes, active);
	}
	return 0;
}

/* Stops at the ends of steps, before and after trims, in order. */
static int look(struct frag_checkup *c, struct frag_cursor *s, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	size_t step = 0, trim = 0;
	size_t trims = FRAG_MIN(h->trims_count, (uint64_t)FRAG_REFUSALS_KEPT);

	while (step < h->count || trim < trims) {
		uint64_t a = step < h->count ? h->steps[step].end - 1 : UINT64_MAX;
		uint64_t b = trim < trims ? h->trims[trim].event : UINT64_MAX;
		struct frag_loss loss;

		if (b <= a) {
			if (b)
				FRAG_TRY(advance(c, s, step, b - 1, err));
			c->trim_before[trim] = frag_cursor_reserved(s);
			FRAG_TRY(advance(c, s, step, b, err));
			c->trim_after[trim++] = frag_cursor_reserved(s);
		} else {
			FRAG_TRY(advance(c, s, step, a, err));
			frag_run_loss(s->run, a, s->now_us, &loss);
			c->non_releasable[step++] = loss.non_releasable_bytes;
		}
	}
	return advance(c, s, h->count, UINT64_MAX, err);
}

static int replay(struct frag_checkup *c, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	const struct frag_metrics *m = &c->result.m;

	memset(c->reserved, 0, (c->in.history.count + 1) * sizeof(*c->reserved));
	c->replayed_peak_bytes = c->peak_active_bytes = c->late_active_bytes = 0;
	c->late_reserved_bytes = UINT64_MAX;
	FRAG_TRY(frag_case_replay(&c->in, &s, err));
	FRAG_TRY(look(c, &s, err));
	frag_result_release(&c->result);
	FRAG_TRY(frag_run_finish(s.run, &c->result, err));
	if (c->in.recorded_peak_bytes || m->ooms_count == m->refused_again_count) {
		c->replayed_peak_bytes = m->peak_reserved_bytes;
		c->peak_active_bytes = m->peak_active_bytes;
	}
	return 0;
}

/* Without a known limit the replay may reserve more than the recording ever did: then something
 * kept the recording down, and what it reserved is the limit as far as anyone can tell. */
static int replay_as_recorded(struct frag_checkup *c, struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->in.events);

	FRAG_TRY(replay(c, err));
	if (!c->in.recorded || c->in.limit_bytes != UINT64_MAX || td->initial.blocks_count ||
	    c->result.m.peak_reserved_bytes <= frag_recorded_peak(td) ||
	    !frag_case_guess_limit(&c->in))
		return 0;
	return replay(c, err);
}

/* What was reserved comes from the recording, where that says it. In use: at least what was
 * requested, also where the replay refused some of it. */
static void find_peaks(struct frag_checkup *c)
{
	c->peak_reserved_bytes = c->in.recorded_peak_bytes ?: c->replayed_peak_bytes;
	if (c->in.recorded_peak_bytes)
		c->peak_active_bytes = FRAG_MAX(c->peak_active_bytes, c->in.history.peak_live);
	c->reproduced = c->peak_reserved_bytes == c->replayed_peak_bytes;
}

static void note_steps(const struct frag_checkup *c, struct frag_findings *out)
{
	const struct frag_history *h = &c->in.history;

	if (!frag_steps_known(h))
		NOTE("%s: %s", c->about, from_words[h->from]);
	else
		NOTE("%s: %zu steps, %s%s", c->about, h->count * h->stride, from_words[h->from],
		     h->stride > 1 ? " (several at a time count as one)" : "");
	if (c->in.limit_guessed)
		NOTE("%s: the limit is not recorded; assuming the most that was "
		     "reserved, %s (--limit sets it)",
		     c->about, FRAG_BYTES(c->in.limit_bytes));
}

static int note_steady(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	uint64_t live = c->peak_active_bytes, reserved = c->peak_reserved_bytes;
	double unused = c->late_reserved_bytes == UINT64_MAX /* nothing was replayed so late */
				? 0
				: (double)c->late_reserved_bytes - (double)c->late_active_bytes;
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_STEADY, c->about);

	if (c->lost_text) {
		SAY("%s", c->lost_text);
		frag_finding_number(f, "lost_ratio", 1 - (double)live / (double)reserved);
	} else if (c->reproduced && unused > LEFT_MIN && unused > LEFT_PART * (double)reserved) {
		SAY("%s of the %s reserved stay unused after a tenth of the recording "
		    "(torch.cuda.empty_cache() there returns what lies free)",
		    FRAG_BYTES((uint64_t)unused), FRAG_BYTES(reserved));
		frag_finding_number(f, "unused_bytes", unused);
	} else {
		SAY("nothing is wrong: peak live %s, peak reserved %s%s", FRAG_BYTES(live),
		    FRAG_BYTES(reserved),
		    frag_steps_known(h) || !frag_sites_known(&c->in.sites) ? ""
		    : h->first_mark == UINT64_MAX
			    ? "; it shows one pass without a step, or passes that differ"
			    : "; it shows fewer than four steps");
	}
	frag_finding_number(f, "peak_active_bytes", (double)live);
	frag_finding_number(f, "peak_reserved_bytes", (double)reserved);
	return frag_sites_known(&c->in.sites) ? frag_finding_holders(c, h->peak_event, f, err) : 0;
}

/* A state: what is held now, but nothing of peaks, steps, or what another setting would need. */
static void note_state(const struct frag_checkup *c, struct frag_findings *out)
{
	uint64_t live = c->in.history.peak_live, reserved = c->in.recorded_peak_bytes;
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_UNDECIDED, c->about);

	SAY("%s is a state without a history: ", c->about);
	if (reserved) /* else the file does not say it */
		SAY("%s is reserved and ", FRAG_BYTES(reserved));
	SAY("%s%s live, which 'cufrag explain' splits by line; what was needed "
	    "before, and under other settings, it cannot tell (record with %s)",
	    FRAG_BYTES(live), reserved ? " of it" : " is", frag_history_hint(c->in.events.trace));
	frag_finding_number(f, "active_bytes", (double)live);
	if (reserved)
		frag_finding_number(f, "reserved_bytes", (double)reserved);
}

static int apply_rules(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->in.events);
	size_t before = out->count;
	bool grows;

	if (frag_is_state(c->in.events.trace, td)) {
		note_state(c, out);
		return 0;
	}
	FRAG_TRY(frag_find_leak(c, out, err));
	if (out->count == before)
		FRAG_TRY(frag_find_growth(c, out, err));
	grows = out->count > before;
	FRAG_TRY(frag_find_oom(c, out, err));
	if (!grows || out->list[before].kind == FRAG_FOUND_LEAK)
		FRAG_TRY(frag_find_spike(c, out, err));
	FRAG_TRY(frag_find_fragmentation(c, out, err));
	FRAG_TRY(frag_find_cache(c, out, err));
	if (out->count == before)
		return note_steady(c, out, err);
	if (c->lost_text)
		NOTE("%s: %s", c->about, c->lost_text);
	return 0;
}

/* Most reserved and live in each step, and live through all of it; the rest after the last. */
static void add_device(const struct frag_checkup *c, struct frag_findings *out)
{
	static const char *const names[] = { "reserved", "peak live", "outlives its step" };
	const struct frag_history *h = &c->in.history;
	size_t steps = h->count + h->more, n = 0;
	struct frag_curve_point *points =
		frag_answer_new(out->texts, FRAG_ARRAY_LEN(names) * steps, sizeof(*points));

	for (size_t k = 0; points && k < FRAG_ARRAY_LEN(names); k++)
		for (size_t i = 0; i < steps; i++) {
			const struct frag_step *s = &h->steps[i];
			uint64_t bytes = k == 0	  ? c->reserved[i]
					 : k == 1 ? s->peak_live
						  : s->kept_end;

			points[n++] = (struct frag_curve_point){
				k, names[k], (double)(i * h->stride + 1), NAN, bytes, bytes
			};
		}
	frag_findings_add_device(
		out, &(struct frag_checked_device){
			     .name = frag_answer_print(out->texts, "%s", c->about),
			     .peak_active_bytes = c->peak_active_bytes,
			     .peak_reserved_bytes = c->peak_reserved_bytes,
			     .simulated = !c->in.recorded_peak_bytes,
			     .truncated = frag_events_dev(&c->in.events)->truncated,
			     .shared = frag_estimate_shared(c->in.events.trace),
			     .steps_count = frag_steps_known(h) ? h->count * h->stride : UINT64_MAX,
			     .points = { points, n } });
}

int frag_diagnose(const struct frag_case *in, const char *about, struct frag_findings *out,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_checkup_destroy_at) struct frag_checkup *c = NULL;

	FRAG_TRY_CALLOC(c, 1, "diagnosis", err);
	c->in = *in;
	c->about = about;
	FRAG_TRY(frag_case_open(&c->in, FRAG_BY_LINE, NULL, err));
	FRAG_TRY_CALLOC(c->reserved, c->in.history.count + 1, "diagnosis", err);
	FRAG_TRY_CALLOC(c->non_releasable, c->in.history.count + 1, "diagnosis", err);
	FRAG_TRY(replay_as_recorded(c, err));
	find_peaks(c);
	FRAG_TRY(frag_refusals_find(&c->in, &c->refused, err));
	if (!frag_is_state(in->events.trace, frag_events_dev(&in->events)))
		note_steps(c, out);
	add_device(c, out);
	return apply_rules(c, out, err);
}

void frag_checkup_destroy(struct frag_checkup *c)
{
	if (!c)
		return;
	frag_case_close(&c->in);
	frag_result_release(&c->result);
	FRAG_FREE(c->reserved, c->non_releasable, c);
}

void frag_find_imbalance(const struct frag_checked_device *devices, size_t n,
			 struct frag_findings *out)
{
	const struct frag_checked_device *most = devices, *least = devices;
	struct frag_finding *f;

	for (size_t i = 1; i < n; i++) {
		if (!frag_is_alike(devices[i].name, devices->name))
			return; /* of several programs */
		if (devices[i].peak_active_bytes > most->peak_active_bytes)
			most = &devices[i];
		if (devices[i].peak_active_bytes < least->peak_active_bytes)
			least = &devices[i];
	}
	if (n < 2 || most->shared.count ||
	    most->peak_active_bytes - least->peak_active_bytes < IMBALANCE_BYTES ||
	    (double)most->peak_active_bytes < IMBALANCE_RATIO * (double)least->peak_active_bytes)
		return;
	f = frag_findings_add(out, FRAG_FOUND_IMBALANCE, "all");
	SAY("%s needs %s, %s only %s: if they are ranks or cards of one job, the "
	    "fullest decides; move work to the other (two runs: cufrag diff)",
	    most->name, FRAG_BYTES(most->peak_active_bytes), least->name,
	    FRAG_BYTES(least->peak_active_bytes));
	frag_finding_number(f, "most_bytes", (double)most->peak_active_bytes);
	frag_finding_number(f, "least_bytes", (double)least->peak_active_bytes);
}
