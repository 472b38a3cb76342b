/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pretended card: what a CUDA program meets under `cufrag record --no-gpu`. libcufrag_pretend.so
 * answers the calls of the CUDA runtime, the driver and its libraries; small libraries generated
 * for the user's program (scripts of src/pretend/python) map the original names to these:
 *
 *	function NAME of CUDA		frag_pretend_NAME, a row of entries.def, or an ENTRY of its own
 *	differs between CUDA majors	frag_pretend12_NAME, frag_pretend13_NAME
 *	known, and does nothing		pattern in calls.c
 *	anything else			an error of that library, and the name is logged
 *
 * Kernels do nothing. Memory is address space; the host has pages only where the program copies
 * small things in. Capacity and addresses are those of the simulated device (src/device/sim), which
 * follows the driver's rules.
 *
 * Entry points keep NVIDIA's names and CUDA's return values. All are thread-safe.
 */
#ifndef FRAG_CARD_H
#define FRAG_CARD_H

#include <frag/base.h>

#include "base/locked.h"
#include "protocol_list.inc"

#define PRETEND_DECLARE(type, name, args) \
	__attribute__((visibility("default"))) type frag_pretend_##name args
#define PRETEND_ENTRY(type, name, args) \
	PRETEND_DECLARE(type, name, args); \
	type frag_pretend_##name args

/* Table entries (entries.def and similar): a statement that writes the answer, or a value. */
#define PRETEND_ANSWER(name, args, ...) \
	PRETEND_ENTRY(int, name, args) \
	{ \
		__VA_ARGS__; \
		return PRETEND_OK; \
	}
#define PRETEND_VALUE(type, name, args, ...) \
	PRETEND_ENTRY(type, name, args) \
	{ \
		return __VA_ARGS__; \
	}

/* Another name for an entry, whatever its signature is. */
#define PRETEND_SAME(name, entry) \
	__attribute__((visibility("default"), naked)) void frag_pretend_##name(void); \
	void frag_pretend_##name(void) \
	{ \
		__asm__("jmp frag_pretend_" #entry "@PLT"); \
	}
/* The runtime's name of a driver call with up to six arguments: also sets the last error. */
#define PRETEND_RUNTIME(name, entry) \
	__attribute__((visibility("default"), naked)) void frag_pretend_##name(void); \
	void frag_pretend_##name(void) \
	{ \
		__asm__("sub $8, %rsp; call frag_pretend_" #entry "@PLT; add $8, %rsp; " \
			"mov %eax, %edi; jmp frag_pretend_error@PLT"); \
	}

/* For one CUDA major, 12 or 13. */
#define PRETEND_VALUE_OF(major, type, name, args, ...) \
	__attribute__((visibility("default"))) type frag_pretend##major##_##name args; \
	type frag_pretend##major##_##name args \
	{ \
		return __VA_ARGS__; \
	}

/* The signatures are NVIDIA's: most entries use only some arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* cudaError_t and CUresult agree on these */
enum pretend_error {
	PRETEND_OK = 0,
	PRETEND_INVALID_VALUE = 1,
	PRETEND_OUT_OF_MEMORY = 2,
	PRETEND_INVALID_DEVICE = 101,
	PRETEND_NOT_READY = 600,
	PRETEND_TIMEOUT = 702,
	PRETEND_NOT_SUPPORTED = 801,
	PRETEND_CAPTURE_UNSUPPORTED = 900,
	PRETEND_CAPTURE_LOST = 901,
	PRETEND_CAPTURED_EVENT = 907,
};

#define PRETEND_CARDS_MAX 16
/* CUcontext, opaque, one for each card. */
#define PRETEND_CONTEXT(device) ((void *)(uintptr_t)(0x100 + (device)))
/* Larger copies and fills leave zeros. */
#define PRETEND_COPY_MAX (2 * FRAG_MIB)
#define PRETEND_UPLOAD_MAX (8 * FRAG_MIB) /* from the host: indices, but not weights */
/* True up to `most` bytes, and always with --values computed. */
bool frag_pretend_copies(uint64_t bytes, uint64_t most);

/* The visible properties of a card, from CUFRAG_PRETEND, "key=value;…" (card.c). */
struct pretend_card {
	char name[96];
	uint64_t total_bytes, context_bytes;
	bool libraries; /* counts the memory of libraries (beside.c) */
	int count;	/* identical cards in the machine */
	int major, minor, sms;
	uint64_t l2_bytes;
	int bus_bits, clock_khz;
	bool nvlink;  /* between the cards of a machine */
	bool in_full; /* --values computed */
	/* by compute capability */
	int threads_per_sm, blocks_per_sm;
	uint64_t shared_per_sm_bytes, shared_per_block_bytes;
};

/* Immutable; read from the environment once. */
const struct pretend_card *frag_pretend_card(void);

/* The cards that CUDA shows (CUDA_VISIBLE_DEVICES, read at the first call that needs it), and their
 * numbers in the machine. NVML shows all. */
int frag_pretend_visible(void);
int frag_pretend_number(int device);
/* Sets and returns the thread's last error as the runtime does. */
int frag_pretend_error(int code);
int frag_pretend_device(void); /* the thread's current device */
int frag_pretend_device_set(int device);
/* The program selected a missing card: record reports it. */
void frag_pretend_no_card(int device);

/* ---- memory (space.c, memory.c, card_vmm.c, copy.c) */

/* 64 TiB: programs and their libraries lie above 85. */
#define PRETEND_SPACE_BYTES (64ull * FRAG_GIB << 10)
/* Offset from the first address of the cards; below PRETEND_SPACE_BYTES: it is one of theirs. */
uint64_t frag_pretend_space_at(const void *p);
/* Device of an address of the pretended cards, -1: host memory. Lock-free. */
int frag_pretend_owner(const void *p);
/* A live segment or reservation, or (device -1) pinned memory of the host. */
struct pretend_range {
	uint64_t base, bytes;
	int device;
	bool managed;
	struct pool *pool; /* of a block (mempool.c), else NULL */
};
/* The one that contains p. False, NULL: none. pre of the second: locked. */
bool frag_pretend_range(const void *p, struct pretend_range *out);
struct pretend_range *frag_pretend_range_of(const void *p);

/* PRETEND_LOCKED holds the lock of all state to the end of the scope. */
extern pthread_mutex_t frag_pretend_mutex;
#define PRETEND_LOCKED FRAG_LOCKED(&frag_pretend_mutex)

struct frag_device;
/* The simulated device behind card `ordinal`. pre: locked. */
struct frag_device *frag_pretend_sim(int ordinal);
/* The same, for calls that only affect addresses; NULL: no memory or addresses. pre: locked. */
struct frag_device *frag_pretend_places(int ordinal);
/* Memory of the card that other processes hold (neighbours.c, frag_sim_share). pre: locked. */
uint64_t frag_pretend_others(void *ordinal, uint64_t used_bytes, uint64_t asked_bytes);
/* The host's address space, as the driver of one card sees it (host_space.c); repeats new mappings
 * and unmappings in its simulated device. pre: locked. */
void *frag_pretend_host_space(int ordinal);
void frag_pretend_host_begin(void *ctx, struct frag_device *sim);
void frag_pretend_host_look(void *ctx);
/* Libraries map memory at their first work (beside.c). */
enum pretend_loaded { PRETEND_LOADED_CUBLAS, PRETEND_LOADED_CUDNN, PRETEND_LOADED_COUNT };
void frag_pretend_host_load(enum pretend_loaded what);
/* Conversion between addresses of the simulated device and of the program. */
enum pretend_zone { PRETEND_SEGMENTS, PRETEND_RESERVATIONS };
void *frag_pretend_out(int ordinal, enum pretend_zone zone, frag_addr_t addr);
frag_addr_t frag_pretend_in(int ordinal, enum pretend_zone zone, const void *p);
/* Table of live ranges of both zones. pre: locked. put: false if memory is short. */
bool frag_pretend_range_put(const void *base, uint64_t bytes, int device);
bool frag_pretend_range_take(const void *base, uint64_t *bytes, int *device);
/* Frees a block of a pool (mempool.c); false: not from a pool. pre: locked. */
bool frag_pretend_pool_give(void *at, void *stream);
/* The program waits for a stream of the current card, or for all: set at a pool's first block. */
extern void (*frag_pretend_pools_wait)(void *stream, bool all);
/* Needs that make the driver move the current card's local memory (local.c). */
enum pretend_local {
	PRETEND_LOCAL_ASSERTS,
	PRETEND_LOCAL_COLLECTIVE,
	PRETEND_LOCAL_BROADCAST,
	PRETEND_LOCAL_SENDS,
	PRETEND_LOCAL_COUNT
};
void frag_pretend_local(enum pretend_local need);
/* Local memory of a thread before the first such need. */
#define PRETEND_CONTEXT_THREAD_BYTES 1600u
/* Can any kernel of this one's source file fail an assertion? NULL: unknown, so true. */
bool frag_pretend_asserts(const char *kernel);
/* A library reserves address space of the current card permanently. */
void frag_pretend_hold(uint64_t bytes);
/* Memory of libraries on the current card (beside.c): that of the first object of its kind, and,
 * with `own`, that of this object until it is released, of which more_bytes are its own (NCCL's
 * groups); *own starts as zeros. */
enum pretend_beside {
	PRETEND_BESIDE_KERNELS,
	PRETEND_BESIDE_CUBLAS,
	PRETEND_BESIDE_CUDNN,
	PRETEND_BESIDE_SOLVER,
	PRETEND_BESIDE_FFT,
	PRETEND_BESIDE_STREAM,
	PRETEND_BESIDE_NCCL,
	PRETEND_BESIDE_COUNT
};
struct pretend_held {
	uint64_t bytes;
	int device;
};
void frag_pretend_beside_take(enum pretend_beside what, uint64_t more_bytes,
			      struct pretend_held *own);
#define PRETEND_NCCL_CODE_BYTES (106 * FRAG_MIB) /* code of its kernels, once a card */
/* An existing object takes more. */
void frag_pretend_beside_more(struct pretend_held *own, uint64_t bytes);
void frag_pretend_beside_give(struct pretend_held *own);
/* The program asked for memory of a card, so there is something to record. pre: locked. */
void frag_pretend_mark_begun(void);
/* Drops the whole pages there: they read as zeros and take no host memory. */
void frag_pretend_forget(void *p, uint64_t bytes);
__attribute__((visibility("default"))) void frag_pretend_clear(void *p, uint64_t bytes);
/* Memory whose pages may be shared with another process; with one that lent them; makes
 * whole pages private again. */
bool frag_pretend_shared(const void *p, uint64_t bytes);
__attribute__((visibility("default"))) bool frag_pretend_foreign(const void *p);
void frag_pretend_unshare(void *p, uint64_t bytes);
/* ---- time: the modelled clock of all kernels so far (card_stream.c) */

/* Adds an operator of this length to a stream, and all so far; is it called by C++, in a backward
 * pass, or by Python? Bytes sent to other ranks and awaited from them; the first call makes streams
 * matter. */
__attribute__((visibility("default"))) void frag_pretend_work(void *stream, uint64_t ns,
							      uint64_t all_ns, bool backward);
/* begins (NULL: not wanted): when it began. Returns its duration once all have begun. */
uint64_t frag_pretend_sent(void *stream, uint64_t bytes, uint64_t *begins);
void frag_pretend_streams_begin(void);
/* The host's position on the modelled clock, and the end of a stream's work so far. */
uint64_t frag_pretend_now(void);
uint64_t frag_pretend_done(void *stream);
/* A copy to or from the host, where streams matter. The host waits for it if its memory is neither
 * pinned nor staged. */
void frag_pretend_copied(void *stream, uint64_t bytes, bool to_card, bool pinned);
/* Advances the host's clock by work other than launches. */
__attribute__((visibility("default"))) void frag_pretend_host_takes(uint64_t ns);
/* The driver loads code when the card is idle, and the host waits for that: at the first kernel of
 * a source file (lazy loading), and when cuBLAS makes a handle. Measured on H100s
 * (results/pretend/ranks.md). */
__attribute__((visibility("default"))) void frag_pretend_wait_idle(void);
__attribute__((visibility("default"))) const _Atomic bool *frag_pretend_streams(void);

/* ---- libraries */

/* An opaque handle of a library (entries.c), filled with zeros. PRETEND_OUT_OF_MEMORY: no host
 * memory. */
int frag_pretend_handle(void **out);
/* Handles of ptxas's machine code (cubin.c) and of a kernel in it; registers and bytes of local
 * memory per thread. */
int frag_pretend_load_code(void **out, const void *image);
int frag_pretend_load_code_file(void **out, const char *path);
int frag_pretend_kernel_of(void **out, const void *module, const char *name);
int frag_pretend_registers(const void *handle);
int frag_pretend_frame_bytes(const void *handle);
#define PRETEND_USUAL_REGISTERS 32 /* if unknown */
#define PRETEND_CUBIN_BYTES \
	64u /* of code compiled at run time: a single byte would mean PTX only */

/* Values at `to` now are those of `from`, NULL: of the host (copy.c). */
void frag_pretend_arrived(const void *to, const void *from, uint64_t bytes);
/* Origins of values as values/ grades them (enum Origin of values.h); these two are shared. */
enum { PRETEND_UNKNOWN = 0, PRETEND_COMPUTED = 4 };
uint32_t frag_pretend_origin(const void *p, uint64_t bytes);
/* lower: never raises the storage's origin. */
void frag_pretend_origin_set(const void *p, uint64_t bytes, uint32_t origin, bool lower);

/* ---- memory shared with other processes (lent.c) */

#define LENT_PAGE 4096u
/* A sparse file for offsets below `room`. -1: none. */
int lent_file(uint64_t room);
/* Moves whole pages of this process, with their contents, into the file; the second, with the
 * origins of their values. */
bool lent_give(void *p, uint64_t bytes, int fd, uint64_t offset);
bool frag_pretend_lend(void *p, uint64_t bytes, int fd, uint64_t offset);
/* Maps whole pages of another process's file; zeros if that fails. */
void lent_take(void *to, uint64_t bytes, int fd, uint64_t offset);
/* Number of shared ranges: while it is 0, callers can skip the other calls. */
const _Atomic size_t *frag_pretend_lent(void);
/* The process that owns shared memory. 0: not shared, or this one. */
long lent_owner(const void *p);
/* The least known origin in the range. False: not shared. lower: never raises an origin. */
__attribute__((visibility("default"))) bool frag_pretend_lent_origin(const void *p, uint64_t bytes,
								     uint32_t *origin);
__attribute__((visibility("default"))) void
frag_pretend_lent_origin_set(const void *p, uint64_t bytes, uint32_t origin, bool lower);

/* The stream's later work begins after `ns`. */
void frag_pretend_stream_awaits(void *stream, uint64_t ns);

/* Set by ranks/ when it is loaded; NULL without it. They return 0, or an error of CUDA's. */
struct pretend_ranks {
	/* Waits until no data of other ranks is awaited at [p, p + bytes). */
	int (*settle)(const void *p, uint64_t bytes);
	/* Waits until nothing is awaited. */
	int (*settle_all)(void);
	/* Called at each launch: kernels of PyTorch's symmetric memory communicate. */
	int (*symmetric)(const void *function, void **parameters, void *stream);
	_Atomic unsigned waiting; /* threads that wait for other ranks to begin a transfer */
};
extern struct pretend_ranks frag_pretend_ranks;

/* ---- entries that other files call */

/* memory.c, vmm.c */
PRETEND_DECLARE(int, cudaHostAlloc, (void **out, size_t bytes, unsigned flags));
PRETEND_DECLARE(int, cuMemAddressReserve,
		(void **out, size_t bytes, size_t align, uint64_t hint, uint64_t flags));
PRETEND_DECLARE(int, cuMemAddressFree, (void *p, size_t bytes));
/* copy.c */
PRETEND_DECLARE(int, cudaMemcpyAsync,
		(void *to, const void *from, size_t bytes, int kind, void *stream));
PRETEND_DECLARE(int, cudaMemcpy2DAsync,
		(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		 size_t height, int kind, void *stream));
PRETEND_DECLARE(int, cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream));
__attribute__((visibility("default"))) void frag_pretend_answer(bool on, uint64_t count);
/* card_stream.c */
PRETEND_DECLARE(int, cudaStreamCreateWithPriority, (void **out, unsigned flags, int priority));
PRETEND_DECLARE(int, cudaEventCreateWithFlags, (void **out, unsigned flags));
/* graph.c */
PRETEND_DECLARE(int, cudaGraphInstantiate, (void **out, void *graph, uint64_t flags));
/* A number for a new capture; its graph (NULL: no host memory); releases the objects of the graph
 * (pre: not locked). */
uint64_t frag_pretend_graph_number(void);
void *frag_pretend_graph(uint64_t number);
void frag_pretend_graph_drop(uint64_t number);
/* card.c */
PRETEND_DECLARE(const char *, cudaGetErrorName, (int code));
PRETEND_DECLARE(const char *, cudaGetErrorString, (int code));

/* ---- calls without an entry (calls.c) */

/*
 * is_nothing: known to succeed by doing nothing; then the library that stands for CUDA's maps it to
 * `nothing`, else to `unknown`, which logs the name and returns that library's "not supported".
 */
__attribute__((visibility("default"))) bool frag_pretend_is_nothing(const char *name);
__attribute__((visibility("default"))) int frag_pretend_nothing(void);
__attribute__((visibility("default"))) int frag_pretend_unknown(const char *name);
/* Address of an entry by its original name, for cuGetProcAddress and similar; NULL: none. */
void *frag_pretend_find(const char *name);
/* The entry of exactly this runtime function, of CUDA 12 or 13; NULL: none. */
void *frag_pretend_entry(const char *name, int major);

/* ---- kernels (kernels.c) */

/* What nvcc emits for a source file (fatbinary_section.h). */
struct frag_pretend_fatbin {
	uint32_t magic, version;
	const unsigned char *list;
	const void *more;
};
#define FRAG_PRETEND_ARCHS 256u
/* The architecture of the code that the card runs, such as 86; 0: unreadable. <
 * FRAG_PRETEND_ARCHS. */
int frag_pretend_arch_of(const struct frag_pretend_fatbin *f);
/* The mangled name of the kernel that a function launches, NULL: unknown. Valid while its library
 * is loaded. */
const char *frag_pretend_name_of(const void *function);
/* Registers per thread of the kernel with that mangled name (NULL: unknown); how many blocks with
 * so many registers a multiprocessor runs at once, at least one. */
int frag_pretend_registers_by_name(const char *name);
int frag_pretend_blocks_per_sm(int registers, int threads, uint64_t shared_bytes);
/* True once for each source file: at the launch of its first kernel. */
bool frag_pretend_loads(const void *function);

/* ---- static runtimes in the program's libraries (static_runtime.c) */

/* Overwrites the start of a function in a loaded library with a jump to the entry of this name, if
 * the function is long enough and still has the bytes of its file. */
__attribute__((visibility("default"))) bool frag_pretend_replace(void *function,
								 const void *original, size_t bytes,
								 const char *name, int major);
/* Loaded libraries: lines "BASE PATH", valid until the next call. One thread at a time. */
__attribute__((visibility("default"))) const char *frag_pretend_loaded(void);
/* A library with these addresses has a static runtime and registered these source files with it.
 * One thread at a time. */
__attribute__((visibility("default"))) void
frag_pretend_adopt(uint64_t first, uint64_t end, const struct frag_pretend_fatbin *files,
		   size_t count);

#endif
