/* SPDX-License-Identifier: Apache-2.0 */
/* Policies behind PyTorch's hooks: several threads, and a child that must do nothing. */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live_rig.h"

static void *thread(void *ctx)
{
	unsigned n = *(unsigned *)ctx;
	void *mine[64] = { NULL };

	for (unsigned i = 0; i < 3000; i++) {
		unsigned at = (i * 37 + n) % 64;
		ptrdiff_t bytes = 512 + (ptrdiff_t)(i * 7919 % 100000);

		if (mine[at])
			frag_live_free(mine[at], bytes, 0, fake_stream(n));
		mine[at] = mine[at] ? NULL : frag_live_alloc(bytes, 0, fake_stream(n));
		if (mine[at] && i % 5 == 0)
			frag_live_record_stream(mine[at], fake_stream((n + 1) % 4));
		if (i % 500 == 0)
			frag_live_reset();
	}
	for (unsigned at = 0; at < 64; at++)
		frag_live_free(mine[at], 0, 0, NULL);
	return NULL;
}

TEST(test_threads)
{
	static const char *const three[] = { "pytorch", "vmm", "tlsf" };
	unsigned numbers[4] = { 0, 1, 2, 3 };
	struct frag_live_stats st = { .size = sizeof(st) };
	pthread_t threads[4];

	for (unsigned k = 0; k < 3; k++) {
		live_start(three[k], 4 * GIB, 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, thread, &numbers[i]), 0);
		for (unsigned i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		live_must_be_sound(three[k]);
		frag_live_stats(0, &st);
		assert_int_equal(st.allocation[0].current, 0);
		assert_int_equal(st.allocation[0].allocated, st.allocation[0].freed);
		live_close();
	}
}

TEST(test_child_does_nothing)
{
	void *p;
	pid_t child;
	int status;

	live_start("pytorch", GIB, 0);
	p = frag_live_alloc(5000, 0, NULL);
	child = fork();
	if (!child) {
		uint64_t calls = fake.calls;

		frag_live_free(p, 5000, 0, NULL);
		frag_live_reset();
		_exit(fake.calls == calls && !frag_live_alloc(100, 0, NULL) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	frag_live_free(p, 5000, 0, NULL);
	live_close();
}
