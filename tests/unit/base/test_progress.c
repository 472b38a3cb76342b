/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress, on a terminal of the test's own: it moves while the work says nothing. */
#include "base/term.h"

#include <fcntl.h>
#include <poll.h>
#include "test.h"

#include <unistd.h>

static int master = -1, before = -1;
static char said[65536];
static size_t said_len;

static int open_terminal(void **state)
{
	int slave;

	setenv("TERM", "xterm", 1);
	setenv("FRAG_PROGRESS_DELAY_MS", "0", 1);
	master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	before = dup(STDERR_FILENO);
	if (slave < 0 || before < 0 || dup2(slave, STDERR_FILENO) < 0)
		return -1;
	close(slave);
	return 0;
}

static int close_terminal(void **state)
{
	dup2(before, STDERR_FILENO);
	close(before);
	close(master);
	return 0;
}

/* What the terminal has been told since the last call; waits up to ms for something. */
static const char *hear(int ms)
{
	struct pollfd p = { .fd = master, .events = POLLIN };

	said_len = 0;
	while (said_len + 1 < sizeof(said) && poll(&p, 1, said_len ? 20 : ms) > 0) {
		ssize_t n = read(master, said + said_len, sizeof(said) - 1 - said_len);

		if (n <= 0)
			break;
		said_len += (size_t)n;
	}
	said[said_len] = '\0';
	return said;
}

/* The thread that works is in this function: counted by number, not by clock. */
TEST(test_moves_by_itself)
{
	struct frag_progress p;

	frag_progress_show(&p, "reading a");
	assert_non_null(strstr(hear(20000), "\rreading a\033[K"));
	for (int i = 0; i < 4; i++)
		assert_non_null(strstr(hear(20000), "\rreading a"));
	frag_progress_end(&p);
	assert_non_null(strstr(hear(20000), "\r\033[K"));
	/* no thread is left to say more */
	assert_string_equal(hear(600), "");
}

/* The innermost is shown, then the outer one again; a message has the line to itself. */
TEST(test_nested)
{
	struct frag_progress outer, inner;

	frag_progress_show(&outer, "drawing\033[31m");
	frag_progress_begin(&inner, "replaying");
	frag_progress_update(&inner, 1, 4);
	assert_non_null(strstr(hear(20000), "replaying  25 %"));
	frag_progress_wipe();
	frag_progress_wipe();
	assert_non_null(strstr(hear(20000), "\r\033[K"));
	assert_non_null(strstr(hear(20000), "\rreplaying  25 %"));
	frag_progress_end(&inner);
	hear(100);
	assert_non_null(strstr(hear(20000), "\rdrawing?[31m"));
	frag_progress_end(&outer);
	hear(100);
}

/* One that was ended before it began, as the ways out of a function do. */
TEST(test_never_shown)
{
	struct frag_progress p = { .on = false };

	frag_progress_end(&p);
	assert_string_equal(hear(50), "");
	frag_progress_silence();
	frag_progress_begin(&p, "silent");
	frag_progress_update(&p, 1, 2);
	frag_progress_end(&p);
	assert_string_equal(hear(400), "");
}

TEST_GROUP(open_terminal, close_terminal)
