/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as a page: DIR/fleet.html with its charts inside, and the CSV of each. */
#include "fleet.h"

#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

#include "answer/draw/plot.h"
#include "answer/draw/svg.h"
#include "report/page/html.h"

/* ---- data of the charts ------------------------------------------------------------------ */

/* Sorted need of every rank: live, today, then; the distance between the curves is waste. */
static int need_csv(const struct frag_fleet *f, struct frag_text *t, struct frag_err *err)
{
	uint64_t *sizes[3] = { 0 };
	int rc = 0;

	for (size_t k = 0; k < 3; k++) {
		sizes[k] = frag_host_calloc(f->units_count, sizeof(*sizes[k]));
		if (!sizes[k])
			rc = frag_fail_nomem(err, "chart");
	}
	for (size_t i = 0; !rc && i < f->units_count; i++) {
		const struct frag_fleet_job *j = &f->jobs[f->units[i].job];
		const struct frag_fleet_use *now = &f->units[i].uses[j->today.policy];

		sizes[0][i] = now->bound_bytes;
		sizes[1][i] = now->reserved_bytes;
		sizes[2][i] = f->units[i].uses[j->best.policy].reserved_bytes;
	}
	frag_text_add(t, "ranks_ratio,live_bytes,today_bytes,then_bytes\n");
	for (size_t k = 0; !rc && k < 3; k++)
		qsort(sizes[k], f->units_count, sizeof(*sizes[k]), frag_compare_u64);
	/* at most 500 points, the last rank always among them */
	for (size_t i = 0; !rc && i < f->units_count; i++) {
		if (f->units_count > 500 && i % (f->units_count / 500) && i + 1 < f->units_count)
			continue;
		frag_text_addf(t, "%.6f,%llu,%llu,%llu\n", (double)(i + 1) / (double)f->units_count,
			       (unsigned long long)sizes[0][i], (unsigned long long)sizes[1][i],
			       (unsigned long long)sizes[2][i]);
	}
	for (size_t k = 0; k < 3; k++)
		frag_host_free(sizes[k]);
	return rc;
}

static size_t cards_used(const struct frag_fleet *f, const struct frag_gpu *card, bool best)
{
	size_t n = 0;

	for (size_t j = 0; j < f->jobs_count; j++)
		if ((best ? f->jobs[j].best.card : f->jobs[j].today.card) == card)
			n += f->jobs[j].units_count;
	return n;
}

static void cards_csv(const struct frag_fleet *f, struct frag_text *t)
{
	frag_text_add(t, "card,today_count,then_count,shared_count\n");
	for (size_t i = 0; i < f->catalog.count; i++) {
		const struct frag_gpu *card = f->catalog.cards[i];
		size_t now = cards_used(f, card, false), then = cards_used(f, card, true);
		size_t shared = f->best.card == card ? f->best.cards : 0;

		if (!now && !then && !shared)
			continue;
		frag_text_add_csv(t, card->name);
		frag_text_addf(t, ",%zu,%zu,%zu\n", now, then, shared);
	}
	if (cards_used(f, NULL, false) || cards_used(f, NULL, true))
		frag_text_addf(t, "no card,%zu,%zu,%zu\n", cards_used(f, NULL, false),
			       cards_used(f, NULL, true), f->best.card ? f->best.left_out : 0);
}

static uint64_t all_today(const struct frag_fleet *f, bool live)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->units_count; i++) {
		const struct frag_fleet_use *u =
			&f->units[i].uses[f->jobs[f->units[i].job].today.policy];

		sum += live ? u->bound_bytes : u->reserved_bytes;
	}
	return sum;
}

/* The settings; the title names the one that reserves least. */
static void settings_csv(const struct frag_fleet *f, struct frag_text *t, struct frag_text *title)
{
	unsigned long long live = all_today(f, true);
	size_t best = 0;

	frag_text_addf(t, "setting,reserved_bytes,live_bytes\ntoday,%llu,%llu\n",
		       (unsigned long long)all_today(f, false), live);
	for (size_t p = 0; p < f->policies_count; p++) {
		if (2 * frag_fleet_setting(f, p).tried < f->jobs_count)
			continue;
		frag_text_add_csv(t, f->policies[p]);
		frag_text_addf(t, ",%llu,%llu\n",
			       (unsigned long long)frag_fleet_setting(f, p).reserved_bytes, live);
		if (frag_fleet_setting(f, p).reserved_bytes <
		    frag_fleet_setting(f, best).reserved_bytes)
			best = p;
	}
	frag_text_addf(title, "%s everywhere would reserve ", f->policies[best]);
	frag_text_add_bytes(title, frag_fleet_setting(f, best).reserved_bytes);
	frag_text_add(title, " of today's ");
	frag_text_add_bytes(title, all_today(f, false));
}

/* ---- charts ----------------------------------------------------------------------------------- */

struct figure {
	const char *script, *caption;
	struct frag_text csv, title;
};

static int draw(struct figure *fig, const char *dir, unsigned threads, struct frag_text *page,
		struct frag_err *err)
{
	struct frag_chart_file file = {
		.script = fig->script,
		.dir = dir,
		.base = fig->script,
		.csv = &fig->csv,
		.title = frag_text_str(&fig->title),
		.subtitle = "",
	};
	FRAG_AUTO_FREE char *path = NULL, *svg = NULL;
	char name[64];

	FRAG_TRY(frag_text_check(&fig->csv, err));
	FRAG_TRY(frag_chart_draw(&file, 0, threads, err));
	snprintf(name, sizeof(name), "%s.svg", fig->script);
	path = frag_path_join(dir, name);
	FRAG_TRY(path ? frag_svg_read(path, &svg, err) : frag_fail_nomem(err, "chart"));
	frag_text_add(page, "<figure>");
	frag_svg_inline(svg, fig->script, frag_text_str(&fig->title), page);
	frag_text_addf(page, "<figcaption>%s (<a href=\"%s.csv\">CSV</a>)</figcaption></figure>\n",
		       fig->caption, fig->script);
	return 0;
}

static int charts(const struct frag_fleet *f, const char *dir, struct frag_text *page,
		  struct frag_err *err)
{
	struct frag_fleet_sum then = frag_fleet_sum(f, true);
	struct figure figs[] = {
		{ .script = "fleet_need",
		  .caption =
			  "Every rank, from the smallest to the largest: what it holds live at "
			  "most, "
			  "what it reserves today and what it would with the settings of the plan. "
			  "The area between the lines is memory that is paid for and not used." },
		{ .script = "fleet_cards",
		  .caption = "Cards of each kind: today, with the settings of the plan, and where "
			     "ranks share cards." },
		{ .script = "fleet_settings",
		  .caption = "All ranks under one setting, their peaks added up, and what they "
			     "hold "
			     "live." },
	};
	int rc = need_csv(f, &figs[0].csv, err);

	cards_csv(f, &figs[1].csv);
	settings_csv(f, &figs[2].csv, &figs[2].title);
	frag_text_addf(&figs[0].title, "%.0f %% of what is reserved today is live at the peaks",
		       100 * (double)all_today(f, true) /
			       (double)FRAG_MAX(all_today(f, false), 1u));
	frag_text_addf(&figs[1].title, "%zu of %zu jobs move to a smaller card", then.moved,
		       f->jobs_count);
	if (then.gained)
		frag_text_addf(&figs[1].title, ", %zu fit one only so", then.gained);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(figs); i++) {
		if (!rc)
			rc = draw(&figs[i], dir, f->cli->threads, page, err);
		frag_text_release(&figs[i].csv);
		frag_text_release(&figs[i].title);
	}
	return rc;
}

/* ---- the page ----------------------------------------------------------------------------------- */

static void jobs_html(const struct frag_fleet *f, struct frag_text *page)
{
	static const struct frag_table_column columns[] = {
		{ "job", "", true, "path of its traces, the number of the rank as *" },
		{ "ranks", "", false, "cards it runs on" },
		{ "live", "", false, "most bytes live at once in its worst rank" },
		{ "reserved today", "", false, "with the recorded settings" },
		{ "card today", "", true, "the cheapest that takes it, with headroom" },
		{ "reserved then", "", false, "with the setting of the plan" },
		{ "card then", "", true, "" },
		{ "headroom", "", false, "what stays free on that card beside the context" },
		{ "setting", "", true, "" },
	};
	struct frag_table t = { 0 };

	frag_table_columns(&t, columns, FRAG_ARRAY_LEN(columns));
	for (size_t i = 0; i < FRAG_MIN(f->jobs_count, 500u); i++) {
		const struct frag_fleet_job *j = &f->jobs[i];

		frag_table_cell(&t, "%s", j->name);
		frag_table_cell(&t, "%zu", j->units_count);
		frag_table_cell(&t, "%s", FRAG_BYTES(j->bound_bytes));
		frag_table_cell(&t, "%s", FRAG_BYTES(j->today.need_bytes));
		frag_table_cell(&t, "%s", j->today.card ? j->today.card->name : "none");
		frag_table_cell(&t, "%s", FRAG_BYTES(j->best.need_bytes));
		frag_table_cell(&t, "%s", j->best.card ? j->best.card->name : "none");
		frag_table_cell(&t, "%s",
				j->best.card ? FRAG_BYTES(frag_fleet_headroom(&j->best)) : "-");
		frag_table_cell(&t, "%s", f->policies[j->best.policy]);
	}
	frag_table_html(&t, SIZE_MAX, page);
	frag_table_release(&t);
	if (f->jobs_count > 500)
		frag_text_addf(page,
			       "<p>The first 500 of %zu jobs; all are in <a "
			       "href=\"jobs.csv\">jobs.csv</a>.</p>\n",
			       f->jobs_count);
}

static void method_html(const struct frag_fleet *f, struct frag_text *page)
{
	frag_text_addf(
		page,
		"<h2>What this rests on</h2>\n<p>Every rank was replayed on a simulated card "
		"under every setting of the sweep; the need of a job is the peak reserved memory "
		"of its worst rank. A card is taken to fit if %.0f %% of it stays free beside the "
		"context. Sharing packs ranks by first fit decreasing, ranks of one job on "
		"different cards, each with a context of its own; <em>peaks added up</em> is the "
		"worst alignment, <em>at the recorded times</em> the measured one.</p>\n"
		"<p>It knows nothing of compute, bandwidth, or how jobs on one card slow each "
		"other down, nor of memory that is taken outside of the allocator.</p>\n",
		100 * f->cli->headroom.ratio);
	if (f->failures)
		frag_text_addf(page,
			       "<p>%zu traces of the sweep failed and are in no figure.</p>\n",
			       f->failures);
	if (f->estimates)
		frag_text_addf(page,
			       "<p>%zu of the jobs %s recorded without a GPU: what they need "
			       "is an estimate.</p>\n",
			       f->estimates, f->estimates == 1 ? "was" : "were");
}

/* Lines of text as a list; nothing where there are none. */
static void list_html(const struct frag_text *lines, struct frag_text *page)
{
	const char *line = frag_text_str(lines);

	frag_text_add(page, *line ? "<ul>\n" : "");
	while (*line) {
		int n = (int)strcspn(line, "\n");
		struct frag_text one = { 0 };

		frag_text_addf(&one, "%.*s", n, line);
		frag_text_add(page, "<li>");
		frag_text_add_html(page, frag_text_str(&one));
		frag_text_add(page, "</li>\n");
		frag_text_release(&one);
		line += n + (line[n] == '\n');
	}
	frag_text_add(page, lines->len ? "</ul>\n" : "");
}

static void tables_html(const struct frag_fleet *f, struct frag_text *page)
{
	FRAG_AUTO(frag_text_release) struct frag_text sums = { 0 }, misfits = { 0 };
	FRAG_AUTO(frag_table_release) struct frag_table settings = { 0 };

	frag_fleet_sums(f, &sums);
	frag_text_add(page, "<h2>Cards</h2>\n");
	list_html(&sums, page);
	frag_text_add(page, "<h2>One setting for all</h2>\n");
	frag_fleet_settings(f, &settings);
	frag_table_html(&settings, SIZE_MAX, page);
	frag_text_add(page, "<h2>Jobs</h2>\n");
	jobs_html(f, page);
	frag_fleet_misfits(f, &misfits);
	list_html(&misfits, page);
}

static void fact_html(const char *name, const char *text, const char *tag, struct frag_text *page)
{
	if (!text)
		return;
	frag_text_addf(page, "<dt>%s</dt><dd><%s>", name, tag);
	frag_text_add_html(page, text);
	frag_text_addf(page, "</%s></dd>\n", tag);
}

static void head_html(const struct frag_fleet *f, const char *title, struct frag_text *page)
{
	FRAG_AUTO(frag_text_release) struct frag_text command = { 0 };

	frag_text_add(&command, "cufrag");
	for (int i = 0; i < f->cli->argc; i++) {
		frag_text_add(&command, " ");
		frag_text_add_shell(&command, f->cli->argv[i]);
	}
	frag_text_add(page, "<header>\n<p class=\"kicker\">cufrag fleet</p>\n<h1>");
	frag_text_add_html(page, title);
	frag_text_add(page, "</h1>\n<p class=\"question\">Which cards, how many, with which "
			    "settings?</p>\n<dl class=\"facts\">\n");
	fact_html("Author", f->author, "span", page);
	fact_html("Date", f->date, "span", page);
	fact_html("Command", frag_text_str(&command), "code", page);
	frag_text_add(page, "</dl>\n</header>\n");
}

static int write_page(const struct frag_fleet *f, const char *dir, struct frag_text *page,
		      struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = frag_path_join(dir, "fleet.html"),
			    *csv = frag_path_join(dir, "jobs.csv");

	FRAG_TRY(path && csv ? frag_text_check(page, err) : frag_fail_nomem(err, "page"));
	FRAG_TRY(frag_fleet_csv(f, csv, err));
	return frag_outfile_put(path, page->s, page->len, err);
}

int frag_fleet_page(const struct frag_fleet *f, const char *dir, struct frag_err *err)
{
	const char *title = f->title ? f->title : "Capacity plan of a fleet";
	FRAG_AUTO(frag_text_release) struct frag_text page = { 0 }, answer = { 0 };
	int rc = frag_make_dirs(dir, err);

	if (rc)
		return rc;
	frag_page_begin(title, &page);
	head_html(f, title, &page);
	frag_fleet_answer(f, &answer);
	frag_text_add(&answer, ".");
	frag_html_answer(&answer, &page);
	rc = charts(f, dir, &page, err);
	tables_html(f, &page);
	method_html(f, &page);
	frag_page_end(&page);
	if (!rc)
		rc = write_page(f, dir, &page, err);
	return rc;
}
