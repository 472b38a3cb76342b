/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the pool of each segment, if the recording does not say.
 *
 * Every segment that existed is an instance. The final snapshot names the pool of those that are
 * left. For the others, constraints are collected: two instances are in different pools (a request
 * was served from one although the other was the better fit), in the same pool, or (not) in the
 * default pool. Then instances get pools in order of creation, each the smallest number that breaks
 * no constraint. If the file names the pool of each request (PyTorch 2.12 and later), all instances
 * are known, and nothing is inferred.
 */
#ifndef FRAG_VERIFY_POOLS_H
#define FRAG_VERIFY_POOLS_H

#include <frag/trace.h>

#define POOLS_NONE UINT32_MAX

struct pool_instance {
	frag_addr_t addr;
	uint64_t bytes;	     /* of its address range */
	uint64_t mapped;     /* expandable: bytes mapped now, while walking */
	uint64_t born, died; /* event indices: [born, died) */
	uint16_t stream;
	bool expandable, small;
	bool known; /* the snapshot names the pool */
	uint16_t pool;
	bool pin_default, pin_private;
	uint32_t same;				/* union-find: parent */
	uint32_t first_edge, last_edge, degree; /* of a root: its edges, POOLS_NONE = none */
};

struct pools {
	struct frag_trace_dev *td;
	struct pool_instance *list;
	size_t count, cap;
	struct pool_edge { /* one half of an edge: in another pool than `other` */
		uint32_t other, next;
	} * edges;
	size_t edges_count, edges_cap;
	uint32_t *colour_of;  /* [65536] scratch: the last instance with a neighbour of that
			       * colour */
	uint32_t *of_seen;    /* [seen_count] instance of a segment event, POOLS_NONE else */
	uint32_t *of_initial; /* [initial.segments_count] instance of an initial segment */
	size_t initial_count; /* number of initial instances, which come first */
	uint64_t range_bytes; /* length of an expandable reservation */
};

int pools_init(struct pools *p, struct frag_trace_dev *td, uint64_t device_total_bytes,
	       struct frag_err *err);
void pools_release(struct pools *p);
/* The instance that held an address while event `at` was served, or POOLS_NONE. */
uint32_t pools_at(const struct pools *p, frag_addr_t addr, uint64_t at);
/* Adds constraints. *learnt: something new was learnt. */
int pools_differ(struct pools *p, uint32_t a, uint32_t b, bool *learnt, struct frag_err *err);
bool pools_pin(struct pools *p, uint32_t a, bool is_default);
/* Gives pools to instances and writes them into events and initial segments. */
int pools_colour(struct pools *p, struct frag_err *err);
uint16_t pools_of(const struct pools *p, uint32_t instance);
/*
 * The releases [first, end) of the evidence returned one or several whole caches, each in order of
 * size and address: default pools large first, private ones small first. Learns from that order.
 */
bool pools_learn_run(struct pools *p, size_t first, size_t end);
/*
 * Learns only what is certain in such a run: two consecutive whole segments of one kind that are
 * out of order belong to different pools.
 */
int pools_learn_breaks(struct pools *p, size_t first, size_t end, bool *learnt,
		       struct frag_err *err);

#endif
