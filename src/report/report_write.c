/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as a folder: tables, charts with their data, and the page. All of
 * it is made in a folder of its own inside the target and moved up at the end.
 */
#include "report.h"

#include "answer/draw/one_pdf.h"
#include "report/page/html.h"
#include "answer/draw/plot.h"
#include "answer/draw/svg.h"
#include "spread.h"

#include "base/scratch.h"
#include "base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMATS 3

struct writer {
	const struct frag_report *r;
	const char *dir;
	char *work; /* the folder everything is made in */
	unsigned formats;
	struct frag_figure *figures;
	struct frag_plot *plots;
	char **strings; /* of plots */
	size_t figures_count, plots_count, strings_count;
};

static int take(struct writer *w, char *s, const char **out, struct frag_err *err)
{
	FRAG_CHECK_ALLOC(s, "report", err);
	w->strings[w->strings_count++] = s;
	*out = s;
	return 0;
}

/* The text of `t` as a string of the writer's. */
static int take_text(struct writer *w, struct frag_text *t, const char **out, struct frag_err *err)
{
	int ret = frag_text_check(t, err);

	if (!ret)
		ret = take(w, frag_host_strdup(frag_text_str(t)), out, err);
	frag_text_release(t);
	return ret;
}

static int put_text(struct writer *w, const char *name, struct frag_text *t, struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = frag_path_join(w->work, name);
	int ret = path ? frag_text_put(t, path, err) : frag_fail_nomem(err, name);

	frag_text_release(t);
	return ret;
}

static int put_tables(struct writer *w, struct frag_err *err)
{
	struct frag_text csv = { 0 }, json = { 0 }, spread = { 0 };

	FRAG_TRY(frag_report_spread_csv(w->r, &spread, err));
	if (spread.len)
		FRAG_TRY(put_text(w, "spread.csv", &spread, err));

	frag_report_csv(w->r, &csv);
	FRAG_TRY(put_text(w, "results.csv", &csv, err));
	if (frag_report_json_text(w->r, &json, err)) {
		frag_text_release(&json);
		return FRAG_ENOMEM;
	}
	return put_text(w, "results.json", &json, err);
}

/* "memory", or "dev1-memory" where there are several sections. */
static void base_name(const struct writer *w, size_t section, const char *chart,
		      struct frag_text *out)
{
	if (w->r->count > 1)
		frag_text_addf(out, "dev%" PRIu32 "-", w->r->sections[section].ordinal);
	frag_text_add(out, chart);
}

static int path_of(struct writer *w, const char *base, const char *ending, const char **out,
		   struct frag_err *err)
{
	struct frag_text t = { 0 };

	frag_text_addf(&t, "%s/%s.%s", w->work, base, ending);
	return take_text(w, &t, out, err);
}

/* The CSV of one chart, and its pictures queued. */
static int add_chart(struct writer *w, size_t section, const struct frag_chart_ops *ops,
		     const struct frag_chart_job *job, struct frag_err *err)
{
	static const struct {
		unsigned bit;
		const char *name;
	} formats[FORMATS] = { { FRAG_FORMAT_SVG, "svg" },
			       { FRAG_FORMAT_PNG, "png" },
			       { FRAG_FORMAT_PDF, "pdf" } };
	struct frag_text csv = { 0 }, base = { 0 }, title = { 0 }, subtitle = { 0 }, words = { 0 };
	struct frag_plot plot = { .script = ops->name };
	struct frag_figure *f = &w->figures[w->figures_count];
	const char *name = NULL;
	char file[128];

	base_name(w, section, ops->name, &base);
	frag_chart_title(ops, job, &words);
	frag_plot_wrap(frag_text_str(&words), FRAG_PLOT_TITLE, &title);
	frag_text_release(&words);
	frag_chart_subtitle(ops, job, &words);
	frag_plot_wrap(frag_text_str(&words), FRAG_PLOT_SUBTITLE, &subtitle);
	frag_text_release(&words);
	FRAG_TRY(take_text(w, &base, &name, err));
	FRAG_TRY(take_text(w, &title, &plot.title, err));
	FRAG_TRY(take_text(w, &subtitle, &plot.subtitle, err));
	FRAG_TRY(path_of(w, name, "csv", &plot.csv, err));
	plot.extra = ops->extra ? ops->extra(job) : "";
	ops->csv(job, &csv);
	snprintf(file, sizeof(file), "%s.csv", name);
	FRAG_TRY(put_text(w, file, &csv, err));
	*f = (struct frag_figure){ .ops = ops, .section = section, .base = (char *)name };
	w->figures_count++;
	for (size_t i = 0; i < FORMATS; i++) {
		if (!(w->formats & formats[i].bit))
			continue;
		plot.format = formats[i].name;
		FRAG_TRY(path_of(w, name, plot.format, &plot.output, err));
		w->plots[w->plots_count++] = plot;
	}
	return 0;
}

static bool wanted(const struct frag_chart_ops *ops, const struct frag_chart_job *job)
{
	bool any = !ops->has;

	for (size_t i = 0; i < job->section->count && !any; i++)
		any = ops->has(job, &job->section->results[i]);
	return any && (!ops->wanted || ops->wanted(job));
}

static int add_charts(struct writer *w, struct frag_err *err)
{
	int ret = 0;

	for (size_t n = 0; n < w->r->count && !ret; n++) {
		const struct frag_section *s = &w->r->sections[n];
		size_t *order = frag_host_calloc(s->count, sizeof(*order));
		struct frag_chart_job job = { w->r, s, order };
		const struct frag_chart_ops *ops;

		FRAG_CHECK_ALLOC(order, "charts", err);
		frag_section_order(s, order);
		for (size_t i = 0; (ops = frag_chart_at(i)) && !ret; i++) {
			if (wanted(ops, &job))
				ret = add_chart(w, n, ops, &job, err);
		}
		frag_host_free(order);
	}
	return ret;
}

static int put_page(struct writer *w, unsigned threads, struct frag_err *err)
{
	struct frag_text page = { 0 }, ranks = { 0 };
	int ret;

	for (size_t i = 0; i < w->figures_count; i++) {
		const char *path = NULL;

		FRAG_TRY(path_of(w, w->figures[i].base, "svg", &path, err));
		FRAG_TRY(frag_svg_read(path, &w->figures[i].svg, err));
	}
	ret = frag_ranks_draw(w->r, w->work, w->formats, threads, &ranks, err);
	if (!ret)
		ret = frag_html_page(w->r, w->figures, w->figures_count, w->formats,
				     frag_text_str(&ranks), &page, err);
	frag_text_release(&ranks);
	if (ret) {
		frag_text_release(&page);
		return ret;
	}
	return put_text(w, "report.html", &page, err);
}

/* charts.pdf: of each chart the first format's entry, whatever that is, has all it needs. */
static int put_one_pdf(struct writer *w, unsigned threads, struct frag_err *err)
{
	size_t per_chart = w->figures_count ? w->plots_count / w->figures_count : 1;
	FRAG_AUTO_FREE struct frag_plot *pages =
		frag_host_calloc(w->figures_count + 1, sizeof(*pages));
	FRAG_AUTO_FREE char *program = frag_path_join(w->work, "charts.gp"), *scripts = NULL;
	struct frag_plot pdf = { .format = "pdf", .title = "", .subtitle = "", .extra = "" };
	struct frag_text text = { 0 };
	int ret = pages && program ? frag_plot_scripts(&scripts, err)
				   : frag_fail_nomem(err, "charts.pdf");

	for (size_t i = 0; !ret && i < w->figures_count; i++)
		pages[i] = w->plots[i * per_chart];
	if (!ret)
		ret = path_of(w, "charts", "pdf", &pdf.output, err);
	if (!ret) {
		frag_one_pdf_script(pages, w->figures_count, scripts, pdf.output, &text);
		ret = put_text(w, "charts.gp", &text, err);
	}
	pdf.script = program;
	pdf.csv = "";
	if (!ret)
		ret = frag_plot_run(&pdf, 1, threads, err);
	if (program)
		unlink(program);
	return ret;
}

/* Moves every file of the work folder. */
static int move_up(struct writer *w, struct frag_err *err)
{
	DIR *d = opendir(w->work);
	const struct dirent *e;
	int ret =
		d ? 0
		  : frag_fail(err, FRAG_EOUTPUT, "cannot list '%s': %s", w->work, strerror(errno));

	while (d && !ret && (e = readdir(d))) {
		char *from, *to;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		from = frag_path_join(w->work, e->d_name);
		to = frag_path_join(w->dir, e->d_name);
		if (!from || !to)
			ret = frag_fail_nomem(err, "report");
		else if (rename(from, to))
			ret = frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", to,
					strerror(errno));
		FRAG_FREE(from, to);
	}
	if (d)
		closedir(d);
	return ret;
}

/* A folder in the place of a file: found before the first one is moved. */
static int check_target(const struct writer *w, struct frag_err *err)
{
	DIR *d = opendir(w->work);
	const struct dirent *e;
	struct stat st;
	int ret = 0;

	while (d && !ret && (e = readdir(d))) {
		char *to = frag_path_join(w->dir, e->d_name);

		if (!to)
			ret = frag_fail_nomem(err, "report");
		else if (e->d_name[0] != '.' && !lstat(to, &st) && S_ISDIR(st.st_mode))
			ret = frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': it is a folder", to);
		frag_host_free(to);
	}
	if (d)
		closedir(d);
	return ret;
}

static int open_work(struct writer *w, struct frag_err *err)
{
	size_t charts = 0, most;

	while (frag_chart_at(charts))
		charts++;
	most = charts * w->r->count;
	w->figures = frag_host_calloc(most, sizeof(*w->figures));
	w->plots = frag_host_calloc(most * FORMATS, sizeof(*w->plots));
	w->strings = frag_host_calloc(most * (6 + FORMATS) + 1, sizeof(*w->strings));
	FRAG_CHECK_ALLOC(w->figures && w->plots && w->strings, "report", err);
	return frag_plot_aside(w->dir, &w->work, err);
}

static void close_work(struct writer *w)
{
	frag_scratch_remove(w->work);
	for (size_t i = 0; i < w->figures_count; i++)
		frag_host_free(w->figures[i].svg);
	for (size_t i = 0; i < w->strings_count; i++)
		frag_host_free(w->strings[i]);
	FRAG_FREE(w->figures, w->plots, w->strings);
}

int frag_report_write(const struct frag_report *r, const char *dir, unsigned formats,
		      unsigned threads, struct frag_err *err)
{
	struct writer w = { .r = r, .dir = dir, .formats = formats | FRAG_FORMAT_SVG };
	bool existed = !access(dir, F_OK);
	int ret;

	FRAG_TRY(frag_make_dirs(dir, err));
	ret = open_work(&w, err);
	if (!ret)
		ret = put_tables(&w, err);
	if (!ret)
		ret = add_charts(&w, err);
	if (!ret)
		ret = frag_plot_run(w.plots, w.plots_count, threads, err);
	if (!ret && formats & FRAG_FORMAT_ONE_PDF && w.figures_count)
		ret = put_one_pdf(&w, threads, err);
	if (!ret)
		ret = put_page(&w, threads, err);
	if (!ret)
		ret = check_target(&w, err);
	if (!ret)
		ret = move_up(&w, err);
	close_work(&w);
	if (ret && !existed)
		rmdir(dir);
	return ret;
}
