/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.html: the question, the answer, the table, the charts, what the words
 * mean, how it was done and how to do it again. Everything from outside goes
 * through frag_text_add_html.
 */
#include "html.h"

#include "recording/target.h"
#include "report/spread.h"
#include "report/text/summary.h"
#include "answer/draw/svg.h"

#include <inttypes.h>

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
			    "given back. "
			    "This is fragmentation." },
	{ "releasable", "Free, and the policy could give it back to the card at once (as "
			"torch.cuda.empty_cache() does)." },
	{ "other", "Reserved by the device beyond what the policy asked for: its rounding to whole "
		   "pages." },
	{ "efficiency", "Peak active / peak reserved; 100 % is best." },
	{ "lower bound", "The largest sum of live requests, each rounded up to 512 bytes: no "
			 "allocator can reserve less." },
	{ "offline placement", "One region with a fixed place for every request, made with "
			       "knowledge of the whole recording and checked for overlaps. What "
			       "an allocator loses beyond it, it loses because it does not know "
			       "the future." },
	{ "planned", "A policy that may look at the first half of the recording, places its steps "
		     "offline, and runs all of it with that plan; what is not in it goes to "
		     "PyTorch's allocator." },
	{ "driver time", "Time spent in cudaMalloc, cudaFree, cuMemMap and the like over the whole "
			 "trace." },
};

static void add_tile(const char *value, const char *label, struct frag_text *out)
{
	frag_text_add(out, "<div class=\"tile\"><b>");
	frag_text_add_html(out, value);
	frag_text_add(out, "</b><span>");
	frag_table_words_html(label, out);
	frag_text_add(out, "</span></div>\n");
}

static void add_bytes_tile(uint64_t bytes, const char *label, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_text_add_bytes(&t, bytes);
	add_tile(frag_text_str(&t), label, out);
}

static void add_tiles(const struct frag_section *s, struct frag_text *out)
{
	const struct frag_result *base = &s->results[s->baseline];
	struct frag_text label = { 0 };
	struct frag_advice a;

	frag_section_advice(s, &a);
	frag_text_add(out, "<div class=\"tiles\">\n");
	if (a.pick != s->baseline) {
		frag_text_addf(&label, "%s%s: %s", base->policy,
			       s->baseline_recorded ? " (as recorded)" : "",
			       base->completed ? "peak reserved" : "reserved before out of memory");
		add_bytes_tile(base->m.peak_reserved_bytes, frag_text_str(&label), out);
		frag_text_release(&label);
	}
	if (a.pick != SIZE_MAX) {
		frag_text_addf(&label, "%s%s: peak reserved", s->results[a.pick].policy,
			       a.pick == s->baseline && s->baseline_recorded ? " (as recorded)"
									     : "");
		add_bytes_tile(s->results[a.pick].m.peak_reserved_bytes, frag_text_str(&label),
			       out);
		frag_text_release(&label);
	}
	if (s->optimum.placed)
		add_bytes_tile(s->optimum.place_bytes,
			       "offline placement: enough if all is known in advance", out);
	if (!s->optimum.hidden)
		add_bytes_tile(frag_section_bound(s), "lower bound: no allocator can need less",
			       out);
	frag_text_add(out, "</div>\n");
}

static void add_answer(const struct frag_section *s, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	if (s->devs_count > 1)
		frag_text_addf(&t, "Device %" PRIu32 ": ", s->ordinal);
	frag_section_answer(s, &t);
	frag_text_add(&t, ".");
	frag_html_answer(&t, out);
}

void frag_html_answer(struct frag_text *t, struct frag_text *out)
{
	if (t->len && t->s[0] >= 'a' && t->s[0] <= 'z')
		t->s[0] = (char)(t->s[0] - 'a' + 'A');
	frag_text_add(out, "<p class=\"answer\">");
	frag_text_add_html(out, frag_text_str(t));
	frag_text_add(out, "</p>\n");
}

static void add_cards(const struct frag_section *s, const struct frag_advice *a,
		      struct frag_text *t)
{
	uint64_t need = s->results[a->pick].m.peak_reserved_bytes;

	if (a->refused) {
		frag_text_add(t,
			      "What is reserved while requests are refused says nothing of a card: "
			      "cufrag fit finds the smallest one that serves everything.");
		return;
	}
	frag_text_add_bytes(t, need);
	if (!a->card && !a->tight) {
		frag_text_add(t, " beside the CUDA context: no card has room for it.");
		return;
	}
	if (!a->card) {
		frag_text_addf(t, " beside the CUDA context: %s has room, but not with ",
			       a->tight->label);
		frag_headroom_text(&s->headroom, t);
		frag_text_add(t, ".");
		return;
	}
	frag_text_add(t, " beside the CUDA context: ");
	frag_section_card_kind(s, t);
	frag_text_addf(t, " with room for it is %s. It leaves ", a->card->label);
	frag_text_add_bytes(t, a->spare_bytes);
	frag_text_addf(t, " (%.1f %%) free",
		       100 * (double)a->spare_bytes / (double)a->card->total_bytes);
	if (s->headroom.ratio > 0 || s->headroom.bytes || s->headroom.outside_bytes) {
		frag_text_add(t, "; asked for: ");
		frag_headroom_text(&s->headroom, t);
	}
	frag_text_add(t, ".");
	if (a->tight)
		frag_text_addf(t, " %s would just do, without that margin.", a->tight->label);
	if (frag_section_job_price(s, a->card) > 0)
		frag_text_addf(t, " At %g an hour what was recorded costs %.3g.",
			       a->card->price_per_hour, frag_section_job_price(s, a->card));
}

/* Nothing completes: what is live at once says at least how large the card has to be. */
static void add_least_card(const struct frag_section *s, struct frag_text *out)
{
	uint64_t bound = frag_section_bound(s);
	const struct frag_gpu *card = frag_section_card(s, bound, true);
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	if (!bound)
		return;
	frag_text_add(&t, "The program has ");
	frag_text_add_bytes(&t, bound);
	frag_text_addf(&t, " or more live at once; %s%s. What each policy needs is found by",
		       card ? "the smallest known card with so much beside its CUDA context is "
			    : "no known card has so much",
		       card ? card->label : "");
	frag_text_add(out, "<dl class=\"todo\">\n<dt>Which card</dt><dd>");
	frag_text_add_html(out, frag_text_str(&t));
	frag_text_add(out, " <code>cufrag fit</code>.</dd>\n</dl>\n");
}

/* What to do, for those who read nothing else. */
static void add_actions(const struct frag_section *s, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text line = { 0 }, run = { 0 }, cards = { 0 };
	struct frag_advice a;

	frag_section_advice(s, &a);
	if (a.pick == SIZE_MAX) {
		add_least_card(s, out);
		return;
	}
	frag_section_export(s, &line);
	frag_section_run(s, &run);
	add_cards(s, &a, &cards);
	frag_text_add(out, "<dl class=\"todo\">\n");
	if (line.len) {
		frag_text_add(out, "<dt>What to set</dt><dd><code>");
		frag_text_add_html(out, line.s);
		frag_text_add(out, "</code></dd>\n");
	} else {
		frag_text_add(out, "<dt>What to use</dt><dd><code>");
		frag_text_add_html(out, s->results[a.pick].policy);
		frag_text_add(out, "</code>");
		if (s->conf)
			frag_text_add(out, ", which is no setting of PyTorch\xe2\x80\x99s");
		frag_text_add(out, "</dd>\n");
	}
	if (run.len) {
		frag_text_add(out, "<dt>What needs less</dt><dd><code>");
		frag_text_add_html(out, run.s);
		frag_text_add(out, "</code></dd>\n");
	}
	frag_text_add(out, "<dt>Which card</dt><dd>");
	frag_text_add_html(out, frag_text_str(&cards));
	frag_text_add(out, "</dd>\n</dl>\n");
}

static void add_notes(const struct frag_section *s, struct frag_text *out)
{
	struct frag_text planned = { 0 };

	frag_section_planned(s, &planned);
	if (planned.len) {
		frag_text_add(out, "<p class=\"meta\">");
		frag_text_add_html(out, planned.s);
		frag_text_add(out, ".</p>\n");
	}
	frag_text_release(&planned);
	if (*s->optimum.note) {
		frag_text_add(out, "<p class=\"meta\">No offline placement here: ");
		frag_text_add_html(out, s->optimum.note);
		frag_text_add(out, ".</p>\n");
	}
	if (s->missing) {
		frag_text_add(out, "<p class=\"warn\">Interrupted. Missing here: ");
		frag_text_add_html(out, s->missing);
		frag_text_add(out, ".</p>\n");
	}
}

static void add_meta(const struct frag_report *r, const struct frag_section *s,
		     struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_text_add_grouped(&t, s->events_count);
	frag_text_add(&t, " events");
	if (s->duration_us)
		frag_text_addf(&t, " over %.1f s", (double)s->duration_us / 1e6);
	frag_text_addf(&t, ", %" PRIu32 " stream%s, ", s->streams_count,
		       s->streams_count == 1 ? "" : "s");
	frag_section_recorded(s, &t);
	frag_text_add(&t, "; replayed on ");
	frag_report_settings(r, s, &t);
	frag_text_add(&t, ".");
	if (s->truncated)
		frag_text_add(&t, " The recording lost its beginning; the replay starts from the "
				  "blocks that were live then.");
	frag_text_add(out, "<p class=\"meta\">");
	frag_text_add_html(out, frag_text_str(&t));
	frag_text_add(out, "</p>\n");
}

static void add_link(const char *base, const char *ending, struct frag_text *out)
{
	frag_text_add(out, " <a href=\"");
	frag_text_add_html(out, base);
	frag_text_addf(out, "%s\">", ending);
	frag_text_add_html(out, base);
	frag_text_addf(out, "%s</a>", ending);
}

static void add_figure(const struct frag_report *r, const struct frag_figure *f, unsigned formats,
		       const size_t *order, struct frag_text *out)
{
	struct frag_chart_job job = { r, &r->sections[f->section], order };
	FRAG_AUTO(frag_text_release) struct frag_text alt = { 0 }, caption = { 0 }, prefix = { 0 };

	f->ops->alt(&job, &alt);
	f->ops->caption(&job, &caption);
	frag_text_addf(&prefix, "s%zu-%s-", f->section, f->ops->name);
	frag_text_add(out, "<figure>\n");
	frag_svg_inline(f->svg, frag_text_str(&prefix), frag_text_str(&alt), out);
	frag_text_add(out, "<figcaption>");
	frag_text_add_html(out, frag_text_str(&caption));
	frag_text_add(out, "</figcaption>\n<p class=\"files\">Data:");
	add_link(f->base, ".csv", out);
	frag_text_add(out, ". Picture:");
	add_link(f->base, ".svg", out);
	if (formats & FRAG_FORMAT_PNG)
		add_link(f->base, ".png", out);
	if (formats & FRAG_FORMAT_PDF)
		add_link(f->base, ".pdf", out);
	frag_text_add(out, "</p>\n</figure>\n");
}

/* Of the table, which has the results in this order. */
static size_t advised_row(const struct frag_section *s, const size_t *order)
{
	struct frag_advice a;

	frag_section_advice(s, &a);
	for (size_t i = 0; a.pick != SIZE_MAX && i < s->count; i++) {
		if (order[i] == a.pick)
			return i;
	}
	return SIZE_MAX;
}

static int add_section(const struct frag_report *r, size_t n, const struct frag_figure *figures,
		       size_t count, unsigned formats, struct frag_text *out, struct frag_err *err)
{
	const struct frag_section *s = &r->sections[n];
	FRAG_AUTO_FREE size_t *order = NULL;
	struct frag_table table;

	FRAG_TRY_CALLOC(order, s->count, "report", err);
	frag_section_order(s, order);
	if (r->count > 1) {
		struct frag_text t = { 0 };

		frag_section_title(s, &t);
		frag_text_add(out, "<h2>");
		frag_text_add_html(out, frag_text_str(&t));
		frag_text_add(out, "</h2>\n");
		frag_text_release(&t);
	}
	if (frag_html_refusals(s, out, err))
		return FRAG_ENOMEM;
	add_answer(s, out);
	add_actions(s, out);
	add_tiles(s, out);
	add_meta(r, s, out);
	if (frag_summary_table(s, true, 0, &table, err))
		return FRAG_ENOMEM;
	frag_table_html(&table, advised_row(s, order), out);
	frag_table_release(&table);
	add_notes(s, out);
	frag_text_add(out, "<p class=\"files\">Every metric of every policy:"
			   " <a href=\"results.csv\">results.csv</a>,"
			   " <a href=\"results.json\">results.json</a>.");
	if (formats & FRAG_FORMAT_ONE_PDF)
		frag_text_add(out, " All charts: <a href=\"charts.pdf\">charts.pdf</a>.");
	frag_text_add(out, "</p>\n<div class=\"charts\">\n");
	for (size_t i = 0; i < count; i++) {
		if (figures[i].section == n)
			add_figure(r, &figures[i], formats, order, out);
	}
	frag_text_add(out, "</div>\n");
	return 0;
}

static void add_words(struct frag_text *out)
{
	frag_text_add(out, "<section>\n<h2>What the words mean</h2>\n<dl>\n");
	for (size_t i = 0; i < FRAG_ARRAY_LEN(words); i++) {
		frag_text_add(out, "<dt>");
		frag_text_add_html(out, words[i].word);
		frag_text_add(out, "</dt><dd>");
		frag_text_add_html(out, words[i].meaning);
		frag_text_add(out, "</dd>\n");
	}
	frag_text_add(out, "</dl>\n</section>\n");
}

static void add_method(const struct frag_report *r, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_text_add(&t,
		      "Every allocation and free of the recording was replayed, in order, through "
		      "each policy on ");
	if (r->card.modelled) {
		frag_text_addf(&t, "a simulated %s with ", r->card.name);
		frag_text_add_bytes(&t, r->card.total_bytes);
		frag_text_add(&t, ", of which the CUDA context takes ");
		frag_text_add_bytes(&t, r->card.context_bytes);
		frag_text_add(&t, ". Bytes are exact; driver times are modelled from measurements "
				  "of ");
		if (r->cost_borrowed) {
			frag_text_add(&t, "another card (");
			frag_text_add(&t, r->cost_profile);
			frag_text_add(&t, ")");
		} else {
			frag_text_add(&t, "a real card");
		}
		frag_text_add(&t, ", and host times were measured on this machine.");
	} else {
		frag_text_addf(&t, "a real %s. Bytes and times are those of the card.",
			       r->card.name);
	}
	frag_text_add(&t, r->free_at_request
				  ? " A block could be reused as soon as the program had "
				    "freed it."
				  : " A block could be reused when its recorded free had "
				    "completed on all streams.");
	frag_text_add(&t, r->skip_oom
				  ? " What a policy could not serve was left out, and the replay "
				    "went on."
				  : " Where a policy could not serve a request, its replay "
				    "stopped.");
	frag_text_add(out, "<section>\n<h2>How it was done</h2>\n<p>");
	frag_text_add_html(out, frag_text_str(&t));
	frag_text_add(out,
		      " That the simulation equals what really happened can be checked event by "
		      "event: <code>cufrag verify</code>. Every figure names the file with its "
		      "data, in the folder of this page.</p>\n");
	frag_html_again(r, out);
	frag_text_add(out, "</section>\n");
}

void frag_html_again(const struct frag_report *r, struct frag_text *out)
{
	frag_text_add(out, "<p>Done with cufrag ");
	frag_text_add_html(out, FRAG_VERSION);
	frag_text_add(out, ", charts by gnuplot. To make this page again:</p>\n<pre>");
	frag_text_add_html(out, r->command_line ? r->command_line : "");
	frag_text_add(out, "</pre>\n");
}

int frag_html_spread(const struct frag_report *r, const char *figure, struct frag_text *out,
		     struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text answer = { 0 };
	FRAG_AUTO(frag_spreads_release) struct frag_spreads s = { 0 };
	struct frag_table table;

	FRAG_TRY(frag_spreads_init(&s, r, err));
	if (s.count) {
		frag_text_addf(out, "<h2>All %zu %s together</h2>\n", s.units,
			       frag_spreads_noun(r));
		frag_spreads_answer(&s, r, &answer);
		frag_text_add(&answer, ".");
		frag_html_answer(&answer, out);
		frag_spreads_table(&s, r, &table);
		frag_table_html(&table, SIZE_MAX, out);
		frag_table_release(&table);
		frag_text_add(out, figure);
		frag_text_add(out, "<p class=\"files\">Data: <a href=\"spread.csv\">spread.csv"
				   "</a>.</p>\n");
	}
	return 0;
}

int frag_html_page(const struct frag_report *r, const struct frag_figure *figures, size_t count,
		   unsigned formats, const char *ranks, struct frag_text *out, struct frag_err *err)
{
	struct frag_text title = { 0 };

	frag_text_addf(&title, "%s: GPU memory by allocation policy", r->sections[0].trace);
	frag_page_begin(r->title ? r->title : frag_text_str(&title), out);
	frag_text_release(&title);
	frag_html_head(r, r->sections[0].trace,
		       "Which setting needs the least GPU memory for this job, which card is "
		       "enough "
		       "for it, and what is the rest of the memory lost to?",
		       out);
	FRAG_TRY(frag_html_spread(r, ranks, out, err));
	for (size_t n = 0; n < r->count; n++)
		FRAG_TRY(add_section(r, n, figures, count, formats, out, err));
	add_words(out);
	add_method(r, out);
	frag_page_end(out);
	return frag_text_check(out, err);
}
