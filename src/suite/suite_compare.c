/* SPDX-License-Identifier: Apache-2.0 */
/* Two results: what differs beyond noise; see suite.h. */
#include "suite.h"

#include <string.h>

#define CHANGE(F, P, S) \
	F(S, TEXT, workload, row->workload, "workload", "its name") \
	F(S, TEXT, policy, row->policy, "policy", "with its options") \
	F(S, TEXT, what, what, "differs in", "the first measure that differs") \
	F(S, TEXT, before, before, "before", "in the first result", .right = true) \
	F(S, TEXT, after, after, "after", "in the second", .right = true)
FRAG_VALUED_ROW_AS(, frag_suite_change_shape, change_row, "suite_change", CHANGE,
		   "a row that differs");

static const char *value(struct frag_answer *a, const struct frag_field *f, const void *row)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_field_text(f, row, &t);
	return frag_answer_print(a, "%s", t.len ? t.s : "-");
}

/* On a card only driver time, by intervals that do not overlap, and what is the same every time. */
static bool same(const struct frag_suite_row *x, const struct frag_suite_row *y, bool card,
		 const struct frag_field *f, struct frag_answer *a)
{
	if (card && !strcmp(f->name, "driver_ns"))
		return x->driver_low_ns <= y->driver_high_ns &&
		       y->driver_low_ns <= x->driver_high_ns;
	if (card && strcmp(f->name, "reserved_bytes") != 0 && strcmp(f->name, "state") != 0)
		return true;
	return !strcmp(value(a, f, x), value(a, f, y));
}

/* Rows of x that y lacks, or (both) that differ. */
static size_t look(const struct frag_suite_result *x, const struct frag_suite_result *y, bool both,
		   struct change_row *rows, struct frag_answer *a)
{
	size_t n = 0;

	for (size_t i = 0; i < x->rows_count; i++) {
		const struct frag_suite_row *row = &x->rows[i], *other;
		const struct frag_field *f = frag_suite_row_shape.fields;
		const char *what = NULL, *before = both ? "there" : NULL,
			   *after = both ? NULL : "there";

		other = frag_suite_result_find(y, row->workload, row->policy);
		while (other && !frag_field_ends(f) && (!both || same(row, other, x->card, f, a)))
			f++;
		if (frag_field_ends(f))
			continue;
		if (other) {
			what = f->name;
			before = value(a, f, row);
			after = value(a, f, other);
		}
		rows[n++] = FRAG_ROW_VALUES(change_row, CHANGE);
	}
	return n;
}

int frag_suite_compare(const struct frag_suite_result *x, const struct frag_suite_result *y,
		       struct frag_answer *a, size_t *differ, struct frag_err *err)
{
	struct change_row *rows =
		frag_answer_new(a, x->rows_count + y->rows_count + 1, sizeof(*rows));
	struct frag_suite_data *data = frag_answer_new(a, 1, sizeof(*data));
	size_t n;

	FRAG_CHECK_ALLOC(rows && data, "answer", err);
	if (x->card != y->card)
		return FRAG_USAGE(err, "one is of the simulated division and one of the card's");
	n = look(x, y, true, rows, a);
	n += look(y, x, false, rows + n, a);
	*differ = n;
	*data = (struct frag_suite_data){ .version = y->version, .changes = { rows, n } };
	frag_answer_data(a, &frag_suite_shape, data);
	a->title = "suite compare";
	frag_answer_csv(a, &frag_suite_change_shape, rows, n);
	frag_answer_remark(a, "%s (%s) and %s (%s)", x->device, x->cufrag, y->device, y->cufrag);
	if (n)
		frag_answer_table(a, &frag_suite_change_shape, rows, n)->top = 40;
	frag_answer_conclude(a, "%s%s",
			     n ? frag_answer_count(a, n, "row differs", "rows differ")
			       : "nothing differs",
			     x->card ? " beyond noise" : "");
	return 0;
}
