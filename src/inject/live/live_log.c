/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the recording: the lines themselves into a .csv, else a .cft that grows
 * (base/appended_cft.h). Two buffers: one is filled while the other goes to the file.
 */
#include "live_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/appended_cft.h"
#include "base/room.h"
#include "base/locked.h"
#include "live.h"

#define BUFFER_BYTES FRAG_APPENDED_TEXT_MAX
#define LINE_MAX_BYTES 160u

atomic_bool frag_live_log_on;

static struct {
	pthread_mutex_t filling, writing; /* writing is taken first */
	char *fill, *spare;
	size_t used, lines;
	int fd;
	bool growing, cut;
	uint64_t blocks; /* written */
	off_t bytes;
} file = { .filling = PTHREAD_MUTEX_INITIALIZER, .writing = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* ---- to the file -------------------------------------------------------------------------- */

/* pre: writing is locked. A disk that is full does not end the program. */
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

/* pre: writing is locked */
static void write_block(const char *text, size_t n)
{
	struct frag_appended_block head;

	if (file.growing) {
		head = frag_appended_head(text, n, file.blocks++);
		write_all(&head, sizeof(head));
	}
	write_all(text, n);
}

/* Bytes that go to the file, from file.spare. pre: writing is locked */
static size_t swap_buffers(void)
{
	FRAG_LOCKED(&file.filling);
	size_t n = file.used;
	char *full = file.fill;

	if (!file.lines) /* the names of the columns wait for the first line */
		return 0;
	file.fill = file.spare;
	file.spare = full;
	file.used = file.lines = 0;
	return n;
}

static void flush(void)
{
	FRAG_LOCKED(&file.writing);
	size_t n = swap_buffers();

	if (n)
		write_block(file.spare, n);
}

void frag_live_flush(void)
{
	if (frag_live_logging())
		flush();
}

static bool is_csv(const char *path)
{
	size_t n = strlen(path);

	return n >= 4 && !strcmp(path + n - 4, ".csv");
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

	file.fill = frag_host_alloc(BUFFER_BYTES);
	file.spare = frag_host_alloc(BUFFER_BYTES);
	if (!file.fill || !file.spare)
		return frag_fail_nomem(err, "recording");
	FRAG_TRY(open_file(path, err));
	file.growing = !is_csv(path);
	frag_appended_preamble(preamble);
	if (file.growing)
		write_all(preamble, sizeof(preamble));
	memcpy(file.fill, head, sizeof(head) - 1);
	file.used = sizeof(head) - 1;
	frag_live_log_on = true;
	return 0;
}

int frag_live_log_open(const char *path, struct frag_err *err)
{
	int rc = begin(path, err);

	if (!rc)
		return 0;
	FRAG_FREE(file.fill, file.spare);
	file.fill = file.spare = NULL;
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
	pthread_mutex_lock(&file.filling);
	while (file.used + LINE_MAX_BYTES > BUFFER_BYTES) {
		pthread_mutex_unlock(&file.filling);
		flush();
		pthread_mutex_lock(&file.filling);
	}
	memcpy(file.fill + file.used, text, (size_t)(at - text));
	file.used += (size_t)(at - text);
	file.lines++;
	pthread_mutex_unlock(&file.filling);
}
