/* SPDX-License-Identifier: Apache-2.0 */
/* A run's beginning and end, and whole replays on a simulated card. */
#include "run.h"
#include "lib/grow.h"

#include <frag/opt.h>

#include <string.h>

void frag_run_options_defaults(struct frag_run_options *o)
{
	*o = (struct frag_run_options){ .limit_bytes = UINT64_MAX, .windows_max = 1024 };
}

/* Error: the card is smaller than the recording's initial state. */
static int does_not_fit(const struct frag_run *run, const struct frag_initial_state *initial,
			struct frag_err *err)
{
	struct frag_device_info info;
	uint64_t bytes = 0;

	frag_dev_info(run->dev, &info);
	for (size_t i = 0; i < initial->segments_count; i++)
		if (__builtin_add_overflow(bytes, initial->segments[i].bytes, &bytes))
			bytes = UINT64_MAX;
	return FRAG_INPUT(err,
			  "the initial state of the recording (%zu segments, %s) does not fit a "
			  "card of %s",
			  initial->segments_count, FRAG_BYTES(bytes), FRAG_BYTES(info.total_bytes));
}

static int restore_state(struct frag_run *run, const struct frag_initial_state *initial,
			 struct frag_err *err)
{
	FRAG_AUTO_FREE uint64_t *handles = NULL;
	int rc;

	FRAG_TRY_CALLOC(handles, initial->blocks_count, "replay: initial state", err);
	rc = run->policy.ops->restore(run->policy.self, initial, handles, err);
	if (rc == FRAG_OOM)
		rc = does_not_fit(run, initial, err);
	for (size_t i = 0; !rc && i < initial->blocks_count; i++) {
		const struct frag_initial_block *b = &initial->blocks[i];
		struct frag_run_slot *s = &run->slots[b->slot];

		s->b = (struct frag_block){ .addr = b->addr,
					    .granted = b->bytes,
					    .handle = handles[i],
					    .stream = b->stream,
					    .requested = b->requested };
		s->state = SLOT_LIVE;
		if (b->waiting) {
			frag_run_wait(run, b->slot);
			continue;
		}
		run->allocated += b->bytes;
		run->requested += b->requested;
		run->bound += frag_round_up(b->requested, 512);
	}
	run->peak_bound = run->bound;
	run->restored = true;
	return rc;
}

static bool is_no_split(const void *dev, uint16_t pool)
{
	const struct frag_trace_dev *hdr = dev;

	return pool < hdr->pools_count && hdr->pools[pool].b & FRAG_POOL_NO_SPLIT;
}

static int open_policy(struct frag_run *run, const struct frag_trace_dev *hdr,
		       frag_journal_fn journal, void *journal_ctx, struct frag_err *err)
{
	struct frag_device_info info;
	struct frag_policy_env env;

	frag_dev_info(run->dev, &info);
	env = (struct frag_policy_env){ .dev = run->dev,
					.limit_bytes = run->opt.limit_bytes,
					.device_total_bytes = info.total_bytes,
					.seed = run->opt.seed,
					.streams_count = hdr->streams_count,
					.sync = frag_run_sync,
					.sync_ctx = run,
					.source_release = run->opt.source_release
								  ? run->opt.source_release
								  : hdr->source_release };
	env.no_split = is_no_split;
	env.no_split_ctx = hdr;
	env.ordinal = hdr->ordinal;
	env.journal = journal;
	env.journal_ctx = journal_ctx;
	if (run->opt.restore && hdr->has_evidence && hdr->initial.segments_count && hdr->events &&
	    hdr->addrs) {
		run->retrace = (struct frag_retrace){ .trace = hdr,
						      .event = &run->events,
						      .begun = &run->restored,
						      .heard = journal,
						      .heard_ctx = journal_ctx };
		env.journal = frag_retrace_journal;
		env.recorded_next = frag_retrace_next;
		env.journal_ctx = env.recorded_ctx = &run->retrace;
	}
	FRAG_TRY(frag_policy_create(run->spec, &env, &run->policy, err));
	if (run->opt.restore && hdr->initial.segments_count && run->policy.ops->restore)
		return restore_state(run, &hdr->initial, err);
	return 0;
}

int frag_run_create_heard(const struct frag_policy_spec *spec, struct frag_device *dev,
			  const struct frag_trace_dev *hdr, const struct frag_run_options *opt,
			  frag_journal_fn journal, void *journal_ctx, struct frag_run **out,
			  struct frag_err *err)
{
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;

	FRAG_TRY_CALLOC(run, 1, "replay", err);
	run->spec = spec;
	run->dev = dev;
	run->opt = *opt;
	run->pending_first = run->pending_last = FRAG_NO_SLOT;
	run->stop_at = UINT64_MAX;
	run->sample = opt->latency ? 1 : 0;
	run->start_reserved = dev->reserved_bytes;
	run->slots_count = hdr->slots_count;
	FRAG_TRY_CALLOC(run->slots, hdr->slots_count, "replay: live table", err);
	if (opt->fill && (frag_policy_spec_ops(spec)->flags & FRAG_POLICY_NO_MEMORY))
		return frag_fail(err, FRAG_ENOTSUP,
				 "policy '%s' invents its addresses: there is no memory to fill",
				 frag_policy_spec_ops(spec)->name);
	FRAG_TRY(frag_contents_create(opt, dev, &run->contents, err));
	FRAG_TRY(frag_series_init(&run->rec, opt->windows_max, err));
	if (hdr->events_count)
		frag_series_expect(&run->rec, hdr->events_count);
	FRAG_TRY(open_policy(run, hdr, journal, journal_ctx, err));
	*out = FRAG_GIVE(run);
	return 0;
}

int frag_run_create(const struct frag_policy_spec *spec, struct frag_device *dev,
		    const struct frag_trace_dev *dev_hdr, const struct frag_run_options *opt,
		    struct frag_run **out, struct frag_err *err)
{
	return frag_run_create_heard(spec, dev, dev_hdr, opt, NULL, NULL, out, err);
}

void frag_run_destroy(struct frag_run *run)
{
	if (!run)
		return;
	if (run->policy.ops)
		frag_policy_destroy(&run->policy);
	frag_series_release(&run->rec);
	frag_contents_destroy(run->contents);
	frag_result_release(&run->r);
	FRAG_FREE(run->held, run->slots, run);
}

/* ---- counters ---- */

struct counters {
	struct frag_counter *list;
	size_t count, cap;
	bool failed;
};

static void add_counter(void *ctx, const char *name, int64_t value)
{
	struct counters *c = ctx;

	if (c->failed)
		return;
	if (FRAG_GROW(c->list, c->count + 1, c->cap, "counters", NULL)) {
		c->failed = true;
		return;
	}
	c->list[c->count] = (struct frag_counter){ frag_host_strdup(name), value };
	c->failed = !c->list[c->count].name;
	c->list[++c->count] = (struct frag_counter){ 0 };
}

int frag_run_counters(const struct frag_run *run, struct frag_counter **out, struct frag_err *err)
{
	struct counters c = { 0 };

	*out = NULL;
	if (!run->policy.ops->counters)
		return 0;
	run->policy.ops->counters(run->policy.self, add_counter, &c);
	if (c.failed) {
		frag_counters_free(c.list);
		return frag_fail_nomem(err, "counters");
	}
	*out = c.list;
	return 0;
}

/* ---- the end of a run ---- */

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void peaks_of_series(struct frag_metrics *m, const struct frag_series *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct frag_window *w = &s->windows[i];

		m->peak_requested_bytes = FRAG_MAX(m->peak_requested_bytes, w->requested_max);
		m->peak_allocated_bytes = FRAG_MAX(m->peak_allocated_bytes, w->allocated_max);
		m->peak_active_bytes = FRAG_MAX(m->peak_active_bytes, w->active_max);
	}
}

static void fill_peak(struct frag_metrics *m, const struct frag_loss *p)
{
	uint64_t free_bytes = p->non_releasable_bytes + p->releasable_bytes;

	m->peak_event = p->event;
	m->at_peak_requested_bytes = p->requested_bytes;
	m->at_peak_rounding_bytes = p->rounding_bytes;
	m->at_peak_waiting_bytes = p->waiting_bytes;
	m->non_releasable_bytes = p->non_releasable_bytes;
	m->releasable_bytes = p->releasable_bytes;
	m->at_peak_other_bytes = p->other_bytes;
	m->largest_free_bytes = p->largest_free_bytes;
	m->free_frag_ratio = free_bytes ? 1 - ratio(p->largest_free_bytes, free_bytes) : 0;
}

static void fill_metrics(struct frag_run *run)
{
	struct frag_metrics *m = &run->r.m;

	peaks_of_series(m, &run->r.series);
	m->peak_reserved_bytes = run->peak_reserved;
	m->lower_bound_bytes = run->peak_bound;
	m->efficiency_ratio = ratio(m->peak_active_bytes, m->peak_reserved_bytes);
	m->frag_bytes = m->peak_reserved_bytes > m->peak_active_bytes
				? m->peak_reserved_bytes - m->peak_active_bytes
				: 0;
	m->reserved_over_bound_ratio = ratio(m->peak_reserved_bytes, m->lower_bound_bytes);
	m->mean_efficiency_ratio =
		run->reserved_time > 0 ? run->active_time / run->reserved_time : 0;
	fill_peak(m, &run->peak);
	m->final_reserved_bytes = run->dev->reserved_bytes - run->start_reserved;
	m->final_allocated_bytes = run->allocated;
	m->events_count = run->events;
	m->allocs_count = run->allocs;
	m->frees_count = run->frees;
	m->ooms_count = run->ooms;
	m->refused_again_count = run->refused_again;
	m->granted_refusals_count = run->granted_refusals;
	m->retries_count = run->r.alloc_modelled_ns[FRAG_CLASS_RELEASE].count;
	m->driver_calls_count = run->dev->driver_calls;
	m->modelled_ns = run->dev->driver_ns;
	m->host_ns = run->host_ns;
	m->events_per_s = run->host_ns ? (double)run->events * 1e9 / (double)run->host_ns : 0;
	m->host_ns_per_op = ratio(run->host_ns, run->allocs + run->frees);
}

/* Calls without the driver were only counted: they are samples of 0 ns. */
static void add_zeros(struct frag_hist *h, uint64_t n)
{
	if (!n)
		return;
	if (!h->count)
		h->max = 0;
	h->min = 0;
	h->count += n;
	h->bucket[0] += (uint32_t)FRAG_MIN(n, UINT32_MAX);
}

int frag_result_name(struct frag_result *r, const struct frag_policy_spec *spec,
		     struct frag_err *err)
{
	const struct frag_policy_ops *ops = frag_policy_spec_ops(spec);
	const char *conf = frag_policy_spec_conf(spec);

	FRAG_FREE(r->policy, r->params, r->conf, r->conf_variable);
	r->policy = frag_host_strdup(frag_policy_spec_text(spec));
	r->params = frag_host_strdup(frag_policy_spec_echo(spec));
	r->conf = conf ? frag_host_strdup(conf) : NULL;
	r->conf_variable = conf ? frag_host_strdup(ops->conf_variable) : NULL;
	r->policy_flags = ops->flags;
	if (!r->policy || !r->params || (conf && (!r->conf || !r->conf_variable)))
		return frag_fail_nomem(err, "result");
	return 0;
}

static int fill_result(struct frag_run *run, struct frag_err *err)
{
	struct frag_result *r = &run->r;

	FRAG_TRY(frag_result_name(r, run->spec, err));
	FRAG_TRY(frag_run_counters(run, &r->counters, err));
	frag_series_finish(&run->rec, &r->series);
	r->completed = !run->r.oom.happened;
	r->peak = run->peak;
	for (unsigned c = 0; c < FRAG_CLASS_COUNT; c++)
		add_zeros(&r->alloc_modelled_ns[c], run->class_zero[c]);
	add_zeros(&r->free_modelled_ns, run->free_zero);
	memcpy(r->calls, run->dev->stat, sizeof(r->calls));
	fill_metrics(run);
	return 0;
}

static int free_last(struct frag_run *run, uint32_t slot, struct frag_err *err)
{
	const struct frag_block *b = &run->slots[slot].b;

	if (run->contents)
		FRAG_TRY(frag_contents_free(run->contents, slot, b, run->events, err));
	return run->policy.ops->free(run->policy.self, b, err);
}

/* Frees everything that is live; then the policy must return everything. */
static int close_policy(struct frag_run *run, struct frag_err *err)
{
	uint64_t leaks;
	int rc = 0;

	run->err = err;
	frag_run_sync(run);
	for (uint32_t i = 0; i < run->slots_count && !rc; i++)
		if (run->slots[i].state == SLOT_LIVE)
			rc = free_last(run, i, err);
	if (!rc && run->contents)
		rc = frag_contents_finish(run->contents, err);
	frag_policy_destroy(&run->policy);
	FRAG_TRY(rc ? rc : run->upcall_rc);
	leaks = frag_dev_leaks(run->dev);
	if (leaks)
		return frag_fail(err, FRAG_EPOLICY, "policy '%s' left %llu device objects behind",
				 frag_policy_spec_text(run->spec), (unsigned long long)leaks);
	return 0;
}

int frag_run_finish(struct frag_run *run, struct frag_result *out, struct frag_err *err)
{
	FRAG_TRY(fill_result(run, err));
	FRAG_TRY(close_policy(run, err));
	*out = run->r;
	run->r = (struct frag_result){ 0 };
	return 0;
}

int frag_run_measure(struct frag_run *run, struct frag_result *out, struct frag_err *err)
{
	run->dev->abandoned = true;
	FRAG_TRY(fill_result(run, err));
	*out = run->r;
	run->r = (struct frag_result){ 0 };
	return 0;
}

/* ---- a whole trace on one simulated card ---- */

/* Events between two checks of `stop`: a few milliseconds. */
#define BATCH 65536u

int frag_feed_batch(struct frag_run *run, const struct frag_event *events, size_t count,
		    struct frag_err *err)
{
	const struct frag_run_options *o = &run->opt;

	if (o->stop && *o->stop)
		return frag_fail(err, FRAG_EINTR, "interrupted");
	FRAG_TRY(frag_run_feed(run, events, count, err));
	if (o->progress)
		o->progress(o->progress_ctx, count);
	return 0;
}

static int replay_once(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		       const struct frag_feeder *feeder, const struct frag_run_options *opt,
		       uint64_t stop_at, struct frag_result *out, bool *stale,
		       struct frag_loss *peak, struct frag_err *err)
{
	struct frag_hints hints = { .trace = feeder->hdr,
				    .restore =
					    opt->restore && frag_policy_spec_ops(spec)->restore };
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;
	int rc;

	FRAG_TRY(frag_hints_open(&hints, card, &dev, err));
	FRAG_TRY(frag_run_create(spec, dev, feeder->hdr, opt, &run, err));
	run->stop_at = stop_at;
	rc = feeder->feed(feeder->ctx, run, &hints, stop_at != UINT64_MAX, err);
	*stale = run->peak_stale;
	*peak = run->peak;
	return rc || !out ? rc : frag_run_finish(run, out, err);
}

int frag_replay_fed(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		    const struct frag_feeder *feeder, const struct frag_run_options *opt,
		    struct frag_result *out, struct frag_err *err)
{
	struct frag_loss peak;
	bool stale, again;
	int rc;

	FRAG_TRY(replay_once(spec, card, feeder, opt, UINT64_MAX, out, &stale, &peak, err));
	if (stale) {
		/* the same events on the same card lead to the same state */
		struct frag_run_options brief = *opt;

		brief.losses = brief.latency = brief.check = false;
		brief.progress = NULL;
		rc = feeder->once ? frag_fail(err, FRAG_ENOTSUP,
					      "policy '%s' needs the trace twice, but a pipe can "
					      "be read only once; name a file",
					      frag_policy_spec_text(spec))
				  : replay_once(spec, card, feeder, &brief, peak.event, NULL,
						&again, &peak, err);
		if (rc) {
			frag_result_release(out);
			return rc;
		}
		out->peak = peak;
		fill_peak(&out->m, &peak);
	}
	out->device_ordinal = feeder->hdr->ordinal;
	return 0;
}

static int feed_memory(void *ctx, struct frag_run *run, struct frag_hints *hints, bool again,
		       struct frag_err *err)
{
	const struct frag_trace_dev *trace = ctx;

	(void)hints;
	(void)again;
	for (size_t at = 0, n; at < trace->events_count && !frag_run_stopped(run); at += n) {
		n = FRAG_MIN(trace->events_count - at, (size_t)BATCH);
		FRAG_TRY(frag_feed_batch(run, trace->events + at, n, err));
	}
	return 0;
}

int frag_replay_sim(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		    const struct frag_trace_dev *trace, const struct frag_run_options *opt,
		    struct frag_result *out, struct frag_err *err)
{
	const struct frag_feeder feeder = { .hdr = trace,
					    .feed = feed_memory,
					    .ctx = (struct frag_trace_dev *)trace };

	return frag_replay_fed(spec, card, &feeder, opt, out, err);
}
