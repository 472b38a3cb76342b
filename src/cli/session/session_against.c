/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --against-sim: is the simulated card what the real one is? Every replay runs on the device
 * of the session (--repeats times), then on the simulated card with its own rule for
 * addresses, and on one that is given those of the first run. Told is where the
 * sequences of driver calls (kind and size) first differ, how far reserved bytes are
 * apart, what cudaMemGetInfo and NVML counted, and measured against modelled driver time.
 *
 * Driver time is the median of the runs; the fastest and the slowest stand beside it, and how fast
 * driver calls were on the core that the median ran on, before it and after it (pair_ns, pair_after_ns, see
 * cuda_core.c). What the host did between two calls is no property of the card: the simulated one is told how long it was,
 * as it is told the addresses. It is told how fast the host was, too: pair_ns over that of the host
 * of the profile (host_ratio; modelled_ns over it is what the profile alone says).
 *
 * Policies that look for the lowest address, or the nearest, decide ties by addresses: these
 * may differ on the simulated card's own addresses and must agree on the real ones.
 */
#include <stdlib.h>

#include <frag/base.h>

#include "session_calls.h"

#define STEADY_RATIO 1.25
#define STEADY_TRIES 3u
#define STEADY_NS 1000000000u

/* Prices to compare with: those of --cost, else of the card itself, where it was measured. */
static const struct frag_cost *prices(const struct frag_session *s)
{
	const struct frag_gpu *gpu = frag_gpu_find(s->report.card.name);

	return gpu && !s->cli->cost_ ? frag_cost_of(gpu->profile) : s->target.card.cost;
}

/* The card of the session as a simulated one, as large as the real one was found. On a real
 * card that runs nothing beside the replay, work is done at once; so it is here. */
static int record_sim(struct frag_session *s, struct frag_session_task *task,
		      const struct call_log *real, struct call_log *addresses, double host_ratio,
		      struct call_log *t)
{
	struct frag_sim_config card = s->target.card;
	struct frag_device *dev;

	card.name = NULL;
	card.cost = prices(s);
	card.total_bytes = real->card.total_bytes;
	card.context_bytes = real->card.context_bytes;
	if (s->cli->device == FRAG_CLI_DEVICE_CUDA && !s->cli->work)
		card.work_idle = !s->run.paced && !s->run.work_ns;
	card.pause = frag_call_log_pause;
	card.pause_ctx = t;
	card.host_ratio = host_ratio;
	t->real = real;
	FRAG_TRY(addresses ? address_log_play(&addresses->addresses, &card, &dev, &task->err)
			   : frag_sim_open(&card, &dev, &task->err));
	return frag_call_log_record(s, task, dev, t);
}

/* ---- what differs ------------------------------------------------------------------ */

static void add_difference(struct frag_text *out, const struct call_log *real,
			   const struct call_log *sim)
{
	size_t i = frag_call_log_difference(real, sim);

	if (i == SIZE_MAX) {
		frag_text_add(out, "yes,,");
		return;
	}
	frag_text_addf(out, "no,%zu,", i);
	for (unsigned k = 0; k < 2; k++) {
		const struct call_log *t = k ? sim : real;

		if (k)
			frag_text_add(out, " / ");
		if (i < t->replayed)
			frag_text_addf(out, "%s %llu", frag_call_name(t->calls[i].kind),
				       (unsigned long long)t->calls[i].bytes);
		else
			frag_text_add(out, "end");
	}
}

static const char header[] =
	"trace,trace_device,policy,completed,calls_count,same_calls,first_different_call,"
	"different_calls,same_calls_at_real_addresses,first_different_call_at_real_addresses,"
	"different_calls_at_real_addresses,peak_reserved_bytes,sim_peak_reserved_bytes,"
	"sim_peak_reserved_at_real_addresses_bytes,observed_at_bytes,mem_info_bytes,nvml_at_bytes,"
	"nvml_bytes,runs_agree,pair_ns,pair_after_ns,driver_ns,driver_ns_min,driver_ns_max,"
	"modelled_ns,"
	"modelled_over_measured_ratio,host_ratio\n";

static const char calls_header[] =
	"trace,trace_device,policy,run,call,bytes,result,reserved_bytes,pause_ns,ns,modelled_ns\n";

/* Driver time of a run, and how fast the host was before and after it. */
struct timing {
	uint64_t ns;
	struct frag_dev_observed seen;
};

/* The host of a run against that of the profile. */
static double host_ratio(const struct frag_session *s, const struct timing *t)
{
	return frag_cost_host_ratio(prices(s), frag_dev_host_pair(&t->seen));
}

static void add_row(struct frag_session *s, const struct frag_session_task *task,
		    const struct call_log *real, const struct call_log *own,
		    const struct call_log *same, const struct timing *timing, bool agree)
{
	const struct frag_dev_observed *w = &real->observed;
	const struct timing *median = &timing[s->repeats / 2];
	uint64_t measured = median->ns, modelled = same->result.m.modelled_ns;
	struct frag_text *out = &s->against;

	frag_text_add_csv(out, task->trace);
	frag_text_addf(out, ",%u,", task->dev->ordinal);
	frag_text_add_csv(out, frag_policy_spec_text(task->asked_for));
	frag_text_addf(out, ",%s,%zu,", real->result.completed ? "yes" : "no", real->replayed);
	add_difference(out, real, own);
	frag_text_add(out, ",");
	add_difference(out, real, same);
	frag_text_addf(out, ",%llu,%llu,%llu,",
		       (unsigned long long)real->result.m.peak_reserved_bytes,
		       (unsigned long long)own->result.m.peak_reserved_bytes,
		       (unsigned long long)same->result.m.peak_reserved_bytes);
	if (w->reserved_bytes)
		frag_text_addf(out, "%llu,%llu,", (unsigned long long)w->reserved_bytes,
			       (unsigned long long)w->mem_info_bytes);
	else
		frag_text_add(out, ",,");
	if (w->has_nvml && w->nvml_at_bytes)
		frag_text_addf(out, "%llu,%llu,", (unsigned long long)w->nvml_at_bytes,
			       (unsigned long long)w->nvml_bytes);
	else
		frag_text_add(out, ",,");
	frag_text_addf(out, "%s,%llu,%llu,%llu,%llu,%llu,%llu,%.3f,%.3f\n", agree ? "yes" : "no",
		       (unsigned long long)median->seen.pair_ns,
		       (unsigned long long)median->seen.pair_after_ns, (unsigned long long)measured,
		       (unsigned long long)timing[0].ns,
		       (unsigned long long)timing[s->repeats - 1].ns, (unsigned long long)modelled,
		       measured ? (double)modelled / (double)measured : 0.0, host_ratio(s, median));
}

static int compare_timing(const void *a, const void *b)
{
	const struct timing *x = a, *y = b;

	return FRAG_ORDER(x->ns, y->ns);
}

/* One line for every call of a run, modelled time where the simulated card made the same one. */
static void add_calls(struct frag_session *s, const struct frag_session_task *task, unsigned run,
		      const struct call_log *real, const struct call_log *sim)
{
	struct frag_text *out = &s->against_calls_text;
	size_t same = FRAG_MIN(frag_call_log_difference(real, sim), real->replayed);

	for (size_t i = 0; i < real->replayed; i++) {
		const struct logged_call *c = &real->calls[i];

		frag_text_add_csv(out, task->trace);
		frag_text_addf(out, ",%u,", task->dev->ordinal);
		frag_text_add_csv(out, frag_policy_spec_text(task->asked_for));
		frag_text_addf(out, ",%u,%s,%llu,%d,%llu,%llu,%llu,", run, frag_call_name(c->kind),
			       (unsigned long long)c->bytes, c->result,
			       (unsigned long long)c->reserved_bytes,
			       (unsigned long long)c->pause_ns, (unsigned long long)c->ns);
		if (i < same)
			frag_text_addf(out, "%llu\n", (unsigned long long)sim->calls[i].ns);
		else
			frag_text_add(out, "\n");
	}
}

/* All runs of one task. */
struct runs {
	struct call_log *real; /* s->repeats of them on the device of the session */
	struct call_log own, same;
	struct timing *timing; /* of `real`, fastest first */
	bool agree;
};

static int record_one(struct frag_session *s, struct frag_session_task *task, struct call_log *t)
{
	struct frag_device *dev;

	FRAG_TRY(frag_session_open(s, task, &dev));
	return frag_call_log_record(s, task, dev, t);
}

/* How much faster or slower the host became during a run: 1 = not at all. */
static double unsteady(const struct call_log *t)
{
	double before = (double)t->observed.pair_ns, after = (double)t->observed.pair_after_ns;

	if (before <= 0 || after <= 0)
		return 1;
	return FRAG_MAX(before / after, after / before);
}

/* A run; a short one again, if the host's speed changed in it: of these the one in which it changed least. */
static int record_steady(struct frag_session *s, struct frag_session_task *task,
			 struct call_log *best)
{
	struct call_log again = { 0 };
	int rc = record_one(s, task, best);

	for (unsigned i = 1; !rc && i < STEADY_TRIES && unsteady(best) > STEADY_RATIO &&
			     best->result.m.modelled_ns < STEADY_NS;
	     i++) {
		rc = record_one(s, task, &again);
		if (!rc && unsteady(&again) < unsteady(best)) {
			frag_call_log_release(best);
			*best = again;
			again = (struct call_log){ 0 };
		}
		frag_call_log_release(&again);
	}
	return rc;
}

static int record_real(struct frag_session *s, struct frag_session_task *task, struct runs *r)
{
	r->agree = true;
	for (unsigned i = 0; i < s->repeats; i++) {
		FRAG_TRY(record_steady(s, task, &r->real[i]));
		r->timing[i] = (struct timing){ .ns = r->real[i].result.m.modelled_ns,
						.seen = r->real[i].observed };
		r->agree =
			r->agree && frag_call_log_difference(&r->real[0], &r->real[i]) == SIZE_MAX;
	}
	qsort(r->timing, s->repeats, sizeof(*r->timing), compare_timing);
	return 0;
}

static int record_all(struct frag_session *s, struct frag_session_task *task, struct runs *r)
{
	double ratio;

	r->real = frag_host_calloc(s->repeats, sizeof(*r->real));
	r->timing = frag_host_calloc(s->repeats, sizeof(*r->timing));
	FRAG_CHECK_ALLOC(r->real && r->timing, "call logs", &task->err);
	FRAG_TRY(record_real(s, task, r));
	ratio = host_ratio(s, &r->timing[s->repeats / 2]);
	FRAG_TRY(record_sim(s, task, &r->real[0], NULL, ratio, &r->own));
	FRAG_TRY(record_sim(s, task, &r->real[0], &r->real[0], ratio, &r->same));
	return 0;
}

int frag_session_against(struct frag_session *s, struct frag_session_task *task)
{
	struct runs r = { 0 };
	int rc = record_all(s, task, &r);

	if (!rc) {
		add_row(s, task, &r.real[0], &r.own, &r.same, r.timing, r.agree);
		for (unsigned i = 0; s->against_calls && i < s->repeats; i++)
			add_calls(s, task, i, &r.real[i], &r.same);
		task->result = r.real[0].result;
		task->result.device_ordinal = task->dev->ordinal;
		r.real[0].result = (struct frag_result){ 0 };
	}
	for (unsigned i = 0; r.real && i < s->repeats; i++)
		frag_call_log_release(&r.real[i]);
	frag_call_log_release(&r.own);
	frag_call_log_release(&r.same);
	FRAG_FREE(r.real, r.timing);
	return rc;
}

int frag_session_write_against(const struct frag_session *s, struct frag_err *err)
{
	FRAG_TRY(frag_text_put_rows(header, &s->against, s->against_sim, err));
	if (!s->against_calls)
		return 0;
	return frag_text_put_rows(calls_header, &s->against_calls_text, s->against_calls, err);
}
