/* SPDX-License-Identifier: Apache-2.0 */
/* The findings as they are made, and the answer of them; see diagnose.h. */
#include "diagnose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clean.h"
#include "lib/grow.h"

#define CHARTS_MAX 8u /* on a page */
#define LOST_MOST 0.5 /* of what is reserved: less does not come before what grows */

static const char *const kinds[] = {
#define FRAG_X_(name, text, word) text,
	FRAG_FINDING_LIST(FRAG_X_)
#undef FRAG_X_
};

const char *frag_finding_text(enum frag_finding_kind kind)
{
	return kinds[kind];
}

struct frag_finding *frag_findings_add(struct frag_findings *f, enum frag_finding_kind kind,
				       const char *about)
{
	static _Thread_local struct frag_finding lost;
	struct frag_finding *one = &lost;

	if (FRAG_GROW(f->list, f->count, f->cap, "findings", NULL))
		f->texts->failed = true;
	else
		one = &f->list[f->count++];
	*one = (struct frag_finding){ .kind = kind,
				      .verdict = kinds[kind],
				      .texts = f->texts,
				      .about = frag_answer_print(f->texts, "%s", about) };
	return one;
}

void frag_finding_say(struct frag_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	frag_text_add(&f->words, frag_answer_vprint(f->texts, fmt, ap));
	va_end(ap);
}

void frag_findings_note(struct frag_findings *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (FRAG_GROW(f->notes_list, f->notes_count, f->notes_cap, "findings", NULL))
		f->texts->failed = true;
	else
		f->notes_list[f->notes_count++] = frag_answer_vprint(f->texts, fmt, ap);
	va_end(ap);
}

void frag_findings_add_device(struct frag_findings *f, const struct frag_checked_device *dev)
{
	if (FRAG_GROW(f->devices, f->devices_count, f->devices_cap, "findings", NULL))
		f->texts->failed = true;
	else
		f->devices[f->devices_count++] = *dev;
}

void frag_finding_line(struct frag_finding *f, char *line)
{
	f->line = line ? frag_answer_print(f->texts, "%s", line) : NULL;
	frag_host_free(line);
}

/* "grown_bytes" is "grown" with "2.44 GiB", "line_share_ratio" is "line share" with "87 %". */
void frag_finding_number(struct frag_finding *f, const char *name, double v)
{
	bool ratio = frag_ends_with(name, "_ratio"), ns = frag_ends_with(name, "_ns");
	bool bytes = frag_ends_with(name, "_bytes") || strstr(name, "bytes_per");
	const char *unit = frag_ends_with(name, "_bytes")   ? "_bytes"
			   : frag_ends_with(name, "_count") ? "_count"
			   : ratio			    ? "_ratio"
			   : ns				    ? "_ns"
							    : "";
	char label[64];
	struct frag_text text = { 0 };

	snprintf(label, sizeof(label), "%.*s", (int)(strlen(name) - strlen(unit)), name);
	for (char *p = label; *p; p++)
		*p = *p == '_' ? ' ' : *p;
	if (!strncmp(label, "mann kendall", 12))
		memcpy(label, "Mann-Kendall", 12);
	if (bytes && v >= 0 && v < 0x1p63)
		frag_text_add(&text, FRAG_BYTES((uint64_t)(v + 0.5)));
	else if (ns && v >= 0 && v < 0x1p63)
		frag_text_add(&text, FRAG_NS((uint64_t)v));
	else
		frag_text_addf(&text, "%.*g%s", fabs(v) < 1e15 && v == floor(v) ? 15 : 4,
			       ratio ? 100 * v : v, ratio ? " %" : "");
	FRAG_ASSERT(f->numbers.count < FRAG_FINDING_NUMBERS);
	f->list[f->numbers.count++] =
		(struct frag_number){ name, frag_answer_print(f->texts, "%s", label),
				      frag_answer_take(f->texts, &text), v };
}

double frag_finding_value(const struct frag_finding *f, const char *name)
{
	for (size_t i = 0; i < f->numbers.count; i++)
		if (!strcmp(f->list[i].name, name))
			return f->list[i].value;
	return 0;
}

/* Bytes that it costs, 0 = it is not about a loss. */
static double loss_of(const struct frag_finding *f)
{
	switch (f->kind) {
	case FRAG_FOUND_LEAK:
	case FRAG_FOUND_GROWTH:
		return frag_finding_value(f, "grown_bytes");
	case FRAG_FOUND_SPIKE:
		return frag_finding_value(f, "peak_live_bytes") -
		       frag_finding_value(f, "other_peak_live_bytes");
	case FRAG_FOUND_FRAGMENTATION:
		if (frag_finding_value(f, "lost_ratio") < LOST_MOST)
			return 0;
		return frag_finding_value(f, "peak_reserved_bytes") -
		       frag_finding_value(f, "peak_active_bytes");
	case FRAG_FOUND_IMBALANCE:
		return frag_finding_value(f, "most_bytes") - frag_finding_value(f, "least_bytes");
	default:
		return 0;
	}
}

/* A far larger loss of a device leads; all else goes by its kind. */
static bool comes_before(const struct frag_finding *a, const struct frag_finding *b)
{
	double x = loss_of(a), y = loss_of(b);
	bool same = !strcmp(a->about, b->about) ||
		    a->kind + b->kind == FRAG_FOUND_IMBALANCE + FRAG_FOUND_FRAGMENTATION;

	if (x > 0 && y > 0 && same && (x > FRAG_FAR_LARGER * y || y > FRAG_FAR_LARGER * x))
		return x > y;
	return a->kind < b->kind;
}

/* Few of them: a stable sort by insertion. */
static void sort(struct frag_findings *f)
{
	for (size_t i = 1; i < f->count; i++) {
		struct frag_finding one = f->list[i];
		size_t at = i;

		for (; at && comes_before(&one, &f->list[at - 1]); at--)
			f->list[at] = f->list[at - 1];
		f->list[at] = one;
	}
}

void frag_findings_release(struct frag_findings *f)
{
	for (size_t i = 0; i < f->count; i++)
		frag_text_release(&f->list[i].words);
	FRAG_FREE(f->list, f->devices, f->notes_list);
	*f = (struct frag_findings){ 0 };
}

/* ---- the answer ------------------------------------------------------------------------- */

FRAG_ROW_SHAPE(, frag_number_shape, frag_number, "number", FRAG_NUMBER_ROW,
	       "a number that a finding rests on, by name");
FRAG_ROW_SHAPE(static, frag_finding_shape, frag_finding, "finding", FRAG_FINDING_ROW,
	       "one thing that is wrong");
FRAG_ROW_SHAPE(, frag_diagnosis_shape, frag_findings, "diagnose", FRAG_DIAGNOSIS_ROW,
	       "what is wrong with the memory of a program");

static void finish(struct frag_findings *f)
{
	sort(f);
	for (size_t i = 0; i < f->count; i++) {
		struct frag_finding *one = &f->list[i];

		one->text = frag_answer_take(f->texts, &one->words);
		one->lines = (struct frag_rows){ &one->line, one->line != NULL };
		one->numbers.rows = one->list;
	}
	f->verdict = f->list[0].verdict;
	f->findings = (struct frag_rows){ f->list, f->count };
	f->notes = (struct frag_rows){ f->notes_list, f->notes_count };
}

static void show(struct frag_answer *a, const struct frag_finding *one, bool several)
{
	frag_answer_heading(a, "%s%s%s", several ? one->about : "", several ? ": " : "",
			    one->verdict);
	frag_answer_say(a, "%s", one->text);
	if (one->line)
		frag_answer_item(a, "at %s", one->line);
	frag_answer_table(a, &frag_number_shape, one->list, one->numbers.count)->indent = 2;
}

/* One chart a device; more than a few devices look alike. */
static void draw(struct frag_answer *a, const struct frag_checked_device *devices, size_t count)
{
	if (count) {
		frag_answer_heading(a, "Over the run");
		frag_answer_last(a)->page_only = true;
	}
	for (size_t i = 0; i < FRAG_MIN(count, (size_t)CHARTS_MAX); i++) {
		const struct frag_checked_device *dev = &devices[i];
		const char *unit = dev->steps_count == UINT64_MAX ? "part" : "step";

		if (!dev->points.count)
			continue;
		frag_answer_chart(a, &(struct frag_answer_chart){
					     .script = "sites",
					     .base = frag_answer_print(a, "diagnose-%zu", i + 1),
					     .heading = dev->name,
					     .title = frag_answer_print(a, "Memory over %ss", unit),
					     .subtitle = dev->name,
					     .extra = unit,
					     .caption = frag_answer_print(a,
									  "The most reserved and "
									  "the most live in each "
									  "%s, and what is live "
									  "before and after it.",
									  unit),
					     .shape = &frag_curve_by_step,
					     .rows = dev->points });
	}
}

int frag_findings_answer(struct frag_findings *f, struct frag_err *err)
{
	struct frag_answer *a = f->texts;
	bool several = false;

	FRAG_CHECK_ALLOC(f->count && !a->failed, "diagnosis", err);
	finish(f);
	for (size_t i = 0; i < f->count; i++)
		several |= strcmp(f->list[i].about, f->list[0].about) != 0;
	frag_answer_data(a, &frag_diagnosis_shape, f);
	frag_answer_csv(a, &frag_finding_shape, f->list, f->count);
	a->title = "Diagnosis";
	a->question = "Is it a leak, fragmentation, a spike, or nothing at all; and which lines?";
	frag_answer_verdict(a, "%s%s", f->verdict, a->estimated ? ", an estimate" : "");
	for (size_t i = 0; i < f->count; i++)
		show(a, &f->list[i], several);
	frag_ending_warn(a, f->ended_out_of_memory);
	if (f->notes_count)
		frag_answer_gap(a);
	for (size_t i = 0; i < f->notes_count; i++)
		frag_answer_remark(a, "%s", f->notes_list[i]);
	draw(a, f->devices, f->devices_count);
	return a->failed ? frag_fail_nomem(err, "diagnosis") : 0;
}
