/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary folders of several threads: one without a lock is taken for abandoned. */
#include <pthread.h>
#include <unistd.h>

#include "base/scratch.h"
#include "test.h"

#define THREADS 4
#define ROUNDS 400

static void *make_some(void *failed)
{
	for (int i = 0; i < ROUNDS; i++) {
		char *path = NULL;
		int rc = frag_scratch_folder(NULL, &path);

		if (rc || access(path, W_OK))
			*(int *)failed += 1;
		if (!rc)
			frag_scratch_remove(path);
	}
	return NULL;
}

TEST(folders_of_threads_are_not_taken_for_abandoned)
{
	pthread_t threads[THREADS];
	int failed[THREADS] = { 0 };

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, make_some, &failed[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(failed[i], 0);
	}
}
