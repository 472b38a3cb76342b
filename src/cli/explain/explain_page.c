/* SPDX-License-Identifier: Apache-2.0 */
/* explain.html: who held what over time, and at the moment that was asked for. */
#include "cli/common.h"
#include "explain/page.h"
#include "explain_out.h"

/* Site by site, as gnuplot draws them: from the bottom of the stack up, all others on top. */
static void curves_csv(const struct frag_curves *c, bool held, struct frag_text *out)
{
	size_t n = held ? c->held_count : c->live_count;
	char *const *names = held ? c->held_names : c->live_names;

	frag_page_header(out, "event");
	for (size_t i = 0; i <= n; i++) {
		for (size_t p = 0; p < c->points; p++) {
			const uint64_t *v = held ? c->held[p] : c->live[p];
			uint64_t own = i < n ? v[i] : v[FRAG_CURVES], upto = own;

			for (size_t k = 0; k < i; k++)
				upto += v[k];
			frag_page_point(out, i, i < n ? names[i] : "all others",
					(double)c->events[p], c->us[p], own, upto);
		}
	}
}

/* Who has most where the curves are highest. */
static void finding(const struct frag_curves *c, bool held, struct frag_text *out)
{
	size_t n = held ? c->held_count : c->live_count, who = 0;
	uint64_t most = 0;
	const uint64_t *top = NULL;

	for (size_t p = 0; p < c->points; p++) {
		const uint64_t *v = held ? c->held[p] : c->live[p];
		uint64_t sum = v[FRAG_CURVES];

		for (size_t i = 0; i < n; i++)
			sum += v[i];
		if (sum > most) {
			most = sum;
			top = v;
		}
	}
	for (size_t i = 1; i < n; i++)
		who = top && top[i] > top[who] ? i : who;
	if (!top || !n || !top[who]) {
		frag_text_add(out, held ? "Nothing is free that cannot be given back"
					: "No call site has live memory");
		return;
	}
	frag_text_addf(out, "%.200s: %.0f %% of the ",
		       held ? c->held_names[who] : c->live_names[who],
		       100.0 * (double)top[who] / (double)most);
	frag_text_add_bytes(out, most);
	frag_text_add(out, held ? " that cannot be given back at most" : " that are live at most");
}

int frag_explain_page(const struct frag_cli *cli, const struct frag_explained *x, const char *title,
		      const char *policy, size_t top, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text heading = { 0 }, answer = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 }, under = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text live = { 0 }, held = { 0 };
	struct frag_page page = { .dir = cli->out,
				  .file = "explain.html",
				  .question =
					  "Who holds the memory, and why can the rest of it not "
					  "be used?",
				  .argv = cli->argv,
				  .argc = cli->argc,
				  .threads = cli->threads };
	int rc;

	frag_text_addf(&heading, "%s: who holds the memory%s", title,
		       frag_cli_estimate_word(x->estimate));
	frag_text_addf(&under, "under %s", policy);
	frag_explain_paragraph(x, &answer);
	finding(x->curves, false, &live);
	finding(x->curves, true, &held);
	rc = frag_explain_text(x, title, policy, top, &text, err);
	page.title = frag_text_str(&heading);
	page.answer = frag_text_str(&answer);
	page.text = frag_text_str(&text);
	page.charts[0] = (struct frag_page_chart){ .base = "explain-live",
						   .heading = "Live bytes by call site",
						   .caption = "Live bytes (and those that wait for "
							      "a stream) by who asked for them.",
						   .title = frag_text_str(&live),
						   .subtitle = frag_text_str(&under),
						   .stacked = true };
	page.charts[1] = (struct frag_page_chart){
		.base = "explain-held",
		.heading = "Free bytes that cannot be given back, by who holds them",
		.caption = "Non-releasable bytes by the call sites whose blocks hold the segments; "
			   "a segment's bytes are dealt out equally to its blocks.",
		.title = frag_text_str(&held),
		.subtitle = frag_text_str(&under),
		.stacked = true
	};
	curves_csv(x->curves, false, &page.charts[0].csv);
	curves_csv(x->curves, true, &page.charts[1].csv);
	page.charts_count = 2;
	if (!rc)
		rc = frag_page_write(&page, err);
	return rc;
}
