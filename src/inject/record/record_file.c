/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's file: NAME.PID.csv, one line per event. Its end is mapped and lines are put there,
 * so that they are in the file when a program is killed, calls _exit or becomes another (exec; then
 * its next file is NAME.PID.next1.csv). No descriptor stays open, which a program that closes all
 * might give to a file of its own. Room ahead is filled with empty lines, which readers pass over:
 * a disk that is full is noticed then, and a file that was never cut to its length is good. Lines
 * are put together by hand, since printf would take most of the time of an event.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/room.h"
#include "recorder.h"

#define WINDOW_BYTES (1u << 20) /* that are mapped */
#define BLANK_BYTES (1u << 16)
#define LINE_BYTES 2048u
#define CALL_BYTES 60u
#define EXECS_MAX 1000
#define HEADER "action,id,size,stream,time_us,device,call,stack\n"

pthread_mutex_t frag_rec_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct {
	char *window; /* the file's bytes from `at` on */
	off_t at;
	size_t used;  /* of the window */
	off_t filled; /* the file's length, empty lines included */
	pid_t pid;    /* whose file it is */
	char path[PATH_MAX];
	bool stopped, begun;
} state;

/* Empty lines up to `to`. */
static bool fill(int fd, off_t to)
{
	static char blank[BLANK_BYTES];

	memset(blank, '\n', sizeof(blank));
	while (frag_room_for(to) && state.filled < to) {
		off_t left = to - state.filled;
		ssize_t n = pwrite(fd, blank,
				   left < (off_t)sizeof(blank) ? (size_t)left : sizeof(blank),
				   state.filled);

		if (n <= 0)
			return false;
		state.filled += n;
	}
	return state.filled >= to;
}

/* Maps room behind what is written. */
static bool advance(int fd)
{
	off_t end = state.at + (off_t)state.used, at = end & ~(off_t)(sysconf(_SC_PAGESIZE) - 1);
	char *window;

	if (!fill(fd, at + WINDOW_BYTES))
		return false;
	window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	if (window == MAP_FAILED)
		return false;
	if (state.window)
		munmap(state.window, WINDOW_BYTES);
	state.window = window;
	state.at = at;
	state.used = (size_t)(end - at);
	return true;
}

/* Room for a line, NULL: none. */
static char *room(void)
{
	int fd;

	if (state.stopped || !state.window)
		return NULL;
	if (state.used + LINE_BYTES <= WINDOW_BYTES)
		return state.window + state.used;
	fd = open(state.path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || !advance(fd)) {
		fprintf(stderr,
			"cufrag: cannot write the recording any longer (%s); it ends here\n",
			strerror(errno));
		state.stopped = true;
		frag_room_mark_cut(fd);
	}
	if (fd >= 0)
		close(fd);
	return state.stopped ? NULL : state.window + state.used;
}

/*
 * A line that was cut off by the end of its program must not be taken for another. So it is a
 * remark until it is whole: its first character, or the second one of a remark, comes last.
 */
static void complete(char *begin, char first)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile char *)begin = first;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static char *put_text(char *at, const char *text, size_t max)
{
	size_t n = strnlen(text, max);

	memcpy(at, text, n);
	return at + n;
}

static char *put_number(char *at, uint64_t v, unsigned base)
{
	char digits[24];
	size_t n = sizeof(digits);

	do {
		digits[--n] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	if (base == 16)
		at = put_text(at, "0x", 2);
	memcpy(at, digits + n, sizeof(digits) - n);
	return at + sizeof(digits) - n;
}

/* Behind a comma; nothing where it is not known. */
static char *put_field(char *at, uint64_t v, unsigned base)
{
	*at++ = ',';
	return v == UINT64_MAX ? at : put_number(at, v, base);
}

void frag_rec_line(const char *action, uint64_t id, uint64_t bytes, uint64_t stream,
		   uint32_t device, const char *call, uint32_t stack)
{
	char *begin = room(), *at = begin;

	if (!at)
		return;
	*at++ = '#';
	at = put_text(at, action + 1, 16);
	*at++ = ',';
	at = put_number(at, id, 16);
	at = put_field(at, bytes, 10);
	at = put_field(at, stream, 16);
	at = put_field(at, now_us(), 10);
	at = put_field(at, device, 10);
	*at++ = ',';
	at = put_text(at, call, CALL_BYTES);
	if (stack)
		at = put_field(at, stack, 10);
	*at++ = '\n';
	complete(begin, *action);
	state.used += (size_t)(at - begin);
}

void frag_rec_remark(const char *format, ...)
{
	char text[LINE_BYTES], *at = room();
	va_list list;
	int n;

	if (!at)
		return;
	va_start(list, format);
	n = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (n < 3)
		return;
	if (n >= (int)sizeof(text)) { /* cut short, but a line */
		n = sizeof(text) - 1;
		text[n - 1] = '\n';
	}
	at[0] = at[1] = '#';
	memcpy(at + 2, text + 2, (size_t)n - 2);
	complete(at + 1, text[1]);
	state.used += (size_t)n;
}

static void *flusher(void *unused)
{
	static const struct timespec half = { .tv_nsec = 500000000 };

	(void)unused;
	for (;;) {
		nanosleep(&half, NULL);
		frag_rec_stacks_name();
		frag_rec_publish();
	}
	return NULL;
}

/* A forked child has no CUDA of its own, and the file is its parent's. */
static void in_child(void)
{
	pthread_mutex_init(&frag_rec_mutex, NULL);
	state.stopped = true;
}

__attribute__((destructor)) static void at_end(void)
{
	if (!state.window || state.pid != getpid())
		return;
	frag_rec_stacks_name();
	FRAG_REC_LOCKED;
	/* what cannot be cut off does no harm; behind the end nothing may be written any more */
	if (truncate(state.path, state.at + (off_t)state.used))
		errno = 0;
	state.stopped = true;
}

/* The full path: a program may change its folder. number: of programs before in this process. */
static void name_file(int number)
{
	const char *stem = getenv(CUFRAG_RECORD_CUDA);
	char folder[PATH_MAX] = "", more[16] = "";

	if (!stem || !*stem)
		stem = "cufrag";
	if (*stem != '/' && !getcwd(folder, sizeof(folder)))
		*folder = '\0';
	if (number)
		snprintf(more, sizeof(more), ".next%d", number);
	snprintf(state.path, sizeof(state.path), "%.2000s%s%.2000s.%ld%s.csv", folder,
		 *folder ? "/" : "", stem, (long)getpid(), more);
}

static bool open_file(void)
{
	int fd = -1;

	for (int i = 0; fd < 0 && i < EXECS_MAX && (!i || errno == EEXIST); i++) {
		name_file(i);
		fd = open(state.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	}
	state.pid = getpid();
	if (fd < 0 || !advance(fd)) {
		fprintf(stderr, "cufrag: cannot write '%s' (%s); nothing is recorded\n", state.path,
			strerror(errno));
		frag_room_mark_cut(fd);
	}
	if (fd >= 0)
		close(fd);
	if (!state.window)
		return false;
	memcpy(state.window, HEADER, sizeof(HEADER) - 1);
	state.used = sizeof(HEADER) - 1;
	return true;
}

/* False: it was tried before. */
static bool open_first(void)
{
	FRAG_REC_LOCKED;

	if (state.begun)
		return false;
	state.begun = true;
	if (open_file())
		pthread_atfork(NULL, NULL, in_child);
	return true;
}

bool frag_rec_open(void)
{
	pthread_t thread;

	if (!open_first() || !state.window)
		return state.window != NULL;
	frag_rec_stacks_begin();
	if (!pthread_create(&thread, NULL, flusher, NULL))
		pthread_detach(thread);
	return true;
}
