/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rig: one policy on one device, driven call by call, with every promise of
 * <frag/policy.h> checked on the way by means of its own: every live block,
 * sums of granted bytes, a walk. A broken promise fails the
 * cmocka test with the policy's text and the number of the step.
 *
 * Blocks are named by slots 0..RIG_SLOTS-1 of the caller's choice.
 */
#ifndef FRAG_TESTS_RIG_H
#define FRAG_TESTS_RIG_H

#include <frag/policy.h>

#define RIG_SLOTS 1024
#define RIG_TOTAL (4 * FRAG_GIB) /* of the simulated card */
#define RIG_CONTEXT (256 * FRAG_MIB)
#define RIG_STEP_NS 100000u /* recorded time from call to call */
#define RIG_TAKEN 1024

enum rig_state { RIG_EMPTY, RIG_LIVE, RIG_PENDING };

struct rig_slot {
	struct frag_block block;
	enum rig_state state;
	uint32_t serial; /* in order of allocation */
};

/* What the device gave: a segment of cudaMalloc, or a reservation. */
struct rig_taken {
	frag_addr_t addr;
	uint64_t bytes;
};

struct rig {
	const char *text;
	const char *where; /* told in front of a broken promise; NULL: the text and the step */
	struct frag_policy_spec *spec;
	const struct frag_policy_ops *ops;
	struct frag_device *dev;
	struct frag_policy policy;
	struct rig_slot slots[RIG_SLOTS];
	size_t count;			   /* of those that are occupied */
	struct rig_taken taken[RIG_TAKEN]; /* the first ones, in order */
	size_t taken_count;
	uint64_t granted_bytes;
	uint64_t alignment; /* all addresses so far are multiples of it */
	uint64_t step;
	uint32_t serial;
	bool sim;
	bool contents; /* every block is filled, and verified before its free */
	uint64_t limit_bytes, usable_bytes, step_ns;
	unsigned syncs;	     /* how often the policy waited for everything */
	bool failed;	     /* a call of the device has failed, or was to fail */
	bool usage_exact;    /* usage knows blocks and the largest free one; set after rig_open */
	struct frag_err err; /* of the last call that failed */
	int sync_rc;	     /* first error inside of "wait for everything" */
};

/* Who is told what device and policy do; each may be NULL. */
struct rig_watch {
	frag_call_log_fn call;
	frag_journal_fn journal;
	frag_place_fn place; /* says where the card places */
	void *ctx;
};

/* Options of a rig; zero is the simulated card of RIG_TOTAL without a limit. */
struct rig_options {
	bool null_device;
	bool still; /* time stands still from call to call */
	uint64_t
		total_bytes; /* of the card, with context_bytes of it taken; 0 = RIG_TOTAL, RIG_CONTEXT */
	uint64_t context_bytes;
	unsigned source_release; /* see struct frag_policy_env */
	struct rig_watch watch;
	uint64_t seed;
	uint64_t limit_bytes; /* 0 = none */
	uint64_t fail_call;   /* of the device, see struct frag_device */
	bool fail_all_after;
};

/* On card 0 instead of the simulated one, with RIG_TOTAL of its memory. Blocks are then filled with
 * a pattern and verified before they are freed. For tests/gpu. */
extern bool rig_on_card;

/* Opens device and policy. Returns the result of create; the rig is closed if that failed. */
int rig_open(struct rig *r, const char *text, const struct rig_options *o);
/* The same for a policy that must open; o NULL: without options. */
void must_open_rig(struct rig *r, const char *text, const struct rig_options *o);
/*
 * Largest request (a power of two up to 256 MiB) that an empty instance serves: policies of
 * fixed blocks refuse what is larger by their own rule. 0 if it serves nothing.
 */
uint64_t rig_max_bytes(const char *text);
/* Destroys the policy, checks for leaks, closes the device. */
void rig_close(struct rig *r);
FRAG_AUTO_AT(struct rig *, rig_close)
/* The same, but only returns the number of leaks. */
uint64_t rig_close_count_leaks(struct rig *r);

/* 0, FRAG_OOM, or an error (in r->err). The slot must be empty. */
int rig_alloc(struct rig *r, unsigned slot, uint64_t bytes, uint32_t stream, uint16_t pool);
/* Free at once; completes a pending one. Returns the policy's result. */
int rig_free(struct rig *r, unsigned slot);
/* Lets go of a live block; rig_free completes it later, or a synchronisation does. */
void rig_request(struct rig *r, unsigned slot);
/* All that is live, in order of slots (in reverse order of allocation for stack policies). */
int rig_free_all(struct rig *r);
int rig_trim(struct rig *r, uint16_t pool); /* 0 if the policy has no trim */
int rig_synced(struct rig *r);		    /* synchronises the device and says so */
/* The live slot that was allocated last; -1 if there is none. */
int rig_top(const struct rig *r);

/* The policy's own check of its invariants. */
void rig_check(struct rig *r);
/* Walks the policy and compares with what is live. out: the sums, may be NULL. */
void rig_walk(struct rig *r, struct frag_usage *out);
#define RIG_HELD(u) ((u)->allocated_bytes + (u)->waiting_bytes + (u)->free_bytes)

/*
 * Random calls on a rig, the same for the same seed: allocs of all sizes on
 * four streams, frees at once and late, trims, synchronisations, marks. Stack
 * policies are driven in stack order.
 */
struct script {
	uint64_t rng;
	unsigned slots;	    /* at most this many blocks at a time */
	bool plain;	    /* one stream, no pools, no late frees, no trims */
	uint64_t max_bytes; /* of a request */
};

void script_init(struct script *s, uint64_t seed, unsigned slots);
/* The next call. Returns its result; allocs that meet FRAG_OOM return 0 (that is no failure). */
int script_step(struct script *s, struct rig *r);

/*
 * Many calls on an open rig, with the policy's check after each and a walk now and then. failures:
 * every few calls one of the next driver calls fails. What is live in the end stays so. Returns 0,
 * or the first unexpected error (in r->err).
 */
int script_soak(struct script *s, struct rig *r, unsigned steps, bool failures);

#endif
