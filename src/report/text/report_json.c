/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON of replay and compare (schema 2), key order fixed. What is not
 * available is null. Times of the driver are "modelled_ns" (measured where
 * device.modelled is false); host times are in "host" only.
 *
 * jansson tolerates NULL values by failing the call that takes them, so a
 * missing piece is found at the end: put() remembers it.
 */
#include "report/report.h"
#include "report/spread.h"
#include "refusals.h"
#include "answer/json.h"
#include "settled_json.h"

#include <math.h>
#include <stdlib.h>

struct maker {
	bool failed;
};

static json_t *note(struct maker *mk, json_t *v)
{
	if (!v)
		mk->failed = true;
	return v;
}

static void put(struct maker *mk, json_t *obj, const char *key, json_t *value)
{
	if (json_object_set_new(obj, key, note(mk, value)))
		mk->failed = true;
}

static void append(struct maker *mk, json_t *array, json_t *value)
{
	if (json_array_append_new(array, note(mk, value)))
		mk->failed = true;
}

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

/* Text from files may be anything; JSON takes UTF-8 only. */
static json_t *string(const char *s)
{
	json_t *v = s ? json_string(s) : json_null();
	char *copy;

	if (v)
		return v;
	copy = frag_host_strdup(s);
	if (!copy)
		return NULL;
	for (char *p = copy; *p; p++) {
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	}
	v = json_string(copy);
	frag_host_free(copy);
	return v;
}

static json_t *latency_of(struct maker *mk, const struct frag_hist *h)
{
	static const struct {
		const char *name;
		double q;
	} quantiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p99.9", 0.999 } };
	json_t *o;

	if (!h->count)
		return json_null();
	o = note(mk, json_object());
	put(mk, o, "count", frag_json_number(h->count));
	put(mk, o, "min", frag_json_number(h->min));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(quantiles); i++)
		put(mk, o, quantiles[i].name,
		    frag_json_number(frag_hist_quantile(h, quantiles[i].q)));
	put(mk, o, "max", frag_json_number(h->max));
	put(mk, o, "total", frag_json_number(h->sum));
	return o;
}

/* {alloc_ns: {all, hit, split, …}, free_ns} into obj. */
static void put_latencies(struct maker *mk, json_t *obj, const struct frag_hist *alloc,
			  const struct frag_hist *release)
{
	struct frag_hist *all = frag_host_calloc(1, sizeof(*all));
	json_t *by_class = note(mk, json_object());

	if (!all) {
		mk->failed = true;
		json_decref(by_class);
		return;
	}
	for (int c = 0; c < FRAG_CLASS_COUNT; c++)
		frag_hist_merge(all, &alloc[c]);
	put(mk, by_class, "all", latency_of(mk, all));
	for (int c = 0; c < FRAG_CLASS_COUNT; c++)
		put(mk, by_class, frag_class_name((enum frag_class)c), latency_of(mk, &alloc[c]));
	put(mk, obj, "alloc_ns", by_class);
	put(mk, obj, "free_ns", latency_of(mk, release));
	frag_host_free(all);
}

static void put_metrics(struct maker *mk, json_t *obj, const struct frag_metrics *m, bool host)
{
	size_t count;
	const struct frag_metric_info *list = frag_metric_list(&count);

	for (size_t i = 0; i < count; i++) {
		const char *at = (const char *)m + list[i].offset;

		if (frag_report_is_host(&list[i]) != host)
			continue;
		put(mk, obj, list[i].name,
		    list[i].type == FRAG_METRIC_T_U64 ? frag_json_number(*(const uint64_t *)at)
						      : real(*(const double *)at));
	}
}

static json_t *loss_of(struct maker *mk, const struct frag_loss *l)
{
	json_t *o = note(mk, json_object());

	put(mk, o, "event", frag_json_number(l->event));
	put(mk, o, "time_us", frag_json_number(l->time_us));
	put(mk, o, "reserved_bytes", frag_json_number(l->reserved_bytes));
	put(mk, o, "requested_bytes", frag_json_number(l->requested_bytes));
	put(mk, o, "rounding_bytes", frag_json_number(l->rounding_bytes));
	put(mk, o, "waiting_bytes", frag_json_number(l->waiting_bytes));
	put(mk, o, "non_releasable_bytes", frag_json_number(l->non_releasable_bytes));
	put(mk, o, "releasable_bytes", frag_json_number(l->releasable_bytes));
	put(mk, o, "other_bytes", frag_json_number(l->other_bytes));
	put(mk, o, "largest_free_bytes", frag_json_number(l->largest_free_bytes));
	return o;
}

static json_t *oom_of(struct maker *mk, const struct frag_oom *oom)
{
	json_t *o;

	if (!oom->happened)
		return json_null();
	o = note(mk, json_object());
	put(mk, o, "event", frag_json_number(oom->event));
	put(mk, o, "time_us", frag_json_number(oom->time_us));
	put(mk, o, "bytes", frag_json_number(oom->bytes));
	put(mk, o, "step", frag_json_number(oom->step));
	put(mk, o, "memory", loss_of(mk, &oom->at));
	return o;
}

static json_t *calls_of(struct maker *mk, const struct frag_result *res)
{
	json_t *o = note(mk, json_object());

	for (int c = 0; c < FRAG_CALL_COUNT; c++) {
		const struct frag_call_stat *st = &res->calls[c];
		json_t *call;

		if (!st->count && !st->failed)
			continue;
		call = note(mk, json_object());
		put(mk, call, "count", frag_json_number(st->count));
		put(mk, call, "failed", frag_json_number(st->failed));
		put(mk, call, "bytes", frag_json_number(st->bytes));
		put(mk, call, "ns", frag_json_number(st->ns));
		put(mk, o, frag_call_name((enum frag_call)c), call);
	}
	return o;
}

static json_t *counters_of(struct maker *mk, const struct frag_result *res)
{
	json_t *o = note(mk, json_object());

	for (const struct frag_counter *c = res->counters; c && c->name; c++)
		put(mk, o, c->name, json_integer(c->value));
	return o;
}

static json_t *result_of(struct maker *mk, const struct frag_section *s,
			 const struct frag_result *res, bool omit_host)
{
	json_t *o = note(mk, json_object()), *host;

	put(mk, o, "policy", string(res->policy));
	put(mk, o, "params", string(res->params ? res->params : ""));
	if (res->plan)
		put(mk, o, "plan", string(res->plan));
	put(mk, o, "trace", string(s->trace));
	put(mk, o, "device_ordinal", frag_json_number(s->ordinal));
	put(mk, o, "is_recorded",
	    json_boolean(s->baseline_recorded && res == &s->results[s->baseline]));
	put(mk, o, "completed", json_boolean(res->completed));
	put(mk, o, "first_oom", res->oom.happened ? frag_json_number(res->oom.event) : json_null());
	put_metrics(mk, o, &res->m, false);
	put(mk, o, "oom", oom_of(mk, &res->oom));
	put_latencies(mk, o, res->alloc_modelled_ns, &res->free_modelled_ns);
	put(mk, o, "calls", calls_of(mk, res));
	put(mk, o, "counters", counters_of(mk, res));
	if (omit_host)
		return o;
	host = note(mk, json_object());
	put_metrics(mk, host, &res->m, true);
	put_latencies(mk, host, res->alloc_host_ns, &res->free_host_ns);
	put(mk, o, "host", host);
	return o;
}

static json_t *optimum_of(struct maker *mk, const struct frag_section *s)
{
	const struct frag_optimum *opt = &s->optimum;
	json_t *o = note(mk, json_object());

	put(mk, o, "lower_bound_bytes", frag_json_number(frag_section_bound(s)));
	put(mk, o, "placement_bytes",
	    opt->placed ? frag_json_number(opt->place_bytes) : json_null());
	put(mk, o, "placement_rule", opt->placed ? string(opt->rule) : json_null());
	return o;
}

/* What to take, and the setting that does it. */
static json_t *advice_of(struct maker *mk, const struct frag_section *s)
{
	struct frag_advice a;
	json_t *o;

	frag_section_advice(s, &a);
	if (a.pick == SIZE_MAX)
		return json_null();
	o = note(mk, json_object());
	put(mk, o, "take", string(s->results[a.pick].policy));
	put(mk, o, "conf", string(a.conf));
	put(mk, o, "run", string(a.live == SIZE_MAX ? NULL : s->results[a.live].policy));
	put(mk, o, "reserved_bytes", frag_json_number(s->results[a.pick].m.peak_reserved_bytes));
	put(mk, o, "smallest_card", string(a.card ? a.card->name : NULL));
	put(mk, o, "spare_bytes", a.card ? frag_json_number(a.spare_bytes) : json_null());
	put(mk, o, "tight_card", string(a.tight ? a.tight->name : NULL));
	put(mk, o, "margin_ratio", json_real(s->headroom.ratio));
	put(mk, o, "margin_bytes", frag_json_number(s->headroom.bytes));
	put(mk, o, "outside_bytes", frag_json_number(s->headroom.outside_bytes));
	put(mk, o, "job_price",
	    frag_section_job_price(s, a.card) > 0 ? json_real(frag_section_job_price(s, a.card))
						  : json_null());
	return o;
}

/* Requests refused when recorded: the moment, and what every policy did with each. */
static json_t *refusal_of(struct maker *mk, const struct frag_section *s, size_t i)
{
	const struct frag_result *base = &s->results[s->baseline];
	const struct frag_refused *f = &base->refused[i];
	json_t *o = note(mk, json_object()), *outcomes = note(mk, json_array());

	put(mk, o, "event", frag_json_number(f->event));
	put(mk, o, "time_us", frag_json_number(f->time_us));
	put(mk, o, "step", frag_json_number(f->step));
	put(mk, o, "bytes", frag_json_number(f->bytes));
	put(mk, o, "as_recorded", json_boolean(s->baseline_recorded));
	put(mk, o, "memory", f->served ? json_null() : loss_of(mk, &f->at));
	for (size_t k = 0; k < s->count; k++) {
		const struct frag_result *r = &s->results[k];
		json_t *x = note(mk, json_object());

		put(mk, x, "policy", string(r->policy));
		put(mk, x, "outcome",
		    string(i >= r->refused_count  ? "not reached"
			   : r->refused[i].served ? "served"
						  : "refused"));
		append(mk, outcomes, x);
	}
	put(mk, o, "outcomes", outcomes);
	return o;
}

static json_t *refusals_of(struct maker *mk, const struct frag_section *s)
{
	json_t *list = note(mk, json_array());

	for (size_t i = 0; s->count && i < s->results[s->baseline].refused_count; i++)
		append(mk, list, refusal_of(mk, s, i));
	return list;
}

static json_t *trace_of(struct maker *mk, const struct frag_section *s)
{
	json_t *o = note(mk, json_object());

	put(mk, o, "name", string(s->trace));
	put(mk, o, "format", string(s->format));
	put(mk, o, "conf", string(s->conf));
	put(mk, o, "device_ordinal", frag_json_number(s->ordinal));
	put(mk, o, "events_count", frag_json_number(s->events_count));
	put(mk, o, "streams_count", frag_json_number(s->streams_count));
	put(mk, o, "pools_count", frag_json_number(s->pools_count));
	put(mk, o, "duration_us", s->duration_us ? frag_json_number(s->duration_us) : json_null());
	put(mk, o, "truncated", json_boolean(s->truncated));
	if (s->estimated)
		put(mk, o, "estimated", json_true());
	put(mk, o, "initial_blocks_count", frag_json_number(s->initial_blocks));
	put(mk, o, "optimum", s->optimum.hidden ? json_null() : optimum_of(mk, s));
	put(mk, o, "advice", advice_of(mk, s));
	put(mk, o, "recording", frag_settled_json(&s->settled));
	put(mk, o, "limit_bytes", frag_json_number(s->limit_bytes));
	put(mk, o, "refused_when_recorded_count", frag_json_number(frag_refusals_count(s)));
	put(mk, o, "refusals", refusals_of(mk, s));
	put(mk, o, "missing", string(s->missing));
	return o;
}

static json_t *spread_of(struct maker *mk, const struct frag_report *r)
{
	struct frag_spreads s;
	json_t *list;

	if (frag_spreads_init(&s, r, NULL)) {
		mk->failed = true;
		return NULL;
	}
	list = note(mk, frag_spreads_json(&s, r));
	frag_spreads_release(&s);
	return list;
}

static json_t *device_of(struct maker *mk, const struct frag_report *r)
{
	json_t *o = note(mk, json_object());

	put(mk, o, "kind", string(r->device));
	put(mk, o, "name", string(r->card.name));
	put(mk, o, "total_bytes", frag_json_number(r->card.total_bytes));
	put(mk, o, "context_bytes", frag_json_number(r->card.context_bytes));
	put(mk, o, "granule_bytes", frag_json_number(r->card.granule_bytes));
	put(mk, o, "modelled", json_boolean(r->card.modelled));
	if (*r->cost_profile) {
		put(mk, o, "cost_profile", string(r->cost_profile));
		put(mk, o, "cost_borrowed", json_boolean(r->cost_borrowed));
	}
	return o;
}

/* That held for all of them; each has its own, too. */
static uint64_t common_limit(const struct frag_report *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->sections[i].limit_bytes != r->sections[0].limit_bytes)
			return UINT64_MAX;
	return r->count ? r->sections[0].limit_bytes : r->limit_bytes;
}

static json_t *settings_of(struct maker *mk, const struct frag_report *r)
{
	json_t *o = note(mk, json_object());

	put(mk, o, "limit_bytes", frag_json_number(common_limit(r)));
	put(mk, o, "seed", frag_json_number(r->seed));
	put(mk, o, "sync_every", frag_json_number(r->sync_every));
	put(mk, o, "on_oom", string(r->skip_oom ? "skip" : "stop"));
	put(mk, o, "free_at_request", json_boolean(r->free_at_request));
	return o;
}

json_t *frag_report_json(const struct frag_report *r)
{
	struct maker mk = { false };
	json_t *top = note(&mk, json_object()), *traces = note(&mk, json_array());
	json_t *results = note(&mk, json_array());

	put(&mk, top, "schema", frag_json_number(FRAG_REPORT_SCHEMA));
	put(&mk, top, "version", string(FRAG_VERSION));
	put(&mk, top, "command", string(r->command));
	put(&mk, top, "trace", r->count ? string(r->sections[0].trace) : json_null());
	put(&mk, top, "device", device_of(&mk, r));
	put(&mk, top, "settings", settings_of(&mk, r));
	for (size_t i = 0; i < r->count; i++) {
		const struct frag_section *s = &r->sections[i];

		append(&mk, traces, trace_of(&mk, s));
		for (size_t k = 0; k < s->count; k++)
			append(&mk, results, result_of(&mk, s, &s->results[k], r->omit_host));
	}
	put(&mk, top, "traces", traces);
	put(&mk, top, "results", results);
	if (r->count > 1)
		put(&mk, top, "spread", spread_of(&mk, r));
	if (r->missing)
		put(&mk, top, "missing", string(r->missing));
	if (mk.failed) {
		json_decref(top);
		return NULL;
	}
	return top;
}

int frag_report_json_text(const struct frag_report *r, struct frag_text *out, struct frag_err *err)
{
	json_t *json = frag_report_json(r);
	char *text;

	FRAG_CHECK_ALLOC(json, "JSON of the results", err);
	/* 15 digits: what a double holds for certain, and 0.1 stays 0.1. */
	text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	json_decref(json);
	FRAG_CHECK_ALLOC(text, "JSON of the results", err);
	frag_text_add(out, text);
	frag_text_add(out, "\n");
	free(text); /* jansson's own malloc */
	return frag_text_check(out, err);
}
