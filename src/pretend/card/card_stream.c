/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, events, captures, and the modelled clock. Where streams matter (in a process with
 * streams of its own or with other ranks), work takes time: the host's clock is at the work that it
 * launches, a stream's at the work that it has done, and an event is ready when its work is over;
 * else at once. The allocator holds back blocks that another stream still uses, which decides the
 * peak of FSDP, pipelines and prefetched batches. Captured work takes no time.
 *
 * Captures matter, too: while a stream is captured, the allocator uses a private pool and records
 * its events later. As on a card, waiting for captured work is refused and invalidates the capture.
 */
#include "card.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <frag/clock.h>

struct stream {
	uint64_t capture; /* graph that it is captured into, 0 = none; first member (graph.c) */
	bool lost;	  /* the capture is invalid */
	int device;	  /* on which the capture began */
	_Atomic uint64_t busy_ns; /* end of its work on the modelled clock */
	int priority;
	struct stream *next;
};

struct pretend_ranks frag_pretend_ranks;
void (*frag_pretend_pools_wait)(void *stream, bool all);
static struct stream default_stream;
static struct stream *streams = &default_stream; /* list of all; nothing is removed */

/* Handles below 16 are CUDA's own streams (default, legacy, per thread), which share one state. */
static struct stream *stream_of(void *handle)
{
	return (uintptr_t)handle < 16 ? &default_stream : handle;
}

/* ---- the clock ---------------------------------------------------------------------- */

/*
 * Measured on H100 and H200 (results/pretend/durations.md, ranks.md): an operator costs the host 27
 * to 67 us in Python, PyTorch and the driver, 21 to 47 if autograd's engine calls it; all-gathers,
 * reduce-scatters and messages of 8 to 260 MB arrived at 211 to 262 GB/s.
 */
#define HOST_OP_NS 45000u
#define HOST_BACKWARD_NS 35000u
#define ASK_NS 500u
#define LINK_BYTES_PER_NS 250u
#define LINK_NS 10000u
#define COPY_NS 5000u
#define COPY_HOST_NS 12000u
/* Up to this size, a copy to the card is staged (CUDA Runtime API, "API synchronization
 * behavior"). */
#define STAGED_BYTES 65536u

static _Atomic bool streams_matter;
static _Atomic uint64_t host_ns;
static _Thread_local bool works; /* this thread launches work: all others see every event as
				    complete, except NCCL's watchdog */

void frag_pretend_streams_begin(void)
{
	streams_matter = true;
}

const _Atomic bool *frag_pretend_streams(void)
{
	return &streams_matter;
}

/* Sets *at to the later of both. */
static void join(_Atomic uint64_t *at, uint64_t ns)
{
	uint64_t now = *at;

	while (now < ns && !atomic_compare_exchange_weak(at, &now, ns)) {
	}
}

/* The host waits until then. */
static void host_waits(uint64_t ns)
{
	join(&host_ns, ns);
}

void frag_pretend_stream_awaits(void *stream, uint64_t ns)
{
	join(&stream_of(stream)->busy_ns, ns);
}

/* Returns when the work begins, 0 in a capture. */
static uint64_t keep_busy(void *stream, uint64_t ns, uint64_t on_host_ns)
{
	struct stream *s = stream_of(stream);

	works = true;
	host_ns += on_host_ns;
	if (s->capture)
		return 0;
	join(&s->busy_ns, host_ns);
	return atomic_fetch_add(&s->busy_ns, ns);
}

uint64_t frag_pretend_sent(void *stream, uint64_t bytes, uint64_t *begins)
{
	const uint64_t ns = LINK_NS + bytes / LINK_BYTES_PER_NS;
	const uint64_t at = keep_busy(stream, ns, 0);

	if (begins)
		*begins = at;
	return ns;
}

uint64_t frag_pretend_now(void)
{
	return host_ns;
}

uint64_t frag_pretend_done(void *stream)
{
	return FRAG_MAX(host_ns, stream_of(stream)->busy_ns);
}

/* Bytes per ns measured on an H200 (results/pretend/durations.md); for pinned memory of older
 * cards, the rate of their PCIe. */
static uint64_t copied_per_ns(bool to_card, bool pinned)
{
	int major = frag_pretend_card()->major;

	if (!pinned)
		return to_card ? 8 : 15;
	return major >= 9 ? 55 : major == 8 ? 25 : 12;
}

void frag_pretend_copied(void *stream, uint64_t bytes, bool to_card, bool pinned)
{
	keep_busy(stream, COPY_NS + bytes / copied_per_ns(to_card, pinned), COPY_HOST_NS);
	if (!pinned && (!to_card || bytes > STAGED_BYTES))
		host_waits(stream_of(stream)->busy_ns);
}

/* Modelled work of the card so far, seen by programs that time their kernels (values/clock.cpp). */
static _Atomic uint64_t worked_ns;

void frag_pretend_work(void *stream, uint64_t ns, uint64_t all_ns, bool backward)
{
	worked_ns = all_ns;
	if (!streams_matter)
		return;
	keep_busy(stream, ns, backward ? HOST_BACKWARD_NS : HOST_OP_NS);
}

void frag_pretend_host_takes(uint64_t ns)
{
	if (streams_matter)
		host_ns += ns;
}

void frag_pretend_wait_idle(void)
{
	PRETEND_LOCKED;

	for (const struct stream *s = streams_matter ? streams : NULL; s; s = s->next)
		host_waits(s->busy_ns);
}

/* ---- streams ------------------------------------------------------------------------ */

/* Clocks of ranks start together, with their group. */
static bool is_rank(void)
{
	const char *world = getenv("WORLD_SIZE");

	return world && strtoul(world, NULL, 10) > 1;
}

PRETEND_ENTRY(int, cudaStreamCreateWithPriority, (void **out, unsigned flags, int priority))
{
	/* the recording sorts streams by this address */
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return frag_pretend_error(PRETEND_OUT_OF_MEMORY);
	s->priority = priority;
	{
		PRETEND_LOCKED;

		s->next = streams;
		streams = s;
	}
	if (!is_rank())
		frag_pretend_streams_begin();
	frag_pretend_beside_take(PRETEND_BESIDE_STREAM, 0, NULL);
	*out = s;
	return PRETEND_OK;
}
PRETEND_ANSWER(cudaStreamGetPriority, (void *stream, int *priority),
	       *priority = stream_of(stream)->priority)

/* ---- captures ------------------------------------------------------------------------- */

static void take_part(struct stream *s, uint64_t capture, bool lost)
{
	s->capture = capture;
	s->lost = lost;
	s->device = frag_pretend_device();
}

PRETEND_ENTRY(int, cudaStreamBeginCapture, (void *stream, int mode))
{
	PRETEND_LOCKED;

	take_part(stream_of(stream), frag_pretend_graph_number(), false);
	return PRETEND_OK;
}
/* Ends it for every stream that joined; returns its number, and whether it was invalid. */
static uint64_t end_capture(const struct stream *of, bool *lost)
{
	PRETEND_LOCKED;
	uint64_t number = of->capture;

	*lost = number && of->lost;
	for (struct stream *s = streams; s; s = s->next)
		if (s->capture == number)
			s->capture = 0;
	return number;
}
PRETEND_ENTRY(int, cudaStreamEndCapture, (void *stream, void **out))
{
	bool lost;
	uint64_t number = end_capture(stream_of(stream), &lost);

	*out = NULL;
	if (lost) {
		frag_pretend_graph_drop(number);
		return frag_pretend_error(PRETEND_CAPTURE_LOST);
	}
	*out = frag_pretend_graph(number);
	return frag_pretend_error(*out ? PRETEND_OK : PRETEND_OUT_OF_MEMORY);
}
/* 0 none, 1 active, 2 invalid */
static int capture_status(const struct stream *s)
{
	return s->capture ? 1 + s->lost : 0;
}
PRETEND_ANSWER(cudaStreamIsCapturing, (void *stream, int *status),
	       *status = capture_status(stream_of(stream)))
PRETEND_ENTRY(int, cudaStreamGetCaptureInfo_v2,
	      (void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count))
{
	struct stream *s = stream_of(stream);

	*status = capture_status(s);
	if (id)
		*id = s->capture;
	if (graph)
		*graph = s;
	if (nodes)
		*nodes = NULL;
	if (count)
		*count = 0;
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cudaStreamGetCaptureInfo_v3,
	      (void *stream, int *status, uint64_t *id, void **graph, void ***nodes, void **edges,
	       size_t *count))
{
	if (edges)
		*edges = NULL;
	return frag_pretend_cudaStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}
PRETEND_VALUE_OF(12, int, cudaStreamGetCaptureInfo, (void *stream, int *status, uint64_t *id),
		 frag_pretend_cudaStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL))
PRETEND_VALUE_OF(13, int, cudaStreamGetCaptureInfo,
		 (void *stream, int *status, uint64_t *id, void **graph, void ***nodes,
		  void **edges, size_t *count),
		 frag_pretend_cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges,
							  count))

PRETEND_ENTRY(int, cuThreadExchangeStreamCaptureMode, (int *mode))
{
	static _Thread_local int current;
	int before = current;

	current = *mode;
	*mode = before;
	return PRETEND_OK;
}

/* ---- events --------------------------------------------------------------------------- */

struct event {
	uint64_t capture; /* capture of its stream when it was recorded */
	uint64_t done_ns; /* on the modelled clock */
	uint64_t at_ns;	  /* host clock */
	uint64_t worked_ns;
};

PRETEND_ENTRY(int, cudaEventCreateWithFlags, (void **out, unsigned flags))
{
	*out = calloc(1, sizeof(struct event));
	return *out ? PRETEND_OK : frag_pretend_error(PRETEND_OUT_OF_MEMORY);
}
PRETEND_ANSWER(cudaEventDestroy, (void *event), free(event))
PRETEND_ENTRY(int, cudaEventRecord, (void *event, void *stream))
{
	struct event *e = event;

	e->capture = stream_of(stream)->capture;
	e->done_ns = frag_pretend_done(stream);
	e->at_ns = frag_clock_ns();
	e->worked_ns = worked_ns;
	return PRETEND_OK;
}
/* Without modelled work between two events, the program is comparing kernels (cuDNN's search,
 * Triton's autotuner): each takes the same time, so that jitter of the host chooses none. More than
 * a second is a wait. */
#define ANY_KERNEL_NS 20000u
#define WAIT_NS 1000000000u

PRETEND_ENTRY(int, cudaEventElapsedTime, (float *ms, void *begin, void *end))
{
	const struct event *b = begin, *e = end;
	uint64_t ns = e->worked_ns - b->worked_ns, on_host = e->at_ns - b->at_ns;

	if (!ns)
		ns = on_host < WAIT_NS ? ANY_KERNEL_NS : on_host;
	*ms = (float)((double)ns / 1e6);
	return PRETEND_OK;
}
/* A stream that waits for an event of a capture joins that capture. */
PRETEND_ENTRY(int, cudaStreamWaitEvent, (void *stream, void *event, unsigned flags))
{
	PRETEND_LOCKED;
	const struct event *e = event;

	for (const struct stream *s = streams; s && e->capture && !stream_of(stream)->capture;
	     s = s->next)
		if (s->capture == e->capture) /* the capture is active */
			take_part(stream_of(stream), e->capture, s->lost);
	join(&stream_of(stream)->busy_ns, e->done_ns);
	return PRETEND_OK;
}

/* ---- the host waits ------------------------------------------------------------------- */

/* Invalidates the active capture of this number, or (0) any on this device, because the program
 * queries its completion. */
static bool lose_capture(uint64_t number)
{
	PRETEND_LOCKED;
	int device = frag_pretend_device();
	bool lost = false;

	for (struct stream *s = streams; s; s = s->next)
		if (s->capture && (number ? s->capture == number : s->device == device))
			lost = s->lost = true;
	return lost;
}

PRETEND_ENTRY(int, cudaStreamSynchronize, (void *stream))
{
	struct stream *s = stream_of(stream);

	if (s->capture && lose_capture(s->capture))
		return frag_pretend_error(PRETEND_CAPTURE_UNSUPPORTED);
	if (frag_pretend_pools_wait)
		frag_pretend_pools_wait(stream, false);
	host_waits(s->busy_ns);
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cudaEventSynchronize, (struct event * event))
{
	if (event->capture && lose_capture(event->capture))
		return frag_pretend_error(PRETEND_CAPTURED_EVENT);
	host_waits(event->done_ns);
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cudaDeviceSynchronize, (void))
{
	if (lose_capture(0))
		return frag_pretend_error(PRETEND_CAPTURE_UNSUPPORTED);
	if (frag_pretend_pools_wait)
		frag_pretend_pools_wait(NULL, true);
	frag_pretend_wait_idle();
	return frag_pretend_error(frag_pretend_ranks.settle_all ? frag_pretend_ranks.settle_all()
								: PRETEND_OK);
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
	const uint64_t host = frag_pretend_now(), now = frag_clock_ns();

	if (host != seen_host_ns || frag_pretend_ranks.waiting)
		since_ns = now;
	seen_host_ns = host;
	return now - since_ns > STILL_NS || e->done_ns <= host - FRAG_MIN(host, WATCH_NS);
}

PRETEND_ENTRY(int, cudaEventQuery, (struct event * event))
{
	if (event->capture && lose_capture(event->capture))
		return frag_pretend_error(PRETEND_CAPTURED_EVENT);
	if (!*frag_pretend_streams())
		return PRETEND_OK;
	host_ns += works ? ASK_NS : 0;
	if (works ? event->done_ns <= host_ns : !is_watchdog() || watchdog_sees(event))
		return PRETEND_OK;
	return PRETEND_NOT_READY;
}
