/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory: whether it was fragmentation, and what would have served the request. Every
 * remedy is replayed up to the request, which then is served or is not; a remedy that makes an
 * earlier request fail is none.
 */
#include "explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <frag/plan.h>

#include "explain/diagnose/diagnose.h"

#define TUNE_EVENTS 12000000u /* replayed by tune, at most */
#define TUNE_MIN 12u
#define TUNE_MAX 60u
#define SHRINK_EVENTS 8000000u
#define SHRINK_ROUNDS 7

struct trial {
	const struct frag_events *ev;
	const struct frag_explain_options *opt;
	const struct frag_explained *x;
	const struct frag_event *request; /* the refused one */
};

/* ---- one replay up to the request --------------------------------------------------------- */

static int open_trial(struct frag_cursor *s, const struct trial *t,
		      const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		      uint64_t limit, struct frag_err *err)
{
	struct frag_run_options run;

	frag_explain_run_options(t->opt, t->x, &run);
	run.limit_bytes = limit;
	run.restore = run.restore && spec == t->opt->spec;
	return frag_cursor_open(s, t->ev, spec, card, &run, err);
}

/* Asks for the request itself; nothing must have failed before that was served when recorded. */
static int ask(struct frag_cursor *s, const struct trial *t, uint64_t bytes, bool *served,
	       struct frag_err *err)
{
	struct frag_request req = { .bytes = bytes,
				    .stream = t->request->stream,
				    .pool = t->request->pool };
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
	return t->x->event ? frag_cursor_to(s, t->x->event - 1, err) : 0;
}

static int try_plain(const struct trial *t, const struct frag_policy_spec *spec,
		     const struct frag_sim_config *card, uint64_t limit, bool *served,
		     struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	FRAG_TRY(open_trial(&s, t, spec, card, limit, err));
	FRAG_TRY(before_request(&s, t, err));
	return ask(&s, t, t->request->bytes, served, err);
}

/* ---- remedies -------------------------------------------------------------------------------- */

__attribute__((format(printf, 5, 6))) static int add(struct frag_oom_story *o, bool served,
						     const char *line, struct frag_err *err,
						     const char *fmt, ...)
{
	struct frag_remedy *r = &o->remedies[o->remedies_count];
	char text[400];
	va_list ap;

	FRAG_ASSERT(o->remedies_count < FRAG_REMEDIES_MAX);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*r = (struct frag_remedy){ served, frag_host_strdup(text),
				   line ? frag_host_strdup(line) : NULL };
	o->remedies_count++;
	return r->text && (!line || r->line) ? 0 : frag_fail_nomem(err, "explanation");
}

/* One that completed up to the request: does it serve that, too? */
static int try_setting(const struct trial *t, struct frag_oom_story *o,
		       const struct frag_tune_try *one, unsigned *asked, bool *served,
		       struct frag_err *err)
{
	struct frag_policy_spec *spec;
	char line[300];
	int rc;

	if (!one->completed || !one->conf || !*asked)
		return 0;
	--*asked;
	FRAG_TRY(frag_policy_spec_parse(one->text, &spec, err));
	rc = try_plain(t, spec, &t->opt->target.card, t->x->limit_bytes, served, err);
	frag_policy_spec_destroy(spec);
	if (rc || !*served)
		return rc;
	snprintf(line, sizeof(line), "export PYTORCH_CUDA_ALLOC_CONF=%s", one->conf);
	return add(o, true, line, err, "another setting of the allocator");
}

/* The simplest setting of tune's with which all up to the request is served, and the request. */
static int setting(const struct trial *t, struct frag_oom_story *o, struct frag_err *err)
{
	struct frag_trace_dev upto = *frag_events_dev(t->ev);
	const struct frag_trace_dev *unit = &upto;
	const char *const space = "pytorch";
	struct frag_plan_env env = { .threads = t->opt->threads, .card = t->opt->target.card };
	struct frag_tune_options opt = { .spaces = &space,
					 .spaces_count = 1,
					 .baseline = "pytorch",
					 .budget = TUNE_EVENTS / (t->x->event + 1),
					 .seed = t->opt->target.seed };
	FRAG_AUTO(frag_tune_release) struct frag_tune tune = { 0 };
	bool served = false;
	unsigned asked;

	if (t->ev->path || strcmp(frag_policy_spec_ops(t->opt->spec)->name, "pytorch") != 0)
		return 0;
	opt.budget = FRAG_MIN(FRAG_MAX(opt.budget, (uint64_t)TUNE_MIN), (uint64_t)TUNE_MAX);
	upto.events_count = (size_t)t->x->event;
	if (!upto.events_count)
		return 0;
	frag_explain_run_options(t->opt, t->x, &env.run);
	env.run.skip_oom = false;
	opt.release = env.run.source_release ? env.run.source_release : upto.source_release;
	asked = (unsigned)opt.budget;
	FRAG_TRY(frag_tune_run(&env, &unit, 1, &opt, &tune, err));
	for (unsigned changed = 0; !served && changed < 8; changed++)
		for (size_t i = 0; !served && i < tune.tries_count; i++)
			if (tune.tries[i].changed_count == changed)
				FRAG_TRY(try_setting(t, o, &tune.tries[i], &asked, &served, err));
	if (!served)
		FRAG_TRY(add(o, false, NULL, err,
			     "another setting of the allocator: none of %zu serves it",
			     tune.tries_count));
	return 0;
}

static int empty_cache(const struct trial *t, struct frag_oom_story *o, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	bool served = false;
	int rc;

	if (!frag_policy_spec_ops(t->opt->spec)->trim)
		return 0;
	FRAG_TRY(open_trial(&s, t, t->opt->spec, &t->opt->target.card, t->x->limit_bytes, err));
	rc = before_request(&s, t, err) ?: frag_cursor_trim(&s, err);
	if (!rc)
		rc = ask(&s, t, t->request->bytes, &served, err);
	return rc ? rc
		  : add(o, served, served ? "torch.cuda.empty_cache()" : NULL, err,
			"empty_cache before the request");
}

static bool is_row(const void *ctx, const struct frag_held *h)
{
	const struct {
		const struct frag_explained *x;
		struct frag_row_key key;
	} *want = ctx;
	struct frag_row_key key = frag_row_key_of(want->x, h);

	return key.a == want->key.a && key.b == want->key.b;
}

static int without_row(const struct trial *t, struct frag_oom_story *o, const struct frag_row *row,
		       const char *why, uint64_t bytes, struct frag_err *err)
{
	struct {
		const struct frag_explained *x;
		struct frag_row_key key;
	} want = { t->x, row->key };
	struct frag_cursor s;
	bool served = false;
	int rc;

	FRAG_TRY(open_trial(&s, t, t->opt->spec, &t->opt->target.card, t->x->limit_bytes, err));
	rc = before_request(&s, t, err)
		     ?: frag_cursor_without(&s, &t->x->scene, is_row, &want, err);
	if (!rc)
		rc = ask(&s, t, t->request->bytes, &served, err);
	frag_cursor_close(&s);
	return rc ? rc
		  : add(o, served, NULL, err, "freeing the blocks of %.200s (%s %s)", row->name,
			FRAG_BYTES(bytes), why);
}

static int top_holders(const struct trial *t, struct frag_oom_story *o, struct frag_err *err)
{
	const struct frag_explained *x = t->x;
	const struct frag_row *held = x->held_count ? &x->rows[x->held[0]] : NULL;

	if (frag_policy_spec_ops(t->opt->spec)->flags & FRAG_POLICY_STACK)
		return 0;
	if (held)
		FRAG_TRY(without_row(t, o, held, "kept from being given back",
				     held->non_releasable_bytes, err));
	if (x->rows_count && &x->rows[0] != held)
		FRAG_TRY(without_row(t, o, &x->rows[0], "live", x->rows[0].allocated_bytes, err));
	return 0;
}

/* ---- a smaller batch --------------------------------------------------------------------------- */

/* Sizes that permanent blocks have do not follow the batch: weights, and gradients of the same size. */
static bool is_fixed_size(const struct frag_explained *x, uint64_t bytes)
{
	for (size_t i = 0; i < x->scene.count; i++) {
		uint8_t k = x->kinds[i].kind;

		if ((k == FRAG_KIND_PERMANENT || k == FRAG_KIND_OPTIMIZER || k == FRAG_KIND_KEPT) &&
		    x->scene.list[i].requested == bytes)
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
	const struct frag_trace_dev *td = frag_events_dev(t->ev);
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	FRAG_TRY(open_trial(&s, t, t->opt->spec, &t->opt->target.card, t->x->limit_bytes, err));
	if (from)
		FRAG_TRY(frag_cursor_to(&s, from - 1, err));
	for (uint64_t i = from; i < t->x->event; i++) {
		struct frag_event e = td->events[i];

		if (e.kind == FRAG_EV_ALLOC)
			e.bytes = scaled(t->x, e.bytes, by) & FRAG_MAX_REQUEST;
		FRAG_TRY(frag_run_feed(s.run, &e, 1, err));
	}
	return ask(&s, t, scaled(t->x, t->request->bytes, by), served, err);
}

static int smaller_batch(const struct trial *t, struct frag_oom_story *o, struct frag_err *err)
{
	const struct frag_history *h = &t->x->history;
	double low = 0.05, high = 1; /* low serves, high does not */
	bool served;
	uint64_t from;

	if (t->ev->path || h->from == FRAG_STEPS_NONE || h->from == FRAG_STEPS_WINDOWS ||
	    t->x->event > SHRINK_EVENTS / SHRINK_ROUNDS)
		return 0;
	from = h->steps[t->x->step].first;
	FRAG_TRY(try_smaller(t, from, low, &served, err));
	if (!served)
		return add(o, false, NULL, err, "a smaller batch: not even a twentieth of it fits");
	for (unsigned i = 0; i < SHRINK_ROUNDS; i++) {
		double mid = (low + high) / 2;

		FRAG_TRY(try_smaller(t, from, mid, &served, err));
		*(served ? &low : &high) = mid;
	}
	return add(o, true, NULL, err,
		   "a batch smaller by %.0f %% (what follows its size scaled, in this step)",
		   100 * (1 - low) + 0.5);
}

/* ---- the next card ------------------------------------------------------------------------------ */

static int next_card(const struct trial *t, struct frag_oom_story *o, struct frag_err *err)
{
	const struct frag_gpu *best = NULL, *all;
	uint64_t least = t->x->limit_bytes;
	size_t n, tried = 0;

	if (least == UINT64_MAX)
		least = t->x->oom.reserved_bytes;
	all = frag_gpu_list(&n);
	for (;;) { /* by size: the smallest that is larger than the last */
		const struct frag_gpu *next = NULL;
		struct frag_sim_config card = t->opt->target.card;
		bool served;

		for (size_t i = 0; i < n; i++)
			if (!all[i].asked_only &&
			    all[i].total_bytes - all[i].context_bytes > least &&
			    (!next || all[i].total_bytes < next->total_bytes))
				next = &all[i];
		if (!next || tried++ == 12)
			break;
		card.total_bytes = next->total_bytes;
		card.context_bytes = next->context_bytes;
		FRAG_TRY(try_plain(t, t->opt->spec, &card, UINT64_MAX, &served, err));
		if (served) {
			best = next;
			break;
		}
		least = next->total_bytes - next->context_bytes;
	}
	if (!best)
		return add(o, false, NULL, err, "a larger card: none that is known");
	return add(o, true, NULL, err, "a card with room for it, from %s on, used up to its end",
		   best->label);
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static int event_at(void *ctx, const struct frag_event *e, size_t n, uint64_t first,
		    struct frag_err *err)
{
	struct {
		uint64_t at;
		struct frag_event *out;
	} *want = ctx;

	(void)err;
	if (want->at >= first + n)
		return 0;
	*want->out = e[want->at - first];
	return 1;
}

int frag_explain_oom(const struct frag_events *ev, const struct frag_explain_options *opt,
		     struct frag_explained *x, struct frag_err *err)
{
	struct frag_event request = { 0 };
	struct trial t = { ev, opt, x, &request };
	struct {
		uint64_t at;
		struct frag_event *out;
	} want = { x->event, &request };
	struct frag_oom_story *o = &x->oom;
	uint64_t room = x->limit_bytes;

	FRAG_TRY(frag_events_each(ev, event_at, &want, err));
	*o = (struct frag_oom_story){ .happened = true,
				      .event = x->event,
				      .time_us = x->time_us,
				      .request_bytes = request.bytes,
				      .step = x->step,
				      .stack = request.stack,
				      .live_bytes = x->loss.requested_bytes +
						    x->loss.rounding_bytes + x->loss.waiting_bytes,
				      .reserved_bytes = x->loss.reserved_bytes,
				      .non_releasable_bytes = x->loss.non_releasable_bytes,
				      .largest_free_bytes = x->loss.largest_free_bytes };
	if (room == UINT64_MAX)
		room = o->reserved_bytes; /* the card was full */
	o->fragmentation =
		frag_oom_is_fragmentation(o->live_bytes, o->request_bytes, o->reserved_bytes, room);
	FRAG_TRY(setting(&t, o, err));
	FRAG_TRY(empty_cache(&t, o, err));
	FRAG_TRY(top_holders(&t, o, err));
	FRAG_TRY(smaller_batch(&t, o, err));
	return next_card(&t, o, err);
}
