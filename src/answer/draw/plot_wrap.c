/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a chart in lines that have room in the picture. */
#include "answer/draw/plot.h"

#include <frag/base.h>

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
