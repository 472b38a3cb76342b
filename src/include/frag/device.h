/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: the source of memory for policies. One table of functions, three back ends (sim, cuda,
 * null), and one front (frag_dev_*) that every caller uses. Only the front counts calls, driver
 * time and reserved bytes; a policy's own claim is never used.
 *
 * Words. segment: what one frag_dev_alloc returned (cudaMalloc). range: a piece of virtual address
 * space (cuMemAddressReserve). handle: physical memory (cuMemCreate). reserved: physical bytes
 * taken and not returned.
 *
 * Preconditions of all calls: the device is open and used by one thread at a time; bytes > 0.
 * Results: 0, FRAG_OOM (1) if memory can run out, or a negative code with an `err` that names the
 * call.
 *
 * Ownership: the caller returns what it took (free, release after unmap, unreserve). frag_dev_close
 * on a device that is not empty is allowed; frag_dev_leaks shows the leak.
 */
#ifndef FRAG_DEVICE_H
#define FRAG_DEVICE_H

#include <frag/base.h>
#include <frag/error.h>

struct frag_device;

/* kinds of driver call: name, the driver's name */
#define FRAG_CALL_LIST(X) \
	X(MALLOC, "cudaMalloc") \
	X(FREE, "cudaFree") \
	X(RESERVE, "cuMemAddressReserve") \
	X(UNRESERVE, "cuMemAddressFree") \
	X(CREATE, "cuMemCreate") \
	X(RELEASE, "cuMemRelease") \
	X(MAP, "cuMemMap") \
	X(SET_ACCESS, "cuMemSetAccess") \
	X(UNMAP, "cuMemUnmap") \
	X(POOL_CREATE, "cudaMemPoolCreate") \
	X(POOL_DESTROY, "cudaMemPoolDestroy") \
	X(ASYNC_MALLOC, "cudaMallocAsync") \
	X(ASYNC_FREE, "cudaFreeAsync") \
	X(POOL_TRIM, "cudaMemPoolTrimTo") \
	X(MANAGED, "cudaMallocManaged") \
	X(MANAGED_FREE, "cudaFree(managed)") \
	X(PREFETCH, "cudaMemPrefetchAsync") \
	X(FENCE, "cudaEventRecord") \
	X(QUERY, "cudaEventQuery") \
	X(SYNC, "cudaStreamSynchronize") \
	X(DEVICE_SYNC, "cudaDeviceSynchronize") \
	X(MEM_INFO, "cudaMemGetInfo")

enum frag_call {
#define FRAG_X_(name, text) FRAG_CALL_##name,
	FRAG_CALL_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_CALL_COUNT
};

/* Static name of a call as the driver spells it. */
const char *frag_call_name(enum frag_call call);

/* what a device can do; a policy's needs use the same bits */
#define FRAG_CAN_MALLOC (1u << 0)
#define FRAG_CAN_VMM (1u << 1)
#define FRAG_CAN_ASYNC (1u << 2)
#define FRAG_CAN_MANAGED (1u << 3)

struct frag_device_info {
	char name[96];
	char driver[96];	/* driver and runtime as text; "" = none */
	uint64_t total_bytes;	/* what the runtime reports as the card's memory */
	uint64_t context_bytes; /* the part of these that the CUDA context takes */
	uint64_t granule_bytes; /* physical granule, 2 MiB on data-centre parts */
	uint32_t can;		/* FRAG_CAN_… */
	bool modelled;		/* times are modelled (sim), not measured */
};

/* Attributes of a cudaMemPool. */
struct frag_mempool_attr {
	uint64_t release_threshold; /* bytes; UINT64_MAX: never release at a sync */
	bool reuse_follow_event_dependencies;
	bool reuse_allow_opportunistic;
	bool reuse_allow_internal_dependencies;
};

struct frag_mempool_usage {
	uint64_t reserved_bytes, reserved_peak_bytes;
	uint64_t used_bytes, used_peak_bytes;
};

/* State and price of managed memory on a device. */
struct frag_managed_usage {
	uint64_t resident_bytes, resident_peak_bytes;
	uint64_t moved_in_bytes, moved_out_bytes; /* host to card, card to host */
	uint64_t moved_ns;			  /* modelled or measured time of moving */
	uint64_t faults, evictions;
};

/*
 * Contents of a block. Every 16 bytes of a filled block hold id, generation, offset and a checksum
 * of the three, so a wrong byte shows which block wrote it. Work runs on the card in the order of
 * the calls. A block's memory must stay mapped until it is returned through the device, which waits
 * if necessary.
 */
enum frag_content_op {
	FRAG_CONTENT_FILL,   /* write the pattern into all bytes */
	FRAG_CONTENT_VERIFY, /* compare all bytes with the pattern */
	FRAG_CONTENT_DELAY,  /* keep block.stream busy for block.bytes nanoseconds */
};
struct frag_content {
	frag_addr_t addr;
	uint64_t bytes;
	uint32_t stream;
	uint32_t id, generation; /* chosen by the caller: which block, and which of its uses */
};

/* The first 16 bytes that a verify found changed, and the total number of changes. */
struct frag_content_fault {
	uint64_t count;		 /* changed pieces of 16 bytes; 0 = no fault */
	uint64_t offset;	 /* in the block */
	uint32_t id, generation; /* the block that was verified */
	bool foreign;		 /* another block's pattern was found there: */
	uint32_t other_id, other_generation;
	uint64_t other_offset;
	uint32_t found[4];
};

/*
 * What the driver says besides: by how much free memory has fallen since opening, at the moment of
 * the highest reserved bytes; 0: unknown, or managed memory has been used.
 */
struct frag_dev_observed {
	uint64_t reserved_bytes, mem_info_bytes;
	/* speed of the host: a cudaMalloc and a cudaFree of 4 MiB, at frag_dev_make_ready and at
	 * this call; 0 = unknown */
	uint64_t pair_ns, pair_after_ns;
};

/*
 * One back end. `priv` is its own state. Pointers may be NULL if the matching FRAG_CAN_ bit is not
 * set; `info` and `close` are required. A back end writes the modelled time of a call to *ns; if it
 * does not, the front measures with the host clock.
 */
struct frag_device_ops {
	const char *name;
	const char *summary;
	void (*close)(void *priv);
	void (*info)(void *priv, struct frag_device_info *out);

	int (*alloc)(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		     struct frag_err *err);
	int (*free)(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err);

	int (*reserve)(void *priv, uint64_t bytes, frag_addr_t hint, frag_addr_t *out, uint64_t *ns,
		       struct frag_err *err);
	int (*unreserve)(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			 struct frag_err *err);
	int (*create)(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
		      struct frag_err *err);
	int (*release)(void *priv, uint64_t handle, uint64_t *ns, struct frag_err *err);
	int (*map)(void *priv, frag_addr_t addr, uint64_t handle, uint64_t *ns,
		   struct frag_err *err);
	int (*set_access)(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			  struct frag_err *err);
	int (*unmap)(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
		     struct frag_err *err);

	int (*mempool_create)(void *priv, const struct frag_mempool_attr *attr, uint64_t *pool,
			      uint64_t *ns, struct frag_err *err);
	int (*mempool_destroy)(void *priv, uint64_t pool, uint64_t *ns, struct frag_err *err);
	int (*mempool_alloc)(void *priv, uint64_t pool, uint64_t bytes, uint32_t stream,
			     frag_addr_t *out, uint64_t *ns, struct frag_err *err);
	int (*mempool_free)(void *priv, uint64_t pool, frag_addr_t addr, uint32_t stream,
			    uint64_t *ns, struct frag_err *err);
	int (*mempool_trim)(void *priv, uint64_t pool, uint64_t keep_bytes, uint64_t *ns,
			    struct frag_err *err);
	void (*mempool_usage)(void *priv, uint64_t pool, struct frag_mempool_usage *out);

	int (*managed_alloc)(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
			     struct frag_err *err);
	int (*managed_free)(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err);
	/* Brings [addr, addr+bytes) onto the card, by an explicit prefetch or by first touch. */
	int (*managed_touch)(void *priv, frag_addr_t addr, uint64_t bytes, bool prefetch,
			     uint64_t *ns, struct frag_err *err);
	void (*managed_usage)(void *priv, struct frag_managed_usage *out);

	/* Fence: marks the work queued on a stream. fence_done: *done = all of it has run. */
	int (*fence_record)(void *priv, uint32_t stream, uint64_t *fence, uint64_t *ns,
			    struct frag_err *err);
	int (*fence_done)(void *priv, uint64_t fence, uint64_t lag_ns, bool *done, uint64_t *ns,
			  struct frag_err *err);
	int (*sync)(void *priv, uint32_t stream, bool whole_device, uint64_t *ns,
		    struct frag_err *err);
	int (*mem_info)(void *priv, uint64_t *free_bytes, uint64_t *total_bytes, uint64_t *ns,
			struct frag_err *err);
	/* Physical bytes taken through this device (segments, handles, pools, resident managed). */
	uint64_t (*reserved)(void *priv);

	/* Optional, for devices with real memory. wait: wait until all work so far is done. */
	int (*content)(void *priv, enum frag_content_op op, const struct frag_content *block,
		       struct frag_err *err);
	int (*content_fault)(void *priv, bool wait, struct frag_content_fault *out,
			     struct frag_err *err);
	void (*observed)(void *priv, struct frag_dev_observed *out);
	int (*make_ready)(void *priv, uint64_t given_back_bytes, struct frag_err *err);
	/* Optional, where the front measures: called before a call, outside of its measured time. */
	void (*before)(void *priv, enum frag_call call);
};

/*
 * For a device with all operations but optional ones, in functions prefix_close, prefix_info, …:
 * FRAG_DEVICE_DECLARE(prefix) declares them, FRAG_DEVICE_OPS(prefix) puts them into its table.
 */
/* clang-format off */
#define FRAG_DEVICE_OPS_LIST_(X, prefix) \
	X(prefix, info) X(prefix, alloc) X(prefix, free) X(prefix, reserve) X(prefix, unreserve) X(prefix, create) \
	X(prefix, release) X(prefix, map) X(prefix, set_access) X(prefix, unmap) X(prefix, mempool_create) \
	X(prefix, mempool_destroy) X(prefix, mempool_alloc) X(prefix, mempool_free) X(prefix, mempool_trim) \
	X(prefix, mempool_usage) X(prefix, managed_alloc) X(prefix, managed_free) X(prefix, managed_touch) \
	X(prefix, managed_usage) X(prefix, fence_record) X(prefix, fence_done) X(prefix, sync) X(prefix, mem_info) \
	X(prefix, reserved)
/* clang-format on */
#define FRAG_DEVICE_OP_DECLARE_(prefix, op) \
	__typeof__(*((struct frag_device_ops *)0)->op) prefix##_##op;
#define FRAG_DEVICE_OP_SET_(prefix, op) , .op = prefix##_##op
#define FRAG_DEVICE_DECLARE(prefix) \
	FRAG_DEVICE_OP_DECLARE_(prefix, close) \
	FRAG_DEVICE_OPS_LIST_(FRAG_DEVICE_OP_DECLARE_, prefix)
#define FRAG_DEVICE_OPS(prefix) \
	.close = prefix##_close FRAG_DEVICE_OPS_LIST_(FRAG_DEVICE_OP_SET_, prefix)

struct frag_call_stat {
	uint64_t count;	 /* calls that succeeded */
	uint64_t failed; /* calls that were refused (out of memory) or failed */
	uint64_t bytes;	 /* total bytes of the successful calls */
	uint64_t ns;	 /* driver time of all calls, modelled or measured */
};

/* One entry of the call log, in order, to compare a simulated card with a real one. */
typedef void (*frag_call_log_fn)(void *ctx, enum frag_call call, uint64_t bytes, int result);

/*
 * The front. Only src/device writes its fields, except the engine, which sets `now_ns` (recorded
 * time) before each event.
 */
struct frag_device {
	const struct frag_device_ops *ops;
	void *priv;
	uint64_t now_ns;	 /* recorded time, ns since the trace began */
	uint64_t reserved_bytes; /* now */
	uint64_t reserved_peak_bytes;
	uint64_t driver_ns;    /* sum over all calls */
	uint64_t driver_calls; /* number of all calls, including failed ones */
	uint64_t fail_call;    /* the number (from 1) of the call that fails on demand; 0 = none */
	bool fail_all_after;   /* and every call after it */
	uint64_t limit_bytes;  /* mallocs beyond it are refused; 0 = none */
	bool abandoned; /* about to be closed: calls that return memory do nothing and are not
			 * counted */
	struct frag_call_stat stat[FRAG_CALL_COUNT];
	frag_call_log_fn log;
	void *log_ctx;
	frag_addr_t logged_addr; /* address of the call passed to `log`; 0 = none */
	/* called with every address that a cudaMalloc or cuMemAddressReserve got; may be NULL */
	void (*placed)(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr);
	void *placed_ctx;
};

/*
 * Your own device: a front around `ops` and `priv`. On success it owns both; frag_dev_close frees
 * them, `priv` through ops->close. If ops->info says that times are not modelled, the front times
 * calls with the host clock; otherwise the back end writes *ns in every call. docs/external-device
 * is a complete example. Errors: FRAG_ENOMEM.
 */
int frag_dev_open(const struct frag_device_ops *ops, void *priv, struct frag_device **out,
		  struct frag_err *err);
void frag_dev_info(const struct frag_device *dev, struct frag_device_info *out);
void frag_dev_close(struct frag_device *dev); /* NULL is allowed */
FRAG_AUTO_AT(struct frag_device *, frag_dev_close)

/* cudaMalloc / cudaFree. `bytes` of the free: the requested bytes, for the log and statistics. */
int frag_dev_alloc(struct frag_device *dev, uint64_t bytes, frag_addr_t *out, struct frag_err *err);
int frag_dev_free(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, struct frag_err *err);

/*
 * Virtual memory management. Sizes and addresses are multiples of the granule. map maps a whole
 * handle at addr; a handle may be mapped at several places. unmap covers whole mappings. release of
 * a mapped handle is allowed: like the driver, it returns the memory when the last mapping is gone.
 */
int frag_dev_reserve(struct frag_device *dev, uint64_t bytes, frag_addr_t hint, frag_addr_t *out,
		     struct frag_err *err);
int frag_dev_unreserve(struct frag_device *dev, frag_addr_t addr, uint64_t bytes,
		       struct frag_err *err);
int frag_dev_create(struct frag_device *dev, uint64_t bytes, uint64_t *handle,
		    struct frag_err *err);
int frag_dev_release(struct frag_device *dev, uint64_t handle, uint64_t bytes,
		     struct frag_err *err);
int frag_dev_map(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, uint64_t handle,
		 struct frag_err *err);
int frag_dev_set_access(struct frag_device *dev, frag_addr_t addr, uint64_t bytes,
			struct frag_err *err);
int frag_dev_unmap(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, struct frag_err *err);

int frag_dev_mempool_create(struct frag_device *dev, const struct frag_mempool_attr *attr,
			    uint64_t *pool, struct frag_err *err);
int frag_dev_mempool_destroy(struct frag_device *dev, uint64_t pool, struct frag_err *err);
int frag_dev_mempool_alloc(struct frag_device *dev, uint64_t pool, uint64_t bytes, uint32_t stream,
			   frag_addr_t *out, struct frag_err *err);
int frag_dev_mempool_free(struct frag_device *dev, uint64_t pool, frag_addr_t addr, uint64_t bytes,
			  uint32_t stream, struct frag_err *err);
int frag_dev_mempool_trim(struct frag_device *dev, uint64_t pool, uint64_t keep_bytes,
			  struct frag_err *err);
void frag_dev_mempool_usage(struct frag_device *dev, uint64_t pool, struct frag_mempool_usage *out);

int frag_dev_managed_alloc(struct frag_device *dev, uint64_t bytes, frag_addr_t *out,
			   struct frag_err *err);
int frag_dev_managed_free(struct frag_device *dev, frag_addr_t addr, uint64_t bytes,
			  struct frag_err *err);
int frag_dev_managed_touch(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, bool prefetch,
			   struct frag_err *err);
void frag_dev_managed_usage(struct frag_device *dev, struct frag_managed_usage *out);

/* lag_ns: on sim, the recorded time after which queued work counts as done; ignored on cuda. */
int frag_dev_fence_record(struct frag_device *dev, uint32_t stream, uint64_t *fence,
			  struct frag_err *err);
int frag_dev_fence_done(struct frag_device *dev, uint64_t fence, uint64_t lag_ns, bool *done,
			struct frag_err *err);
int frag_dev_sync(struct frag_device *dev, uint32_t stream, struct frag_err *err);
int frag_dev_sync_all(struct frag_device *dev, struct frag_err *err);
int frag_dev_mem_info(struct frag_device *dev, uint64_t *free_bytes, uint64_t *total_bytes,
		      struct frag_err *err);

/*
 * Contents (see enum frag_content_op). These calls and their time do not count in the statistics.
 * Errors: FRAG_ENOTSUP on a device without real memory. fault: the first one so far; out->count 0 =
 * none.
 */
bool frag_dev_has_content(const struct frag_device *dev);
int frag_dev_content(struct frag_device *dev, enum frag_content_op op,
		     const struct frag_content *block, struct frag_err *err);
int frag_dev_content_fault(struct frag_device *dev, bool wait, struct frag_content_fault *out,
			   struct frag_err *err);
/*
 * Prepares a measurement: waits until the driver has cleared recently returned memory (at most
 * given_back_bytes), and wakes the card. Does not count as a call. Does nothing on a device without
 * real memory.
 */
int frag_dev_make_ready(struct frag_device *dev, uint64_t given_back_bytes, struct frag_err *err);
/* False if the device has no other source to ask. */
bool frag_dev_observed(struct frag_device *dev, struct frag_dev_observed *out);
/* Speed of the host: the mean of the known of pair_ns and pair_after_ns; 0 = unknown. */
uint64_t frag_dev_host_pair(const struct frag_dev_observed *seen);

/*
 * The simulated card. `place`, if set, is called before the device places anything. It may set the
 * address (0), refuse like the real driver (FRAG_OOM), leave it to the device's own rule (-1), or
 * suggest an address to use if it is free (FRAG_PLACE_WISH). Used to replay recorded addresses.
 * kind: FRAG_CALL_MALLOC, _RESERVE or _CREATE (addr unused for the last).
 */
#define FRAG_PLACE_WISH 2
typedef int (*frag_place_fn)(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr);

struct frag_sim_config {
	const char *name;	/* shown; NULL = "sim" */
	uint64_t total_bytes;	/* 0 = the card of the bundled recordings (h200) */
	uint64_t context_bytes; /* UINT64_MAX = that card's context */
	uint64_t local_bytes;	/* stacks of its threads, which take addresses; 0 = that card's */
	const struct frag_cost *cost; /* NULL = the built-in H200 profile; borrowed while open */
	frag_place_fn place;
	void *place_ctx;
	/* The host's pause since the last call, in ns; NULL = no pauses. Called before a cudaMalloc
	 * or cudaFree, which takes longer after a pause. */
	uint64_t (*pause)(void *ctx, enum frag_call kind);
	void *pause_ctx;
	/* Called before new address space is needed: says with frag_sim_host_take and _give what
	 * the host process has mapped and unmapped since. NULL = nothing. */
	void (*host)(void *ctx);
	void *host_ctx;
	/* When work queued on a stream is done. work_idle: at once, as on an idle card; else after
	 * work_lag_ns of recorded time, 0 = the caller's lag (10 ms for most). */
	bool work_idle;
	uint64_t work_lag_ns;
	/* How many times slower the host is than the profile's (frag_cost_host_ratio). Each kind of
	 * call scales in its own way; clearing memory does not scale. 0 = 1. */
	double host_ratio;
};

/* Errors: FRAG_ENOMEM, FRAG_EUSAGE (context above total). */
int frag_sim_open(const struct frag_sim_config *cfg, struct frag_device **out,
		  struct frag_err *err);
/* Other effects of a program on the card's address space (sim_place.c): a kernel needs local memory
 * of this size, for all threads, and permanently maps `behind` bytes after it; a library
 * permanently takes addresses, by cudaMalloc (hold) or cuMemMap (map). dev: from frag_sim_open. */
void frag_sim_local(struct frag_device *dev, uint64_t bytes, uint64_t behind);
void frag_sim_hold(struct frag_device *dev, uint64_t bytes);
void frag_sim_hold_mapped(struct frag_device *dev, uint64_t bytes);
/* Addresses of the host process, which the kernel gives from the same space. What it had before the
 * card was opened lies from FRAG_SIM_HOST on (any multiple of 32 MiB would do). take: where new
 * ones lie, 0 = no room; give: any part. */
#define FRAG_SIM_HOST 0x7f0002000000ull
frag_addr_t frag_sim_host_take(struct frag_device *dev, uint64_t bytes);
void frag_sim_host_give(struct frag_device *dev, frag_addr_t addr, uint64_t bytes);
/* Memory of the card that libraries take, without addresses; what was taken: all that is left,
 * where that is less. vacate: at most what was taken. */
uint64_t frag_sim_occupy(struct frag_device *dev, uint64_t bytes);
void frag_sim_vacate(struct frag_device *dev, uint64_t bytes);
/* A card that processes share, each with its own: `others` says what the others hold, in bytes. It
 * is told what this one holds and what it asks for, which it grants to no other if it fits. */
typedef uint64_t (*frag_sim_others_fn)(void *ctx, uint64_t used_bytes, uint64_t asked_bytes);
void frag_sim_share(struct frag_device *dev, frag_sim_others_fn others, void *ctx);
/* Unlimited memory, no cost, addresses that only grow; shows what the simulator itself costs. */
int frag_null_open(struct frag_device **out, struct frag_err *err);
/* `ordinal` as in the CUDA runtime. Errors: FRAG_EDEVICE "no driver" or "no device". */
int frag_cuda_open(int ordinal, struct frag_device **out, struct frag_err *err);
/* A real card, of which only a part is used, so that tests can run out of memory without filling
 * it. Only the thread that opens it may use it. */
struct frag_cuda_config {
	int ordinal;
	uint64_t total_bytes;	    /* 0 = the whole card */
	uint64_t context_bytes;	    /* part of these; only if total_bytes is given */
	uint64_t managed_max_bytes; /* most managed memory at a time; 0 = a quarter of the free
				    * memory */
};
int frag_cuda_open_config(const struct frag_cuda_config *cfg, struct frag_device **out,
			  struct frag_err *err);
/* Was the CUDA back-end built in? */
bool frag_cuda_built(void);
/* Cards that can be opened; 0 without a driver. */
int frag_cuda_count(void);

/* Number of segments, ranges, handles and pools not returned; 0 = no leak. */
uint64_t frag_dev_leaks(const struct frag_device *dev);

/* Cost profile: modelled ns of a call by size, from a CSV or built in. */
struct frag_cost;
const struct frag_cost *frag_cost_builtin(void); /* H200, see docs/measuring.md */
/* The built-in profile of a card, "h100" (results/h100/profile.csv); NULL if there is none. */
const struct frag_cost *frag_cost_of(const char *card);
int frag_cost_load(const char *path, struct frag_cost **out, struct frag_err *err);
void frag_cost_destroy(struct frag_cost *cost);
/* How many times slower a host with pair_ns (frag_dev_host_pair) is than the profile's host. cost
 * NULL: the built-in profile. 1 if either is unknown. */
double frag_cost_host_ratio(const struct frag_cost *cost, uint64_t pair_ns);

/* Known cards (cufrag list gpus). */
struct frag_gpu {
	const char *name;     /* "h200" */
	const char *label;    /* "NVIDIA H200 141 GB" */
	const char *vendor;   /* "NVIDIA"; "" = unknown */
	uint64_t total_bytes; /* as the runtime reports it */
	uint64_t context_bytes;
	const char *source;    /* where it was measured, or the public specification */
	double price_per_hour; /* in the user's currency; 0 = unknown */
	const char *profile;   /* name of the card that provides the cost profile (its own if it was
			        * measured); NULL = not a known card */
	bool asked_only;       /* recommended only if the user names the vendor */
};
const struct frag_gpu *frag_gpu_list(size_t *count);
/* By name, label, or the runtime's name ("NVIDIA H100 80GB HBM3"); NULL if unknown. */
const struct frag_gpu *frag_gpu_find(const char *name);

/* The chip of a known card: what programs see, and two figures from its data sheet. */
struct frag_gpu_chip {
	const char *name;  /* name of the card */
	const char *shown; /* as the runtime names it */
	int major, minor;  /* compute capability */
	int multiprocessors;
	int l2_mib, bus_bits, clock_mhz;
	double bytes_per_ns; /* memory bandwidth, GB/s */
	double tflops;	     /* dense, half precision */
	bool nvlink;	     /* boards of several have links between their cards */
};
/* NULL if it is not a CUDA card, or unknown. `name` as in frag_gpu.name. */
const struct frag_gpu_chip *frag_gpu_chip_find(const char *name);

/*
 * The part of a card's memory that advice keeps free by default. A recording of an allocator shows
 * neither the memory of libraries (cuBLAS, cuDNN, NCCL) nor inputs longer than those recorded.
 * Serving programs leave a tenth by default, too.
 */
#define FRAG_HEADROOM_RATIO 0.1

/* Memory of a card that advice keeps free, beside the context. */
struct frag_headroom {
	double ratio;		/* part of the card's memory */
	uint64_t bytes;		/* and these bytes */
	uint64_t outside_bytes; /* taken outside the allocator in the recording */
};

#define FRAG_CARDS_MAX 64u /* one bit each in the results of fit */

/* The cards that advice may name, ordered by the memory left to a process, then by price. */
struct frag_catalog {
	const struct frag_gpu *cards[FRAG_CARDS_MAX];
	size_t count;
	const char *path;     /* of the user's list, NULL = the known cards; borrowed */
	struct frag_gpu *own; /* storage of the user's list */
	char *texts;
};

/*
 * path: CSV with a header line: name, memory and, optionally, context, price_per_hour, vendor; NULL
 * = the known cards. vendor: only their cards, or "all"; NULL = NVIDIA's common cards of the known
 * ones, or the whole list. Errors: FRAG_EINPUT with path and line, FRAG_EUSAGE (no card of that
 * vendor), FRAG_ENOMEM.
 */
int frag_catalog_init(struct frag_catalog *c, const char *path, const char *vendor,
		      struct frag_err *err);
void frag_catalog_release(struct frag_catalog *c);

/* What a process may reserve on this card without context and headroom; 0 if nothing is left. */
uint64_t frag_gpu_room(const struct frag_gpu *gpu, const struct frag_headroom *headroom);
/* The first card with room: the cheapest if all have a price, else the smallest; or NULL. */
const struct frag_gpu *frag_catalog_pick(const struct frag_catalog *c, uint64_t reserved_bytes,
					 const struct frag_headroom *headroom);

#endif
