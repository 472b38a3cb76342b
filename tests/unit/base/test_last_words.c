/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/last_words.c: what a program that failed said of it. */
#include "test.h"

#include <unistd.h>

#include "base/last_words.h"

static void answer(char *input, FILE *out)
{
	char *text = strdup(input), said[200];

	frag_last_words_of(text, said, sizeof(said));
	fprintf(out, "%s\n", said);
	free(text);
}

CASES_IN_PARTS("tests/unit/base/last_words.cases", answer)

TEST(a_file_is_read_from_its_end)
{
	const char *name = test_path("said");
	FILE *f = fopen(name, "w");
	char said[40];

	for (int i = 0; i < 100000; i++)
		fprintf(f, "ValueError: line %d\n", i);
	fwrite("\0\n", 1, 2, f);
	fputs("  File \"train.py\", line 3, in <module>\nKeyError: 'a key that is longer than "
	      "what there is room for'\n",
	      f);
	fclose(f);
	frag_last_words(name, said, sizeof(said));
	assert_string_equal(said, "KeyError: 'a key that is longer than wh");
	unlink(name);
	frag_last_words(name, said, sizeof(said));
	assert_string_equal(said, "");
}
