/* SPDX-License-Identifier: Apache-2.0 */
/* Titles of charts; see title.h. */
#include "title.h"

#include <inttypes.h>

void frag_title_release(struct frag_title *t)
{
	frag_text_release(&t->text);
	*t = (struct frag_title){ 0 };
}

static void note(struct frag_title *t, const char *name, double value)
{
	FRAG_ASSERT(t->count < FRAG_TITLE_NUMBERS);
	t->numbers[t->count++] = (struct frag_answer_number){ name, value };
}

void frag_title_bytes(struct frag_title *t, const char *name, uint64_t bytes)
{
	frag_text_add_bytes(&t->text, bytes);
	note(t, name, (double)bytes);
}

void frag_title_ns(struct frag_title *t, const char *name, uint64_t ns)
{
	frag_text_add_ns(&t->text, ns);
	note(t, name, (double)ns);
}

void frag_title_count(struct frag_title *t, const char *name, uint64_t count)
{
	frag_text_addf(&t->text, "%" PRIu64, count);
	note(t, name, (double)count);
}

void frag_title_percent(struct frag_title *t, const char *name, double ratio, int digits)
{
	frag_text_addf(&t->text, "%.*f %%", digits, 100 * ratio);
	note(t, name, ratio);
}
