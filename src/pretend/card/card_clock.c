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

static void not_before(_Atomic uint64_t *at, uint64_t ns)
{
	uint64_t now = *at;

	while (now < ns && !atomic_compare_exchange_weak(at, &now, ns)) {
	}
}

void clock_join(struct moment *m, const struct moment *other)
{
	not_before(&m->ns, other->ns);
	not_before(&m->awaits, other->awaits);
}

/* Waits for other ranks until its time is known. */
int clock_settle(struct moment *m, enum nogpu_patience how)
{
	uint64_t awaits = m->awaits, ns = 0;
	int rc = awaits ? frag_nogpu_ranks.settle_until(awaits, how, &ns) : NOGPU_OK;

	if (!rc && awaits) {
		not_before(&m->ns, ns);
		atomic_compare_exchange_strong(&m->awaits, &awaits, 0);
	}
	return rc;
}

void frag_nogpu_stream_awaits(void *stream, uint64_t ns, uint64_t number)
{
	clock_join(&clock_stream(stream)->busy, &(struct moment){ ns, number });
}

/* Returns when the work begins, 0 in a capture. */
static uint64_t keep_busy(void *stream, uint64_t ns, uint64_t on_host_ns)
{
	struct stream *s = clock_stream(stream);

	works = true;
	host_ns += on_host_ns;
	if (s->capture)
		return 0;
	not_before(&s->busy.ns, host_ns);
	return atomic_fetch_add(&s->busy.ns, ns);
}

uint64_t frag_nogpu_sent(void *stream, uint64_t bytes, uint64_t *begins)
{
	const uint64_t ns = LINK_NS + bytes / LINK_BYTES_PER_NS;
	uint64_t at;

	if (begins)
		(void)clock_settle(&clock_stream(stream)->busy, NOGPU_TRY);
	at = keep_busy(stream, ns, 0);
	if (begins)
		*begins = at;
	return ns;
}

/* Advances the host's clock to the end of this moment. */
int clock_wait(struct moment *m, enum nogpu_patience how)
{
	int rc = clock_settle(m, how);

	not_before(&host_ns, rc ? 0 : m->ns);
	return rc;
}

uint64_t frag_nogpu_now(void)
{
	return host_ns;
}

uint64_t frag_nogpu_done(void *stream)
{
	return FRAG_MAX(host_ns, clock_stream(stream)->busy.ns);
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
		(void)clock_wait(&clock_stream(stream)->busy, NOGPU_TRY);
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

static void all_done(struct moment *m)
{
	NOGPU_LOCKED;

	for (const struct stream *s = streams; s; s = s->next)
		clock_join(m, &s->busy);
}

int clock_wait_all(enum nogpu_patience how)
{
	struct moment all = { 0 };

	all_done(&all);
	return clock_wait(&all, how);
}

void frag_nogpu_host_takes(uint64_t ns)
{
	if (streams_matter)
		host_ns += ns;
}

void frag_nogpu_wait_idle(void)
{
	if (streams_matter)
		(void)clock_wait_all(NOGPU_TRY);
}

bool clock_poll(struct moment *m)
{
	host_ns += ASK_NS;
	return m->ns <= host_ns && !clock_settle(m, NOGPU_TRY) && m->ns <= host_ns;
}
