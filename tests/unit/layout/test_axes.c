/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a command: their values, the command of a layout, launchers and presets. */
#include "test.h"

#include "layout/axes.h"
#include "layout/preset.h"
#include "layout/torchrun.h"

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
	struct frag_axes x = { 0 };
	char **words, text[100];

	assert_int_equal(frag_axes_add(&x, "{a}=1..3,8", NULL), 0);
	assert_int_equal(frag_axes_add(&x, "b=2..20*3", NULL), 0);
	assert_int_equal(x.list[0].count, 4);
	assert_int_equal(x.list[1].count, 3);
	assert_string_equal(x.list[1].values[2], "18");
	assert_int_equal(frag_axes_check(&x, command, NULL), 0);
	assert_int_equal(frag_axes_expand(&x, (const char *[]){ "a < 8", "b > a" }, 2, NULL), 0);
	assert_int_equal(x.layouts_count, 7);
	frag_axes_text(&x, 6, SIZE_MAX, text, sizeof(text));
	assert_string_equal(text, "a=3 b=18");
	assert_int_equal(frag_axes_words(&x, 6, command, &words, NULL), 0);
	expect_words(words, "x3y|{b} 18|{c");
	frag_words_release(&words);
	frag_axes_release(&x);
}

TEST(more_recomputation_needs_less_memory)
{
	static const struct {
		const char *axis;
		enum frag_axis_order order;
	} cases[] = { { "ac=none,selective,full", FRAG_AXIS_FALLING },
		      { "recompute=none,full", FRAG_AXIS_FALLING },
		      { "ac=full,none", FRAG_AXIS_ANY },
		      { "ac=none,half,full", FRAG_AXIS_ANY },
		      { "tp=none,full", FRAG_AXIS_ANY } };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		struct frag_axes x = { 0 };

		assert_int_equal(frag_axes_add(&x, cases[i].axis, NULL), 0);
		frag_axes_guess_order(&x);
		assert_int_equal(x.list[0].order, cases[i].order);
		frag_axes_release(&x);
	}
}

TEST(launchers_are_left_out)
{
	static const struct {
		char *words[12];
		const char *wanted;
	} cases[] = {
		{ { (char *)"python", (char *)"train.py", (char *)"--n", (char *)"2" },
		  "python|train.py|--n|2" },
		{ { (char *)"torchrun", (char *)"--nproc-per-node", (char *)"8",
		    (char *)"--standalone", (char *)"t.py", (char *)"--x" },
		  "python3|t.py|--x" },
		{ { (char *)"/env/bin/torchrun", (char *)"--nnodes=2", (char *)"-m", (char *)"a.b",
		    (char *)"-m" },
		  "/env/bin/python|-m|a.b|-m" },
		{ { (char *)"python3.11", (char *)"-m", (char *)"torch.distributed.run",
		    (char *)"-m", (char *)"pkg" },
		  "python3.11|-m|pkg" },
		{ { (char *)"accelerate", (char *)"launch", (char *)"--num_processes", (char *)"4",
		    (char *)"--multi_gpu", (char *)"t.py" },
		  "python3|t.py" },
		{ { (char *)"torchrun", (char *)"--no-python", (char *)"./run.sh", (char *)"a" },
		  "./run.sh|a" },
		{ { (char *)"deepspeed", (char *)"--num_gpus", (char *)"2", (char *)"t.py" },
		  "python3|t.py" },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		char **words = NULL;

		assert_int_equal(frag_torchrun_strip(cases[i].words, &words, NULL), 0);
		expect_words(words, cases[i].wanted);
		frag_words_release(&words);
	}
}

/* A preset's names put its options into an empty command, each once. */
TEST(presets_set_each_of_their_names)
{
	char *const command[] = { (char *)"run", NULL };

	for (const struct frag_preset *const *p = frag_presets(); *p; p++) {
		assert_non_null((*p)->summary);
		for (const struct frag_preset_option *o = (*p)->options; o->name; o++) {
			struct frag_axes x = { 0 };
			char text[100], **words = NULL, **made = NULL;

			snprintf(text, sizeof(text), "%s=%s", o->name,
				 o->values[0] ? o->values[1] : "1");
			assert_int_equal(frag_axes_add(&x, text, NULL), 0);
			assert_int_equal(frag_preset_apply((*p)->name, &x, command, &words, NULL),
					 0);
			assert_int_equal(frag_axes_check(&x, words, NULL), 0);
			assert_int_equal(frag_axes_expand(&x, NULL, 0, NULL), 0);
			assert_int_equal(frag_axes_words(&x, 0, words, &made, NULL), 0);
			assert_string_equal(made[0], "run");
			assert_int_equal(strncmp(made[1], "--", 2), 0);
			frag_words_release(&words);
			frag_words_release(&made);
			frag_axes_release(&x);
		}
	}
}

TEST(an_option_that_is_there_is_replaced)
{
	char *const command[] = { (char *)"run",    (char *)"--seq-length",
				  (char *)"9",	    (char *)"--micro-batch-size=4",
				  (char *)"--bf16", NULL };
	struct frag_axes x = { 0 };
	char **words = NULL;

	assert_int_equal(frag_axes_add(&x, "mb=1", NULL), 0);
	assert_int_equal(frag_axes_add(&x, "seq=1", NULL), 0);
	assert_int_equal(frag_axes_add(&x, "tp=1", NULL), 0);
	assert_int_equal(frag_preset_apply("megatron", &x, command, &words, NULL), 0);
	expect_words(words, "run|--seq-length|{seq}|--micro-batch-size={mb}|--bf16|"
			    "--tensor-model-parallel-size|{tp}");
	assert_int_equal(x.list[0].order, FRAG_AXIS_RISING);
	frag_words_release(&words);
	frag_axes_release(&x);
}
