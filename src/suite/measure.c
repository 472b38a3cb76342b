/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the simulated division; see suite.h. Runs in a process of its own. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include <frag/plan.h>
#include <frag/replay.h>

#include "plan/probe.h"

#define CHECKED_EVENTS 4000u /* at the beginning, with the adaptor below around the policy */
#define RUNS 3u		     /* in one process: 1, 10 and 100 */
#define CHECK "check:every=64/"

const unsigned frag_suite_percents[FRAG_SUITE_CAPACITIES] = { 100, 102, 105, 110, 125, 150 };

FRAG_ROW_SHAPE(, frag_suite_row_shape, frag_suite_row, "suite_row", FRAG_SUITE_ROW,
	       "one policy on one workload");

/* ---- rows as data ------------------------------------------------------------------------ */

struct frag_suite_row frag_suite_row_empty(const struct frag_suite_workload *w,
					   const struct frag_suite_trace *t, const char *policy)
{
	struct frag_suite_row row = {
		.workload = w->name, .class = w->class, .policy = policy, .state = "failed"
	};

	for (const struct frag_field *f = frag_suite_row_shape.fields; !frag_field_ends(f); f++)
		if (f->type != FRAG_FIELD_TEXT && f->type != FRAG_FIELD_BOOL)
			*(uint64_t *)((char *)&row + f->offset) = UINT64_MAX;
	if (t) {
		row.events_count = t->dev->events_count;
		row.requests_count = t->requests;
		row.live_peak_bytes = t->live_peak_bytes;
	}
	return row;
}

void frag_suite_row_fail(struct frag_suite_row *row, int rc, const struct frag_err *err)
{
	static char why[sizeof(err->msg)]; /* a process has one such row at a time */

	row->state = rc == FRAG_ECHECK || rc == FRAG_EPOLICY ? "broken"
		     : rc == FRAG_ENOTSUP		     ? "unsupported"
							     : "failed";
	snprintf(why, sizeof(why), "%s", err->msg);
	row->why = why;
}

bool frag_suite_row_read(struct frag_suite_row *row, json_t *from)
{
	*row = (struct frag_suite_row){ 0 };
	for (const struct frag_field *f = frag_suite_row_shape.fields; !frag_field_ends(f); f++) {
		json_t *v = json_object_get(from, f->name);
		char *to = (char *)row + f->offset;

		if (f->type == FRAG_FIELD_TEXT && (json_is_string(v) || json_is_null(v)))
			*(const char **)to = json_string_value(v);
		else if (f->type == FRAG_FIELD_BOOL && json_is_boolean(v))
			*(bool *)to = json_is_true(v);
		else if (f->type != FRAG_FIELD_TEXT && f->type != FRAG_FIELD_BOOL &&
			 (json_is_null(v) || (json_is_integer(v) && json_integer_value(v) >= 0)))
			*(uint64_t *)to =
				v == json_null() ? UINT64_MAX : (uint64_t)json_integer_value(v);
		else
			return false;
	}
	return row->workload && row->class && row->policy && row->state;
}

/* ---- what is measured ---------------------------------------------------------------------- */

int frag_suite_target(struct frag_target *t, struct frag_err *err)
{
	const struct frag_gpu *gpu;

	FRAG_TRY(frag_gpu_named("h200", &gpu, err));
	t->card = (struct frag_sim_config){ .name = gpu->name,
					    .cost = frag_cost_of(gpu->profile),
					    .total_bytes = gpu->total_bytes,
					    .context_bytes = gpu->context_bytes };
	return 0;
}

static int add_new(struct frag_policy_texts *to, const char *text, struct frag_err *err)
{
	for (size_t i = 0; i < to->count; i++)
		if (!strcmp(to->text[i], text))
			return 0;
	return frag_policy_texts_add(to, text, err);
}

int frag_suite_policies(struct frag_policy_texts *p, struct frag_err *err)
{
	struct frag_policy_texts all = { 0 };
	bool usual = !p->count;
	int rc = frag_policy_texts_add(&all, FRAG_SUITE_BASELINE, err);

	if (!rc && usual)
		rc = frag_policy_texts_list(p, "all;pytorch:expandable_segments:True", err);
	for (size_t i = 0; !rc && i < p->count; i++) {
		const struct frag_policy_ops *ops = frag_policy_find(p->text[i]);

		/* a plan has seen the workload in advance */
		if (!usual || !ops || !(ops->flags & FRAG_POLICY_PLANNED))
			rc = add_new(&all, p->text[i], err);
	}
	rc = rc ?: frag_policy_texts_check(&all, NULL, err);
	frag_policy_texts_release(p);
	*p = all;
	return rc;
}

/* ---- measuring ----------------------------------------------------------------------------- */

struct job {
	struct frag_plan_env env;
	const struct frag_suite_trace *trace;
	const struct frag_policy_spec *spec;
	struct frag_suite_row *row;
};

/* Does it keep the promises that every policy makes? */
static int check(const struct job *j, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
	struct frag_trace_dev head = *j->trace->dev;
	struct frag_run_options opt = j->env.run;

	head.events_count = FRAG_MIN(head.events_count, CHECKED_EVENTS);
	frag_text_addf(&text, CHECK "%s", frag_policy_spec_text(j->spec));
	FRAG_TRY(frag_text_check(&text, err));
	FRAG_TRY(frag_policy_spec_parse(text.s, &spec, err));
	return frag_replay_sim(spec, &j->env.card, &head, &opt, &r, err);
}

static int probe(const struct job *j, uint64_t usable, bool skip, struct frag_probe *out,
		 struct frag_err *err)
{
	struct frag_sim_config card = j->env.card;
	struct frag_plan_env env = j->env;

	if (usable)
		card.total_bytes = card.context_bytes + usable;
	env.skip_oom = skip;
	return frag_probe_run(&env, j->spec, &card, j->trace->dev, out, err);
}

/* (1), (2) and (3): reserved, the capacity curve, driver time. */
static int measure_space(const struct job *j, struct frag_err *err)
{
	uint64_t *refused[FRAG_SUITE_CAPACITIES] = {
		&j->row->refused_100_count, &j->row->refused_102_count, &j->row->refused_105_count,
		&j->row->refused_110_count, &j->row->refused_125_count, &j->row->refused_150_count
	};
	struct frag_fit_task fit = { .spec = j->spec, .dev = j->trace->dev };
	struct frag_probe p;

	FRAG_TRY(frag_fit_run(&j->env, NULL, 0, &fit, 1, err));
	if (fit.rc) {
		*err = fit.err;
		return fit.rc;
	}
	FRAG_TRY(probe(j, 0, false, &p, err));
	j->row->state = fit.fit.possible && p.completed ? "done" : "refused";
	if (!fit.fit.possible || !p.completed)
		return 0;
	j->row->capacity_bytes = fit.fit.min_capacity_bytes - j->env.card.context_bytes;
	j->row->reserved_bytes = p.peak_reserved_bytes;
	j->row->driver_ns = p.driver_ns * 1000 / j->trace->requests;
	for (unsigned i = 0; i < FRAG_SUITE_CAPACITIES; i++) {
		uint64_t usable = j->trace->live_peak_bytes * frag_suite_percents[i] / 100;

		FRAG_TRY(probe(j, frag_round_up(FRAG_MAX(usable, 1u), FRAG_PAGE), true, &p, err));
		*refused[i] = p.refused;
	}
	return 0;
}

/* ---- creep ------------------------------------------------------------------------------- */

/* The events of a run, then frees of the blocks that it leaves: room for slots_count more. last[]:
 * zeroed; the latest event of each slot, plus 1. */
static size_t close_run(const struct frag_trace_dev *dev, struct frag_event *to, size_t *last)
{
	size_t n = dev->events_count;

	memcpy(to, dev->events, n * sizeof(*to));
	for (size_t i = 0; i < n; i++) {
		struct frag_event *e = &to[i];

		e->flags &= (uint8_t)~FRAG_EVF_INITIAL;
		if (e->kind > FRAG_EV_FREE_COMPLETED)
			continue;
		/* a block from before the recording may complete without a request */
		if (e->kind == FRAG_EV_FREE_COMPLETED && last[e->slot] &&
		    to[last[e->slot] - 1].kind == FRAG_EV_ALLOC) {
			e->kind = FRAG_EV_FREE;
			e->flags = 0;
		}
		last[e->slot] = i + 1;
	}
	for (uint32_t i = 0; i < dev->slots_count; i++) {
		struct frag_event e = to[last[i] ? last[i] - 1 : 0];

		if (!last[i] || (e.kind != FRAG_EV_ALLOC && e.kind != FRAG_EV_FREE_REQUESTED))
			continue;
		e.kind = e.kind == FRAG_EV_ALLOC ? FRAG_EV_FREE : FRAG_EV_FREE_COMPLETED;
		e.flags = 0;
		e.time_us = to[dev->events_count - 1].time_us;
		to[n++] = e;
	}
	return n;
}

/* What is reserved after 1, 10 and 100 runs. */
static int measure_creep(const struct job *j, struct frag_err *err)
{
	const struct frag_trace_dev *dev = j->trace->dev;
	FRAG_AUTO_FREE struct frag_event *events = NULL;
	FRAG_AUTO_FREE size_t *last = NULL;
	uint64_t *after[RUNS] = { &j->row->after_1_bytes, &j->row->after_10_bytes,
				  &j->row->after_100_bytes };
	FRAG_AUTO(frag_dev_close_at) struct frag_device *sim = NULL;
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	struct frag_run_options opt = j->env.run;
	uint64_t runs = 0, count, span;

	FRAG_TRY_CALLOC(events, dev->events_count + dev->slots_count, "runs in a row", err);
	FRAG_TRY_CALLOC(last, dev->slots_count + 1, "runs in a row", err);
	count = close_run(dev, events, last);
	span = events[count - 1].time_us + 1;
	opt.only_peaks = true;
	FRAG_TRY(frag_sim_open(&j->env.card, &sim, err));
	FRAG_TRY(frag_run_create(j->spec, sim, dev, &opt, &run, err));
	for (uint64_t k = 0, until = 1; k < RUNS; k++, until *= 10) {
		if (until * count > FRAG_SUITE_CREEP_EVENTS || until * span >= 1ull << 40)
			break;
		for (; runs < until; runs++) {
			FRAG_TRY(frag_run_feed(run, events, count, err));
			for (size_t i = 0; i < count; i++)
				events[i].time_us += span;
		}
		if (frag_run_stopped(run))
			return 0;
		*after[k] = sim->reserved_bytes;
	}
	return frag_run_finish(run, &r, err);
}

static int measure(struct job *j, const char *policy, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	FRAG_TRY(frag_policy_spec_parse(policy, &spec, err));
	j->spec = spec;
	FRAG_TRY(check(j, err));
	FRAG_TRY(measure_space(j, err));
	return strcmp(j->row->state, "done") ? 0 : measure_creep(j, err);
}

void frag_suite_measure(const struct frag_suite *s, const struct frag_suite_trace *t,
			const char *policy, struct frag_suite_row *row)
{
	struct job j = { .trace = t, .row = row };
	struct frag_err err = { 0 };
	int rc;

	frag_plan_env_init(&j.env, &s->target, 1);
	rc = measure(&j, policy, &err);
	if (rc)
		frag_suite_row_fail(row, rc, &err);
}
