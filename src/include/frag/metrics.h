/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics: exact counters, a time series of bounded size that never loses a
 * peak, log-linear latency histograms. The list of scalar metrics is
 * src/metrics/metrics.def: text, CSV, JSON and docs are generated from it.
 *
 * Ownership: plain values copied out; struct frag_series and frag_hist own
 * their arrays (init/release).
 */
#ifndef FRAG_METRICS_H
#define FRAG_METRICS_H

#include <frag/base.h>
#include <frag/device.h>
#include <frag/error.h>
#include <frag/policy.h>

/* ---- latency histograms ------------------------------------------------ */

/*
 * Log-linear: 32 sub-buckets per power of two, so a value is reported at most 1/32 (3.125 %) too
 * high; 0..63 are exact. Range 0 .. 2^40-1 ns; larger values are counted in `over`, and `max` keeps
 * the largest. Recording does not allocate.
 */
#define FRAG_HIST_SUB 32u
#define FRAG_HIST_BUCKETS ((40u - 5u + 1u) * FRAG_HIST_SUB)
struct frag_hist {
	uint64_t count, over, sum, min, max;
	uint32_t bucket[FRAG_HIST_BUCKETS];
};
void frag_hist_clear(struct frag_hist *h);
void frag_hist_add(struct frag_hist *h, uint64_t value);
void frag_hist_merge(struct frag_hist *into, const struct frag_hist *from);
/* q in 0..1; upper edge of the bucket, at most max. 0 if empty. */
uint64_t frag_hist_quantile(const struct frag_hist *h, double q);

/* ---- time series ------------------------------------------------------- */

#define FRAG_SERIES_LIST(X) \
	X(requested) /* live, as asked for */ \
	X(allocated) /* live, granted */ \
	X(active)    /* live + waiting for a stream */ \
	X(reserved)  /* physical bytes taken from the device */

/* The use of the reserved bytes at one moment; the parts add up to reserved. */
struct frag_loss {
	uint64_t event; /* index of the event after which this was measured */
	uint64_t time_us;
	uint64_t requested_bytes;
	uint64_t rounding_bytes;       /* granted - requested of live blocks */
	uint64_t waiting_bytes;	       /* granted, waiting for a stream */
	uint64_t non_releasable_bytes; /* free in segments (pages) with live blocks */
	uint64_t releasable_bytes;
	uint64_t other_bytes; /* reserved, but not in the policy's own blocks (rounding) */
	uint64_t reserved_bytes;
	uint64_t largest_free_bytes;
};

/* One window of events: extremes and the last value of each curve. */
struct frag_window {
	uint64_t first_event, last_event; /* inclusive */
	uint64_t first_us, last_us;
#define FRAG_X_(name) uint64_t name##_min, name##_max, name##_last;
	FRAG_SERIES_LIST(FRAG_X_)
#undef FRAG_X_
};

/* At most `cap` windows. When full, neighbours merge and windows become twice as long. */
struct frag_series {
	struct frag_window *windows;
	size_t count, cap;
	uint64_t events_per_window;
	struct frag_loss *losses; /* sampled at window ends, at most cap */
	size_t losses_count;
};

/* ---- results ----------------------------------------------------------- */

struct frag_metrics {
#define FRAG_METRIC_U64(name, unit, help, ...) uint64_t name;
#define FRAG_METRIC_F64(name, unit, help, ...) double name;
#include "metrics/metrics.def"
#undef FRAG_METRIC_U64
#undef FRAG_METRIC_F64
};

enum frag_metric_type { FRAG_METRIC_T_U64, FRAG_METRIC_T_F64 };
struct frag_metric_info {
	const char *name, *unit, *help;
	enum frag_metric_type type;
	size_t offset; /* in struct frag_metrics */
};
const struct frag_metric_info *frag_metric_list(size_t *count);

struct frag_oom {
	bool happened;
	uint64_t event; /* index of the first alloc that could not be served */
	uint64_t time_us;
	uint64_t bytes;	     /* requested */
	uint64_t step;	     /* steps completed before it */
	struct frag_loss at; /* the state of memory */
};

/* A request that was refused in the recording, and what this policy did with it. */
#define FRAG_REFUSED_KEPT 64u
struct frag_refused {
	uint64_t event, time_us, bytes, step; /* as in struct frag_oom */
	bool served;
	struct frag_loss at; /* after the request, if it was not served */
};

/* One of a policy's own statistics. */
struct frag_counter {
	char *name;
	int64_t value;
};
void frag_counters_free(struct frag_counter *counters);

struct frag_result {
	char *policy; /* as given */
	char *params; /* options that differ from their defaults */
	char *conf;   /* the options for the environment variable below; "" = the defaults, NULL =
		       * the variable cannot express them */
	char *conf_variable;
	char *plan;	       /* the source of its plan, "first 8 of 16 steps"; NULL = no plan */
	uint32_t policy_flags; /* FRAG_POLICY_… */
	char *trace;	       /* name */
	uint32_t device_ordinal;
	bool completed;
	bool restored; /* started from the recording's initial state */
	struct frag_oom oom;
	struct frag_refused *refused; /* the first FRAG_REFUSED_KEPT that the replay reached */
	size_t refused_count;
	struct frag_metrics m;
	struct frag_loss peak; /* at the moment of peak reserved */
	struct frag_series series;
	struct frag_hist alloc_host_ns[FRAG_CLASS_COUNT]; /* sampled, see docs/metrics.md */
	struct frag_hist free_host_ns;
	struct frag_hist alloc_modelled_ns[FRAG_CLASS_COUNT]; /* driver time of every alloc */
	struct frag_hist free_modelled_ns;
	struct frag_call_stat calls[FRAG_CALL_COUNT];
	struct frag_counter *counters; /* the policy's own, up to a NULL name; NULL = none */
};
void frag_result_release(struct frag_result *r);

#endif
