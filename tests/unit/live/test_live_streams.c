/* SPDX-License-Identifier: Apache-2.0 */
/* Policies behind PyTorch's hooks: memory waits for its streams, and stays for a graph. */
#include "test.h"

#include "live_rig.h"

#define STEPS 6000

TEST(test_streams_are_waited_for)
{
	for (size_t k = 0; k < live_policies_count; k++) {
		struct live_program p = { .streams = 4 };
		struct frag_live_stats st = { .size = sizeof(st) };

		live_start(live_policies[k], 2 * GIB, 0);
		live_run(&p, (unsigned)test_rounds(STEPS));
		live_free_all(&p);
		live_must_be_sound(live_policies[k]);
		assert_int_equal(p.errors + p.refused, 0);
		assert_int_equal(frag_live_stats(0, &st), 0);
		assert_int_equal(st.allocated_bytes[0].current, 0);
		assert_int_equal(st.requested_bytes[0].allocated, st.requested_bytes[0].freed);
		FRAG_LIVE_WITH (d, live_device(0))
			frag_live_settle(d, true);
		frag_live_stats(0, &st);
		assert_int_equal(st.active_bytes[0].current, 0);
		assert_int_equal(st.waiting_blocks, 0);
		live_close();
		assert_int_equal(fake.held_bytes, 0);
		assert_int_equal(fake_held(), 0);
	}
}

/* The check itself: without the waits the same program races. */
TEST(test_races_are_seen)
{
	struct live_program p = { .streams = 4 };

	live_start("tlsf", 2 * GIB, 0);
	live_device(0)->handed = false;
	live_run(&p, (unsigned)test_rounds(STEPS));
	assert_true(fake.races > 0);
	live_close();
}

/* ---- captures -------------------------------------------------------------------------------- */

static bool is_stream_two(const struct frag_live_filter *self, void **stream)
{
	return *stream == fake_stream(2);
}

static int clones;
static bool manage(struct frag_live_filter *to, const struct frag_live_filter *from, int op)
{
	if (op == 2)
		*to = *from;
	clones += op == 2 ? 1 : op == 3 ? -1 : 0;
	return false;
}

#define GRAPH_BLOCKS 20

static void capture(const struct frag_live_pool_id *id, uint64_t *addrs)
{
	struct frag_live_filter filter = { .manager = manage, .invoker = is_stream_two };
	struct live_program p = { .streams = 2 }; /* others go on meanwhile */

	frag_live_begin_pool(0, *id, &filter);
	fake_capture(2, true);
	for (unsigned i = 0; i < GRAPH_BLOCKS; i++) {
		assert_int_equal(live_take(300000, 2, &addrs[i]), 0);
		if (i % 2) /* a temporary of the graph */
			frag_live_free((void *)(uintptr_t)addrs[i], 300000, 0, fake_stream(2));
		live_run(&p, 50);
	}
	live_free_all(&p);
	fake_capture(2, false);
	frag_live_end_pool(0, *id);
}

/* Eager requests never touch what a graph uses, freed in it or not. */
static void eager_stays_out(const uint64_t *addrs)
{
	struct live_program p = { .streams = 4 };

	live_run(&p, (unsigned)test_rounds(2000));
	for (unsigned i = 0; i < LIVE_BLOCKS; i++)
		for (unsigned k = 0; k < GRAPH_BLOCKS; k++)
			assert_true(!p.b[i].addr || p.b[i].addr + p.b[i].bytes <= addrs[k] ||
				    addrs[k] + 300000 <= p.b[i].addr);
	live_free_all(&p);
}

TEST(test_memory_of_graphs_stays)
{
	for (size_t k = 0; k < live_policies_count; k++) {
		const struct frag_live_pool_id id = { 5, 0 };
		uint64_t first[GRAPH_BLOCKS], second[GRAPH_BLOCKS], held;
		struct live_program p = { .streams = 4 };

		live_start(live_policies[k], 2 * GIB, 0);
		live_run(&p, 1000);
		frag_live_reset();
		capture(&id, first);
		frag_live_reset();
		eager_stays_out(first);
		capture(&id, second); /* a second graph of the same pool */
		frag_live_release_pool(0, id);
		frag_live_reset();
		eager_stays_out(first);
		live_must_be_sound(live_policies[k]);
		for (unsigned i = 0; i < GRAPH_BLOCKS; i += 2) {
			frag_live_free((void *)(uintptr_t)first[i], 300000, 0, fake_stream(2));
			frag_live_free((void *)(uintptr_t)second[i], 300000, 0, fake_stream(2));
		}
		frag_live_release_pool(0, id);
		frag_live_release_pool(0, id); /* 2.1 does it twice */
		held = fake.held_bytes;
		frag_live_reset();
		assert_true(fake.held_bytes <= held);
		assert_false(live_device(0)->pools[0].used);
		live_free_all(&p);
		live_must_be_sound(live_policies[k]);
		assert_int_equal(clones, 0);
		live_close();
		assert_int_equal(fake.held_bytes, 0);
	}
}

TEST(test_captures_by_stream)
{
	const struct frag_live_pool_id id = { 1, 0 };
	struct frag_live_dev *d;

	live_start("tlsf", GIB, 0);
	frag_live_begin_stream(0, fake_stream(3), id);
	d = live_device(0);
	assert_int_equal(frag_live_pool_of(d, fake_stream(3)), 1);
	assert_int_equal(frag_live_pool_of(d, fake_stream(1)), 0);
	frag_live_end_stream(0, fake_stream(3));
	assert_int_equal(d->captures_count, 0);
	live_close();
}
