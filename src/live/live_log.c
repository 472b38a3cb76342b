/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the recording. Two buffers: one is filled while the other goes to the file. */
#include "live_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "live.h"

#define BUFFER_BYTES (1u << 20)
#define LINE_MAX_BYTES 160u

bool frag_live_log_on;

static struct {
	pthread_mutex_t filling, writing; /* writing is taken first */
	char *fill, *spare;
	size_t used;
	int fd;
} file = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, NULL, NULL, 0, -1 };

/* ---- to the file -------------------------------------------------------------------------- */

/* pre: writing is locked */
static void write_all(const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(file.fd, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			frag_live_log_on = false; /* a full disk: the program goes on */
			return;
		}
		text += done;
		n -= (size_t)done;
	}
}

static void flush(void)
{
	size_t n;
	char *full;

	pthread_mutex_lock(&file.writing);
	pthread_mutex_lock(&file.filling);
	full = file.fill;
	n = file.used;
	file.fill = file.spare;
	file.spare = full;
	file.used = 0;
	pthread_mutex_unlock(&file.filling);
	write_all(full, n);
	pthread_mutex_unlock(&file.writing);
}

void frag_live_flush(void)
{
	if (frag_live_log_on)
		flush();
}

int frag_live_log_open(const char *path, struct frag_err *err)
{
	static const char head[] = "action,id,size,stream,time_us,device,pool\n";

	file.fill = frag_host_alloc(BUFFER_BYTES);
	file.spare = frag_host_alloc(BUFFER_BYTES);
	if (!file.fill || !file.spare)
		return frag_fail_nomem(err, "recording");
	file.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0666);
	if (file.fd < 0)
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", path, strerror(errno));
	memcpy(file.fill, head, sizeof(head) - 1);
	file.used = sizeof(head) - 1;
	frag_live_log_on = true;
	return 0;
}

/* ---- lines: by hand, printf would take longer than the request ----------------------------------- */

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
	pthread_mutex_unlock(&file.filling);
}
