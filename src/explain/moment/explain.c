/* SPDX-License-Identifier: Apache-2.0 */
/* One moment explained; see explain.h. */
#include "explain.h"

#include <stdlib.h>
#include <string.h>

#include "explain/diagnose/diagnose.h"
#include "recording/recording.h"

/* ---- the moment --------------------------------------------------------------------- */

static bool parse_time(const char *text, uint64_t *us)
{
	static const struct {
		const char *unit;
		double us;
	} units[] = { { "", 1e6 }, { "s", 1e6 }, { "ms", 1e3 }, { "us", 1 }, { "min", 60e6 } };
	char *end;
	double v = strtod(text, &end);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++)
		if (end != text && !strcmp(end, units[i].unit) && v >= 0 && v < 1e12) {
			*us = (uint64_t)(v * units[i].us + 0.5);
			return true;
		}
	return false;
}

int frag_at_parse(const char *text, struct frag_at *out, struct frag_err *err)
{
	static const struct {
		const char *word;
		enum frag_at_what what;
	} words[] = { { "peak", FRAG_AT_PEAK },	   { "reserved", FRAG_AT_RESERVED },
		      { "oom", FRAG_AT_OOM },	   { "oom:", FRAG_AT_OOM },
		      { "event:", FRAG_AT_EVENT }, { "time:", FRAG_AT_TIME } };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i].word);
		const char *rest = text + n;
		char *end;

		if (strncmp(text, words[i].word, n) != 0)
			continue;
		*out = (struct frag_at){ .what = words[i].what };
		if (rest[-1] != ':' ? !*rest
				    : out->what == FRAG_AT_TIME && parse_time(rest, &out->n))
			return 0;
		if (rest[-1] != ':' || out->what == FRAG_AT_TIME)
			continue;
		out->n = strtoull(rest, &end, 10);
		if (*rest >= '0' && *rest <= '9' && !*end && (out->n || out->what == FRAG_AT_EVENT))
			return 0;
	}
	return FRAG_USAGE(err,
			  "unknown moment '%.60s'; use peak, reserved, oom, oom:N, event:N or "
			  "time:T (1.5s, 300ms)",
			  text);
}

/* When most is live and when most is reserved, the first of each. */
static int find_peaks(struct frag_explained *x, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	struct frag_moment *m = &x->m;
	uint64_t most = 0, free_before = 0;
	bool ended = false;

	FRAG_TRY(frag_case_replay(&x->in, &s, err));
	/* a what-if ends at the request that it refuses */
	for (uint64_t i = 0; i < x->in.history.events && !ended; i++) {
		FRAG_TRY(frag_cursor_to(&s, i, err));
		ended = !x->in.recorded_peak_bytes && frag_run_refuses_more(s.run);
		if (s.run->allocated > most) {
			most = s.run->allocated;
			m->peak_live_event = i;
			m->peak_live_us = s.now_us;
		}
		if (s.run->peak_reserved > m->peak_reserved_bytes) {
			m->peak_reserved_bytes = s.run->peak_reserved;
			m->peak_reserved_event = i;
			m->peak_reserved_us = s.now_us;
			m->peak_reserved_live_bytes = s.run->allocated;
			m->peak_reserved_free_bytes = free_before;
		}
		free_before = frag_cursor_reserved(&s);
		free_before -= FRAG_MIN(free_before, s.run->allocated + s.run->waiting);
	}
	m->peak_live_bytes = ended ? most : m->peak_live_bytes;
	return 0;
}

static int find_oom(struct frag_explained *x, struct frag_err *err)
{
	size_t count = x->refusals.count, at = x->at.n ? (size_t)(x->at.n - 1) : count - 1;

	if (!count)
		return FRAG_INPUT(err, "no request was refused: nothing ran out of memory");
	if (x->at.n > count)
		return FRAG_INPUT(err, "there is no oom:%llu; %zu %s refused",
				  (unsigned long long)x->at.n, count,
				  count == 1 ? "request was" : "requests were");
	x->refusal = &x->refusals.list[at];
	x->m.peak_live_us = x->m.peak_reserved_us = UINT64_MAX; /* may be later */
	x->m.event = x->refusal->r.event;
	return 0;
}

/* The last event up to a time. */
static int find_time(struct frag_explained *x, struct frag_err *err)
{
	const struct frag_trace_dev *dev = frag_events_dev(&x->in.events);
	size_t n = 0;

	while (n < dev->events_count && dev->events[n].time_us <= x->at.n)
		n++;
	if (!n)
		return FRAG_INPUT(err, "the first event comes later than that");
	x->m.event = n - 1;
	return 0;
}

static int find_moment(struct frag_explained *x, struct frag_err *err)
{
	x->at = x->opt.at;
	if (x->at.what == FRAG_AT_AUTO || x->at.what == FRAG_AT_OOM)
		FRAG_TRY(frag_refusals_find(&x->in, &x->refusals, err));
	if (x->at.what == FRAG_AT_AUTO)
		x->at.what = x->refusals.count ? FRAG_AT_OOM : FRAG_AT_PEAK;
	switch (x->at.what) {
	case FRAG_AT_OOM:
		return find_oom(x, err);
	case FRAG_AT_EVENT:
		if (x->at.n >= x->in.history.events)
			return FRAG_INPUT(err, "there is no event %llu; the last is %llu",
					  (unsigned long long)x->at.n,
					  (unsigned long long)(x->in.history.events - 1));
		x->m.event = x->at.n;
		return 0;
	case FRAG_AT_TIME:
		return find_time(x, err);
	default:
		x->m.event = x->at.what == FRAG_AT_RESERVED ? x->m.peak_reserved_event
							    : x->m.peak_live_event;
		return 0;
	}
}

/* ---- why it was refused ------------------------------------------------------------------- */

static void fill(struct frag_explained *x)
{
	const struct frag_refusal *request = &x->refusal->r;
	FRAG_AUTO_FREE char *line = frag_sites_line(&x->in.sites, request->stack);
	struct frag_refused_request *o = &x->refused;
	struct frag_moment *m = &x->m;
	uint64_t live = m->allocated_bytes + m->waiting_bytes, limit = m->limit_bytes;

	*o = (struct frag_refused_request){
		.request_bytes = request->bytes,
		.line = line ? frag_answer_print(x->texts, "%s", line) : NULL,
		.live_bytes = live,
		.reserved_bytes = m->reserved_bytes,
		.non_releasable_bytes = m->non_releasable_bytes,
		.largest_free_bytes = m->largest_free_bytes,
		.excess_bytes = live + request->bytes > limit && m->limit_high_bytes == UINT64_MAX
					? live + request->bytes - limit
					: UINT64_MAX,
		.remedies.rows = o->list,
		.leak_bytes_per_step = UINT64_MAX,
		.fragmentation = frag_oom_is_fragmentation(&x->in, x->refusal),
		.fits = frag_oom_is_fragmentation(&x->in, x->refusal),
	};
	o->verdict = frag_finding_text(o->fragmentation ? FRAG_FOUND_OOM_FRAGMENTATION
							: FRAG_FOUND_OOM_NEEDED);
	m->oom = o;
}

/* A leak that is the reason comes before fragmentation. */
static int find_leak(struct frag_explained *x, double *per_step, struct frag_err *err)
{
	struct frag_refused_request *o = &x->refused;
	FRAG_AUTO(frag_findings_release) struct frag_findings found = { .texts = x->texts };
	FRAG_AUTO_FREE struct frag_checkup *c = NULL;
	struct frag_finding *f;
	bool reason, growth;

	FRAG_TRY_CALLOC(c, 1, "diagnosis", err);
	c->in = x->in;
	c->about = "";
	FRAG_TRY(frag_find_leak(c, &found, err));
	if (!found.count)
		FRAG_TRY(frag_find_growth(c, &found, err));
	if (!found.count || !frag_growth_is_held(c, &found.list[0], x->refusal))
		return 0;
	f = &found.list[0];
	growth = f->kind == FRAG_FOUND_GROWTH;
	reason = frag_growth_is_reason(c, f, x->refusal);
	*per_step = frag_finding_value(f, "bytes_per_step")
			    ?: frag_finding_value(f, "grown_bytes") /
				       frag_finding_value(f, "repeats_count");
	if (reason) {
		o->fragmentation = false;
		o->verdict = frag_finding_text(growth ? FRAG_FOUND_OOM_NEEDED : FRAG_FOUND_LEAK);
	}
	if (growth && reason)
		o->growth = frag_answer_take(x->texts, &f->words);
	if (!growth) {
		o->leak_bytes_per_step = (uint64_t)(*per_step + 0.5);
		o->leak_line = f->line;
	}
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------- */

static int look(struct frag_explained *x, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	struct frag_moment *m = &x->m;
	const struct frag_loss *l = &x->loss;

	FRAG_TRY(frag_case_replay(&x->in, &s, err));
	FRAG_TRY(frag_cursor_to(&s, m->event, err));
	frag_run_look(s.run, s.now_us, &x->loss);
	FRAG_TRY(frag_heap_view_take(&s, &x->view, err));
	m->time_us = s.now_us;
	m->reserved_bytes = l->reserved_bytes;
	m->allocated_bytes = l->requested_bytes + l->rounding_bytes;
	m->requested_bytes = l->requested_bytes;
	m->waiting_bytes = l->waiting_bytes;
	m->non_releasable_bytes = l->non_releasable_bytes;
	m->releasable_bytes = l->releasable_bytes;
	/* the pool of another library is replayed by its rules, not to its addresses */
	m->largest_free_bytes =
		x->in.recorded && frag_own_allocators(x->in.events.trace->format, NULL)
			? UINT64_MAX
			: l->largest_free_bytes;
	m->blocks_count = x->view.count;
	m->non_releasable_segments_count = x->view.segments_with_holes;
	m->unheld_bytes = x->view.ownerless;
	return 0;
}

static int sum_kinds(struct frag_explained *x, struct frag_err *err)
{
	struct frag_kind_row rows[FRAG_KINDS] = { { 0 } };
	bool steps = frag_steps_known(&x->in.history);
	size_t n = 0;

	FRAG_TRY_CALLOC(x->kinds, x->view.count + 1, "explanation", err);
	FRAG_TRY(frag_kinds_find(&x->in.events, &x->in.history, &x->view, x->kinds, err));
	for (size_t i = 0; i < x->view.count; i++) {
		const struct frag_kind_of *k = &x->kinds[i];
		struct frag_kind_row *row =
			&rows[steps && k->confidence >= FRAG_KIND_SURE ? k->kind
								       : FRAG_KIND_UNKNOWN];

		if (x->view.list[i].waiting)
			continue;
		row->live_bytes += x->view.list[i].granted;
		row->blocks_count++;
	}
	for (unsigned k = 0; k < FRAG_KINDS; k++) {
		if (!rows[k].blocks_count)
			continue;
		rows[k].kind = frag_kind_name(k);
		rows[k].rule = frag_kind_rule(k);
		rows[k].share_ratio = (double)rows[k].live_bytes / (double)x->m.allocated_bytes;
		x->kind_rows[n++] = rows[k];
	}
	x->m.kinds = (struct frag_rows){ x->kind_rows, n };
	return 0;
}

static int explain(struct frag_explained *x, struct frag_err *err)
{
	const struct frag_case *c = &x->in;
	struct frag_moment *m = &x->m;
	double per_step = 0;

	if (!c->history.events)
		return FRAG_INPUT(err, "there are no events to explain");
	m->limit_bytes = c->limit_bytes;
	m->limit_low_bytes = c->limit_high_bytes ? c->limit_low_bytes : UINT64_MAX;
	m->limit_high_bytes = c->limit_high_bytes ? c->limit_high_bytes : UINT64_MAX;
	m->limit_guessed = c->limit_guessed;
	m->peak_live_bytes = c->history.peak_live;
	FRAG_TRY(find_peaks(x, err));
	FRAG_TRY(find_moment(x, err));
	if (x->refusal && x->refusal->limit_changed) {
		m->limit_bytes = x->refusal->limit_bytes;
		x->in.card_full = false;
	}
	x->step = frag_history_step(&c->history, m->event);
	m->step = frag_case_step_number(c, x->step);
	FRAG_TRY(look(x, err));
	FRAG_TRY(sum_kinds(x, err));
	FRAG_TRY(frag_explain_rows(x, err));
	m->sites = (struct frag_rows){ x->rows, x->rows_count };
	m->sites_count = x->rows_count;
	FRAG_TRY(frag_explain_regained(x, err));
	if (x->at.what == FRAG_AT_OOM) {
		fill(x);
		FRAG_TRY(find_leak(x, &per_step, err));
		FRAG_TRY(frag_explain_oom(x, per_step, err));
	}
	if (!x->opt.series)
		return 0;
	FRAG_TRY(frag_explain_curves(x, err));
	m->live_highest = &x->curves->live.highest;
	m->non_releasable_highest = &x->curves->non_releasable.highest;
	return 0;
}

int frag_explain(const struct frag_case *in, const struct frag_explain_options *opt,
		 struct frag_answer *texts, struct frag_explained *out, struct frag_err *err)
{
	int rc;

	*out = (struct frag_explained){ .texts = texts, .in = *in, .opt = *opt };
	rc = frag_case_open(&out->in, opt->by, opt->frame, err) ?: explain(out, err);
	if (rc)
		frag_explained_release(out);
	out->m.replayed_peak_bytes = out->m.peak_reserved_bytes;
	if (out->in.recorded_peak_bytes)
		out->m.peak_reserved_bytes = out->in.recorded_peak_bytes;
	return rc;
}

void frag_explained_release(struct frag_explained *x)
{
	FRAG_FREE(x->curves, x->rows, x->pinning, x->kinds, x->fixed);
	frag_heap_view_release(&x->view);
	frag_case_close(&x->in);
	*x = (struct frag_explained){ 0 };
}

void frag_explained_destroy_at(struct frag_explained **at)
{
	if (*at)
		frag_explained_release(*at);
	frag_host_free(*at);
}
