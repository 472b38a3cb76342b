/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a section: policies in the order of their peak. Between policy and result its
 * columns are those of metrics.def. On a terminal that is too narrow, columns go that matter
 * least, then policies get short labels; a key below says so.
 */
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
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

/* Columns that a narrow terminal does without, the first one first. */
static const size_t spare[] = {
	offsetof(struct frag_metrics, driver_calls_count),
	offsetof(struct frag_metrics, peak_active_bytes),
	offsetof(struct frag_metrics, releasable_bytes),
	offsetof(struct frag_metrics, modelled_ns),
	offsetof(struct frag_metrics, non_releasable_bytes),
};

#define LABEL_LEAST 18u

struct layout {
	const struct frag_section *s;
	bool wide, gib, brief;
	size_t left_out;  /* of `spare` */
	size_t label_max; /* columns of a policy's text; 0 = all of it */
	struct frag_text *key;
	unsigned keys;
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

/* The policy as it would be typed; where that is too long its beginning, and a number of the key. */
static void put_policy(struct frag_table *t, struct layout *l, const char *policy)
{
	char mark[16];
	size_t n = 0, width = 0, most;

	if (!l->label_max || frag_text_width(policy) <= l->label_max) {
		frag_table_cell(t, "%s", policy);
		return;
	}
	snprintf(mark, sizeof(mark), "[%u]", ++l->keys);
	most = l->label_max - 1 - strlen(mark);
	/* whole characters */
	while (policy[n] && (width < most || (policy[n] & 0xc0) == 0x80))
		width += (policy[n++] & 0xc0) != 0x80;
	frag_table_cell(t, "%.*s\xe2\x80\xa6%s", (int)n, policy, mark);
	frag_text_addf(l->key, "%s %s\n", mark, policy);
}

/* In few words; the rest is in --csv and --json. */
static void put_outcome_brief(struct frag_table *t, const struct frag_result *r)
{
	if (!r->oom.happened && !r->m.ooms_count)
		frag_table_cell(t, "ok");
	else if (r->oom.happened && frag_result_stopped(r))
		frag_table_cell(t, "out of memory");
	else if (r->m.refused_again_count)
		frag_table_cell(t, "%" PRIu64 " refused, %" PRIu64 " recorded",
				FRAG_MAX(r->m.ooms_count, r->m.refused_again_count),
				r->m.refused_again_count);
	else
		frag_table_cell(t, "%" PRIu64 " refused", r->m.ooms_count);
}

static void put_outcome(struct frag_table *t, const struct frag_result *r)
{
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

/* Is this a column of the table? */
static bool shown(const struct layout *l, const struct field *f)
{
	for (size_t i = 0; i < l->left_out; i++)
		if (spare[i] == f->metric)
			return false;
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

static void fill(struct layout *l, const size_t *order, struct frag_table *t)
{
	const struct frag_section *s = l->s;

	*t = (struct frag_table){ 0 };
	l->keys = 0;
	add_columns(l, t);
	for (size_t i = 0; i < s->count; i++) {
		const struct frag_result *r = &s->results[order[i]];

		put_policy(t, l, r->policy);
		for (size_t f = 0; f < FRAG_ARRAY_LEN(fields); f++)
			if (shown(l, &fields[f]))
				put_metric(t, l, &fields[f], r);
		if (l->brief)
			put_outcome_brief(t, r);
		else
			put_outcome(t, r);
	}
	if (s->optimum.placed)
		add_trace_row(l, t, "(offline placement)", s->optimum.place_bytes);
	if (!s->optimum.hidden)
		add_trace_row(l, t, "(lower bound)", frag_section_bound(s));
}

/* Makes the table as wide as the terminal, as far as that can be. */
static void narrow(struct layout *l, size_t columns, const size_t *order, struct frag_table *t)
{
	size_t width, label;

	for (;; l->left_out++) {
		frag_table_release(t);
		fill(l, order, t);
		width = frag_table_width(t, &label);
		if (width <= columns || l->left_out == FRAG_ARRAY_LEN(spare) ||
		    (label > LABEL_LEAST && label - LABEL_LEAST >= width - columns))
			break;
		l->brief = true;
	}
	if (width > columns && label > LABEL_LEAST) {
		l->label_max = FRAG_MAX(label - FRAG_MIN(width - columns, label), LABEL_LEAST);
		frag_table_release(t);
		fill(l, order, t);
	}
	for (size_t i = 0; i < l->left_out; i++)
		for (size_t f = 0; f < FRAG_ARRAY_LEN(fields); f++)
			if (fields[f].metric == spare[i])
				frag_text_addf(l->key, "%s%s",
					       i ? ", " : "no room for: ", fields[f].head);
	if (l->left_out)
		frag_text_add(l->key, " (--csv FILE has everything)\n");
}

int frag_summary_table(const struct frag_section *s, bool wide, size_t columns,
		       struct frag_table *out, struct frag_text *key, struct frag_err *err)
{
	struct layout l = { .s = s, .wide = wide, .key = key };
	size_t *order = frag_host_calloc(s->count, sizeof(*order));
	uint64_t largest = 0;

	*out = (struct frag_table){ 0 };
	if (!order)
		return frag_fail_nomem(err, "table");
	frag_section_order(s, order);
	for (size_t i = 0; i < s->count; i++)
		largest = FRAG_MAX(largest, s->results[i].m.peak_reserved_bytes);
	l.gib = largest >= 4 * FRAG_GIB;
	fill(&l, order, out);
	if (columns && frag_table_width(out, NULL) > columns)
		narrow(&l, columns, order, out);
	frag_host_free(order);
	return 0;
}
