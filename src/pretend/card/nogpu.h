/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pretended card: what a CUDA program meets when it runs under
 * `cufrag record --no-gpu`. libcufrag_nogpu.so answers the calls of the CUDA
 * runtime, the driver and its libraries; small libraries made for the user's
 * program (scripts of src/pretend/python) lead the original names here.
 *
 *	function NAME of CUDA		frag_nogpu_NAME, a row of entries.def, or an ENTRY of its own
 *	differs between CUDA majors	frag_nogpu12_NAME, frag_nogpu13_NAME
 *	known, and does nothing	pattern in calls.c
 *	anything else			an error of that library, and its name is written down
 *
 * Kernels do nothing. Memory is address space: pages appear on the host where
 * the program copies small things in. Capacity and addresses are those of the simulated
 * device (src/device/sim), which has the driver's own rules.
 *
 * Entry points keep NVIDIA's names and CUDA's return values. Every entry may be called from any thread.
 */
#ifndef FRAG_NOGPU_H
#define FRAG_NOGPU_H

#include <frag/base.h>

#include "base/locked.h"

#define NOGPU_DECLARE(type, name, args) \
	__attribute__((visibility("default"))) type frag_nogpu_##name args
#define NOGPU_ENTRY(type, name, args) \
	NOGPU_DECLARE(type, name, args); \
	type frag_nogpu_##name args

/* Entries that are rows of a table (entries.def and its kind): a statement that writes the answer, or a value. */
#define NOGPU_ANSWER(name, args, ...) \
	NOGPU_ENTRY(int, name, args) \
	{ \
		__VA_ARGS__; \
		return NOGPU_OK; \
	}
#define NOGPU_VALUE(type, name, args, ...) \
	NOGPU_ENTRY(type, name, args) \
	{ \
		return __VA_ARGS__; \
	}

/* Of one CUDA major, 12 or 13. */
#define NOGPU_VALUE_OF(major, type, name, args, ...) \
	__attribute__((visibility("default"))) type frag_nogpu##major##_##name args; \
	type frag_nogpu##major##_##name args \
	{ \
		return __VA_ARGS__; \
	}

/* The signatures are NVIDIA's: most entries look at a few of their arguments only. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* cudaError_t and CUresult agree on these */
enum nogpu_error {
	NOGPU_OK = 0,
	NOGPU_INVALID_VALUE = 1,
	NOGPU_OUT_OF_MEMORY = 2,
	NOGPU_INVALID_DEVICE = 101,
	NOGPU_NOT_READY = 600,
	NOGPU_TIMEOUT = 702,
	NOGPU_NOT_SUPPORTED = 801,
	NOGPU_CAPTURE_UNSUPPORTED = 900,
	NOGPU_CAPTURE_LOST = 901,
	NOGPU_CAPTURED_EVENT = 907,
};

#define NOGPU_CARDS_MAX 16
/* CUcontext: one for each card; nobody looks into it. */
#define NOGPU_CONTEXT(device) ((void *)(uintptr_t)(0x100 + (device)))
/* Copies and fills up to this really happen; larger ones leave zeros. */
#define NOGPU_COPY_MAX (2 * FRAG_MIB)
#define NOGPU_UPLOAD_MAX \
	(8 * FRAG_MIB) /* from the host: indices, not yet weights of a large model */
/* At most `most`, or --values computed, which copies everything? */
bool frag_nogpu_copies(uint64_t bytes, uint64_t most);
/* --values computed: pages of the card are huge ones, and those of the bench stay. */
bool frag_nogpu_in_full(void);

/* What the program sees of a card; from CUFRAG_NOGPU, "key=value;…" (card.c). */
struct nogpu_card {
	char name[96];
	uint64_t total_bytes, context_bytes;
	bool libraries; /* it holds what they take beside the context (beside.c) */
	int count;	/* cards in the machine, all alike */
	int major, minor, sms;
	uint64_t l2_bytes;
	int bus_bits, clock_khz;
	bool nvlink; /* connects the cards of such a machine */
	/* by compute capability */
	int threads_per_sm, blocks_per_sm;
	uint64_t shared_per_sm_bytes, shared_per_block_bytes;
};

/* Read once, never changes. */
const struct nogpu_card *frag_nogpu_card(void);

/* Those that CUDA shows the program (CUDA_VISIBLE_DEVICES, read at the first call that is about one), and which of
 * the machine each is. NVML shows all. */
int frag_nogpu_visible(void);
int frag_nogpu_number(int device);
/* Sets and returns the thread's last error as the runtime does. */
int frag_nogpu_error(int code);
int frag_nogpu_device(void); /* the thread's current device */
int frag_nogpu_device_set(int device);
/* The program chose a card that is not there: record says so. */
void frag_nogpu_no_card(int device);

/* ---- memory (memory.c, vmm.c, copy.c) */

/* 64 TiB: programs and their libraries lie above 85. */
#define NOGPU_SPACE_BYTES (64ull * FRAG_GIB << 10)
/* How far from the first address of the cards; below NOGPU_SPACE_BYTES: it is theirs. */
uint64_t frag_nogpu_space_at(const void *p);
/* Device of an address of the pretended cards, -1: host memory. No lock. */
int frag_nogpu_owner(const void *p);
/* The live segment or reservation around p. false: none. */
bool frag_nogpu_range(const void *p, uint64_t *base, uint64_t *bytes, int *device);

/* NOGPU_LOCKED; the lock of everything that has state is held to the end of the scope. */
extern pthread_mutex_t frag_nogpu_mutex;
#define NOGPU_LOCKED FRAG_LOCKED(&frag_nogpu_mutex)

struct frag_device;
/* The simulated device behind card `ordinal`; NULL: no memory or no address space. pre: locked. */
struct frag_device *frag_nogpu_sim(int ordinal);
/* For what only matters to addresses: NULL also where there is no room for them. pre: locked. */
struct frag_device *frag_nogpu_places(int ordinal);
/* Tells the simulated device what the host process has mapped and unmapped. ctx: the card's ordinal. pre: locked. */
void frag_nogpu_host_look(void *ctx);
/* Libraries map what they need at their first work (host_space.c). */
enum nogpu_loaded { NOGPU_LOADED_CUBLAS, NOGPU_LOADED_CUDNN, NOGPU_LOADED_COUNT };
void frag_nogpu_host_load(enum nogpu_loaded what);
/* Between addresses of the simulated device and those of the program. */
enum nogpu_zone { NOGPU_SEGMENTS, NOGPU_RESERVATIONS };
void *frag_nogpu_out(int ordinal, enum nogpu_zone zone, frag_addr_t addr);
frag_addr_t frag_nogpu_in(int ordinal, enum nogpu_zone zone, const void *p);
/* Table of live ranges of both zones. pre: locked. put: false if memory is short. */
bool frag_nogpu_range_put(const void *base, uint64_t bytes, int device);
bool frag_nogpu_range_take(const void *base, uint64_t *bytes, int *device);
/* Gives a block of a pool back (mempool.c); false: it is none. pre: locked. */
bool frag_nogpu_pool_give(void *at, void *stream);
/* The program waits for a stream of the current card, or for all. */
void frag_nogpu_pools_wait(void *stream, bool all);
/* What makes the driver move the current card's local memory (local.c). */
enum nogpu_local {
	NOGPU_LOCAL_CONTEXT, /* the driver's first */
	NOGPU_LOCAL_ASSERTS,
	NOGPU_LOCAL_COLLECTIVE,
	NOGPU_LOCAL_BROADCAST,
	NOGPU_LOCAL_SENDS,
	NOGPU_LOCAL_COUNT
};
void frag_nogpu_local(enum nogpu_local need);
uint64_t frag_nogpu_local_bytes(enum nogpu_local need); /* for all threads of a card */
/* Can a kernel of this one's source file fail an assertion? NULL: it is not known, so perhaps. */
bool frag_nogpu_asserts(const char *kernel);
/* A library takes address space of the current card for good. */
void frag_nogpu_hold(uint64_t bytes);
/* What libraries hold of the current card (beside.c): that of the first of a kind, and, with `own`, what this one holds
 * until it is given back; *own begins as zeros. */
enum nogpu_beside {
	NOGPU_BESIDE_KERNELS,
	NOGPU_BESIDE_CUBLAS,
	NOGPU_BESIDE_CUDNN,
	NOGPU_BESIDE_SOLVER,
	NOGPU_BESIDE_FFT,
	NOGPU_BESIDE_STREAM,
	NOGPU_BESIDE_NCCL,
	NOGPU_BESIDE_COUNT
};
struct nogpu_held {
	uint64_t bytes;
	int device;
};
void frag_nogpu_beside_take(enum nogpu_beside what, struct nogpu_held *own);
/* NCCL takes memory for a group: its kernels with the first one, and these bytes. */
void frag_nogpu_beside_take_group(uint64_t bytes, struct nogpu_held *own);
/* A group of NCCL's in which this process is `rank`: what it takes beside NCCL's kernels when it is made, when its ring is
 * connected, and the way to or from one of its ranks (beside_nccl.c). */
uint64_t frag_nogpu_group_bytes(int ranks, int rank);
uint64_t frag_nogpu_ring_bytes(int ranks);
uint64_t frag_nogpu_way_bytes(int ranks, bool receives);
#define NOGPU_NCCL_CODE_BYTES (106 * FRAG_MIB) /* of its kernels, once a card */
/* Takes their addresses, those of what is mapped of peers among them. */
void frag_nogpu_map_group(int ranks);
void frag_nogpu_map_ring(int ranks);
void frag_nogpu_map_way(int ranks);
/* What was taken before takes more. */
void frag_nogpu_beside_more(struct nogpu_held *own, uint64_t bytes);
void frag_nogpu_beside_give(struct nogpu_held *own);
/* Memory of a card is asked for: from here on there is something to record. pre: locked. */
void frag_nogpu_mark_begun(void);
/* The host forgets what was stored in whole pages there; all of it is zero, and takes no memory of the host. */
void frag_nogpu_forget(void *p, uint64_t bytes);
__attribute__((visibility("default"))) void frag_nogpu_clear(void *p, uint64_t bytes);
/* Memory whose pages another process has, too, perhaps; what another process lent (lent.h); whole pages are this process's alone again. */
bool frag_nogpu_shared(const void *p, uint64_t bytes);
__attribute__((visibility("default"))) bool frag_nogpu_foreign(const void *p);
void frag_nogpu_unshare(void *p, uint64_t bytes);
/* Host memory while the CPU computes (bench.c). NULL: no room. False: not from there. And pages for all of a part of the card that is about to
 * be written. */
__attribute__((visibility("default"))) void *frag_nogpu_bench_take(uint64_t bytes);
__attribute__((visibility("default"))) bool frag_nogpu_bench_give(void *p);
__attribute__((visibility("default"))) void frag_nogpu_bench_ready(void *p, uint64_t bytes);
/* This is going to be read: where nothing was written, huge pages of zeros. */
__attribute__((visibility("default"))) void frag_nogpu_bench_reads(const void *p, uint64_t bytes);

/* ---- time (stream.c): what all kernels so far would have taken */

/* An operator of this length on a stream, and all so far; does C++ call it, in a backward pass, or Python? Bytes sent to other
 * ranks and awaited from them; from now on there are some, and only then streams matter. */
__attribute__((visibility("default"))) void frag_nogpu_work(void *stream, uint64_t ns,
							    uint64_t all_ns, bool backward);
struct moment;
/* begins (NULL: not asked): when that began; and how long it takes once all have begun. */
uint64_t frag_nogpu_sent(void *stream, uint64_t bytes, struct moment *begins);
void frag_nogpu_streams_begin(void);
/* Where the host is on the modelled clock, and when a stream has done what it was given so far. */
uint64_t frag_nogpu_now(void);
uint64_t frag_nogpu_done(void *stream);
/* A copy to or from the host, where streams matter. The host waits for it if its memory is not pinned and CUDA does not stage it. */
void frag_nogpu_copied(void *stream, uint64_t bytes, bool to_card, bool pinned);
/* Something takes the host so long beside handing out work. */
__attribute__((visibility("default"))) void frag_nogpu_host_takes(uint64_t ns);
/* The driver loads code while the card has nothing to do, and the host waits for that: at the first kernel of a source file (CUDA's lazy
 * loading), and when cuBLAS makes a handle. Measured on H100s (results/nogpu/ranks.md). */
void frag_nogpu_wait_idle(void);
__attribute__((visibility("default"))) const _Atomic bool *frag_nogpu_streams(void);

/* ---- libraries */

/* What a library gives out and nobody looks into (entries.c): zeros. NOGPU_OUT_OF_MEMORY: short of host memory. */
int frag_nogpu_handle(void **out);
/* Handles of machine code as ptxas writes it (cubin.c), of a kernel in it, and the registers and bytes of local memory that a thread of it takes. */
int frag_nogpu_load_code(void **out, const void *image);
int frag_nogpu_load_code_file(void **out, const char *path);
int frag_nogpu_kernel_of(void **out, const void *module, const char *name);
int frag_nogpu_registers(const void *handle);
int frag_nogpu_frame_bytes(const void *handle);
#define NOGPU_USUAL_REGISTERS 32 /* where nothing is known */
/* Code that was compiled while the program runs (nvrtc.c): its source, NULL: this is other code. Which parameters, a bit each, one
 * of its kernels stores to; and what was found so of a kernel's handle. */
#define NOGPU_CUBIN_BYTES 64u /* one byte would say that there is only PTX */
const char *frag_nogpu_source_of(const void *image);
uint64_t frag_nogpu_stored_by(const char *source, const char *kernel);
uint64_t frag_nogpu_stored(const void *handle);

/* Values at `to` are now those of `from`, NULL: of the host (copy.c). */
void frag_nogpu_arrived(const void *to, const void *from, uint64_t bytes);
/* Where values come from, as cufrag_values.cpp grades it (enum Origin); these two it has in common with the library. */
enum { NOGPU_UNKNOWN = 0, NOGPU_COMPUTED = 4 };
uint32_t frag_nogpu_origin(const void *p, uint64_t bytes);
/* lower: unless it is known less of the storage already. */
void frag_nogpu_origin_set(const void *p, uint64_t bytes, uint32_t origin, bool lower);
/* Of all that is known to lie in [p, p + bytes). */
void frag_nogpu_origins(const void *p, uint64_t bytes,
			void (*put)(const void *p, uint64_t bytes, uint32_t origin));
/* The stream waits for what has this number (ranks/await.h). Returns when the stream has done all so far: to be made later. */
struct moment;
struct moment *frag_nogpu_stream_awaits(void *stream, uint64_t number);

/* What ranks/ puts in when it is loaded; NULL in a process without it. 0, or an error of CUDA's. */
struct nogpu_ranks {
	/* Waits until nothing that other ranks send is awaited at [p, p + bytes), or with a number up to this. */
	int (*settle)(const void *p, uint64_t bytes);
	int (*settle_until)(uint64_t number);
	/* A kernel is launched: one of PyTorch's symmetric memory talks to other ranks. */
	int (*symmetric)(const void *function, void **parameters, void *stream);
};
extern struct nogpu_ranks frag_nogpu_ranks;

/* ---- calls nobody implements (calls.c) */

/*
 * A function without an entry: is_nothing says whether it is known to succeed by doing nothing;
 * then the library that stands for CUDA's leads it to `nothing`, else to `unknown`, which
 * writes the name down and returns that library's "not supported".
 */
__attribute__((visibility("default"))) bool frag_nogpu_is_nothing(const char *name);
__attribute__((visibility("default"))) int frag_nogpu_nothing(void);
__attribute__((visibility("default"))) int frag_nogpu_unknown(const char *name);
/* Address of an entry by the original name, for cuGetProcAddress and its kind; NULL: none. */
void *frag_nogpu_find(const char *name);
/* The entry of exactly this function of the runtime, of CUDA 12 or 13; NULL: none. */
void *frag_nogpu_entry(const char *name, int major);

/* ---- kernels (kernels.c) */

/* What nvcc writes for a source file (fatbinary_section.h). */
struct frag_nogpu_fatbin {
	uint32_t magic, version;
	const unsigned char *list;
	const void *more;
};
#define FRAG_NOGPU_ARCHS 256u
/* The architecture of the code that the card runs, 86; 0: nothing that can be read. < FRAG_NOGPU_ARCHS. */
int frag_nogpu_arch_of(const struct frag_nogpu_fatbin *f);
/* The kernel that a function launches, mangled; NULL: not known. Valid while its library is loaded. */
const char *frag_nogpu_name_of(const void *function);
/* Registers of a thread of the kernel of that mangled name (NULL: not known), and how many blocks of as many registers a
 * multiprocessor of the card runs at once, at least one (occupancy.c). */
int frag_nogpu_registers_by_name(const char *name);
int frag_nogpu_blocks_per_sm(int registers, int threads, uint64_t shared_bytes);
/* Is this the first kernel of its source file that is launched? True once. */
bool frag_nogpu_loads(const void *function);

/* ---- runtimes inside of the program's libraries (static_runtime.c) */

/* Puts a jump to the entry of this name where a function of a loaded library begins, if it is long enough and still has the
 * bytes of its file. */
__attribute__((visibility("default"))) bool
frag_nogpu_replace(void *function, const void *original, size_t bytes, const char *name, int major);
/* Libraries that were loaded since the last call, perhaps others, too: lines "BASE PATH", until the next call. From one thread at a time. */
__attribute__((visibility("default"))) const char *frag_nogpu_loaded(void);
/* A library with these addresses has such a runtime, and registered these source files with it. From one thread at a time. */
__attribute__((visibility("default"))) void
frag_nogpu_adopt(uint64_t first, uint64_t end, const struct frag_nogpu_fatbin *files, size_t count);
/* The architecture of the kernels of such a library, by one of its functions; 0: not in one. */
int frag_nogpu_adopted_arch(const void *function);

#endif
