/* SPDX-License-Identifier: Apache-2.0 */
/* Of a folder, the files that were used longest ago go. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/oldest.h"

static const char *folder;

static const char *path_of(unsigned n)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%u", folder, n);
	return path;
}

/* File n has n bytes and was read n hours ago. */
static void make_files(unsigned count)
{
	folder = test_folder("oldest");
	for (unsigned n = 1; n <= count; n++) {
		struct timespec read = { .tv_sec = time(NULL) - 3600 * n }, changed = { 0 };
		int fd = open(path_of(n), O_CREAT | O_WRONLY, 0600);

		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, n), 0);
		assert_int_equal(futimens(fd, (struct timespec[]){ read, changed }), 0);
		close(fd);
	}
	assert_int_equal(mkdir(path_of(0), 0700), 0);
}

/* Files 1 to n are there, the others are not; a folder among them stays. */
static void must_be_left(unsigned n, unsigned count)
{
	for (unsigned i = 0; i <= count; i++)
		assert_int_equal(access(path_of(i), F_OK), i <= n ? 0 : -1);
}

TEST(oldest_go)
{
	make_files(9);
	frag_remove_oldest(folder, 5, 1000, 0);
	must_be_left(5, 9);
	make_files(9);
	frag_remove_oldest(folder, 8, 1 + 2 + 3 + 4 + 4, 0);
	must_be_left(4, 9);
	make_files(9); /* read less than seven hours ago */
	frag_remove_oldest(folder, 5, 1000, 7 * 3600 - 60);
	must_be_left(6, 9);
	frag_remove_oldest("/nonexistent", 5, 1000, 0);
}
