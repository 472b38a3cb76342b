/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays for bench --profile: made-up training steps under policies that between them make every kind of
 * driver call, each on the card and then on a simulated one with the built-in profile, which is
 * given the same addresses and told the same pauses and how fast the host was. Rounds go over all of them
 * in turn: on a shared host a slow spell lasts seconds, so the runs of one replay are spread. After
 * ROUNDS_ALL of them those replays go on whose rounds are not near each other.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <frag/base.h>
#include <frag/clock.h>
#include <frag/replay.h>

#include "compare/call_log.h"
#include "bench.h"
#include "profile_scale.h"

#define EVENTS_MAX 8000u
#define SLOTS_MAX 512u
#define TIME_NS 45000000000u /* no round begins that would end later */
#define ROUNDS_ALL 5u
#define ROUNDS_LONG 2u /* of replays that take so long that noise does not matter: */
#define LONG_NS 500000000u

/* Steps of requests between two sizes, evenly over the powers of two. */
static const struct shape {
	const char *name;
	uint64_t least_bytes, most_bytes;
	uint64_t live_bytes; /* at most; frees begin there */
	unsigned steps, requests;
	unsigned seed; /* 0: every step as the first */
} shapes[] = {
	{ "hot", 512, FRAG_MIB, 64 * FRAG_MIB, 4, 800, 0 },
	{ "small", 512, 4 * FRAG_MIB, 512 * FRAG_MIB, 4, 240, 0 },
	{ "layers", 64 * FRAG_KIB, 192 * FRAG_MIB, 4 * FRAG_GIB, 4, 140, 0 },
	{ "varied", 512, 512 * FRAG_MIB, 6 * FRAG_GIB, 4, 140, 7 },
	{ "large", 16 * FRAG_MIB, 2 * FRAG_GIB, 9 * FRAG_GIB, 4, 40, 11 },
};

static const char *const policies[] = {
	"native",
	"pytorch",
	"pytorch:expandable_segments:True",
	"vmm",
	"gmlake",
	"dali-vm",
	"cub",
	"bfc",
	"cupy",
	"paddle",
	"rmm-pool",
	"quickpool",
	"ggml",
	"tlsf",
	"async",
	"managed",
	"slab",
	"pytorch:max_split_size_mb:64",
	"rmm-arena:size=12G",
};

/* Left out: by faults, or by a handle for every 2 MiB, these take as long as all others together. */
static const struct {
	const char *shape, *policy;
} too_long[] = { { "large", "managed" }, { "large", "gmlake" } };

/* ---- requests ------------------------------------------------------------------------ */

struct workload {
	struct frag_event events[EVENTS_MAX];
	struct frag_trace_dev dev;
	uint64_t bytes[SLOTS_MAX]; /* of what lives; 0 = free */
	uint32_t live[SLOTS_MAX], live_count;
	uint64_t live_bytes, random;
	uint64_t null_stream;
	struct frag_pool_id pool;
};

static uint64_t next_random(struct workload *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return w->random >> 33;
}

static void add_event(struct workload *w, unsigned kind, uint32_t slot, uint64_t bytes)
{
	size_t i = w->dev.events_count;

	if (i == EVENTS_MAX)
		return;
	w->events[i] = (struct frag_event){
		.kind = (uint8_t)kind, .slot = slot, .bytes = bytes, .time_us = 20 * i
	};
	w->dev.events_count++;
}

static void free_one(struct workload *w, uint32_t at)
{
	uint32_t slot = w->live[at];

	add_event(w, FRAG_EV_FREE, slot, w->bytes[slot]);
	w->live_bytes -= w->bytes[slot];
	w->bytes[slot] = 0;
	w->live[at] = w->live[--w->live_count];
}

static void request(struct workload *w, const struct shape *s, uint64_t live_bytes)
{
	double range = log2((double)s->most_bytes / (double)s->least_bytes);
	double at = (double)(next_random(w) % 4096) / 4096;
	uint64_t bytes = (uint64_t)((double)s->least_bytes * exp2(at * range)) / 512 * 512;
	uint32_t slot = 0;

	while (w->live_count && w->live_bytes + bytes > live_bytes)
		free_one(w, (uint32_t)(next_random(w) % w->live_count));
	if (bytes > live_bytes || w->live_count == SLOTS_MAX)
		return;
	while (w->bytes[slot])
		slot++;
	w->bytes[slot] = bytes;
	w->live[w->live_count++] = slot;
	w->live_bytes += bytes;
	add_event(w, FRAG_EV_ALLOC, slot, bytes);
	/* temporaries: every third one dies young */
	if (next_random(w) % 3 == 0)
		free_one(w, w->live_count - 1);
}

/* After a step everything goes, and what the policy holds beyond is given back. */
static void make(struct workload *w, const struct shape *s, uint64_t budget_bytes)
{
	w->dev = (struct frag_trace_dev){ .events = w->events,
					  .slots_count = SLOTS_MAX,
					  .streams = &w->null_stream,
					  .streams_count = 1,
					  .pools = &w->pool,
					  .pools_count = 1 };
	for (unsigned step = 0; step < s->steps; step++) {
		w->random = 12345 + s->seed * (step + 1);
		for (unsigned i = 0; i < s->requests; i++)
			request(w, s, FRAG_MIN(s->live_bytes, budget_bytes / 3));
		while (w->live_count)
			free_one(w, w->live_count / 2);
		add_event(w, FRAG_EV_TRIM, 0, 0);
	}
}

/* ---- replays ------------------------------------------------------------------------- */

#define REPLAYS (FRAG_ARRAY_LEN(shapes) * FRAG_ARRAY_LEN(policies))

struct bench_replays {
	const struct frag_sim_config *card;
	const struct frag_bench *bench;
	struct frag_session session;
	struct workload workloads[FRAG_ARRAY_LEN(shapes)];
	struct frag_scale_replay replays[REPLAYS];
	bool left_out[REPLAYS];	   /* the card cannot do it, or too_long */
	uint64_t took_ns[REPLAYS]; /* in the driver, in the last round */
	struct frag_policy_spec *specs[FRAG_ARRAY_LEN(policies)];
};

/* The card as a simulated one with the built-in profile, as large as it was found. */
static int record_model(struct bench_replays *b, struct frag_session_task *task,
			struct call_log *real, struct call_log *t)
{
	struct frag_sim_config card = *b->card;
	struct frag_device *dev;

	card.name = NULL;
	card.cost = NULL;
	card.total_bytes = real->card.total_bytes;
	card.context_bytes = real->card.context_bytes;
	if (b->session.host.real)
		card.work_idle = true;
	card.pause = frag_call_log_pause;
	card.pause_ctx = t;
	card.host_ratio = frag_cost_host_ratio(NULL, frag_dev_host_pair(&real->observed));
	t->real = real;
	FRAG_TRY(address_log_play(&real->addresses, &card, &dev, &task->err));
	return frag_call_log_record(&b->session, task, dev, t);
}

static int record_both(struct bench_replays *b, struct frag_session_task *task,
		       struct call_log *real, struct call_log *model)
{
	struct frag_device *dev;

	FRAG_TRY(frag_session_open(&b->session, task, &dev));
	FRAG_TRY(frag_call_log_record(&b->session, task, dev, real));
	return record_model(b, task, real, model);
}

static void add_round(struct frag_scale_replay *r, const struct call_log *real,
		      const struct call_log *model)
{
	size_t same = FRAG_MIN(frag_call_log_difference(real, model), real->replayed);
	struct frag_scale_round *round = &r->rounds[r->rounds_count++];

	round->pair_ns = frag_dev_host_pair(&real->observed);
	for (size_t i = 0; i < same; i++) {
		const struct logged_call *c = &real->calls[i];
		struct frag_scale_call call = { .call = c->kind,
						.bytes = c->bytes,
						.ns = c->ns,
						.pause_ns = c->pause_ns,
						.modelled_ns = model->calls[i].ns };

		if (!c->result)
			frag_scale_add(round, frag_cost_builtin(), &call);
	}
}

static bool is_enough(const struct bench_replays *b, size_t at)
{
	const struct frag_scale_replay *r = &b->replays[at];

	if (r->rounds_count >= ROUNDS_LONG && b->took_ns[at] >= LONG_NS)
		return true;
	return r->rounds_count >= ROUNDS_ALL && frag_scale_agrees(r);
}

static int replay(struct bench_replays *b, size_t shape, size_t policy, struct frag_err *err)
{
	size_t at = shape * FRAG_ARRAY_LEN(policies) + policy;
	struct frag_session_task task = { .spec = b->specs[policy],
					  .asked_for = b->specs[policy],
					  .trace = shapes[shape].name,
					  .dev = &b->workloads[shape].dev,
					  .limit_bytes = UINT64_MAX };
	struct call_log real = { 0 }, model = { 0 };
	int rc;

	if (b->left_out[at] || is_enough(b, at))
		return 0;
	rc = record_both(b, &task, &real, &model);
	if (!rc) {
		add_round(&b->replays[at], &real, &model);
		b->took_ns[at] = real.result.m.modelled_ns;
	}
	frag_call_log_release(&real);
	frag_call_log_release(&model);
	if (rc == FRAG_ENOTSUP || rc == FRAG_ECHECK) {
		b->left_out[at] = true;
		return 0;
	}
	if (rc)
		*err = task.err;
	return rc;
}

static int run_rounds(struct bench_replays *b, struct frag_err *err)
{
	uint64_t begin = frag_clock_ns();

	for (unsigned k = 0; k < FRAG_SCALE_ROUNDS_MAX; k++) {
		for (size_t s = 0; s < FRAG_ARRAY_LEN(shapes); s++) {
			for (size_t p = 0; p < FRAG_ARRAY_LEN(policies); p++)
				FRAG_TRY(replay(b, s, p, err));
			/* what one round takes is known after the first */
		}
		if ((frag_clock_ns() - begin) / (k + 1) * (k + 2) > TIME_NS)
			break;
	}
	return 0;
}

static bool is_too_long(size_t shape, size_t policy)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(too_long); i++) {
		if (!strcmp(too_long[i].shape, shapes[shape].name) &&
		    !strcmp(too_long[i].policy, policies[policy]))
			return true;
	}
	return false;
}

static int run(struct bench_replays *b, struct frag_err *err)
{
	b->session.repeats = 1;
	frag_run_options_defaults(&b->session.run);
	b->session.run.limit_bytes = b->bench->budget_bytes;
	for (size_t p = 0; p < FRAG_ARRAY_LEN(policies); p++)
		FRAG_TRY(frag_policy_spec_parse(policies[p], &b->specs[p], err));
	for (size_t s = 0; s < FRAG_ARRAY_LEN(shapes); s++) {
		make(&b->workloads[s], &shapes[s], b->bench->budget_bytes);
		for (size_t p = 0; p < FRAG_ARRAY_LEN(policies); p++)
			b->left_out[s * FRAG_ARRAY_LEN(policies) + p] = is_too_long(s, p);
	}
	return run_rounds(b, err);
}

/*
 * memory.clear: bench asks for more than is clear with one request, which then waits for all that was
 * given back; policies ask for less. So the rate found counts against what the same request found
 * on the card of the built-in profile (results/h200/calls.csv), not against the profile.
 */
static double clear_factor(const struct frag_bench *b)
{
	const struct frag_bench_row *row = frag_bench_find(b, "memory.clear");
	const double built_in = 247111923.0 / 82241912832.0;
	struct frag_device_info info;

	frag_dev_info(b->dev, &info);
	if (!row || info.modelled)
		return 1;
	return (double)frag_bench_quantile(row, 0.5) / (double)row->bytes / built_in;
}

static int measure(struct bench_replays *b, struct frag_text *out, struct frag_err *err)
{
	struct frag_device_info info;
	struct frag_scale scale;
	char card[200];

	FRAG_TRY(run(b, err));
	FRAG_TRY(frag_scale_factors(b->replays, REPLAYS, &scale, err));
	scale.clear = clear_factor(b->bench);
	frag_dev_info(b->bench->dev, &info);
	snprintf(card, sizeof(card), "%s; %s", info.name, *info.driver ? info.driver : "modelled");
	frag_scale_judge(b->replays, REPLAYS, &scale);
	frag_scale_profile(&scale, frag_cost_builtin(), card, out);
	return 0;
}

int frag_bench_put_profile(const struct frag_bench *bench, const struct frag_session_host *host,
			   const struct frag_sim_config *card, const char *path,
			   struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text profile = { 0 };
	FRAG_AUTO_FREE struct bench_replays *b = NULL;
	int rc;

	FRAG_TRY_CALLOC(b, 1, "replays", err);
	b->card = card;
	b->bench = bench;
	b->session.host = *host;
	rc = measure(b, &profile, err);
	for (size_t p = 0; p < FRAG_ARRAY_LEN(policies); p++)
		frag_policy_spec_destroy(b->specs[p]);
	return rc ?: frag_text_put(&profile, path, err);
}
