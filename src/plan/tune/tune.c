/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune: tries settings and ranks them.
 *
 * Tries settings in batches: chooses a batch from the results so far, replays it over threads, and
 * only then evaluates it. So the choice, and the answer, do not depend on which thread is faster.
 * Codes with the same echo (for example a value equal to the default) are one try.
 */
#include <frag/plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "lib/grow.h"
#include "lib/random.h"
#include "plan/probe.h"
#include "tune_space.h"

#define NONE SIZE_MAX
#define IDLE_STARTS_MAX \
	64u /* random starts without a new setting, after which the space counts as
			     * exhausted */
#define BUDGET_MIN 16ull
#define CARD_PROBES 14u /* probes of one bisection, for progress */

struct entry {
	struct frag_tune_try t;
	struct frag_policy_spec *spec;
	uint64_t calls; /* driver time, over all units */
	bool done;
};

struct tune {
	const struct frag_plan_env *env;
	const struct frag_trace_dev *const *units;
	size_t units_count;
	const struct frag_tune_options *opt;
	struct entry *list;
	size_t count, cap, evaluated;
	struct frag_ticks ticks;
	uint64_t budget_left, rng;
	struct frag_err err; /* error of the batch, from the first task that failed */
	_Atomic int rc;
	bool stopped;
};

/* ---- known settings -------------------------------------------------------------- */

static void entry_release(struct entry *e)
{
	FRAG_FREE(e->t.text, e->t.params, e->t.conf);
	frag_policy_spec_destroy(e->spec);
}

/* Takes ownership of the text and inserts it, unless it is known. *at: its index; NONE if the
 * options contradict each other or the budget is used up. */
static int enter(struct tune *t, char *text, unsigned changed, size_t *at, struct frag_err *err)
{
	FRAG_AUTO(entry_release)
	struct entry e = { .t = { .text = text, .changed_count = changed } };
	const char *conf;

	*at = NONE;
	FRAG_CHECK_ALLOC(text, "tune", err);
	FRAG_TRY(FRAG_GROW(t->list, t->count, t->cap, "tune", err));
	if (frag_policy_spec_parse(text, &e.spec, NULL) ||
	    (t->count && !frag_tune_is_known(e.spec, t->opt->release)))
		return 0;
	conf = frag_policy_spec_conf(e.spec);
	e.t.params = frag_host_strdup(frag_policy_spec_echo(e.spec));
	e.t.conf = conf ? frag_host_strdup(conf) : NULL;
	FRAG_CHECK_ALLOC(e.t.params && (e.t.conf || !conf), "tune", err);
	/* one after the other: next to the replay of a setting that is nothing */
	for (size_t i = 0; i < t->count && *at == NONE; i++)
		if (!strcmp(t->list[i].t.params, e.t.params))
			*at = i;
	if (*at == NONE && t->budget_left) {
		t->budget_left--;
		*at = t->count;
		t->list[t->count++] = e;
		memset(&e, 0, sizeof(e)); /* its texts are the list's */
	}
	return 0;
}

static int enter_code(struct tune *t, const struct frag_tune_space *s, uint64_t code, size_t *at,
		      struct frag_err *err)
{
	unsigned changed;
	char *text = frag_tune_text(s, code, &changed);

	return enter(t, text, changed, at, err);
}

/* ---- replays --------------------------------------------------------------------- */

/* The smallest card, by bisection between live and reserved bytes, without gaps as in fit. */
static int bisect_card(struct tune *t, const struct frag_policy_spec *spec, size_t unit,
		       uint64_t peak, uint64_t *capacity, struct frag_err *err)
{
	uint64_t fails = frag_probe_peak_live(t->units[unit], 512) / FRAG_PAGE;
	uint64_t fits = FRAG_MAX((peak + FRAG_PAGE - 1) / FRAG_PAGE, fails + 1);
	struct frag_sim_config card = t->env->card;

	fails -= fails != 0;
	while (fits - fails > 1) {
		uint64_t middle = fails + (fits - fails) / 2;
		struct frag_probe p;

		card.total_bytes = card.context_bytes + middle * FRAG_PAGE;
		FRAG_TRY(frag_probe_run(t->env, spec, &card, t->units[unit], &p, err));
		atomic_fetch_add(&t->ticks.done, 1);
		if (p.completed)
			fits = middle;
		else
			fails = middle;
	}
	*capacity = card.context_bytes + fits * FRAG_PAGE;
	return 0;
}

static int try_unit(struct tune *t, struct entry *e, size_t unit, struct frag_err *err)
{
	bool of_card = t->opt->objective == FRAG_TUNE_CARD;
	struct frag_sim_config card = t->env->card;
	struct frag_plan_env env = *t->env;
	struct frag_probe p;
	uint64_t capacity = 0;

	if (of_card)
		card.total_bytes = card.context_bytes + FRAG_GIB * 1024;
	if (t->opt->limits)
		env.run.limit_bytes = FRAG_MIN(env.run.limit_bytes, t->opt->limits[unit]);
	env.run.restore = e == t->list && t->opt->restores && t->opt->restores[unit];
	FRAG_TRY(frag_probe_run(&env, e->spec, &card, t->units[unit], &p, err));
	atomic_fetch_add(&t->ticks.done, 1);
	if (of_card && p.completed)
		FRAG_TRY(bisect_card(t, e->spec, unit, p.peak_reserved_bytes, &capacity, err));
	e->t.completed &= of_card ? p.completed : p.ended;
	e->t.refused_count += p.refused;
	e->t.peak_reserved_bytes = FRAG_MAX(e->t.peak_reserved_bytes, p.peak_reserved_bytes);
	e->t.capacity_bytes = FRAG_MAX(e->t.capacity_bytes, capacity);
	e->t.driver_ns += p.driver_ns;
	e->calls += p.driver_calls;
	return 0;
}

/* Entry i of the batch. A policy that cannot run on this device is a setting that does not
 * complete. */
static void run_task(void *ctx, size_t i)
{
	struct tune *t = ctx;
	struct entry *e = &t->list[t->evaluated + i];
	struct frag_err err = { 0 };
	int none = 0, rc = 0;

	e->t.completed = true;
	for (size_t u = 0; !rc && u < t->units_count; u++) {
		rc = try_unit(t, e, u, &err);
		if (rc == FRAG_ENOTSUP) {
			e->t.completed = false;
			rc = 0;
		}
	}
	e->done = !rc;
	if (rc && rc != FRAG_EINTR && atomic_compare_exchange_strong(&t->rc, &none, rc))
		t->err = err;
}

/* Replays the settings inserted since the last call. */
static int evaluate(struct tune *t, struct frag_err *err)
{
	if (t->count == t->evaluated || t->stopped)
		return 0;
	FRAG_TRY(frag_parallel(t->count - t->evaluated, t->env->threads, run_task, t,
			       &t->env->watch, &t->ticks, NULL, err));
	t->stopped = frag_watch_stopped(&t->env->watch);
	t->evaluated = t->count;
	if (t->rc)
		*err = t->err;
	return t->rc;
}

/* < 0: a is better. */
static int compare(const struct frag_tune_try *a, const struct frag_tune_try *b,
		   enum frag_tune_objective objective)
{
	int of_card = objective == FRAG_TUNE_CARD, of_time = objective == FRAG_TUNE_TIME;

	return (int)b->completed - (int)a->completed
		       ?: FRAG_ORDER(a->refused_count, b->refused_count)
		       ?: of_card * FRAG_ORDER(a->capacity_bytes, b->capacity_bytes)
		       ?: of_time * FRAG_ORDER(a->driver_ns, b->driver_ns)
		       ?: FRAG_ORDER(a->peak_reserved_bytes, b->peak_reserved_bytes)
		       ?: FRAG_ORDER(a->changed_count, b->changed_count)
		       ?: FRAG_ORDER(a->driver_ns, b->driver_ns)
		       ?: strcmp(a->params, b->params);
}

/* ---- search ---------------------------------------------------------------------- */

/* Moves `code` to its best neighbour, if that is better. */
static int step(struct tune *t, const struct frag_tune_space *s, uint64_t *code, bool *moved,
		struct frag_err *err)
{
	size_t best, at;
	uint64_t from = *code;

	*moved = false;
	FRAG_TRY(enter_code(t, s, from, &best, err));
	/* first all of them are tried, then the best one is looked for */
	for (unsigned look = 0; look < 2 && !t->stopped; look++) {
		for (unsigned d = 0; d < s->dims_count; d++)
			for (unsigned v = 0; v <= s->dims[d].count; v++) {
				uint64_t other = frag_tune_with(s, from, d, v);

				FRAG_TRY(enter_code(t, s, other, &at, err));
				if (!look || at == NONE || !t->list[at].done || at == best ||
				    (best != NONE && compare(&t->list[at].t, &t->list[best].t,
							     t->opt->objective) > 0))
					continue;
				best = at;
				*code = other;
				*moved = true;
			}
		FRAG_TRY(evaluate(t, err));
	}
	return 0;
}

static int climb(struct tune *t, const struct frag_tune_space *s, struct frag_err *err)
{
	unsigned idle = 0;
	uint64_t code = 0;

	while (t->budget_left && idle < IDLE_STARTS_MAX && !t->stopped) {
		size_t before = t->count;
		bool moved = true;

		while (moved && t->budget_left && !t->stopped)
			FRAG_TRY(step(t, s, &code, &moved, err));
		idle = t->count == before ? idle + 1 : 0;
		code = frag_random(&t->rng) % s->size;
	}
	return 0;
}

static int search(struct tune *t, struct frag_tune *out, struct frag_err *err)
{
	/* a limit among the settings is kept */
	const char *own = strstr(t->opt->baseline, "per_process_memory_fraction:");
	bool limited = t->env->run.limit_bytes != UINT64_MAX || t->env->limit_fraction > 0 || own;
	char text[1024];

	for (size_t u = 0; t->opt->limits && u < t->units_count; u++)
		limited |= t->opt->limits[u] != UINT64_MAX;
	size_t at;
	int rc = 0;

	out->exhaustive = true;
	t->budget_left = 1;
	FRAG_TRY(enter(t, frag_host_strdup(t->opt->baseline), 0, &at, err));
	if (at == NONE)
		return FRAG_USAGE(err, "baseline '%.100s' is not a policy", t->opt->baseline);
	FRAG_TRY(evaluate(t, err));
	out->budget = t->opt->budget;
	if (t->opt->calls_max && t->list[0].calls)
		out->budget = FRAG_MIN(out->budget,
				       FRAG_MAX(t->opt->calls_max / t->list[0].calls, BUDGET_MIN));
	for (size_t i = 0; !rc && i < t->opt->spaces_count && !t->stopped; i++) {
		struct frag_tune_space s;

		snprintf(text, sizeof(text), "%s%s%.*s", t->opt->spaces[i], own ? ":" : "",
			 own ? (int)strcspn(own, ",") : 0, own ? own : "");
		rc = frag_tune_space_init(
			&s, strcmp(t->opt->spaces[i], "pytorch") ? t->opt->spaces[i] : text,
			limited, t->opt->release, err);
		out->space_count += s.size;
		out->exhaustive &= s.size <= out->budget;
		t->budget_left = out->budget;
		for (uint64_t code = 0; !rc && s.size <= out->budget && code < s.size; code++)
			rc = enter_code(t, &s, code, &at, err);
		if (!rc)
			rc = s.size <= out->budget ? evaluate(t, err) : climb(t, &s, err);
		frag_tune_space_release(&s);
	}
	return rc;
}

/* ---- the result ------------------------------------------------------------------ */

static int compare_entries(const void *a, const void *b, void *objective)
{
	return compare(a, b, *(const enum frag_tune_objective *)objective);
}

FRAG_COMPARE(by_bytes_and_time, struct frag_tune_try *,
	     FRAG_ORDER((*x)->peak_reserved_bytes, (*y)->peak_reserved_bytes),
	     FRAG_ORDER((*x)->driver_ns, (*y)->driver_ns), FRAG_ORDER(*x, *y))

/* Ascending by reserved bytes, each with less driver time than all before it. */
static int find_front(struct frag_tune *out, struct frag_err *err)
{
	FRAG_AUTO_FREE const struct frag_tune_try **list = NULL;
	uint64_t least = UINT64_MAX;

	FRAG_TRY_CALLOC(out->front, out->tries_count, "tune", err);
	FRAG_TRY_CALLOC(list, out->tries_count, "tune", err);
	for (size_t i = 0; i < out->tries_count; i++)
		list[i] = &out->tries[i];
	qsort(list, out->tries_count, sizeof(*list), by_bytes_and_time);
	for (size_t i = 0; i < out->tries_count; i++) {
		if (!list[i]->completed || list[i]->refused_count > out->tries[0].refused_count ||
		    list[i]->driver_ns >= least)
			continue;
		least = list[i]->driver_ns;
		out->front[out->front_count++] = (size_t)(list[i] - out->tries);
	}
	return 0;
}

static int take_results(struct tune *t, struct frag_tune *out, struct frag_err *err)
{
	enum frag_tune_objective objective = t->opt->objective;
	char *baseline = NULL;

	out->complete = !t->stopped;
	FRAG_TRY_CALLOC(out->tries, FRAG_MAX(t->evaluated, (size_t)1), "tune", err);
	/* nothing to compare with without the baseline */
	for (size_t i = 0; i < t->evaluated && t->list[0].done; i++) {
		if (!t->list[i].done)
			continue;
		out->tries[out->tries_count++] = t->list[i].t;
		t->list[i].t = (struct frag_tune_try){ 0 };
	}
	if (!out->tries_count)
		return 0;
	baseline = out->tries[0].params;
	qsort_r(out->tries, out->tries_count, sizeof(*out->tries), compare_entries, &objective);
	while (out->tries[out->baseline].params != baseline)
		out->baseline++;
	return find_front(out, err);
}

static void tune_close(struct tune *t)
{
	for (size_t i = 0; i < t->count; i++)
		entry_release(&t->list[i]);
	frag_host_free(t->list);
}

int frag_tune_run(const struct frag_plan_env *env, const struct frag_trace_dev *const *units,
		  size_t units_count, const struct frag_tune_options *opt, struct frag_tune *out,
		  struct frag_err *err)
{
	FRAG_AUTO(tune_close)
	struct tune t = {
		.env = env, .units = units, .units_count = units_count, .opt = opt, .rng = opt->seed
	};

	*out = (struct frag_tune){ 0 };
	t.ticks.total = opt->budget * opt->spaces_count * units_count *
			(opt->objective == FRAG_TUNE_CARD ? CARD_PROBES : 1);
	return search(&t, out, err) ?: take_results(&t, out, err);
}

void frag_tune_release(struct frag_tune *t)
{
	for (size_t i = 0; i < t->tries_count; i++) {
		FRAG_FREE(t->tries[i].text, t->tries[i].params, t->tries[i].conf);
	}
	FRAG_FREE(t->tries, t->front);
	*t = (struct frag_tune){ 0 };
}
