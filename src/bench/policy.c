/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy takes per operation on the allocs and frees of a trace: one cold pass
 * over an empty policy, then warm passes in which its memory is cached, timed as wholes;
 * then as many with the clock read around every call, for the percentiles. What is live after a
 * pass is freed, not timed. Nothing else happens in the loop: no metrics, no contents.
 */
#include "bench.h"

#include <stdlib.h>

#include <frag/base.h>
#include <frag/clock.h>

int frag_bench_ops_take(const struct frag_trace_dev *dev, struct frag_bench_ops *out,
			struct frag_err *err)
{
	*out = (struct frag_bench_ops){ .slots_count = dev->slots_count,
					.streams_count = dev->streams_count };
	FRAG_TRY_CALLOC(out->at, dev->events_count + 1, "operations", err);
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];
		bool alloc = e->kind == FRAG_EV_ALLOC;

		if (!alloc && e->kind != FRAG_EV_FREE && e->kind != FRAG_EV_FREE_COMPLETED)
			continue;
		out->at[out->count++] = (struct frag_bench_op){ .bytes = alloc ? e->bytes : 0,
								.slot = e->slot,
								.stream = e->stream };
	}
	return 0;
}

/* Classes of operations in the timed passes. */
enum { ALLOCS, FREES, CLASSES, KINDS = CLASSES + FRAG_CLASS_COUNT };

struct bench_run {
	struct frag_policy policy;
	const struct frag_bench_ops *ops;
	struct frag_block *blocks; /* by slot; granted 0 = none */
	struct frag_bench_policy *out;
	struct frag_hist hist[KINDS]; /* of the current timed pass */
};

static int oom(const struct frag_bench_op *o, struct frag_err *err)
{
	return frag_fail(err, FRAG_ECHECK, "cannot bench: out of memory at a request of %llu bytes",
			 (unsigned long long)o->bytes);
}

static int get(struct bench_run *r, const struct frag_bench_op *o, struct frag_err *err)
{
	struct frag_request req = { .bytes = o->bytes, .stream = o->stream };
	struct frag_block *b = &r->blocks[o->slot];
	int rc = r->policy.ops->alloc(r->policy.self, &req, b, err);

	b->stream = o->stream;
	b->requested = o->bytes;
	return rc;
}

static int put(struct bench_run *r, uint32_t slot, struct frag_err *err)
{
	int rc = r->policy.ops->free(r->policy.self, &r->blocks[slot], err);

	r->blocks[slot].granted = 0;
	return rc;
}

static int pass(struct bench_run *r, struct frag_err *err)
{
	for (size_t i = 0; i < r->ops->count; i++) {
		const struct frag_bench_op *o = &r->ops->at[i];
		int rc = o->bytes ? get(r, o, err) : put(r, o->slot, err);

		if (FRAG_UNLIKELY(rc))
			return rc == FRAG_OOM ? oom(o, err) : rc;
	}
	return 0;
}

static int timed_pass(struct bench_run *r, struct frag_err *err)
{
	for (unsigned k = 0; k < KINDS; k++)
		frag_hist_clear(&r->hist[k]);
	for (size_t i = 0; i < r->ops->count; i++) {
		const struct frag_bench_op *o = &r->ops->at[i];
		uint64_t t = frag_clock_ns();
		int rc = o->bytes ? get(r, o, err) : put(r, o->slot, err);

		t = frag_clock_ns() - t;
		if (FRAG_UNLIKELY(rc))
			return rc == FRAG_OOM ? oom(o, err) : rc;
		frag_hist_add(&r->hist[o->bytes ? ALLOCS : FREES], t);
		if (o->bytes)
			frag_hist_add(&r->hist[CLASSES + r->blocks[o->slot].cls], t);
	}
	return 0;
}

static int clear(struct bench_run *r, struct frag_err *err)
{
	for (uint32_t i = 0; i < r->ops->slots_count; i++) {
		if (r->blocks[i].granted)
			FRAG_TRY(put(r, i, err));
	}
	return 0;
}

static int one(struct bench_run *r, double *ns, struct frag_err *err)
{
	uint64_t t = frag_clock_ns();

	FRAG_TRY(pass(r, err));
	*ns = (double)(frag_clock_ns() - t) / (double)FRAG_MAX(r->ops->count, (size_t)1);
	return clear(r, err);
}

/* ---- percentiles ------------------------------------------------------------------- */

/* at: for each kind and each quantile its values in all passes. */
static void set_latencies(struct bench_run *r, uint64_t *at, unsigned count)
{
	for (unsigned i = 0; i < KINDS * FRAG_BENCH_QUANTILES; i++, at += count) {
		unsigned kind = i / FRAG_BENCH_QUANTILES;
		struct frag_bench_latency *l = kind == ALLOCS  ? &r->out->alloc_ns
					       : kind == FREES ? &r->out->free_ns
							       : &r->out->class_ns[kind - CLASSES];

		qsort(at, count, sizeof(*at), frag_compare_u64);
		l->count = r->hist[kind].count;
		l->at[i % FRAG_BENCH_QUANTILES] = (struct frag_bench_spread){
			.median_ns = at[count / 2], .min_ns = at[0], .max_ns = at[count - 1]
		};
	}
}

static int timed_passes(struct bench_run *r, unsigned count, struct frag_err *err)
{
	static const double q[FRAG_BENCH_QUANTILES] = { 0.5, 0.9, 0.99, 0.999 };
	FRAG_AUTO_FREE uint64_t *at = NULL;
	int rc = 0;

	FRAG_TRY_CALLOC(at, (size_t)KINDS * FRAG_BENCH_QUANTILES * count, "percentiles", err);
	for (unsigned i = 0; !rc && i < count; i++) {
		rc = timed_pass(r, err);
		for (unsigned n = 0; n < KINDS * FRAG_BENCH_QUANTILES; n++) {
			const struct frag_hist *h = &r->hist[n / FRAG_BENCH_QUANTILES];
			double part = q[n % FRAG_BENCH_QUANTILES];

			at[(size_t)n * count + i] = !h->count ? 0
						    : part    ? frag_hist_quantile(h, part)
							      : h->max;
		}
		if (!rc)
			rc = clear(r, err);
	}
	set_latencies(r, at, count);
	return rc;
}

static int passes(struct bench_run *r, unsigned count, struct frag_err *err)
{
	struct frag_bench_policy *out = r->out;
	FRAG_AUTO_FREE double *ns = NULL;
	uint64_t calls;
	int rc;

	FRAG_TRY_CALLOC(ns, count, "passes", err);
	rc = one(r, &out->cold_ns, err);
	calls = r->policy.env.dev->driver_calls;
	for (unsigned i = 0; !rc && i < count; i++)
		rc = one(r, &ns[i], err);
	out->warm_driver_calls = r->policy.env.dev->driver_calls - calls;
	qsort(ns, count, sizeof(*ns), frag_compare_double);
	out->warm_ns = ns[count / 2];
	out->warm_min_ns = ns[0];
	out->warm_max_ns = ns[count - 1];
	return rc ? rc : timed_passes(r, count, err);
}

int frag_bench_policy(const struct frag_policy_spec *spec, struct frag_device *dev,
		      const struct frag_bench_ops *ops, unsigned count, uint64_t limit_bytes,
		      struct frag_bench_policy *out, struct frag_err *err)
{
	struct frag_policy_env env = { .dev = dev,
				       .limit_bytes = limit_bytes,
				       .streams_count = ops->streams_count };
	struct bench_run r = { .ops = ops, .out = out };
	struct frag_device_info info;
	int rc;

	*out = (struct frag_bench_policy){ .ops = ops->count, .clock_ns = UINT64_MAX };
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t t = frag_clock_ns();

		out->clock_ns = FRAG_MIN(out->clock_ns, frag_clock_ns() - t);
	}
	frag_dev_info(dev, &info);
	env.device_total_bytes = info.total_bytes;
	FRAG_TRY_CALLOC(r.blocks, ops->slots_count + 1, "blocks", err);
	rc = frag_policy_create(spec, &env, &r.policy, err);
	if (!rc) {
		rc = passes(&r, count, err);
		frag_policy_destroy(&r.policy);
	}
	frag_host_free(r.blocks);
	return rc;
}
