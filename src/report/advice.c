/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a comparison: what to take, in words, and the line that sets it. */
#include "report/report.h"

#include <frag/policy.h>

#include <inttypes.h>
#include <string.h>

#include "base/clean.h"
#include "recording/settled_shape.h"

double frag_section_driver_ratio(const struct frag_section *s, const struct frag_result *r)
{
	return s->duration_us ? (double)r->m.modelled_ns / 1e3 / (double)s->duration_us : 0;
}

/* Can it be set where PyTorch runs? */
static bool is_setting(const struct frag_result *r)
{
	return r->conf != NULL;
}

/* Kinds of candidates. live: what PyTorch cannot be set to, but cufrag run serves in its place. */
enum { SETTINGS = 1, CHEAP = 2, LIVE = 4 };

/* The one that needs least of those that are all of this, and less than `best`; SIZE_MAX: none. */
static size_t best_of(const struct frag_section *s, unsigned kinds, size_t best)
{
	const uint32_t not_live = FRAG_POLICY_PLANNED | FRAG_POLICY_STACK | FRAG_POLICY_NO_MEMORY;
	size_t than = best;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_result *r = &s->results[i];

		if (r->completed && !frag_result_reserved_nothing(r) &&
		    (!(kinds & SETTINGS) || is_setting(r)) &&
		    (!(kinds & LIVE) || !(is_setting(r) || r->policy_flags & not_live)) &&
		    !(r->policy_flags & FRAG_POLICY_PLANNED) &&
		    (!(kinds & CHEAP) || frag_section_driver_ratio(s, r) < FRAG_CHEAP_RATIO) &&
		    (best == SIZE_MAX || frag_result_better(r, &s->results[best])))
			best = i;
	}
	return best == than ? SIZE_MAX : best;
}

static void choose(const struct frag_section *s, struct frag_advice *out)
{
	bool settings = s->conf && best_of(s, SETTINGS, SIZE_MAX) != SIZE_MAX;
	size_t any = best_of(s, settings ? SETTINGS : 0, SIZE_MAX),
	       cheap = best_of(s, settings ? SETTINGS | CHEAP : CHEAP, SIZE_MAX);

	out->of_settings = settings;
	/* a crash saves no time */
	out->pick =
		cheap != SIZE_MAX && s->results[cheap].m.ooms_count <= s->results[any].m.ooms_count
			? cheap
			: any;
	out->of_cheap = out->pick != any;
	/* a trace on which nothing but a plan completes */
	if (out->pick == SIZE_MAX)
		out->pick = out->least;
}

void frag_section_advice(const struct frag_section *s, struct frag_advice *out)
{
	const struct frag_result *r;

	*out = (struct frag_advice){ .least = frag_section_best(s), .live = SIZE_MAX };
	choose(s, out);
	if (out->pick == SIZE_MAX)
		return;
	r = &s->results[out->pick];
	if (s->conf) {
		out->conf = r->conf;
		out->live = best_of(s, LIVE | CHEAP, out->pick);
	}
	out->refused = r->m.ooms_count;
	if (out->refused || s->ending.out_of_memory)
		return; /* what it reserved is not what it needs */
	out->card = frag_section_card(s, r->m.peak_reserved_bytes, false);
	out->tight = frag_section_card(s, r->m.peak_reserved_bytes, true);
	out->tight = out->tight == out->card ? NULL : out->tight;
	out->other_kernels = frag_other_kernels(s->chip, out->card);
	if (out->card)
		out->spare_bytes = out->card->total_bytes - out->card->context_bytes -
				   r->m.peak_reserved_bytes;
}

/* ---- the sentence ------------------------------------------------------------------ */

/* Compared with the recorded settings, or with what was named first. */
static void say_saving(const struct frag_section *s, const struct frag_result *best, bool of_these,
		       struct frag_answer *texts, struct frag_text *out)
{
	const struct frag_result *base = &s->results[s->baseline];
	uint64_t a = best->m.peak_reserved_bytes, b = base->m.peak_reserved_bytes;
	uint64_t by = a < b ? b - a : a - b;
	const char *as = s->baseline_recorded ? "the recorded " : "";

	if (s->not_reproduced_bytes) {
		frag_text_addf(out, "; %s",
			       frag_not_reproduced_text(texts, s->not_reproduced_bytes, b));
		return;
	}
	if (s->count == 1)
		return;
	if (!base->completed) {
		frag_text_addf(out, ", where %s'%s' runs out of memory at event %" PRIu64, as,
			       base->policy, base->oom.event);
	} else if (best == base) {
		frag_text_addf(out, "; %sno other %s %s",
			       s->baseline_recorded ? "these are the recorded settings, and " : "",
			       of_these ? "of these" : "policy here",
			       best->m.ooms_count ? "is better" : "needs less");
	} else if (a == b) {
		frag_text_addf(out, ", as much as %s'%s'", as, base->policy);
	} else {
		frag_text_addf(out, ", %s (%.1f %%) %s than %s'%s' with %s", FRAG_BYTES(by),
			       100.0 * (double)by / (double)b, a < b ? "less" : "more", as,
			       base->policy, FRAG_BYTES(b));
	}
	if (best != base && base->completed && base->m.ooms_count)
		frag_text_addf(out, ", which refuses %" PRIu64, base->m.ooms_count);
}

static void say_driver(const struct frag_section *s, const struct frag_result *r,
		       struct frag_text *out)
{
	double ratio = frag_section_driver_ratio(s, r);

	frag_text_addf(out, "%s in the driver, %.*f %% of the recorded time",
		       FRAG_NS(r->m.modelled_ns), ratio < 0.1 ? 1 : 0, 100 * ratio);
}

static void say_card(const struct frag_section *s, const struct frag_advice *a,
		     struct frag_text *out)
{
	bool margin = s->headroom.ratio > 0 || s->headroom.bytes;

	if (s->ending.out_of_memory) {
		frag_text_add(out, "; which card is enough is unknown");
		return;
	}
	if (a->refused) {
		frag_text_add(out, "; 'cufrag fit' finds the card that serves everything");
		return;
	}
	if (!a->card && !a->tight) {
		frag_text_add(out, s->catalog && s->catalog->path
					   ? "; no card of the list has room for it"
					   : "; no known card has room for it");
		return;
	}
	frag_text_add(out, "; ");
	frag_section_card_kind(s, out);
	if (!a->card) {
		frag_text_addf(out, " with room for it is %s, but none leaves the margin",
			       a->tight->label);
		return;
	}
	frag_text_addf(out, " with room for it%s is %s, with %s to spare",
		       margin ? " and a margin" : "", a->card->label, FRAG_BYTES(a->spare_bytes));
	if (frag_section_job_price(s, a->card) > 0)
		frag_text_addf(out, ", at %.2g an hour %.3g for what was recorded",
			       a->card->price_per_hour, frag_section_job_price(s, a->card));
	if (a->other_kernels)
		frag_text_addf(out,
			       ", if the program needs no more there: it was recorded for %s, "
			       "and on another compute capability another kernel choice is likely",
			       s->chip->shown);
}

/* Nothing completed, or nothing was reserved. */
static void say_nothing(const struct frag_section *s, struct frag_text *out)
{
	for (size_t k = 0; k < s->count; k++) {
		if (s->results[k].completed) {
			frag_text_add(out, "nothing was reserved, so there is nothing to compare");
			return;
		}
	}
	frag_text_addf(out, "no policy completes '%s' here: %s", s->trace,
		       s->count == 1 ? "it runs out of memory"
				     : "every one of them runs out of memory");
}

/* Which ones the pick is the best of. */
static void say_among(const struct frag_section *s, const struct frag_advice *a,
		      struct frag_text *out)
{
	size_t others = 0;

	for (size_t i = 0; i < s->count; i++)
		others += !is_setting(&s->results[i]);
	if (a->of_cheap)
		frag_text_addf(
			out, "of %s that spend less than 1 %% of the recorded time in the driver, ",
			a->of_settings ? "PyTorch's settings" : "the policies");
	else if (a->of_settings && others)
		frag_text_add(out, "of PyTorch's settings, ");
}

/* Second, what needs even less: a policy that cufrag run serves, or one that costs much time. */
static void say_least(const struct frag_section *s, const struct frag_advice *a,
		      struct frag_text *out)
{
	size_t least = a->live == SIZE_MAX ? a->least : a->live;
	const struct frag_result *r = &s->results[least];
	bool serves = r->m.ooms_count < a->refused;

	if (least == a->pick || !frag_result_better(r, &s->results[a->pick]))
		return;
	if (serves && r->m.ooms_count)
		frag_text_addf(out, ". '%s' would refuse %" PRIu64 ",", r->policy, r->m.ooms_count);
	else
		frag_text_addf(out, ". '%s' would %s", r->policy,
			       serves ? "refuse nothing," : "do");
	frag_text_addf(out, " with %s", FRAG_BYTES(r->m.peak_reserved_bytes));
	if (a->live != SIZE_MAX)
		frag_text_add(out, ", through cufrag run");
	else if (r->policy_flags & FRAG_POLICY_PLANNED)
		frag_text_add(out, ", but has seen the first steps in advance");
	else if (frag_section_driver_ratio(s, r) >= FRAG_CHEAP_RATIO) {
		frag_text_add(out, ", but spends ");
		say_driver(s, r, out);
	} else if (a->of_settings && !is_setting(r)) {
		frag_text_add(out, ", but is another allocator");
	}
}

const char *frag_section_answer(const struct frag_section *s, struct frag_answer *texts)
{
	const struct frag_result *best;
	struct frag_text out = { 0 };
	struct frag_advice a;

	frag_section_advice(s, &a);
	if (a.pick == SIZE_MAX) {
		say_nothing(s, &out);
		return frag_answer_take(texts, &out) ?: "";
	}
	best = &s->results[a.pick];
	say_among(s, &a, &out);
	if (a.refused) {
		uint64_t n = best->m.ooms_count, again = best->m.refused_again_count;

		/* a request that was refused is never left unsaid */
		frag_text_addf(&out, "'%s' refuses the fewest requests: %" PRIu64, best->policy, n);
		if (again == n)
			frag_text_add(&out, n == 1 ? ", as when recorded"
						   : ", all refused when recorded, too");
		else if (again)
			frag_text_addf(&out, ", %" PRIu64 " of them refused when recorded, too",
				       again);
		frag_text_add(&out, "; it has ");
	} else {
		frag_text_addf(&out,
			       s->ending.out_of_memory
				       ? "'%s' reserves least, as far as the recording goes: "
				       : "'%s' needs least: ",
			       best->policy);
	}
	frag_text_addf(&out, "%s reserved at peak", FRAG_BYTES(best->m.peak_reserved_bytes));
	say_saving(s, best, a.of_cheap || a.of_settings, texts, &out);
	say_card(s, &a, &out);
	if (s->count > 1 && frag_section_driver_ratio(s, best) >= FRAG_CHEAP_RATIO) {
		frag_text_add(&out, "; it spends ");
		say_driver(s, best, &out);
	}
	say_least(s, &a, &out);
	return frag_answer_take(texts, &out) ?: "";
}

/* "before", the word as a shell takes it, "after". */
static const char *shell_line(struct frag_answer *texts, const char *before, const char *word,
			      const char *after)
{
	FRAG_AUTO_FREE char *quoted = frag_shell_word(word);

	texts->failed |= !quoted;
	return frag_answer_print(texts, "%s%s%s", before, quoted ? quoted : "", after);
}

const char *frag_section_export(const struct frag_section *s, struct frag_answer *texts)
{
	const char *variable;
	struct frag_advice a;

	frag_section_advice(s, &a);
	if (a.pick == SIZE_MAX || !a.conf)
		return NULL;
	variable = s->results[a.pick].conf_variable;
	if (!*a.conf)
		return frag_answer_print(texts, "unset %s", variable);
	return shell_line(texts, frag_answer_print(texts, "export %s=", variable), a.conf, "");
}

const char *frag_section_run(const struct frag_section *s, struct frag_answer *texts)
{
	struct frag_advice a;

	frag_section_advice(s, &a);
	/* policies run in PyTorch */
	return a.live == SIZE_MAX || frag_own_allocators(s->format, NULL)
		       ? NULL
		       : shell_line(texts, "cufrag run --policy ", s->results[a.live].policy,
				    " -- python train.py");
}

const char *frag_section_planned(const struct frag_section *s, struct frag_answer *texts)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct frag_result *r = &s->results[i];
		double hits = 0;

		if (!r->plan)
			continue;
		if (!r->m.allocs_count)
			return frag_answer_print(texts, "'%s' has a plan from the %s", r->policy,
						 r->plan);
		for (const struct frag_counter *c = r->counters; c && c->name; c++)
			if (!strcmp(c->name, FRAG_COUNTER_PLAN_HITS))
				hits = (double)c->value;
		return frag_answer_print(
			texts, "'%s' has a plan from the %s, which placed %.1f %% of all requests",
			r->policy, r->plan, 100 * hits / (double)r->m.allocs_count);
	}
	return NULL;
}
