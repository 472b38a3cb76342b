/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the recorder's test: with -DLIBRARY a libcupti that knows some calls, without it a program
 * that loads what CUDA_INJECTION64_PATH names, as the driver does, and makes calls of a program up.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct callback {
	int site;
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	void *context;
	uint32_t uid;
	uint64_t *data;
	uint32_t id;
};
typedef void (*callback_fn)(void *, int, uint32_t, const void *);

#ifdef LIBRARY
static const char *const names[] = { "",
				     "cuMemAlloc_v2",
				     "cuMemFree_v2",
				     "cuMemCreate",
				     "cuMemMap",
				     "cuMemUnmap",
				     "cuMemRelease",
				     "cuLaunchKernel",
				     "cudaMalloc_v3020",
				     "cudaFree_v3020",
				     "cuMemAllocAsync_ptsz",
				     "cuMemFreeAsync_ptsz",
				     "cuCtxDestroy_v2" };
#define COUNT (sizeof(names) / sizeof(*names))
static callback_fn fn;
static int enabled[COUNT];

int cuptiSubscribe(void **subscriber, callback_fn f, void *user)
{
	(void)user;
	*subscriber = &fn;
	fn = f;
	return getenv("FAKE_TAKEN") ? 39 : 0;
}

static int domain_of(uint32_t id)
{
	return strncmp(names[id], "cuda", 4) ? 1 : 2;
}

int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
	if (id < 1 || id >= COUNT || domain_of(id) != domain)
		return 1;
	*name = names[id];
	return 0;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t id)
{
	(void)subscriber;
	if (domain_of(id) != domain || !strcmp(names[id], "cuLaunchKernel"))
		abort(); /* not requested */
	enabled[id] = (int)enable;
	return 0;
}

int cuptiGetDeviceId(void *context, uint32_t *device)
{
	*device = context == (void *)0x2000 ? 1 : 0;
	return 0;
}

void fake_site(int site, const char *name, const void *params, int result, void *context)
{
	for (uint32_t id = 1; id < COUNT; id++) {
		struct callback cb = { site, &names[id][0], params, &result, NULL, context,
				       1,    NULL,	    1 };

		if (!strcmp(names[id], name) && enabled[id] && fn)
			fn(NULL, domain_of(id), id, &cb);
	}
}
#else
static void (*site)(int, const char *, const void *, int, void *);

static void call(const char *name, const void *params, int result, void *context)
{
	site(0, name, params, 0, context);
	site(1, name, params, result, context);
}

int main(int argc, char **argv)
{
	void *lib = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW), *one = (void *)0x1000,
	     *two = (void *)0x2000;
	uint64_t p = 0x7000, q = 0x9000, h = 0x55, prop[4] = { 1, 1, 0, 0 };
	int (*init)(void);

	if (!lib || !(init = (int (*)(void))dlsym(lib, "InitializeInjection")) || init() != 1)
		return 1;
	lib = dlopen(getenv("CUFRAG_CUPTI"), RTLD_NOW);
	site = (void (*)(int, const char *, const void *, int, void *))dlsym(lib, "fake_site");
	if (argc > 1 && !strcmp(argv[1], "nothing"))
		return 0;
	/* the runtime's call contains the driver's: one event */
	uint64_t alloc[] = { (uint64_t)&p, 1000 };
	site(0, "cudaMalloc_v3020", alloc, 0, one);
	call("cuMemAlloc_v2", alloc, 0, one);
	site(1, "cudaMalloc_v3020", alloc, 0, one);
	/* and one that shows no call of the driver; on another card */
	uint64_t alloc2[] = { (uint64_t)&q, 2000 };
	call("cudaMalloc_v3020", alloc2, 0, two);
	call("cuLaunchKernel", NULL, 0, one);
	/* refused for want of memory, and for another reason */
	uint64_t big[] = { (uint64_t)&h, 1ull << 40 };
	call("cuMemAlloc_v2", big, 2, one);
	call("cuMemAlloc_v2", big, 1, one);
	/* physical memory lives while it is mapped */
	uint64_t create[] = { (uint64_t)&h, 2 << 20, (uint64_t)prop, 0 };
	uint64_t map[] = { 0x10000000, 2 << 20, 0, h, 0 }, unmap[] = { 0x10000000, 2 << 20 },
		 release[] = { h };
	call("cuMemCreate", create, 0, one);
	call("cuMemMap", map, 0, one);
	call("cuMemRelease", release, 0, one);
	call("cuMemUnmap", unmap, 0, one);
	/* a free that fails leaves what there was */
	uint64_t release_p[] = { p };
	call("cuMemFree_v2", release_p, 1, one);
	uint64_t r = 0xb000, async[] = { (uint64_t)&r, 512, 7 }, async_free[] = { r, 7 };
	call("cuMemAllocAsync_ptsz", async, 0, one);
	call("cuMemFreeAsync_ptsz", async_free, 0, one);
	call("cuCtxDestroy_v2", &one, 0, one);
	if (argc > 1 && !strcmp(argv[1], "killed")) { /* when all of it is written */
		char find[4200];

		snprintf(find, sizeof(find), "grep -q cuCtxDestroy \"$CUFRAG_RECORD_CUDA.%d.csv\"",
			 (int)getpid());
		for (int i = 0; i < 1000 && system(find); i++)
			usleep(50000);
		abort();
	}
	return argc > 1 ? atoi(argv[1]) : 0;
}
#endif
