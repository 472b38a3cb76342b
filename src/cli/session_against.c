/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --against-sim: is the simulated card what the real one is? Every replay runs on the device
 * of the session (REPEATS times: driver time is the median), then on the simulated card with
 * its own rule for addresses, and on one that is given those of the first run. Told is where
 * the sequences of driver calls (kind and size) first differ, how far reserved bytes are
 * apart, what the witnesses counted, and measured against modelled driver time.
 *
 * Policies that look for the lowest address, or the nearest, decide ties by addresses: these
 * may differ on the simulated card's own addresses and must agree on the real ones.
 */
#include <stdlib.h>

#include <frag/base.h>

#include "session.h"

/* the driver's times vary from run to run, nothing else may */
#define REPEATS 3u

struct call {
	uint8_t kind;
	int8_t result; /* 0, FRAG_OOM, or -1 */
	uint64_t bytes;
};

struct place {
	uint64_t bytes;
	frag_addr_t addr;
};

/* One replay: its calls, the addresses it was given (or is to be given). */
struct tape {
	struct call *calls;
	size_t count, cap;
	size_t replayed;	 /* of them, before the policy was destroyed */
	struct place *places[2]; /* of cudaMalloc, of cuMemAddressReserve */
	size_t places_count[2], places_cap[2], next[2];
	bool short_of_memory;
	struct frag_result result;
	struct frag_dev_witness witness;
};

static void tape_release(struct tape *t)
{
	frag_host_free(t->calls);
	frag_host_free(t->places[0]);
	frag_host_free(t->places[1]);
	frag_result_release(&t->result);
}

static void on_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	struct tape *t = ctx;

	if (t->count == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 4096;
		struct call *calls = frag_host_realloc(t->calls, cap, sizeof(*calls));

		t->short_of_memory |= !calls;
		if (!calls)
			return;
		t->calls = calls;
		t->cap = cap;
	}
	t->calls[t->count++] = (struct call){ .kind = (uint8_t)call,
					      .bytes = bytes,
					      .result = (int8_t)(result < 0 ? -1 : result) };
}

static void on_place(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr)
{
	struct tape *t = ctx;
	unsigned k = call == FRAG_CALL_RESERVE;

	if (t->places_count[k] == t->places_cap[k]) {
		size_t cap = t->places_cap[k] ? 2 * t->places_cap[k] : 1024;
		struct place *places = frag_host_realloc(t->places[k], cap, sizeof(*places));

		t->short_of_memory |= !places;
		if (!places)
			return;
		t->places[k] = places;
		t->places_cap[k] = cap;
	}
	t->places[k][t->places_count[k]++] = (struct place){ .bytes = bytes, .addr = addr };
}

/* The place hook of a simulated card: the addresses of the tape, in their order. */
static int place_from(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t *addr)
{
	struct tape *t = ctx;
	unsigned k = call == FRAG_CALL_RESERVE;
	struct place *p;

	if (call == FRAG_CALL_CREATE || t->next[k] >= t->places_count[k])
		return -1;
	p = &t->places[k][t->next[k]];
	if (p->bytes != bytes)
		return -1;
	t->next[k]++;
	if (call == FRAG_CALL_MALLOC && bytes < FRAG_PAGE)
		return -1; /* shares pages, by a rule that is known */
	*addr = p->addr;
	return FRAG_PLACE_WISH;
}

static int record(const struct frag_session *s, struct frag_pool_task *task,
		  struct frag_device *dev, struct tape *t)
{
	struct frag_run_options opt = s->run;
	struct frag_run *run;
	int rc;

	dev->log = on_call;
	dev->placed = on_place;
	dev->log_ctx = dev->placed_ctx = t;
	if (!frag_dev_has_content(dev)) {
		opt.fill = FRAG_FILL_NONE;
		opt.work_ns = 0;
		opt.paced = false;
	}
	rc = frag_run_create(task->spec, dev, task->dev, &opt, &run, &task->err);
	if (!rc) {
		rc = frag_run_feed(run, task->dev->events, task->dev->events_count, &task->err);
		frag_dev_witness(dev, &t->witness);
		t->replayed = t->count;
		if (!rc)
			rc = frag_run_finish(run, &t->result, &task->err);
		frag_run_destroy(run);
	}
	frag_dev_close(dev);
	if (!rc && t->short_of_memory)
		rc = frag_fail_nomem(&task->err, "log of driver calls");
	return rc;
}

/* The card of the session as a simulated one, of the real one's size. */
static int record_sim(const struct frag_session *s, struct frag_pool_task *task,
		      struct tape *addresses, struct tape *t)
{
	struct frag_sim_config card = { .total_bytes = s->report.card.total_bytes,
					.context_bytes = s->report.card.context_bytes,
					.cost = s->cli->card.cost };
	struct frag_device *dev;

	if (addresses) {
		card.place = place_from;
		card.place_ctx = addresses;
	}
	FRAG_TRY(frag_sim_open(&card, &dev, &task->err));
	return record(s, task, dev, t);
}

/* ---- what differs ------------------------------------------------------------------ */

/* Index of the first call that is not the same; SIZE_MAX: none. */
static size_t first_difference(const struct tape *a, const struct tape *b)
{
	size_t n = FRAG_MIN(a->replayed, b->replayed);

	for (size_t i = 0; i < n; i++) {
		if (a->calls[i].kind != b->calls[i].kind ||
		    a->calls[i].bytes != b->calls[i].bytes ||
		    a->calls[i].result != b->calls[i].result)
			return i;
	}
	return a->replayed == b->replayed ? SIZE_MAX : n;
}

static void add_difference(struct frag_text *out, const struct tape *real, const struct tape *sim)
{
	size_t i = first_difference(real, sim);

	if (i == SIZE_MAX) {
		frag_text_add(out, "yes,,");
		return;
	}
	frag_text_addf(out, "no,%zu,", i);
	for (unsigned k = 0; k < 2; k++) {
		const struct tape *t = k ? sim : real;

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
	"sim_peak_reserved_at_real_addresses_bytes,witness_at_bytes,mem_info_bytes,nvml_at_bytes,"
	"nvml_bytes,runs_agree,driver_ns,driver_ns_min,driver_ns_max,modelled_ns,modelled_over_"
	"measured_ratio\n";

static void add_row(struct frag_session *s, const struct frag_pool_task *task,
		    const struct tape *real, const struct tape *own, const struct tape *same,
		    const uint64_t *timing, bool agree)
{
	const struct frag_dev_witness *w = &real->witness;
	uint64_t measured = timing[REPEATS / 2], modelled = same->result.m.modelled_ns;
	struct frag_text *out = &s->against;

	frag_text_add_csv(out, task->trace);
	frag_text_addf(out, ",%u,", task->dev->ordinal);
	frag_text_add_csv(out, frag_policy_spec_text(task->spec));
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
	frag_text_addf(out, "%s,%llu,%llu,%llu,%llu,%.3f\n", agree ? "yes" : "no",
		       (unsigned long long)measured, (unsigned long long)timing[0],
		       (unsigned long long)timing[REPEATS - 1], (unsigned long long)modelled,
		       measured ? (double)modelled / (double)measured : 0.0);
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* All runs on the device of the session: the tape of the first, the times of all in order. */
static int record_real(const struct frag_session *s, struct frag_pool_task *task, struct tape *real,
		       uint64_t *timing, bool *agree)
{
	*agree = true;
	for (unsigned i = 0; i < REPEATS; i++) {
		struct tape again = { 0 };
		struct frag_device *dev;
		int rc;

		FRAG_TRY(frag_cli_open_nth(s->cli, task->dev_index, &dev, &task->err));
		rc = record(s, task, dev, i ? &again : real);
		timing[i] = (i ? &again : real)->result.m.modelled_ns;
		if (i && !rc)
			*agree = *agree && first_difference(real, &again) == SIZE_MAX;
		tape_release(&again);
		FRAG_TRY(rc);
	}
	qsort(timing, REPEATS, sizeof(*timing), compare_ns);
	return 0;
}

int frag_session_against(struct frag_session *s, struct frag_pool_task *task)
{
	struct tape real = { 0 }, own = { 0 }, same = { 0 };
	uint64_t timing[REPEATS];
	bool agree;
	int rc = record_real(s, task, &real, timing, &agree);

	if (!rc)
		rc = record_sim(s, task, NULL, &own);
	if (!rc)
		rc = record_sim(s, task, &real, &same);
	if (!rc) {
		add_row(s, task, &real, &own, &same, timing, agree);
		task->result = real.result;
		task->result.device_ordinal = task->dev->ordinal;
		real.result = (struct frag_result){ 0 };
	}
	tape_release(&real);
	tape_release(&own);
	tape_release(&same);
	return rc;
}

int frag_session_write_against(const struct frag_session *s, struct frag_err *err)
{
	struct frag_text out = { 0 };
	int rc;

	frag_text_add(&out, header);
	frag_text_add(&out, frag_text_str(&s->against));
	rc = frag_text_check(&out, err);
	if (!rc)
		rc = frag_outfile_put(s->against_sim, frag_text_str(&out), out.len, err);
	frag_text_release(&out);
	return rc;
}
