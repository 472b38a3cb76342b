/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `async` on the simulated card against what a real cudaMemPool did with the
 * same operations (H200, driver 580): three modes, six workloads. The recordings
 * are too big for the repository: skipped where they are absent.
 */
#include <frag/replay.h>
#include <frag/trace.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TORCH FRAG_SHARED_TRACES "/torch/"
#define ASYNC FRAG_SHARED_TRACES "/async/"

struct mode {
	const char *name, *policy;
	uint64_t sync_every;
};

static const struct mode modes[] = {
	{ "keep", "async", 0 },
	{ "keepsync", "async", 1000 },
	{ "trim", "async:release-threshold=0", 1000 },
};
static const char *const workloads[] = { "gnn", "varlen", "serve", "vision", "lora", "moe" };

struct row {
	const char *workload;
	const struct mode *mode;
};

/* The measured curve: reserved bytes after every operation, from its changes. */
struct curve {
	uint64_t op, reserved; /* the change that comes next */
	uint64_t now, peak;
	FILE *f;
};

static void next_change(struct curve *c)
{
	unsigned long long op, reserved, used;

	if (fscanf(c->f, "%llu,%llu,%llu", &op, &reserved, &used) != 3)
		op = UINT64_MAX;
	else
		c->reserved = reserved;
	c->op = op;
}

static void curve_open(struct curve *c, const char *path)
{
	char head[128];

	*c = (struct curve){ .f = fopen(path, "r") };
	assert_non_null(c->f);
	assert_non_null(fgets(head, sizeof(head), c->f));
	next_change(c);
}

static uint64_t curve_at(struct curve *c, uint64_t op)
{
	while (c->op <= op) {
		c->now = c->reserved;
		c->peak = c->now > c->peak ? c->now : c->peak;
		next_change(c);
	}
	return c->now;
}

static bool counts(const struct frag_event *e)
{
	return e->kind == FRAG_EV_ALLOC || e->kind == FRAG_EV_FREE ||
	       e->kind == FRAG_EV_FREE_COMPLETED;
}

static void follow_curve(struct frag_run *run, struct frag_device *dev,
			 const struct frag_trace_dev *td, struct curve *c, double *worst)
{
	struct frag_err err = { 0 };
	uint64_t op = 0;

	*worst = 0;
	for (size_t i = 0; i < td->events_count; i++) {
		struct frag_event e = td->events[i];
		double want, got;

		e.stream = 0; /* everything was measured on one stream */
		if (frag_run_feed(run, &e, 1, &err))
			fail_msg("%s", err.msg);
		if (!counts(&e))
			continue;
		want = (double)curve_at(c, ++op);
		got = (double)dev->reserved_bytes;
		if (want > 0 && (got > want ? got - want : want - got) / want > *worst)
			*worst = (got > want ? got - want : want - got) / want;
	}
}

static void measured(void **state)
{
	const struct row *row = *state;
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	struct frag_run_options opt;
	struct frag_policy_spec *spec;
	struct frag_device *dev;
	struct frag_trace *t;
	struct frag_run *run;
	struct frag_err err = { 0 };
	char path[512];
	struct curve c;
	double worst;

	snprintf(path, sizeof(path), ASYNC "%s.%s.csv", row->workload, row->mode->name);
	if (access(path, R_OK) != 0 || getenv("FRAG_TEST_QUICK"))
		skip();
	curve_open(&c, path);
	snprintf(path, sizeof(path), TORCH "%s.default.pickle.xz", row->workload);
	if (frag_trace_read(path, NULL, &t, &err))
		fail_msg("%s", err.msg);
	frag_run_options_defaults(&opt);
	opt.sync_every = row->mode->sync_every;
	assert_int_equal(frag_policy_spec_parse(row->mode->policy, &spec, &err), 0);
	assert_int_equal(frag_sim_open(&card, &dev, &err), 0);
	assert_int_equal(frag_run_create(spec, dev, &t->devs[0], &opt, &run, &err), 0);
	follow_curve(run, dev, &t->devs[0], &c, &worst);
	if (worst > 0.05)
		fail_msg("the curve is off by %.1f %%", 100 * worst);
	if (dev->reserved_peak_bytes != c.peak)
		fail_msg("peak %llu, measured %llu", (unsigned long long)dev->reserved_peak_bytes,
			 (unsigned long long)c.peak);
	frag_run_destroy(run);
	frag_dev_close(dev);
	frag_policy_spec_destroy(spec);
	frag_trace_destroy(t);
	fclose(c.f);
}

int main(void)
{
	static struct row rows[FRAG_ARRAY_LEN(workloads) * FRAG_ARRAY_LEN(modes)];
	static char names[FRAG_ARRAY_LEN(rows)][40];
	struct CMUnitTest tests[FRAG_ARRAY_LEN(rows)];
	size_t n = 0;

	for (size_t w = 0; w < FRAG_ARRAY_LEN(workloads); w++) {
		for (size_t m = 0; m < FRAG_ARRAY_LEN(modes); m++, n++) {
			rows[n] = (struct row){ workloads[w], &modes[m] };
			snprintf(names[n], sizeof(names[n]), "%s %s", workloads[w], modes[m].name);
			tests[n] = (struct CMUnitTest){ .name = names[n],
							.test_func = measured,
							.initial_state = &rows[n] };
		}
	}
	return _cmocka_run_group_tests("async", tests, n, NULL, NULL);
}
