/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modelled clocks of the processes that talk (stream.c): each has a page that the others can read, a file
 * $CUFRAG_NOGPU_TALK/PID.clock. On it is how far its host has come, and when that began which it announced as not known yet.
 */
#ifndef FRAG_NOGPU_TALK_CLOCK_H
#define FRAG_NOGPU_TALK_CLOCK_H

#include <frag/base.h>

#define TALK_STARTS (1u << 16) /* that may be open at a time */

struct talk_clock {
	_Atomic uint64_t host_ns; /* what was not said before this was read begins no earlier */
	_Atomic uint64_t starts[TALK_STARTS]; /* talk_start */
};

/* A start: known, or not before. */
static inline uint64_t talk_start(uint64_t ns, bool known)
{
	return ns << 1 | known;
}

/* When something began: a start, or (later > 0) starts[later % TALK_STARTS] of the page of who says it. */
struct talk_when {
	uint64_t start, later;
};

/* A process to whom this one listens. */
struct talk_peer {
	const struct talk_clock *clock;
	_Atomic uint64_t absent; /* while its host_ns + 1 is this, nobody waits for it */
};

/* Makes this process' page, before others can meet it. */
void talk_clock_make(void);
/* Where none was made, one that nobody reads. */
struct talk_clock *talk_clock_own(void);
/* NULL: not there (yet). Stays to the end. */
struct talk_peer *talk_peer_of(long pid);

#endif
