/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of src/inject/live: policies behind PyTorch's hooks, over fake_driver.h. */
#ifndef LIVE_RIG_H
#define LIVE_RIG_H

#include "fake_driver.h"
#include "inject/live/live_core.h"

/* Every registered policy that a running program can have; the group's setup fills it. */
extern const char *live_policies[64];
extern size_t live_policies_count;
int live_list_policies(void **state);

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
