/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory while the CPU computes in a kernel's place. */
#include "test.h"

#include <sys/mman.h>

#include "nogpu_card.h"

static int choose_card(void **state)
{
	(void)state;
	return setenv("CUFRAG_NOGPU",
		      "name=Card;total=4294967296;context=536870912;libraries=0;count=1;cc=8.9;sms="
		      "58",
		      1);
}
TEST_GROUP(choose_card, NULL)

#define KEPT (64 * FRAG_MIB)

/* Of the pages of [p, p + bytes), which are mapped: those that the host gave. */
static size_t pages_of(void *p, uint64_t bytes)
{
	static unsigned char present[(256 * FRAG_MIB) / 4096];
	size_t count = 0;

	assert_int_equal(mincore(p, bytes, present), 0);
	for (size_t i = 0; i < bytes / 4096; i++)
		count += present[i] & 1;
	return count;
}

TEST(the_bench_keeps_its_first_pages)
{
	NEEDS_ADDRESSES();
	char *small = frag_nogpu_bench_take(FRAG_MIB),
	     *large = frag_nogpu_bench_take(128 * FRAG_MIB);

	assert_non_null(small);
	assert_non_null(large);
	assert_int_equal((uintptr_t)large % 64, 0);
	assert_true(large >= small + FRAG_MIB);
	memset(small, 1, FRAG_MIB);
	memset(large, 1, 128 * FRAG_MIB);
	assert_true(frag_nogpu_bench_give(small)); /* not the last: it stays taken */
	assert_ptr_equal(frag_nogpu_bench_take(100), large + 128 * FRAG_MIB + 64);
	assert_true(frag_nogpu_bench_give(large + 128 * FRAG_MIB + 64));
	assert_true(frag_nogpu_bench_give(large));
	assert_ptr_equal(frag_nogpu_bench_take(100), small);
	assert_true(frag_nogpu_bench_give(small));
	assert_int_equal(pages_of(small - 64, 128 * FRAG_MIB), KEPT / 4096);
}

TEST(what_the_bench_has_no_room_for_is_others)
{
	static char own[128];

	NEEDS_ADDRESSES();
	assert_null(frag_nogpu_bench_take(5 * FRAG_GIB));
	assert_null(frag_nogpu_bench_take(UINT64_MAX));
	assert_false(frag_nogpu_bench_give(own + 64));
}

TEST(a_part_of_the_card_is_ready_at_once)
{
	void *p;

	NEEDS_ADDRESSES();
	assert_int_equal(frag_nogpu_cudaMalloc(&p, 20 * FRAG_MIB), 0);
	frag_nogpu_bench_ready(p, FRAG_MIB); /* too little */
	assert_int_equal(pages_of(p, 20 * FRAG_MIB), 0);
	frag_nogpu_bench_ready((char *)p + 4096, 20 * FRAG_MIB - 4096);
	assert_int_equal(pages_of(p, 20 * FRAG_MIB), 18 * FRAG_MIB / 4096);
	frag_nogpu_cudaFree(p);
}
