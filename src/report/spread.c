/* SPDX-License-Identifier: Apache-2.0 */
/* Worst, median, least and imbalance of every policy over the units of a report. */
#include "spread.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- figures ------------------------------------------------------------------------ */

static const struct frag_result *find(const struct frag_section *s, const char *policy)
{
	for (size_t i = 0; i < s->count; i++) {
		if (!strcmp(s->results[i].policy, policy))
			return &s->results[i];
	}
	return NULL;
}

/* False if a unit does not have this policy. peaks: scratch for all units. */
static bool measure(const struct frag_report *r, const char *policy, uint64_t *peaks,
		    struct frag_spread *out)
{
	double sum = 0;

	*out = (struct frag_spread){ .policy = policy, .least_bytes = UINT64_MAX };
	for (size_t i = 0; i < r->count; i++) {
		const struct frag_result *res = find(&r->sections[i], policy);
		uint64_t peak = res ? res->m.peak_reserved_bytes : 0;

		if (!res)
			return false;
		out->setting = res->conf != NULL;
		if (!res->completed)
			continue;
		if (!out->completed || peak > out->worst_bytes) {
			out->worst = i;
			out->worst_bytes = peak;
		}
		if (peak < out->least_bytes) {
			out->least = i;
			out->least_bytes = peak;
		}
		sum += (double)peak;
		peaks[out->completed++] = peak;
	}
	if (!out->completed) {
		out->least_bytes = 0;
		return true;
	}
	qsort(peaks, out->completed, sizeof(*peaks), frag_compare_u64);
	out->median_bytes = peaks[(out->completed - 1) / 2] / 2 + peaks[out->completed / 2] / 2;
	out->imbalance_ratio =
		sum > 0 ? (double)out->worst_bytes * (double)out->completed / sum : 1;
	return true;
}

static bool before(const struct frag_spread *a, const struct frag_spread *b)
{
	if (a->completed != b->completed)
		return a->completed > b->completed;
	return a->worst_bytes < b->worst_bytes;
}

int frag_spreads_init(struct frag_spreads *s, const struct frag_report *r, struct frag_err *err)
{
	FRAG_AUTO_FREE uint64_t *peaks = NULL;
	size_t most;

	*s = (struct frag_spreads){ .units = r->count };
	if (r->count < 2)
		return 0;
	most = r->sections[0].count;
	peaks = frag_host_calloc(r->count, sizeof(*peaks));
	s->list = frag_host_calloc(most + 1, sizeof(*s->list));
	if (!peaks || !s->list) {
		frag_spreads_release(s);
		return frag_fail_nomem(err, "spread");
	}
	for (size_t k = 0; k < most; k++) {
		struct frag_spread one;
		size_t at = s->count;

		if (!measure(r, r->sections[0].results[k].policy, peaks, &one))
			continue;
		for (; at && before(&one, &s->list[at - 1]); at--)
			s->list[at] = s->list[at - 1];
		s->list[at] = one;
		s->count++;
	}
	return 0;
}

void frag_spreads_release(struct frag_spreads *s)
{
	frag_host_free(s->list);
	*s = (struct frag_spreads){ 0 };
}

/* ---- table and sentence --------------------------------------------------------------- */

const char *frag_spreads_noun(const struct frag_report *r)
{
	bool one_trace = true, one_device = true;

	for (size_t i = 0; i < r->count; i++) {
		one_trace &= !i || !r->sections[i].first_of_trace;
		one_device &= r->sections[i].devs_count == 1;
	}
	return one_trace ? "devices" : one_device ? "traces" : "traces and devices";
}

static void put_title(struct frag_table *t, const struct frag_report *r, size_t section)
{
	FRAG_AUTO(frag_text_release) struct frag_text title = { 0 };

	frag_section_title(&r->sections[section], &title);
	frag_table_cell(t, "%s", frag_text_str(&title));
}

static void put_row(struct frag_table *t, const struct frag_spreads *s, const struct frag_report *r,
		    const struct frag_spread *x)
{
	const uint64_t bytes[] = { x->worst_bytes, x->median_bytes, x->least_bytes,
				   x->worst_bytes - x->least_bytes };

	frag_table_cell(t, "%s", x->policy);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(bytes); i++) {
		if (x->completed)
			frag_table_cell(t, "%.2f", (double)bytes[i] / (double)FRAG_GIB);
		else
			frag_table_cell(t, "-");
	}
	if (x->completed)
		frag_table_cell(t, "%.2f", x->imbalance_ratio);
	else
		frag_table_cell(t, "-");
	frag_table_cell(t, "%zu of %zu", x->completed, s->units);
	if (x->completed)
		put_title(t, r, x->worst);
	else
		frag_table_cell(t, "-");
}

void frag_spreads_table(const struct frag_spreads *s, const struct frag_report *r,
			struct frag_table *out)
{
	static const struct frag_table_column columns[] = {
		{ "policy", "", true, "allocation policy and its options" },
		{ "worst", "GiB", false, "largest peak reserved of all of them" },
		{ "median", "GiB", false, "half of them need less" },
		{ "least", "GiB", false, "smallest peak reserved" },
		{ "spread", "GiB", false, "worst - least" },
		{ "worst/mean", "", false, "imbalance: 1.00 = all need the same" },
		{ "completes", "", false, "on how many of them the replay came to its end" },
		{ "worst one", "", true, "the trace and device that needs most" },
	};
	static const char *const spare[] = { "worst/mean", "completes", "spread",
					     "median",	   "least",	NULL };

	*out = (struct frag_table){ .room = r->columns, .spare = spare };
	frag_table_columns(out, columns, FRAG_ARRAY_LEN(columns));
	for (size_t i = 0; i < s->count; i++)
		put_row(out, s, r, &s->list[i]);
}

/* The first that completes everywhere, of PyTorch's settings if there is one. */
static const struct frag_spread *pick(const struct frag_spreads *s)
{
	const struct frag_spread *first = NULL;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_spread *x = &s->list[i];

		if (x->completed < s->units || !x->worst_bytes)
			continue;
		if (x->setting)
			return x;
		first = first ? first : x;
	}
	return first;
}

void frag_spreads_answer(const struct frag_spreads *s, const struct frag_report *r,
			 struct frag_text *out)
{
	const struct frag_spread *x = pick(s);
	const struct frag_gpu *card;

	if (!x) {
		frag_text_addf(out, "no policy completes on all %zu of them", s->units);
		return;
	}
	card = frag_section_card(&r->sections[x->worst], x->worst_bytes, false);
	if (x->worst_bytes == x->least_bytes) {
		frag_text_addf(out, "with '%s' each of them reserves ", x->policy);
		frag_text_add_bytes(out, x->worst_bytes);
	} else {
		frag_text_addf(out, "the worst one decides: with '%s' that is ", x->policy);
		frag_section_title(&r->sections[x->worst], out);
		frag_text_add(out, " with ");
		frag_text_add_bytes(out, x->worst_bytes);
		frag_text_addf(out, ", %.0f %% above the mean, and the one that needs least is ",
			       100 * (x->imbalance_ratio - 1));
		frag_section_title(&r->sections[x->least], out);
		frag_text_add(out, " with ");
		frag_text_add_bytes(out, x->least_bytes);
	}
	if (card) {
		frag_text_add(out, "; ");
		frag_section_card_kind(&r->sections[x->worst], out);
		frag_text_addf(out, " with room for each of them is %s", card->label);
	} else {
		frag_text_add(out, "; no card has room for all of them");
	}
}

/* ---- files ----------------------------------------------------------------------------- */

static void put_csv(const struct frag_spreads *s, const struct frag_report *r,
		    struct frag_text *out)
{
	frag_text_add(out, "policy,units_count,completed_count,worst_bytes,worst_trace,"
			   "worst_device_ordinal,median_bytes,least_bytes,least_trace,"
			   "least_device_ordinal,spread_bytes,imbalance_ratio\n");
	for (size_t i = 0; i < s->count; i++) {
		const struct frag_spread *x = &s->list[i];
		const struct frag_section *worst = &r->sections[x->worst];
		const struct frag_section *least = &r->sections[x->least];

		frag_text_add_csv(out, x->policy);
		frag_text_addf(out, ",%zu,%zu,", s->units, x->completed);
		if (!x->completed) {
			frag_text_add(out, ",,,,,,,,\n");
			continue;
		}
		frag_text_addf(out, "%" PRIu64 ",", x->worst_bytes);
		frag_text_add_csv(out, worst->trace);
		frag_text_addf(out, ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",", worst->ordinal,
			       x->median_bytes, x->least_bytes);
		frag_text_add_csv(out, least->trace);
		frag_text_addf(out, ",%" PRIu32 ",%" PRIu64 ",", least->ordinal,
			       x->worst_bytes - x->least_bytes);
		frag_text_add_number(out, x->imbalance_ratio);
		frag_text_add(out, "\n");
	}
}

int frag_report_spread_csv(const struct frag_report *r, struct frag_text *out, struct frag_err *err)
{
	FRAG_AUTO(frag_spreads_release) struct frag_spreads s = { 0 };

	FRAG_TRY(frag_spreads_init(&s, r, err));
	if (s.count)
		put_csv(&s, r, out);
	return 0;
}

json_t *frag_spreads_json(const struct frag_spreads *s, const struct frag_report *r)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < s->count; i++) {
		const struct frag_spread *x = &s->list[i];
		json_t *o = json_pack(
			"{s:s%, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "policy", x->policy,
			strlen(x->policy), "units_count", (json_int_t)s->units, "completed_count",
			(json_int_t)x->completed, "worst_bytes", (json_int_t)x->worst_bytes,
			"median_bytes", (json_int_t)x->median_bytes, "least_bytes",
			(json_int_t)x->least_bytes, "spread_bytes",
			(json_int_t)(x->worst_bytes - x->least_bytes), "imbalance_ratio",
			x->imbalance_ratio);

		if (!o ||
		    json_object_set_new(o, "worst_trace",
					json_string(r->sections[x->worst].trace)) ||
		    json_object_set_new(o, "worst_device_ordinal",
					json_integer(r->sections[x->worst].ordinal)) ||
		    json_array_append_new(list, o)) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
