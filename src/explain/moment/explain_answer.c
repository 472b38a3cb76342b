/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of explain: why, where every byte was, who held it, what would have helped. */
#include <inttypes.h>
#include <string.h>

#include <frag/opt.h>
#include <frag/torch.h>

#include "explain.h"
#include "explain/curve_point.h"
#include "explain/diagnose/diagnose.h"
#include "recording/recording.h"
#include "report/report.h"

FRAG_ROW_SHAPE(static, frag_site_shape, frag_row, "call site", FRAG_SITE_ROW,
	       "blocks of one call site");
FRAG_ROW_SHAPE(static, frag_kind_shape, frag_kind_row, "kind", FRAG_KIND_ROW,
	       "live bytes of a kind, by its name");
FRAG_ROW_SHAPE(static, frag_remedy_shape, frag_remedy, "remedy", FRAG_REMEDY_ROW,
	       "one change, replayed to the end");
FRAG_ROW_SHAPE(static, frag_refusal_shape, frag_refused_request, "refused request",
	       FRAG_REFUSAL_ROW, "why it was refused");
FRAG_ROW_SHAPE(static, frag_highest_shape, frag_highest, "highest", FRAG_HIGHEST_ROW,
	       "where the chart is highest");
FRAG_ROW_SHAPE(, frag_moment_shape, frag_moment, "explain", FRAG_MOMENT_ROW,
	       "who holds the memory at one moment");

/* The same rows as sites that pin segments; JSON has all of it in `sites`. */
#define PINNING_ROW(F, P, S) \
	P(S, BYTES, non_releasable_bytes, "non-releasable", \
	  "free bytes of its segments, shared equally among their blocks") \
	P(S, RATIO, non_releasable_share_ratio, "share", "of all non-releasable bytes", \
	  .precision = 1, .spare = 4) \
	P(S, COUNT, segments_count, "segments", "that its blocks pin", .spare = 3) \
	P(S, BYTES, largest_hole_bytes, "largest hole", "in these segments", .spare = 2) \
	P(S, COUNT, blocks_count, "blocks", "of the call site", .spare = 1) \
	P(S, BYTES, regained_bytes, "if freed", \
	  "what a trim returns more without its blocks, replayed") \
	P(S, TEXT, site, "pinned by", "call site")
FRAG_ROW_SHAPE(static, pinning_shape, frag_row, "pinning call site", PINNING_ROW,
	       "who pins segments");

/* Site by site, as gnuplot draws them: from the bottom of the stack up, all others on top if they
 * ever have anything, and at the end reserved memory, a line. */
static struct frag_rows points_of(const struct frag_curves *c, const struct frag_curve_set *set,
				  bool reserved, struct frag_answer *a)
{
	size_t n = set->count, count = 0;
	struct frag_curve_point *list = frag_answer_new(a, (n + 2) * c->points, sizeof(*list));
	uint64_t others = 0;

	for (size_t p = 0; p < c->points; p++)
		others |= set->bytes[p][FRAG_CURVES];
	n += others || !n;
	for (size_t i = 0; list && i < n + reserved; i++)
		for (size_t p = 0; p < c->points; p++) {
			const uint64_t *bytes = set->bytes[p];
			bool other = i == set->count;
			uint64_t own = i == n ? c->reserved[p] : bytes[other ? FRAG_CURVES : i],
				 upto = own;

			for (size_t k = 0; k < i && i < n; k++)
				upto += bytes[k];
			list[count++] = (struct frag_curve_point){ i,
								   i == n  ? "reserved"
								   : other ? "all others"
									   : set->names[i],
								   (double)c->events[p],
								   (double)c->us[p] / 1e6,
								   own,
								   upto };
		}
	return (struct frag_rows){ list, count };
}

/* "later (event 12, 8.20 s; --at reserved)". */
static const char *when_of(const char *what, uint64_t event, uint64_t us, const char *how,
			   struct frag_answer *a)
{
	return frag_answer_print(a, "%s (event %" PRIu64 "%s%s%s)", what, event, us ? ", " : "",
				 us ? FRAG_NS(1000 * us) : "", how);
}

/* What sites.gp draws beside the areas: the moment; with reserved memory, also the limit; where
 * the moment is one of the two peaks, the other one. */
static const char *marks_of(const struct frag_explained *x, bool reserved, struct frag_answer *a)
{
	const struct frag_curves *c = x->curves;
	size_t n = c->points;
	bool timed = n && frag_report_timed(x->in.history.events, c->us[n / 4], c->us[3 * n / 4],
					    c->us[n - 1]);
	bool limited = reserved && x->m.limit_bytes != UINT64_MAX && !x->m.limit_guessed;
	double time_s = (double)x->m.time_us / 1e6;
	const char *when = x->m.time_us ? frag_answer_print(a, " at %.3g s", time_s) : "";
	bool reserves = x->at.what == FRAG_AT_RESERVED;
	bool two = (reserves || x->at.what == FRAG_AT_PEAK) &&
		   x->m.peak_live_event != x->m.peak_reserved_event;
	uint64_t event = reserves ? x->m.peak_live_event : x->m.peak_reserved_event;
	double other_s = (double)(reserves ? x->m.peak_live_us : x->m.peak_reserved_us) / 1e6;
	const char *what = reserves			? "most reserved"
			   : x->at.what == FRAG_AT_PEAK ? "most live"
							: "this moment";

	if (x->m.oom)
		what = frag_answer_print(a, "%s refused", FRAG_BYTES(x->refused.request_bytes));
	if (two)
		when = frag_answer_print(
			a, "%s, dotted: most %s%s", when, reserves ? "live" : "reserved",
			other_s > 0 ? frag_answer_print(a, " at %.3g s", other_s) : "");
	return frag_answer_print(
		a, "stack|%s|%.6f|%s%s|%llu|%d|%.6f|%llu|%llu", timed ? "s" : "events",
		timed ? time_s : (double)x->m.event, what, when,
		(unsigned long long)(limited ? x->m.limit_bytes : 0), reserved,
		!two	? -1
		: timed ? other_s
			: (double)event,
		(unsigned long long)x->m.allocated_bytes,
		(unsigned long long)(reserved && x->m.oom ? x->refused.request_bytes : 0));
}

/* ---- what people read ------------------------------------------------------------------- */

static const char *why_refused(const struct frag_explained *x)
{
	const struct frag_refused_request *r = &x->refused;
	struct frag_answer *a = x->texts;
	bool limited = x->m.limit_bytes != UINT64_MAX, leaks = r->leak_bytes_per_step != UINT64_MAX;
	const char *what = frag_answer_print(
		a, "a request for %s%s%s was refused%s%s: %s was live and %s was reserved%s%s%s%s",
		FRAG_BYTES(r->request_bytes), r->line ? " at " : "", r->line ? r->line : "",
		frag_oom_in_first_step(&x->in, &x->refusal->r) ? " in the first step" : "",
		r->fragmentation ? " because of fragmentation"
		: leaks		 ? "; the program leaks"
				 : "; the program needs more memory",
		FRAG_BYTES(r->live_bytes), FRAG_BYTES(r->reserved_bytes),
		!limited	     ? ""
		: x->in.card_full    ? " of what the card had for it, "
		: x->m.limit_guessed ? " under an assumed limit of "
				     : " under a limit of ",
		limited ? FRAG_BYTES(x->m.limit_bytes) : "", x->in.neighbours.count ? "; " : "",
		x->in.neighbours.count
			? frag_neighbours_text(a, x->in.events.trace, &x->in.neighbours)
			: "");

	if (leaks && !r->fragmentation)
		return frag_answer_print(
			a, "%s. Memory that outlives its step grows by %s per step%s%s: end that",
			what, FRAG_BYTES(r->leak_bytes_per_step),
			r->leak_line ? ", requested at " : "", r->leak_line ? r->leak_line : "");
	if (r->growth)
		return frag_answer_print(a, "%s. The reason is growth inside a phase: %s", what,
					 r->growth);
	if (r->fragmentation)
		return frag_answer_print(
			a,
			"%s. Live memory and the request fit, but %s is free in "
			"segments that live blocks pin%s%s",
			what, FRAG_BYTES(r->non_releasable_bytes),
			r->largest_free_bytes == UINT64_MAX
				? ""
				: frag_answer_print(a, ", the largest hole %s",
						    FRAG_BYTES(r->largest_free_bytes)),
			leaks ? frag_answer_print(a, "; beside that it leaks %s per step",
						  FRAG_BYTES(r->leak_bytes_per_step))
			      : "");
	if (r->excess_bytes != UINT64_MAX)
		return frag_answer_print(a, "%s. Live memory and the request exceed it by %s", what,
					 FRAG_BYTES(r->excess_bytes));
	return frag_answer_print(
		a, "%s. Live memory and the request %s", what,
		r->live_bytes + r->request_bytes <= x->m.limit_bytes
			? frag_answer_print(
				  a, "fill %.0f %% of it: settings win at most %s",
				  100 * (double)(r->live_bytes + r->request_bytes) /
					  (double)x->m.limit_bytes,
				  FRAG_BYTES(x->m.limit_bytes - r->live_bytes - r->request_bytes))
		: r->live_bytes + r->request_bytes > x->m.limit_high_bytes ||
				x->m.limit_high_bytes == UINT64_MAX
			? "exceed it"
			: "exceed it, as far as it is known");
}

static bool is_state(const struct frag_explained *x)
{
	return frag_is_state(x->in.events.trace, frag_events_dev(&x->in.events));
}

/* The other peak; where they are far apart also why as much was reserved for less. */
static void add_other_peak(const struct frag_explained *x, struct frag_text *t)
{
	const struct frag_moment *m = &x->m;
	const struct frag_event *e =
		&frag_events_dev(&x->in.events)->events[m->peak_reserved_event];
	uint64_t more = m->replayed_peak_bytes - m->reserved_bytes; /* of the same replay */

	if (m->peak_live_event == m->peak_reserved_event)
		return;
	if (x->at.what == FRAG_AT_RESERVED) {
		frag_text_addf(t, ". Most is live %s",
			       when_of(m->peak_live_event < m->event ? "earlier" : "later",
				       m->peak_live_event, m->peak_live_us, "; --at peak",
				       x->texts));
		return;
	}
	if (!more && m->peak_reserved_live_bytes >= m->allocated_bytes / 100 * 99)
		return; /* as good as one */
	frag_text_addf(t, ". %s is reserved %s, with %s live",
		       more ? frag_answer_print(x->texts, "%s more", FRAG_BYTES(more)) : "As much",
		       when_of(m->peak_reserved_event < m->event ? "earlier" : "later",
			       m->peak_reserved_event, m->peak_reserved_us, "; --at reserved",
			       x->texts),
		       FRAG_BYTES(m->peak_reserved_live_bytes));
	if (e->kind == FRAG_EV_REFUSED)
		frag_text_addf(t, ": a request for %s that was refused when recorded is served",
			       FRAG_BYTES(e->bytes));
	else if (m->peak_reserved_free_bytes && e->kind == FRAG_EV_ALLOC &&
		 10 * m->peak_reserved_live_bytes < 9 * m->allocated_bytes)
		frag_text_addf(
			t,
			e->bytes <= FRAG_MIB &&
					!strcmp(frag_policy_spec_ops(x->in.spec)->name, "pytorch")
				? ": a request for %s found no room in the pool of those up "
				  "to 1 MiB (%s was free in all)"
				: ": a request for %s found no room in the %s that was free",
			FRAG_BYTES(e->bytes), FRAG_BYTES(m->peak_reserved_free_bytes));
}

/* The largest holders of reserved memory. */
static const char *who_holds(const struct frag_explained *x)
{
	const struct frag_row *live = x->rows_count ? &x->rows[0] : NULL;
	const struct frag_row *pins = x->pinning_count ? &x->rows[x->pinning[0]] : NULL;
	bool known = frag_sites_known(&x->in.sites);
	bool bare = is_state(x) && !x->in.recorded_peak_bytes; /* what is reserved is not said */
	struct frag_text t = { 0 };

	if (bare)
		frag_text_addf(&t, "in this state %s is live", FRAG_BYTES(x->m.allocated_bytes));
	else
		frag_text_addf(&t, "%s %s is reserved. %s of that is live",
			       is_state(x)
				       ? "in this state"
				       : when_of(x->m.at, x->m.event, x->m.time_us, "", x->texts),
			       FRAG_BYTES(x->m.reserved_bytes), FRAG_BYTES(x->m.allocated_bytes));
	if (live)
		frag_text_addf(&t, ", %.1f %% of it %s %s", 100 * live->share_ratio,
			       known ? "allocated at" : "in blocks of", live->site);
	if (pins && !bare)
		frag_text_addf(&t,
			       ". %s is free, but in segments with live blocks, %.1f %% of it "
			       "pinned by %s%s",
			       FRAG_BYTES(x->m.non_releasable_bytes),
			       100 * pins->non_releasable_share_ratio, known ? "" : "blocks of ",
			       pins->site);
	if (!is_state(x) && x->m.releasable_bytes > x->m.reserved_bytes / 10)
		frag_text_addf(
			&t, ". %s more is free and could be returned (cufrag tune tries settings)",
			FRAG_BYTES(x->m.releasable_bytes));
	if (!is_state(x) && (x->at.what == FRAG_AT_PEAK || x->at.what == FRAG_AT_RESERVED))
		add_other_peak(x, &t);
	return frag_answer_take(x->texts, &t);
}

/* The first that serves it, else the first that may. */
static void say_remedy(const struct frag_refused_request *r, struct frag_answer *a)
{
	const struct frag_remedy *best = NULL;

	for (size_t i = 0; i < r->remedies.count; i++)
		if (r->list[i].served > (best && best->served) || (!best && r->list[i].uncertain))
			best = &r->list[i];
	if (!best)
		return;
	frag_answer_conclude(a, "%s %s it in a replay, %s%s%s%s%s", best->text,
			     best->served ? "serves" : "serves, or does not serve,",
			     best->served ? "then " : "as the limit is not known exactly",
			     best->served ? best->reach : "",
			     best->steps_count == UINT64_MAX
				     ? ""
				     : frag_answer_print(a, ", which buys %s",
							 frag_answer_count(a, best->steps_count,
									   "step", "steps")),
			     best->line ? ": " : "", best->line ? best->line : "");
}

static void say_why(const struct frag_explained *x, struct frag_answer *a)
{
	const struct frag_refused_request *r = x->m.oom;
	const char *hint = frag_stacks_hint(x->in.events.trace);

	frag_answer_conclude(a, "%s", x->m.text);
	if (r && !r->growth)
		say_remedy(r, a);
	if (!frag_sites_known(&x->in.sites))
		frag_answer_remark(
			a, "the recording has no stacks, so blocks are grouped by size%s%s%s",
			frag_steps_known(&x->in.history) ? " and step" : "",
			hint ? "; to see the lines, record with " : "", hint ?: "");
}

static void say_remedies(const struct frag_refused_request *r, struct frag_answer *a)
{
	frag_answer_heading(a, "What would have served the request (each replayed to the end)");
	frag_answer_table(a, &frag_remedy_shape, r->list, r->remedies.count)->wraps = true;
	for (size_t i = 0; i < r->remedies.count; i++)
		if (r->list[i].line)
			frag_answer_paste(a, r->list[i].text, r->list[i].line);
}

static void say_live(const struct frag_explained *x, struct frag_answer *a)
{
	size_t top = FRAG_MIN(x->opt.top, x->rows_count);
	uint64_t bytes = 0, blocks = 0;

	frag_answer_heading(a, "Live memory by call site");
	frag_answer_table(a, &frag_site_shape, x->rows, top);
	for (size_t i = top; i < x->rows_count; i++) {
		bytes += x->rows[i].allocated_bytes;
		blocks += x->rows[i].blocks_count;
	}
	if (top < x->rows_count)
		frag_answer_say(a, "and %s with %s in %s (--top)",
				frag_answer_count(a, x->rows_count - top, "more call site",
						  "more call sites"),
				FRAG_BYTES(bytes), frag_answer_count(a, blocks, "block", "blocks"));
}

static void say_pinning(const struct frag_explained *x, struct frag_answer *a)
{
	size_t n = FRAG_MIN(x->opt.top, x->pinning_count);
	struct frag_row *rows = frag_answer_new(a, n, sizeof(*rows));

	if (!n || !rows)
		return;
	for (size_t i = 0; i < n; i++)
		rows[i] = x->rows[x->pinning[i]];
	frag_answer_heading(a, "Free memory that cannot be returned, by the blocks that pin its "
			       "segments");
	frag_answer_table(a, &pinning_shape, rows, n);
	if (n < x->pinning_count)
		frag_answer_say(a, "and %s (--top)",
				frag_answer_count(a, x->pinning_count - n, "more call site",
						  "more call sites"));
	frag_answer_remark(a, "the free bytes of a segment are shared equally among its blocks; if "
			      "freed: what a trim returns more without these blocks, replayed");
}

/* what: "active", with its place in titles. */
static void draw(const struct frag_explained *x, const struct frag_curve_set *set,
		 struct frag_answer_chart chart, const char *what, const char *nothing)
{
	const struct frag_highest *h = &set->highest;
	struct frag_answer *a = x->texts;
	bool reserved = set == &x->curves->live;

	chart.script = "sites";
	chart.extra = marks_of(x, reserved, a);
	chart.title =
		h->site	       ? frag_answer_print(a, "%.200s: %.1f %% of at most %s %s", h->site,
						   100 * h->share_ratio, FRAG_BYTES(h->all_bytes), what)
		: h->all_bytes ? frag_answer_print(a, "At most %s %s, pinned by no call site",
						   FRAG_BYTES(h->all_bytes), what)
			       : nothing;
	chart.subtitle = frag_answer_print(a, "under %s", x->m.policy);
	chart.shape = &frag_curve_by_event;
	chart.rows = points_of(x->curves, set, reserved, a);
	frag_answer_chart(a, &chart);
}

static void draw_all(const struct frag_explained *x, struct frag_answer *a)
{
	frag_answer_heading(a, "Over time");
	frag_answer_last(a)->page_only = true;
	draw(x, &x->curves->live,
	     (struct frag_answer_chart){ .base = "explain-live",
					 .heading = "Live memory by call site",
					 .caption = "Live memory, and memory that waits for "
						    "another stream, by the line that allocated "
						    "it. The line is reserved memory; what is "
						    "between it and the areas is free." },
	     "active", "No call site has live memory");
	draw(x, &x->curves->non_releasable,
	     (struct frag_answer_chart){
		     .base = "explain-held",
		     .heading = "Free memory that cannot be returned, by who pins it",
		     .caption = "Free memory in segments with live blocks, by the lines that "
				"allocated these; shared equally among the blocks of a segment." },
	     "non-releasable", "All free memory can be returned");
}

static const char *const at_words[] = {
	[FRAG_AT_AUTO] = "",
	[FRAG_AT_PEAK] = "at the peak of live memory",
	[FRAG_AT_RESERVED] = "at the peak of reserved memory",
	[FRAG_AT_OOM] = "when the request was refused",
	[FRAG_AT_EVENT] = "at this event",
	[FRAG_AT_TIME] = "at this time",
};

/* A state has no moments: what is null is not said. */
static void forget_moments(struct frag_explained *x)
{
	struct frag_moment *m = &x->m;

	m->event = m->time_us = m->peak_live_bytes = m->peak_live_event = m->peak_live_us =
		UINT64_MAX;
	m->peak_reserved_bytes = m->peak_reserved_event = m->peak_reserved_us = UINT64_MAX;
	m->peak_reserved_live_bytes = m->peak_reserved_free_bytes = UINT64_MAX;
	m->replayed_peak_bytes = UINT64_MAX;
	m->at = "in this state";
	if (!x->in.recorded_peak_bytes) { /* reserved by the replay */
		m->reserved_bytes = m->non_releasable_bytes = m->releasable_bytes = UINT64_MAX;
		m->non_releasable_segments_count = m->largest_free_bytes = UINT64_MAX;
		x->pinning_count = 0;
	}
	for (size_t i = 0; i < x->rows_count; i++)
		x->rows[i].oldest_age_us = UINT64_MAX;
}

int frag_explained_answer(struct frag_explained *x, const char *trace, const char *policy,
			  struct frag_err *err)
{
	struct frag_answer *a = x->texts;
	char torch[16];

	x->m.trace = trace;
	x->m.policy = policy;
	x->m.at = at_words[x->at.what];
	x->m.text = x->m.oom ? why_refused(x) : who_holds(x);
	a->estimated = x->in.events.trace->estimate != NULL;
	a->title = frag_answer_print(a, "Who holds the memory of %s%s", trace,
				     a->estimated ? ", an estimate" : "");
	a->question = "Who holds the memory, and why can the rest of it not be used?";
	frag_answer_data(a, &frag_moment_shape, &x->m);
	frag_answer_csv(a, &frag_site_shape, x->rows, x->rows_count);
	frag_answer_remark(a, "trace %s under %s%s%s%s", trace, policy,
			   x->in.target.torch ? ", as PyTorch " : "",
			   x->in.target.torch
				   ? frag_torch_format(x->in.target.torch, torch, sizeof(torch))
				   : "",
			   a->estimated ? ", an estimate" : "");
	say_why(x, a);
	if (is_state(x))
		forget_moments(x);
	else if (x->in.recorded_peak_bytes &&
		 (x->at.what == FRAG_AT_PEAK ||
		  x->m.replayed_peak_bytes > x->in.recorded_peak_bytes) &&
		 x->m.replayed_peak_bytes != x->in.recorded_peak_bytes)
		frag_answer_say(a,
				"%s was reserved at most when it was recorded; what follows is "
				"simulated, with at most %s (cufrag verify)",
				FRAG_BYTES(x->in.recorded_peak_bytes),
				FRAG_BYTES(x->m.replayed_peak_bytes));
	frag_answer_gap(a);
	frag_answer_facts(a, &frag_moment_shape, &x->m);
	if (x->m.oom)
		say_remedies(x->m.oom, a);
	say_live(x, a);
	say_pinning(x, a);
	if (is_state(x))
		return a->failed ? frag_fail_nomem(err, "explanation") : 0;
	if (frag_steps_known(&x->in.history)) {
		frag_answer_heading(a, "What the memory is for, by how it behaves over the steps");
		frag_answer_table(a, &frag_kind_shape, x->m.kinds.rows, x->m.kinds.count)->wraps =
			true;
	}
	if (x->curves)
		draw_all(x, a);
	if (!frag_own_allocators(x->in.events.trace->format, NULL))
		frag_answer_remark(a, "cufrag advise tries what would help: changes of the "
				      "program, one after the other");
	return a->failed ? frag_fail_nomem(err, "explanation") : 0;
}
