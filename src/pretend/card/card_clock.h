/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on the modelled clock: what card_clock.c and card_stream.c share. */
#ifndef FRAG_NOGPU_CARD_CLOCK_H
#define FRAG_NOGPU_CARD_CLOCK_H

#include "nogpu.h"

struct stream {
	uint64_t capture; /* graph that it is captured into, 0 = none; first member (graph.c) */
	bool lost;	  /* the capture is invalid */
	int device;	  /* on which the capture began */
	_Atomic uint64_t busy_ns; /* end of its work on the modelled clock */
	int priority;
	struct stream *next;
};

/* Handles below 16 are CUDA's own streams (default, legacy, per thread), which share one state. */
struct stream *clock_stream(void *handle);
/* All of them; the list only grows. */
struct stream *clock_streams(void);
void clock_enlist(struct stream *s);

/* Sets *at to the later of both. */
void clock_join(_Atomic uint64_t *at, uint64_t ns);
/* The host waits until then, or for all streams of the process: its clock advances. */
void clock_wait(uint64_t ns);
/* Is it over? Each poll advances the host's clock. */
bool clock_poll(uint64_t ns);
/* Does this thread launch work? All others see every event as complete, except NCCL's watchdog. */
bool clock_works(void);
/* Modelled work of the card so far, seen by programs that time their kernels. */
uint64_t clock_worked(void);

#endif
