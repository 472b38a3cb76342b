/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcufrag_record.so: writes what a CUDA program asks of the driver, as a CSV that every command
 * reads (src/trace/readers/read_csv.c). The driver loads it into the process (CUDA_INJECTION64_PATH), so
 * that the program is unchanged and may link its runtime statically. CUPTI is opened at run time; no
 * header of it is needed: calls are found by name, and their parameters lie in memory as the
 * function declares them.
 *
 *	CUFRAG_RECORD_CUDA   path of the files; ".PID.csv" is added (default cufrag)
 *	CUFRAG_CUPTI         the libcupti to use, instead of those that are looked for
 *
 * Rules of the log: an allocation is written behind its call, a free before it, so that an address that
 * another thread gets at once is in order. Physical memory of the VMM calls lives until it is
 * released and mapped nowhere. What a destroyed context held is freed. Calls inside a call of the
 * runtime count once. The buffer goes to the file twice a second: a killed program loses no more.
 *
 * This is a library of its own and uses nothing of cufrag's.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define BUCKETS 65536u
#define BUFFER_BYTES (1u << 18)
#define LINE_MAX_BYTES 256u
#define CALLBACKS_MAX 4096u /* numbers of calls that are asked for their names */
#define OUT_OF_MEMORY 2	    /* cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY */
#define HANDLE_BIT (1ull << 63)

/* ---- CUPTI, as its ABI is since CUDA 8 ---------------------------------------------- */

enum { DOMAIN_DRIVER = 1, DOMAIN_RUNTIME = 2 };
enum { SITE_ENTER = 0, SITE_EXIT = 1 };
struct callback {
	int site;
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_uid;
	uint64_t *correlation_data;
	uint32_t correlation_id;
};
typedef void (*callback_fn)(void *user, int domain, uint32_t id, const void *data);

static struct {
	int (*subscribe)(void **subscriber, callback_fn fn, void *user);
	int (*enable)(uint32_t enable, void *subscriber, int domain, uint32_t id);
	int (*name)(int domain, uint32_t id, const char **name);
	int (*device)(void *context, uint32_t *device);
} cupti;

/* ---- the calls ---------------------------------------------------------------------- */

enum shape {
	NONE,
	ALLOC,	     /* (ptr *, bytes) */
	ALLOC_ASYNC, /* (ptr *, bytes, stream) */
	ALLOC_POOL,  /* (ptr *, bytes, pool, stream) */
	ALLOC_PITCH, /* (ptr *, pitch *, width, height) */
	FREE,	     /* (ptr) */
	FREE_ASYNC,  /* (ptr, stream) */
	CREATE,	     /* (handle *, bytes, properties) */
	RETAIN,	     /* (handle *, address) */
	RELEASE,     /* (handle) */
	MAP,	     /* (address, bytes, offset, handle) */
	UNMAP,	     /* (address, bytes) */
	CONTEXT_END,
};

static const struct {
	const char *name; /* up to a suffix _v2, _v11020, _ptsz */
	enum shape shape;
} calls[] = {
	{ "cuMemAlloc", ALLOC },
	{ "cuMemAllocManaged", ALLOC },
	{ "cuMemAllocPitch", ALLOC_PITCH },
	{ "cuMemAllocAsync", ALLOC_ASYNC },
	{ "cuMemAllocFromPoolAsync", ALLOC_POOL },
	{ "cuMemFree", FREE },
	{ "cuMemFreeAsync", FREE_ASYNC },
	{ "cuMemCreate", CREATE },
	{ "cuMemRetainAllocationHandle", RETAIN },
	{ "cuMemRelease", RELEASE },
	{ "cuMemMap", MAP },
	{ "cuMemUnmap", UNMAP },
	{ "cuCtxDestroy", CONTEXT_END },
	{ "cuDevicePrimaryCtxReset", CONTEXT_END },
	{ "cudaMalloc", ALLOC },
	{ "cudaMallocManaged", ALLOC },
	{ "cudaMallocPitch", ALLOC_PITCH },
	{ "cudaMallocAsync", ALLOC_ASYNC },
	{ "cudaMallocFromPoolAsync", ALLOC_POOL },
	{ "cudaFree", FREE },
	{ "cudaFreeAsync", FREE_ASYNC },
};

static enum shape shapes[3][CALLBACKS_MAX]; /* by domain and number */

/* "cudaMallocAsync_v11020_ptsz" is "cudaMallocAsync". */
static enum shape shape_of(const char *name)
{
	size_t n = strcspn(name, "_");

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strlen(calls[i].name) == n && !strncmp(calls[i].name, name, n))
			return calls[i].shape;
	return NONE;
}

/* ---- what is live -------------------------------------------------------------------- */

struct live {
	struct live *next;
	uint64_t id, bytes; /* of a mapping: the address, and its handle */
	void *context;
	uint32_t device, refs;
};

/* One lock for all of it: the tables, the buffer and the order of lines. */
static struct {
	pthread_mutex_t lock;
	struct live *blocks[BUCKETS], *maps[BUCKETS];
	char *buffer;
	size_t used;
	FILE *to;
	bool stopped;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct live **bucket(struct live **table, uint64_t id)
{
	return &table[((id >> 9 ^ id) * 0x9e3779b97f4a7c15ull) >> 48 & (BUCKETS - 1)];
}

static struct live **find(struct live **table, uint64_t id)
{
	struct live **at = bucket(table, id);

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static struct live *enter(struct live **table, uint64_t id, uint64_t bytes)
{
	struct live **first = bucket(table, id), *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct live){ .next = *first, .id = id, .bytes = bytes, .refs = 1 };
	*first = l;
	return l;
}

static void leave(struct live **at)
{
	struct live *l = *at;

	*at = l->next;
	free(l);
}

/* ---- the file -------------------------------------------------------------------------- */

static void flush(void)
{
	if (!state.to || !state.used)
		return;
	if (fwrite(state.buffer, 1, state.used, state.to) != state.used || fflush(state.to)) {
		fprintf(stderr, "cufrag: the recording cannot be written any more; what was "
				"written stays\n");
		state.stopped = true;
	}
	state.used = 0;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* bytes, stream: UINT64_MAX = not known. */
static void line(const char *action, uint64_t id, uint64_t bytes, uint64_t stream, uint32_t device,
		 const char *call)
{
	char *at, size[24] = "", on[24] = "";

	if (state.stopped)
		return;
	if (state.used + LINE_MAX_BYTES > BUFFER_BYTES)
		flush();
	if (bytes != UINT64_MAX)
		snprintf(size, sizeof(size), "%" PRIu64, bytes);
	if (stream != UINT64_MAX)
		snprintf(on, sizeof(on), "0x%" PRIx64, stream);
	at = state.buffer + state.used;
	state.used += (size_t)snprintf(at, LINE_MAX_BYTES,
				       "%s,0x%" PRIx64 ",%s,%s,%" PRIu64 ",%u,%.60s\n", action, id,
				       size, on, now_us(), device, call);
}

/* ---- events ---------------------------------------------------------------------------- */

/* Of this thread: is it inside a call of the runtime, and did the driver's tell it already? */
static _Thread_local struct {
	unsigned depth;
	bool told;
	uint64_t freed, freed_bytes; /* by the call that has not returned */
	void *context;
	uint32_t device;
} mine;

static uint32_t device_of(void *context)
{
	uint32_t device;

	if (context && context != mine.context && !cupti.device(context, &device)) {
		mine.context = context;
		mine.device = device;
	}
	return mine.device;
}

static void on_free(uint64_t id, uint64_t stream, uint32_t device, const char *call)
{
	struct live **at = find(state.blocks, id);

	mine.freed = id;
	mine.freed_bytes = *at ? (*at)->bytes : UINT64_MAX;
	if (*at)
		device = (*at)->device;
	line("free", id, mine.freed_bytes, stream, device, call);
	if (*at)
		leave(at);
}

static void on_alloc(const struct callback *cb, uint64_t id, uint64_t bytes, uint64_t stream,
		     uint32_t device)
{
	struct live *l;

	if (!id)
		return;
	if (*find(state.blocks, id)) /* its free was not seen */
		on_free(id, UINT64_MAX, device, "unseen");
	line("alloc", id, bytes, stream, device, cb->function);
	l = enter(state.blocks, id, bytes);
	if (!l)
		return;
	l->context = cb->context;
	l->device = device;
}

static void drop_ref(uint64_t id, const char *call)
{
	struct live **at = find(state.blocks, id);

	if (*at && !--(*at)->refs)
		on_free(id, UINT64_MAX, (*at)->device, call);
}

static void on_unmap(uint64_t address, uint64_t bytes, const char *call)
{
	/* a range may hold several mappings; their places are multiples of the granularity */
	for (uint64_t at = address; at < address + bytes; at += 65536) {
		struct live **map = find(state.maps, at);
		uint64_t handle;

		if (!*map)
			continue;
		handle = (*map)->bytes;
		leave(map);
		drop_ref(handle, call);
	}
}

static void on_context_end(const struct callback *cb)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct live **at = &state.blocks[i];

		while (*at) {
			if ((*at)->context != cb->context || (*at)->id & HANDLE_BIT) {
				at = &(*at)->next;
				continue;
			}
			line("free", (*at)->id, (*at)->bytes, UINT64_MAX, (*at)->device,
			     cb->function);
			leave(at);
		}
	}
}

/* All parameters are 8 bytes wide where they matter. */
static uint64_t param(const struct callback *cb, size_t i)
{
	uint64_t v;

	memcpy(&v, (const char *)cb->params + 8 * i, 8);
	return v;
}

static uint64_t param_at(const struct callback *cb, size_t i)
{
	uint64_t v = 0, at = param(cb, i);

	if (at)
		memcpy(&v, (const void *)(uintptr_t)at, 8);
	return v;
}

/* CUmemAllocationProp: type, handle types, then location: type (1 = device) and number. */
static bool on_device(const struct callback *cb, uint32_t *device)
{
	int prop[4] = { 0 };
	uint64_t at = param(cb, 2);

	if (at)
		memcpy(prop, (const void *)(uintptr_t)at, sizeof(prop));
	*device = (uint32_t)prop[3];
	return prop[2] == 1;
}

/* What a request asks for, read from its parameters. */
static void request(const struct callback *cb, enum shape shape, uint64_t *bytes, uint64_t *stream)
{
	*bytes = shape == ALLOC_PITCH ? param_at(cb, 1) * param(cb, 3) : param(cb, 1);
	*stream = shape == ALLOC_ASYNC ? param(cb, 2) : shape == ALLOC_POOL ? param(cb, 3) : 0;
}

static void entered(const struct callback *cb, enum shape shape)
{
	mine.freed = 0;
	if (shape == FREE && param(cb, 0))
		on_free(param(cb, 0), UINT64_MAX, device_of(cb->context), cb->function);
	else if (shape == FREE_ASYNC && param(cb, 0))
		on_free(param(cb, 0), param(cb, 1), device_of(cb->context), cb->function);
	else if (shape == RELEASE)
		drop_ref(param(cb, 0) | HANDLE_BIT, cb->function);
	else if (shape == UNMAP)
		on_unmap(param(cb, 0), param(cb, 1), cb->function);
	else if (shape == CONTEXT_END)
		on_context_end(cb);
}

static void failed(const struct callback *cb, enum shape shape, int result)
{
	uint32_t device = device_of(cb->context);
	uint64_t bytes, stream;

	if (mine.freed && mine.freed_bytes != UINT64_MAX) { /* it is still there */
		on_alloc(cb, mine.freed, mine.freed_bytes, UINT64_MAX, device);
		return;
	}
	if (result != OUT_OF_MEMORY || (shape > ALLOC_PITCH && shape != CREATE))
		return;
	if (shape == CREATE && !on_device(cb, &device))
		return;
	request(cb, shape, &bytes, &stream);
	line("refused", 0, shape == ALLOC_PITCH ? param(cb, 2) * param(cb, 3) : bytes, stream,
	     device, cb->function);
}

static void on_map(const struct callback *cb)
{
	uint64_t handle = param(cb, 3) | HANDLE_BIT;
	struct live *block = *find(state.blocks, handle);

	if (block && enter(state.maps, param(cb, 0), handle))
		block->refs++;
}

static void succeeded(const struct callback *cb, enum shape shape)
{
	uint32_t device = device_of(cb->context);
	uint64_t bytes, stream;

	if (shape <= ALLOC_PITCH) {
		request(cb, shape, &bytes, &stream);
		on_alloc(cb, param_at(cb, 0), bytes, stream, device);
	} else if (shape == CREATE && on_device(cb, &device)) {
		on_alloc(cb, param_at(cb, 0) | HANDLE_BIT, param(cb, 1), UINT64_MAX, device);
	} else if (shape == RETAIN) {
		struct live *block = *find(state.blocks, param_at(cb, 0) | HANDLE_BIT);

		if (block)
			block->refs++;
	} else if (shape == MAP) {
		on_map(cb);
	}
}

/* A call of the runtime is told by those of the driver that it makes, where CUPTI shows them. */
static void on_call(void *user, int domain, uint32_t id, const void *data)
{
	const struct callback *cb = data;
	enum shape shape;
	int result;

	(void)user;
	if ((domain != DOMAIN_DRIVER && domain != DOMAIN_RUNTIME) || id >= CALLBACKS_MAX)
		return;
	shape = shapes[domain][id];
	if (shape == NONE)
		return;
	if (domain == DOMAIN_RUNTIME && cb->site == SITE_ENTER) {
		mine.depth = 1;
		mine.told = false;
		return;
	}
	if (domain == DOMAIN_RUNTIME) {
		mine.depth = 0;
		if (mine.told)
			return;
	}
	pthread_mutex_lock(&state.lock);
	if (cb->site == SITE_ENTER) {
		mine.told = true;
		entered(cb, shape);
	} else {
		result = cb->result ? *(const int *)cb->result : 0;
		if (domain == DOMAIN_RUNTIME)
			entered(cb, shape);
		if (result)
			failed(cb, shape, result);
		else
			succeeded(cb, shape);
	}
	pthread_mutex_unlock(&state.lock);
}

/* ---- beginning and end --------------------------------------------------------------- */

static void *flusher(void *unused)
{
	static const struct timespec half = { .tv_nsec = 500000000 };

	(void)unused;
	for (;;) {
		nanosleep(&half, NULL);
		pthread_mutex_lock(&state.lock);
		flush();
		pthread_mutex_unlock(&state.lock);
	}
	return NULL;
}

/* A forked child has no CUDA of its own, and the file is its parent's. */
static void in_child(void)
{
	pthread_mutex_init(&state.lock, NULL);
	state.used = 0;
	state.stopped = true;
}

__attribute__((destructor)) static void at_end(void)
{
	if (!state.to)
		return;
	pthread_mutex_lock(&state.lock);
	flush();
	pthread_mutex_unlock(&state.lock);
}

static void *open_cupti(void)
{
	static const char *const names[] = {
		"libcupti.so.13",
		"libcupti.so.12",
		"libcupti.so.11.0",
		"libcupti.so",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
		"/usr/local/cuda/lib64/libcupti.so",
	};
	const char *own = getenv("CUFRAG_CUPTI");
	void *lib = NULL;

	if (own && *own)
		return dlopen(own, RTLD_NOW | RTLD_LOCAL);
	/* the one that the program has loaded comes first */
	for (int loaded = 1; !lib && loaded >= 0; loaded--)
		for (size_t i = 0; !lib && i < sizeof(names) / sizeof(*names); i++)
			lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | (loaded ? RTLD_NOLOAD : 0));
	return lib;
}

static bool load_cupti(void)
{
	void *lib = open_cupti();

	if (!lib)
		return false;
	*(void **)&cupti.subscribe = dlsym(lib, "cuptiSubscribe");
	*(void **)&cupti.enable = dlsym(lib, "cuptiEnableCallback");
	*(void **)&cupti.name = dlsym(lib, "cuptiGetCallbackName");
	*(void **)&cupti.device = dlsym(lib, "cuptiGetDeviceId");
	return cupti.subscribe && cupti.enable && cupti.name && cupti.device;
}

static unsigned enable_calls(void *subscriber)
{
	unsigned count = 0;

	for (int domain = DOMAIN_DRIVER; domain <= DOMAIN_RUNTIME; domain++) {
		for (uint32_t id = 1; id < CALLBACKS_MAX; id++) {
			const char *name = NULL;

			if (cupti.name(domain, id, &name) || !name)
				continue;
			shapes[domain][id] = shape_of(name);
			if (shapes[domain][id] && !cupti.enable(1, subscriber, domain, id))
				count++;
		}
	}
	return count;
}

static bool open_file(void)
{
	const char *stem = getenv("CUFRAG_RECORD_CUDA");
	char path[4096];

	snprintf(path, sizeof(path), "%.4000s.%ld.csv", stem && *stem ? stem : "cufrag",
		 (long)getpid());
	state.buffer = malloc(BUFFER_BYTES);
	state.to = state.buffer ? fopen(path, "wex") : NULL;
	if (!state.to) {
		fprintf(stderr, "cufrag: cannot write '%s': nothing is recorded\n", path);
		return false;
	}
	fputs("action,id,size,stream,time_us,device,call\n", state.to);
	fflush(state.to);
	return true;
}

/* Called by the driver in cuInit. 1: all is well; the program goes on in any case. */
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void)
{
	static bool begun;
	pthread_t thread;
	void *subscriber;
	int rc;

	if (begun)
		return 1;
	begun = true;
	if (!load_cupti()) {
		fprintf(stderr, "cufrag: no libcupti found (it is in the CUDA toolkit and in the "
				"wheel nvidia-cuda-cupti; CUFRAG_CUPTI names one): nothing is "
				"recorded\n");
		return 1;
	}
	rc = cupti.subscribe(&subscriber, on_call, NULL);
	if (rc) {
		fprintf(stderr,
			"cufrag: CUPTI is taken by another profiler (error %d): nothing is "
			"recorded\n",
			rc);
		return 1;
	}
	if (!open_file())
		return 1;
	pthread_atfork(NULL, NULL, in_child);
	if (!enable_calls(subscriber))
		fprintf(stderr, "cufrag: this libcupti knows none of the memory calls\n");
	if (!pthread_create(&thread, NULL, flusher, NULL))
		pthread_detach(thread);
	return 1;
}
