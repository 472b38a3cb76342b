/* SPDX-License-Identifier: Apache-2.0 */
/* A page beside report.html; see page.h. */
#include "page.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clean.h"
#include "base/outfile.h"
#include "answer/answer.h"
#include "answer/draw/plot.h"
#include "answer/draw/svg.h"

void frag_page_header(struct frag_text *csv, const char *x)
{
	frag_text_addf(csv, "site,name,%s,time_s,bytes,upto_bytes\n", x);
}

void frag_page_point(struct frag_text *csv, size_t site, const char *name, double x,
		     uint64_t time_us, uint64_t bytes, uint64_t upto)
{
	frag_text_addf(csv, "%zu,", site);
	frag_text_add_csv(csv, name);
	frag_text_addf(csv, ",%.15g,%.6f,%" PRIu64 ",%" PRIu64 "\n", x, (double)time_us / 1e6,
		       bytes, upto);
}

static char *read_back(const char *dir, const char *base)
{
	FRAG_AUTO(frag_text_release) struct frag_text path = { 0 };
	char *text = NULL;
	struct stat st;
	FILE *f;

	frag_text_addf(&path, "%s/%s.svg", dir, base);
	f = fopen(frag_text_str(&path), "rb");
	if (f && !fstat(fileno(f), &st))
		text = frag_host_alloc((size_t)st.st_size + 1);
	if (text)
		text[fread(text, 1, (size_t)st.st_size, f)] = '\0';
	if (f)
		fclose(f);
	return text;
}

static int add_chart(const struct frag_page *page, const struct frag_page_chart *c, unsigned number,
		     struct frag_text *out, struct frag_err *err)
{
	const struct frag_chart_file file = { .script = c->script ? c->script : "sites",
					      .dir = page->dir,
					      .base = c->base,
					      .csv = &c->csv,
					      .title = c->title,
					      .subtitle = c->subtitle,
					      .extra = c->script    ? c->extra
						       : c->stacked ? "stack"
								    : "lines" };
	char prefix[16], *svg;

	FRAG_TRY(frag_text_check(&c->csv, err));
	FRAG_TRY(frag_chart_draw(&file, FRAG_FORMAT_SVG | FRAG_FORMAT_PNG, page->threads, err));
	svg = read_back(page->dir, c->base);
	if (!svg)
		return frag_fail(err, FRAG_EOUTPUT, "cannot read '%s/%s.svg' back", page->dir,
				 c->base);
	snprintf(prefix, sizeof(prefix), "x%u", number);
	frag_text_add(out, "<h2>");
	frag_text_add_html(out, c->heading);
	frag_text_add(out, "</h2>\n<figure>\n");
	frag_svg_inline(svg, prefix, c->caption, out);
	frag_text_add(out, "\n<figcaption>");
	frag_text_add_html(out, c->caption);
	frag_text_addf(out,
		       " Data: <a href=\"%s.csv\">%s.csv</a>, <a href=\"%s.png\">PNG</a>."
		       "</figcaption>\n</figure>\n",
		       c->base, c->base, c->base);
	frag_host_free(svg);
	return 0;
}

static void add_command(const struct frag_page *page, struct frag_text *out)
{
	frag_text_add(out, "<h2>To make this page again</h2>\n<pre>cufrag");
	for (int i = 0; i < page->argc; i++) {
		char *word = frag_shell_word(page->argv[i]);

		frag_text_add(out, " ");
		frag_text_add_html(out, word ? word : "");
		frag_host_free(word);
	}
	frag_text_add(out, "</pre>\n");
}

static int build(const struct frag_page *page, struct frag_text *out, struct frag_err *err)
{
	frag_page_begin(page->title, out);
	frag_text_add(out, "<header>\n<p class=\"kicker\">cufrag</p>\n<h1>");
	frag_text_add_html(out, page->title);
	frag_text_add(out, "</h1>\n<p class=\"question\">");
	frag_text_add_html(out, page->question);
	frag_text_add(out, "</p>\n</header>\n<p class=\"answer\">");
	/* a sentence here, behind "answer:" elsewhere */
	if (islower((unsigned char)page->answer[0]))
		frag_text_addf(out, "%c", toupper((unsigned char)page->answer[0]));
	frag_text_add_html(out, page->answer + (islower((unsigned char)page->answer[0]) != 0));
	frag_text_add(out, "</p>\n");
	for (size_t i = 0; i < page->charts_count; i++)
		FRAG_TRY(add_chart(page, &page->charts[i], (unsigned)i, out, err));
	frag_text_add(out, "<h2>Tables</h2>\n<pre class=\"tables\">");
	frag_text_add_html(out, page->text);
	frag_text_add(out, "</pre>\n");
	add_command(page, out);
	frag_page_end(out);
	return frag_text_check(out, err);
}

int frag_page_write(struct frag_page *page, struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = frag_path_join(page->dir, page->file);
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };
	int rc = path ? frag_make_dirs(page->dir, err) : frag_fail_nomem(err, "page");

	if (!rc)
		rc = build(page, &out, err)
			     ?: frag_outfile_put(path, frag_text_str(&out), out.len, err);
	for (size_t i = 0; i < page->charts_count; i++)
		frag_text_release(&page->charts[i].csv);
	return rc;
}
