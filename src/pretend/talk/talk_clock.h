/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modelled clocks of communicating processes (stream.c): each has a page that others can read,
 * the file $CUFRAG_NOGPU_TALK/PID.clock. It holds the host's clock and the start times that were
 * announced as pending.
 */
#ifndef FRAG_NOGPU_TALK_CLOCK_H
#define FRAG_NOGPU_TALK_CLOCK_H

#include <frag/base.h>

#define TALK_STARTS (1u << 16) /* maximum number of pending starts */

struct talk_clock {
	_Atomic uint64_t host_ns; /* messages that are not readable yet begin no earlier */
	_Atomic uint64_t starts[TALK_STARTS]; /* talk_start */
};

/* A start: known, or a lower bound. */
static inline uint64_t talk_start(uint64_t ns, bool known)
{
	return ns << 1 | known;
}

/* When an operation began: a start, or (later > 0) starts[later % TALK_STARTS] in the sender's
 * page. */
struct talk_when {
	uint64_t start, later;
};

/* A process whose messages this one reads. */
struct talk_peer {
	const struct talk_clock *clock;
	_Atomic uint64_t absent; /* others do not wait for it while this equals host_ns + 1 */
};

/* Makes this process's page, before others can look for it. */
void talk_clock_make(void);
/* A page that is not shared if there is none. */
struct talk_clock *talk_clock_own(void);
/* NULL: not there yet. Lasts until exit. */
struct talk_peer *talk_peer_of(long pid);

#endif
