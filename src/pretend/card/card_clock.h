/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on the modelled clock: what card_clock.c and card_stream.c share. */
#ifndef FRAG_NOGPU_CARD_CLOCK_H
#define FRAG_NOGPU_CARD_CLOCK_H

#include "nogpu.h"

/* A time on the modelled clock. Where ranks waited for each other, it may depend on transfers that
 * had not come when they were issued: those up to a number. */
struct moment {
	_Atomic uint64_t ns, awaits;
};
struct stream {
	uint64_t capture;   /* graph that it is captured into, 0 = none; first member (graph.c) */
	bool lost;	    /* the capture is invalid */
	int device;	    /* on which the capture began */
	struct moment busy; /* end of its work on the modelled clock */
	int priority;
	struct stream *next;
};

/* Handles below 16 are CUDA's own streams (default, legacy, per thread), which share one state. */
struct stream *clock_stream(void *handle);
/* All of them; the list only grows. */
struct stream *clock_streams(void);
void clock_enlist(struct stream *s);

/* Sets m to the later of both. */
void clock_join(struct moment *m, const struct moment *other);
/* Waits for other ranks until its time is known. 0, or an error of CUDA's. */
int clock_settle(struct moment *m, enum nogpu_patience how);
/* The host waits for all streams of the process, or for one moment: its clock advances. */
int clock_wait_all(enum nogpu_patience how);
int clock_wait(struct moment *m, enum nogpu_patience how);
/* Is it over? Each poll advances the host's clock. */
bool clock_poll(struct moment *m);
/* Does this thread launch work? All others see every event as complete, except NCCL's watchdog. */
bool clock_works(void);
/* Modelled work of the card so far, seen by programs that time their kernels. */
uint64_t clock_worked(void);

#endif
