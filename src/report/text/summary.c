/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a section: policies in the order of their peak. */
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct field {
	struct frag_table_column column;		/* unit "mem": the unit of the table */
	bool narrow;					/* also on a terminal */
	uint64_t (*value)(const struct frag_result *r); /* left out if 0 for all; NULL = never */
	void (*put)(struct frag_table *t, const struct frag_result *r, bool gib);
};

static void put_bytes(struct frag_table *t, uint64_t bytes, bool gib)
{
	if (gib)
		frag_table_cell(t, "%.2f", (double)bytes / (double)FRAG_GIB);
	else
		frag_table_cell(t, "%.1f", (double)bytes / (double)FRAG_MIB);
}

static void put_policy(struct frag_table *t, const struct frag_result *r, bool gib)
{
	(void)gib;
	frag_table_cell(t, "%s", r->policy);
}

static void put_ratio(struct frag_table *t, const struct frag_result *r, bool gib)
{
	(void)gib;
	if (isfinite(r->m.efficiency_ratio))
		frag_table_cell(t, "%.1f", 100.0 * r->m.efficiency_ratio);
	else
		frag_table_cell(t, "-");
}

static void put_bound_ratio(struct frag_table *t, const struct frag_result *r, bool gib)
{
	(void)gib;
	if (isfinite(r->m.reserved_over_bound_ratio))
		frag_table_cell(t, "%.2f", r->m.reserved_over_bound_ratio);
	else
		frag_table_cell(t, "-");
}

#define PUT_BYTES(fn, expr) \
	static uint64_t fn##_value(const struct frag_result *r) \
	{ \
		return expr; \
	} \
	static void fn(struct frag_table *t, const struct frag_result *r, bool gib) \
	{ \
		put_bytes(t, fn##_value(r), gib); \
	}
PUT_BYTES(put_reserved, r->m.peak_reserved_bytes)
PUT_BYTES(put_active, r->m.peak_active_bytes)
PUT_BYTES(put_rounding, r->peak.rounding_bytes)
PUT_BYTES(put_waiting, r->peak.waiting_bytes)
PUT_BYTES(put_non_releasable, r->peak.non_releasable_bytes)
PUT_BYTES(put_releasable, r->peak.releasable_bytes)
PUT_BYTES(put_other, r->peak.other_bytes)

static void put_calls(struct frag_table *t, const struct frag_result *r, bool gib)
{
	(void)gib;
	frag_table_cell(t, "%" PRIu64, r->m.driver_calls_count);
}

static void put_driver_ms(struct frag_table *t, const struct frag_result *r, bool gib)
{
	(void)gib;
	frag_table_cell(t, "%.2f", (double)r->m.modelled_ns / 1e6);
}

static uint64_t retries_value(const struct frag_result *r)
{
	return r->m.retries_count;
}

static void put_retries(struct frag_table *t, const struct frag_result *r, bool gib)
{
	(void)gib;
	frag_table_cell(t, "%" PRIu64, r->m.retries_count);
}

static void put_outcome(struct frag_table *t, const struct frag_result *r, bool gib)
{
	(void)gib;
	if (!r->oom.happened && !r->m.ooms_count)
		frag_table_cell(t, "ok");
	else if (!r->oom.happened)
		frag_table_cell(t, "%" PRIu64 " refused, as when recorded",
				r->m.refused_again_count);
	else if (!frag_result_stopped(r) && r->m.refused_again_count)
		frag_table_cell(t,
				"%" PRIu64 " requests refused, %" PRIu64
				" of them when recorded, first at event %" PRIu64,
				r->m.ooms_count, r->m.refused_again_count, r->oom.event);
	else if (!frag_result_stopped(r))
		frag_table_cell(t, "%" PRIu64 " requests skipped, first at event %" PRIu64,
				r->m.ooms_count, r->oom.event);
	else
		frag_table_cell(t, "out of memory at event %" PRIu64, r->oom.event);
}

static const struct field fields[] = {
	{ { "policy", "", true, "allocation policy and its options" }, true, NULL, put_policy },
	{ { "reserved", "mem", false, "largest physical memory taken from the device" },
	  true,
	  NULL,
	  put_reserved },
	{ { "active", "mem", false, "largest memory in use: live, or waiting for a stream" },
	  true,
	  NULL,
	  put_active },
	{ { "efficiency", "%", false, "peak active / peak reserved" }, true, NULL, put_ratio },
	{ { "bound ratio", "", false, "peak reserved / lower bound: 1.00 cannot be beaten" },
	  false,
	  NULL,
	  put_bound_ratio },
	{ { "rounding", "mem", false, "at peak reserved: granted beyond the request" },
	  false,
	  put_rounding_value,
	  put_rounding },
	{ { "waiting", "mem", false, "at peak reserved: freed, waiting for another stream" },
	  false,
	  put_waiting_value,
	  put_waiting },
	{ { "non-releasable", "mem", false,
	    "at peak reserved: free, but in a segment with live blocks" },
	  true,
	  NULL,
	  put_non_releasable },
	{ { "releasable", "mem", false, "at peak reserved: free, a trim would give it back" },
	  true,
	  NULL,
	  put_releasable },
	{ { "other", "mem", false,
	    "at peak reserved: taken by the device beyond the policy's blocks" },
	  false,
	  put_other_value,
	  put_other },
	{ { "calls", "", false, "calls into the driver" }, true, NULL, put_calls },
	{ { "driver", "ms", false, "time in the driver, all calls" }, true, NULL, put_driver_ms },
	{ { "retries", "", false, "allocations served only after cached memory was given back" },
	  false,
	  retries_value,
	  put_retries },
	{ { "result", "", true, "ok, or where the policy ran out of memory" },
	  true,
	  NULL,
	  put_outcome },
};

/* Is field f a column of this table? */
static bool shown(const struct frag_section *s, size_t f, bool wide)
{
	uint64_t any = 0;

	if (!wide || !fields[f].value)
		return wide || fields[f].narrow;
	for (size_t i = 0; i < s->count; i++)
		any |= fields[f].value(&s->results[i]);
	return any != 0;
}

static void add_columns(const struct frag_section *s, struct frag_table *t, bool wide, bool gib)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(fields); i++) {
		struct frag_table_column c = fields[i].column;

		if (!shown(s, i, wide))
			continue;
		if (!strcmp(c.unit, "mem"))
			c.unit = gib ? "GiB" : "MiB";
		frag_table_column(t, &c);
	}
}

/* A row about the trace, not a policy: only its size. */
static void add_trace_row(const struct frag_section *s, struct frag_table *t, const char *name,
			  uint64_t bytes, bool wide, bool gib)
{
	uint64_t bound = frag_section_bound(s);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(fields); i++) {
		if (!shown(s, i, wide))
			continue;
		if (i == 0)
			frag_table_cell(t, "%s", name);
		else if (fields[i].put == put_reserved)
			put_bytes(t, bytes, gib);
		else if (fields[i].put == put_bound_ratio && bound)
			frag_table_cell(t, "%.2f", (double)bytes / (double)bound);
		else
			frag_table_cell(t, "%s", fields[i].column.left ? "" : "-");
	}
}

int frag_summary_table(const struct frag_section *s, bool wide, struct frag_table *out,
		       struct frag_err *err)
{
	size_t *order = frag_host_calloc(s->count, sizeof(*order));
	uint64_t largest = 0;
	bool gib;

	*out = (struct frag_table){ 0 };
	if (!order)
		return frag_fail_nomem(err, "table");
	frag_section_order(s, order);
	for (size_t i = 0; i < s->count; i++)
		largest = FRAG_MAX(largest, s->results[i].m.peak_reserved_bytes);
	gib = largest >= 4 * FRAG_GIB;
	add_columns(s, out, wide, gib);
	for (size_t i = 0; i < s->count; i++) {
		for (size_t f = 0; f < FRAG_ARRAY_LEN(fields); f++) {
			if (shown(s, f, wide))
				fields[f].put(out, &s->results[order[i]], gib);
		}
	}
	if (s->optimum.placed)
		add_trace_row(s, out, "(offline placement)", s->optimum.place_bytes, wide, gib);
	if (!s->optimum.hidden)
		add_trace_row(s, out, "(lower bound)", frag_section_bound(s), wide, gib);
	frag_host_free(order);
	return 0;
}
