/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/units.c and clean.c: sizes in and out, nearest words, foreign text for terminals, pages and shells. */
#include "test.h"

#include <frag/opt.h>

#include "base/clean.h"

static const char *nearest(const char *typed)
{
	static const char *const words[] = {
		"buddy", "pytorch",	      "native", "null", "rmm-pool",
		"list",	 "max_split_size_mb", "gc",	NULL
	};
	const char *word = frag_nearest(typed, words);

	return word ? word : "nothing";
}

static void answer(char *call, FILE *out)
{
	bool word = !strncmp(call, "nearest ", 8);
	const char *text = cases_word(&(char *){ call + (word ? 8 : 0) });
	uint64_t n = 99;
	char written[32];

	if (word) {
		fputs(nearest(text), out);
	} else if (frag_parse_bytes(text, &n, &test_err)) {
		assert_int_equal(test_err.code, FRAG_EUSAGE);
		assert_int_equal(n, 99);
		fprintf(out, "%.*s", (int)strcspn(test_err.msg, ";"), test_err.msg);
	} else {
		fprintf(out, "%llu, %s", (ull)n, frag_format_bytes(n, written, sizeof(written)));
	}
}

CASES_IN_LINES("tests/unit/base/sizes.cases", answer)

TEST(test_ties_are_the_first_word)
{
	static const char *const words[] = { "bat", "hat", NULL };

	assert_string_equal(frag_nearest("cat", words), "bat");
	assert_null(frag_nearest("cat", words + 2));
}

/* "shell TEXT": as a word of a shell; else as text that is shown. With C's escapes. */
static void answer_clean(char *call, FILE *out)
{
	bool shell = !strncmp(call, "shell ", 6);
	size_t n;
	FRAG_AUTO(free_at) char *text = cases_unescape(call + (shell ? 6 : 0), &n);
	FRAG_AUTO_FREE char *word = frag_shell_word(text);
	bool clean = frag_clean_is(text, n);

	fputs(shell ? word : frag_clean_text(text, n), out);
	assert_true(shell || frag_clean_is(text, n));
	fputs(shell || !clean ? "" : " (as it was)", out);
}

CASES_IN_LINES("tests/unit/base/clean.cases", answer_clean)
