/* SPDX-License-Identifier: Apache-2.0 */
/* Which release of PyTorch made a snapshot, by what each release brought. */
#include "test.h"

#include <frag/torch.h>

#include "trace/torch/torch_parts.h"

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

TEST(test_marks)
{
	const struct frag_torch_seen no_entries = { .settings = true, .annotations = true };
	struct frag_torch_seen seen = { 0 };
	unsigned first, last;

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
TEST(test_settings_tell)
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
