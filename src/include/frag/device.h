/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: where policies take their memory from. One table of functions,
 * three back-ends (sim, cuda, null), and one front (frag_dev_*) that every
 * caller uses. The front alone counts: calls, driver time and reserved bytes.
 * A policy's own claim is never the figure.
 *
 * Words. segment: what one frag_dev_alloc returned (cudaMalloc). range: a piece
 * of virtual address space (cuMemAddressReserve). handle: physical memory
 * (cuMemCreate). reserved: physical bytes taken and not given back.
 *
 * Preconditions of all calls: the device is open, used by one thread at a
 * time; bytes > 0. Results: 0, FRAG_OOM (1) where memory can run out, or a
 * negative code with `err` filled and naming the call.
 *
 * Ownership: the caller gives back what it took (free, release after unmap,
 * unreserve). frag_dev_close on a device that is not empty is allowed; the
 * leak shows in frag_dev_leaks.
 */
#ifndef FRAG_DEVICE_H
#define FRAG_DEVICE_H

#include <frag/base.h>
#include <frag/error.h>

struct frag_device;

/* kinds of driver call, in the words of the driver: name, cudaXxx/cuXxx */
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

/* what a device can do; a policy's needs are the same bits */
#define FRAG_CAN_MALLOC (1u << 0)
#define FRAG_CAN_VMM (1u << 1)
#define FRAG_CAN_ASYNC (1u << 2)
#define FRAG_CAN_MANAGED (1u << 3)

struct frag_device_info {
	char name[96];
	char driver[96];	/* driver and runtime in words; "" where there is none */
	uint64_t total_bytes;	/* what the runtime reports as the card's memory */
	uint64_t context_bytes; /* of these, taken by the CUDA context */
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
 * Contents of a block. Every 16 bytes of a filled block say whose they are:
 * id, generation and offset, and a checksum of the three, so that a byte which is
 * not as it should be tells who wrote it. Work runs on the card in the order
 * of the calls; a block's memory must stay mapped until it is given back through
 * the device, which waits where that is needed.
 */
enum frag_content_op {
	FRAG_CONTENT_TOUCH,  /* write the first byte of each 4 KiB */
	FRAG_CONTENT_FILL,   /* write the pattern into all bytes */
	FRAG_CONTENT_VERIFY, /* compare all bytes with the pattern */
	FRAG_CONTENT_COPY, /* copy the first half of the bytes to the second: what the card can do */
	FRAG_CONTENT_DELAY, /* keep block.stream busy for block.bytes nanoseconds */
};
struct frag_content {
	frag_addr_t addr;
	uint64_t bytes;
	uint32_t stream;
	uint32_t id, generation; /* the caller's: which block, and which of its lives */
};

/* The first 16 bytes that a verify found changed, and how many there are in all. */
struct frag_content_fault {
	uint64_t count;		 /* changed pieces of 16 bytes; 0 = no fault */
	uint64_t offset;	 /* in the block */
	uint32_t id, generation; /* the block that was verified */
	bool foreign;		 /* what was found there is another block's pattern: */
	uint32_t other_id, other_generation;
	uint64_t other_offset;
	uint32_t found[4];
};

/*
 * What others say about the memory taken, at the moment when more was reserved than ever before.
 * reserved_bytes is what the driver is known to have taken then: what was reserved, but for
 * managed memory, instead of what is resident of it, what the driver takes for that, which is
 * more (docs/measuring.md). So it need not be the device's greatest reserved_bytes.
 */
struct frag_dev_observed {
	uint64_t reserved_bytes, mem_info_bytes; /* less free memory than at the opening */
	bool has_nvml;
	uint64_t nvml_at_bytes, nvml_bytes; /* NVML is slow: asked less often, at this reserved */
	/* how fast the host is: a cudaMalloc and a cudaFree of 4 MiB, when it was made ready and when
	 * this is asked; 0 = not known */
	uint64_t pair_ns, pair_after_ns;
};

/*
 * One back-end. `priv` is its own state. All pointers may be NULL when the
 * matching FRAG_CAN_ bit is not set; `info`, `close` are compulsory.
 * A back-end writes the modelled time of a call to *ns; if it leaves it, the
 * front measures on the host clock.
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
	/* Bring [addr, addr+bytes) onto the card: by an explicit prefetch, or by first touch. */
	int (*managed_touch)(void *priv, frag_addr_t addr, uint64_t bytes, bool prefetch,
			     uint64_t *ns, struct frag_err *err);
	void (*managed_usage)(void *priv, struct frag_managed_usage *out);

	/* Fence: marks the work queued on a stream up to now. done: *done = it has all run. */
	int (*fence_record)(void *priv, uint32_t stream, uint64_t *fence, uint64_t *ns,
			    struct frag_err *err);
	int (*fence_done)(void *priv, uint64_t fence, uint64_t lag_ns, bool *done, uint64_t *ns,
			  struct frag_err *err);
	int (*sync)(void *priv, uint32_t stream, bool whole_device, uint64_t *ns,
		    struct frag_err *err);
	int (*mem_info)(void *priv, uint64_t *free_bytes, uint64_t *total_bytes, uint64_t *ns,
			struct frag_err *err);
	/* Physical bytes taken through this device now (segments, handles, pools, resident managed). */
	uint64_t (*reserved)(void *priv);

	/* Optional: devices with real memory. wait: until all work so far is done. */
	int (*content)(void *priv, enum frag_content_op op, const struct frag_content *block,
		       struct frag_err *err);
	int (*content_fault)(void *priv, bool wait, struct frag_content_fault *out,
			     struct frag_err *err);
	void (*observed)(void *priv, struct frag_dev_observed *out);
	int (*make_ready)(void *priv, uint64_t given_back_bytes, struct frag_err *err);
};

struct frag_call_stat {
	uint64_t count;	 /* calls that succeeded */
	uint64_t failed; /* calls refused (out of memory) or failed */
	uint64_t bytes;	 /* sum of the bytes of the successful ones */
	uint64_t ns;	 /* driver time of all, modelled or measured */
};

/* One line of the call log: what was asked, in order. For sim against real. */
typedef void (*frag_call_log_fn)(void *ctx, enum frag_call call, uint64_t bytes, int result);

/*
 * The front. Fields are read-only for everyone but src/device and the engine,
 * which sets `now_ns` (recorded time) before each event.
 */
struct frag_device {
	const struct frag_device_ops *ops;
	void *priv;
	uint64_t now_ns;	 /* recorded time, ns since the trace began */
	uint64_t reserved_bytes; /* now */
	uint64_t reserved_peak_bytes;
	uint64_t driver_ns;    /* sum over all calls */
	uint64_t driver_calls; /* number of all calls, also the failed ones */
	uint64_t fail_call;    /* the call number (from 1) that fails on demand; 0 = none */
	bool fail_all_after;   /* and every call after it */
	bool abandoned; /* closed next: calls that give back do nothing, and are not counted */
	struct frag_call_stat stat[FRAG_CALL_COUNT];
	frag_call_log_fn log;
	void *log_ctx;
	frag_addr_t logged_addr; /* of the call that `log` is told of; 0 = it has or got none */
	/* told of every address that a cudaMalloc or cuMemAddressReserve got; NULL = nobody */
	void (*placed)(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr);
	void *placed_ctx;
};

/*
 * A device of one's own: a front around `ops` and `priv`, which it owns from then on (on success
 * only); frag_dev_close gives both back, `priv` through ops->close. Where ops->info says that times
 * are not modelled, the host clock is read around calls, else such a back-end writes *ns in every
 * call. docs/external-device shows a whole one. Errors: FRAG_ENOMEM.
 */
int frag_dev_open(const struct frag_device_ops *ops, void *priv, struct frag_device **out,
		  struct frag_err *err);
void frag_dev_info(const struct frag_device *dev, struct frag_device_info *out);
void frag_dev_close(struct frag_device *dev); /* NULL is allowed */
FRAG_AUTO_AT(struct frag_device *, frag_dev_close)

/* cudaMalloc / cudaFree. `bytes` of the free: what was asked, for the log and statistics. */
int frag_dev_alloc(struct frag_device *dev, uint64_t bytes, frag_addr_t *out, struct frag_err *err);
int frag_dev_free(struct frag_device *dev, frag_addr_t addr, uint64_t bytes, struct frag_err *err);

/*
 * Virtual memory management. Sizes and addresses are multiples of the granule.
 * map puts a whole handle at addr; one handle may be mapped at several places.
 * unmap covers whole mappings. release after map is allowed: the memory goes
 * back when the last mapping is gone (as in the driver).
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

/* lag_ns: on sim the recorded time after which queued work counts as done; ignored on cuda. */
int frag_dev_fence_record(struct frag_device *dev, uint32_t stream, uint64_t *fence,
			  struct frag_err *err);
int frag_dev_fence_done(struct frag_device *dev, uint64_t fence, uint64_t lag_ns, bool *done,
			struct frag_err *err);
int frag_dev_sync(struct frag_device *dev, uint32_t stream, struct frag_err *err);
int frag_dev_sync_all(struct frag_device *dev, struct frag_err *err);
int frag_dev_mem_info(struct frag_device *dev, uint64_t *free_bytes, uint64_t *total_bytes,
		      struct frag_err *err);

/*
 * Contents (see enum frag_content_op): no driver calls in the sense of the
 * statistics, and their time is not counted. Errors: FRAG_ENOTSUP on a device without real memory.
 * fault: the first one so far; out->count 0 = none.
 */
bool frag_dev_has_content(const struct frag_device *dev);
int frag_dev_content(struct frag_device *dev, enum frag_content_op op,
		     const struct frag_content *block, struct frag_err *err);
int frag_dev_content_fault(struct frag_device *dev, bool wait, struct frag_content_fault *out,
			   struct frag_err *err);
/*
 * Before something is measured: waits until the driver has cleared what was given back lately
 * (given_back_bytes or less), and wakes the card. Counts as no call. Nothing to do on a device
 * without real memory.
 */
int frag_dev_make_ready(struct frag_device *dev, uint64_t given_back_bytes, struct frag_err *err);
/* False where nobody but the device itself knows. */
bool frag_dev_observed(struct frag_device *dev, struct frag_dev_observed *out);
/* How fast the host was in between: the mean of what is known of pair_ns and pair_after_ns, 0 = nothing. */
uint64_t frag_dev_host_pair(const struct frag_dev_observed *seen);

/*
 * The simulated card. `place`, if set, is asked before the device places
 * anything itself: it may give the address (return 0), refuse as the real
 * driver did (FRAG_OOM), decline (-1: the device's own rule applies), or wish
 * (FRAG_PLACE_WISH: this address if it is free). Used to feed recorded
 * addresses. kind: FRAG_CALL_MALLOC, _RESERVE or _CREATE (addr unused for the last).
 */
#define FRAG_PLACE_WISH 2
typedef int (*frag_place_fn)(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr);

struct frag_sim_config {
	const char *name;	      /* shown; NULL = "sim" */
	uint64_t total_bytes;	      /* 0 = the card of the recordings (h200) */
	uint64_t context_bytes;	      /* UINT64_MAX = that card's context */
	const struct frag_cost *cost; /* NULL = the built-in H200 profile; borrowed while open */
	frag_place_fn place;
	void *place_ctx;
	/* How long has the host done something else since the last call? ns; NULL = not at all. Asked
	 * before a cudaMalloc or cudaFree, which takes longer after a pause. */
	uint64_t (*pause)(void *ctx, enum frag_call kind);
	void *pause_ctx;
	/* When is work queued on a stream done? work_idle: at once, as on a card that has nothing to
	 * do; else after so much recorded time, 0 = what the asker says (10 ms for most). */
	bool work_idle;
	uint64_t work_lag_ns;
	/* How many times as slow as that of the profile is the host (frag_cost_host_ratio)? Each call
	 * follows it in its own way, clearing memory not at all. 0 = 1. */
	double host_ratio;
};

/* Errors: FRAG_ENOMEM, FRAG_EUSAGE (context above total). */
int frag_sim_open(const struct frag_sim_config *cfg, struct frag_device **out,
		  struct frag_err *err);
/* What else a program does to the address space of a card (sim_place.c): it runs a kernel, the first one; a library
 * takes bytes for good, counted in the context. dev: of frag_sim_open. */
void frag_sim_launched(struct frag_device *dev);
void frag_sim_hold(struct frag_device *dev, uint64_t bytes);
/* Endless memory, no cost, addresses that only grow: what the simulator itself costs. */
int frag_null_open(struct frag_device **out, struct frag_err *err);
/* `ordinal` of the CUDA runtime. FRAG_EDEVICE "no driver"/"no device" where there is none. */
int frag_cuda_open(int ordinal, struct frag_device **out, struct frag_err *err);
/* A real card, of which only a part may be used: so running out of memory is tested without
 * filling it. The thread that opens it uses it. */
struct frag_cuda_config {
	int ordinal;
	uint64_t total_bytes;	/* 0 = the whole card */
	uint64_t context_bytes; /* of these; only where total_bytes is given */
	uint64_t
		managed_max_bytes; /* managed memory out at a time; 0 = a quarter of what is free */
};
int frag_cuda_open_config(const struct frag_cuda_config *cfg, struct frag_device **out,
			  struct frag_err *err);
/* Was the CUDA back-end built in? */
bool frag_cuda_built(void);
/* Cards that can be opened; 0 without a driver. */
int frag_cuda_count(void);

/* How many segments, ranges, handles and pools are still out. Zero = nothing leaked. */
uint64_t frag_dev_leaks(const struct frag_device *dev);

/* Cost profile: modelled ns of a call by size, from a CSV or built in. */
struct frag_cost;
const struct frag_cost *frag_cost_builtin(void); /* H200, see docs/measuring.md */
/* The built-in profile of a card, "h100" (results/h100/profile.csv); NULL where there is none. */
const struct frag_cost *frag_cost_of(const char *card);
int frag_cost_load(const char *path, struct frag_cost **out, struct frag_err *err);
void frag_cost_destroy(struct frag_cost *cost);
/* How much slower is a host that takes pair_ns (frag_dev_host_pair) than that of the
 * profile? cost NULL: the built-in one. 1 where either is not known. */
double frag_cost_host_ratio(const struct frag_cost *cost, uint64_t pair_ns);

/* Known cards (cufrag list gpus). */
struct frag_gpu {
	const char *name;     /* "h200" */
	const char *label;    /* "NVIDIA H200 141 GB" */
	const char *vendor;   /* "NVIDIA"; "" = not said */
	uint64_t total_bytes; /* as the runtime reports it */
	uint64_t context_bytes;
	const char *source;    /* measured where, or which public specification */
	double price_per_hour; /* in whatever money the user counts; 0 = not known */
	const char *profile;   /* the card whose cost profile it uses: its own name where it was
				* measured; NULL = not one of the known cards */
	bool asked_only;       /* a choice of cards has it only where the vendor was said */
};
const struct frag_gpu *frag_gpu_list(size_t *count);
/* By name, by label, or as the runtime names the card ("NVIDIA H100 80GB HBM3"); NULL if unknown. */
const struct frag_gpu *frag_gpu_find(const char *name);

/* The chip of a known card: what programs see of it, and two figures of its data sheet. */
struct frag_gpu_chip {
	const char *name;  /* that of the card */
	const char *shown; /* as the runtime names it */
	int major, minor;  /* compute capability */
	int multiprocessors;
	int l2_mib, bus_bits, clock_mhz;
	double bytes_per_ns; /* memory bandwidth, GB/s */
	double tflops;	     /* dense, half precision */
};
/* NULL: no CUDA card, or not known. `name` as frag_gpu.name. */
const struct frag_gpu_chip *frag_gpu_chip_find(const char *name);

/*
 * What a card keeps free by default, as a part of its memory. No recording of an allocator shows
 * what libraries (cuBLAS, cuDNN, NCCL) take beside it, nor an input longer than those recorded;
 * a tenth is also what serving programs leave by default.
 */
#define FRAG_HEADROOM_RATIO 0.1

/* The part of a card that advice does not count on, beside its context. */
struct frag_headroom {
	double ratio;		/* of its memory */
	uint64_t bytes;		/* and so much more */
	uint64_t outside_bytes; /* taken outside of the allocator while it was recorded */
};

#define FRAG_CARDS_MAX 64u /* one bit each in the results of fit */

/* The cards that advice may name, in the order of what they leave to a process, then of price. */
struct frag_catalog {
	const struct frag_gpu *cards[FRAG_CARDS_MAX];
	size_t count;
	const char *path;     /* of the user's list, NULL = the known cards; borrowed */
	struct frag_gpu *own; /* storage of the user's list */
	char *texts;
};

/*
 * path: CSV with a header line: name, memory and, where wanted, context, price_per_hour, vendor;
 * NULL = the known cards. vendor: all of theirs; "all"; NULL = of the known cards NVIDIA's usual
 * ones, of a list all. Errors: FRAG_EINPUT with path and line, FRAG_EUSAGE (no card of that vendor),
 * FRAG_ENOMEM.
 */
int frag_catalog_init(struct frag_catalog *c, const char *path, const char *vendor,
		      struct frag_err *err);
void frag_catalog_release(struct frag_catalog *c);

/* What a process may reserve on this card beside context and headroom; 0 if nothing is left. */
uint64_t frag_gpu_room(const struct frag_gpu *gpu, const struct frag_headroom *headroom);
/* The first card with room for so much: the cheapest where all have a price, else the smallest;
 * NULL = none. */
const struct frag_gpu *frag_catalog_pick(const struct frag_catalog *c, uint64_t reserved_bytes,
					 const struct frag_headroom *headroom);

#endif
