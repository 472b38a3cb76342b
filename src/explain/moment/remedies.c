/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory: whether it was fragmentation, and what would have served the request. Every remedy is
 * replayed up to the request, which is then served or refused; a remedy that makes an earlier request fail
 * does not count.
 */
#include "explain.h"

#include <math.h>
#include <string.h>

#include <frag/plan.h>

#include "explain/diagnose/diagnose.h"

#define TUNE_EVENTS 12000000u /* replayed by tune, at most */
#define TUNE_MIN 12u
#define TUNE_MAX 60u
#define SHRINK_EVENTS 8000000u
#define SHRINK_ROUNDS 7
#define SMALLEST_BATCH 0.05
#define CARDS_TRIED 12u

struct trial {
	struct frag_explained *x;
	struct frag_event request; /* the refused one */
};

/* ---- one replay up to the request --------------------------------------------------------- */

static int open_trial(struct frag_cursor *s, const struct trial *t,
		      const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		      uint64_t limit, struct frag_err *err)
{
	const struct frag_case *c = &t->x->in;
	struct frag_run_options run;

	frag_case_run_options(c, &run);
	run.limit_bytes = limit;
	run.restore = run.restore && spec == c->spec;
	return frag_cursor_open(s, &c->events, spec, card, &run, err);
}

/* Asks for the request itself; nothing must have failed before that was served when recorded. */
static int ask(struct frag_cursor *s, const struct trial *t, uint64_t bytes, bool *served,
	       struct frag_err *err)
{
	struct frag_request req = { .bytes = bytes,
				    .stream = t->request.stream,
				    .pool = t->request.pool };
	struct frag_run *run = s->run;
	struct frag_block block = { 0 };
	int rc;

	*served = false;
	if (run->r.oom.happened)
		return 0;
	run->err = err;
	rc = run->policy.ops->alloc(run->policy.self, &req, &block, err);
	if (rc && rc != FRAG_OOM)
		return rc;
	*served = !rc;
	return 0;
}

static int before_request(struct frag_cursor *s, const struct trial *t, struct frag_err *err)
{
	return t->x->m.event ? frag_cursor_to(s, t->x->m.event - 1, err) : 0;
}

/* The replay as it is, up to the request but without it. */
static int reach_request(struct frag_cursor *s, const struct trial *t, struct frag_err *err)
{
	FRAG_TRY(frag_case_replay(&t->x->in, s, err));
	return before_request(s, t, err);
}

static int try_plain(const struct trial *t, const struct frag_policy_spec *spec,
		     const struct frag_sim_config *card, uint64_t limit, bool *served,
		     struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	FRAG_TRY(open_trial(&s, t, spec, card, limit, err));
	FRAG_TRY(before_request(&s, t, err));
	return ask(&s, t, t->request.bytes, served, err);
}

/* Without a line to paste, and a number: to be filled in. */
__attribute__((format(printf, 3, 4))) static struct frag_remedy *
add(const struct trial *t, bool served, const char *fmt, ...)
{
	struct frag_refused_request *o = &t->x->refused;
	struct frag_remedy *r = &o->list[o->remedies.count];
	va_list ap;

	FRAG_ASSERT(o->remedies.count < FRAG_REMEDIES_MAX);
	va_start(ap, fmt);
	*r = (struct frag_remedy){ .served = served,
				   .text = frag_answer_vprint(t->x->texts, fmt, ap),
				   .bytes = UINT64_MAX,
				   .tried_count = UINT64_MAX,
				   .ratio = NAN };
	va_end(ap);
	o->remedies.count++;
	return r;
}

/* ---- another setting -------------------------------------------------------------------------- */

/* One that completed up to the request: does it serve that, too? */
static int try_setting(const struct trial *t, const struct frag_tune_try *one, unsigned *asked,
		       bool *served, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	const struct frag_case *c = &t->x->in;

	if (!one->completed || !one->conf || !*asked)
		return 0;
	--*asked;
	FRAG_TRY(frag_policy_spec_parse(one->text, &spec, err));
	FRAG_TRY(try_plain(t, spec, &c->target.card, c->limit_bytes, served, err));
	if (*served)
		add(t, true, "another allocator setting")->line = frag_answer_print(
			t->x->texts, "export PYTORCH_CUDA_ALLOC_CONF=%s", one->conf);
	return 0;
}

/* The simplest setting of tune's with which all up to the request is served, and the request. */
static int setting(const struct trial *t, struct frag_err *err)
{
	const struct frag_case *c = &t->x->in;
	struct frag_trace_dev upto = *frag_events_dev(&c->events);
	const struct frag_trace_dev *unit = &upto;
	const char *const space = "pytorch";
	struct frag_plan_env env = { .threads = c->threads, .card = c->target.card };
	struct frag_tune_options opt = { .spaces = &space,
					 .spaces_count = 1,
					 .baseline = "pytorch",
					 .budget = TUNE_EVENTS / (t->x->m.event + 1),
					 .seed = c->target.seed };
	FRAG_AUTO(frag_tune_release) struct frag_tune tune = { 0 };
	bool served = false;
	unsigned asked;

	if (c->events.path || strcmp(frag_policy_spec_ops(c->spec)->name, "pytorch") != 0)
		return 0;
	opt.budget = FRAG_MIN(FRAG_MAX(opt.budget, (uint64_t)TUNE_MIN), (uint64_t)TUNE_MAX);
	upto.events_count = (size_t)t->x->m.event;
	if (!upto.events_count)
		return 0;
	frag_case_run_options(c, &env.run);
	env.run.skip_oom = false;
	opt.release = env.run.source_release ? env.run.source_release : upto.source_release;
	asked = (unsigned)opt.budget;
	FRAG_TRY(frag_tune_run(&env, &unit, 1, &opt, &tune, err));
	for (unsigned changed = 0; !served && changed < 8; changed++)
		for (size_t i = 0; !served && i < tune.tries_count; i++)
			if (tune.tries[i].changed_count == changed)
				FRAG_TRY(try_setting(t, &tune.tries[i], &asked, &served, err));
	if (!served)
		add(t, false, "another allocator setting: none of %zu serves it", tune.tries_count)
			->tried_count = tune.tries_count;
	return 0;
}

/* ---- less held ---------------------------------------------------------------------------------- */

static int empty_cache(const struct trial *t, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	bool served;

	if (!frag_policy_spec_ops(t->x->in.spec)->trim)
		return 0;
	FRAG_TRY(reach_request(&s, t, err));
	FRAG_TRY(frag_cursor_trim(&s, err));
	FRAG_TRY(ask(&s, t, t->request.bytes, &served, err));
	add(t, served, "empty_cache before the request")->line =
		served ? "torch.cuda.empty_cache()" : NULL;
	return 0;
}

static int without_row(const struct trial *t, const struct frag_row *row, bool pins, uint64_t bytes,
		       struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	bool served;

	FRAG_TRY(reach_request(&s, t, err));
	FRAG_TRY(frag_explain_free_row(t->x, row, &s, err));
	FRAG_TRY(ask(&s, t, t->request.bytes, &served, err));
	add(t, served, "freeing the blocks of %.200s (%s%s%s)", row->site, pins ? "they pin " : "",
	    FRAG_BYTES(bytes), pins ? "" : " live")
		->bytes = bytes;
	return 0;
}

static int top_holders(const struct trial *t, struct frag_err *err)
{
	const struct frag_explained *x = t->x;
	const struct frag_row *most = x->rows_count ? &x->rows[0] : NULL;
	const struct frag_row *pins = x->pinning_count ? &x->rows[x->pinning[0]] : NULL;

	if (frag_policy_spec_ops(x->in.spec)->flags & FRAG_POLICY_STACK)
		return 0;
	if (pins)
		FRAG_TRY(without_row(t, pins, true, pins->non_releasable_bytes, err));
	if (!most || most == pins)
		return 0;
	return without_row(t, most, false, most->allocated_bytes, err);
}

/* ---- a smaller batch --------------------------------------------------------------------------- */

/* Sizes that permanent blocks have do not follow the batch: weights, and gradients of the same size. */
static bool is_fixed_size(const struct frag_explained *x, uint64_t bytes)
{
	for (size_t i = 0; i < x->view.count; i++) {
		uint8_t k = x->kinds[i].kind;

		if ((k == FRAG_KIND_PERMANENT || k == FRAG_KIND_OPTIMIZER || k == FRAG_KIND_KEPT) &&
		    x->view.list[i].requested == bytes)
			return true;
	}
	return false;
}

static uint64_t scaled(const struct frag_explained *x, uint64_t bytes, double by)
{
	if (bytes < 64 * FRAG_KIB || is_fixed_size(x, bytes))
		return bytes;
	return FRAG_MAX((uint64_t)((double)bytes * by), (uint64_t)1);
}

/* The step of the request with what follows its batch made smaller. */
static int try_smaller(const struct trial *t, uint64_t from, double by, bool *served,
		       struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&t->x->in.events);
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	FRAG_TRY(frag_case_replay(&t->x->in, &s, err));
	if (from)
		FRAG_TRY(frag_cursor_to(&s, from - 1, err));
	for (uint64_t i = from; i < t->x->m.event; i++) {
		struct frag_event e = td->events[i];

		if (e.kind == FRAG_EV_ALLOC)
			e.bytes = scaled(t->x, e.bytes, by) & FRAG_MAX_REQUEST;
		FRAG_TRY(frag_run_feed(s.run, &e, 1, err));
	}
	return ask(&s, t, scaled(t->x, t->request.bytes, by), served, err);
}

static int smaller_batch(const struct trial *t, struct frag_err *err)
{
	const struct frag_case *c = &t->x->in;
	const struct frag_history *h = &c->history;
	double low = SMALLEST_BATCH, high = 1, less; /* low serves, high does not */
	bool served;
	uint64_t from;

	if (c->events.path || h->from == FRAG_STEPS_NONE || h->from == FRAG_STEPS_WINDOWS ||
	    t->x->m.event > SHRINK_EVENTS / SHRINK_ROUNDS)
		return 0;
	from = h->steps[t->x->step].first;
	FRAG_TRY(try_smaller(t, from, low, &served, err));
	for (unsigned i = 0; served && i < SHRINK_ROUNDS; i++) {
		double mid = (low + high) / 2;
		bool fits;

		FRAG_TRY(try_smaller(t, from, mid, &fits, err));
		*(fits ? &low : &high) = mid;
	}
	less = ceil(100 * (1 - low)) / 100; /* whole percent: that much is enough */
	add(t, served,
	    served ? "a batch smaller by %.0f %% in this step"
		   : "a smaller batch: %.0f %% less is not enough",
	    100 * less)
		->ratio = less;
	return 0;
}

/* ---- the next card ------------------------------------------------------------------------------ */

/* The smallest one that leaves a process more than this. */
static const struct frag_gpu *next_larger(uint64_t bytes)
{
	const struct frag_gpu *next = NULL, *all;
	size_t n;

	all = frag_gpu_list(&n);
	for (size_t i = 0; i < n; i++)
		if (!all[i].asked_only && all[i].total_bytes - all[i].context_bytes > bytes &&
		    (!next || all[i].total_bytes < next->total_bytes))
			next = &all[i];
	return next;
}

static int next_card(const struct trial *t, struct frag_err *err)
{
	const struct frag_case *c = &t->x->in;
	const struct frag_gpu *gpu;
	uint64_t least =
		c->limit_bytes == UINT64_MAX ? t->x->refused.reserved_bytes : c->limit_bytes;
	bool served = false;

	for (unsigned tried = 0; !served && tried < CARDS_TRIED && (gpu = next_larger(least));
	     tried++) {
		struct frag_sim_config card = c->target.card;

		card.total_bytes = gpu->total_bytes;
		card.context_bytes = gpu->context_bytes;
		FRAG_TRY(try_plain(t, c->spec, &card, UINT64_MAX, &served, err));
		least = gpu->total_bytes - gpu->context_bytes;
	}
	if (served)
		add(t, true, "a larger card: %s or more, with all of its memory", gpu->label);
	else
		add(t, false, "a larger card: no known card serves it");
	return 0;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

struct event_at {
	uint64_t at;
	struct frag_event *out;
};

static int find_event(void *ctx, const struct frag_event *e, size_t n, uint64_t first,
		      struct frag_err *err)
{
	struct event_at *want = ctx;

	(void)err;
	if (want->at >= first + n)
		return 0;
	*want->out = e[want->at - first];
	return 1;
}

static void fill(struct frag_explained *x, const struct frag_event *request)
{
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
		.fragmentation = frag_oom_is_fragmentation(x->refusal),
	};
	o->verdict = frag_finding_text(o->fragmentation ? FRAG_FOUND_OOM_FRAGMENTATION
							: FRAG_FOUND_OOM_NEEDED);
	m->oom = o;
}

int frag_explain_oom(struct frag_explained *x, struct frag_err *err)
{
	struct trial t = { .x = x };
	struct event_at want = { x->m.event, &t.request };

	FRAG_TRY(frag_events_each(&x->in.events, find_event, &want, err));
	fill(x, &t.request);
	FRAG_TRY(setting(&t, err));
	FRAG_TRY(empty_cache(&t, err));
	FRAG_TRY(top_holders(&t, err));
	FRAG_TRY(smaller_batch(&t, err));
	return next_card(&t, err);
}
