/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as rows. Times of the driver are "modelled_ns" (measured where device.modelled is false);
 * host times are measured here, and all of them null where they are left out.
 */
#include "recording/settled_shape.h"
#include "rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- latencies -------------------------------------------------------------------------- */

struct latency_row {
	const char *call, *class; /* of tables */
	uint64_t count, min, p50, p90, p99, p999, max, total;
};

#define FIELD(type, member, ...) FRAG_FIELD(type, struct latency_row, member, __VA_ARGS__)
#define QUANTILE(name, member, help, ...) \
	FRAG_FIELD_AS(COUNT, name, struct latency_row, member, name, help, .unit = "ns", \
		      ##__VA_ARGS__)
static const struct frag_field latency_fields[] = {
	FRAG_FIELD_SHOWN(TEXT, struct latency_row, call, "call", "alloc or free"),
	FRAG_FIELD_SHOWN(TEXT, struct latency_row, class, "class", "how the request was served"),
	FIELD(COUNT, count, "count", "calls"),
	QUANTILE("min", min, "the fastest one", .spare = 3),
	QUANTILE("p50", p50, "median, in nanoseconds as the others"),
	QUANTILE("p90", p90, "90th percentile", .spare = 2),
	QUANTILE("p99", p99, "99th percentile"),
	QUANTILE("p99.9", p999, "99.9th percentile", .spare = 1),
	QUANTILE("max", max, "the slowest one"),
	QUANTILE("total", total, "sum of all"),
	FRAG_FIELD_END
};
#undef FIELD
static const struct frag_shape latency_shape =
	FRAG_SHAPE("latency", struct latency_row, latency_fields,
		   "time per call in nanoseconds; null: there was none");

#define ENTRY(F, P, S) \
	F(S, TEXT, class, NULL, "how the request was served") \
	F(S, OBJECT, latency, NULL, "time per call", .of = &latency_shape)
FRAG_ROW(latency_entry, "latency by class", ENTRY, "all, and by how a request was served");

static struct latency_row latency_of(const char *call, const char *class, const struct frag_hist *h)
{
	return (struct latency_row){ call,
				     class,
				     h->count,
				     h->min,
				     frag_hist_quantile(h, 0.5),
				     frag_hist_quantile(h, 0.9),
				     frag_hist_quantile(h, 0.99),
				     frag_hist_quantile(h, 0.999),
				     h->max,
				     h->sum };
}

/* NULL where nothing was counted. */
static const void *latency_data(const struct frag_hist *h, struct frag_answer *a)
{
	struct latency_row row = latency_of(NULL, NULL, h);

	return h->count ? FRAG_ANSWER_KEEP(a, row) : NULL;
}

/* {all, hit, split, …} */
static struct frag_rows latencies(const struct frag_hist *alloc, struct frag_answer *a)
{
	struct latency_entry *rows = frag_answer_new(a, FRAG_CLASS_COUNT + 1, sizeof(*rows));
	FRAG_AUTO_FREE struct frag_hist *all = frag_host_calloc(1, sizeof(*all));

	a->failed |= !all;
	if (!all || !rows)
		return (struct frag_rows){ 0 };
	for (unsigned c = 0; c < FRAG_CLASS_COUNT; c++) {
		frag_hist_merge(all, &alloc[c]);
		rows[c + 1] = (struct latency_entry){ frag_class_name((enum frag_class)c),
						      latency_data(&alloc[c], a) };
	}
	rows[0] = (struct latency_entry){ "all", latency_data(all, a) };
	return (struct frag_rows){ rows, FRAG_CLASS_COUNT + 1 };
}

void frag_latency_table(const char *title, const struct frag_hist *alloc,
			const struct frag_hist *release, struct frag_answer *a)
{
	struct latency_row *rows = frag_answer_new(a, FRAG_CLASS_COUNT + 1, sizeof(*rows));
	size_t n = 0;

	for (unsigned c = 0; rows && c < FRAG_CLASS_COUNT; c++)
		if (alloc[c].count)
			rows[n++] =
				latency_of("alloc", frag_class_name((enum frag_class)c), &alloc[c]);
	if (rows && release->count)
		rows[n++] = latency_of("free", "", release);
	if (!n)
		return;
	frag_answer_heading(a, "%s", title);
	frag_answer_table(a, &latency_shape, rows, n);
}

/* ---- driver calls, counters of the policy ----------------------------------------------- */

#define CALL(F, P, S) \
	F(S, TEXT, call, "driver call", "function of the driver") \
	F(S, COUNT, count, "done", "calls that succeeded") \
	F(S, COUNT, failed, "failed", "calls that were refused or failed") \
	F(S, BYTES, bytes, "bytes", "of those that succeeded", .unit = "MiB", .precision = 1) \
	F(S, NS, ns, "time", "in all of them", .unit = "ms", .precision = 3)
FRAG_ROW(call_row, "driver call", CALL, "calls of one kind");

static struct frag_rows calls_of(const struct frag_result *res, struct frag_answer *a)
{
	struct call_row *rows = frag_answer_new(a, FRAG_CALL_COUNT, sizeof(*rows));
	size_t n = 0;

	for (unsigned c = 0; rows && c < FRAG_CALL_COUNT; c++) {
		const struct frag_call_stat *st = &res->calls[c];

		if (st->count || st->failed)
			rows[n++] = (struct call_row){ frag_call_name((enum frag_call)c), st->count,
						       st->failed, st->bytes, st->ns };
	}
	return (struct frag_rows){ rows, n };
}

void frag_calls_table(const struct frag_result *res, struct frag_answer *a)
{
	struct frag_rows calls = calls_of(res, a);

	if (calls.count)
		frag_answer_gap(a);
	frag_answer_table(a, &call_row_shape, calls.rows, calls.count);
}

void frag_counters_table(const struct frag_result *res, struct frag_answer *a)
{
	struct frag_rows counters = frag_counter_rows(a, res->counters);

	if (counters.count)
		frag_answer_gap(a);
	frag_answer_table(a, &frag_counter_shape, counters.rows, counters.count);
}

/* ---- where the bytes are ---------------------------------------------------------------- */

#define LOSS(F, P, S) \
	F(S, COUNT, event, NULL, "index of the event after which this held") \
	F(S, US, time_us, NULL, "recorded time") \
	F(S, BYTES, reserved_bytes, NULL, \
	  "taken from the device; the sum of the parts that follow") \
	F(S, BYTES, requested_bytes, NULL, "live, as asked for") \
	F(S, BYTES, rounding_bytes, NULL, "granted beyond the request") \
	F(S, BYTES, waiting_bytes, NULL, "freed, waiting for another stream") \
	F(S, BYTES, non_releasable_bytes, NULL, "free, but in a segment with live blocks") \
	F(S, BYTES, releasable_bytes, NULL, "free, and a trim gives it back") \
	F(S, BYTES, other_bytes, NULL, "taken by the device beyond the policy's blocks") \
	F(S, BYTES, largest_free_bytes, NULL, "largest free block")
FRAG_ROW_SHAPE(, frag_loss_shape, frag_loss, "memory", LOSS, "where the bytes were at one moment");

#define SHARE(F, P, S) \
	F(S, TEXT, name, "where the bytes are", "what they are used for") \
	F(S, BYTES, bytes, "size", "of this part", .unit = "MiB", .precision = 1) \
	F(S, RATIO, ratio, "share", "of reserved memory", .unit = "%", .precision = 1)
FRAG_ROW(share_row, "share", SHARE, "a part of reserved memory");

void frag_loss_table(const struct frag_loss *l, struct frag_answer *a)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} parts[] = { { "requested", l->requested_bytes },
		      { "rounding", l->rounding_bytes },
		      { "waiting for a stream", l->waiting_bytes },
		      { "free, non-releasable", l->non_releasable_bytes },
		      { "free, releasable", l->releasable_bytes },
		      { "other", l->other_bytes },
		      { "reserved", l->reserved_bytes } };
	struct share_row *rows = frag_answer_new(a, FRAG_ARRAY_LEN(parts), sizeof(*rows));

	for (size_t i = 0; rows && i < FRAG_ARRAY_LEN(parts); i++)
		rows[i] = (struct share_row){
			parts[i].name, parts[i].bytes,
			l->reserved_bytes ? (double)parts[i].bytes / (double)l->reserved_bytes : NAN
		};
	frag_answer_table(a, &share_row_shape, rows, rows ? FRAG_ARRAY_LEN(parts) : 0);
	frag_answer_say(a, "largest free block: %s", FRAG_BYTES(l->largest_free_bytes));
}

/* ---- a result --------------------------------------------------------------------------- */

#define OOM(F, P, S) \
	F(S, COUNT, event, NULL, "index of the first request that could not be served") \
	F(S, US, time_us, NULL, "recorded time") \
	F(S, BYTES, bytes, NULL, "requested") \
	F(S, COUNT, step, NULL, "steps completed before it") \
	F(S, OBJECT, memory, NULL, "use of memory", .of = &frag_loss_shape)
FRAG_ROW(oom_row, "oom", OOM, "first out of memory; null: there was none");

#define HOST(F, P, S) \
	F(S, NS, host_ns, NULL, "wall time of the replay, whole loop") \
	F(S, REAL, events_per_s, NULL, "events replayed per second") \
	F(S, REAL, host_ns_per_op, NULL, "time per alloc or free, engine and metrics included") \
	F(S, MAP, alloc_ns, NULL, "time per alloc in the policy, sampled", \
	  .of = &latency_entry_shape) \
	F(S, OBJECT, free_ns, NULL, "time per free in the policy, sampled", .of = &latency_shape)
FRAG_ROW(host_row, "host", HOST, "measured on this machine; null with --no-host");

#define METRIC_TYPE(unit) \
	(!__builtin_strcmp(unit, "B")	 ? FRAG_FIELD_BYTES \
	 : !__builtin_strcmp(unit, "ns") ? FRAG_FIELD_NS \
					 : FRAG_FIELD_COUNT)
#define METRIC(n, h, type_, ...) \
	{ .name = #n, \
	  .help = h, \
	  .type = type_, \
	  .offset = offsetof(struct frag_result_row, m.n), \
	  ##__VA_ARGS__ },
static const struct frag_field result_fields[] = {
	FRAG_RESULT_HEAD(FRAG_VALUED_FIELD_, FRAG_VALUED_SHOWN_, frag_result_row)
#define FRAG_METRIC_U64(n, unit, help, ...) METRIC(n, help, METRIC_TYPE(unit), ##__VA_ARGS__)
#define FRAG_METRIC_F64(n, unit, help, ...) METRIC(n, help, FRAG_FIELD_REAL, ##__VA_ARGS__)
#include "metrics/metrics.def"
#undef FRAG_METRIC_U64
#undef FRAG_METRIC_F64
		FRAG_RESULT_TAIL(FRAG_VALUED_FIELD_, FRAG_VALUED_SHOWN_, frag_result_row)
			FRAG_FIELD_END
};
const struct frag_shape frag_result_shape = FRAG_SHAPE(
	"result", struct frag_result_row, result_fields, "one policy on one device of a trace");

static const char *outcome_of(const struct frag_result *r, struct frag_answer *a)
{
	uint64_t again = r->m.refused_again_count, n = r->m.ooms_count;
	uint64_t recorded = again + r->m.granted_refusals_count;

	if (!r->oom.happened && !n)
		return "ok";
	if (frag_result_stopped(r))
		return frag_answer_print(a, "out of memory at event %" PRIu64, r->oom.event);
	if (!r->oom.happened && n == recorded)
		return frag_answer_print(a, "%" PRIu64 " refused, as when recorded", n);
	if (!r->oom.happened)
		return frag_answer_print(a, "%" PRIu64 " refused, %" PRIu64 " when recorded", n,
					 recorded);
	if (!again)
		return frag_answer_print(a, "%" PRIu64 " requests skipped, first at event %" PRIu64,
					 n, r->oom.event);
	return frag_answer_print(a,
				 "%" PRIu64 " refused, %" PRIu64
				 " of them when recorded, others from event %" PRIu64 " on",
				 n, again, r->oom.event);
}

static const void *oom_of(const struct frag_oom *oom, struct frag_answer *a)
{
	return oom->happened
		       ? FRAG_ANSWER_KEEP(a, (struct oom_row){ oom->event, oom->time_us, oom->bytes,
							       oom->step, &oom->at })
		       : NULL;
}

static const void *host_of(const struct frag_result *res, struct frag_answer *a)
{
	struct host_row row = { res->m.host_ns, res->m.events_per_s, res->m.host_ns_per_op,
				latencies(res->alloc_host_ns, a),
				latency_data(&res->free_host_ns, a) };

	return FRAG_ANSWER_KEEP(a, row);
}

void frag_result_row(const struct frag_report *r, const struct frag_section *s,
		     const struct frag_result *res, struct frag_answer *a,
		     struct frag_result_row *out)
{
	bool oom = res->oom.happened;

	*out = (struct frag_result_row){ FRAG_RESULT_HEAD(FRAG_VALUE_, FRAG_VALUE_, )
						 FRAG_RESULT_TAIL(FRAG_VALUE_, FRAG_VALUE_, )
							 .m = res->m };
	if (r->omit_host) {
		out->m.host_ns = UINT64_MAX;
		out->m.events_per_s = out->m.host_ns_per_op = NAN;
	}
}
