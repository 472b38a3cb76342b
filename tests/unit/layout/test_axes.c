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
		FRAG_AUTO(frag_axes_release) struct frag_axes x = { 0 };

		assert_int_equal(frag_axes_add(&x, cases[i].axis, NULL), 0);
		frag_axes_guess_order(&x);
		assert_int_equal(x.list[0].order, cases[i].order);
	}
}

/* The python beside a launcher is not looked for where PATH has none. */
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
		    (char *)"--mixed_precision", (char *)"bf16", (char *)"t.py" },
		  "python3|-m|cufrag_launch|accelerate|--num_processes|4|--mixed_precision|bf16|t."
		  "py" },
		{ { (char *)"/e/accelerate-launch", (char *)"t.py" },
		  "/e/python|-m|cufrag_launch|accelerate|t.py" },
		{ { (char *)"python", (char *)"-u", (char *)"-m",
		    (char *)"accelerate.commands.launch", (char *)"t.py" },
		  "python|-u|-m|cufrag_launch|accelerate|t.py" },
		{ { (char *)"torchrun", (char *)"--no-python", (char *)"./run.sh", (char *)"a" },
		  "./run.sh|a" },
		{ { (char *)"deepspeed", (char *)"--num_gpus", (char *)"2", (char *)"t.py",
		    (char *)"--x" },
		  "python3|-m|cufrag_launch|--local_rank|t.py|--x" },
		{ { (char *)"deepspeed", (char *)"--num_gpus=2", (char *)"--no_local_rank",
		    (char *)"--module", (char *)"a.b" },
		  "python3|-m|a.b" },
		{ { (char *)"python", (char *)"-m", (char *)"torch.distributed.launch",
		    (char *)"--nproc_per_node=2", (char *)"t.py" },
		  "python|-m|cufrag_launch|--local-rank|t.py" },
		{ { (char *)"python", (char *)"-m", (char *)"torch.distributed.launch",
		    (char *)"--use-env", (char *)"t.py" },
		  "python|t.py" },
		{ { (char *)"uv", (char *)"run", (char *)"--no-sync", (char *)"torchrun",
		    (char *)"--standalone", (char *)"t.py" },
		  "uv|run|--no-sync|python|t.py" },
		{ { (char *)"env", (char *)"A=1", (char *)"python", (char *)"t.py",
		    (char *)"torchrun" },
		  "env|A=1|python|t.py|torchrun" },
	};

	setenv("PATH", "/nowhere", 1);
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
			char text[100], **words = NULL, **made = NULL, *files[2] = { NULL };
			FRAG_AUTO(frag_axes_release) struct frag_axes x = { 0 };

			if (!o->option)
				continue;
			snprintf(text, sizeof(text), "%s=%s", o->name,
				 o->values[0] ? o->values[1] : "1");
			assert_int_equal(frag_axes_add(&x, text, NULL), 0);
			assert_int_equal(
				frag_preset_apply((*p)->name, &x, command, files, &words, NULL), 0);
			assert_int_equal(frag_axes_check(&x, words, files, NULL), 0);
			assert_int_equal(frag_axes_expand(&x, NULL, 0, NULL), 0);
			assert_int_equal(frag_axes_words(&x, 0, words, &made, NULL), 0);
			assert_string_equal(made[0], "run");
			assert_int_equal(strncmp(made[1], "--", 2), 0);
			frag_words_release(&words);
			frag_words_release(&made);
		}
	}
}

TEST(an_option_that_is_there_is_replaced)
{
	char *const command[] = { (char *)"run",    (char *)"--seq-length",
				  (char *)"9",	    (char *)"--micro-batch-size=4",
				  (char *)"--bf16", NULL };
	char **words = NULL, *files[2] = { NULL };
	FRAG_AUTO(frag_axes_release) struct frag_axes x = { 0 };

	assert_int_equal(frag_axes_add(&x, "mb=1", NULL), 0);
	assert_int_equal(frag_axes_add(&x, "seq=1", NULL), 0);
	assert_int_equal(frag_axes_add(&x, "tp=1", NULL), 0);
	assert_int_equal(frag_preset_apply("megatron", &x, command, files, &words, NULL), 0);
	expect_words(words, "run|--seq-length|{seq}|--micro-batch-size={mb}|--bf16|"
			    "--tensor-model-parallel-size|{tp}");
	assert_int_equal(x.list[0].order, FRAG_AXIS_RISING);
	frag_words_release(&words);
}

static void expect_preset(const char *preset, const char *vary, const char *command,
			  const char *wanted)
{
	char **words = NULL, *files[FRAG_CONFIG_MAX + 1] = { NULL }, *given[20], copy[300],
	     *at = copy;
	FRAG_AUTO(frag_axes_release) struct frag_axes x = { 0 };
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", command);
	while ((given[n] = strsep(&at, " ")))
		n++;
	assert_int_equal(frag_axes_add(&x, vary, NULL), 0);
	assert_int_equal(frag_preset_apply(preset, &x, given, files, &words, NULL), 0);
	if (*wanted == '@')
		assert_string_equal(files[0], wanted + 1);
	else
		expect_words(words, wanted);
	frag_host_free(files[0]);
	frag_words_release(&words);
}

/* As users write them: other spellings, options that belong together, flags in front of what is no value of theirs, files. */
TEST(options_as_users_write_them)
{
	expect_preset("megatron", "ac=none",
		      "run --recompute-activations --recompute-granularity=full --recompute-method "
		      "uniform --recompute-num-layers 1 --x",
		      "run|{ac}|--x");
	expect_preset("megatron", "ac=none", "run --recompute-granularity full --x",
		      "run|{ac}|--x");
	expect_preset("vllm", "eager=off", "serve --enforce-eager model", "serve|{eager}|model");
	expect_preset("vllm", "tp=2", "serve m -tp 4 --x", "serve|m|-tp|{tp}|--x");
	expect_preset("vllm", "tp=2", "serve m --tensor_parallel_size=4",
		      "serve|m|--tensor_parallel_size={tp}");
	expect_preset("sglang", "tp=2", "s --tp 4", "s|--tp|{tp}");
	expect_preset("torchtitan", "mb=1", "t --training.local-batch-size=4",
		      "t|--training.local-batch-size={mb}");
	expect_preset("huggingface", "ac=none", "t --gradient_checkpointing True --x",
		      "t|{ac}|--x");
	expect_preset("huggingface", "seq=9", "t --block_size 8", "t|--block_size|{seq}");
	expect_preset("huggingface", "mb=9", "t --per-device-train-batch-size 8",
		      "t|--per-device-train-batch-size|{mb}");
	expect_preset("deepspeed", "zero=1", "t --deepspeed_config a/ds.json",
		      "@a/ds.json:zero_optimization.stage={zero}");
	expect_preset("deepspeed", "zero=1", "t --zero_stage=2 --deepspeed_config ds.json",
		      "t|--zero_stage={zero}|--deepspeed_config|ds.json");
	expect_preset("huggingface", "zero=1", "accelerate launch --config_file=c.yml t",
		      "@c.yml:deepspeed_config.zero_stage={zero}");
	expect_preset("deepspeed", "zero=1", "t data.json", "t|data.json|--zero_stage|{zero}");
}
