/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of src/inject/live: policies behind PyTorch's hooks, over a fake driver. */
#ifndef LIVE_RIG_H
#define LIVE_RIG_H

#include "inject/live/live_core.h"
#include "device/driver/cu_table.h"

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

/* ---- policies ------------------------------------------------------------------------------- */

/* Every registered policy that a running program can have. */
extern const char *live_policies[64];
extern size_t live_policies_count;

void live_start(const char *policy, uint64_t capacity, uint64_t limit);
void live_close(void);
/* Neither race nor fault so far. */
void live_must_be_sound(const char *policy);
struct frag_live_dev *live_device(int ordinal);
int live_take(uint64_t bytes, unsigned stream, uint64_t *addr);

/* A program on several streams, which takes, uses and frees blocks at random. */
#define LIVE_BLOCKS 400

struct live_program {
	struct {
		uint64_t addr, bytes;
		unsigned stream;
	} b[LIVE_BLOCKS];
	unsigned streams;
	uint64_t refused, errors;
};

void live_alloc_one(struct live_program *p, unsigned i, unsigned stream);
void live_free_one(struct live_program *p, unsigned i);
void live_run(struct live_program *p, unsigned steps);
void live_free_all(struct live_program *p);

#endif
