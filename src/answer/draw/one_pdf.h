/* SPDX-License-Identifier: Apache-2.0 */
/* charts.pdf: every chart of a page, one to a page of A4. */
#ifndef FRAG_ANSWER_ONE_PDF_H
#define FRAG_ANSWER_ONE_PDF_H

#include "answer/draw/plot.h"
#include "answer/textbuf.h"

/* The gnuplot program that draws `plots` into the file `output`; scripts: their folder. */
void frag_one_pdf_script(const struct frag_plot *plots, size_t count, const char *scripts,
			 const char *output, struct frag_text *out);

#endif
