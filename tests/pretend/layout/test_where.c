/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions: what they mean, and where they are wrong. */
#include "test.h"

#include "pretend/layout/where.h"

static const char *value(const void *ctx, const char *name, size_t len)
{
	static const char *const known[][2] = {
		{ "tp", "4" }, { "pp", "2" }, { "world", "8" }, { "ac", "full" }, { "lr", "0.5" }
	};

	(void)ctx;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(known); i++)
		if (strlen(known[i][0]) == len && !memcmp(known[i][0], name, len))
			return known[i][1];
	return NULL;
}

TEST(conditions_hold_or_not)
{
	static const struct {
		const char *text;
		bool holds;
	} cases[] = {
		{ "tp*pp<=world", true },
		{ "{tp} * {pp} < {world}", false },
		{ "world % tp == 0 && world / tp == pp", true },
		{ "1 + 2 * 3 == 7", true },
		{ "(1 + 2) * 3 == 9", true },
		{ "10 - 3 - 2 == 5", true },
		{ "7 / 2 == 3.5", true },
		{ "-tp < -3 && !(tp == 5)", true },
		{ "!0 != !1", true },
		{ "ac == 'full'", true },
		{ "ac != \"full\" || tp == 4", true },
		{ "ac == 'ful'", false },
		{ "lr < 1", true },
		{ "1 || 0 && 0", true },
		{ "0", false },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		bool holds = !cases[i].holds;

		SUCCEEDS(frag_where_holds(cases[i].text, value, NULL, &holds, NULL));
		if (holds != cases[i].holds)
			fail_msg("%s", cases[i].text);
	}
}

TEST(errors_name_the_offset)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "at offset 0: expected a number" },
		{ "tp <", "at offset 4: expected a number" },
		{ "tp + nope", "at offset 5: unknown name" },
		{ "tp / (pp - 2)", "at offset 3: division by zero" },
		{ "tp % 0", "at offset 3: division by zero" },
		{ "(tp", "at offset 3: expected )" },
		{ "tp)", "at offset 2: expected an operator or the end" },
		{ "ac == 'x", "at offset 6: the text does not end" },
		{ "ac < 'x'", "at offset 3: a text can only be compared" },
		{ "ac == 3", "at offset 3: a text can only be compared" },
		{ "ac + 1", "at offset 3: a text where" },
		{ "ac", "at offset 0: a text where" },
		{ "{tp", "at offset 0: expected" },
		{ "1.2.3", "at offset 0: invalid number" },
		{ "tp = 4", "at offset 3: expected an operator" },
	};
	char deep[1000];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		bool holds;

		assert_int_equal(frag_where_holds(cases[i].text, value, NULL, &holds, &test_err),
				 FRAG_EUSAGE);
		if (!strstr(test_err.msg, cases[i].part))
			fail_msg("%s: %s", cases[i].text, test_err.msg);
	}
	for (size_t k = 0; k < 3; k++) {
		bool holds;

		memset(deep, "(!-"[k], sizeof(deep));
		deep[sizeof(deep) - 1] = '\0';
		FAILS(FRAG_EUSAGE, "too deep",
		      frag_where_holds(deep, value, NULL, &holds, &test_err));
	}
}

TEST(length_is_bounded)
{
	char text[1002];
	bool holds = false;

	memset(text, ' ', sizeof(text));
	text[999] = '1';
	text[1000] = text[1001] = '\0';
	SUCCEEDS(frag_where_holds(text, value, NULL, &holds, NULL));
	assert_true(holds);
	text[1000] = '1';
	assert_int_equal(frag_where_holds(text, value, NULL, &holds, NULL), FRAG_EUSAGE);
}
