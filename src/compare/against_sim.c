/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --against-sim: is the simulated card what the real one is? Every replay runs on the device
 * of the session (--repeats times), then on the simulated card with its own rule for
 * addresses, and on one that is given those of the first run. A row says where the
 * sequences of driver calls (kind and size) first differ, the reserved bytes of each, what cudaMemGetInfo and NVML
 * counted, and measured and modelled driver time.
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

#include "call_log.h"

#include "answer/row.h"

#define STEADY_RATIO 1.25
#define STEADY_TRIES 3u
#define STEADY_NS 1000000000u

/* Prices to compare with: those of --cost, else of the card itself, where it was measured. */
static const struct frag_cost *prices(const struct frag_session *s)
{
	const struct frag_gpu *gpu = frag_gpu_find(s->report.card.name);

	return gpu && !s->host.own_costs ? frag_cost_of(gpu->profile) : s->target.card.cost;
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
	if (s->host.real && !s->host.own_work)
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

#define DIFFERENCE(X, s) \
	X(s, TEXT, trace, task->trace) \
	X(s, COUNT, trace_device, task->dev->ordinal) \
	X(s, TEXT, policy, frag_policy_spec_text(task->asked_for)) \
	X(s, TEXT, completed, yes(real->result.completed)) \
	X(s, COUNT, calls_count, real->replayed) \
	X(s, TEXT, same_calls, yes(own_at == UINT64_MAX)) \
	X(s, COUNT, first_different_call, own_at) \
	X(s, TEXT, different_calls, frag_text_str(&own_text)) \
	X(s, TEXT, same_calls_at_real_addresses, yes(same_at == UINT64_MAX)) \
	X(s, COUNT, first_different_call_at_real_addresses, same_at) \
	X(s, TEXT, different_calls_at_real_addresses, frag_text_str(&same_text)) \
	X(s, BYTES, peak_reserved_bytes, real->result.m.peak_reserved_bytes) \
	X(s, BYTES, sim_peak_reserved_bytes, own->result.m.peak_reserved_bytes) \
	X(s, BYTES, sim_peak_reserved_at_real_addresses_bytes, same->result.m.peak_reserved_bytes) \
	X(s, BYTES, observed_at_bytes, w->reserved_bytes ? w->reserved_bytes : UINT64_MAX) \
	X(s, BYTES, mem_info_bytes, w->reserved_bytes ? w->mem_info_bytes : UINT64_MAX) \
	X(s, BYTES, nvml_at_bytes, nvml ? w->nvml_at_bytes : UINT64_MAX) \
	X(s, BYTES, nvml_bytes, nvml ? w->nvml_bytes : UINT64_MAX) \
	X(s, TEXT, runs_agree, yes(agree)) \
	X(s, NS, pair_ns, median->seen.pair_ns) \
	X(s, NS, pair_after_ns, median->seen.pair_after_ns) \
	X(s, NS, driver_ns, median->ns) \
	X(s, NS, driver_ns_min, timing[0].ns) \
	X(s, NS, driver_ns_max, timing[session->repeats - 1].ns) \
	X(s, NS, modelled_ns, same->result.m.modelled_ns) \
	X(s, RATIO, modelled_over_measured_ratio, \
	  median->ns ? (double)same->result.m.modelled_ns / (double)median->ns : 0) \
	X(s, RATIO, host_ratio, host_ratio(session, median))
FRAG_CSV_ROW(difference, DIFFERENCE)

#define CALL(X, s) \
	X(s, TEXT, trace, task->trace) \
	X(s, COUNT, trace_device, task->dev->ordinal) \
	X(s, TEXT, policy, frag_policy_spec_text(task->asked_for)) \
	X(s, COUNT, run, run) \
	X(s, TEXT, call, frag_call_name(c->kind)) \
	X(s, BYTES, bytes, c->bytes) \
	X(s, INT, result, c->result) \
	X(s, BYTES, reserved_bytes, c->reserved_bytes) \
	X(s, NS, pause_ns, c->pause_ns) \
	X(s, NS, ns, c->ns) \
	X(s, NS, modelled_ns, i < same ? sim->calls[i].ns : UINT64_MAX)
FRAG_CSV_ROW(compared_call, CALL)

static const char *yes(bool is)
{
	return is ? "yes" : "no";
}

static void describe_call(const struct call_log *t, size_t i, struct frag_text *out)
{
	if (i < t->replayed)
		frag_text_addf(out, "%s %llu", frag_call_name(t->calls[i].kind),
			       (unsigned long long)t->calls[i].bytes);
	else
		frag_text_add(out, "end");
}

/* Index of the first call that differs, UINT64_MAX = none; what both did then, into `text`. */
static uint64_t difference_of(const struct call_log *real, const struct call_log *sim,
			      struct frag_text *text)
{
	size_t i = frag_call_log_difference(real, sim);

	if (i == SIZE_MAX)
		return UINT64_MAX;
	describe_call(real, i, text);
	frag_text_add(text, " / ");
	describe_call(sim, i, text);
	return i;
}

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

static void add_row(struct frag_session *session, const struct frag_session_task *task,
		    const struct call_log *real, const struct call_log *own,
		    const struct call_log *same, const struct timing *timing, bool agree)
{
	FRAG_AUTO(frag_text_release) struct frag_text own_text = { 0 }, same_text = { 0 };
	const struct frag_dev_observed *w = &real->observed;
	const struct timing *median = &timing[session->repeats / 2];
	uint64_t own_at = difference_of(real, own, &own_text);
	uint64_t same_at = difference_of(real, same, &same_text);
	bool nvml = w->has_nvml && w->nvml_at_bytes;
	struct difference row = FRAG_CSV_VALUES(difference, DIFFERENCE);

	session->against_text.failed |= own_text.failed || same_text.failed;
	frag_shape_csv_row(&difference_shape, &row, &session->against_text);
}

FRAG_COMPARE(compare_timing, struct timing, FRAG_ORDER(x->ns, y->ns))

/* One line for every call of a run, modelled time where the simulated card made the same one. */
static void add_calls(struct frag_session *s, const struct frag_session_task *task, unsigned run,
		      const struct call_log *real, const struct call_log *sim)
{
	size_t same = FRAG_MIN(frag_call_log_difference(real, sim), real->replayed);

	for (size_t i = 0; i < real->replayed; i++) {
		const struct logged_call *c = &real->calls[i];
		struct compared_call row = FRAG_CSV_VALUES(compared_call, CALL);

		frag_shape_csv_row(&compared_call_shape, &row, &s->against_calls_text);
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
	FRAG_TRY(frag_shape_csv_put(&difference_shape, &s->against_text, s->against_sim, err));
	if (!s->against_calls)
		return 0;
	return frag_shape_csv_put(&compared_call_shape, &s->against_calls_text, s->against_calls,
				  err);
}
