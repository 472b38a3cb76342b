/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent check of the metrics: everything is added up again from the
 * trace and from the log of driver calls, without the engine, and must come out
 * the same.
 */
#include "must.h"
#include "test.h"

/* ---- from the trace ---- */

struct sums {
	uint64_t live, live_peak;	/* as asked for */
	uint64_t rounded, rounded_peak; /* each rounded up to 512 B */
	uint64_t allocs, frees, steps;
};

static struct sums add_up_trace(const struct frag_trace_dev *td)
{
	FRAG_AUTO(free_at) uint64_t *bytes = calloc(td->slots_count, sizeof(*bytes));
	struct sums s = { 0 };

	for (size_t i = 0; i < td->events_count; i++) {
		const struct frag_event *e = &td->events[i];

		if (e->kind == FRAG_EV_ALLOC) {
			bytes[e->slot] = e->bytes;
			s.live += e->bytes;
			s.rounded += (e->bytes + 511) / 512 * 512;
			s.allocs++;
		} else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_REQUESTED) {
			s.live -= bytes[e->slot];
			s.rounded -= (bytes[e->slot] + 511) / 512 * 512;
		}
		s.frees += e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED;
		s.live_peak = s.live > s.live_peak ? s.live : s.live_peak;
		s.rounded_peak = s.rounded > s.rounded_peak ? s.rounded : s.rounded_peak;
	}
	return s;
}

/* ---- from the calls ---- */

struct ledger {
	uint64_t held, peak, calls;
	bool packed; /* pieces of pages were asked for: bytes say less than pages */
};

static void note(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	struct ledger *l = ctx;

	l->calls++;
	if (result)
		return;
	if (call == FRAG_CALL_MALLOC || call == FRAG_CALL_CREATE) {
		l->held += (bytes + FRAG_PAGE - 1) / FRAG_PAGE * FRAG_PAGE;
		l->packed |= bytes % FRAG_PAGE != 0;
	} else if (call == FRAG_CALL_FREE || call == FRAG_CALL_RELEASE) {
		l->held -= (bytes + FRAG_PAGE - 1) / FRAG_PAGE * FRAG_PAGE;
	}
	l->peak = l->held > l->peak ? l->held : l->peak;
}

static void causes_add_up(const struct frag_metrics *m)
{
	assert_int_equal(m->peak_reserved_bytes,
			 m->at_peak_requested_bytes + m->at_peak_rounding_bytes +
				 m->at_peak_waiting_bytes + m->non_releasable_bytes +
				 m->releasable_bytes + m->at_peak_other_bytes);
}

static void series_keeps_peaks(const struct frag_result *r)
{
	uint64_t requested = 0, reserved = 0, events = 0;

	for (size_t i = 0; i < r->series.count; i++) {
		const struct frag_window *w = &r->series.windows[i];

		requested = FRAG_MAX(requested, w->requested_max);
		reserved = FRAG_MAX(reserved, w->reserved_max);
		events += w->last_event - w->first_event + 1;
		assert_true(w->requested_max <= w->allocated_max);
		assert_true(w->allocated_max <= w->active_max);
	}
	assert_int_equal(requested, r->m.peak_requested_bytes);
	assert_int_equal(reserved, r->m.peak_reserved_bytes);
	assert_int_equal(events, r->m.events_count);
	assert_true(r->series.count <= 1024);
}

static void check_one(const struct frag_trace *t, uint32_t d, const char *policy)
{
	const struct frag_trace_dev *td = &t->devs[d];
	struct sums s = add_up_trace(td);
	struct ledger l = { 0 };
	struct frag_run_options opt = default_run();
	AUTO_SPEC spec = must_parse_policy(policy);
	struct frag_result r = { 0 };
	AUTO_DEVICE dev = must_open_sim(NULL);
	struct frag_run *run;

	opt.losses = true;
	dev->log = note;
	dev->log_ctx = &l;
	assert_int_equal(frag_run_create(spec, dev, td, &opt, &run, &test_err), 0);
	if (frag_run_feed(run, td->events, td->events_count, &test_err))
		fail_msg("%s on %s: %s", policy, t->name, test_err.msg);
	assert_int_equal(l.calls, dev->driver_calls);
	if (!l.packed) {
		assert_int_equal(l.held, dev->reserved_bytes);
		assert_int_equal(l.peak, dev->reserved_peak_bytes);
	}
	assert_true(dev->reserved_peak_bytes <= l.peak);
	SUCCEEDS(frag_run_finish(run, &r, &test_err));
	assert_int_equal(r.m.peak_requested_bytes, s.live_peak);
	assert_int_equal(r.m.lower_bound_bytes, s.rounded_peak);
	assert_int_equal(r.m.allocs_count, s.allocs);
	assert_int_equal(r.m.frees_count, s.frees);
	assert_true(r.m.peak_reserved_bytes >= s.live_peak);
	causes_add_up(&r.m);
	series_keeps_peaks(&r);
	frag_result_release(&r);
	frag_run_destroy(run);
	assert_int_equal(dev->reserved_bytes, 0);
}

static void metrics(void **state)
{
	static const char *const policies[] = {
		"pytorch",
		"pytorch:expandable_segments:True",
		"pytorch:max_split_size_mb:128",
		"pytorch:roundup_power2_divisions:4",
		"buddy",
		"native",
	};
	AUTO_TRACE t = must_read(*state);

	for (uint32_t d = 0; d < t->devs_count; d++)
		for (size_t p = 0; p < FRAG_ARRAY_LEN(policies); p++)
			check_one(t, d, policies[p]);
}

TESTS
{
	static const char *const names[] = { "gnn",	 "varlen",    "vision",	 "streams",
					     "modelpar", "cudagraph", "mempool", "seeddemo" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++) {
		char path[64];

		snprintf(path, sizeof(path), "traces/%s.default.cft", names[i]);
		test_add_files(metrics, path, "");
	}
}
