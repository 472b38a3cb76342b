/* SPDX-License-Identifier: Apache-2.0 */
/* One moment explained; see explain.h. */
#include "explain.h"

#include <stdlib.h>
#include <string.h>

/* ---- the moment --------------------------------------------------------------------- */

static int bad_at(const char *text, struct frag_err *err)
{
	return frag_fail(err, FRAG_EUSAGE,
			 "'%.60s' is no moment; known are peak, oom, oom:N, event:N and time:T "
			 "(1.5s, 300ms)",
			 text);
}

static int parse_time(const char *text, const char *whole, uint64_t *us, struct frag_err *err)
{
	static const struct {
		const char *unit;
		double us;
	} units[] = { { "", 1e6 }, { "s", 1e6 }, { "ms", 1e3 }, { "us", 1 }, { "min", 60e6 } };
	char *end;
	double v = strtod(text, &end);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++) {
		if (end == text || strcmp(end, units[i].unit) != 0 || !(v >= 0 && v < 1e12))
			continue;
		*us = (uint64_t)(v * units[i].us + 0.5);
		return 0;
	}
	return bad_at(whole, err);
}

int frag_at_parse(const char *text, struct frag_at *out, struct frag_err *err)
{
	const char *colon = strchr(text, ':');
	char *end = NULL;

	*out = (struct frag_at){ .what = FRAG_AT_AUTO };
	if (!strcmp(text, "peak") || !strcmp(text, "oom")) {
		out->what = *text == 'p' ? FRAG_AT_PEAK : FRAG_AT_OOM;
		return 0;
	}
	if (!colon || !colon[1])
		return bad_at(text, err);
	if (!strncmp(text, "time:", 5)) {
		out->what = FRAG_AT_TIME;
		return parse_time(colon + 1, text, &out->n, err);
	}
	out->what = !strncmp(text, "oom:", 4) ? FRAG_AT_OOM : FRAG_AT_EVENT;
	if (out->what == FRAG_AT_EVENT && strncmp(text, "event:", 6) != 0)
		return bad_at(text, err);
	out->n = strtoull(colon + 1, &end, 10);
	if (*end || colon[1] < '0' || colon[1] > '9' || (out->what == FRAG_AT_OOM && !out->n))
		return bad_at(text, err);
	return 0;
}

void frag_explain_run_options(const struct frag_explain_options *opt,
			      const struct frag_explained *x, struct frag_run_options *run)
{
	frag_run_options_defaults(run);
	run->limit_bytes = x->limit_bytes;
	run->seed = opt->target.seed;
	run->skip_oom = true;
	run->restore = x->restores;
}

/* Where the recording met a limit that it does not tell, the most that was reserved is as near
 * as one can come; for another policy it is the same limit. */
static void find_limit(const struct frag_events *ev, const struct frag_explain_options *opt,
		       struct frag_explained *x)
{
	const struct frag_trace_dev *td = frag_events_dev(ev);

	x->limit_bytes = frag_target_limit(&opt->target);
	if (x->limit_bytes == UINT64_MAX) {
		x->limit_bytes = frag_settled_limit(ev->trace, ev->dev);
		if (td->settled.identical && td->settled.limit_source == FRAG_LIMIT_INFERRED) {
			x->limit_low_bytes = td->settled.limit_low_bytes;
			x->limit_high_bytes = td->settled.limit_high_bytes;
		}
	}
	x->restores = opt->recorded && frag_settled_restores(td, &opt->target.card, x->limit_bytes);
	if (x->limit_bytes != UINT64_MAX || !x->history.refusals_count || !td->has_evidence ||
	    ev->path)
		return;
	x->limit_bytes = frag_recorded_peak(td);
	x->limit_guessed = true;
}

/* Peak, and the first request that the policy itself could not serve. */
static int whole_replay(const struct frag_events *ev, const struct frag_explain_options *opt,
			struct frag_explained *x, uint64_t *oom, struct frag_err *err)
{
	struct frag_run_options run;
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	int rc;

	frag_explain_run_options(opt, x, &run);
	FRAG_TRY(frag_cursor_open(&s, ev, opt->spec, &opt->target.card, &run, err));
	rc = frag_cursor_to(&s, UINT64_MAX - 1, err);
	x->peak_reserved_bytes = s.run->peak_reserved;
	x->peak_event = s.run->peak.event;
	*oom = s.run->r.oom.happened ? s.run->r.oom.event : UINT64_MAX;
	return rc;
}

static int find_oom(const struct frag_events *ev, const struct frag_explain_options *opt,
		    struct frag_explained *x, struct frag_err *err)
{
	const struct frag_history *h = &x->history;
	uint64_t kept = FRAG_MIN(h->refusals_count, (uint64_t)FRAG_REFUSALS_KEPT), own = UINT64_MAX;

	if (!opt->recorded || !kept)
		FRAG_TRY(whole_replay(ev, opt, x, &own, err));
	if (own != UINT64_MAX && x->at.n <= 1) {
		x->event = own;
		return 0;
	}
	if (!kept)
		return frag_fail(err, FRAG_EINPUT, "nothing ran out of memory");
	if (x->at.n > kept)
		return frag_fail(err, FRAG_EINPUT,
				 "there is no oom:%llu; %llu requests were refused",
				 (unsigned long long)x->at.n, (unsigned long long)kept);
	x->event = h->refusals[x->at.n ? x->at.n - 1 : kept - 1].event;
	return 0;
}

struct when {
	uint64_t us, event;
	bool found;
};

static int find_time(void *ctx, const struct frag_event *e, size_t n, uint64_t first,
		     struct frag_err *err)
{
	struct when *w = ctx;

	(void)err;
	if (!n || e[n - 1].time_us <= w->us) {
		w->event = first + n - 1;
		w->found |= n > 0;
		return 0;
	}
	for (size_t i = 0; i < n && e[i].time_us <= w->us; i++) {
		w->event = first + i;
		w->found = true;
	}
	return 1;
}

static int find_moment(const struct frag_events *ev, const struct frag_explain_options *opt,
		       struct frag_explained *x, struct frag_err *err)
{
	struct when w = { .us = opt->at.n };
	uint64_t none;

	x->at = opt->at;
	if (x->at.what == FRAG_AT_AUTO)
		x->at.what = x->history.refusals_count ? FRAG_AT_OOM : FRAG_AT_PEAK;
	switch (x->at.what) {
	case FRAG_AT_OOM:
		return find_oom(ev, opt, x, err);
	case FRAG_AT_EVENT:
		if (x->at.n >= x->history.events)
			return frag_fail(err, FRAG_EINPUT,
					 "there is no event %llu; the last is %llu",
					 (unsigned long long)x->at.n,
					 (unsigned long long)(x->history.events - 1));
		x->event = x->at.n;
		return 0;
	case FRAG_AT_TIME:
		FRAG_TRY(frag_events_each(ev, find_time, &w, err));
		if (!w.found)
			return frag_fail(err, FRAG_EINPUT, "nothing has happened by then");
		x->event = w.event;
		return 0;
	default:
		FRAG_TRY(whole_replay(ev, opt, x, &none, err));
		x->event = x->peak_event;
		return 0;
	}
}

/* ---- all of it ------------------------------------------------------------------------- */

static int look(const struct frag_events *ev, const struct frag_explain_options *opt,
		struct frag_explained *x, struct frag_err *err)
{
	struct frag_run_options run;
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	frag_explain_run_options(opt, x, &run);
	FRAG_TRY(frag_cursor_open(&s, ev, opt->spec, &opt->target.card, &run, err));
	FRAG_TRY(frag_cursor_to(&s, x->event, err));
	x->time_us = s.now_us;
	frag_cursor_loss(&s, &x->loss);
	return frag_heap_view_take(&s, &x->scene, err);
}

static int sum_kinds(const struct frag_events *ev, struct frag_explained *x, struct frag_err *err)
{
	FRAG_TRY_CALLOC(x->kinds, x->scene.count + 1, "explanation", err);
	FRAG_TRY(frag_kinds_find(ev, &x->history, &x->scene, x->kinds, err));
	for (size_t i = 0; i < x->scene.count; i++) {
		if (x->scene.list[i].waiting)
			continue;
		x->kind_bytes[x->kinds[i].kind] += x->scene.list[i].granted;
		x->kind_blocks[x->kinds[i].kind]++;
	}
	return 0;
}

static int explain(const struct frag_events *ev, const struct frag_explain_options *opt,
		   struct frag_explained *x, struct frag_err *err)
{
	FRAG_TRY(frag_history_make(ev, &x->history, err));
	if (!x->history.events)
		return frag_fail(err, FRAG_EINPUT, "there are no events to explain");
	FRAG_TRY(frag_sites_init(&x->sites, ev->trace, opt->by, opt->frame, err));
	find_limit(ev, opt, x);
	FRAG_TRY(find_moment(ev, opt, x, err));
	x->step = frag_history_step(&x->history, x->event);
	FRAG_TRY(look(ev, opt, x, err));
	FRAG_TRY(sum_kinds(ev, x, err));
	FRAG_TRY(frag_explain_rows(opt, x, err));
	FRAG_TRY(frag_explain_regained(ev, opt, x, err));
	if (x->at.what == FRAG_AT_OOM)
		FRAG_TRY(frag_explain_oom(ev, opt, x, err));
	return opt->series ? frag_explain_curves(ev, opt, x, err) : 0;
}

int frag_explain(const struct frag_events *ev, const struct frag_explain_options *opt,
		 struct frag_explained *out, struct frag_err *err)
{
	int rc;

	*out = (struct frag_explained){ .estimate = ev->trace->estimate != NULL };
	rc = explain(ev, opt, out, err);
	if (rc)
		frag_explained_release(out);
	return rc;
}

void frag_explained_release(struct frag_explained *x)
{
	for (size_t i = 0; x->rows && i < x->rows_count; i++)
		frag_host_free(x->rows[i].name);
	for (size_t i = 0; i < x->oom.remedies_count; i++) {
		FRAG_FREE(x->oom.remedies[i].text, x->oom.remedies[i].line);
	}
	for (size_t i = 0; x->curves && i < FRAG_CURVES; i++) {
		FRAG_FREE(x->curves->live_names[i], x->curves->held_names[i]);
	}
	FRAG_FREE(x->curves, x->rows, x->held, x->kinds);
	frag_heap_view_release(&x->scene);
	frag_sites_release(&x->sites);
	frag_history_release(&x->history);
	*x = (struct frag_explained){ 0 };
}
