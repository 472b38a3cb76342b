/* SPDX-License-Identifier: Apache-2.0 */
/* Titles of charts; see title.h. */
#include "title.h"

#include <inttypes.h>
#include <stdio.h>

#include <frag/opt.h>

void frag_title_release(struct frag_title *t)
{
	frag_text_release(&t->text);
	*t = (struct frag_title){ 0 };
}

/* Notes a number; where its text goes. */
static char *note(struct frag_title *t, const char *name, double value)
{
	FRAG_ASSERT(t->count < FRAG_TITLE_NUMBERS);
	t->numbers[t->count] = (struct frag_answer_number){ name, value };
	return t->shown[t->count++];
}

const char *frag_title_bytes(struct frag_title *t, const char *name, uint64_t bytes)
{
	return frag_format_bytes(bytes, note(t, name, (double)bytes), sizeof(t->shown[0]));
}

const char *frag_title_ns(struct frag_title *t, const char *name, uint64_t ns)
{
	return frag_format_ns(ns, note(t, name, (double)ns), sizeof(t->shown[0]));
}

const char *frag_title_count(struct frag_title *t, const char *name, uint64_t count)
{
	char *shown = note(t, name, (double)count);

	snprintf(shown, sizeof(t->shown[0]), "%" PRIu64, count);
	return shown;
}

const char *frag_title_percent(struct frag_title *t, const char *name, double ratio, int digits)
{
	char *shown = note(t, name, ratio);

	snprintf(shown, sizeof(t->shown[0]), "%.*f %%", digits, 100 * ratio);
	return shown;
}
