/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, events and captures. In a process with streams of its own or with other ranks, an event
 * is ready when its work is over by the modelled clock (card_clock.c), else at once. Captures matter,
 * too: while a stream is captured, the allocator uses a private pool and records its events later.
 * As on a card, waiting for captured work is refused and invalidates the capture.
 */
#include "card_clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <frag/clock.h>

struct event {
	uint64_t capture; /* capture of its stream when it was recorded */
	uint64_t done_ns; /* on the modelled clock */
	uint64_t at_ns;	  /* host clock */
	uint64_t worked_ns;
};

/* ---- streams ------------------------------------------------------------------------ */

/* Clocks of ranks start together, with their group. */
static bool is_rank(void)
{
	const char *world = getenv("WORLD_SIZE");

	return world && strtoul(world, NULL, 10) > 1;
}

NOGPU_ENTRY(int, cudaStreamCreateWithPriority, (void **out, unsigned flags, int priority))
{
	/* the recording sorts streams by this address */
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return frag_nogpu_error(NOGPU_OUT_OF_MEMORY);
	s->priority = priority;
	clock_enlist(s);
	if (!is_rank())
		frag_nogpu_streams_begin();
	frag_nogpu_beside_take(NOGPU_BESIDE_STREAM, 0, NULL);
	*out = s;
	return NOGPU_OK;
}
NOGPU_ANSWER(cudaStreamGetPriority, (void *stream, int *priority),
	     *priority = clock_stream(stream)->priority)

/* ---- captures ------------------------------------------------------------------------- */

static void take_part(struct stream *s, uint64_t capture, bool lost)
{
	s->capture = capture;
	s->lost = lost;
	s->device = frag_nogpu_device();
}

NOGPU_ENTRY(int, cudaStreamBeginCapture, (void *stream, int mode))
{
	NOGPU_LOCKED;

	take_part(clock_stream(stream), frag_nogpu_graph_number(), false);
	return NOGPU_OK;
}
/* Ends it for every stream that joined; returns its number, and whether it was invalid. */
static uint64_t end_capture(const struct stream *of, bool *lost)
{
	NOGPU_LOCKED;
	uint64_t number = of->capture;

	*lost = number && of->lost;
	for (struct stream *s = clock_streams(); s; s = s->next)
		if (s->capture == number)
			s->capture = 0;
	return number;
}
NOGPU_ENTRY(int, cudaStreamEndCapture, (void *stream, void **out))
{
	bool lost;
	uint64_t number = end_capture(clock_stream(stream), &lost);

	*out = NULL;
	if (lost) {
		frag_nogpu_graph_drop(number);
		return frag_nogpu_error(NOGPU_CAPTURE_LOST);
	}
	*out = frag_nogpu_graph(number);
	return frag_nogpu_error(*out ? NOGPU_OK : NOGPU_OUT_OF_MEMORY);
}
/* 0 none, 1 active, 2 invalid */
static int capture_status(const struct stream *s)
{
	return s->capture ? 1 + s->lost : 0;
}
NOGPU_ANSWER(cudaStreamIsCapturing, (void *stream, int *status),
	     *status = capture_status(clock_stream(stream)))
NOGPU_ENTRY(int, cudaStreamGetCaptureInfo_v2,
	    (void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count))
{
	struct stream *s = clock_stream(stream);

	*status = capture_status(s);
	if (id)
		*id = s->capture;
	if (graph)
		*graph = s;
	if (nodes)
		*nodes = NULL;
	if (count)
		*count = 0;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaStreamGetCaptureInfo_v3,
	    (void *stream, int *status, uint64_t *id, void **graph, void ***nodes, void **edges,
	     size_t *count))
{
	if (edges)
		*edges = NULL;
	return frag_nogpu_cudaStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}
NOGPU_VALUE_OF(12, int, cudaStreamGetCaptureInfo, (void *stream, int *status, uint64_t *id),
	       frag_nogpu_cudaStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL))
NOGPU_VALUE_OF(13, int, cudaStreamGetCaptureInfo,
	       (void *stream, int *status, uint64_t *id, void **graph, void ***nodes, void **edges,
		size_t *count),
	       frag_nogpu_cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges,
						      count))

NOGPU_ENTRY(int, cuThreadExchangeStreamCaptureMode, (int *mode))
{
	static _Thread_local int current;
	int before = current;

	current = *mode;
	*mode = before;
	return NOGPU_OK;
}

/* ---- events --------------------------------------------------------------------------- */

NOGPU_ENTRY(int, cudaEventCreateWithFlags, (void **out, unsigned flags))
{
	*out = calloc(1, sizeof(struct event));
	return *out ? NOGPU_OK : frag_nogpu_error(NOGPU_OUT_OF_MEMORY);
}
NOGPU_ANSWER(cudaEventDestroy, (void *event), free(event))
NOGPU_ENTRY(int, cudaEventRecord, (void *event, void *stream))
{
	struct event *e = event;

	e->capture = clock_stream(stream)->capture;
	e->done_ns = frag_nogpu_done(stream);
	e->at_ns = frag_clock_ns();
	e->worked_ns = clock_worked();
	return NOGPU_OK;
}
/* Without modelled work between two events, the program is comparing kernels (cuDNN's search,
 * Triton's autotuner): each takes the same time, so that jitter of the host chooses none. More than
 * a second is a wait. */
#define ANY_KERNEL_NS 20000u
#define WAIT_NS 1000000000u

NOGPU_ENTRY(int, cudaEventElapsedTime, (float *ms, void *begin, void *end))
{
	const struct event *b = begin, *e = end;
	uint64_t ns = e->worked_ns - b->worked_ns, on_host = e->at_ns - b->at_ns;

	if (!ns)
		ns = on_host < WAIT_NS ? ANY_KERNEL_NS : on_host;
	*ms = (float)((double)ns / 1e6);
	return NOGPU_OK;
}
/* A stream that waits for an event of a capture joins that capture. */
NOGPU_ENTRY(int, cudaStreamWaitEvent, (void *stream, void *event, unsigned flags))
{
	NOGPU_LOCKED;
	const struct event *e = event;

	for (const struct stream *s = clock_streams();
	     s && e->capture && !clock_stream(stream)->capture; s = s->next)
		if (s->capture == e->capture) /* the capture is active */
			take_part(clock_stream(stream), e->capture, s->lost);
	clock_join(&clock_stream(stream)->busy_ns, e->done_ns);
	return NOGPU_OK;
}

/* ---- the host waits ------------------------------------------------------------------- */

/* Invalidates the active capture of this number, or (0) any on this device, because the program
 * queries its completion. */
static bool lose_capture(uint64_t number)
{
	NOGPU_LOCKED;
	int device = frag_nogpu_device();
	bool lost = false;

	for (struct stream *s = clock_streams(); s; s = s->next)
		if (s->capture && (number ? s->capture == number : s->device == device))
			lost = s->lost = true;
	return lost;
}

NOGPU_ENTRY(int, cudaStreamSynchronize, (void *stream))
{
	struct stream *s = clock_stream(stream);

	if (s->capture && lose_capture(s->capture))
		return frag_nogpu_error(NOGPU_CAPTURE_UNSUPPORTED);
	frag_nogpu_pools_wait(stream, false);
	clock_wait(s->busy_ns);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaEventSynchronize, (struct event * event))
{
	if (event->capture && lose_capture(event->capture))
		return frag_nogpu_error(NOGPU_CAPTURED_EVENT);
	clock_wait(event->done_ns);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaDeviceSynchronize, (void))
{
	if (lose_capture(0))
		return frag_nogpu_error(NOGPU_CAPTURE_UNSUPPORTED);
	frag_nogpu_pools_wait(NULL, true);
	frag_nogpu_wait_idle();
	return frag_nogpu_error(frag_nogpu_ranks.settle_all ? frag_nogpu_ranks.settle_all()
							    : NOGPU_OK);
}
/*
 * NCCL's watchdog polls ten times a second and releases the tensors of finished work: on average
 * half a period late. That delay counts on the modelled clock, because the program runs slower here
 * than on a card. If the program has been idle for a second of real time the clock stands still, so
 * the watchdog then sees all work as finished; a program that waits for it would deadlock.
 */
#define WATCH_NS 50000000u
#define STILL_NS 1000000000u

static bool is_watchdog(void)
{
	static _Thread_local char name[16]; /* as pthread_getname_np returns it */

	if (!*name)
		pthread_getname_np(pthread_self(), name, sizeof(name));
	return !strcmp(name, "pt_nccl_watchdg");
}

static bool watchdog_sees(const struct event *e)
{
	static _Thread_local uint64_t seen_host_ns, since_ns;
	const uint64_t host = frag_nogpu_now(), now = frag_clock_ns();

	if (host != seen_host_ns || frag_nogpu_ranks.waiting)
		since_ns = now;
	seen_host_ns = host;
	return now - since_ns > STILL_NS || e->done_ns <= host - FRAG_MIN(host, WATCH_NS);
}

NOGPU_ENTRY(int, cudaEventQuery, (struct event * event))
{
	if (event->capture && lose_capture(event->capture))
		return frag_nogpu_error(NOGPU_CAPTURED_EVENT);
	if (!*frag_nogpu_streams())
		return NOGPU_OK;
	if (clock_works() ? clock_poll(event->done_ns) : !is_watchdog() || watchdog_sees(event))
		return NOGPU_OK;
	return NOGPU_NOT_READY;
}
