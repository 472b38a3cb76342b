/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was refused when a trace was recorded; see refusals.h. The moments are those of the recorded
 * settings' own replay, which is the recording where that is identical.
 */
#include "refusals.h"

#include <inttypes.h>

#define SHOWN 8u /* of each table; JSON has FRAG_REFUSED_KEPT */

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
	frag_text_add(out, "; the first one wanted ");
	frag_text_add_bytes(out, f->bytes);
	frag_text_addf(out, " at %.3f s, with %" PRIu64 " steps done", (double)f->time_us / 1e6,
		       f->step);
	if (f->served)
		return;
	frag_text_add(out, ", when of ");
	frag_text_add_bytes(out, f->at.reserved_bytes);
	frag_text_add(out, " reserved ");
	frag_text_add_bytes(out, active_bytes(&f->at));
	frag_text_add(out, " were active, and the largest free block had ");
	frag_text_add_bytes(out, f->at.largest_free_bytes);
	if (f->at.largest_free_bytes >= f->bytes)
		frag_text_add(out, ", of another stream or pool");
	if (!s->baseline_recorded)
		frag_text_addf(out, " (simulated with '%s')", base->policy);
}

/* Which of them serves most. */
static void say_best(const struct frag_section *s, uint64_t count, struct frag_text *out)
{
	size_t best = frag_section_best(s), all = 0;
	uint64_t most;

	if (best == SIZE_MAX) {
		frag_text_add(out, ". No replay here came to its end");
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
	frag_text_add(out,
		      s->limit_bytes == UINT64_MAX ? ". On this card " : ". Under a limit of ");
	if (s->limit_bytes != UINT64_MAX) {
		frag_text_add_bytes(out, s->limit_bytes);
		frag_text_add(out, " ");
	}
	if (all == s->count)
		frag_text_add(out, s->count > 1 ? "every policy here serves all of them"
						: "all of them are served");
	else if (!most)
		frag_text_add(out, s->count > 1 ? "no policy that completes serves any of them"
						: "all of them are refused again");
	else if (most == count)
		frag_text_addf(out, "'%s' serves all of them", s->results[best].policy);
	else
		frag_text_addf(out, "none serves all of them; '%s' serves most: %" PRIu64,
			       s->results[best].policy, most);
}

void frag_refusals_sentence(const struct frag_section *s, struct frag_text *out)
{
	uint64_t count = frag_refusals_count(s);

	frag_text_add_grouped(out, count);
	frag_text_add(out, count == 1 ? " request was refused when recorded"
				      : " requests were refused when recorded");
	say_first(s, out);
	say_best(s, count, out);
}

/* ---- the tables -------------------------------------------------------------------- */

static void moment_row(struct frag_table *t, size_t n, const struct frag_refused *f)
{
	const struct frag_loss *l = &f->at;

	frag_table_cell(t, "#%zu", n + 1);
	frag_table_cell(t, "%s", FRAG_BYTES(f->bytes));
	frag_table_cell(t, "%" PRIu64, f->event);
	frag_table_cell(t, "%.3f", (double)f->time_us / 1e6);
	frag_table_cell(t, "%" PRIu64, f->step);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t bytes[] = { active_bytes(l), l->reserved_bytes,
				     l->non_releasable_bytes + l->releasable_bytes,
				     l->largest_free_bytes };

		frag_table_cell(t, "%s", f->served ? "-" : FRAG_BYTES(bytes[i]));
	}
}

static void fill_moments(const struct frag_section *s, size_t count, struct frag_table *t)
{
	static const struct frag_table_column columns[] = {
		{ "refused", "", true, "number of the request, in the order of the recording" },
		{ "request", "", false, "bytes that the program asked for" },
		{ "event", "", false, "index of the event" },
		{ "at", "s", false, "recorded time" },
		{ "step", "", false, "steps completed before it" },
		{ "active", "", false, "blocks handed out then, with their rounding" },
		{ "reserved", "", false,
		  "taken from the card then, after what could be was given back" },
		{ "free", "", false, "of it, free" },
		{ "largest free", "", false, "the largest free block" },
	};
	static const char *const spare[] = { "event", "active", "free", NULL };

	frag_table_columns(t, columns, FRAG_ARRAY_LEN(columns));
	t->spare = spare;
	for (size_t i = 0; i < count; i++)
		moment_row(t, i, &recorded(s)->refused[i]);
}

static void outcome_row(struct frag_table *t, const struct frag_result *r, size_t count,
			uint64_t all)
{
	frag_table_cell(t, "%s", r->policy);
	for (size_t i = 0; i < count; i++)
		frag_table_cell(t, "%s",
				i >= r->refused_count  ? "-"
				: r->refused[i].served ? "served"
						       : "refused");
	frag_table_cell(t, "%" PRIu64 " of %" PRIu64, r->m.granted_refusals_count, all);
}

static void fill_outcomes(const struct frag_section *s, const size_t *order, size_t count,
			  struct frag_table *t)
{
	static const char *const numbers[SHOWN] = {
		"#1", "#2", "#3", "#4", "#5", "#6", "#7", "#8"
	};
	static const char *const spare[] = { "#8", "#7", "#6", "#5", "#4", "#3", "#2", "#1", NULL };
	struct frag_table_column c = { "policy", "", true, "what it does with the same request" };

	frag_table_column(t, &c);
	for (size_t i = 0; i < count; i++) {
		c = (struct frag_table_column){ numbers[i], "", true,
						"- = the replay did not come so far" };
		frag_table_column(t, &c);
	}
	c = (struct frag_table_column){ "served", "", false, "of all that were refused" };
	frag_table_column(t, &c);
	t->spare = spare;
	for (size_t i = 0; i < s->count; i++)
		outcome_row(t, &s->results[order[i]], count, frag_refusals_count(s));
}

int frag_refusals_tables(const struct frag_section *s, size_t columns, struct frag_table *moments,
			 struct frag_table *outcomes, struct frag_err *err)
{
	FRAG_AUTO_FREE size_t *order = frag_host_calloc(s->count, sizeof(*order));
	size_t count = FRAG_MIN(recorded(s)->refused_count, (size_t)SHOWN);

	*moments = *outcomes = (struct frag_table){ .room = columns };
	FRAG_CHECK_ALLOC(order, "table", err);
	frag_section_order(s, order);
	fill_moments(s, count, moments);
	fill_outcomes(s, order, count, outcomes);
	return 0;
}

void frag_refusals_rest(const struct frag_section *s, struct frag_text *out)
{
	uint64_t count = frag_refusals_count(s);

	if (count > SHOWN)
		frag_text_addf(out, "And %" PRIu64 " more; JSON has the first %u.\n", count - SHOWN,
			       FRAG_REFUSED_KEPT);
}

int frag_refusals_text(const struct frag_report *r, const struct frag_section *s, bool tables,
		       struct frag_text *out, struct frag_err *err)
{
	FRAG_AUTO(frag_table_release) struct frag_table moments = { 0 }, outcomes = { 0 };

	if (!frag_refusals_count(s))
		return 0;
	frag_refusals_sentence(s, out);
	frag_text_add(out, "\n");
	if (!tables)
		return 0;
	FRAG_TRY(frag_refusals_tables(s, r->columns, &moments, &outcomes, err));
	if (moments.cells_count) {
		frag_text_add(out, "\n");
		frag_table_print(&moments, out);
		frag_refusals_rest(s, out);
		frag_text_add(out, "\n");
		frag_table_print(&outcomes, out);
		frag_text_add(out, "\n");
	}
	return 0;
}
