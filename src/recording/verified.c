/* SPDX-License-Identifier: Apache-2.0 */
/* What verify found, device by device, recording by recording; see verified.h. */
#include "verified.h"

#include <string.h>

#include "answer/row.h"
#include "lib/grow.h"
#include "settled_shape.h"

#define LLU(n) ((unsigned long long)(n))

#define VERIFIED_ROW(F, P, S) \
	F(S, COUNT, device, r->device_ordinal, "device", "its number in the recording") \
	F(S, BOOL, identical, r->identical, "identical", "nothing differs") \
	F(S, BOOL, undetermined, r->undetermined, "undetermined", \
	  "the file does not determine the outcome") \
	F(S, TEXT, first_difference, \
	  r->identical ? NULL : frag_answer_print(v->a, "%s", r->first_difference), \
	  "first difference", "first difference from the recording") \
	F(S, TEXT, difference_cause, causes[r->cause], NULL, \
	  "on a card: addresses, input or unknown") \
	F(S, TEXT, difference_cause_text, \
	  r->cause != FRAG_CAUSE_NONE ? frag_answer_print(v->a, "%s", r->cause_text) : NULL, NULL, \
	  "the same in words") \
	F(S, COUNT, allocs_count, r->allocs, "allocs", "allocations of the recording") \
	F(S, COUNT, allocs_identical_count, r->allocs_same, "same", \
	  "at the recorded address; on a card: served as recorded") \
	F(S, COUNT, segment_events_count, r->segments, "segment events", \
	  "segments taken and given back") \
	F(S, COUNT, segment_events_identical_count, r->segments_same, "same", \
	  "as recorded; on a card: by kind and size") \
	F(S, COUNT, ooms_count, r->ooms, "ooms", "requests that were refused") \
	F(S, COUNT, ooms_identical_count, r->ooms_same, "same", "refused in the replay, too") \
	F(S, COUNT, final_blocks_count, r->finals, NULL, "blocks of the final snapshot") \
	F(S, COUNT, final_blocks_identical_count, r->finals_same, NULL, "as recorded") \
	F(S, COUNT, driver_refusals_count, r->refusals, NULL, \
	  "times that the driver refused memory") \
	F(S, COUNT, uncertain_count, r->uncertain, NULL, \
	  "initial blocks whose size the file does not determine") \
	F(S, BYTES, peak_reserved_bytes, r->peak_reserved_bytes, "peak reserved", "of the replay") \
	F(S, MAP, counters, frag_counter_rows(v->a, r->counters), NULL, \
	  "the allocator's own statistics", .of = &frag_counter_shape) \
	F(S, OBJECT, recording, frag_settled_row(v->a, &dev->settled), NULL, \
	  "limit and releases that were found", .of = &frag_settled_shape)
struct verified_row {
	FRAG_ROW_MEMBERS(VERIFIED_ROW)
	const char *lines; /* for people */
};
FRAG_VALUED_SHAPE(static, verified_row_shape, verified_row, "verified_device", VERIFIED_ROW,
		  "one device of a recording");

#define TRACE_ROW(F, P, S) \
	F(S, TEXT, trace, NULL, "its name") \
	F(S, TEXT, conf, NULL, "the settings that were replayed") \
	F(S, BYTES, limit_bytes, NULL, "memory limit of the replay; null = none") \
	F(S, TEXT, verdict, NULL, \
	  "identical, undetermined or different; on a card same segments or different") \
	F(S, LIST, devices, NULL, "those with evidence", .of = &verified_row_shape)
struct frag_verified_trace {
	FRAG_ROW_MEMBERS(TRACE_ROW)
	enum frag_verdict worst;
};
FRAG_ROW_SHAPE(static, trace_shape, frag_verified_trace, "verified_trace", TRACE_ROW,
	       "one recording");

/* One recording: its own members. Several: the list, and one verdict for all. */
#define ALL_ROW(F, P, S) \
	TRACE_ROW(F, P, S) F(S, LIST, traces, NULL, "of several recordings", .of = &trace_shape)
FRAG_ROW_AS(, frag_verified_shape, verified_all, "verify", ALL_ROW,
	    "is the simulation what really happened");

static const char *verdict_word(const struct frag_verified *v, enum frag_verdict verdict)
{
	if (verdict == FRAG_VERDICT_SAME)
		return v->card ? "same segments" : "identical";
	return verdict == FRAG_VERDICT_UNDETERMINED ? "undetermined" : "different";
}

int frag_verified_begin(struct frag_verified *v, const struct frag_trace *trace, const char *conf,
			uint64_t limit_bytes, struct frag_err *err)
{
	struct frag_verified_trace *t;
	void *devices = frag_answer_new(v->a, trace->devs_count, sizeof(struct verified_row));

	FRAG_CHECK_ALLOC(devices, "verdicts", err);
	FRAG_TRY(FRAG_GROW(v->list, v->count, v->cap, "verdicts", err));
	t = &v->list[v->count++];
	*t = (struct frag_verified_trace){ .trace = frag_answer_print(
						   v->a, "%s", trace->name ? trace->name : ""),
					   .conf = frag_answer_print(v->a, "%s", conf ? conf : ""),
					   .limit_bytes = limit_bytes,
					   .devices = { devices, 0 } };
	v->a->estimated |= trace->estimate != NULL;
	return 0;
}

/* ---- one device ------------------------------------------------------------------------- */

static void add_differences(const struct frag_verified *v, const struct frag_verify_result *r,
			    struct frag_text *t)
{
	if (r->finals_same != r->finals)
		frag_text_addf(t, "device %u: final blocks %llu/%llu identical\n",
			       r->device_ordinal, LLU(r->finals_same), LLU(r->finals));
	if (r->refusals)
		frag_text_addf(t, "device %u: the driver refused memory %llu times\n",
			       r->device_ordinal, LLU(r->refusals));
	if (r->uncertain)
		frag_text_addf(t,
			       "device %u: the file does not determine the size of %llu initial "
			       "blocks\n",
			       r->device_ordinal, LLU(r->uncertain));
	for (const struct frag_counter *c = r->counters; v->counters && c && c->name; c++)
		frag_text_addf(t, "device %u: %s %lld\n", r->device_ordinal, c->name,
			       (long long)c->value);
	if (!r->identical)
		frag_text_addf(t, "device %u: %s: %s\n", r->device_ordinal,
			       r->undetermined ? "undetermined" : "first difference",
			       *r->first_difference ? r->first_difference : "not located");
	if (r->cause != FRAG_CAUSE_NONE)
		frag_text_addf(t, "device %u: %s\n", r->device_ordinal, r->cause_text);
}

static const char *lines_of(const struct frag_verified *v, const struct frag_trace_dev *dev,
			    const struct frag_verify_result *r)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	char text[600];

	if (dev->settled.limit_source == FRAG_LIMIT_INFERRED || dev->settled.assumed_trims_count)
		frag_text_addf(&t, "device %u: %s\n", dev->ordinal,
			       frag_settled_text(&dev->settled, text, sizeof(text)));
	add_differences(v, r, &t);
	frag_text_addf(&t,
		       v->card ? "device %u: allocs %llu/%llu served, segment events %llu/%llu of "
				 "the recorded kind and size, ooms %llu/%llu"
			       : "device %u: allocs %llu/%llu addresses identical, segment events "
				 "%llu/%llu identical, ooms %llu/%llu",
		       r->device_ordinal, LLU(r->allocs_same), LLU(r->allocs),
		       LLU(r->segments_same), LLU(r->segments), LLU(r->ooms_same), LLU(r->ooms));
	return frag_answer_take(v->a, &t);
}

int frag_verified_add(struct frag_verified *v, const struct frag_trace_dev *dev,
		      const struct frag_verify_result *r, struct frag_err *err)
{
	static const char *const causes[] = { [FRAG_CAUSE_ADDRESSES] = "addresses",
					      [FRAG_CAUSE_INPUT] = "input",
					      [FRAG_CAUSE_UNKNOWN] = "unknown" };
	enum frag_verdict verdict = r->identical      ? FRAG_VERDICT_SAME
				    : r->undetermined ? FRAG_VERDICT_UNDETERMINED
						      : FRAG_VERDICT_DIFFERENT;
	struct frag_verified_trace *t = &v->list[v->count - 1];
	struct verified_row *rows = (struct verified_row *)(uintptr_t)t->devices.rows;

	rows[t->devices.count] = FRAG_ROW_VALUES(verified_row, VERIFIED_ROW);
	rows[t->devices.count++].lines = lines_of(v, dev, r);
	t->worst = FRAG_MAX(t->worst, verdict);
	v->verdict = FRAG_MAX(v->verdict, verdict);
	return v->a->failed ? frag_fail_nomem(err, "verdicts") : 0;
}

/* ---- the answer ------------------------------------------------------------------------- */

static void show(struct frag_verified *v, struct frag_verified_trace *t)
{
	const struct verified_row *rows = t->devices.rows;

	t->verdict = verdict_word(v, t->worst);
	if (v->count > 1)
		frag_answer_say(v->a, "trace %s", t->trace);
	for (size_t i = 0; i < t->devices.count; i++)
		frag_answer_say(v->a, "%s", rows[i].lines);
}

int frag_verified_answer(struct frag_verified *v, struct frag_err *err)
{
	struct verified_all *all = frag_answer_new(v->a, 1, sizeof(*all));

	FRAG_CHECK_ALLOC(all, "verdicts", err);
	v->a->title = "Is the simulation what really happened?";
	v->a->question =
		"Every segment event, every address and every refusal, beside the recording.";
	for (size_t i = 0; i < v->count; i++)
		show(v, &v->list[i]);
	*all = (struct verified_all){ .limit_bytes = UINT64_MAX };
	if (v->count == 1)
		memcpy(all, &v->list[0], offsetof(struct verified_all, traces));
	else
		all->traces = (struct frag_rows){ v->list, v->count };
	all->verdict = verdict_word(v, v->verdict);
	if (v->count == 1)
		frag_answer_csv(v->a, &verified_row_shape, v->list[0].devices.rows,
				v->list[0].devices.count);
	else
		frag_answer_csv(v->a, &trace_shape, v->list, v->count);
	frag_answer_data(v->a, &frag_verified_shape, all);
	frag_answer_verdict(v->a, "%s", all->verdict);
	return v->a->failed ? frag_fail_nomem(err, "verdicts") : 0;
}

void frag_verified_release(struct frag_verified *v)
{
	frag_host_free(v->list);
}
