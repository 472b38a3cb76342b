/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `vmm` promises, on the bundled recordings with one stream and no limit, and
 * on the same with all sizes scaled, so that no constant fits one recording only:
 *
 *	peak reserved <= 1.045 x peak live + 32 MiB
 *	peak reserved <= 1.01 x the better of expandable segments and the model of cudaMemPool
 *	modelled driver time after the first fifth of the time < 2 % of the rest
 */
#include "must.h"
#include "plan/probe.h"
#include "test.h"

struct row {
	const char *name;
	bool no_time; /* a fifth of a second: growing alone takes longer */
	bool big;     /* once, as it is */
};

static const struct row rows[] = {
	{ .name = "gnn.default" },
	{ .name = "gnn.expandable" },
	{ .name = "gnn.late" },
	{ .name = "leak.frames" },
	{ .name = "modelpar.default" },
	{ .name = "vision.default" },
	{ .name = "varlen.default" },
	{ .name = "serve.default", .big = true },
	{ .name = "seeddemo.default", .big = true },
	{ .name = "mempool.default", .no_time = true, .big = true },
};

static const double scales[] = { 1, 0.83, 0.91, 1.07, 1.19 };

static struct frag_metrics replay(const char *text, struct frag_trace_dev td, size_t events,
				  uint64_t sync_every)
{
	struct frag_run_options opt = default_run();
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };

	opt.sync_every = sync_every;
	td.events_count = events;
	r = must_replay(text, &td, NULL, &opt);
	assert_false(r.oom.happened);
	return r.m;
}

static void check_bounds(const struct row *row, const struct frag_trace_dev *td, double scale)
{
	size_t n = td->events_count, fifth = 0;
	uint64_t begin = td->events[0].time_us, us = td->events[n - 1].time_us - begin;
	uint64_t expandable =
		replay("pytorch:expandable_segments:True", *td, n, 0).peak_reserved_bytes;
	uint64_t keep = replay("async", *td, n, 0).peak_reserved_bytes;
	uint64_t synced = replay("async", *td, n, 1000).peak_reserved_bytes;
	double best = (double)FRAG_MIN(expandable, FRAG_MIN(keep, synced));
	double live = (double)frag_probe_peak_live(td, 512), late, reserved;
	struct frag_metrics all = replay("vmm", *td, n, 0);

	while (td->events[fifth].time_us - begin < us / 5)
		fifth++;
	reserved = (double)all.peak_reserved_bytes;
	late = (double)(all.modelled_ns - replay("vmm", *td, fifth, 0).modelled_ns) / 1e3 /
	       (0.8 * (double)us);
	if (reserved > 1.045 * live + 32.0 * (double)MIB || reserved > 1.01 * best ||
	    (late >= 0.02 && !row->no_time))
		fail_msg("%s, device %u, sizes x %.2f: reserved %.0f, live %.0f, the best other "
			 "%.0f, late driver time %.2f %%",
			 row->name, td->ordinal, scale, reserved, live, best, 100 * late);
}

static void bounds(void **state)
{
	const struct row *row = *state;

	if (test_is_quick() && row->big)
		skip();
	for (size_t s = 0; s < (row->big ? 1 : FRAG_ARRAY_LEN(scales)); s++) {
		AUTO_TRACE t = must_read_bundled(row->name);

		for (uint32_t d = 0; d < t->devs_count; d++) {
			struct frag_event *e = t->devs[d].events,
					  *end = e + t->devs[d].events_count;

			for (; e < end; e++)
				if (e->kind != FRAG_EV_MARK && e->bytes)
					e->bytes = FRAG_MAX(
						(uint64_t)((double)e->bytes * scales[s]), 1u);
			check_bounds(row, &t->devs[d], scales[s]);
		}
	}
}

TESTS
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		test_add(bounds, &rows[i], "%s", rows[i].name);
}
