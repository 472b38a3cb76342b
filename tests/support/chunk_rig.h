/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy on a small simulated card with its segment events in a list: for
 * tests that pin which chunks a pool takes and where in them a block lies.
 * A call that fails where it should not fails the cmocka test.
 */
#ifndef FRAG_TESTS_CHUNK_RIG_H
#define FRAG_TESTS_CHUNK_RIG_H

#include <frag/policy.h>

#define CRIG_EVENTS 4096

struct crig_event {
	enum frag_segment_event kind;
	frag_addr_t addr;
	uint64_t bytes;
	uint32_t stream;
};

struct crig {
	struct frag_device *dev;
	struct frag_policy_spec *spec;
	struct frag_policy policy;
	struct crig_event events[CRIG_EVENTS];
	size_t events_count; /* the first CRIG_EVENTS of them are kept */
	/* what the policy's "wait for everything" frees */
	struct frag_block *pending[64];
	size_t pending_count;
	struct frag_err err;
	bool largest_may_be_unknown; /* usage may leave it to the walk: set after crig_open */
};

/* total: memory of the card, all of it usable. limit: of the process, 0 = none. */
void crig_open(struct crig *r, const char *text, uint64_t total, uint64_t limit);
/* Runs the policy's check, destroys it, and sees to it that nothing leaked. */
void crig_close(struct crig *r);

/* Result of the call; *out also knows stream and request. */
int crig_try(struct crig *r, uint64_t bytes, uint32_t stream, struct frag_block *out);
struct frag_block crig_alloc(struct crig *r, uint64_t bytes, uint32_t stream);
void crig_free(struct crig *r, const struct frag_block *b);
/* Lets go of a block that "wait for everything" or crig_free completes. */
void crig_request(struct crig *r, struct frag_block *b);
void crig_trim(struct crig *r);

/* The i-th segment event. */
const struct crig_event *crig_event(const struct crig *r, size_t i);
/* How many segments were taken, and the i-th of these. */
size_t crig_chunks(const struct crig *r);
const struct crig_event *crig_chunk(const struct crig *r, size_t i);
uint64_t crig_calls(const struct crig *r, enum frag_call call);

/* check, and usage against a walk; both must agree. Returns the usage. */
struct frag_usage crig_check(struct crig *r);
/* A text that must be refused with a message that holds `part`. */
void crig_refused_text(const char *text, const char *part);

/* Deterministic random numbers. */
uint64_t crig_random(uint64_t *state);
/*
 * `steps` random allocs and frees on `streams` streams, at most `slots` blocks of at most
 * `most` bytes, some of them waiting before they are free; crig_check now and then. What is
 * left is freed.
 */
void crig_soak(struct crig *r, unsigned steps, unsigned slots, unsigned streams, uint64_t most,
	       uint64_t seed);

#endif
