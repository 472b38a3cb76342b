/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA driver for tests of src/inject/live: memory is numbers, and the order of work is followed
 * exactly.
 *
 * Every stream has a vector clock: how much work of each stream is known to be done before its next
 * piece. Events copy it, waits and synchronisations merge it. Work names memory (fake_work); work
 * on physical memory that was just handed out, while work of its life before may run, is a race.
 * What a capture forbids, memory that is unmapped while work may run on it, and wrong calls are
 * faults. Both are counted and the first is kept as a sentence.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "inject/live/live_driver.h"

#define FAKE_STREAMS 8

/* A card without memory taken; no stream runs, nothing is counted. */
void fake_reset(uint64_t capacity_bytes);
/* The handle of stream 0 (the default one) to FAKE_STREAMS - 1. */
void *fake_stream(unsigned stream);
/* The program queues work on [addr, addr + bytes). fresh: the first after the memory was handed
 * out, so all work before it must be ordered; later users see to their order themselves. */
void fake_work(unsigned stream, uint64_t addr, uint64_t bytes, bool fresh);
/* Of the events that are asked for, so many in 256 are done. */
void fake_ready(unsigned in_256);
void fake_capture(unsigned stream, bool on);

struct fake_seen {
	uint64_t races, faults, calls;
	char first[200];     /* race or fault, "" if there was neither */
	uint64_t held_bytes; /* memory and handles that are out */
};
extern struct fake_seen fake;
/* Pieces that are out: memory, ranges, mappings. */
uint64_t fake_held(void);

#endif
