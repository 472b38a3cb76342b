/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory: why, and what would have served the request. Every remedy is replayed up to the
 * request, which is then served or refused, and from there to the end, or to the next request that
 * it refuses; a remedy that makes an earlier request fail does not count. Where the limit is known
 * only within bounds, a remedy has to serve the request at both bounds and between, else it is
 * uncertain. What gets to the end comes first; then what a person can do at once: a setting, a
 * smaller batch, checkpointing.
 */
#include "explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <frag/plan.h>

#include "explain/diagnose/diagnose.h"
#include "plan/fit/fit_cards.h"
#include "plan/probe.h"
#include "recording/recording.h"

#define SHRINK_EVENTS 8000000u
#define SHRINK_ROUNDS 7
#define SMALLEST_BATCH 0.05
#define MORE_PART 50u		 /* of the limit, to be served beyond a last request */
#define AMPLE_BYTES (1ull << 40) /* more than any card has */

#define RAISES_MAX 8u

enum outcome { REFUSED, UNCERTAIN, SERVED };

struct trial {
	struct frag_explained *x;
	const struct frag_refusal *request;
	uint64_t limits[3]; /* the one that counts, and the bounds of an inferred one */
	size_t limits_count;
	double leak;			      /* bytes per step, 0 = none was found */
	bool last;			      /* nothing else is requested after it */
	const struct frag_own_allocator *own; /* of a log of another library, else NULL */
	size_t own_count;
};

/* What is done before the request; a zeroed one changes nothing. */
struct change {
	const struct frag_policy_spec *spec;
	uint64_t raised; /* limit */
	struct frag_explain_edit edit;
	bool least; /* the least that is enough is looked for */
	/* found, under the strictest limit */
	enum outcome out;
	bool roomy; /* a larger request is served, too, where nothing else is known */
	uint64_t spare;
	uint64_t further; /* events after the request until another one is refused */
};

/* ---- one replay up to the request --------------------------------------------------------- */

/* On to the end. The recorded events go on from the request; with a smaller batch they are smaller,
 * too. */
static int go_on(const struct trial *t, struct change *c, struct frag_run *run,
		 struct frag_err *err)
{
	const struct frag_trace_dev *dev = frag_events_dev(&t->x->in.events);
	uint64_t from = run->events;
	struct frag_event part[256];

	for (uint64_t at = t->x->m.event; at < dev->events_count && !run->r.oom.happened;) {
		size_t n = FRAG_MIN(FRAG_ARRAY_LEN(part), dev->events_count - at);

		memcpy(part, dev->events + at, n * sizeof(*part));
		for (size_t i = 0; c->edit.smaller > 0 && i < n; i++)
			if (part[i].kind == FRAG_EV_ALLOC)
				part[i].bytes =
					frag_explain_scaled(t->x, part[i].bytes, c->edit.smaller) &
					FRAG_MAX_REQUEST;
		FRAG_TRY(frag_run_feed(run, part, n, err));
		at += n;
	}
	if (run->r.oom.happened)
		c->further = FRAG_MIN(c->further, run->r.oom.event - from);
	return 0;
}

/* Nothing must have failed before the request that was served when recorded. */
static int try_at(const struct trial *t, struct change *c, uint64_t limit, bool *served,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	const struct frag_case *in = &t->x->in;
	const struct frag_sim_config *card = &in->target.card;
	struct frag_event request = { .kind = FRAG_EV_REFUSED,
				      .bytes = frag_explain_scaled(t->x, t->request->bytes,
								   c->edit.smaller) &
					       FRAG_MAX_REQUEST,
				      .stream = (uint16_t)t->request->stream,
				      .pool = (uint16_t)t->request->pool };
	struct frag_run_options run;
	uint64_t granted, left, more;

	frag_case_run_options(in, &run);
	run.limit_bytes = c->raised ? c->raised : limit;
	run.limit_changes &= !c->raised;
	run.restore = run.restore && !c->spec;
	FRAG_TRY(frag_cursor_open(&s, &in->events, c->spec ? c->spec : in->spec, card, &run, err));
	FRAG_TRY(frag_explain_edited(t->x, &c->edit, t->x->m.event, &s, err));
	granted = s.run->granted_refusals;
	request.time_us = s.now_us;
	FRAG_TRY(frag_run_feed(s.run, &request, 1, err));
	limit = FRAG_MIN(run.limit_bytes, card->total_bytes - card->context_bytes);
	left = limit - FRAG_MIN(frag_cursor_reserved(&s), limit);
	c->spare = FRAG_MIN(c->spare, left);
	*served = s.run->granted_refusals > granted && !s.run->r.oom.happened;
	if (t->last && *served) {
		more = FRAG_MIN((uint64_t)request.bytes, limit / MORE_PART);
		request.bytes = (request.bytes + more) & FRAG_MAX_REQUEST;
		FRAG_TRY(frag_run_feed(s.run, &request, 1, err));
		c->roomy &= s.run->granted_refusals > granted + 1;
		*served = c->roomy || !c->least;
	}
	return *served ? go_on(t, c, s.run, err) : 0;
}

/* Under every limit that it may have been. */
static int try_change(const struct trial *t, struct change *c, struct frag_err *err)
{
	size_t n = c->raised ? 1 : t->limits_count, count = 0;

	c->spare = c->further = UINT64_MAX;
	c->roomy = true;
	for (size_t i = 0; i < n; i++) {
		bool served;

		FRAG_TRY(try_at(t, c, t->limits[i], &served, err));
		count += served;
	}
	c->out = count == n ? SERVED : count ? UNCERTAIN : REFUSED;
	return 0;
}

/* In how many more steps the rest is full. */
static uint64_t steps_of(const struct trial *t, uint64_t spare)
{
	double steps = (double)spare / t->leak;

	return t->leak > 0 && steps < 1e15 ? (uint64_t)steps : UINT64_MAX;
}

/* Without a line to paste, and a number: to be filled in. */
__attribute__((format(printf, 3, 4))) static struct frag_remedy *
add(const struct trial *t, const struct change *c, const char *fmt, ...)
{
	static const char *const words[] = { "no", "uncertain", "yes" };
	struct frag_refused_request *o = &t->x->refused;
	struct frag_remedy *r = &o->list[o->remedies.count];
	bool ends = c->out && c->further != UINT64_MAX;
	uint64_t steps = c->out ? steps_of(t, c->spare) : UINT64_MAX;
	bool far = !ends && steps && (c->roomy || t->leak > 0);
	va_list ap;

	FRAG_ASSERT(o->remedies.count < FRAG_REMEDIES_MAX);
	va_start(ap, fmt);
	*r = (struct frag_remedy){
		.order = 16u * (SERVED - c->out + (c->out < SERVED || !far)) +
			 (unsigned)o->remedies.count,
		.served = c->out == SERVED,
		.uncertain = c->out == UNCERTAIN,
		.served_text = words[c->out],
		.events_count = ends ? c->further : UINT64_MAX,
		.reach = !c->out   ? NULL
			 : ends	   ? frag_answer_print(t->x->texts, "another is refused %s later",
						       frag_answer_count(t->x->texts, c->further,
									 "event", "events"))
			 : t->last ? "the recording ends"
				   : "on to the end",
		.text = frag_answer_vprint(t->x->texts, fmt, ap),
		.steps_count = steps,
		.bytes = UINT64_MAX,
	};
	va_end(ap);
	o->remedies.count++;
	return r;
}

/* What the library of a log has in place of its allocator, the first that serves the request. */
static int other_allocator(const struct trial *t, struct frag_err *err)
{
	for (size_t i = 1; i < t->own_count; i++) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
		const struct frag_own_allocator *own = &t->own[i];
		struct change change;

		FRAG_TRY(frag_policy_spec_parse(own->policy, &spec, err));
		change = (struct change){ .spec = spec };
		FRAG_TRY(try_change(t, &change, err));
		if (change.out == SERVED) {
			add(t, &change, "%s in place of %s", own->policy, t->own->policy)->line =
				own->line;
			return 0;
		}
	}
	add(t, &(struct change){ 0 }, "another allocator of its library: none serves it");
	return 0;
}

/* The setting that tune takes. Where live memory and the request fill the limit, none helps for
 * long. */
static int setting(const struct trial *t, struct frag_err *err)
{
	const struct frag_case *c = &t->x->in;
	const struct frag_tune_options opt = {
		.baseline = frag_policy_spec_text(c->spec),
		.restores = &c->restores,
		.release = c->target.torch ? 0 : c->events.trace->settings.torch_first,
		.seed = c->target.seed,
	};
	FRAG_AUTO(frag_tune_release) struct frag_tune tune = { 0 };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	const struct frag_tune_try *best;
	struct change change = { 0 };
	struct frag_plan_env env;

	if (t->own)
		return other_allocator(t, err);
	if (strcmp(frag_policy_spec_ops(c->spec)->name, "pytorch") != 0 || !t->x->refused.fits)
		return 0;
	frag_plan_env_init(&env, &c->target, c->threads);
	env.run.limit_changes = !c->target.limit.text && !c->target.card_given;
	env.run.limit_bytes = strstr(opt.baseline, "memory_fraction") && c->limit_guessed
				      ? UINT64_MAX /* the setting is the limit */
				      : c->limit_bytes;
	FRAG_TRY(frag_tune_settings(&env, frag_events_dev(&c->events), opt, &tune, err));
	best = tune.baseline ? &tune.tries[frag_tune_pick(&tune)] : NULL;
	if (best && best->conf) {
		FRAG_TRY(frag_policy_spec_parse(best->text, &spec, err));
		change.spec = spec;
		FRAG_TRY(try_change(t, &change, err));
	}
	if (change.out)
		add(t, &change, "%s%s", *best->conf ? "another allocator setting" : "without your ",
		    *best->conf ? "" : c->events.trace->settings.conf)
			->line =
			*best->conf
				? frag_answer_print(t->x->texts,
						    "export PYTORCH_CUDA_ALLOC_CONF=%s", best->conf)
				: "unset PYTORCH_CUDA_ALLOC_CONF";
	else
		add(t, &change, "another allocator setting: %s of %zu %s",
		    best ? best->params : "none", tune.tries_count,
		    best ? "tried is best, and does not serve it" : "is better");
	return 0;
}

/* A limit below the card is one's own, or that of whoever shares the card. */
static int raise_limit(const struct trial *t, struct frag_err *err)
{
	const struct frag_sim_config *card = &t->x->in.target.card;
	uint64_t room = card->total_bytes - card->context_bytes, limit = t->x->m.limit_bytes;
	uint64_t by = frag_round_up(FRAG_MAX(t->request->bytes / 8, 64 * FRAG_MIB), FRAG_PAGE);
	uint64_t low = t->limits[t->limits_count - 1], high = 0;
	struct change c = { .least = true }, found = c;

	if (t->x->in.neighbours.count) {
		c = (struct change){ .raised = room };
		FRAG_TRY(try_change(t, &c, err));
		add(t, &c, "the card without the other processes (on another, or later)");
	}
	if (t->x->in.card_full)
		return 0;
	/* twice as much more until it is served, then halves in between */
	for (unsigned i = 0; i < RAISES_MAX && low < room && !(high && high - low <= by / 4); i++) {
		bool enough;

		c.raised = high ? frag_round_up(low + (high - low) / 2, FRAG_PAGE)
				: FRAG_MIN(low + by, room);
		FRAG_TRY(try_change(t, &c, err));
		enough = c.out && c.further == UINT64_MAX;
		by *= high || enough ? 1 : 2;
		found = enough ? c : found;
		*(enough ? &high : &low) = c.raised;
	}
	if (high)
		add(t, &found, "a limit of %s instead of %s, if it is yours%s", FRAG_BYTES(high),
		    FRAG_BYTES(limit), t->own ? "" : " (set_per_process_memory_fraction)")
			->bytes = high;
	return 0;
}

static uint64_t activations_of(const struct frag_row *row)
{
	return row ? row->kind_bytes[FRAG_KIND_ACTIVATION] + row->kind_bytes[FRAG_KIND_WITHIN] : 0;
}

/* The call site with most activations: a backward pass could compute them again. */
static int checkpointing(const struct trial *t, struct frag_err *err)
{
	struct change c = { .edit.activations = true };
	const struct frag_row **row = &c.edit.row;

	for (size_t i = 0; i < t->x->rows_count; i++)
		if (activations_of(&t->x->rows[i]) > activations_of(*row))
			*row = &t->x->rows[i];
	if (t->own || !*row || frag_policy_spec_ops(t->x->in.spec)->flags & FRAG_POLICY_STACK)
		return 0; /* what a backward pass needs is PyTorch's */
	FRAG_TRY(try_change(t, &c, err));
	add(t, &c, "activation checkpointing around %.200s (%s of activations live)", (*row)->site,
	    FRAG_BYTES(activations_of(*row)))
		->bytes = activations_of(*row);
	return 0;
}

static int smaller_batch(const struct trial *t, struct frag_err *err)
{
	const struct frag_history *h = &t->x->in.history;
	double low = SMALLEST_BATCH, high = 1; /* low serves all, high does not */
	struct change c = { .edit.smaller = low, .least = true }, found;

	/* of fragmentation, or in a first step, one needs to see what follows */
	if ((t->last && (t->x->refused.fragmentation ||
			 frag_oom_in_first_step(&t->x->in, &t->x->refusal->r))) ||
	    !frag_steps_known(h) || h->events > SHRINK_EVENTS / SHRINK_ROUNDS)
		return 0;
	FRAG_TRY(try_change(t, &c, err));
	found = c;
	for (unsigned i = 0; found.out == SERVED && i < SHRINK_ROUNDS; i++) {
		c.edit.smaller = (low + high) / 2;
		FRAG_TRY(try_change(t, &c, err));
		if (c.out == SERVED && c.further >= found.further)
			found = c;
		*(c.out == SERVED && c.further >= found.further ? &low : &high) = c.edit.smaller;
	}
	add(t, &found,
	    !found.out ? "a smaller batch: %.0f %% less is not enough"
	    : t->last  ? "a batch smaller by at least %.0f %% from this step on"
		       : "a batch smaller by %.0f %% from this step on",
	    ceil(100 * (1 - low))); /* whole percent: that much is enough */
	return 0;
}

/* The smallest card with room for all of it, as fit finds it: under the best of its policies. */
static int next_card(const struct trial *t, struct frag_err *err)
{
	const struct frag_case *in = &t->x->in;
	const struct frag_trace *trace = in->events.trace;
	const struct frag_trace_dev *dev = frag_events_dev(&in->events);
	const struct frag_headroom kept = { .ratio = FRAG_HEADROOM_RATIO,
					    .outside_bytes = frag_recorded_outside_bytes(dev) +
							     in->neighbours.bytes };
	FRAG_AUTO(frag_policy_texts_release) struct frag_policy_texts texts = { 0 };
	FRAG_AUTO(frag_catalog_release) struct frag_catalog cards = { 0 };
	struct change c = { .roomy = true, .further = UINT64_MAX };
	const struct frag_gpu *gpu = NULL;
	const char *under = "";
	uint64_t need = UINT64_MAX;
	struct frag_plan_env env;

	frag_plan_env_init(&env, &in->target, in->threads);
	env.run.limit_bytes = UINT64_MAX;
	env.limit_fraction = 0;
	env.card.total_bytes = AMPLE_BYTES;
	if (!in->recorded)
		FRAG_TRY(frag_policy_texts_add(&texts, frag_policy_spec_text(in->spec), err));
	FRAG_TRY(frag_fit_policies(&texts, err));
	FRAG_TRY(frag_catalog_init(&cards, NULL, NULL, err));
	for (size_t i = 0; i < texts.count; i++) {
		const char *text = frag_policy_texts_for(&texts, i, trace);
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
		struct frag_probe p;

		if (text)
			FRAG_TRY(frag_recording_spec(trace, text, &spec, err));
		if (!spec)
			continue;
		FRAG_TRY(frag_probe_run(&env, spec, &env.card, dev, &p, err));
		if (!p.completed || p.peak_reserved_bytes >= need)
			continue;
		need = p.peak_reserved_bytes;
		under = frag_answer_print(t->x->texts, "%s", frag_policy_spec_echo(spec));
	}
	if (need != UINT64_MAX)
		gpu = frag_fit_gpu(&cards, &kept, frag_recorded_chip(trace, dev),
				   frag_round_up(need, FRAG_PAGE));
	c.out = gpu ? SERVED : REFUSED;
	c.spare = gpu ? gpu->total_bytes - gpu->context_bytes - in->neighbours.bytes - need : 0;
	if (gpu)
		add(t, &c, "a larger card: %s or more, under %s", gpu->label, under)->card =
			gpu->name;
	else
		add(t, &c, "a larger card: no known card has room");
	return 0;
}

/* ---- all of them ------------------------------------------------------------------------ */

FRAG_COMPARE(by_order, struct frag_remedy, FRAG_ORDER(x->order, y->order))

int frag_explain_oom(struct frag_explained *x, double per_step, struct frag_err *err)
{
	/* what can be done at once comes first */
	static int (*const remedies[])(const struct trial *t, struct frag_err *err) = {
		setting, smaller_batch, checkpointing, raise_limit, next_card,
	};
	struct trial t = { .x = x,
			   .request = &x->refusal->r,
			   .limits = { x->in.limit_bytes },
			   .limits_count = 1,
			   .leak = per_step,
			   .last = frag_oom_is_last(&x->in, &x->refusal->r) };

	t.own = frag_own_allocators(x->in.events.trace->format, &t.own_count);

	if (x->in.limit_high_bytes > FRAG_PAGE) {
		t.limits[t.limits_count++] = x->in.limit_low_bytes;
		t.limits[t.limits_count++] = x->in.limit_high_bytes - FRAG_PAGE;
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(remedies); i++)
		FRAG_TRY(remedies[i](&t, err));
	qsort(x->refused.list, x->refused.remedies.count, sizeof(*x->refused.list), by_order);
	return 0;
}
