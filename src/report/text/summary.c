/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a section: policies in the order of their peak. Between policy and result its
 * columns are those of metrics.def. On a terminal that is too narrow the results become brief,
 * then columns go that matter least.
 */
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum shown { ALWAYS, WIDE, ANY };

struct field {
	size_t metric; /* offset in struct frag_metrics */
	const char *head, *unit;
	enum shown shown;
};

static const struct field fields[] = {
#define FRAG_METRIC_U64(name, unit, help)
#define FRAG_METRIC_F64(name, unit, help)
#define FRAG_COLUMN(metric, head, unit, shown) \
	{ offsetof(struct frag_metrics, metric), head, unit, shown },
#include "metrics/metrics.def"
#undef FRAG_METRIC_U64
#undef FRAG_METRIC_F64
#undef FRAG_COLUMN
};

static const char *const spare[] = {
	"calls", "active", "releasable", "driver", "non-releasable", NULL,
};

struct layout {
	const struct frag_section *s;
	bool wide, gib, brief;
};

static const struct frag_metric_info *info_of(const struct field *f)
{
	size_t n;
	const struct frag_metric_info *list = frag_metric_list(&n);

	while (n--)
		if (list[n].offset == f->metric)
			return &list[n];
	FRAG_BUG("column of no metric");
}

static double value_of(const struct field *f, const struct frag_result *r)
{
	const char *at = (const char *)&r->m + f->metric;

	return info_of(f)->type == FRAG_METRIC_T_U64 ? (double)*(const uint64_t *)at
						     : *(const double *)at;
}

static void put_bytes(struct frag_table *t, double bytes, bool gib)
{
	if (gib)
		frag_table_cell(t, "%.2f", bytes / (double)FRAG_GIB);
	else
		frag_table_cell(t, "%.1f", bytes / (double)FRAG_MIB);
}

static void put_metric(struct frag_table *t, const struct layout *l, const struct field *f,
		       const struct frag_result *r)
{
	double v = value_of(f, r);

	if (!isfinite(v))
		frag_table_cell(t, "-");
	else if (!strcmp(f->unit, "mem"))
		put_bytes(t, v, l->gib);
	else if (!strcmp(f->unit, "%"))
		frag_table_cell(t, "%.1f", 100.0 * v);
	else if (!strcmp(f->unit, "ms"))
		frag_table_cell(t, "%.2f", v / 1e6);
	else if (info_of(f)->type == FRAG_METRIC_T_F64)
		frag_table_cell(t, "%.2f", v);
	else
		frag_table_cell(t, "%.0f", v);
}

/* brief: in few words; the rest is in --csv and --json. */
static void put_outcome(struct frag_table *t, const struct frag_result *r, bool brief)
{
	uint64_t recorded = r->m.refused_again_count + r->m.granted_refusals_count;
	uint64_t n = r->m.ooms_count;

	if (!r->oom.happened && !n)
		frag_table_cell(t, "ok");
	else if (frag_result_stopped(r) && brief)
		frag_table_cell(t, "out of memory");
	else if (frag_result_stopped(r))
		frag_table_cell(t, "out of memory at event %" PRIu64, r->oom.event);
	else if (!r->oom.happened && n == recorded)
		frag_table_cell(t, "%" PRIu64 " refused, as when recorded", n);
	else if (!r->oom.happened)
		frag_table_cell(t, "%" PRIu64 " refused, %" PRIu64 " when recorded", n, recorded);
	else if (brief)
		frag_table_cell(t, "%" PRIu64 " refused, %" PRIu64 " recorded", n,
				r->m.refused_again_count);
	else if (!r->m.refused_again_count)
		frag_table_cell(t, "%" PRIu64 " requests skipped, first at event %" PRIu64, n,
				r->oom.event);
	else
		frag_table_cell(t,
				"%" PRIu64 " refused, %" PRIu64
				" of them when recorded, others from event %" PRIu64 " on",
				n, r->m.refused_again_count, r->oom.event);
}

/* Is this a column of the table? */
static bool shown(const struct layout *l, const struct field *f)
{
	if (!l->wide || f->shown != ANY)
		return l->wide || f->shown == ALWAYS;
	for (size_t i = 0; i < l->s->count; i++)
		if (value_of(f, &l->s->results[i]) > 0)
			return true;
	return false;
}

static void add_columns(const struct layout *l, struct frag_table *t)
{
	struct frag_table_column c = { "policy", "", true, "allocation policy and its options" };

	frag_table_column(t, &c);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(fields); i++) {
		const struct field *f = &fields[i];

		if (!shown(l, f))
			continue;
		c = (struct frag_table_column){ f->head, f->unit, false, info_of(f)->help };
		if (!strcmp(c.unit, "mem"))
			c.unit = l->gib ? "GiB" : "MiB";
		frag_table_column(t, &c);
	}
	c = (struct frag_table_column){ "result", "", true,
					"ok, or where the policy ran out of memory" };
	frag_table_column(t, &c);
}

/* A row about the trace, not a policy: only its size. */
static void add_trace_row(const struct layout *l, struct frag_table *t, const char *name,
			  uint64_t bytes)
{
	uint64_t bound = frag_section_bound(l->s);

	frag_table_cell(t, "%s", name);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(fields); i++) {
		size_t metric = fields[i].metric;

		if (!shown(l, &fields[i]))
			continue;
		if (metric == offsetof(struct frag_metrics, peak_reserved_bytes))
			put_bytes(t, (double)bytes, l->gib);
		else if (metric == offsetof(struct frag_metrics, reserved_over_bound_ratio) &&
			 bound)
			frag_table_cell(t, "%.2f", (double)bytes / (double)bound);
		else
			frag_table_cell(t, "-");
	}
	frag_table_cell(t, "%s", "");
}

static void fill(const struct layout *l, const size_t *order, struct frag_table *t)
{
	const struct frag_section *s = l->s;

	*t = (struct frag_table){ 0 };
	add_columns(l, t);
	for (size_t i = 0; i < s->count; i++) {
		const struct frag_result *r = &s->results[order[i]];

		frag_table_cell(t, "%s", r->policy);
		for (size_t f = 0; f < FRAG_ARRAY_LEN(fields); f++)
			if (shown(l, &fields[f]))
				put_metric(t, l, &fields[f], r);
		put_outcome(t, r, l->brief);
	}
	if (s->optimum.placed)
		add_trace_row(l, t, "(offline placement)", s->optimum.place_bytes);
	if (!s->optimum.hidden)
		add_trace_row(l, t, "(lower bound)", frag_section_bound(s));
}

int frag_summary_table(const struct frag_section *s, bool wide, size_t columns,
		       struct frag_table *out, struct frag_err *err)
{
	struct layout l = { .s = s, .wide = wide };
	FRAG_AUTO_FREE size_t *order = frag_host_calloc(s->count, sizeof(*order));
	uint64_t largest = 0;

	*out = (struct frag_table){ 0 };
	FRAG_CHECK_ALLOC(order, "table", err);
	frag_section_order(s, order);
	for (size_t i = 0; i < s->count; i++)
		largest = FRAG_MAX(largest, s->results[i].m.peak_reserved_bytes);
	l.gib = largest >= 4 * FRAG_GIB;
	fill(&l, order, out);
	if (columns && frag_table_width(out) > columns) {
		l.brief = true;
		frag_table_release(out);
		fill(&l, order, out);
	}
	out->room = columns;
	out->wraps = true;
	out->spare = spare;
	return 0;
}
