/* SPDX-License-Identifier: Apache-2.0 */
/* Charts inside the page: a pass over gnuplot's SVG that rewrites a few tokens. */
#include "answer/draw/plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Inks of scripts/plot/style.gp and the variables of the page that stand for them. */
static const struct {
	int r, g, b;
	const char *css;
} inks[] = {
	{ 0x22, 0x22, 0x22, "var(--ink)" },
	{ 0x44, 0x44, 0x44, "var(--axis)" },
	{ 0xdd, 0xdd, 0xdd, "var(--grid)" },
	{ 0xb4, 0xba, 0xc0, "var(--area)" },
	{ 0xfb, 0xe3, 0xd3, "var(--spare)" },
	/* policies whose hues are too dark for a dark screen */
	{ 0x7a, 0x52, 0x30, "var(--brown)" },
	{ 0x3d, 0x34, 0x8b, "var(--indigo)" },
};

static const char *const references[] = { " id=\"", " id='", "href=\"#", "href='#", "url(#" };

/* Length of what was replaced at p, 0 if nothing is there to replace. */
static size_t rewrite_color(const char *p, struct frag_text *out)
{
	int r, g, b, n = 0;

	if (strncmp(p, "rgb(", 4) || sscanf(p, "rgb(%d,%d,%d)%n", &r, &g, &b, &n) != 3 || !n)
		return 0;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(inks); i++) {
		if (inks[i].r == r && inks[i].g == g && inks[i].b == b) {
			frag_text_add(out, inks[i].css);
			return (size_t)n;
		}
	}
	/* without the blanks that gnuplot pads with */
	frag_text_addf(out, "#%02x%02x%02x", r & 255, g & 255, b & 255);
	return (size_t)n;
}

static size_t rewrite_reference(const char *p, const char *prefix, struct frag_text *out)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(references); i++) {
		size_t n = strlen(references[i]);

		if (strncmp(p, references[i], n))
			continue;
		frag_text_addn(out, p, n);
		frag_text_add(out, prefix);
		return n;
	}
	return 0;
}

/* Value of attribute `name` of the element that begins at p, 0 if absent. */
static double attribute(const char *p, const char *name)
{
	const char *end = strchr(p, '>'), *at = strstr(p, name);

	return at && end && at < end ? atof(at + strlen(name)) : 0;
}

void frag_svg_inline(const char *svg, const char *prefix, const char *alt, struct frag_text *out)
{
	const char *p = strstr(svg, "<svg"), *body, *paper;

	if (!p || !(body = strchr(p, '>')))
		return;
	frag_text_addf(out,
		       "<svg xmlns=\"http://www.w3.org/2000/svg\" "
		       "xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 %.0f %.0f\" "
		       "role=\"img\" aria-label=\"",
		       attribute(p, "width=\""), attribute(p, "height=\""));
	frag_text_add_html(out, alt);
	frag_text_add(out, "\">");
	paper = strstr(body, "<rect x=\"0\" y=\"0\"");
	for (p = body + 1; *p;) {
		size_t n = p == paper ? strcspn(p, ">") + 1 : 0;

		/* names that gnuplot gives its layers ("gnuplot_plot_3") would show as tool tips */
		if (!n && !strncmp(p, "<title>", 7) && strstr(p, "</title>"))
			n = (size_t)(strstr(p, "</title>") + 8 - p);

		n = n ? n : rewrite_color(p, out);
		n = n ? n : rewrite_reference(p, prefix, out);
		if (!n)
			frag_text_addn(out, p, n = 1);
		p += n;
	}
}

int frag_svg_read(const char *path, char **svg, struct frag_err *err)
{
	FRAG_AUTO_FILE FILE *f = fopen(path, "rb");
	struct stat st;

	*svg = NULL;
	if (f && !fstat(fileno(f), &st))
		*svg = frag_host_alloc((size_t)st.st_size + 1);
	if (*svg)
		(*svg)[fread(*svg, 1, (size_t)st.st_size, f)] = '\0';
	return *svg ? 0 : FRAG_OUTPUT(err, "cannot read '%.200s' back", path);
}
