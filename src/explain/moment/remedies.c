/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory: why, and what would have served the request. Every remedy is replayed up to the
 * request, which is then served or refused; a remedy that makes an earlier request fail does not
 * count. Where the limit is known only within bounds, a remedy has to serve the request at both
 * bounds and between, else it is uncertain. What a person can do at once comes first: a setting, a
 * higher limit, a smaller batch, checkpointing.
 */
#include "explain.h"

#include <math.h>
#include <string.h>

#include <frag/plan.h>

#include "explain/diagnose/diagnose.h"
#include "recording/recording.h"

#define SHRINK_EVENTS 8000000u
#define SHRINK_ROUNDS 7
#define SMALLEST_BATCH 0.05
#define CARDS_TRIED 12u

#define RAISES_MAX 8u

enum outcome { REFUSED, UNCERTAIN, SERVED };

struct trial {
	struct frag_explained *x;
	const struct frag_refusal *request;
	uint64_t limits[3]; /* the one that counts, and the bounds of an inferred one */
	size_t limits_count;
	double leak;			      /* bytes per step, 0 = none was found */
	const struct frag_own_allocator *own; /* of a log of another library, else NULL */
	size_t own_count;
};

/* What is done before the request; a zeroed one changes nothing. */
struct change {
	const struct frag_policy_spec *spec;
	const struct frag_sim_config *card; /* with all of its memory */
	uint64_t raised;		    /* limit */
	struct frag_explain_edit edit;
	bool trim;
	/* found */
	enum outcome out;
	uint64_t spare; /* of the strictest limit */
};

/* ---- one replay up to the request --------------------------------------------------------- */

/* Nothing must have failed before the request that was served when recorded. */
static int try_at(const struct trial *t, struct change *c, uint64_t limit, bool *served,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	const struct frag_case *in = &t->x->in;
	const struct frag_sim_config *card = c->card ? c->card : &in->target.card;
	struct frag_event request = { .kind = FRAG_EV_REFUSED,
				      .bytes = frag_explain_scaled(t->x, t->request->bytes,
								   c->edit.smaller) &
					       FRAG_MAX_REQUEST,
				      .stream = (uint16_t)t->request->stream,
				      .pool = (uint16_t)t->request->pool };
	struct frag_run_options run;
	uint64_t granted, left;

	frag_case_run_options(in, &run);
	run.limit_bytes = c->card ? UINT64_MAX : c->raised ? c->raised : limit;
	run.restore = run.restore && !c->spec;
	FRAG_TRY(frag_cursor_open(&s, &in->events, c->spec ? c->spec : in->spec, card, &run, err));
	FRAG_TRY(frag_explain_edited(t->x, &c->edit, t->x->m.event, &s, err));
	if (c->trim)
		FRAG_TRY(frag_cursor_trim(&s, err));
	granted = s.run->granted_refusals;
	request.time_us = s.now_us;
	FRAG_TRY(frag_run_feed(s.run, &request, 1, err));
	*served = s.run->granted_refusals > granted && !s.run->r.oom.happened;
	limit = FRAG_MIN(run.limit_bytes, card->total_bytes - card->context_bytes);
	left = limit - FRAG_MIN(frag_cursor_reserved(&s), limit);
	c->spare = FRAG_MIN(c->spare, left);
	return 0;
}

/* Under every limit that it may have been. */
static int try_change(const struct trial *t, struct change *c, struct frag_err *err)
{
	size_t n = c->card || c->raised ? 1 : t->limits_count, count = 0;

	c->spare = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		bool served;

		FRAG_TRY(try_at(t, c, t->limits[i], &served, err));
		count += served;
	}
	c->out = count == n ? SERVED : count ? UNCERTAIN : REFUSED;
	return 0;
}

/* Without a line to paste, and a number: to be filled in. */
__attribute__((format(printf, 3, 4))) static struct frag_remedy *
add(const struct trial *t, enum outcome out, const char *fmt, ...)
{
	static const char *const words[] = { "no", "uncertain", "yes" };
	struct frag_refused_request *o = &t->x->refused;
	struct frag_remedy *r = &o->list[o->remedies.count];
	va_list ap;

	FRAG_ASSERT(o->remedies.count < FRAG_REMEDIES_MAX);
	va_start(ap, fmt);
	*r = (struct frag_remedy){ .served = out == SERVED,
				   .uncertain = out == UNCERTAIN,
				   .served_text = words[out],
				   .text = frag_answer_vprint(t->x->texts, fmt, ap),
				   .steps_count = UINT64_MAX,
				   .bytes = UINT64_MAX,
				   .tried_count = UINT64_MAX,
				   .ratio = NAN };
	va_end(ap);
	o->remedies.count++;
	return r;
}

/* In how many more steps the rest is full. */
static uint64_t steps_of(const struct trial *t, uint64_t spare)
{
	double steps = (double)spare / t->leak;

	return t->leak > 0 && steps < 1e15 ? (uint64_t)steps : UINT64_MAX;
}

/* What the library of a log has in place of its allocator, the first that serves the request. */
static int other_allocator(const struct trial *t, struct frag_err *err)
{
	const char *names = "";

	for (size_t i = 1; i < t->own_count; i++) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
		const struct frag_own_allocator *own = &t->own[i];
		struct change change;

		FRAG_TRY(frag_policy_spec_parse(own->policy, &spec, err));
		change = (struct change){ .spec = spec };
		FRAG_TRY(try_change(t, &change, err));
		if (change.out == SERVED) {
			add(t, SERVED, "%s in place of %s", own->policy, t->own->policy)->line =
				own->line;
			return 0;
		}
		names = frag_answer_print(t->x->texts, "%s%s%s", names, i > 1 ? ", " : "",
					  own->policy);
	}
	add(t, REFUSED, "another allocator of its library: not %s", names);
	return 0;
}

/* The simplest setting of tune's with which all up to the request is served, and the request. */
static int setting(const struct trial *t, struct frag_err *err)
{
	const struct frag_case *c = &t->x->in;
	struct frag_trace_dev upto = *frag_events_dev(&c->events);
	struct frag_plan_env env = { .threads = c->threads, .card = c->target.card };
	FRAG_AUTO(frag_tune_release) struct frag_tune tune = { 0 };
	const struct frag_tune_try *with = NULL;
	struct change best = { .out = REFUSED };
	struct frag_remedy *r;

	if (t->own)
		return other_allocator(t, err);
	upto.events_count = (size_t)t->x->m.event;
	if (strcmp(frag_policy_spec_ops(c->spec)->name, "pytorch") != 0 || !upto.events_count)
		return 0;
	frag_case_run_options(c, &env.run);
	env.run.skip_oom = false;
	FRAG_TRY(frag_tune_settings(&env, &upto, c->target.seed, &tune, err));
	for (unsigned changed = 0; changed < 8; changed++)
		for (size_t i = 0; best.out != SERVED && i < tune.tries_count; i++) {
			const struct frag_tune_try *one = &tune.tries[i];
			FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
			struct change change;

			if (one->changed_count != changed || !one->completed || !one->conf)
				continue;
			FRAG_TRY(frag_policy_spec_parse(one->text, &spec, err));
			if (!strcmp(frag_policy_spec_echo(spec), frag_policy_spec_echo(c->spec)))
				continue; /* no other one */
			change = (struct change){ .spec = spec };
			FRAG_TRY(try_change(t, &change, err));
			with = change.out > best.out ? one : with;
			best = change.out > best.out ? change : best;
		}
	if (!with) {
		add(t, REFUSED, "another allocator setting: none of %zu serves it",
		    tune.tries_count)
			->tried_count = tune.tries_count;
		return 0;
	}
	r = add(t, best.out, "another allocator setting");
	r->steps_count = steps_of(t, best.spare);
	r->line = *with->conf ? frag_answer_print(t->x->texts, "export PYTORCH_CUDA_ALLOC_CONF=%s",
						  with->conf)
			      : "unset PYTORCH_CUDA_ALLOC_CONF";
	return 0;
}

/* A limit below the card is one's own, or that of whoever shares the card. */
static int raise_limit(const struct trial *t, struct frag_err *err)
{
	const struct frag_sim_config *card = &t->x->in.target.card;
	uint64_t room = card->total_bytes - card->context_bytes, limit = t->x->m.limit_bytes;
	uint64_t by = frag_round_up(FRAG_MAX(t->request->bytes / 8, 64 * FRAG_MIB), FRAG_PAGE);
	uint64_t low = t->limits[t->limits_count - 1], high = 0, spare = 0;
	struct frag_remedy *r;
	struct change c = { 0 };

	if (t->x->in.card_full)
		return 0;
	/* twice as much more until it is served, then halves in between */
	for (unsigned i = 0; i < RAISES_MAX && low < room && !(high && high - low <= by / 4); i++) {
		c.raised = high ? frag_round_up(low + (high - low) / 2, FRAG_PAGE)
				: FRAG_MIN(low + by, room);
		FRAG_TRY(try_change(t, &c, err));
		by *= high || c.out ? 1 : 2;
		spare = c.out ? c.spare : spare;
		*(c.out ? &high : &low) = c.raised;
	}
	if (!high)
		return 0;
	r = add(t, SERVED, "a limit of %s instead of %s, if it is yours%s", FRAG_BYTES(high),
		FRAG_BYTES(limit), t->own ? "" : " (set_per_process_memory_fraction)");
	r->bytes = high;
	r->steps_count = steps_of(t, spare);
	return 0;
}

static int empty_cache(const struct trial *t, struct frag_err *err)
{
	struct change c = { .trim = true };
	bool cupy = t->own && !strcmp(t->own->policy, "cupy");

	if (t->own && !cupy)
		return 0; /* no call for it */
	if (!frag_policy_spec_ops(t->x->in.spec)->trim)
		return 0;
	FRAG_TRY(try_change(t, &c, err));
	add(t, c.out,
	    cupy ? "free_all_blocks before the request" : "empty_cache before the request")
		->line = !c.out ? NULL
			 : cupy ? "cupy.get_default_memory_pool().free_all_blocks()"
				: "torch.cuda.empty_cache()";
	return 0;
}

static int without_row(const struct trial *t, struct frag_explain_edit edit, uint64_t bytes,
		       const char *before, const char *after, struct frag_err *err)
{
	struct change c = { .edit = edit };

	if (!edit.row || frag_policy_spec_ops(t->x->in.spec)->flags & FRAG_POLICY_STACK)
		return 0;
	FRAG_TRY(try_change(t, &c, err));
	add(t, c.out, "%s%.200s (%s%s)", before, edit.row->site, FRAG_BYTES(bytes), after)->bytes =
		bytes;
	return 0;
}

static uint64_t activations_of(const struct frag_row *row)
{
	return row ? row->kind_bytes[FRAG_KIND_ACTIVATION] + row->kind_bytes[FRAG_KIND_WITHIN] : 0;
}

/* The call site with most activations: a backward pass could compute them again. */
static int checkpointing(const struct trial *t, struct frag_err *err)
{
	struct frag_explain_edit edit = { .activations = true };

	if (t->own)
		return 0; /* what a backward pass needs is PyTorch's */
	for (size_t i = 0; i < t->x->rows_count; i++)
		if (activations_of(&t->x->rows[i]) > activations_of(edit.row))
			edit.row = &t->x->rows[i];
	return without_row(t, edit, activations_of(edit.row), "activation checkpointing around ",
			   " of activations live", err);
}

static int top_holders(const struct trial *t, struct frag_err *err)
{
	const struct frag_explained *x = t->x;
	const struct frag_row *most = x->rows_count ? &x->rows[0] : NULL;
	const struct frag_row *pins = x->pinning_count ? &x->rows[x->pinning[0]] : NULL;

	FRAG_TRY(without_row(t, (struct frag_explain_edit){ .row = pins },
			     pins ? pins->non_releasable_bytes : 0, "freeing the blocks of ",
			     " that they pin", err));
	return most == pins
		       ? 0
		       : without_row(t, (struct frag_explain_edit){ .row = most },
				     most->allocated_bytes, "freeing the blocks of ", " live", err);
}

static int smaller_batch(const struct trial *t, struct frag_err *err)
{
	const struct frag_history *h = &t->x->in.history;
	double low = SMALLEST_BATCH, high = 1, less; /* low serves, high does not */
	struct change c = { .edit.smaller = low };
	enum outcome out;

	if (h->from == FRAG_STEPS_NONE || h->from == FRAG_STEPS_WINDOWS ||
	    t->x->m.event > SHRINK_EVENTS / SHRINK_ROUNDS)
		return 0;
	FRAG_TRY(try_change(t, &c, err));
	out = c.out;
	for (unsigned i = 0; out == SERVED && i < SHRINK_ROUNDS; i++) {
		c.edit.smaller = (low + high) / 2;
		FRAG_TRY(try_change(t, &c, err));
		*(c.out == SERVED ? &low : &high) = c.edit.smaller;
	}
	less = ceil(100 * (1 - low)) / 100; /* whole percent: that much is enough */
	add(t, out,
	    out ? "a batch smaller by %.0f %% in this step"
		: "a smaller batch: %.0f %% less is not enough",
	    100 * less)
		->ratio = less;
	return 0;
}

/* The smallest card that leaves a process more than this. */
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
	const struct frag_case *in = &t->x->in;
	const struct frag_gpu *gpu;
	uint64_t least =
		in->limit_bytes == UINT64_MAX ? t->x->refused.reserved_bytes : in->limit_bytes;
	struct change c = { 0 };

	for (unsigned tried = 0; !c.out && tried < CARDS_TRIED && (gpu = next_larger(least));
	     tried++) {
		struct frag_sim_config card = in->target.card;

		card.total_bytes = gpu->total_bytes;
		card.context_bytes = gpu->context_bytes;
		c.card = &card;
		FRAG_TRY(try_change(t, &c, err));
		least = gpu->total_bytes - gpu->context_bytes;
	}
	if (c.out)
		add(t, c.out, "a larger card: %s or more, with all of its memory", gpu->label)
			->steps_count = steps_of(t, c.spare);
	else
		add(t, REFUSED, "a larger card: no known card serves it");
	return 0;
}

/* ---- all of them ------------------------------------------------------------------------ */

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
		.fragmentation = frag_oom_is_fragmentation(x->refusal),
	};
	o->verdict = frag_finding_text(o->fragmentation ? FRAG_FOUND_OOM_FRAGMENTATION
							: FRAG_FOUND_OOM_NEEDED);
	m->oom = o;
}

/* A leak is the reason, unless free bytes would have held the request. */
static int find_leak(struct trial *t, struct frag_err *err)
{
	struct frag_refused_request *o = &t->x->refused;
	FRAG_AUTO(frag_findings_release) struct frag_findings found = { .texts = t->x->texts };
	FRAG_AUTO_FREE struct frag_checkup *c = NULL;

	FRAG_TRY_CALLOC(c, 1, "diagnosis", err);
	c->in = t->x->in;
	c->about = "";
	FRAG_TRY(frag_find_leak(c, &found, err));
	if (!found.count)
		FRAG_TRY(frag_find_growth(c, &found, err));
	if (!found.count ||
	    !frag_growth_is_held(c, &found.list[0], t->request->event, o->live_bytes))
		return 0;
	if (found.list[0].kind == FRAG_FOUND_GROWTH) {
		if (!frag_oom_is_in_holes(t->x->refusal))
			o->growth = frag_answer_take(t->x->texts, &found.list[0].words);
		return 0;
	}
	t->leak = frag_finding_value(&found.list[0], "bytes_per_step");
	o->leak_bytes_per_step = (uint64_t)(t->leak + 0.5);
	o->leak_line = found.list[0].line;
	o->fragmentation &= frag_oom_is_in_holes(t->x->refusal);
	if (!o->fragmentation)
		o->verdict = frag_finding_text(FRAG_FOUND_LEAK);
	return 0;
}

int frag_explain_oom(struct frag_explained *x, struct frag_err *err)
{
	/* what can be done at once comes first */
	static int (*const remedies[])(const struct trial *t, struct frag_err *err) = {
		setting,     smaller_batch, checkpointing, raise_limit,
		empty_cache, top_holders,   next_card,
	};
	struct trial t = { .x = x,
			   .request = &x->refusal->r,
			   .limits = { x->in.limit_bytes },
			   .limits_count = 1 };

	t.own = frag_own_allocators(x->in.events.trace->format, &t.own_count);

	if (x->in.limit_high_bytes > FRAG_PAGE) {
		t.limits[t.limits_count++] = x->in.limit_low_bytes;
		t.limits[t.limits_count++] = x->in.limit_high_bytes - FRAG_PAGE;
	}
	fill(x);
	FRAG_TRY(find_leak(&t, err));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(remedies); i++)
		FRAG_TRY(remedies[i](&t, err));
	return 0;
}
