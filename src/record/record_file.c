/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's file: NAME.PID.csv, one line per event. The buffer goes to it twice a second: a killed program
 * loses no more. Lines are put together by hand, since printf would take most of the time of an event.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

#define BUFFER_BYTES (1u << 18)
#define LINE_BYTES 2048u
#define CALL_BYTES 60u

static struct {
	pthread_mutex_t lock;
	char *buffer;
	size_t used;
	FILE *to;
	bool stopped, begun;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

void frag_rec_lock(void)
{
	pthread_mutex_lock(&state.lock);
}

void frag_rec_unlock(void)
{
	pthread_mutex_unlock(&state.lock);
}

static void flush(void)
{
	if (!state.to || !state.used)
		return;
	if (fwrite(state.buffer, 1, state.used, state.to) != state.used || fflush(state.to)) {
		fprintf(stderr, "cufrag: the recording cannot be written any more; what was "
				"written stays\n");
		state.stopped = true;
	}
	state.used = 0;
}

static char *room(void)
{
	if (state.stopped || !state.buffer)
		return NULL;
	if (state.used + LINE_BYTES > BUFFER_BYTES)
		flush();
	return state.buffer + state.used;
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
	at = put_text(at, action, 16);
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
	state.used += (size_t)(at - begin);
}

void frag_rec_remark(const char *format, ...)
{
	char *at = room();
	va_list list;
	int n;

	if (!at)
		return;
	va_start(list, format);
	n = vsnprintf(at, LINE_BYTES, format, list);
	va_end(list);
	if (n >= (int)LINE_BYTES) { /* cut short, but a line */
		n = LINE_BYTES - 1;
		at[n - 1] = '\n';
	}
	state.used += n > 0 ? (size_t)n : 0;
}

static void write_out(void)
{
	frag_rec_stacks_name();
	frag_rec_lock();
	flush();
	frag_rec_unlock();
}

static void *flusher(void *unused)
{
	static const struct timespec half = { .tv_nsec = 500000000 };

	(void)unused;
	for (;;) {
		nanosleep(&half, NULL);
		write_out();
		frag_rec_publish();
	}
	return NULL;
}

/* A forked child has no CUDA of its own, and the file is its parent's. */
static void in_child(void)
{
	pthread_mutex_init(&state.lock, NULL);
	state.used = 0;
	state.stopped = true;
}

__attribute__((destructor)) static void at_end(void)
{
	if (state.to)
		write_out();
}

static bool open_file(void)
{
	const char *stem = getenv("CUFRAG_RECORD_CUDA");
	char path[4096];

	snprintf(path, sizeof(path), "%.4000s.%ld.csv", stem && *stem ? stem : "cufrag",
		 (long)getpid());
	state.buffer = malloc(BUFFER_BYTES);
	state.to = state.buffer ? fopen(path, "wex") : NULL;
	if (!state.to) {
		fprintf(stderr, "cufrag: cannot write '%s': nothing is recorded\n", path);
		return false;
	}
	fputs("action,id,size,stream,time_us,device,call,stack\n", state.to);
	fflush(state.to);
	return true;
}

bool frag_rec_opened(void)
{
	return state.to != NULL;
}

bool frag_rec_open(void)
{
	pthread_t thread;
	bool first;

	frag_rec_lock();
	first = !state.begun;
	state.begun = true;
	if (first && open_file())
		pthread_atfork(NULL, NULL, in_child);
	frag_rec_unlock();
	if (!first || !state.to)
		return state.to != NULL;
	frag_rec_stacks_begin();
	if (!pthread_create(&thread, NULL, flusher, NULL))
		pthread_detach(thread);
	return true;
}
