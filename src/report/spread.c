/* SPDX-License-Identifier: Apache-2.0 */
/* Worst, median, least and imbalance of every policy over the units of a report. */

#include "answer/table.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"

FRAG_ROW_SHAPE(, frag_spread_shape, frag_spread_row, "spread", FRAG_SPREAD,
	       "one policy over all traces and devices; null where it completes on none");

/* ---- figures ------------------------------------------------------------------------ */

static const struct frag_result *find(const struct frag_section *s, const char *policy)
{
	for (size_t i = 0; i < s->count; i++) {
		if (!strcmp(s->results[i].policy, policy))
			return &s->results[i];
	}
	return NULL;
}

/* Its peak by the recorded one; NAN: that ran out of memory, or is not known. */
static double of_recorded(const struct frag_section *s, const struct frag_result *res)
{
	const struct frag_result *base = &s->results[s->baseline];

	return base->completed && s->baseline_recorded
		       ? (double)res->m.peak_reserved_bytes / (double)base->m.peak_reserved_bytes
		       : NAN;
}

/* False if a unit does not have this policy. peaks: scratch for all units. */
static bool measure(const struct frag_report *r, const char *policy, uint64_t *peaks,
		    struct frag_spread_row *out)
{
	double sum = 0, ratio;

	*out = (struct frag_spread_row){ .policy = policy, .units_count = r->count };
	for (size_t i = 0; i < r->count; i++) {
		const struct frag_result *res = find(&r->sections[i], policy);
		uint64_t peak = res ? res->m.peak_reserved_bytes : 0;

		if (!res)
			return false;
		out->setting = res->conf != NULL;
		if (!res->completed)
			continue;
		if (!out->completed_count || peak > out->worst_bytes) {
			out->worst = i;
			out->worst_bytes = peak;
		}
		if (!out->completed_count || peak < out->least_bytes) {
			out->least = i;
			out->least_bytes = peak;
		}
		ratio = of_recorded(&r->sections[i], res);
		out->ratio_logs += log(ratio);
		if (!out->completed_count || ratio > out->most_ratio) {
			out->most = i;
			out->most_ratio = ratio;
		}
		sum += (double)peak;
		out->sum_bytes += peak;
		peaks[out->completed_count++] = peak;
	}
	out->imbalance_ratio =
		sum > 0 ? (double)out->worst_bytes * (double)out->completed_count / sum : 1;
	return true;
}

/* What follows from worst and least. */
static void fill_in(const struct frag_report *r, uint64_t *peaks, struct frag_answer *a,
		    struct frag_spread_row *x)
{
	const struct frag_section *worst = &r->sections[x->worst], *least = &r->sections[x->least];
	size_t n = x->completed_count;
	const struct frag_gpu *card;

	x->completes = frag_answer_print(a, "%zu of %zu", n, r->count);
	if (!n) {
		x->worst_bytes = x->median_bytes = x->least_bytes = x->spread_bytes = UINT64_MAX;
		x->worst_device_ordinal = x->least_device_ordinal = UINT64_MAX;
		x->imbalance_ratio = x->above_mean_ratio = NAN;
		return;
	}
	qsort(peaks, n, sizeof(*peaks), frag_compare_u64);
	x->median_bytes = peaks[(n - 1) / 2] / 2 + peaks[n / 2] / 2;
	x->spread_bytes = x->worst_bytes - x->least_bytes;
	x->above_mean_ratio = x->imbalance_ratio - 1;
	x->worst_trace = worst->trace;
	x->worst_device_ordinal = worst->ordinal;
	x->least_trace = least->trace;
	x->least_device_ordinal = least->ordinal;
	x->worst_title = frag_section_title_text(worst, a);
	card = frag_section_card(worst, x->worst_bytes, false);
	x->card_label = card ? card->label : NULL;
}

struct frag_rows frag_spread_rows(const struct frag_report *r, struct frag_answer *a)
{
	size_t most = r->count > 1 ? r->sections[0].count : 0, count = 0;
	struct frag_spread_row *rows = frag_answer_new(a, most, sizeof(*rows));
	uint64_t *peaks = frag_answer_new(a, r->count, sizeof(*peaks));

	for (size_t k = 0; rows && peaks && k < most; k++) {
		struct frag_spread_row one;
		size_t at = count;

		if (!measure(r, r->sections[0].results[k].policy, peaks, &one))
			continue;
		fill_in(r, peaks, a, &one);
		for (; at && (one.completed_count > rows[at - 1].completed_count ||
			      (one.completed_count == rows[at - 1].completed_count &&
			       one.completed_count && one.worst_bytes < rows[at - 1].worst_bytes));
		     at--)
			rows[at] = rows[at - 1];
		rows[at] = one;
		count++;
	}
	return (struct frag_rows){ rows, count };
}

/* ---- what people read ------------------------------------------------------------------ */

/* Are the traces of several programs? */
static bool of_programs(const struct frag_report *r)
{
	for (size_t i = 1; i < r->count; i++)
		if (!frag_is_alike(r->sections[0].trace, r->sections[i].trace))
			return true;
	return false;
}

/* What the units are. */
static const char *noun_of(const struct frag_report *r)
{
	bool one_trace = true, one_device = true;

	if (of_programs(r))
		return "programs";
	for (size_t i = 0; i < r->count; i++) {
		one_trace &= !i || !r->sections[i].first_of_trace;
		one_device &= r->sections[i].devs_count == 1;
	}
	return one_trace ? "devices" : one_device ? "traces" : "traces and devices";
}

/* The least of those that complete everywhere, of PyTorch's settings if there is one. */
static const struct frag_spread_row *pick(const struct frag_rows *rows, bool programs)
{
	const struct frag_spread_row *x = rows->rows, *best = NULL;

	for (size_t i = 0; i < rows->count; i++)
		if (x[i].completed_count == x[i].units_count && x[i].worst_bytes &&
		    (!best ||
		     (x[i].setting == best->setting ? programs && x[i].sum_bytes < best->sum_bytes
						    : x[i].setting)))
			best = &x[i];
	return best;
}

static void conclude(const struct frag_report *r, const struct frag_rows *rows,
		     struct frag_answer *a)
{
	bool programs = of_programs(r);
	const struct frag_spread_row *x = pick(rows, programs);
	struct frag_text t = { 0 };

	if (!x) {
		frag_answer_conclude(a, "no policy completes on all %zu of them", r->count);
		return;
	}
	if (programs) {
		frag_text_addf(&t, "'%s' needs least for all of them%s: %s in all, at most %s",
			       x->policy, x->setting ? ", of PyTorch's settings" : "",
			       FRAG_BYTES(x->sum_bytes), FRAG_BYTES(x->worst_bytes));
	} else if (x->worst_bytes == x->least_bytes) {
		frag_text_addf(&t, "with '%s' each of them reserves %s", x->policy,
			       FRAG_BYTES(x->worst_bytes));
	} else {
		frag_text_addf(&t,
			       "the worst one decides: with '%s' that is %s with %s, %.0f %% above "
			       "the mean, and the one that needs least is ",
			       x->policy, x->worst_title, FRAG_BYTES(x->worst_bytes),
			       100 * x->above_mean_ratio);
		frag_section_title(&r->sections[x->least], &t);
		frag_text_addf(&t, " with %s", FRAG_BYTES(x->least_bytes));
	}
	if (x->card_label) {
		frag_text_add(&t, "; ");
		frag_section_card_kind(&r->sections[x->worst], &t);
		frag_text_addf(&t, " with room for each of them is %s", x->card_label);
	} else {
		frag_text_add(&t, "; no card has room for all of them");
	}
	frag_answer_conclude(a, "%s", frag_text_str(&t));
	a->failed |= t.failed;
	frag_text_release(&t);
}

/* ---- the chart: the peak of each unit with each policy ------------------------------------ */

#define COLUMNS(X, s) \
	X(s, COUNT, row, i) \
	X(s, TEXT, policy, x[i].policy) \
	X(s, COUNT, series, (uint64_t)(res - section->results)) \
	X(s, TEXT, unit, frag_section_title_text(section, a)) \
	X(s, BYTES, peak_reserved_bytes, res->m.peak_reserved_bytes) \
	X(s, RATIO, of_recorded_ratio, of_recorded(section, res)) \
	X(s, COUNT, completed, res->completed) \
	X(s, COUNT, worst, res->completed &&u == (relative ? x[i].most : x[i].worst))
FRAG_CSV_ROW(rank_row, COLUMNS)

static struct frag_rows rank_rows(const struct frag_report *r, const struct frag_rows *spread,
				  bool relative, struct frag_answer *a)
{
	struct rank_row *rows = frag_answer_new(a, spread->count * r->count, sizeof(*rows));
	const struct frag_spread_row *x = spread->rows;
	size_t n = 0;

	for (size_t i = 0; rows && i < spread->count; i++) {
		for (size_t u = 0; u < r->count; u++) {
			const struct frag_section *section = &r->sections[u];
			const struct frag_result *res = find(section, x[i].policy);

			rows[n++] = FRAG_CSV_VALUES(rank_row, COLUMNS);
		}
	}
	return (struct frag_rows){ rows, n };
}

static void say_title(const struct frag_report *r, const struct frag_spread_row *x, bool relative,
		      struct frag_title *t)
{
	double mean = exp(x->ratio_logs / (double)x->completed_count);

	if (relative) {
		frag_text_addf(&t->text, "%s needs %s of the recorded (geometric mean), ",
			       x->policy, frag_title_percent(t, "mean_ratio", mean, 0));
		frag_text_addf(&t->text, "at most %s: ",
			       frag_title_percent(t, "most_ratio", x->most_ratio, 0));
		frag_section_title(&r->sections[x->most], &t->text);
	} else if (!x->completed_count) {
		frag_text_add(&t->text, "Every policy runs out of memory somewhere");
	} else if (x->worst_bytes == x->least_bytes) {
		frag_text_addf(&t->text, "With %s each needs %s", x->policy,
			       frag_title_bytes(t, "worst_bytes", x->worst_bytes));
	} else {
		const char *worst = frag_title_bytes(t, "worst_bytes", x->worst_bytes);
		const char *by = frag_title_percent(t, "above_mean_ratio", x->above_mean_ratio, 0);

		frag_text_addf(&t->text, "%s needs most with %s: %s, %s above the mean",
			       x->worst_title, x->policy, worst, by);
	}
}

static void add_chart(const struct frag_report *r, const struct frag_rows *spread,
		      struct frag_answer *a)
{
	const struct frag_spread_row *x = of_programs(r) ? pick(spread, true) : NULL;
	bool relative = x && isfinite(x->ratio_logs);
	struct frag_answer_chart chart = {
		.script = "ranks",
		.shape = &rank_row_shape,
		.rows = rank_rows(r, spread, relative, a),
		.extra = relative || !of_programs(r) ? noun_of(r) : "traces",
		.subtitle = frag_answer_print(a, "Peak reserved memory of %zu %s; replayed on %s",
					      r->count, noun_of(r), r->card.name),
		.caption = relative ? "Peak reserved memory of each of them with each policy, by "
				      "the recorded one."
				    : "Peak reserved memory of each of them with each policy. The "
				      "worst one decides which card will do; far apart, the cards "
				      "are loaded unevenly."
	};
	struct frag_title title = { 0 };

	say_title(r, x ?: spread->rows, relative, &title);
	frag_answer_take_title(a, &title, &chart);
	frag_answer_chart(a, &chart);
}

/* ---- several programs: a row for each, with a column for each policy --------------------- */

struct cell {
	union {
		const char *name;
		uint64_t peak; /* UINT64_MAX: it does not complete */
	};
};

static struct frag_part *add_matrix(const struct frag_report *r, const struct frag_rows *spread,
				    struct frag_answer *a)
{
	const struct frag_spread_row *x = spread->rows;
	size_t width = FRAG_MIN(spread->count, FRAG_TABLE_COLUMNS - 1u) + 1; /* of a row */
	struct frag_field *fields = frag_answer_new(a, width + 1, sizeof(*fields));
	struct cell *cells = frag_answer_new(a, (r->count + 1) * width, sizeof(*cells));
	struct frag_shape shape = FRAG_SHAPE("matrix", *cells, fields, NULL);

	if (!fields || !cells)
		return NULL;
	shape.size *= width;
	fields[0] = (struct frag_field)FRAG_FIELD(TEXT, struct cell, name, "program",
						  "recording, with its device");
	cells[r->count * width].name = "together";
	for (size_t i = 0; i < r->count; i++)
		cells[i * width].name = frag_section_title_text(&r->sections[i], a);
	for (size_t k = 0; k + 1 < width; k++) {
		struct cell *column = cells + k + 1;

		fields[k + 1] = (struct frag_field){
			.name = x[k].policy,
			.head = x[k].policy + (strncmp(x[k].policy, "pytorch:", 8) ? 0 : 8),
			.help = "peak reserved with this policy; none where it does not complete",
			.type = FRAG_FIELD_BYTES,
			.offset = (k + 1) * sizeof(*cells),
			.unit = "GiB",
			.precision = 2
		};
		for (size_t i = 0; i < r->count; i++) {
			const struct frag_result *res = find(&r->sections[i], x[k].policy);

			column[i * width].peak =
				res->completed ? res->m.peak_reserved_bytes : UINT64_MAX;
		}
		column[r->count * width].peak =
			x[k].completed_count == r->count ? x[k].sum_bytes : UINT64_MAX;
	}
	if (spread->count >= width)
		frag_answer_remark(a, "%zu policies more: --json has all",
				   spread->count - width + 1);
	return frag_answer_table(a, FRAG_ANSWER_KEEP(a, shape), cells, r->count + 1);
}

void frag_spread_parts(const struct frag_report *r, bool page, struct frag_answer *a)
{
	struct frag_rows rows = frag_spread_rows(r, a);
	struct frag_part *table;

	if (!rows.count)
		return;
	if (page) {
		frag_answer_heading(a, "All %zu %s together", r->count, noun_of(r));
		conclude(r, &rows, a);
	} else {
		frag_answer_gap(a);
		frag_answer_remark(a, "all %zu %s together: peak reserved of each", r->count,
				   noun_of(r));
	}
	table = of_programs(r) ? add_matrix(r, &rows, a)
			       : frag_answer_table(a, &frag_spread_shape, rows.rows, rows.count);
	if (table)
		table->file = of_programs(r) ? "programs.csv" : "spread.csv";
	if (page)
		add_chart(r, &rows, a);
	else
		conclude(r, &rows, a);
}
