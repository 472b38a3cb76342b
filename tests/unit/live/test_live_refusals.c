/* SPDX-License-Identifier: Apache-2.0 */
/* Policies behind PyTorch's hooks: limits, retries, failing calls, odd requests. */
#include "test.h"

#include <string.h>

#include "live_rig.h"

/* ---- out of memory --------------------------------------------------------------------------- */

TEST(test_retry)
{
	struct frag_live_stats st = { .size = sizeof(st) };
	uint64_t a, b;

	for (unsigned k = 0; k < 2; k++) {
		live_start(k ? "bfc:growth=true" : "pytorch", GIB, 512 * MIB);
		assert_int_equal(live_take(400 * MIB, 1, &a), 0);
		fake_work(1, a, 400 * MIB, true);
		frag_live_record_stream((void *)(uintptr_t)a, fake_stream(2));
		fake_work(2, a, 400 * MIB, false);
		fake_ready(0);
		frag_live_free((void *)(uintptr_t)a, 400 << 20, 0, fake_stream(1));
		frag_live_stats(0, &st);
		assert_int_equal(st.waiting_blocks, 1);
		assert_true(st.active_bytes[0].current >= 400 * (int64_t)MIB);
		/* waits for the event, gives the segment back, and is served */
		assert_int_equal(live_take(300 * MIB, 3, &b), 0);
		frag_live_stats(0, &st);
		assert_int_equal(st.waiting_blocks, 0);
		assert_int_equal(st.num_alloc_retries, 1);
		assert_true(st.reserved_bytes[0].peak <= 512 * (int64_t)MIB);
		assert_int_equal(live_take(300 * MIB, 3, &a), FRAG_OOM);
		frag_live_stats(0, &st);
		assert_int_equal(st.num_ooms, 1);
		live_close();
	}
}

TEST(test_limits)
{
	struct frag_live_stats st = { .size = sizeof(st) };
	uint64_t a;

	/* a policy that knows no limit of the process */
	live_start("native", GIB, 64 * MIB);
	assert_int_equal(live_take(65 * MIB, 0, &a), FRAG_OOM);
	assert_int_equal(live_take(64 * MIB, 0, &a), 0);
	live_close();
	live_start("pytorch", GIB, 0);
	frag_live_fraction(0.25, 0); /* before the card is opened */
	assert_int_equal(live_take(1000, 0, &a), 0);
	frag_live_stats(0, &st);
	assert_true(st.fraction == 0.25);
	assert_int_equal(live_take(300 * MIB, 0, &a), FRAG_OOM);
	frag_live_fraction(0.5, 0);
	assert_int_equal(live_take(200 * MIB, 0, &a), 0);
	frag_live_stats(0, &st);
	assert_int_equal(st.limit_bytes, GIB / 2);
	assert_true(st.fraction == 0.5);
	live_close();
}

/* ---- faults ---------------------------------------------------------------------------------- */

TEST(test_every_nth_call_fails)
{
	for (size_t k = 0; k < live_policies_count; k++) {
		for (unsigned every = 1; every < 12; every += test_is_quick() ? 5 : 2) {
			struct live_program p = { .streams = 3 };
			char text[16];

			snprintf(text, sizeof(text), "%u", every);
			setenv("CUFRAG_FAIL_EVERY", text, 1);
			live_start(live_policies[k], GIB, 0);
			unsetenv("CUFRAG_FAIL_EVERY");
			live_run(&p, 500);
			live_device(0)->dev->fail_call = 0;
			live_device(0)->fail_every = 0;
			live_free_all(&p);
			/* and it works again */
			live_alloc_one(&p, 0, 1);
			if (!p.b[0].addr)
				fail_msg("%s: refused after call %u failed", live_policies[k],
					 every);
			live_free_one(&p, 0);
			live_must_be_sound(live_policies[k]);
			live_close();
			assert_int_equal(fake.held_bytes, 0);
		}
	}
}

TEST(test_refused_at_the_start)
{
	struct frag_live_options o = { .size = sizeof(o), .policy = "ggml-vmm" };
	char text[400] = "";

	fake_reset(GIB);
	assert_int_equal(frag_live_start(&o, text, sizeof(text)), FRAG_EUSAGE);
	assert_non_null(strstr(text, "reverse order"));
	o.policy = "nosuch";
	assert_int_equal(frag_live_start(&o, text, sizeof(text)), FRAG_EUSAGE);
	o.policy = "pytorch";
	o.record = "/nonexistent/folder/log.csv";
	assert_int_equal(frag_live_start(&o, text, sizeof(text)), FRAG_EOUTPUT);
}

TEST(test_odd_requests)
{
	struct frag_live_stats st = { .size = sizeof(st) };
	struct frag_live_part parts[64];
	size_t bytes = 0, n, live = 0;
	char *p, *q;

	live_start("pytorch", GIB, 0);
	assert_null(frag_live_alloc(0, 0, NULL));
	frag_live_free(NULL, 0, 0, NULL);
	p = frag_live_alloc(777, 1, fake_stream(1));
	q = frag_live_alloc(4, 0, NULL);
	frag_live_free(q + 4096, 4, 0, NULL); /* not ours: nothing */
	assert_ptr_equal(frag_live_base(p + 100, &bytes), p);
	assert_int_equal(bytes, 2 * MIB);
	assert_int_equal(frag_live_stats(5, &st), -1);
	assert_int_equal(frag_live_stats(1, &st), 0);
	assert_int_equal(st.requested_bytes[FRAG_LIVE_SMALL].current, 777);
	assert_int_equal(st.allocated_bytes[FRAG_LIVE_ALL].current, 1024);
	assert_int_equal(st.reserved_bytes[FRAG_LIVE_ALL].current, 2 * MIB);
	n = frag_live_snapshot(1, parts, 64);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		live += parts[i].kind == 1 && parts[i].state == 0 ? parts[i].requested : 0;
	assert_int_equal(live, 777);
	frag_live_free(p, 777, 1, fake_stream(1));
	frag_live_reset_peak(1);
	frag_live_stats(1, &st);
	assert_int_equal(st.requested_bytes[0].peak, 0);
	frag_live_free(q, 4, 0, NULL);
	live_close();
}
