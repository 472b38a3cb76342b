/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording: lines of a CSV (src/trace/readers/read_csv.c), in the order in which the policies
 * saw them, into a .csv, else into a .cft that grows (base/appended_cft.h), twice a second.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/appended_cft.h"
#include "base/clean.h"
#include "base/locked.h"
#include "base/room.h"
#include "live_core.h"

#define BUFFER_BYTES FRAG_APPENDED_TEXT_MAX
#define LINE_MAX_BYTES 160u

atomic_bool frag_live_log_on;

static struct {
	pthread_mutex_t lock;
	char *text; /* not yet in the file */
	size_t used, lines;
	int fd;
	bool growing, cut;
	uint64_t blocks; /* written */
	off_t bytes;
} file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* ---- to the file -------------------------------------------------------------------------- */

/* pre: locked. A disk that is full does not end the program. */
static void write_all(const void *bytes, size_t n)
{
	const char *text = bytes;
	ssize_t done = 1;

	while (n && !file.cut && (done > 0 || errno == EINTR)) {
		done = frag_room_for(file.bytes + (off_t)n) ? write(file.fd, text, n) : 0;
		text += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
		file.bytes += done > 0 ? done : 0;
	}
	if (!n || file.cut)
		return;
	fprintf(stderr, "cufrag: cannot write the recording any longer (%s); it ends here\n",
		strerror(errno));
	frag_live_log_on = false;
	file.cut = true;
	frag_room_mark_cut(file.fd);
}

/* pre: locked. The names of the columns wait for the first line. */
static void flush(void)
{
	struct frag_appended_block head;

	if (!file.lines)
		return;
	if (file.growing) {
		head = frag_appended_head(file.text, file.used, file.blocks++);
		write_all(&head, sizeof(head));
	}
	write_all(file.text, file.used);
	file.used = file.lines = 0;
}

void frag_live_flush(void)
{
	if (!frag_live_logging()) /* nor in a forked child, whose lock may be taken for good */
		return;
	FRAG_LOCKED(&file.lock);
	flush();
}

/* Truncated only by a sole writer: processes of one program may share the file. */
static int open_file(const char *path, struct frag_err *err)
{
	file.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
	if (file.fd < 0)
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", path, strerror(errno));
	if (flock(file.fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return frag_fail(err, FRAG_EOUTPUT,
				 "another process records into '%s'; each needs a file of its own",
				 path);
	if (ftruncate(file.fd, 0) && errno != EINVAL)
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", path, strerror(errno));
	return 0;
}

static int begin(const char *path, struct frag_err *err)
{
	static const char head[] = "action,id,size,stream,time_us,device,pool\n";
	unsigned char preamble[FRAG_APPENDED_PREAMBLE];

	file.text = frag_host_alloc(BUFFER_BYTES);
	FRAG_CHECK_ALLOC(file.text, "recording", err);
	FRAG_TRY(open_file(path, err));
	file.growing = !frag_ends_with(path, ".csv");
	frag_appended_preamble(preamble);
	if (file.growing)
		write_all(preamble, sizeof(preamble));
	memcpy(file.text, head, sizeof(head) - 1);
	file.used = sizeof(head) - 1;
	frag_live_log_on = true;
	return 0;
}

int frag_live_log_open(const char *path, struct frag_err *err)
{
	int rc = begin(path, err);

	if (!rc)
		return 0;
	frag_host_free(file.text);
	file.text = NULL;
	if (file.fd >= 0)
		close(file.fd);
	file.fd = -1;
	return rc;
}

/* ---- lines: by hand, printf would take longer than the request -------------------------- */

static char *put_text(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	return at;
}

static char *put_number(char *at, uint64_t n)
{
	char digits[20];
	int count = 0;

	*at++ = ',';
	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	while (count)
		*at++ = digits[--count];
	return at;
}

void frag_live_log_line(const struct frag_live_line *l)
{
	char text[LINE_MAX_BYTES], *at = put_text(text, l->action);

	at = put_number(at, l->addr);
	at = put_number(at, l->bytes);
	at = put_number(at, (uintptr_t)l->stream);
	at = put_number(at, l->time_ns / 1000);
	at = put_number(at, (uint64_t)l->device);
	at = put_number(at, l->pool);
	*at++ = '\n';
	FRAG_LOCKED(&file.lock);
	if (file.used + LINE_MAX_BYTES > BUFFER_BYTES)
		flush();
	memcpy(file.text + file.used, text, (size_t)(at - text));
	file.used += (size_t)(at - text);
	file.lines++;
}
