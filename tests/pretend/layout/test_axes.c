/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a command: their values, the command of a layout, presets. */
#include "test.h"

#include "pretend/axes.h"
#include "pretend/layout/preset.h"

static void expect_words(char *const *words, const char *wanted)
{
	char text[1000] = "";

	for (; *words; words++) {
		if (*text)
			strcat(text, "|");
		strcat(text, *words);
	}
	assert_string_equal(text, wanted);
}

TEST(values_are_lists_ranges_and_powers)
{
	char *const command[] = { (char *)"x{a}y", (char *)"{{b}} {b}", (char *)"{c", NULL };
	FRAG_AUTO(frag_axes_release) struct frag_axes x = { 0 };
	char **words, text[100];

	assert_int_equal(frag_axes_add(&x, "{a}=1..3,8", NULL), 0);
	assert_int_equal(frag_axes_add(&x, "b=2..20*3", NULL), 0);
	assert_int_equal(x.list[0].count, 4);
	assert_int_equal(x.list[1].count, 3);
	assert_string_equal(x.list[1].values[2], "18");
	assert_int_equal(frag_axes_check(&x, command, command + 3, NULL), 0);
	assert_int_equal(frag_axes_expand(&x, (const char *[]){ "a < 8", "b > a" }, 2, NULL), 0);
	assert_int_equal(x.layouts_count, 7);
	frag_axes_text(&x, 6, SIZE_MAX, text, sizeof(text));
	assert_string_equal(text, "a=3 b=18");
	assert_int_equal(frag_axes_words(&x, 6, command, &words, NULL), 0);
	expect_words(words, "x3y|{b} 18|{c");
	frag_words_release(&words);
}

/* A preset's names put its options into an empty command, each once. */
TEST(presets_set_each_of_their_names)
{
	char *const command[] = { (char *)"run", NULL };

	for (const struct frag_preset *o = frag_presets, *of = o; o->preset || o->name; o++) {
		char text[100], **words = NULL, **made = NULL, *files[2] = { NULL };
		FRAG_AUTO(frag_axes_release) struct frag_axes x = { 0 };

		of = o->preset ? o : of;
		assert_non_null(of->summary);
		if (!o->option)
			continue;
		snprintf(text, sizeof(text), "%s=%s", o->name, o->values[0] ? o->values[1] : "1");
		assert_int_equal(frag_axes_add(&x, text, NULL), 0);
		assert_int_equal(frag_preset_apply(of->preset, &x, command, files, &words, NULL),
				 0);
		assert_int_equal(frag_axes_check(&x, words, files, NULL), 0);
		assert_int_equal(frag_axes_expand(&x, NULL, 0, NULL), 0);
		assert_int_equal(frag_axes_words(&x, 0, words, &made, NULL), 0);
		assert_string_equal(made[0], "run");
		assert_int_equal(strncmp(made[1], "--", 2), 0);
		frag_words_release(&words);
		frag_words_release(&made);
	}
}

#define MOST_WORDS 20

/* "preset NAME AXIS...: WORDS", "order AXIS" */
static void answer(char *call, FILE *out)
{
	static const char *const orders[] = {
		[FRAG_AXIS_ANY] = "", [FRAG_AXIS_RISING] = "rises", [FRAG_AXIS_FALLING] = "falls"
	};
	char *rest = strstr(call, ": "), *given[MOST_WORDS + 1] = { NULL }, **words = NULL;
	char *files[FRAG_CONFIG_MAX + 1] = { NULL };
	FRAG_AUTO(frag_axes_release) struct frag_axes x = { 0 };
	const char *kind = cases_word(&call), *name, *axis;
	size_t n = 0;

	name = *kind == 'p' ? cases_word(&call) : NULL;
	if (rest)
		*rest = 0;
	while ((axis = cases_word(&call)))
		SUCCEEDS(frag_axes_add(&x, axis, NULL));
	if (rest)
		call = rest + 2;
	while (n < MOST_WORDS && (given[n] = cases_word(&call)))
		n++;
	if (*kind == 'o') {
		frag_axes_guess_order(&x);
		fputs(orders[x.list[0].order], out);
	} else {
		SUCCEEDS(frag_preset_apply(name, &x, given, files, &words, NULL));
	}
	if (files[0])
		fprintf(out, "file %s", files[0]);
	for (size_t i = 0; words && words[i] && !files[0]; i++)
		fprintf(out, "%s%s", i ? " " : "", words[i]);
	for (size_t i = 0; *kind == 'p' && i < x.count; i++)
		if (x.list[i].order != FRAG_AXIS_ANY)
			fprintf(out, "; %s %s", x.list[i].name, orders[x.list[i].order]);
	frag_host_free(files[0]);
	frag_words_release(&words);
}

CASES_IN_LINES("tests/pretend/layout/axes.cases", answer)
