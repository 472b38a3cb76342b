/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trace of a sweep: read, settled, replayed under everything asked for. The answer is JSON and
 * holds nothing that differs from machine to machine: no host times, no dates.
 */
#include "sweep.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <frag/plan.h>
#include <frag/replay.h>

#include "recording/recording.h"
#include "report/report.h"

#define CURVE_POINTS 64u /* of reserved over time, kept for packing */

static void free_state(XXH3_state_t **at)
{
	XXH3_freeState(*at);
}

int frag_sweep_hash(const char *path, char *text, struct frag_err *err)
{
	static const size_t chunk = 1 << 18;
	FRAG_AUTO(free_state) XXH3_state_t *state = XXH3_createState();
	FRAG_AUTO_FREE char *buf = frag_host_alloc(chunk);
	FRAG_AUTO_FILE FILE *in = fopen(path, "rb");
	XXH128_hash_t h;
	size_t n;
	int rc;

	if (!in)
		return FRAG_INPUT(err, "cannot open it: %m");
	FRAG_CHECK_ALLOC(state && buf, "hash of a trace", err);
	XXH3_128bits_reset(state);
	while ((n = fread(buf, 1, chunk, in)) > 0)
		XXH3_128bits_update(state, buf, n);
	rc = ferror(in) ? FRAG_INPUT(err, "cannot read it: %m") : 0;
	h = XXH3_128bits_digest(state);
	snprintf(text, 33, "%016llx%016llx", (unsigned long long)h.high64,
		 (unsigned long long)h.low64);
	return rc;
}

/* ---- JSON that is built without a look at every step: a failure is seen at the end ---- */

struct answer {
	const struct frag_sweep *s;
	json_t *root;
	const char *hash;
	bool failed; /* memory was short */
};

static void set(struct answer *a, json_t *o, const char *key, json_t *value)
{
	a->failed |= json_object_set_new(o, key, value) != 0;
}

static void set_metrics(struct answer *a, json_t *o, const struct frag_metrics *m)
{
	size_t count;
	const struct frag_metric_info *list = frag_metric_list(&count);

	for (size_t i = 0; i < count; i++) {
		const char *at = (const char *)m + list[i].offset;

		if (frag_report_is_host(&list[i]))
			continue; /* of this machine */
		set(a, o, list[i].name,
		    list[i].type == FRAG_METRIC_T_U64
			    ? json_integer((json_int_t) * (const uint64_t *)at)
			    : json_real(*(const double *)at));
	}
}

/*
 * [[us, bytes],…]: the most that was reserved in each stretch of time. A text: it is stored as one,
 * and whoever gathers the answers of a thousand workers need not parse it.
 */
static json_t *curve_of(const struct frag_series *s, uint64_t peak)
{
	size_t step = (s->count + CURVE_POINTS - 1) / CURVE_POINTS;
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_text_add(&t, "[");
	for (size_t i = 0; i < s->count; i += step) {
		uint64_t most = 0;

		for (size_t k = i; k < s->count && k < i + step; k++)
			most = FRAG_MAX(most, s->windows[k].reserved_max);
		frag_text_addf(&t, "%s[%llu,%llu]", i ? "," : "",
			       (unsigned long long)s->windows[i].first_us,
			       (unsigned long long)FRAG_MIN(most, peak));
	}
	frag_text_add(&t, "]");
	return frag_text_check(&t, NULL) ? NULL : json_string(t.s);
}

/* ---- one item --------------------------------------------------------------------- */

/* What is replayed on what. */
struct place {
	const char *gpu, *limit; /* as asked; "" = none */
	struct frag_target target;
};

static void set_key(struct answer *a, json_t *o, const struct frag_trace_dev *dev,
		    const char *policy, const struct place *p)
{
	char text[1024], key[33], torch[16] = "";
	XXH128_hash_t h;
	int n;

	if (p->target.torch)
		snprintf(torch, sizeof(torch), "|%u", p->target.torch);
	n = snprintf(text, sizeof(text), "%s|%u|%s|%llu|%llu|%llu|%d|%s%s", a->hash, dev->ordinal,
		     p->gpu, (unsigned long long)p->target.card.total_bytes,
		     (unsigned long long)p->target.card.context_bytes,
		     (unsigned long long)frag_target_limit(&p->target), a->s->fit, FRAG_VERSION,
		     torch);

	h = XXH3_128bits_withSeed(policy, strlen(policy),
				  XXH3_64bits(text, FRAG_MIN((size_t)n, sizeof(text))));
	snprintf(key, sizeof(key), "%016llx%016llx", (unsigned long long)h.high64,
		 (unsigned long long)h.low64);
	set(a, o, "item", json_string(key));
}

/* The smallest card, where it was asked for. */
static void set_fit(struct answer *a, json_t *o, const struct frag_policy_spec *spec,
		    const struct frag_trace_dev *dev, const struct place *p)
{
	struct frag_fit_task task = { .spec = spec, .dev = dev };
	struct frag_plan_env env = { .threads = 1, .card = p->target.card };

	frag_target_run_options(&p->target, &env.run);
	if (frag_fit_run(&env, NULL, 0, &task, 1, NULL) || task.rc || !task.fit.possible)
		return;
	set(a, o, "min_capacity_bytes", json_integer((json_int_t)task.fit.min_capacity_bytes));
	set(a, o, "safe_capacity_bytes", json_integer((json_int_t)task.fit.safe_capacity_bytes));
}

static void set_result(struct answer *a, json_t *o, const struct frag_result *r, bool reproduced)
{
	bool served = r->completed && !r->oom.happened;

	set(a, o, "status",
	    json_string(!served	     ? "refused"
			: reproduced ? "completed"
				     : FRAG_STORE_UNREPRODUCED));
	if (r->oom.happened) {
		set(a, o, "first_oom_event", json_integer((json_int_t)r->oom.event));
		set(a, o, "first_oom_bytes", json_integer((json_int_t)r->oom.bytes));
	}
	set_metrics(a, o, &r->m);
	set(a, o, "curve", curve_of(&r->series, r->m.peak_reserved_bytes));
}

/* The recorded settings themselves reserve what was recorded, whatever a replay says; one that
 * serves what was refused then would reserve more. */
static void use_recorded_peak(struct frag_metrics *m, uint64_t peak)
{
	m->peak_reserved_bytes = peak;
	m->peak_active_bytes = FRAG_MIN(m->peak_active_bytes, peak);
	m->frag_bytes = peak - m->peak_active_bytes;
	m->efficiency_ratio = (double)m->peak_active_bytes / (double)peak;
	m->lower_bound_bytes = FRAG_MIN(m->lower_bound_bytes, peak);
	if (m->lower_bound_bytes)
		m->reserved_over_bound_ratio = (double)peak / (double)m->lower_bound_bytes;
}

static void run_item(struct answer *a, json_t *items, const struct frag_trace_dev *dev,
		     const struct frag_policy_spec *spec, bool recorded, const struct place *p)
{
	const char *policy = frag_policy_spec_text(spec);
	uint64_t peak = recorded ? frag_target_recorded_peak(&p->target, dev) : 0;
	struct frag_run_options run;
	struct frag_result r;
	struct frag_err err;
	bool reproduced;
	json_t *o =
		json_pack("{s:I, s:o, s:b, s:o, s:o, s:I, s:I}", "device", (json_int_t)dev->ordinal,
			  "policy", frag_json_text(policy), "recorded", recorded, "gpu",
			  frag_json_text(p->gpu), "limit", frag_json_text(p->limit),
			  "capacity_bytes", (json_int_t)p->target.card.total_bytes, "context_bytes",
			  (json_int_t)p->target.card.context_bytes);
	int rc;

	a->failed |= json_array_append_new(items, o) != 0;
	if (a->failed)
		return;
	frag_target_run_options(&p->target, &run);
	run.windows_max = 4 * CURVE_POINTS;
	if (peak && !dev->settled.refused_count)
		run.limit_bytes = frag_target_limit_for(&p->target, dev);
	run.restore = peak && dev->settled.identical &&
		      frag_settled_restores(dev, &p->target.card, run.limit_bytes);
	set_key(a, o, dev, policy, p);
	rc = frag_replay_sim(spec, &p->target.card, dev, &run, &r, &err);
	if (rc) {
		set(a, o, "status", json_string("failed"));
		set(a, o, "message", frag_json_text(err.msg));
		return;
	}
	if (dev->ending.out_of_memory)
		r.m.lower_bound_bytes = dev->ending.need_bytes;
	/* the replay serves here what the recording overcame; that it is identical is known */
	reproduced = !peak || dev->ending.out_of_memory || peak == r.m.peak_reserved_bytes ||
		     (dev->settled.refused_count && dev->settled.identical);
	if (peak && r.completed && !r.oom.happened)
		use_recorded_peak(&r.m, peak);
	set_result(a, o, &r, reproduced);
	frag_result_release(&r);
	if (a->s->fit)
		set_fit(a, o, spec, dev, p);
}

/* ---- all of a trace ------------------------------------------------------------------ */

static struct place place_of(const struct frag_sweep *s, size_t gpu, size_t limit)
{
	struct place p = { .gpu = "", .limit = "", .target = s->target };

	if (s->cards_count) {
		p.gpu = s->cards[gpu]->name;
		p.target.card.total_bytes = s->cards[gpu]->total_bytes;
		p.target.card.context_bytes = s->cards[gpu]->context_bytes;
		p.target.card_given = true;
	}
	if (s->limits_count)
		p.target.limit = s->limits[limit];
	if (p.target.limit.text)
		p.limit = p.target.limit.text;
	return p;
}

static void run_device(struct answer *a, json_t *items, const struct frag_trace_dev *dev,
		       struct frag_policy_spec *const *specs, size_t recorded)
{
	const struct frag_sweep *s = a->s;

	for (size_t g = 0; g < FRAG_MAX(s->cards_count, 1u); g++)
		for (size_t l = 0; l < FRAG_MAX(s->limits_count, 1u); l++) {
			struct place p = place_of(s, g, l);

			for (size_t i = 0; specs[i] && !a->failed; i++)
				run_item(a, items, dev, specs[i], i == recorded, &p);
		}
}

static void describe(struct answer *a, const struct frag_trace *t)
{
	uint64_t events = 0, end_us = 0;
	const struct frag_gpu_chip *chip = frag_recorded_chip(t, &t->devs[0]);
	bool ended = false;
	char format[300];
	json_auto_t *told = NULL;

	for (uint32_t d = 0; d < t->devs_count; d++) {
		size_t n = t->devs[d].events_count;

		ended |= t->devs[d].ending.out_of_memory;
		if (!frag_same_kernels(chip, frag_recorded_chip(t, &t->devs[d])))
			chip = NULL;
		events += n;
		if (n)
			end_us = FRAG_MAX(end_us, (uint64_t)t->devs[d].events[n - 1].time_us);
	}
	snprintf(format, sizeof(format), "%.200s%s%s%.30s%s", t->format,
		 t->estimate ? ", estimated" : "", chip ? FRAG_STORE_CARD : "",
		 chip ? chip->name : "", ended ? FRAG_STORE_ENDED : "");
	told = json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:b, s:I}", "name",
			 frag_json_text(t->name), "format", frag_json_text(format), "settings",
			 frag_json_text(t->settings.conf ? t->settings.conf : ""), "devices",
			 (json_int_t)t->devs_count, "events", (json_int_t)events, "start_us",
			 (json_int_t)t->start_us, "estimate", t->estimate != NULL, "duration_us",
			 (json_int_t)end_us);
	a->failed |= json_object_update(a->root, told) != 0;
}

static int run_trace(struct answer *a, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_specs_release) struct frag_policy_spec **specs = NULL;
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *usual = NULL;
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	json_t *items = json_array();
	size_t recorded;

	set(a, a->root, "items", items);
	FRAG_TRY(frag_recording_open(&r, path, &a->s->target, FRAG_OPEN_HISTORY, err));
	FRAG_TRY(frag_policy_texts_specs(&a->s->policies, r.trace, &specs, &recorded, err));
	describe(a, r.trace);
	/* of unknown settings PyTorch's defaults stand for them, as everywhere */
	FRAG_TRY(frag_policy_spec_parse("pytorch", &usual, err));
	for (size_t i = 0; recorded == SIZE_MAX && !r.trace->settings.present && specs[i]; i++)
		if (!strcmp(frag_policy_spec_echo(specs[i]), frag_policy_spec_echo(usual)))
			recorded = i;
	for (uint32_t d = 0; d < r.trace->devs_count; d++)
		run_device(a, items, &r.trace->devs[d], specs, recorded);
	return 0;
}

/* A trace that cannot be read is an answer, too. A new reference; NULL: memory is short. */
static json_t *answer_for(const struct frag_sweep *s, const char *path)
{
	char hash[33] = "";
	struct answer a = { .s = s, .root = json_object(), .hash = hash };
	struct frag_err err = { 0 };
	int rc;

	if (!a.root)
		return NULL;
	rc = frag_sweep_hash(path, hash, &err) ?: run_trace(&a, path, &err);
	set(&a, a.root, "path", frag_json_text(path));
	set(&a, a.root, "trace", json_string(hash));
	if (rc)
		set(&a, a.root, "error", frag_json_text(err.msg));
	if (rc == FRAG_EFORMAT)
		set(&a, a.root, "no_trace", json_true());
	if (a.failed) {
		json_decref(a.root);
		return NULL;
	}
	return a.root;
}

void frag_sweep_work(const void *sweep, size_t task, int to)
{
	const struct frag_sweep *s = sweep;
	json_auto_t *answer = NULL;
	FRAG_AUTO_FREE char *text = NULL;

	frag_worker_bound(s->memory_bytes, s->threads);
	answer = answer_for(s, s->files.list[task].path);
	text = answer ? json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (text)
		frag_worker_tell(to, text, strlen(text));
}
