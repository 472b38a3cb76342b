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

/* On a card only what was replayed often enough to tell noise from difference: driver time, by
 * intervals that do not overlap, and what is the same every time. */
static bool same(const struct frag_suite_row *x, const struct frag_suite_row *y, bool card,
		 const struct frag_field *f)
{
	size_t n = f->type == FRAG_FIELD_BOOL ? sizeof(bool) : sizeof(uint64_t);
	const char *left = (const char *)x + f->offset, *right = (const char *)y + f->offset;
	const char *s, *t;

	if (f->type == FRAG_FIELD_TEXT) {
		s = *(const char *const *)left ?: "";
		t = *(const char *const *)right ?: "";
		return !strcmp(s, t);
	}
	if (card && !strcmp(f->name, "driver_ns"))
		return x->driver_low_ns <= y->driver_high_ns &&
		       y->driver_low_ns <= x->driver_high_ns;
	return (card && strcmp(f->name, "reserved_bytes") != 0) || !memcmp(left, right, n);
}

/* The first difference of a row; NULL: none. y NULL: it is only in one. */
static const struct frag_field *differs(const struct frag_suite_row *x,
					const struct frag_suite_row *y, bool card)
{
	const struct frag_field *f = frag_suite_row_shape.fields;

	while (!frag_field_ends(f) && same(x, y, card, f))
		f++;
	return frag_field_ends(f) ? NULL : f;
}

int frag_suite_compare(const struct frag_suite_result *x, const struct frag_suite_result *y,
		       struct frag_answer *a, size_t *differ, struct frag_err *err)
{
	struct change_row *rows =
		frag_answer_new(a, x->rows_count + y->rows_count + 1, sizeof(*rows));
	struct frag_suite_data *data = frag_answer_new(a, 1, sizeof(*data));
	size_t n = 0, both = 0;

	FRAG_CHECK_ALLOC(rows && data, "answer", err);
	if (x->card != y->card)
		return frag_fail(err, FRAG_EUSAGE,
				 "one is of the simulated division and one of the card's");
	for (size_t i = 0; i < x->rows_count; i++) {
		const struct frag_suite_row *row = &x->rows[i],
					    *other = frag_suite_result_find(y, row->workload,
									    row->policy);
		const struct frag_field *f = other ? differs(row, other, x->card) : NULL;
		const char *what = f ? f->name : "-", *before = "there", *after = "not there";

		both += other != NULL;
		if (f) {
			before = value(a, f, row);
			after = value(a, f, other);
		}
		if (f || !other)
			rows[n++] = FRAG_ROW_VALUES(change_row, CHANGE);
	}
	for (size_t i = 0; i < y->rows_count; i++) {
		const struct frag_suite_row *row = &y->rows[i];
		const char *what = "-", *before = "not there", *after = "there";

		if (!frag_suite_result_find(x, row->workload, row->policy))
			rows[n++] = FRAG_ROW_VALUES(change_row, CHANGE);
	}
	*differ = n;
	*data = (struct frag_suite_data){ .version = y->version, .changes = { rows, n } };
	frag_answer_data(a, &frag_suite_shape, data);
	a->title = "suite compare";
	frag_answer_csv(a, &frag_suite_change_shape, rows, n);
	frag_answer_remark(a, "%s (%s) and %s (%s): %zu rows in both", x->device, x->cufrag,
			   y->device, y->cufrag, both);
	if (n)
		frag_answer_table(a, &frag_suite_change_shape, rows, n)->top = 40;
	frag_answer_conclude(a, "%s%s",
			     n ? frag_answer_count(a, n, "row differs", "rows differ")
			       : "nothing differs",
			     x->card ? " beyond noise" : "");
	return 0;
}
