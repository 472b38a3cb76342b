/* SPDX-License-Identifier: Apache-2.0 */
/* Which release of PyTorch made a snapshot, by what each release brought; settings by either name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <frag/torch.h>

#include "trace/torch/torch_parts.h"
#include "snapshot_bytes.h"

/* What the file of each release shows, oldest first. */
static void test_marks(void **state)
{
	static const struct {
		struct frag_torch_seen seen;
		unsigned first, last;
	} files[] = {
		{ { .entries = true }, FRAG_TORCH(2, 1), FRAG_TORCH(2, 1) },
		{ { .entries = true, .time_us = true }, FRAG_TORCH(2, 2), FRAG_TORCH(2, 2) },
		{ { .entries = true, .time_us = true, .settings = true },
		  FRAG_TORCH(2, 3),
		  FRAG_TORCH(2, 4) },
		{ { .entries = true, .time_us = true, .settings = true, .annotations = true },
		  FRAG_TORCH(2, 5),
		  FRAG_TORCH(2, 7) },
		{ { .entries = true,
		    .time_us = true,
		    .settings = true,
		    .annotations = true,
		    .compile_context = true },
		  FRAG_TORCH(2, 8),
		  FRAG_TORCH(2, 8) },
		{ { .entries = true,
		    .time_us = true,
		    .settings = true,
		    .annotations = true,
		    .compile_context = true,
		    .stream_reuse = true },
		  FRAG_TORCH(2, 9),
		  FRAG_TORCH(2, 10) },
		{ { .entries = true,
		    .time_us = true,
		    .settings = true,
		    .annotations = true,
		    .compile_context = true,
		    .stream_reuse = true,
		    .user_metadata = true },
		  FRAG_TORCH(2, 11),
		  FRAG_TORCH(2, 11) },
		{ { .entries = true,
		    .time_us = true,
		    .settings = true,
		    .annotations = true,
		    .compile_context = true,
		    .stream_reuse = true,
		    .user_metadata = true,
		    .pool_id = true },
		  FRAG_TORCH(2, 12),
		  FRAG_TORCH(2, 12) },
		{ { .entries = true,
		    .time_us = true,
		    .settings = true,
		    .annotations = true,
		    .compile_context = true,
		    .stream_reuse = true,
		    .user_metadata = true,
		    .pool_id = true,
		    .round_threshold = true },
		  FRAG_TORCH(2, 13),
		  FRAG_TORCH(2, 13) },
		{ { .entries = true,
		    .time_us = true,
		    .settings = true,
		    .annotations = true,
		    .compile_context = true,
		    .stream_reuse = true,
		    .user_metadata = true,
		    .pool_id = true,
		    .round_threshold = true,
		    .host = true },
		  FRAG_TORCH(2, 14),
		  FRAG_TORCH_NEWEST },
		/* without entries there is less to tell by */
		{ { .settings = true, .annotations = true }, FRAG_TORCH(2, 5), FRAG_TORCH(2, 8) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		unsigned first, last;

		frag_torch_releases(&files[i].seen, &first, &last);
		assert_int_equal(first, files[i].first);
		assert_int_equal(last, files[i].last);
	}
}

static void settings(const char *old_name, const char *new_name, const char *want)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;

	sb_top(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	pb_entry(&b, "alloc", S0, 512, 0, T0);
	sb_close_traces(&b);
	pb_text(&b, "allocator_settings");
	pb_dict(&b);
	if (old_name)
		pb_text_text(&b, "PYTORCH_CUDA_ALLOC_CONF", old_name);
	if (new_name)
		pb_text_text(&b, "PYTORCH_ALLOC_CONF", new_name);
	pb_text_int(&b, "max_split_size", -1);
	pb_close_dict(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	assert_string_equal(t->settings.conf, want);
	frag_trace_destroy(t);
	pb_release(&b);
}

/* With both set the older name wins, as in PyTorch. */
static void test_both_variables(void **state)
{
	(void)state;
	settings("max_split_size_mb:64", NULL, "max_split_size_mb:64");
	settings(NULL, "expandable_segments:True", "expandable_segments:True");
	settings("max_split_size_mb:64", "expandable_segments:True", "max_split_size_mb:64");
	settings(NULL, NULL, "");
}

/* Settings that are given reach a file that has none, and say what they mean. */
static void test_given_settings(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_err err = { 0 };
	struct frag_trace *t;

	(void)state;
	sb_top(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	pb_entry(&b, "alloc", S0, 512, 0, T0);
	sb_close_traces(&b);
	sb_finish(&b);
	assert_int_equal(sb_read(b.bytes, b.len,
				 "conf=max_split_size_mb:64,roundup_power2_divisions:4", &t, &err),
			 0);
	assert_true(t->settings.present);
	assert_true(t->settings.max_split_bytes == 64 * FRAG_MIB);
	assert_int_equal(t->settings.roundup[0], 4);
	frag_trace_destroy(t);
	assert_int_equal(sb_read(b.bytes, b.len, "conf=no_such_key:1", &t, &err), FRAG_EUSAGE);
	pb_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_both_variables),
		cmocka_unit_test(test_given_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
