/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in huge pages: contents, limits, failures. And events as words. */
#include "test.h"

#include "trace/event_words.h"
#include "trace/pages.h"

/* From nothing to several huge pages, side by side, which may keep a mapping from growing where it is. */
TEST(test_growing)
{
	size_t count = 0;
	uint32_t *a[3] = { NULL };

	for (size_t next = 1000; next < 4u << 20; next = next * 7 / 4) {
		for (unsigned k = 0; k < 3; k++) {
			a[k] = frag_pages_grow(a[k], count, next, sizeof(*a[k]));
			assert_non_null(a[k]);
			for (size_t i = 0; i < count; i += 97)
				assert_int_equal(a[k][i], i * 7 + k);
			for (size_t i = 0; i < next; i++)
				a[k][i] = (uint32_t)(i * 7 + k);
		}
		count = next;
	}
	assert_true(count * sizeof(*a[0]) > 3 * FRAG_PAGES_HUGE);
	for (int k = 0; k < 3; k++)
		frag_host_free(a[k]);
}

TEST(test_results)
{
	for (size_t n = 1; n <= 2 * FRAG_PAGES_HUGE; n = n * 3 + 1) {
		unsigned char *a = frag_pages_grow(NULL, 0, n, 2), *b;

		assert_non_null(a);
		memset(a, 5, 2 * n);
		b = frag_host_realloc(a, n, 3);
		assert_non_null(b);
		for (size_t i = 0; i < 2 * n; i += 511)
			assert_int_equal(b[i], 5);
		frag_host_free(b);
	}
}

TEST(test_failures)
{
	size_t small = 100, large = 2 * FRAG_PAGES_HUGE;
	char *a;

	assert_null(frag_pages_grow(NULL, 0, SIZE_MAX / 2, 8));
	assert_null(frag_pages_grow(NULL, 0, SIZE_MAX, 8));
	a = frag_pages_grow(NULL, 0, small, 1);
	assert_non_null(a);
	strcpy(a, "kept");
	frag_host_fail_after(1);
	assert_null(frag_pages_grow(a, small, large, 1));
	assert_null(frag_pages_grow(NULL, 0, large, 1));
	assert_null(frag_pages_grow(NULL, 0, small, 1));
	frag_host_fail_after(0);
	assert_string_equal(a, "kept");
	a = frag_pages_grow(a, small, large, 1);
	assert_non_null(a);
	frag_host_fail_after(1);
	assert_null(frag_pages_grow(a, large, 4 * large, 1));
	frag_host_fail_after(0);
	assert_string_equal(a, "kept");
	frag_host_free(a);
}

/* The words are the fields. */
TEST(test_event_words)
{
	static const struct frag_event rows[] = {
		{ 0 },
		{ .bytes = FRAG_MAX_REQUEST },
		{ .pool = UINT16_MAX },
		{ .time_us = (1ull << 40) - 1 },
		{ .stack = (1u << 24) - 1 },
		{ .slot = UINT32_MAX },
		{ .stream = UINT16_MAX },
		{ .kind = UINT8_MAX },
		{ .flags = UINT8_MAX },
		{ .bytes = 4096,
		  .pool = 3,
		  .time_us = 123456789,
		  .stack = 77,
		  .slot = 12,
		  .stream = 5,
		  .kind = FRAG_EV_FREE_REQUESTED,
		  .flags = FRAG_EVF_AT_SYNC },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		const struct frag_event *r = &rows[i];
		struct frag_event e;

		memset(&e, 0x5a, sizeof(e));
		frag_event_put(&e,
			       (struct frag_event_words){
				       r->bytes | (uint64_t)r->pool << FRAG_EVENT_POOL_SHIFT,
				       r->time_us | (uint64_t)r->stack << FRAG_EVENT_STACK_SHIFT,
				       frag_event_what(r->slot, r->stream, r->kind, r->flags) });
		assert_memory_equal(&e, r, sizeof(e));
	}
}
