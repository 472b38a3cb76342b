/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page and the files beside it: data, pictures, tables. All of it is made in a folder of its own
 * inside the target and moved up at the end.
 */
#include "answer.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer/draw/plot.h"
#include "base/outfile.h"
#include "base/scratch.h"

static const struct {
	unsigned bit;
	const char *name;
} formats[] = { { FRAG_FORMAT_SVG, "svg" },
		{ FRAG_FORMAT_PNG, "png" },
		{ FRAG_FORMAT_PDF, "pdf" } };

struct writer {
	const struct frag_answer *a;
	const struct frag_answer_page *page;
	struct frag_answer strings; /* owns the texts of plots */
	char *work;		    /* the folder in which everything is made */
	char **svgs;		    /* by part */
	struct frag_plot *plots;
	size_t plots_count;
};

static const char *path_of(struct writer *w, const char *base, const char *ending)
{
	return frag_answer_print(&w->strings, "%s/%s%s%s", w->work, base, *ending ? "." : "",
				 ending);
}

/* Letters of a title and of a line below it that have room on a sheet. */
#define TITLE_ROOM 50u
#define SUBTITLE_ROOM 68u

/* Lines of at most `width` letters, broken between words where that is possible. */
static const char *wrapped(struct writer *w, const char *text, size_t width)
{
	struct frag_text t = { 0 };

	while (text && *text) {
		size_t n = frag_text_line(text, width, false);
		bool ends = text[n] == '\n';

		frag_text_addn(&t, text, n);
		text += n + (ends ? 1 : strspn(text + n, " "));
		frag_text_add(&t, ends || *text ? "\n" : "");
	}
	return frag_answer_take(&w->strings, &t) ?: "";
}

static int put_rows(struct writer *w, const struct frag_shape *shape, const struct frag_rows *rows,
		    const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text csv = { 0 };

	frag_shape_csv(shape, rows->rows, rows->count, &csv);
	return w->strings.failed ? frag_fail_nomem(err, "page") : frag_text_put(&csv, path, err);
}

/* The CSV of a chart, and its pictures queued. */
static int add_chart(struct writer *w, const struct frag_answer_chart *c, struct frag_err *err)
{
	const char *base = frag_chart_base(c), *csv = path_of(w, base, "csv");
	struct frag_plot plot = { .script = c->script,
				  .csv = csv,
				  .title = wrapped(w, c->title, TITLE_ROOM),
				  .subtitle = wrapped(w, c->subtitle, SUBTITLE_ROOM),
				  .extra = c->extra ? c->extra : "" };

	FRAG_TRY(put_rows(w, c->shape, &c->rows, csv, err));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(formats); i++) {
		if (!((w->page->formats | FRAG_FORMAT_SVG) & formats[i].bit))
			continue;
		plot.format = formats[i].name;
		plot.output = path_of(w, base, plot.format);
		w->plots[w->plots_count++] = plot;
	}
	return 0;
}

/* charts.pdf: a page for the SVG of each. */
static int put_one_pdf(struct writer *w, struct frag_err *err)
{
	const char *program = path_of(w, "charts", "gp");
	struct frag_plot pdf = { .script = program,
				 .csv = "",
				 .output = path_of(w, "charts", "pdf"),
				 .format = "pdf",
				 .title = "",
				 .subtitle = "",
				 .extra = "" };
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
	FRAG_AUTO_FREE struct frag_plot *pages = NULL;
	FRAG_AUTO_FREE char *scripts = NULL;
	size_t count = 0;

	FRAG_TRY_CALLOC(pages, w->plots_count, "charts.pdf", err);
	for (size_t i = 0; i < w->plots_count; i++)
		if (!strcmp(w->plots[i].format, "svg"))
			pages[count++] = w->plots[i];
	FRAG_TRY(frag_plot_scripts(&scripts, err));
	frag_one_pdf_script(pages, count, scripts, pdf.output, &text);
	FRAG_TRY(frag_text_put(&text, program, err));
	FRAG_TRY(frag_plot_run(&pdf, 1, 1, err));
	unlink(program);
	return 0;
}

static int draw(struct writer *w, struct frag_err *err)
{
	for (size_t i = 0; i < w->a->parts_count; i++)
		if (w->a->parts[i].kind == FRAG_PART_CHART)
			FRAG_TRY(add_chart(w, &w->a->parts[i].chart, err));
	FRAG_CHECK_ALLOC(!w->strings.failed, "page", err);
	if (!w->plots_count)
		return 0;
	FRAG_TRY(frag_plot_run(w->plots, w->plots_count, w->page->threads, err));
	for (size_t i = 0; i < w->a->parts_count; i++)
		if (w->a->parts[i].kind == FRAG_PART_CHART)
			FRAG_TRY(frag_svg_read(
				path_of(w, frag_chart_base(&w->a->parts[i].chart), "svg"),
				&w->svgs[i], err));
	return w->page->formats & FRAG_FORMAT_ONE_PDF ? put_one_pdf(w, err) : 0;
}

static int put_files(struct writer *w, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text html = { 0 };
	const struct frag_answer *a = w->a;

	FRAG_TRY(draw(w, err));
	for (size_t i = 0; i < a->parts_count; i++)
		if (a->parts[i].kind == FRAG_PART_TABLE && a->parts[i].file)
			FRAG_TRY(put_rows(w, a->parts[i].shape, &a->parts[i].rows,
					  path_of(w, a->parts[i].file, ""), err));
	FRAG_TRY(frag_answer_put_json(a, path_of(w, "results", "json"), err));
	if (a->csv)
		FRAG_TRY(frag_answer_put_csv(a, path_of(w, "results", "csv"), err));
	frag_page_render(a, w->page, w->svgs, &html);
	FRAG_CHECK_ALLOC(!w->strings.failed, "page", err);
	return frag_text_put(&html, path_of(w, w->page->file, ""), err);
}

/* ---- the folder ------------------------------------------------------------------------- */

/* Each file that was made, from the work folder to the target; first only looked at: a folder may
 * stand in the place of a file. */
static int move_files(struct writer *w, bool now, struct frag_err *err)
{
	DIR *d = opendir(w->work);
	const struct dirent *e;
	int rc = d ? 0 : FRAG_OUTPUT(err, "cannot list '%s': %s", w->work, strerror(errno));

	while (d && !rc && (e = readdir(d))) {
		const char *to = frag_answer_print(&w->strings, "%s/%s", w->page->dir, e->d_name);
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (w->strings.failed)
			rc = frag_fail_nomem(err, "page");
		else if (!now && !lstat(to, &st) && S_ISDIR(st.st_mode))
			rc = FRAG_OUTPUT(err, "cannot write '%s': it is a folder", to);
		else if (now && rename(path_of(w, e->d_name, ""), to))
			rc = FRAG_OUTPUT(err, "cannot write '%s': %s", to, strerror(errno));
	}
	if (d)
		closedir(d);
	return rc;
}

static void writer_release(struct writer *w)
{
	frag_scratch_remove(w->work);
	for (size_t i = 0; w->svgs && i < w->a->parts_count; i++)
		frag_host_free(w->svgs[i]);
	FRAG_FREE(w->svgs, w->plots);
	frag_answer_release(&w->strings);
}

int frag_answer_page_text(const struct frag_answer *a, const struct frag_answer_page *page,
			  struct frag_text *out, struct frag_err *err)
{
	struct frag_answer_page alone = *page;
	struct writer w = { .a = a, .page = &alone };
	bool drawn;

	alone.formats = 0;
	w.svgs = frag_host_calloc(a->parts_count + 1, sizeof(*w.svgs));
	w.plots = frag_host_calloc(a->parts_count + 1, sizeof(*w.plots));
	drawn = w.svgs && w.plots && !frag_plot_aside(NULL, &w.work, NULL) && !draw(&w, NULL);
	frag_page_render(a, &alone, drawn ? w.svgs : NULL, out);
	writer_release(&w);
	return a->failed ? frag_fail_nomem(err, "page") : frag_text_check(out, err);
}

int frag_answer_put_page(const struct frag_answer *a, const struct frag_answer_page *page,
			 struct frag_err *err)
{
	struct writer w = { .a = a, .page = page };
	bool existed = !access(page->dir, F_OK);
	int rc;

	FRAG_CHECK_ALLOC(!a->failed, "page", err);
	FRAG_TRY(frag_make_dirs(page->dir, err));
	w.svgs = frag_host_calloc(a->parts_count + 1, sizeof(*w.svgs));
	w.plots =
		frag_host_calloc((a->parts_count + 1) * FRAG_ARRAY_LEN(formats), sizeof(*w.plots));
	rc = !w.svgs || !w.plots ? frag_fail_nomem(err, "page")
				 : frag_plot_aside(page->dir, &w.work, err);
	rc = rc ?: put_files(&w, err) ?: move_files(&w, false, err) ?: move_files(&w, true, err);
	writer_release(&w);
	if (rc && !existed)
		rmdir(page->dir);
	return rc;
}
