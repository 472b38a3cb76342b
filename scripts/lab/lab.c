/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the simulated card what a real one is? Not part of cufrag: `make lab`, docs/measuring.md.
 *
 *	lab sim TRACE...	replays on the card, then on the simulated one with the addresses of the card
 *	lab contents TRACE...	replays on the card with all bytes filled, and verified before each free
 *
 * `sim` goes over all replays once in each round: on a shared host a slow spell lasts seconds, so the
 * runs of one replay are spread over minutes. Driver time is the median of the rounds. How fast
 * the host was is measured before and after each replay (pair_ns, see cuda_core.c). What the host
 * did between two calls is no property of the card: the simulated one is told how long it was and
 * how fast the host was, as it is told the addresses.
 */
#include "lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/clock.h>

#include "base/args.h"
#include "lib/grow.h"
#include "recording/policy_texts.h"
#include "recording/recording.h"

#define ROUNDS_MAX 32u
#define NEAR 0.25 /* of the measured time */
#define LLU(x) ((unsigned long long)(x))

struct options {
	const char *output, *profile, *cost;
	bool real; /* on a card, not a dry run */
	unsigned rounds;
	struct frag_policy_texts policies;
	struct frag_target target;
};

static const char *const device_words[] = { "sim", "cuda", NULL };

#define AT(field) FRAG_ARG_AT(struct options, field)
static const struct frag_arg options[] = {
	{ FRAG_ARG_WORD, "device", AT(real), .words = device_words, .def = "cuda",
	  .help = "sim: a dry run without a card" },
	{ FRAG_ARG_OWN, "policies", AT(policies), .set = frag_policy_texts_list,
	  .release = frag_policy_texts_release, .value = "POLICIES",
	  .help = "separated by ';' (default: all, those that take minutes only on short traces)" },
	{ FRAG_ARG_TEXT, "cost", AT(cost), .value = "FILE",
	  .help = "prices of the simulated card (default: the profile of the real one, else the "
		  "built-in)" },
	{ FRAG_ARG_UINT, "rounds", AT(rounds), .value = "N", .min = 1, .max = ROUNDS_MAX,
	  .def = "5", .help = "replays of each pair" },
	{ FRAG_ARG_TEXT, "output", 'o', AT(output), .value = "FILE", .def = "-",
	  .help = "rows as CSV" },
	{ FRAG_ARG_TEXT, "profile", AT(profile), .value = "FILE",
	  .help = "sim: write a cost profile of the card" },
	{ 0 },
};

/* Timing of one round of a replay. */
struct timing {
	uint64_t ns, modelled_ns, pair_ns;
	double host_ratio;
};

/* A policy on a device of a trace. */
struct replay {
	const struct frag_trace *trace;
	const struct frag_trace_dev *dev;
	uint32_t dev_index;
	const struct frag_policy_spec *spec;
	bool left_out; /* the card or the trace does not allow it */
	struct timing timing[ROUNDS_MAX];
	size_t rounds_count;
	/* the first round */
	size_t calls_count, difference;
	bool completed, agree; /* all rounds made as many calls and reserved as much */
	uint64_t peak_bytes, sim_peak_bytes;
	struct frag_dev_observed seen;
};

struct lab {
	bool contents; /* else sim */
	struct options o;
	struct frag_run_options run;
	struct frag_recordings recordings;
	struct replay *replays;
	size_t count, cap;
	struct frag_cost *cost; /* of --cost */
	struct lab_scale *scale;
	uint64_t given_back_bytes; /* by the last replay: see frag_dev_make_ready */
	FILE *out;
	unsigned failures, rows, same_calls, same_peaks, timed, near;
};

/* ---- one replay, with every driver call written down ------------------------------- */

static void log_release(struct lab_log *t)
{
	frag_host_free(t->calls);
	address_log_release(&t->addresses);
	frag_result_release(&t->result);
	*t = (struct lab_log){ 0 };
}

/* Since the call before the one that took `ns` and just came back. */
static uint64_t pause_of(struct lab_log *t, uint64_t ns)
{
	uint64_t now = frag_clock_ns(), since = t->returned_ns;

	t->returned_ns = now;
	return since && now - since > ns ? now - since - ns : 0;
}

static void on_call(void *ctx, enum frag_call kind, uint64_t bytes, int result)
{
	struct lab_log *t = ctx;
	uint64_t ns = t->dev->driver_ns - t->ns;

	t->ns = t->dev->driver_ns;
	if (FRAG_GROW(t->calls, t->count, t->cap, "calls", NULL)) {
		t->short_of_memory = true;
		return;
	}
	t->calls[t->count++] = (struct lab_call){
		.kind = (uint8_t)kind,
		.result = (int8_t)(result < 0 ? -1 : result),
		.bytes = bytes,
		.ns = ns,
		.pause_ns = frag_dev_has_content(t->dev) ? pause_of(t, ns) : 0,
	};
}

/* The pause hook of a simulated card (ctx: the log that is being recorded from it). */
static uint64_t pause_before(void *ctx, enum frag_call kind)
{
	const struct lab_log *t = ctx, *real = t->real;

	return t->count < real->count && real->calls[t->count].kind == kind
		       ? real->calls[t->count].pause_ns
		       : 0;
}

size_t lab_difference(const struct lab_log *a, const struct lab_log *b)
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

static int feed(struct lab *lab, const struct replay *r, struct frag_device *dev, struct lab_log *t,
		struct frag_err *err)
{
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;

	FRAG_TRY(frag_run_create(r->spec, dev, r->dev, &lab->run, &run, err));
	/* making a policy can take so long that the card falls asleep again */
	if (!lab->contents)
		FRAG_TRY(frag_dev_make_ready(dev, 0, err));
	FRAG_TRY(frag_run_feed(run, r->dev->events, r->dev->events_count, err));
	frag_dev_observed(dev, &t->observed);
	t->replayed = t->count;
	return frag_run_finish(run, &t->result, err);
}

static int record(struct lab *lab, const struct replay *r, struct frag_device *dev,
		  struct lab_log *t, struct frag_err *err)
{
	int rc;

	frag_dev_info(dev, &t->card);
	t->dev = dev;
	t->ns = dev->driver_ns;
	dev->log = on_call;
	dev->log_ctx = t;
	address_log_record(&t->addresses, dev);
	lab->run.limit_bytes = frag_target_limit_for(&lab->o.target, r->dev);
	rc = feed(lab, r, dev, t, err);
	address_log_stop(&t->addresses);
	if (!rc && (t->short_of_memory || t->addresses.short_of_memory))
		rc = frag_fail_nomem(err, "log of driver calls");
	return rc;
}

static int open_card(const struct lab *lab, uint32_t index, struct frag_device **out,
		     struct frag_err *err)
{
	int cards = frag_cuda_count();

	return lab->o.real ? frag_cuda_open(cards > 1 ? (int)index % cards : 0, out, err)
			   : frag_sim_open(&lab->o.target.card, out, err);
}

static int record_real(struct lab *lab, const struct replay *r, struct lab_log *t,
		       struct frag_err *err)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	int rc;

	FRAG_TRY(open_card(lab, r->dev_index, &dev, err));
	FRAG_TRY(frag_dev_make_ready(dev, lab->given_back_bytes, err));
	rc = record(lab, r, dev, t, err);
	/* a bound: pools do not tell */
	lab->given_back_bytes = dev->stat[FRAG_CALL_FREE].bytes +
				dev->stat[FRAG_CALL_RELEASE].bytes + dev->reserved_peak_bytes;
	return rc;
}

/* Prices of the simulated card: those of --cost, else of the card itself, where it was measured. */
static const struct frag_cost *prices(const struct lab *lab, const char *card)
{
	const struct frag_gpu *gpu = frag_gpu_find(card);
	const struct frag_cost *own = gpu && gpu->profile ? frag_cost_of(gpu->profile) : NULL;

	return lab->cost ? lab->cost : own ? own : frag_cost_builtin();
}

/* A simulated card as large as the real one was found; work is done at once on both. */
static int record_sim(struct lab *lab, const struct replay *r, struct lab_log *real,
		      double host_ratio, struct lab_log *t, struct frag_err *err)
{
	struct frag_sim_config card = { .total_bytes = real->card.total_bytes,
					.context_bytes = real->card.context_bytes,
					.cost = prices(lab, real->card.name),
					.work_idle = true,
					.pause = pause_before,
					.pause_ctx = t,
					.host_ratio = host_ratio };
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;

	t->real = real;
	FRAG_TRY(address_log_play(&real->addresses, &card, &dev, err));
	return record(lab, r, dev, t, err);
}

/* ---- sim --------------------------------------------------------------------------- */

static void take_round(struct replay *r, const struct lab_log *real, const struct lab_log *sim,
		       double host_ratio)
{
	if (!r->rounds_count) {
		r->calls_count = real->replayed;
		r->completed = r->agree = real->result.completed;
		r->peak_bytes = real->result.m.peak_reserved_bytes;
		r->sim_peak_bytes = sim->result.m.peak_reserved_bytes;
		r->difference = lab_difference(real, sim);
		r->seen = real->observed;
	}
	r->agree = r->agree && r->calls_count == real->replayed &&
		   r->peak_bytes == real->result.m.peak_reserved_bytes;
	r->timing[r->rounds_count++] =
		(struct timing){ .ns = real->result.m.modelled_ns,
				 .modelled_ns = sim->result.m.modelled_ns,
				 .pair_ns = frag_dev_host_pair(&real->observed),
				 .host_ratio = host_ratio };
}

static int sim_round(struct lab *lab, struct replay *r, struct frag_err *err)
{
	struct lab_log real = { 0 }, sim = { 0 };
	double ratio = 1;
	int rc = record_real(lab, r, &real, err);

	if (!rc) {
		ratio = frag_cost_host_ratio(prices(lab, real.card.name),
					     frag_dev_host_pair(&real.observed));
		rc = record_sim(lab, r, &real, ratio, &sim, err);
	}
	if (!rc && lab->o.profile && !lab->scale)
		rc = lab_scale_create(prices(lab, real.card.name), &lab->scale, err);
	if (!rc && lab->scale)
		rc = lab_scale_add(lab->scale, &real, &sim, err);
	if (!rc)
		take_round(r, &real, &sim, ratio);
	log_release(&real);
	log_release(&sim);
	return rc;
}

FRAG_COMPARE(compare_timing, struct timing, FRAG_ORDER(x->ns, y->ns))

static const char *yes(bool is)
{
	return is ? "yes" : "no";
}

static void put_row(struct lab *lab, struct replay *r)
{
	bool same = r->difference == SIZE_MAX;
	const struct timing *all = r->timing, *t = &all[r->rounds_count / 2];
	double ratio;

	qsort(r->timing, r->rounds_count, sizeof(*r->timing), compare_timing);
	ratio = t->ns ? (double)t->modelled_ns / (double)t->ns : 0;
	fprintf(lab->out, "%s,%u,%s,%s,%zu,%s,%llu,%llu,%llu,%llu,%s,", r->trace->name,
		r->dev->ordinal, frag_policy_spec_text(r->spec), yes(r->completed), r->calls_count,
		yes(same), LLU(r->peak_bytes), LLU(r->sim_peak_bytes), LLU(r->seen.reserved_bytes),
		LLU(r->seen.mem_info_bytes), yes(r->agree));
	fprintf(lab->out, "%llu,%llu,%llu,%llu,%llu,%.3f,%.3f\n", LLU(t->pair_ns), LLU(t->ns),
		LLU(all[0].ns), LLU(all[r->rounds_count - 1].ns), LLU(t->modelled_ns), ratio,
		t->host_ratio);
	lab->rows++;
	lab->same_calls += same;
	lab->same_peaks += r->peak_bytes == r->sim_peak_bytes;
	lab->timed += t->ns > 0;
	lab->near += ratio >= 1 - NEAR && ratio <= 1 + NEAR;
}

static int put_profile(struct lab *lab, struct frag_err *err)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
	struct frag_device_info info;

	FRAG_TRY(open_card(lab, 0, &dev, err));
	frag_dev_info(dev, &info);
	if (lab->o.real)
		FRAG_TRY(lab_scale_clear(lab->scale, dev, err));
	lab_scale_profile(lab->scale, info.name, &text);
	return frag_text_put(&text, lab->o.profile, err);
}

static int finish_sim(struct lab *lab, struct frag_err *err)
{
	fputs("trace,trace_device,policy,completed,calls_count,same_calls,"
	      "peak_reserved_bytes,sim_peak_reserved_bytes,observed_at_bytes,mem_info_bytes,runs_"
	      "agree,pair_ns,"
	      "driver_ns,driver_ns_min,driver_ns_max,modelled_ns,modelled_over_measured_ratio,host_"
	      "ratio\n",
	      lab->out);
	for (size_t i = 0; i < lab->count; i++)
		if (lab->replays[i].rounds_count)
			put_row(lab, &lab->replays[i]);
	fprintf(stderr,
		"lab: %u replays: the same calls on the simulated card %u; the same peak %u; "
		"driver "
		"time within 25 %% of the measured %u of %u\n",
		lab->rows, lab->same_calls, lab->same_peaks, lab->near, lab->timed);
	return lab->scale ? put_profile(lab, err) : 0;
}

static int contents(struct lab *lab, struct replay *r, struct frag_err *err)
{
	struct lab_log t = { 0 };
	int rc;

	lab->run.fill = lab->o.real;
	rc = record_real(lab, r, &t, err);
	if (!rc)
		fprintf(lab->out, "%s,%u,%s,%s,%llu,%zu\n", r->trace->name, r->dev->ordinal,
			frag_policy_spec_text(r->spec), yes(t.result.completed),
			LLU(t.result.m.peak_reserved_bytes), t.replayed);
	log_release(&t);
	return rc;
}

/* ---- all of them -------------------------------------------------------------------- */

/* Call the driver for each request, or fault every page in: minutes on traces with more events. */
static const struct {
	const char *policy;
	uint64_t events;
} slow[] = { { "managed", 6000 }, { "native", 60000 }, { "cub", 60000 } };

static bool is_slow(const struct frag_policy_spec *spec, const struct frag_trace_dev *dev)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(slow); i++) {
		if (!strcmp(frag_policy_spec_text(spec), slow[i].policy))
			return dev->events_count > slow[i].events;
	}
	return false;
}

/* Every policy on every device of every trace. */
static int list_replays(struct lab *lab, char *const *paths, size_t count, struct frag_err *err)
{
	bool given = lab->o.policies.count > 0;
	size_t recorded;

	FRAG_TRY(frag_policy_texts_default(&lab->o.policies, "all;pytorch:expandable_segments:True",
					   err));
	FRAG_TRY(frag_recordings_open(&lab->recordings, paths, count, &lab->o.target, 0, err));
	for (size_t i = 0; i < count; i++) {
		const struct frag_trace *trace = lab->recordings.list[i].trace;
		struct frag_policy_spec **specs; /* kept until the end of the program */

		FRAG_TRY(frag_policy_texts_specs(&lab->o.policies, trace, &specs, &recorded, err));
		for (uint32_t d = 0; d < trace->devs_count; d++) {
			for (size_t k = 0; specs[k]; k++) {
				if (!given && is_slow(specs[k], &trace->devs[d]))
					continue;
				FRAG_TRY(FRAG_GROW(lab->replays, lab->count, lab->cap, "replays",
						   err));
				lab->replays[lab->count++] =
					(struct replay){ .trace = trace,
							 .dev = &trace->devs[d],
							 .dev_index = d,
							 .spec = specs[k] };
			}
		}
	}
	return 0;
}

static int run(struct lab *lab, struct frag_err *err)
{
	if (lab->contents)
		fputs("trace,trace_device,policy,completed,peak_reserved_bytes,calls_count\n",
		      lab->out);
	for (unsigned k = 0; k < (lab->contents ? 1 : lab->o.rounds); k++) {
		for (size_t i = 0; i < lab->count; i++) {
			struct replay *r = &lab->replays[i];
			int rc = r->left_out	 ? 0
				 : lab->contents ? contents(lab, r, err)
						 : sim_round(lab, r, err);

			if (!rc)
				continue;
			r->left_out = true;
			fprintf(stderr, "lab: %s, %s: %s\n", r->trace->name,
				frag_policy_spec_text(r->spec), err->msg);
			lab->failures += rc != FRAG_ENOTSUP && rc != FRAG_EPOLICY;
		}
	}
	return lab->contents ? 0 : finish_sim(lab, err);
}

static int begin(struct lab *lab, int argc, char **argv, struct frag_err *err)
{
	const struct frag_arg_table tables[] = { { options, &lab->o, "Options" }, { 0 } };
	char **operands = frag_host_calloc((size_t)argc, sizeof(*operands));
	size_t count;
	bool stop = false;
	int rest;

	FRAG_CHECK_ALLOC(operands, "operands", err);
	lab->o.target.card =
		(struct frag_sim_config){ .context_bytes = UINT64_MAX, .work_idle = true };
	frag_run_options_defaults(&lab->run);
	FRAG_TRY(frag_args_defaults(tables, err));
	FRAG_TRY(frag_args_parse(tables, argc, argv, operands, &count, &rest, &stop, err));
	if (lab->o.cost)
		FRAG_TRY(frag_cost_load(lab->o.cost, &lab->cost, err));
	lab->out = strcmp(lab->o.output, "-") ? fopen(lab->o.output, "w") : stdout;
	if (!lab->out)
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%s'", lab->o.output);
	return list_replays(lab, operands, count, err);
}

int main(int argc, char **argv)
{
	static struct lab lab; /* the process gives its memory back */
	struct frag_err err = { 0 };
	int rc;

	lab.contents = argc > 2 && !strcmp(argv[1], "contents");
	if (argc < 3 || (!lab.contents && strcmp(argv[1], "sim") != 0)) {
		fputs("usage: lab sim|contents [OPTION]... TRACE...; see the head of "
		      "scripts/lab/lab.c\n",
		      stderr);
		return 2;
	}
	rc = begin(&lab, argc - 1, argv + 1, &err) ?: run(&lab, &err);
	if (rc)
		fprintf(stderr, "lab: %s\n", err.msg);
	return rc ? frag_code_exit(err.code) : fclose(lab.out) || lab.failures;
}
