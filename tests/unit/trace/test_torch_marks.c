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

#define MARK(name) offsetof(struct frag_torch_seen, name)

/* What each release brought, oldest first, and the releases whose files show that much. */
static const struct {
	size_t mark;
	unsigned first, last;
} brought[] = {
	{ MARK(entries), FRAG_TORCH(2, 1), FRAG_TORCH(2, 1) },
	{ MARK(time_us), FRAG_TORCH(2, 2), FRAG_TORCH(2, 2) },
	{ MARK(settings), FRAG_TORCH(2, 3), FRAG_TORCH(2, 4) },
	{ MARK(annotations), FRAG_TORCH(2, 5), FRAG_TORCH(2, 7) },
	{ MARK(compile_context), FRAG_TORCH(2, 8), FRAG_TORCH(2, 8) },
	{ MARK(stream_reuse), FRAG_TORCH(2, 9), FRAG_TORCH(2, 9) },
	{ MARK(user_metadata), FRAG_TORCH(2, 10), FRAG_TORCH(2, 11) },
	{ MARK(pool_id), FRAG_TORCH(2, 12), FRAG_TORCH(2, 12) },
	{ MARK(round_threshold), FRAG_TORCH(2, 13), FRAG_TORCH(2, 13) },
	{ MARK(host), FRAG_TORCH(2, 14), FRAG_TORCH_NEWEST },
};

static void test_marks(void **state)
{
	const struct frag_torch_seen no_entries = { .settings = true, .annotations = true };
	struct frag_torch_seen seen = { 0 };
	unsigned first, last;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(brought); i++) {
		*(bool *)((char *)&seen + brought[i].mark) = true;
		frag_torch_releases(&seen, NULL, &first, &last);
		assert_int_equal(first, brought[i].first);
		assert_int_equal(last, brought[i].last);
	}
	/* without entries there is less to tell by */
	frag_torch_releases(&no_entries, NULL, &first, &last);
	assert_int_equal(first, FRAG_TORCH(2, 5));
	assert_int_equal(last, FRAG_TORCH(2, 8));
}

/* A key in the settings tells releases apart that write the same. */
static void test_settings_tell(void **state)
{
	static const struct frag_torch_seen seen = { .entries = true,
						     .time_us = true,
						     .settings = true,
						     .annotations = true,
						     .compile_context = true,
						     .stream_reuse = true,
						     .user_metadata = true };
	static const struct {
		const char *conf;
		unsigned first;
	} confs[] = {
		{ "", FRAG_TORCH(2, 10) },
		{ "expandable_segments:True", FRAG_TORCH(2, 10) },
		{ "expandable_segments:True,large_segment_size_mb:64", FRAG_TORCH(2, 11) },
		/* the marks say that it is older than that: the text is not believed */
		{ "pinned_free_catch_all:True", FRAG_TORCH(2, 10) },
		{ "no such key:[", FRAG_TORCH(2, 10) },
	};
	unsigned first, last;

	(void)state;
	for (size_t i = 0; i < sizeof(confs) / sizeof(*confs); i++) {
		frag_torch_releases(&seen, confs[i].conf, &first, &last);
		assert_int_equal(first, confs[i].first);
		assert_int_equal(last, FRAG_TORCH(2, 11));
	}
	assert_int_equal(frag_torch_conf_since("max_non_split_rounding_mb:64"), FRAG_TORCH(2, 6));
	assert_int_equal(frag_torch_conf_since("expandable_segments_reserve:2G"),
			 FRAG_TORCH(2, 15));
	assert_int_equal(frag_torch_conf_since("max_split_size_mb:64"), FRAG_TORCH_OLDEST);
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
		cmocka_unit_test(test_settings_tell),
		cmocka_unit_test(test_both_variables),
		cmocka_unit_test(test_given_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
