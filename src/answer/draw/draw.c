/* SPDX-License-Identifier: Apache-2.0 */
/* A chart on its own: data, words and pictures, for commands without a report. */
#include "answer/draw/plot.h"

#include "base/scratch.h"
#include "base/outfile.h"

#include <frag/base.h>

#include <stdio.h>
#include <string.h>

/* Bytes of the word at p that have room in `width` letters; at least one. */
static size_t cut_word(const char *p, size_t bytes, size_t width)
{
	size_t n = 0, letters = 0;

	while (n < bytes) {
		letters += ((unsigned char)p[n] & 0xc0) != 0x80;
		if (letters > width)
			break;
		n++;
	}
	return FRAG_MAX(n, (size_t)1);
}

static size_t letters_of(const char *p, size_t bytes)
{
	size_t letters = 0;

	for (size_t i = 0; i < bytes; i++)
		letters += ((unsigned char)p[i] & 0xc0) != 0x80;
	return letters;
}

void frag_plot_wrap(const char *text, size_t width, struct frag_text *out)
{
	size_t at = 0; /* letters on this line */

	while (*text) {
		size_t bytes = strcspn(text, " \n"), letters = letters_of(text, bytes);

		if (at && at + 1 + letters > width) {
			frag_text_add(out, "\n");
			at = 0;
		}
		if (at) {
			frag_text_add(out, " ");
			at++;
		}
		if (letters > width) {
			bytes = cut_word(text, bytes, width);
			letters = width;
		}
		frag_text_addn(out, text, bytes);
		at += letters;
		text += bytes;
		if (*text == '\n') {
			frag_text_add(out, "\n");
			at = 0;
		}
		text += *text == ' ' || *text == '\n';
	}
}

/* ---- one chart ----------------------------------------------------------------------- */

#define PICTURES 3

static const struct {
	unsigned bit;
	const char *name;
} pictures[PICTURES] = { { FRAG_FORMAT_SVG, "svg" },
			 { FRAG_FORMAT_PNG, "png" },
			 { FRAG_FORMAT_PDF, "pdf" } };

struct drawing {
	char *folder; /* it is made in there */
	struct frag_text csv, title, subtitle;
	struct frag_text target[PICTURES], aside[PICTURES];
	struct frag_plot plots[PICTURES];
	size_t count;
};

static int prepare(struct drawing *d, const struct frag_chart_file *c, unsigned formats,
		   struct frag_err *err)
{
	frag_text_addf(&d->csv, "%s/%s.csv", c->dir, c->base);
	frag_plot_wrap(c->title, FRAG_PLOT_TITLE, &d->title);
	frag_plot_wrap(c->subtitle, FRAG_PLOT_SUBTITLE, &d->subtitle);
	FRAG_TRY(frag_text_check(&d->csv, err));
	FRAG_TRY(frag_text_check(&d->title, err));
	FRAG_TRY(frag_text_check(&d->subtitle, err));
	FRAG_TRY(frag_plot_aside(c->dir, &d->folder, err));
	for (size_t i = 0; i < PICTURES; i++) {
		if (!(formats & pictures[i].bit))
			continue;
		frag_text_addf(&d->target[i], "%s/%s.%s", c->dir, c->base, pictures[i].name);
		frag_text_addf(&d->aside[i], "%s/%s.%s", d->folder, c->base, pictures[i].name);
		FRAG_TRY(frag_text_check(&d->target[i], err));
		FRAG_TRY(frag_text_check(&d->aside[i], err));
		d->plots[d->count++] = (struct frag_plot){ .script = c->script,
							   .csv = frag_text_str(&d->csv),
							   .output = frag_text_str(&d->aside[i]),
							   .format = pictures[i].name,
							   .title = frag_text_str(&d->title),
							   .subtitle = frag_text_str(&d->subtitle),
							   .extra = c->extra ? c->extra : "" };
	}
	return 0;
}

static int draw(struct drawing *d, const struct frag_chart_file *c, unsigned threads,
		struct frag_err *err)
{
	FRAG_TRY(frag_outfile_put(frag_text_str(&d->csv), frag_text_str(c->csv), c->csv->len, err));
	FRAG_TRY(frag_plot_run(d->plots, d->count, threads, err));
	for (size_t i = 0; i < PICTURES; i++) {
		if (d->target[i].len && rename(frag_text_str(&d->aside[i]), d->target[i].s))
			return frag_fail(err, FRAG_EOUTPUT, "cannot write '%s'", d->target[i].s);
	}
	return 0;
}

int frag_chart_draw(const struct frag_chart_file *chart, unsigned formats, unsigned threads,
		    struct frag_err *err)
{
	struct drawing d = { 0 };
	int rc = frag_text_check(chart->csv, err);

	if (!rc)
		rc = prepare(&d, chart, formats | FRAG_FORMAT_SVG, err)
			     ?: draw(&d, chart, threads, err);
	for (size_t i = 0; i < PICTURES; i++) {
		frag_text_release(&d.target[i]);
		frag_text_release(&d.aside[i]);
	}
	frag_scratch_remove(d.folder);
	frag_text_release(&d.csv);
	frag_text_release(&d.title);
	frag_text_release(&d.subtitle);
	return rc;
}
