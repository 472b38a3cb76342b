/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's memory calls, interposed, and the beginning of the recorder. Preloaded, this library
 * comes before the driver: programs linked with it call the functions below by name. All others,
 * the runtime first, statically linked or not, ask for entry points by dlsym or cuGetProcAddress,
 * which are here, too, and answer with the functions below where they would have answered with
 * those of the driver.
 *
 * Every function takes its parameters as words, which is how the ABIs of x86-64 and arm64 pass
 * them, and hands them on unchanged. While nothing is recorded here that is all they do.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

#define NOT_FOUND 500	     /* CUDA_ERROR_NOT_FOUND */
#define PER_THREAD_STREAMS 2 /* of cuGetProcAddress */

typedef int (*entry_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static int through(unsigned i, const uint64_t *p);

/* The functions, and the same under their names. */
#define X(number, symbol, name, version, per_thread, shape) \
	static int entry_##number(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, \
				  uint64_t f) \
	{ \
		const uint64_t p[] = { a, b, c, d, e, f }; \
		return through(number, p); \
	} \
	REC_EXPORT int symbol(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, \
			      uint64_t f) __attribute__((alias("entry_" #number)));
FRAG_REC_DRIVER_CALLS(X)
#undef X

static struct {
	const char *symbol, *name;
	int version;
	bool per_thread;
	enum frag_rec_shape shape;
	entry_fn here, real;
} entries[] = {
#define X(number, symbol, name, version, per_thread, shape) \
	{ #symbol, name, version, per_thread, shape, entry_##number, NULL },
	FRAG_REC_DRIVER_CALLS(X)
#undef X
};
#define ENTRIES_COUNT (sizeof(entries) / sizeof(*entries))

enum by { BY_UNDECIDED, BY_OTHERS, BY_THIS };
static int by; /* set once */

static _Thread_local unsigned depth; /* of calls in calls */

/* ---- the loader ------------------------------------------------------------------------- */

static void *(*real_dlsym)(void *handle, const char *name);

static void *find_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17" };
	void *at = NULL;

	for (size_t i = 0; !at && i < sizeof(versions) / sizeof(*versions); i++)
		at = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	return at;
}

static void *loader(void *handle, const char *name)
{
	if (!real_dlsym)
		*(void **)&real_dlsym = find_dlsym();
	return real_dlsym ? real_dlsym(handle, name) : NULL;
}

/* Of the driver itself, however the program came to it. */
static void *in_driver(const char *name)
{
	void *at = loader(RTLD_NEXT, name), *lib;

	if (at)
		return at;
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	return lib ? loader(lib, name) : NULL;
}

/* ---- calls ------------------------------------------------------------------------------ */

static bool wanted(void)
{
	return getenv(CUFRAG_RECORD_CUDA) != NULL;
}

/* The first memory call decides, if the driver has not loaded us before. */
static bool recording(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *asked;

	if (__atomic_load_n(&by, __ATOMIC_ACQUIRE) != BY_UNDECIDED)
		return by == BY_THIS;
	pthread_mutex_lock(&lock);
	if (by == BY_UNDECIDED) {
		asked = getenv(CUFRAG_RECORD_BY);
		if (!wanted() || (asked && !strcmp(asked, "cupti")))
			__atomic_store_n(&by, BY_OTHERS, __ATOMIC_RELEASE);
		else if (!frag_rec_preload_start(asked && !strcmp(asked, "preload")
							 ? NULL
							 : "the driver did not load the recorder"))
			__atomic_store_n(&by, BY_OTHERS, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return by == BY_THIS;
}

static void *current_context(void)
{
	static int (*get)(void **);
	void *context = NULL;

	if (!get)
		*(void **)&get = in_driver("cuCtxGetCurrent");
	return get && !get(&context) ? context : NULL;
}

static int device_of(void *context, uint32_t *device)
{
	static int (*get)(uint32_t *);

	(void)context; /* it is current */
	if (!get)
		*(void **)&get = in_driver("cuCtxGetDevice");
	return get ? get(device) : NOT_FOUND;
}

static int through(unsigned i, const uint64_t *p)
{
	struct frag_rec_call c = { .shape = entries[i].shape,
				   .name = entries[i].symbol,
				   .params = p,
				   .device = device_of };
	entry_fn real = entries[i].real;
	int rc;

	if (!real) {
		*(void **)&real = in_driver(entries[i].symbol);
		if (!real)
			return NOT_FOUND;
		entries[i].real = real;
	}
	if (depth || !recording())
		return real(p[0], p[1], p[2], p[3], p[4], p[5]);
	depth++;
	c.context = c.shape == REC_CONTEXT_END ? (void *)(uintptr_t)p[0] : current_context();
	frag_rec_enter(&c);
	rc = real(p[0], p[1], p[2], p[3], p[4], p[5]);
	frag_rec_leave(&c, rc, false);
	depth--;
	return rc;
}

/* ---- queries for entry points return those above ----------------------------------------- */

/* The first one has no status, and passes on what stands in its place. */
typedef int get_proc_fn(const char *symbol, void **out, int version, uint64_t flags, int *status);
REC_EXPORT get_proc_fn cuGetProcAddress, cuGetProcAddress_v2;
static get_proc_fn *real_get_proc[2], *const here_get_proc[] = { cuGetProcAddress,
								 cuGetProcAddress_v2 };

/* The driver's entry point stands for ours from now on. */
static void *take_place(size_t i, void *found)
{
	void *here;

	memcpy(&here, &entries[i].here, sizeof(here));
	if (found != here && !entries[i].real)
		*(void **)&entries[i].real = found;
	return here;
}

/* What cuGetProcAddress found is `found`. */
static void *replace(const char *symbol, void *found, int version, uint64_t flags)
{
	size_t best = ENTRIES_COUNT;

	if (!strncmp(symbol, "cuGetProcAddress", 16)) {
		bool second = symbol[16] || version >= 12000;
		void *here = (void *)here_get_proc[second];

		if (found != here)
			*(void **)&real_get_proc[second] = found;
		return here;
	}
	for (size_t i = 0; i < ENTRIES_COUNT; i++) {
		if (!strcmp(entries[i].symbol, symbol) && strcmp(entries[i].name, symbol) != 0)
			return take_place(i, found);
		if (!strcmp(entries[i].name, symbol) && entries[i].version <= version &&
		    (!entries[i].per_thread || flags & PER_THREAD_STREAMS))
			best = i;
	}
	return best < ENTRIES_COUNT ? take_place(best, found) : found;
}

#define GET_PROC(symbol_, second) \
	int symbol_(const char *symbol, void **out, int version, uint64_t flags, int *status) \
	{ \
		get_proc_fn **real = &real_get_proc[second]; \
		int rc; \
\
		if (!*real) \
			*(void **)real = in_driver(#symbol_); \
		rc = *real ? (*real)(symbol, out, version, flags, status) : NOT_FOUND; \
		if (!rc && symbol && out && *out) \
			*out = replace(symbol, *out, version, flags); \
		return rc; \
	}
GET_PROC(cuGetProcAddress, 0)
GET_PROC(cuGetProcAddress_v2, 1)

/* What dlsym is to answer; NULL: what it would without us. */
static void *answer(void *handle, const char *name)
{
	void *found;

	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT || !wanted())
		return NULL;
	if (!strncmp(name, "cuGetProcAddress", 16) && (!name[16] || !strcmp(name + 16, "_v2"))) {
		found = loader(handle, name);
		return found ? replace(name, found, 0, 0) : NULL;
	}
	for (size_t i = 0; i < ENTRIES_COUNT; i++) {
		if (strcmp(entries[i].symbol, name) != 0)
			continue;
		found = loader(handle, name);
		return found ? take_place(i, found) : NULL;
	}
	return NULL;
}

/* A tail call, so that RTLD_NEXT is relative to the caller, not to this library. */
REC_EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
	void *at = answer(handle, name);

	if (at)
		return at;
	if (!real_dlsym)
		*(void **)&real_dlsym = find_dlsym();
	return real_dlsym(handle, name);
}

/* ---- beginning ---------------------------------------------------------------------------- */

bool frag_rec_preload_start(const char *why_not_cupti)
{
	Dl_info first = { 0 }, self = { 0 };

	/* preloaded: ours is the dlsym that everybody finds */
	if (!dladdr(loader(RTLD_DEFAULT, "dlsym"), &first) || !dladdr((void *)answer, &self) ||
	    first.dli_fbase != self.dli_fbase || !frag_rec_open())
		return false;
	if (why_not_cupti)
		fprintf(stderr, "cufrag: %s; recording at the driver's entry points instead\n",
			why_not_cupti);
	__atomic_store_n(&by, BY_THIS, __ATOMIC_RELEASE);
	return true;
}

/* Called by the driver in cuInit. 1: all is well; the program goes on in any case. */
REC_EXPORT int InitializeInjection(void);
REC_EXPORT int InitializeInjection(void)
{
	static bool begun;
	const char *asked = getenv(CUFRAG_RECORD_BY), *why = NULL;

	if (begun)
		return 1;
	begun = true;
	if (asked && !strcmp(asked, "preload"))
		return 1;
	if (frag_rec_cupti_start(&why))
		__atomic_store_n(&by, BY_OTHERS, __ATOMIC_RELEASE);
	else if (why && ((asked && !strcmp(asked, "cupti")) || !frag_rec_preload_start(why)))
		fprintf(stderr, "cufrag: %s; nothing is recorded\n", why);
	return 1;
}
