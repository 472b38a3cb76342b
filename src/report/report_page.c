/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.html of a trace: the answer, what to set, the table, the charts, what the words mean and
 * how it was done; and the page above several traces.
 */
#include <inttypes.h>
#include <math.h>

#include <frag/replay.h>

#include "charts/chart.h"
#include "rows.h"

static const struct {
	const char *word, *meaning;
} words[] = {
	{ "requested", "What the program asked for and has not freed." },
	{ "active", "Blocks handed out, with their rounding: live ones, and those freed while "
		    "another stream still uses them." },
	{ "reserved", "Physical memory taken from the card and not given back. This is what has to "
		      "fit, and what nvidia-smi shows (without the CUDA context)." },
	{ "rounding", "Bytes handed out beyond the request." },
	{ "waiting", "Freed by the program, but another stream may still use them." },
	{ "non-releasable", "Free, but in a segment that also holds live blocks: it cannot be "
			    "given back. This is fragmentation." },
	{ "releasable", "Free, and the policy could give it back to the card at once (as "
			"torch.cuda.empty_cache() does)." },
	{ "other", "Reserved by the device beyond what the policy asked for: its rounding to whole "
		   "pages." },
	{ "efficiency", "Peak active / peak reserved; 100 % is best." },
	{ "lower bound", "The largest sum of live requests, each rounded up to 512 bytes: no "
			 "allocator can reserve less." },
	{ "offline placement", "One region with a fixed place for every request, made with "
			       "knowledge of the whole recording and checked for overlaps. What an "
			       "allocator loses beyond it, it loses because it does not know the "
			       "future." },
	{ "planned", "A policy that may look at the first half of the recording, places its steps "
		     "offline, and runs all of it with that plan; what is not in it goes to "
		     "PyTorch's allocator." },
	{ "driver time", "Time spent in cudaMalloc, cudaFree, cuMemMap and the like over the whole "
			 "trace." },
};

/* ---- the head: is it what was recorded? ------------------------------------------------- */

#define HEAD(F, P, S) \
	P(S, TEXT, checked, "checked", "was the recording reproduced, event by event") \
	P(S, TEXT, recorded_under, "recorded under", \
	  "memory limit when recorded, and how it is known")
FRAG_ROW(head_row, "head", HEAD, "what a report rests on");

/* Was it compared with the recording? Settings that are not known here leave nothing to verify. */
static bool is_compared(const struct frag_section *s)
{
	return s->settled.checked && s->settled.followed;
}

static void say_verdict(const struct frag_section *s, struct frag_text *out)
{
	const struct frag_settled *t = &s->settled;

	frag_text_addf(out,
		       "%s: %s of %s addresses, %" PRIu64 " of %" PRIu64 " segment events, %" PRIu64
		       " of %" PRIu64 " refusals",
		       t->undetermined ? "undetermined"
		       : t->identical  ? "identical to what was recorded"
				       : "different from what was recorded",
		       FRAG_GROUPED(t->allocs.same), FRAG_GROUPED(t->allocs.all), t->segments.same,
		       t->segments.all, t->ooms.same, t->ooms.all);
	if (*t->difference)
		frag_text_addf(out, "; %s: %s", t->undetermined ? "why" : "first difference",
			       t->difference);
}

/* One verdict where all are alike, else how many of them. */
static void say_verdicts(const struct frag_report *r, struct frag_text *out)
{
	const struct frag_section *first = NULL;
	size_t same = 0, known = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct frag_section *s = &r->sections[i];

		known += is_compared(s);
		same += is_compared(s) && s->settled.identical;
		if (is_compared(s) && !s->settled.identical && !first)
			first = s;
	}
	if (!known)
		frag_text_add(out, "nothing to compare with: no record of what the allocator did");
	else if (r->count == 1)
		say_verdict(&r->sections[0], out);
	else
		frag_text_addf(out, "identical to what was recorded: %zu of %zu", same, r->count);
	if (r->count > 1 && first) {
		frag_text_add(out, "; ");
		frag_section_title(first, out);
		frag_text_add(out, ": ");
		say_verdict(first, out);
	}
}

/* A limit that held when the recording was made, and how it is known. */
static void say_limits(const struct frag_report *r, struct frag_text *out)
{
	char text[600];

	for (size_t i = 0; i < r->count; i++) {
		const struct frag_section *s = &r->sections[i];

		if (!s->settled.checked || s->settled.limit_source == FRAG_LIMIT_NONE)
			continue;
		frag_text_add(out, out->len ? "; " : "");
		if (r->count > 1) {
			frag_section_title(s, out);
			frag_text_add(out, ": ");
		}
		frag_text_add(out, frag_settled_text(&s->settled, text, sizeof(text)));
	}
}

static void begin(const struct frag_report *r, const char *subject, const char *question,
		  struct frag_answer *a)
{
	struct head_row *head = frag_answer_new(a, 1, sizeof(*head));
	struct frag_text t = { 0 };

	frag_report_data(r, a);
	a->command = r->command;
	a->title = r->title ? r->title : subject;
	a->question = question;
	a->author = r->author;
	a->date = r->date;
	if (!head)
		return;
	say_verdicts(r, &t);
	head->checked = frag_answer_take(a, &t);
	say_limits(r, &t);
	head->recorded_under = frag_answer_take(a, &t);
	frag_answer_facts(a, &head_row_shape, head);
}

/* ---- what to do, for those who read nothing else ---------------------------------------- */

/* Nothing completes: what is live at once says at least how large the card has to be. */
static void say_least_card(const struct frag_section *s, struct frag_answer *a)
{
	uint64_t bound = frag_section_bound(s);
	const struct frag_gpu *card = frag_section_card(s, bound, true);

	if (bound)
		frag_answer_say(a,
				"the program has %s or more live at once; %s%s. 'cufrag fit' finds "
				"what each policy needs",
				FRAG_BYTES(bound),
				card ? "the smallest known card with so much beside its CUDA "
				       "context is "
				     : "no known card has so much",
				card ? card->label : "");
}

static void add_actions(const struct frag_section *s, struct frag_answer *a)
{
	const char *set = frag_section_export(s, a), *run = frag_section_run(s, a);
	struct frag_advice advice;

	frag_section_advice(s, &advice);
	if (advice.pick == SIZE_MAX) {
		say_least_card(s, a);
		return;
	}
	if (set)
		frag_answer_paste(a, "What to set", set);
	else
		frag_answer_paste(a,
				  s->conf ? "What to use (not a PyTorch setting)" : "What to use",
				  s->results[advice.pick].policy);
	if (run)
		frag_answer_paste(a, "What needs less", run);
	if (advice.card || advice.tight)
		frag_answer_facts(a, &frag_advice_shape, frag_advice_data(s, a));
}

static void add_tile(const struct frag_result *r, const char *of, const char *what,
		     struct frag_answer *a)
{
	frag_answer_tile(a, frag_answer_print(a, "%s%s: %s", r->policy, of, what),
			 FRAG_BYTES(r->m.peak_reserved_bytes));
}

static void add_tiles(const struct frag_section *s, struct frag_answer *a)
{
	const struct frag_result *base = &s->results[s->baseline];
	const char *recorded = s->baseline_recorded ? " (as recorded)" : "";
	struct frag_advice advice;

	frag_section_advice(s, &advice);
	if (advice.pick != s->baseline)
		add_tile(base, recorded,
			 base->completed ? "peak reserved" : "reserved before out of memory", a);
	if (advice.pick != SIZE_MAX)
		add_tile(&s->results[advice.pick], advice.pick == s->baseline ? recorded : "",
			 "peak reserved", a);
	if (s->optimum.placed)
		frag_answer_tile(a, "offline placement: enough if all is known in advance",
				 FRAG_BYTES(s->optimum.place_bytes));
	if (!s->optimum.hidden)
		frag_answer_tile(a, "lower bound: no allocator can need less",
				 FRAG_BYTES(frag_section_bound(s)));
}

/* ---- the page of a trace ---------------------------------------------------------------- */

static void add_method(const struct frag_report *r, struct frag_answer *a)
{
	const char *card =
		!r->card.modelled
			? frag_answer_print(a, "a real %s. Bytes and times are those of the card.",
					    r->card.name)
			: frag_answer_print(a,
					    "a simulated %s with %s, of which the CUDA context "
					    "takes %s. Bytes are exact; driver times are modelled "
					    "from measurements of %s%s%s, and host times were "
					    "measured on this machine.",
					    r->card.name, FRAG_BYTES(r->card.total_bytes),
					    FRAG_BYTES(r->card.context_bytes),
					    r->cost_borrowed ? "another card (" : "a real card",
					    r->cost_borrowed ? r->cost_profile : "",
					    r->cost_borrowed ? ")" : "");

	frag_answer_heading(a, "How it was done");
	frag_answer_say(
		a,
		"Every allocation and free of the recording was replayed, in order, through each "
		"policy on %s A block could be reused %s. %s. 'cufrag verify' checks event by "
		"event that the simulation equals what really happened. Every figure names the "
		"file with its data, in the folder of this page.",
		card,
		r->free_at_request ? "as soon as the program had freed it"
				   : "when its recorded free had completed on all streams",
		r->skip_oom ? "What a policy could not serve was left out, and the replay went on"
			    : "Where a policy could not serve a request, its replay stopped");
}

void frag_report_page(const struct frag_report *r, struct frag_answer *a)
{
	begin(r, r->sections[0].trace,
	      "Which setting needs the least GPU memory for this job, which card is enough for it, "
	      "and what is the rest of the memory lost to?",
	      a);
	frag_spread_parts(r, true, a);
	for (size_t n = 0; n < r->count; n++) {
		const struct frag_section *s = &r->sections[n];

		if (r->count > 1)
			frag_answer_heading(a, "%s", frag_section_title_text(s, a));
		frag_refusals_parts(s, true, a);
		frag_answer_conclude(a, "%s", frag_section_answer(s, a));
		add_actions(s, a);
		add_tiles(s, a);
		frag_section_remarks(r, s, false, a);
		frag_section_table(r, s, a);
		frag_charts_parts(r, s, a);
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(words); i++)
		frag_answer_word(a, words[i].word, words[i].meaning);
	add_method(r, a);
}

/* ---- the page above several traces ------------------------------------------------------ */

#define INDEX(F, P, S) \
	P(S, TEXT, title, "trace", "its own page", .href = "page") \
	F(S, TEXT, page, NULL, "its page") \
	P(S, BYTES, bound_bytes, "lower bound", "no allocator can reserve less", .unit = "GiB", \
	  .precision = 2) \
	P(S, TEXT, compared_with, "compared with", "the recorded settings, or the first policy") \
	P(S, BYTES, compared_bytes, "it reserves", "at its peak", .unit = "GiB", .precision = 2, \
	  .none = "out of memory") \
	P(S, TEXT, advised, "advised", "policy to take", .none = "none completes") \
	P(S, BYTES, advised_bytes, "reserves", "at its peak", .unit = "GiB", .precision = 2) \
	P(S, RATIO, saved_ratio, "saved", "of what the first one reserves", .unit = "%", \
	  .precision = 1) \
	P(S, TEXT, card, "smallest known card", "with room for the advised policy and the margin")
FRAG_ROW(index_row, "index", INDEX, "a trace and what is advised for it");

static struct index_row index_row(const struct frag_section *s, struct frag_answer *a)
{
	const struct frag_result *base = &s->results[s->baseline];
	uint64_t compared = base->completed ? base->m.peak_reserved_bytes : UINT64_MAX, reserved;
	struct index_row row = { .title = frag_section_title_text(s, a),
				 .page = frag_answer_print(a, "%s/report.html",
							   s->folder ? s->folder : "."),
				 .compared_with = base->policy,
				 .bound_bytes = frag_section_bound(s),
				 .compared_bytes = compared,
				 .advised_bytes = UINT64_MAX,
				 .saved_ratio = NAN };
	struct frag_advice advice;

	frag_section_advice(s, &advice);
	if (advice.pick == SIZE_MAX)
		return row;
	reserved = s->results[advice.pick].m.peak_reserved_bytes;
	row.advised = s->results[advice.pick].policy;
	row.advised_bytes = reserved;
	row.card = advice.card ? advice.card->label : NULL;
	if (base->completed && compared && !s->not_reproduced_bytes)
		row.saved_ratio = 1 - (double)reserved / (double)compared;
	return row;
}

void frag_report_index(const struct frag_report *r, struct frag_answer *a)
{
	struct index_row *rows = frag_answer_new(a, r->count, sizeof(*rows));

	begin(r, "GPU memory by allocation policy",
	      "Which setting needs the least memory for each of these jobs, what does that save, "
	      "and which card is enough?",
	      a);
	frag_answer_remark(a, "Replayed on %s.", frag_report_settings(r, NULL, a));
	for (size_t i = 0; rows && i < r->count; i++)
		rows[i] = index_row(&r->sections[i], a);
	frag_answer_table(a, &index_row_shape, rows, rows ? r->count : 0);
	if (r->missing)
		frag_answer_warn(a, "interrupted, missing: %s", r->missing);
	frag_spread_parts(r, true, a);
}

/* ---- files ------------------------------------------------------------------------------ */

static int put(const struct frag_report *r, const struct frag_answer *a, const char *dir,
	       unsigned formats, unsigned threads, struct frag_err *err)
{
	return frag_answer_put_page(a,
				    &(struct frag_answer_page){ .dir = dir,
								.file = "report.html",
								.command_line = r->command_line,
								.formats = formats,
								.threads = threads },
				    err);
}

int frag_report_write(const struct frag_report *r, const char *dir, unsigned formats,
		      unsigned threads, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	frag_report_page(r, &a);
	a.live = r->live;
	a.live_policy = r->live_policy;
	return put(r, &a, dir, formats, threads, err);
}

int frag_report_write_index(const struct frag_report *r, const char *dir, unsigned formats,
			    unsigned threads, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	frag_report_index(r, &a);
	return put(r, &a, dir, formats & ~FRAG_FORMAT_ONE_PDF, threads, err);
}
