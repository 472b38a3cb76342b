/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of diagnose: the verdict, each finding with its lines and numbers, and notes. */
#include "diagnose.h"

#include "answer/row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHARTS_MAX 8u /* on a page */

#define NUMBER(F, P, S) \
	F(S, TEXT, name, NULL, "its name ends with the unit") \
	P(S, TEXT, label, "number", "what it is") \
	P(S, TEXT, text, "value", "with its unit", .right = true) \
	F(S, REAL, value, NULL, "value")
FRAG_ROW(number, "number", NUMBER, "a number that a finding rests on, by name");

#define FINDING(F, P, S) \
	F(S, TEXT, verdict, "verdict", "what is wrong, or steady") \
	F(S, TEXT, about, "of", "trace, device or card") \
	F(S, TEXT, text, "finding", "one sentence") \
	F(S, TEXTS, lines, "lines", "lines of the program to blame, the worst first") \
	F(S, MAP, numbers, NULL, "what the finding rests on", .of = &number_shape)
FRAG_ROW(finding, "finding", FINDING, "one thing that is wrong");

#define DIAGNOSIS(F, P, S) \
	F(S, TEXT, verdict, "verdict", "that of the worst finding") \
	F(S, LIST, findings, NULL, "the worst first", .of = &finding_shape) \
	F(S, TEXTS, notes, NULL, "worth knowing, nothing wrong")
struct diagnosis {
	FRAG_ROW_MEMBERS(DIAGNOSIS)
};
FRAG_ROW_SHAPE(, frag_diagnosis_shape, diagnosis, "diagnose", DIAGNOSIS,
	       "what is wrong with the memory of a program");

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), e = strlen(end);

	return n >= e && !strcmp(name + n - e, end);
}

/* "grown_bytes" is "grown" with "2.44 GiB", "line_share_ratio" is "line share" with "87 %". */
static struct number number_of(struct frag_answer *a, const char *name, double v)
{
	bool ratio = ends_with(name, "_ratio"), ns = ends_with(name, "_ns");
	bool bytes = ends_with(name, "_bytes") || strstr(name, "bytes_per");
	const char *unit = ends_with(name, "_bytes")   ? "_bytes"
			   : ends_with(name, "_count") ? "_count"
			   : ratio		       ? "_ratio"
			   : ns			       ? "_ns"
						       : "";
	char label[64];
	struct frag_text text = { 0 };

	snprintf(label, sizeof(label), "%.*s", (int)(strlen(name) - strlen(unit)), name);
	for (char *p = label; *p; p++)
		*p = *p == '_' ? ' ' : *p;
	if (!strncmp(label, "mann kendall", 12))
		memcpy(label, "Mann-Kendall", 12);
	if (bytes && v >= 0 && v < 0x1p63)
		frag_text_add_bytes(&text, (uint64_t)(v + 0.5));
	else if (ns && v >= 0 && v < 0x1p63)
		frag_text_add_ns(&text, (uint64_t)v);
	else
		frag_text_addf(&text, "%.*g%s", fabs(v) < 1e15 && v == floor(v) ? 15 : 4,
			       ratio ? 100 * v : v, ratio ? " %" : "");
	return (struct number){ name, frag_answer_print(a, "%s", label), frag_answer_take(a, &text),
				v };
}

static struct frag_rows numbers_of(struct frag_answer *a, const struct frag_finding *f)
{
	struct number *rows = frag_answer_new(a, f->numbers_count, sizeof(*rows));

	for (size_t k = 0; rows && k < f->numbers_count; k++)
		rows[k] = number_of(a, f->numbers[k].name, f->numbers[k].value);
	return (struct frag_rows){ rows, rows ? f->numbers_count : 0 };
}

static struct frag_rows lines_of(struct frag_answer *a, const struct frag_finding *f)
{
	const char **rows = frag_answer_new(a, FRAG_FINDING_LINES, sizeof(*rows));
	size_t n = 0;

	for (; rows && n < FRAG_FINDING_LINES && f->lines[n]; n++)
		rows[n] = f->lines[n];
	return (struct frag_rows){ rows, n };
}

static void show(struct frag_answer *a, const struct finding *row, bool several)
{
	frag_answer_heading(a, "%s%s%s", several ? row->about : "", several ? ": " : "",
			    row->verdict);
	frag_answer_say(a, "%s", row->text);
	for (size_t k = 0; k < row->lines.count; k++)
		frag_answer_item(a, "at %s", ((const char *const *)row->lines.rows)[k]);
	frag_answer_table(a, &number_shape, row->numbers.rows, row->numbers.count)->indent = 2;
}

/* A line each. */
static struct frag_rows notes_of(struct frag_answer *a, const struct frag_text *notes)
{
	size_t count = 0, n = 0;
	const char **rows;

	for (size_t i = 0; i < notes->len; i++)
		count += notes->s[i] == '\n';
	rows = frag_answer_new(a, count, sizeof(*rows));
	for (const char *p = frag_text_str(notes); rows && n < count; p += strcspn(p, "\n") + 1)
		rows[n++] = frag_answer_print(a, "%.*s", (int)strcspn(p, "\n"), p);
	return (struct frag_rows){ rows, n };
}

/* One chart a device; more than a few devices look alike. */
static void draw(struct frag_answer *a, const struct frag_findings *f)
{
	if (f->devices_count) {
		frag_answer_heading(a, "Over the steps");
		frag_answer_last(a)->page_only = true;
	}
	for (size_t i = 0; i < FRAG_MIN(f->devices_count, (size_t)CHARTS_MAX); i++)
		if (f->devices[i].points_count)
			frag_answer_chart(
				a, &(struct frag_answer_chart){
					   .script = "sites",
					   .base = frag_answer_print(a, "diagnose-%zu", i + 1),
					   .heading = f->devices[i].name,
					   .title = "Memory over the steps",
					   .subtitle = f->devices[i].name,
					   .extra = "steps",
					   .caption = "Reserved at the end of each step, live at "
						      "most in it, "
						      "and live before it and after it.",
					   .shape = &frag_curve_by_step,
					   .rows = { f->devices[i].points,
						     f->devices[i].points_count } });
}

int frag_findings_answer(const struct frag_findings *f, struct frag_answer *a, struct frag_err *err)
{
	struct diagnosis *d = frag_answer_new(a, 1, sizeof(*d));
	struct finding *rows = frag_answer_new(a, f->count, sizeof(*rows));
	bool several = false;

	if (!d || !rows)
		return frag_fail_nomem(err, "diagnosis");
	*d = (struct diagnosis){ .verdict = frag_finding_text(f->list[0].kind),
				 .findings = { rows, f->count },
				 .notes = notes_of(a, &f->notes) };
	for (size_t i = 0; i < f->count; i++) {
		const struct frag_finding *one = &f->list[i];

		rows[i] = (struct finding){ frag_finding_text(one->kind), one->about,
					    frag_text_str(&one->text), lines_of(a, one),
					    numbers_of(a, one) };
		several |= strcmp(one->about, f->list[0].about) != 0;
	}
	frag_answer_data(a, &frag_diagnosis_shape, d);
	frag_answer_csv(a, &finding_shape, rows, f->count);
	a->title = "Diagnosis";
	a->question = "Is it a leak, fragmentation, a spike, or nothing at all; and which lines?";
	frag_answer_verdict(a, "%s%s", d->verdict, a->estimated ? ", an estimate" : "");
	for (size_t i = 0; i < f->count; i++)
		show(a, &rows[i], several);
	if (d->notes.count)
		frag_answer_gap(a);
	for (size_t i = 0; i < d->notes.count; i++)
		frag_answer_remark(a, "%s", ((const char *const *)d->notes.rows)[i]);
	draw(a, f);
	return 0;
}
