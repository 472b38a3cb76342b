/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modelled clock. Where streams matter, work takes time: the host's clock is at the work that it
 * launches, a stream's at the work that it has done. The allocator holds back blocks that another
 * stream still uses, which decides the peak of FSDP, pipelines and prefetched batches. Captured work
 * takes no time. With a single stream, all work is over at once.
 */
#include "card_clock.h"

#include <stdatomic.h>

struct nogpu_ranks frag_nogpu_ranks;
static struct stream default_stream;
static struct stream *streams = &default_stream; /* list of all; nothing is removed */

struct stream *clock_stream(void *handle)
{
	return (uintptr_t)handle < 16 ? &default_stream : handle;
}

struct stream *clock_streams(void)
{
	return streams;
}

void clock_enlist(struct stream *s)
{
	NOGPU_LOCKED;

	s->next = streams;
	streams = s;
}

/*
 * Measured on H100 and H200 (results/nogpu/durations.md, ranks.md): an operator costs the host 27
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
static _Thread_local bool works; /* this thread launches work */

void frag_nogpu_streams_begin(void)
{
	streams_matter = true;
}

const _Atomic bool *frag_nogpu_streams(void)
{
	return &streams_matter;
}

void clock_join(_Atomic uint64_t *at, uint64_t ns)
{
	uint64_t now = *at;

	while (now < ns && !atomic_compare_exchange_weak(at, &now, ns)) {
	}
}

void clock_wait(uint64_t ns)
{
	clock_join(&host_ns, ns);
}

void frag_nogpu_stream_awaits(void *stream, uint64_t ns)
{
	clock_join(&clock_stream(stream)->busy_ns, ns);
}

/* Returns when the work begins, 0 in a capture. */
static uint64_t keep_busy(void *stream, uint64_t ns, uint64_t on_host_ns)
{
	struct stream *s = clock_stream(stream);

	works = true;
	host_ns += on_host_ns;
	if (s->capture)
		return 0;
	clock_join(&s->busy_ns, host_ns);
	return atomic_fetch_add(&s->busy_ns, ns);
}

uint64_t frag_nogpu_sent(void *stream, uint64_t bytes, uint64_t *begins)
{
	const uint64_t ns = LINK_NS + bytes / LINK_BYTES_PER_NS;
	const uint64_t at = keep_busy(stream, ns, 0);

	if (begins)
		*begins = at;
	return ns;
}

uint64_t frag_nogpu_now(void)
{
	return host_ns;
}

uint64_t frag_nogpu_done(void *stream)
{
	return FRAG_MAX(host_ns, clock_stream(stream)->busy_ns);
}

/* Bytes per ns measured on an H200 (results/nogpu/durations.md); for pinned memory of older cards,
 * the rate of their PCIe. */
static uint64_t copied_per_ns(bool to_card, bool pinned)
{
	int major = frag_nogpu_card()->major;

	if (!pinned)
		return to_card ? 8 : 15;
	return major >= 9 ? 55 : major == 8 ? 25 : 12;
}

void frag_nogpu_copied(void *stream, uint64_t bytes, bool to_card, bool pinned)
{
	keep_busy(stream, COPY_NS + bytes / copied_per_ns(to_card, pinned), COPY_HOST_NS);
	if (!pinned && (!to_card || bytes > STAGED_BYTES))
		clock_wait(clock_stream(stream)->busy_ns);
}

/* Total modelled work of the card, seen by programs that time their kernels (values/clock.cpp). */
static _Atomic uint64_t worked_ns;

void frag_nogpu_work(void *stream, uint64_t ns, uint64_t all_ns, bool backward)
{
	worked_ns = all_ns;
	if (!streams_matter)
		return;
	keep_busy(stream, ns, backward ? HOST_BACKWARD_NS : HOST_OP_NS);
}

bool clock_works(void)
{
	return works;
}

uint64_t clock_worked(void)
{
	return worked_ns;
}

/* ---- the host waits ------------------------------------------------------------------- */

void frag_nogpu_host_takes(uint64_t ns)
{
	if (streams_matter)
		host_ns += ns;
}

void frag_nogpu_wait_idle(void)
{
	NOGPU_LOCKED;

	for (const struct stream *s = streams_matter ? streams : NULL; s; s = s->next)
		clock_wait(s->busy_ns);
}

bool clock_poll(uint64_t ns)
{
	host_ns += ASK_NS;
	return ns <= host_ns;
}
