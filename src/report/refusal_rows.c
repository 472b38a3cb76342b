/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was refused when a trace was recorded; see rows.h. The moments are those of the recorded
 * settings' own replay, which is the recording where that is identical.
 */

#include <inttypes.h>

#include "rows.h"

#define SHOWN 8u /* JSON has FRAG_REFUSED_KEPT */

static const struct frag_result *recorded(const struct frag_section *s)
{
	return &s->results[s->baseline];
}

uint64_t frag_refusals_count(const struct frag_section *s)
{
	uint64_t n = s->settled.refused_count;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_metrics *m = &s->results[i].m;

		n = FRAG_MAX(n, m->refused_again_count + m->granted_refusals_count);
	}
	return n;
}

static uint64_t active_bytes(const struct frag_loss *l)
{
	return l->requested_bytes + l->rounding_bytes + l->waiting_bytes;
}

/* ---- the sentence ------------------------------------------------------------------ */

static void say_first(const struct frag_section *s, struct frag_text *out)
{
	const struct frag_result *base = recorded(s);
	const struct frag_refused *f = base->refused;

	if (!base->refused_count)
		return;
	frag_text_addf(out, "; the first asked for %s at %.3f s, after %" PRIu64 " step%s",
		       FRAG_BYTES(f->bytes), (double)f->time_us / 1e6, f->step,
		       f->step == 1 ? "" : "s");
	if (f->served)
		return;
	frag_text_addf(out,
		       ", when %s of %s reserved were active and the largest free block had %s",
		       FRAG_BYTES(active_bytes(&f->at)), FRAG_BYTES(f->at.reserved_bytes),
		       FRAG_BYTES(f->at.largest_free_bytes));
	if (f->at.largest_free_bytes >= f->bytes)
		frag_text_add(out, " (of another stream or pool)");
	if (!s->baseline_recorded)
		frag_text_addf(out, " (simulated with '%s')", base->policy);
}

/* Which of them serves most. */
static void say_best(const struct frag_section *s, uint64_t count, struct frag_text *out)
{
	size_t best = frag_section_best(s), all = 0;
	uint64_t most;

	if (best == SIZE_MAX) {
		frag_text_add(out, ". No policy reaches the end of the trace");
		return;
	}
	most = s->results[best].m.granted_refusals_count;

	for (size_t i = 0; i < s->count; i++) {
		uint64_t served = s->results[i].m.granted_refusals_count;

		if (!s->results[i].completed)
			continue;
		all += served == count;
		if (served > most) {
			most = served;
			best = i;
		}
	}
	if (s->limit_bytes == UINT64_MAX)
		frag_text_add(out, ". On this card ");
	else
		frag_text_addf(out, ". With a limit of %s ", FRAG_BYTES(s->limit_bytes));
	if (all == s->count)
		frag_text_add(out, s->count > 1 ? "every policy serves all of them"
						: "all of them are served");
	else if (!most)
		frag_text_add(out, s->count > 1 ? "no policy that reaches the end of the trace "
						  "serves any of them"
						: "all of them are refused again");
	else if (most == count)
		frag_text_addf(out, "'%s' serves all of them", s->results[best].policy);
	else
		frag_text_addf(out, "no policy serves all of them; '%s' serves the most, %" PRIu64,
			       s->results[best].policy, most);
}

/* ---- the moments ------------------------------------------------------------------- */

#define OUTCOME_ENTRY(F, P, S) \
	F(S, TEXT, policy, NULL, "policy") \
	F(S, TEXT, outcome, NULL, "served, refused or not reached")
FRAG_ROW(outcome_entry, "outcome", OUTCOME_ENTRY, "what a policy does with the request");

#define REFUSAL(F, P, S) \
	P(S, TEXT, number, frag_answer_print(a, "#%zu", i + 1), "refused", \
	  "number of the request, in the order of the recording") \
	F(S, BYTES, bytes, f->bytes, "request", "bytes that the program asked for") \
	F(S, COUNT, event, f->event, "event", "index of the event", .spare = 1) \
	F(S, US, time_us, f->time_us, "at", "recorded time", .unit = "s", .precision = 3) \
	F(S, COUNT, step, f->step, "step", "steps completed before it") \
	F(S, BOOL, as_recorded, s->baseline_recorded, NULL, \
	  "memory was so when recorded; false: simulated") \
	F(S, BYTES, active_bytes, f->served ? UINT64_MAX : active_bytes(l), "active", \
	  "blocks handed out then, with their rounding", .spare = 2) \
	P(S, BYTES, reserved_bytes, f->served ? UINT64_MAX : l->reserved_bytes, "reserved", \
	  "taken from the card then, after what could be was given back") \
	P(S, BYTES, free_bytes, \
	  f->served ? UINT64_MAX : l->non_releasable_bytes + l->releasable_bytes, "free", \
	  "of it, free", .spare = 3) \
	P(S, BYTES, largest_free_bytes, f->served ? UINT64_MAX : l->largest_free_bytes, \
	  "largest free", "the largest free block") \
	F(S, OBJECT, memory, f->served ? NULL : l, NULL, "use of the bytes", \
	  .of = &frag_loss_shape) \
	F(S, LIST, outcomes, outcomes_of(s, i, a), NULL, "of each policy", \
	  .of = &outcome_entry_shape)
FRAG_VALUED_ROW_AS(, frag_refusal_shape, refusal_row, "refusal", REFUSAL,
		   "a request that was refused when recorded");

static struct frag_rows outcomes_of(const struct frag_section *s, size_t i, struct frag_answer *a)
{
	struct outcome_entry *rows = frag_answer_new(a, s->count, sizeof(*rows));

	for (size_t k = 0; rows && k < s->count; k++) {
		const struct frag_result *r = &s->results[k];

		rows[k] = (struct outcome_entry){ r->policy, i >= r->refused_count  ? "not reached"
							     : r->refused[i].served ? "served"
										    : "refused" };
	}
	return (struct frag_rows){ rows, rows ? s->count : 0 };
}

struct frag_rows frag_refusals_rows(const struct frag_section *s, struct frag_answer *a)
{
	size_t count = s->count ? recorded(s)->refused_count : 0;
	struct refusal_row *rows = frag_answer_new(a, count, sizeof(*rows));

	for (size_t i = 0; rows && i < count; i++) {
		const struct frag_refused *f = &recorded(s)->refused[i];
		const struct frag_loss *l = &f->at;

		rows[i] = FRAG_ROW_VALUES(refusal_row, REFUSAL);
	}
	return (struct frag_rows){ rows, rows ? count : 0 };
}

/* ---- the part of an answer ----------------------------------------------------------- */

void frag_refusals_parts(const struct frag_section *s, bool tables, struct frag_answer *a)
{
	uint64_t count = frag_refusals_count(s);
	struct frag_text sentence = { 0 };
	struct frag_rows rows;

	if (!count)
		return;
	frag_text_addf(&sentence, "%s %s refused when recorded", FRAG_GROUPED(count),
		       count == 1 ? "request was" : "requests were");
	say_first(s, &sentence);
	say_best(s, count, &sentence);
	frag_answer_warn(a, "%s", frag_text_str(&sentence));
	frag_text_release(&sentence);
	rows = frag_refusals_rows(s, a);
	if (!tables || !rows.count)
		return;
	frag_answer_gap(a);
	frag_answer_table(a, &frag_refusal_shape, rows.rows, FRAG_MIN(rows.count, (size_t)SHOWN));
	if (count > SHOWN)
		frag_answer_say(a, "And %" PRIu64 " more; JSON has the first %u.", count - SHOWN,
				FRAG_REFUSED_KEPT);
	frag_answer_gap(a);
}
