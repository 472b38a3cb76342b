/* SPDX-License-Identifier: Apache-2.0 */
/* Charts inside the page: gnuplot's SVG made fit for inlining. */
#ifndef FRAG_ANSWER_SVG_H
#define FRAG_ANSWER_SVG_H

#include <frag/error.h>

#include "answer/textbuf.h"

/*
 * Appends `svg` (a whole file) to a page: no prolog, no size (CSS scales it), no
 * background, ids made unique by `prefix`, our inks as CSS variables
 * (--ink, --axis, --grid, --area), and `alt` as its description.
 */
void frag_svg_inline(const char *svg, const char *prefix, const char *alt, struct frag_text *out);
/* A picture that was drawn, as text in new memory. Errors: FRAG_EOUTPUT, FRAG_ENOMEM. */
int frag_svg_read(const char *path, char **svg, struct frag_err *err);

#endif
