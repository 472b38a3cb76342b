/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation policies: one file in policies/ defines one constant
 *
 *     const struct frag_policy_ops frag_policy_<file> = { … };
 *
 * and make finds it; no other file changes. policies/skeleton.c is the walk-through,
 * policies/README.md the contract in prose.
 *
 * Words. requested: bytes the program asked for. granted: size of the block handed out (>=
 * requested). segment: memory taken from the upstream with one call. block: a contiguous part of a
 * segment. active: handed out, or freed by the program but still used by another stream. reserved:
 * physical bytes taken from the device (counted by the device, never by the policy).
 *
 * Ownership: a policy owns its segments and returns all of them in destroy. It has no globals and
 * no static state, because instances run in parallel. It talks to its upstream (the device in its
 * env, or an inner policy), never to CUDA, and never sees evidence.
 */
#ifndef FRAG_POLICY_H
#define FRAG_POLICY_H

#include <frag/base.h>
#include <frag/device.h>
#include <frag/error.h>
#include <frag/opt.h>

#define FRAG_POLICY_ABI 4u

/* How an allocation was served; the key of the latency tables. */
#define FRAG_CLASS_LIST(X) \
	X(HIT, "hit")	      /* a free block, unchanged */ \
	X(SPLIT, "split")     /* a free block, the rest stays free */ \
	X(GROW, "grow")	      /* new memory from the upstream */ \
	X(MAP, "map")	      /* physical pages mapped (new or moved) */ \
	X(STITCH, "stitch")   /* several free pieces mapped as one block */ \
	X(RELEASE, "release") /* after cached memory was returned */ \
	X(REFUSED, "refused") /* out of memory */

enum frag_class {
#define FRAG_X_(name, text) FRAG_CLASS_##name,
	FRAG_CLASS_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_CLASS_COUNT
};
const char *frag_class_name(enum frag_class cls);

/* One request. Streams are dense indices in ascending order of the recorded
 * handles (0 = the default stream); pools are dense, 0 = the default pool. */
struct frag_request {
	uint64_t bytes; /* requested, > 0 */
	uint32_t stream;
	uint16_t pool;	/* private pool (graph capture, MemPool); a policy may treat all as one */
	uint16_t flags; /* 0 for now */
};

/* What an allocation returns. The engine keeps it and passes it to free. */
struct frag_block {
	frag_addr_t addr;
	uint64_t granted;   /* bytes, >= requested */
	uint64_t handle;    /* the policy's own (pointer or index) */
	uint32_t stream;    /* of the request; set by the engine */
	uint8_t cls;	    /* enum frag_class of its alloc */
	uint64_t requested; /* of the request; set by the engine */
};

/* The use of every byte, for metrics (see docs/metrics.md). Granted bytes. */
struct frag_usage {
	uint64_t allocated_bytes;      /* handed out */
	uint64_t waiting_bytes;	       /* freed by the program, waiting for a stream */
	uint64_t non_releasable_bytes; /* free, but in a segment (or page) with live blocks */
	uint64_t releasable_bytes;     /* free, and a trim would return it */
	uint64_t largest_free_bytes;
	uint64_t free_bytes; /* non-releasable + releasable */
	uint64_t segments_count, blocks_count;
};

enum frag_block_state { FRAG_STATE_LIVE, FRAG_STATE_WAITING, FRAG_STATE_FREE };

/*
 * Walk over the memory that a policy holds: segments in address order, each followed by its blocks
 * in address order, without gaps over its mapped bytes. releasable (free blocks only): bytes of the
 * block that a trim would return.
 */
struct frag_visitor {
	void *ctx;
	void (*segment)(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream);
	void (*block)(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		      uint64_t releasable);
};

/* What a policy reports about segments, for verify and logs (kinds as in PyTorch). */
enum frag_segment_event {
	FRAG_SEGMENT_ALLOC,
	FRAG_SEGMENT_FREE,
	FRAG_SEGMENT_MAP,
	FRAG_SEGMENT_UNMAP,
};
typedef void (*frag_journal_fn)(void *ctx, enum frag_segment_event kind, frag_addr_t addr,
				uint64_t bytes, uint32_t stream);

/* One of a policy's own counters ("active_bytes.all.peak", 123). */
typedef void (*frag_counter_fn)(void *ctx, const char *name, int64_t value);

struct frag_policy;

/* What a policy gets. Borrowed for the lifetime of the instance. */
struct frag_policy_env {
	struct frag_device *dev;
	uint64_t limit_bytes;	     /* per-process limit on reserved; UINT64_MAX = none */
	uint64_t device_total_bytes; /* as the runtime reports it; sizes of address reservations
				      * derive from it */
	uint64_t seed;
	uint32_t streams_count; /* a hint: there may be more streams */
	const char *inner;	/* text after '/' in "limit:bytes=8G/pytorch", or NULL */
	/*
	 * Waits for everything: the engine completes every pending free (calls this instance's
	 * `free` for each) before it returns. NULL if nothing can be pending.
	 */
	void (*sync)(void *ctx);
	void *sync_ctx;
	frag_journal_fn journal; /* may be NULL */
	void *journal_ctx;
	/* Release of the allocator that made the recording, numbered as by that policy (PyTorch:
	 * frag/torch.h); 0 = unknown, or no recording. */
	unsigned source_release;
	/*
	 * For a restored state with unknown order among equal blocks: does the recording show the
	 * block at addr as the next one handed out (release: returned)? NULL: unknown.
	 */
	bool (*recorded_next)(void *ctx, bool release, frag_addr_t addr);
	void *recorded_ctx;
	/* Which private pools of the recording never split blocks; NULL = none. */
	bool (*no_split)(const void *ctx, uint16_t pool);
	const void *no_split_ctx;
	uint32_t ordinal; /* of the device; each device has its own instance */
};

/* flags of a policy */
#define FRAG_POLICY_HIDDEN (1u << 0)  /* not listed, but tested */
#define FRAG_POLICY_ADAPTOR (1u << 1) /* wraps env->inner */
#define FRAG_POLICY_STACK (1u << 2)   /* frees must come in reverse order of allocs */
#define FRAG_POLICY_LINEAR (1u << 3)  /* its rule is linear in the number of blocks */
#define FRAG_POLICY_FOREIGN_SYNC \
	(1u << 4) /* has its own rule across streams (free at request is allowed) */
#define FRAG_POLICY_NO_MEMORY (1u << 5) /* holds no memory: its addresses are invented */
/* Has seen the trace in advance, through a plan (frag_step_plan_write) in its option "plan": shown,
 * but never recommended. Counts the requests that the plan served in FRAG_COUNTER_PLAN_HITS. */
#define FRAG_POLICY_PLANNED (1u << 6)
#define FRAG_COUNTER_PLAN_HITS "planned.hits"
/* What the policy does itself, so a live program (src/inject/live) need not. STREAMS: gives memory
 * to another stream only when the work that used it is done. FENCED: unmaps memory only then.
 * POOLS: keeps private pools separate, and their memory in place until the pool itself is
 * trimmed. */
#define FRAG_POLICY_STREAMS (1u << 7)
#define FRAG_POLICY_FENCED (1u << 8)
#define FRAG_POLICY_POOLS (1u << 9)

/* Initial state of a history that began late. */
struct frag_initial_block {
	frag_addr_t addr;
	uint64_t bytes; /* block size */
	uint64_t requested;
	uint32_t stream;
	uint32_t slot; /* the live slot that its free will name */
	bool waiting;  /* freed by the program, but not completed */
};
struct frag_initial_segment {
	frag_addr_t addr;
	uint64_t bytes;
	uint32_t stream;
	uint16_t pool;
	bool small, expandable;
	uint32_t first_block, blocks_count; /* index into blocks[]: only occupied blocks, in address
					     * order */
	frag_addr_t range_addr;		    /* expandable: base of its reservation, 0 = unknown */
};
struct frag_initial_state {
	const struct frag_initial_segment *segments;
	size_t segments_count;
	const struct frag_initial_block *blocks;
	size_t blocks_count;
};

/* Another name of a policy, with some options set. */
struct frag_policy_alias {
	const char *name, *options;
};

struct frag_policy_ops {
	uint32_t abi;		     /* FRAG_POLICY_ABI */
	const char *name;	     /* as on the command line: '-' where the file has '_' */
	const char *summary;	     /* one line, lower case */
	const char *source;	     /* where the rules come from: repository, file, version */
	uint32_t flags;		     /* FRAG_POLICY_… */
	uint32_t needs;		     /* FRAG_CAN_… of the device */
	const struct frag_opt *opts; /* NULL = none */
	size_t params_size;	     /* size of the struct that opts fill; 0 = none */

	/*
	 * Optional: parses an option text that is not "key=value,…" (PyTorch's "key:value,…"). On
	 * entry, params holds the defaults.
	 */
	int (*parse)(const char *text, void *params, struct frag_err *err);
	/* Optional: checks rules between options, after parsing. */
	int (*validate)(const void *params, struct frag_err *err);

	/* Required. params is borrowed until destroy. On failure nothing is left behind. */
	int (*create)(const struct frag_policy_env *env, const void *params, void **self,
		      struct frag_err *err);
	/* Required. Returns every segment, including those with live blocks. */
	void (*destroy)(void *self);
	/*
	 * Required. 0 and *out (addr, granted, handle, cls), FRAG_OOM, or an error. Live blocks
	 * never overlap. After FRAG_OOM or an error the state is valid and the call may be
	 * repeated.
	 */
	int (*alloc)(void *self, const struct frag_request *req, struct frag_block *out,
		     struct frag_err *err);
	/*
	 * Required. The block may be reused from now on (at least on its own stream). Called once
	 * per granted block. An error means that the upstream failed while returning memory; the
	 * block is free anyway.
	 */
	int (*free)(void *self, const struct frag_block *block, struct frag_err *err);

	/* Optional. The program has freed the block, but another stream still uses it: `free`
	 * follows later. Not called if both happen at once. */
	void (*free_requested)(void *self, const struct frag_block *block);
	/* Optional. empty_cache: returns what can be returned. pool 0: the default pools; p: only
	 * private pool p (all, if the policy has no pools). The policy calls env->sync itself if
	 * its source does. */
	int (*trim)(void *self, uint16_t pool, struct frag_err *err);
	/* Optional. The engine has synchronised the whole device (run option sync_every). */
	int (*synced)(void *self, struct frag_err *err);
	/* Optional. The replay reached a mark (step boundary). */
	void (*mark)(void *self, bool begins);
	/* Required, except for FRAG_POLICY_NO_MEMORY: walks what the policy holds. */
	void (*visit)(void *self, const struct frag_visitor *v);
	/* Optional. Checks every invariant; reports the first broken one in err (FRAG_ECHECK). */
	int (*check)(void *self, struct frag_err *err);
	/* Optional. O(1) usage from running counters; largest_free_bytes may be 0 = unknown without
	 * a walk. Without this function the engine walks. */
	void (*usage)(void *self, struct frag_usage *out);
	/* Optional. The policy's own counters, with the names of the source. */
	void (*counters)(void *self, frag_counter_fn fn, void *ctx);
	/* Optional. Starts from this state instead of empty, and fills handles[i] for blocks[i]. */
	int (*restore)(void *self, const struct frag_initial_state *initial, uint64_t *handles,
		       struct frag_err *err);

	/* Optional, ends with a NULL name. */
	const struct frag_policy_alias *aliases;
	/* Optional, both or neither: the environment variable of the program that the policy
	 * models, and the options as one would set them there (frag_opt_echo with ':'). Returns the
	 * needed length, or SIZE_MAX if they cannot be set there. `parse` reads them back. */
	const char *conf_variable;
	size_t (*conf)(const void *params, char *buf, size_t cap);

	/* Optional. What a trim returns: a clause, lower case. */
	const char *trims;
	/* Optional. What the rules were checked against: the version, and whether run or read. */
	const char *checked;
};

/*
 * Most files name what they define alike. So the constant says the name and the rules, then
 *
 *	FRAG_POLICY_PARAMS(struct params), FRAG_POLICY_HOOKS, FRAG_POLICY_LOOKS, .trim = trim,
 */
#define FRAG_POLICY_HOOKS \
	.abi = FRAG_POLICY_ABI, .create = create, .destroy = destroy, .alloc = alloc, \
	.free = release
#define FRAG_POLICY_LOOKS .visit = visit, .usage = usage, .check = check
#define FRAG_POLICY_PARAMS(type) .opts = opts, .params_size = sizeof(type)

/*
 * Parses a policy as on the command line: "name", "name:key=value,…", or "adaptor:opts/inner…".
 * Errors: FRAG_EUSAGE with the nearest word. The result is immutable, may be shared, and creates
 * any number of instances.
 */
struct frag_policy_spec;
int frag_policy_spec_parse(const char *text, struct frag_policy_spec **out, struct frag_err *err);
void frag_policy_spec_destroy(struct frag_policy_spec *spec);
FRAG_AUTO_AT(struct frag_policy_spec *, frag_policy_spec_destroy)
const struct frag_policy_ops *frag_policy_spec_ops(const struct frag_policy_spec *spec);
const void *frag_policy_spec_params(const struct frag_policy_spec *spec);
/* The policy that holds the memory, inside all adaptors. */
const struct frag_policy_ops *frag_policy_spec_core(const struct frag_policy_spec *spec);
/* The original text, and the shortest equivalent: "name:key=value" with the options that differ
 * from their defaults ("name:key:value" if the policy has a `conf`). Borrowed. */
const char *frag_policy_spec_text(const struct frag_policy_spec *spec);
const char *frag_policy_spec_echo(const struct frag_policy_spec *spec);
/* The file that a policy or adaptor in it writes (its option "file"), or NULL. Borrowed. */
const char *frag_policy_spec_file(const struct frag_policy_spec *spec);
/* The options for ops->conf_variable; "" = defaults, NULL = it cannot express them. Borrowed. */
const char *frag_policy_spec_conf(const struct frag_policy_spec *spec);

/* One running instance. env is copied. */
struct frag_policy {
	const struct frag_policy_ops *ops;
	void *self;
	struct frag_policy_env env;
};
int frag_policy_create(const struct frag_policy_spec *spec, const struct frag_policy_env *env,
		       struct frag_policy *out, struct frag_err *err);
void frag_policy_destroy(struct frag_policy *policy);

/*
 * For policies that wrap others: opens the policy in `text` on the same upstream. The caller owns
 * the instance and its spec, and closes them with frag_inner_close. sync and journal are passed
 * through unchanged.
 */
struct frag_inner {
	struct frag_policy policy;
	struct frag_policy_spec *spec;
};
int frag_inner_open(const char *text, const struct frag_policy_env *env, struct frag_inner *out,
		    struct frag_err *err);
void frag_inner_close(struct frag_inner *inner);

/* The registry, sorted by name, including hidden policies. */
const struct frag_policy_ops *const *frag_policy_list(size_t *count);
const struct frag_policy_ops *frag_policy_find(const char *name); /* NULL if unknown */
/* The i-th alias, with the policy and options that it stands for; NULL past the end. Static. */
const char *frag_policy_short(size_t i, const struct frag_policy_ops **ops, const char **options);
/* FRAG_CAN_ bits as text, "cudaMalloc, memory pools"; "" for none. Returns the needed length. */
size_t frag_policy_needs_text(uint32_t needs, char *buf, size_t cap);

/* Usage by walking: works for every policy with `visit`. O(segments + blocks). */
void frag_policy_usage_walk(struct frag_policy *policy, struct frag_usage *out);

#endif
