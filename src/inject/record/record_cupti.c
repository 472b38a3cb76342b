/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by CUPTI's callbacks. CUPTI is opened at run time; no header of it is needed: calls are
 * found by name, and their parameters lie in memory as the function declares them. Calls inside a
 * call of the runtime count once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "recorder.h"

#define CALLBACKS_MAX 4096u /* numbers of calls that are asked for their names */

/* As CUPTI's ABI is since CUDA 8. */
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

static const struct {
	const char *name; /* up to a suffix _v2, _v11020, _ptsz */
	enum frag_rec_shape shape;
} calls[] = {
#define X(number, symbol, name, version, per_thread, shape) { name, shape },
	FRAG_REC_DRIVER_CALLS(X)
#undef X
#define X(name, shape) { name, shape },
		FRAG_REC_RUNTIME_CALLS(X)
#undef X
};

static enum frag_rec_shape shapes[3][CALLBACKS_MAX]; /* by domain and number */

static _Thread_local bool told; /* the call of the runtime, by the driver's in it */

/* "cudaMallocAsync_v11020_ptsz" is "cudaMallocAsync". */
static enum frag_rec_shape shape_of(const char *name)
{
	size_t n = strcspn(name, "_");

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strlen(calls[i].name) == n && !strncmp(calls[i].name, name, n))
			return calls[i].shape;
	return REC_NONE;
}

/* A runtime call is reported by its driver calls, if CUPTI shows them. */
static void on_call(void *user, int domain, uint32_t id, const void *data)
{
	const struct callback *cb = data;
	struct frag_rec_call c = { .device = cupti.device };

	(void)user;
	if ((domain != DOMAIN_DRIVER && domain != DOMAIN_RUNTIME) || id >= CALLBACKS_MAX ||
	    shapes[domain][id] == REC_NONE)
		return;
	c.shape = shapes[domain][id];
	c.name = cb->function;
	c.params = cb->params;
	c.context = cb->context;
	if (domain == DOMAIN_RUNTIME && cb->site == SITE_ENTER) {
		told = false;
	} else if (cb->site == SITE_ENTER) {
		told = true;
		frag_rec_enter(&c);
	} else if (domain == DOMAIN_DRIVER || !told) {
		frag_rec_leave(&c, cb->result ? *(const int *)cb->result : 0,
			       domain == DOMAIN_RUNTIME);
	}
}

static bool load_cupti(void)
{
	static const char *const files[] = {
		"libcupti.so.13",
		"libcupti.so.12",
		"libcupti.so.11.0",
		"libcupti.so",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
		"/usr/local/cuda/lib64/libcupti.so",
		NULL,
	};
	static const struct frag_symbol symbols[] = {
		FRAG_SYMBOL(__typeof__(cupti), subscribe, "cuptiSubscribe"),
		FRAG_SYMBOL(__typeof__(cupti), enable, "cuptiEnableCallback"),
		FRAG_SYMBOL(__typeof__(cupti), name, "cuptiGetCallbackName"),
		FRAG_SYMBOL(__typeof__(cupti), device, "cuptiGetDeviceId"),
	};
	const char *own = getenv(CUFRAG_CUPTI);
	void *lib;

	if (own && *own) {
		lib = frag_library_open((const char *const[]){ own, NULL });
	} else { /* the one that the program has loaded comes first */
		lib = frag_library_loaded(files);
		lib = lib ? lib : frag_library_open(files);
	}
	return lib && !FRAG_SYMBOLS_FIND(lib, symbols, &cupti);
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

bool frag_rec_cupti_start(const char **why)
{
	static char taken[80];
	void *subscriber;
	int rc;

	*why = "found no libcupti (it comes with the CUDA toolkit and the wheel nvidia-cuda-cupti; "
	       "CUFRAG_CUPTI can name one)";
	if (!load_cupti())
		return false;
	rc = cupti.subscribe(&subscriber, on_call, NULL);
	if (rc) {
		snprintf(taken, sizeof(taken), "another profiler uses CUPTI (error %d)", rc);
		*why = taken;
		return false;
	}
	*why = NULL;
	if (!frag_rec_open())
		return false;
	*why = "this libcupti knows no memory call";
	return enable_calls(subscriber) > 0;
}
