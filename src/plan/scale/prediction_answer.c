/* SPDX-License-Identifier: Apache-2.0 */
/* What a program needs at other values, as an answer: trust, the greatest value, the curve. */
#include <inttypes.h>
#include <math.h>

#include <frag/opt.h>

#include "answer/row.h"
#include "prediction.h"

static const char *const source_words[] = { [FRAG_PREDICTION_RECORDED] = "recorded",
					    [FRAG_PREDICTION_SAME] = "same requests",
					    [FRAG_PREDICTION_BEYOND] = "beyond",
					    [FRAG_PREDICTION_ESTIMATED] = "estimated" };

/* ---- rows ------------------------------------------------------------------------ */

#define PART(F, P, S) \
	F(S, COUNT, value, NULL, "that it was recorded with") \
	F(S, TEXT, trace, NULL, "its name") \
	F(S, COUNT, unmatched_count, NULL, \
	  "requests that only it or only the largest recording has") \
	F(S, COUNT, moved_count, NULL, "requests that end at another place in the largest")
FRAG_ROW(part, "part", PART, "one recording");

#define LAW(F, P, S) \
	F(S, TEXT, law, NULL, "constant, c n, c n^2, …") \
	F(S, COUNT, requests_count, NULL, "requests whose size follows this law")
FRAG_ROW(law, "law", LAW, "how sizes depend on the value n");

#define CELL(F, P, S) \
	F(S, COUNT, value, p->values[i], "value", "the number that varies") \
	F(S, TEXT, from, source_words[frag_prediction_source(p, p->values[i])], "from", \
	  "recorded; same requests: between recordings that make the same; beyond: " \
	  "outside of them; estimated", \
	  .spare = 2) \
	F(S, TEXT, policy, frag_policy_spec_echo(p->specs[k]), "policy", "with all its options") \
	F(S, BOOL, completes, c->on_card, "completes", \
	  "with the highest likely peak, it completes on the card", .spare = 3) \
	F(S, BYTES, peak_requested_bytes, c->peak_requested_bytes | none, "peak requested", \
	  "most live at one moment") \
	P(S, TEXT, reserved, \
	  !c->completed && !c->low_bytes ? "more than 1 TiB" \
	  : c->low_bytes == c->high_bytes \
		  ? frag_answer_print(a, "%s", FRAG_BYTES(c->low_bytes)) \
		  : frag_answer_print(a, "%s to %s", FRAG_BYTES(c->low_bytes), \
				      FRAG_BYTES(c->high_bytes)), \
	  "peak reserved", "least and most that is likely", .right = true) \
	P(S, COUNT, bytes, c->low_bytes | none, "bytes", "the least that is likely", .spare = 1) \
	F(S, BYTES, peak_reserved_bytes, c->low_bytes | none, NULL, "null: more than 1 TiB") \
	F(S, BYTES, peak_reserved_most_bytes, c->high_bytes | none, NULL, \
	  "if the sizes without a law grow with the value")
FRAG_VALUED_ROW(cell, "prediction", CELL, "one policy at one value");

#define LARGEST(F, P, S) \
	F(S, TEXT, policy, NULL, "with all its options") \
	F(S, COUNT, value, NULL, "greatest value that completes; null: all that were tried do") \
	F(S, COUNT, value_most, NULL, "the same, if sizes without a law do not grow")
FRAG_ROW(largest, "largest", LARGEST, "the greatest value that the card takes");

#define TEST(F, P, S) \
	F(S, COUNT, value, NULL, "of the largest recording") \
	F(S, BYTES, predicted_bytes, NULL, "peak reserved, predicted from the others") \
	F(S, BYTES, predicted_most_bytes, NULL, "if sizes without a law grow") \
	F(S, BYTES, recorded_bytes, NULL, "peak reserved of the recording itself") \
	F(S, RATIO, difference_ratio, NULL, "predicted / recorded - 1")
FRAG_ROW(test, "test", TEST, "the largest recording, predicted from the others");

#define POINT(F, P, S) \
	F(S, COUNT, site, k, NULL, "number of the policy") \
	F(S, TEXT, name, c->policy, NULL, "the policy") \
	F(S, COUNT, value, c->value, NULL, "the number that varies") \
	F(S, COUNT, recorded, c->from == source_words[FRAG_PREDICTION_RECORDED], NULL, \
	  "1 = recorded, 0 = predicted") \
	F(S, BYTES, requested_bytes, c->peak_requested_bytes, NULL, "peak requested") \
	F(S, BYTES, reserved_bytes, c->peak_reserved_bytes, NULL, "peak reserved") \
	F(S, BYTES, reserved_most_bytes, c->peak_reserved_most_bytes, NULL, \
	  "the most that is likely") \
	F(S, BYTES, room_bytes, room, NULL, "what the card has beside its context")
FRAG_VALUED_ROW(point, "point", POINT, "a point of the curves");

#define SCALE(F, P, S) \
	F(S, TEXT, name, p->name, NULL, "what varies") \
	F(S, LIST, recordings, FRAG_ROWS(parts, p->parts_count), NULL, "by value", \
	  .of = &part_shape) \
	F(S, BOOL, same_requests, frag_prediction_source(p, UINT32_MAX) == FRAG_PREDICTION_BEYOND, \
	  NULL, "all recordings make the same requests, with a law for each") \
	F(S, COUNT, requests_count, requests, NULL, "requests of the largest recording") \
	F(S, MAP, laws, FRAG_ROWS(laws, FRAG_SCALING_LAWS), NULL, "their sizes", .of = &law_shape) \
	F(S, OBJECT, test, test_of(p, a), NULL, "null with two recordings", .of = &test_shape) \
	F(S, LIST, results, FRAG_ROWS(cells, count), NULL, "by value and policy", \
	  .of = &cell_shape) \
	F(S, BYTES, capacity_bytes, p->target->card.total_bytes, NULL, "total memory of the card") \
	F(S, LIST, largest, FRAG_ROWS(largest, p->specs_count), NULL, "by policy", \
	  .of = &largest_shape) \
	F(S, COUNT, most, p->most, NULL, "the greatest value that was tried") \
	F(S, COUNT, confirmed, p->confirmed ? p->confirmed_value : UINT64_MAX, NULL, \
	  "greatest value, found by recording it; null: not done") \
	F(S, COUNT, confirm_runs, p->confirm_runs, NULL, "recordings that this took") \
	F(S, REAL, growth, grows ? (double)last->high_bytes / (double)first->low_bytes : NAN, \
	  NULL, "reserved at the greatest value / at the smallest, first policy")
FRAG_VALUED_ROW_AS(, frag_scale_shape, scale, "scale", SCALE,
		   "what a program needs at other batch sizes or lengths");

/* ---- what was matched ------------------------------------------------------------ */

/* Over all devices, compared with the largest recording. Returns the requests. */
static uint64_t fill_matches(struct frag_prediction *p, struct part *parts, struct law *laws)
{
	const struct frag_scaling *s;
	uint64_t requests = 0;

	for (size_t i = 0; i < p->parts_count; i++)
		parts[i] = (struct part){ .value = p->parts[i].value,
					  .trace = p->parts[i].recording.trace->name };
	for (size_t i = 0; i < FRAG_SCALING_LAWS; i++)
		laws[i].law = frag_scaling_law_name((enum frag_scaling_law)i);
	for (uint32_t d = 0; d < p->devices; d++) {
		if (frag_prediction_scaling(p, UINT32_MAX, d, &s, NULL))
			continue;
		for (size_t i = 0; i < FRAG_SCALING_LAWS; i++)
			laws[i].requests_count += s->laws[i];
		for (size_t k = 0; k < p->parts_count; k++) {
			parts[k].unmatched_count += s->unmatched[k];
			parts[k].moved_count += s->moved[k];
		}
		requests += s->requests;
	}
	return requests;
}

static void remarks(const struct frag_prediction *p, const struct scale *out, struct frag_answer *a)
{
	const struct part *parts = out->recordings.rows;
	const struct law *laws = out->laws.rows;
	uint64_t last = p->parts[p->parts_count - 1].value;
	FRAG_AUTO(frag_text_release) struct frag_text at = { 0 }, sizes = { 0 };

	for (size_t i = 0; i < p->parts_count; i++)
		frag_text_addf(&at, "%s%" PRIu64, i ? ", " : "", parts[i].value);
	frag_answer_remark(a, "cufrag %s scale: %s at %s = %s%s", FRAG_VERSION,
			   parts[p->parts_count - 1].trace, p->name, frag_text_str(&at),
			   a->estimated ? ", an estimate" : "");
	for (size_t i = 0; i < FRAG_SCALING_LAWS; i++)
		if (laws[i].requests_count)
			frag_text_addf(&sizes, "%s%" PRIu64 " %s", sizes.len ? ", " : "",
				       laws[i].requests_count, laws[i].law);
	frag_answer_remark(a, "%" PRIu64 " requests; their sizes: %s", out->requests_count,
			   frag_text_str(&sizes));
	a->failed |= at.failed || sizes.failed;
	for (size_t k = 0; k + 1 < p->parts_count; k++) {
		if (parts[k].unmatched_count)
			frag_answer_remark(a,
					   "the requests at %" PRIu64 " and %" PRIu64
					   " differ: %" PRIu64 " are in only one of them",
					   parts[k].value, last, parts[k].unmatched_count);
		if (parts[k].moved_count)
			frag_answer_remark(a,
					   "the order at %" PRIu64 " and %" PRIu64
					   " differs: %" PRIu64 " requests end at another place",
					   parts[k].value, last, parts[k].moved_count);
	}
}

/* ---- how far to trust it, and the greatest value --------------------------------- */

static const char *test_text(const struct frag_prediction *p, const struct test *t,
			     struct frag_answer *a)
{
	bool range = t->predicted_most_bytes != t->predicted_bytes;
	const char *to =
		range ? frag_answer_print(a, " to %s", FRAG_BYTES(t->predicted_most_bytes)) : "";
	const char *recorded =
		!range && t->predicted_bytes == t->recorded_bytes
			? ", to the byte what was recorded"
			: frag_answer_print(a, "; the recording reserves %s (%+.2f %%)",
					    FRAG_BYTES(t->recorded_bytes),
					    100 * t->difference_ratio);

	return frag_answer_print(
		a, "Test: %s = %" PRIu64 ", predicted from the others, reserves %s%s%s.", p->name,
		t->value, FRAG_BYTES(t->predicted_bytes), to, recorded);
}

static void say_trust(const struct frag_prediction *p, const struct scale *out,
		      struct frag_answer *a)
{
	const char *trust =
		out->same_requests
			? "All recordings make the same requests, and each size follows a law. "
			  "Beyond the recordings this is exact only as long as the program makes "
			  "these requests: kernels take other temporary storage from certain sizes "
			  "on, so record one value near the one that matters."
		: p->parts_count < 3
			? "Two recordings fit many laws: a third would tell more."
			: "The recordings do not make the same requests everywhere: beyond them "
			  "this is an estimate. Record one value near the one that matters.";

	frag_answer_say(a, "%s%s%s", trust, out->test ? " " : "",
			out->test ? test_text(p, out->test, a) : "");
}

/* "63936", "63936 to 68080", "at least 1023595", "over 1048576" */
static void add_greatest(const struct frag_prediction *p, size_t i, struct frag_text *out)
{
	uint64_t low = p->largest_low[i], high = p->largest_high[i];

	if (low == UINT64_MAX)
		frag_text_addf(out, "over %" PRIu64, p->most);
	else if (high == UINT64_MAX)
		frag_text_addf(out, "at least %" PRIu64, low);
	else
		frag_text_addf(out, low == high ? "%" PRIu64 : "%" PRIu64 " to %" PRIu64, low,
			       high);
	frag_text_addf(out, " with %s", frag_policy_spec_echo(p->specs[i]));
}

static void conclude(const struct frag_prediction *p, const char *card, struct frag_answer *a)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	for (size_t i = 0; i < p->specs_count; i++) {
		frag_text_add(&t, i ? ", " : "");
		add_greatest(p, i, &t);
	}
	if (p->confirmed)
		frag_text_addf(&t,
			       "; recorded there and beside it (%u %s): with the settings of the "
			       "program it is %" PRIu64,
			       p->confirm_runs, p->confirm_runs == 1 ? "run" : "runs",
			       p->confirmed_value);
	a->failed |= t.failed;
	frag_answer_conclude(a, "the greatest %s that completes on %s is %s", p->name, card,
			     frag_text_str(&t));
}

/* ---- tables and chart ------------------------------------------------------------ */

/* The curve, and in the title what the first policy reserves at the greatest value. */
static void chart(const struct frag_prediction *p, const struct scale *out, struct frag_answer *a)
{
	const struct frag_sim_config *card = &p->target->card;
	uint64_t room =
		FRAG_MIN(frag_target_limit(p->target), card->total_bytes - card->context_bytes);
	const struct cell *cells = out->results.rows;
	struct point *points = frag_answer_new(a, out->results.count, sizeof(*points));
	size_t n = 0, last = p->values_count - 1;
	const struct cell *most = &cells[last * p->specs_count];

	for (size_t k = 0; points && k < p->specs_count; k++)
		for (size_t i = 0; i < p->values_count; i++) {
			const struct cell *c = &cells[i * p->specs_count + k];

			if (p->cells[i * p->specs_count + k].completed)
				points[n++] = FRAG_ROW_VALUES(point, POINT);
		}
	if (!n)
		return;
	frag_answer_chart(
		a, &(struct frag_answer_chart){
			   .script = "scale",
			   .extra = p->name,
			   .heading = "Peak memory by size",
			   .title = isnan(out->growth)
					    ? frag_answer_print(a, "Peak memory by %s", p->name)
					    : frag_answer_print(
						      a,
						      "At %s = %" PRIu64 " %s reserves %s, %.1f "
						      "times that at %" PRIu64,
						      p->name, most->value, most->policy,
						      FRAG_BYTES(most->peak_reserved_most_bytes),
						      out->growth, cells->value),
			   .subtitle = p->parts[p->parts_count - 1].recording.trace->name,
			   .caption = "Filled marks are recorded, open ones predicted. The area is "
				      "what was requested; a grey dashed line, if any, what the "
				      "card has.",
			   .shape = &point_shape,
			   .rows = { points, n } });
}

/* ---- all of it ------------------------------------------------------------------- */

static const struct test *test_of(const struct frag_prediction *p, struct frag_answer *a)
{
	const struct frag_prediction_cell *x = &p->check_predicted, *y = &p->check_recorded;
	struct test t = { p->parts[p->parts_count - 1].value, x->low_bytes, x->high_bytes,
			  y->low_bytes, (double)x->low_bytes / (double)y->low_bytes - 1 };

	return p->checked ? FRAG_ANSWER_KEEP(a, t) : NULL;
}

static int fill(struct frag_prediction *p, struct scale *out, struct frag_answer *a,
		struct frag_err *err)
{
	size_t count = p->values_count * p->specs_count;
	struct cell *cells = frag_answer_new(a, count, sizeof(*cells));
	struct largest *largest = frag_answer_new(a, p->specs_count, sizeof(*largest));
	struct part *parts = frag_answer_new(a, p->parts_count, sizeof(*parts));
	struct law *laws = frag_answer_new(a, FRAG_SCALING_LAWS, sizeof(*laws));
	uint64_t requests;
	const struct frag_prediction_cell *first = p->cells,
					  *last = &p->cells[count - p->specs_count];
	bool grows = p->values_count > 1 && first->completed && last->completed && first->low_bytes;

	FRAG_CHECK_ALLOC(cells && largest && parts && laws, "answer", err);
	for (size_t n = 0; n < count; n++) {
		const struct frag_prediction_cell *c = &p->cells[n];
		size_t i = n / p->specs_count, k = n % p->specs_count;
		uint64_t none = c->completed ? 0 : UINT64_MAX;

		cells[n] = FRAG_ROW_VALUES(cell, CELL);
	}
	for (size_t i = 0; i < p->specs_count; i++)
		largest[i] = (struct largest){ frag_policy_spec_echo(p->specs[i]),
					       p->largest_low[i], p->largest_high[i] };
	requests = fill_matches(p, parts, laws);
	*out = FRAG_ROW_VALUES(scale, SCALE);
	frag_answer_data(a, &frag_scale_shape, out);
	frag_answer_csv(a, &cell_shape, cells, count);
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}

int frag_prediction_answer(struct frag_prediction *p, const char *card, struct frag_answer *a,
			   struct frag_err *err)
{
	struct scale *out = frag_answer_new(a, 1, sizeof(*out));

	FRAG_CHECK_ALLOC(out, "answer", err);
	FRAG_TRY(fill(p, out, a, err));
	a->title = "How memory grows";
	a->question = "What does the program need at other sizes, and what is the greatest that "
		      "the card takes?";
	remarks(p, out, a);
	conclude(p, card, a);
	frag_answer_gap(a);
	frag_answer_table(a, &cell_shape, out->results.rows, out->results.count);
	chart(p, out, a);
	frag_answer_gap(a);
	say_trust(p, out, a);
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}
