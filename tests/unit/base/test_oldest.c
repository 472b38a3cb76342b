/* SPDX-License-Identifier: Apache-2.0 */
/* Of a folder, the files that were used longest ago go. */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/oldest.h"

/* Of files 1 to 9, where n has n bytes and was read n hours ago, those that are left, as bits; 0 is a folder. */
static unsigned left(size_t count, uint64_t bytes, int64_t in_use_s)
{
	const char *folder = test_folder("oldest");
	unsigned there = 0;
	char path[80];

	for (unsigned n = 0; n < 10; n++) {
		struct timespec times[] = { { .tv_sec = time(NULL) - 3600 * n }, { 0 } };

		snprintf(path, sizeof(path), "%s/%u", folder, n);
		assert_false(n ? close(open(path, O_CREAT | O_WRONLY, 0600)) : mkdir(path, 0700));
		assert_false(n && (truncate(path, n) || utimensat(AT_FDCWD, path, times, 0)));
	}
	frag_remove_oldest(folder, count, bytes, in_use_s);
	for (unsigned n = 0; n < 10; n++) {
		snprintf(path, sizeof(path), "%s/%u", folder, n);
		there |= !access(path, F_OK) << n;
	}
	return there;
}

TEST(oldest_go)
{
	assert_int_equal(left(5, 1000, 0), 0x3f);
	assert_int_equal(left(8, 1 + 2 + 3 + 4 + 4, 0), 0x1f);
	assert_int_equal(left(5, 1000, 7 * 3600 - 60), 0x7f); /* read less than seven hours ago */
	frag_remove_oldest("/nonexistent", 5, 1000, 0);
}
