/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of record: with -DLIBRARY a libcuda.so.1 of a few calls, which loads what
 * CUDA_INJECTION64_PATH names as the driver does; without it a program that asks for memory through
 * it. Its first word is the way: linked (by name), dlsym, proc (as the runtime does: dlopen, then
 * cuGetProcAddress for all), next (is RTLD_NEXT still what it was); or what it does that recorders
 * do not expect (odd).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint64_t u64;

#ifdef LIBRARY
static u64 next = 0x7f0000000000;

int cuInit(unsigned flags)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *lib = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*begin)(void) = lib ? (int (*)(void))dlsym(lib, "InitializeInjection") : NULL;

	if (begin)
		begin();
	return (int)flags;
}
/* an entry that succeeds if GOOD */
#define ENTRY(name, params, good) \
	int name params \
	{ \
		return !(good); \
	}
ENTRY(cuCtxGetCurrent, (void **out), (*out = (void *)0x100) != NULL)
ENTRY(cuCtxGetDevice, (int *out), (*out = 1))
ENTRY(cuMemFreeAsync, (u64 p, void *stream), p &&stream)
ENTRY(cuMemFree_v2, (u64 p), p != 0x66)
ENTRY(cuMemCreate, (u64 * out, u64 bytes, const int *prop, u64 flags),
      (*out = 0x55) && bytes && prop && !flags)
ENTRY(cuMemMap, (u64 at, u64 bytes, u64 offset, u64 handle, u64 flags),
      at &&bytes && !offset && handle == 0x55 && !flags)
ENTRY(cuMemUnmap, (u64 at, u64 bytes), at &&bytes)
ENTRY(cuMemRelease, (u64 handle), handle == 0x55)
ENTRY(cuDevicePrimaryCtxReset_v2, (int device), device == 1)

int cuMemAlloc_v2(u64 *out, u64 bytes)
{
	if (bytes > 1ull << 40)
		return 2;
	*out = next;
	next += bytes + 511 & ~511ull;
	return 0;
}
int cuMemAllocPitch_v2(u64 *out, u64 *pitch, u64 width, u64 height, unsigned element)
{
	*pitch = width + 511 & ~511ull;
	return element == 4 ? cuMemAlloc_v2(out, *pitch * height) : 1;
}
int cuMemAllocAsync(u64 *out, u64 bytes, void *stream)
{
	return stream ? cuMemAlloc_v2(out, bytes) : 1;
}
int cuMemAllocAsync_ptsz(u64 *out, u64 bytes, void *stream)
{
	return stream ? 1 : cuMemAlloc_v2(out, bytes);
}
int cuGetProcAddress_v2(const char *name, void **out, int version, u64 flags, int *status)
{
	static const char *const seconds[] = { "cuMemAlloc", "cuMemAllocPitch", "cuMemFree",
					       "cuGetProcAddress", "cuDevicePrimaryCtxReset" };
	char symbol[80];

	snprintf(symbol, sizeof(symbol), "%s%s", name,
		 flags & 2 && !strcmp(name, "cuMemAllocAsync") ? "_ptsz" : "");
	for (unsigned i = 0; i < 5; i++)
		if (!strcmp(name, seconds[i]))
			strcat(symbol, "_v2");
	*out = version > 3000 ? dlsym(RTLD_DEFAULT, symbol) : NULL;
	if (!*out)
		*out = dlsym(dlopen("libcuda.so.1", RTLD_NOW), symbol);
	if (status)
		*status = *out ? 0 : 1;
	return *out ? 0 : 500;
}
#else
#ifdef LINKED
int cuInit(unsigned), cuMemAlloc_v2(u64 *, u64), cuMemFree_v2(u64);
#endif
static void *driver;
static int (*get)(const char *, void **, int, u64, int *);

static void *entry(const char *way, const char *name, const char *symbol, u64 flags)
{
	void *at = NULL;

	if (!strcmp(way, "proc"))
		return get(name, &at, 12000, flags, NULL) ? NULL : at;
	return dlsym(driver, symbol);
}
#define CALL(name, symbol, flags, ...) ((int (*)())entry(way, name, symbol, flags))(__VA_ARGS__)

/* an allocator of one's own, for its name in stacks */
__attribute__((noinline)) void *take_memory(const char *way, u64 bytes)
{
	u64 p = 0;

	return CALL("cuMemAlloc", "cuMemAlloc_v2", 0, &p, bytes) ? NULL : (void *)p;
}

static int requests(const char *way)
{
	int prop[4] = { 1, 1, 1, 1 }, bad = 0;
	u64 p[6], pitch, h, map = 0x10000000;

	p[0] = (u64)take_memory(way, 1000);
	bad += CALL("cuMemAllocPitch", "cuMemAllocPitch_v2", 0, &p[1], &pitch, (u64)100, (u64)10,
		    4);
	bad += CALL("cuMemAllocAsync", "cuMemAllocAsync", 0, &p[2], (u64)3000, (void *)7);
	bad += CALL("cuMemAllocAsync", "cuMemAllocAsync_ptsz", 2, &p[3], (u64)4000, (void *)0);
	bad += CALL("cuMemAlloc", "cuMemAlloc_v2", 0, &p[4], (u64)1 << 41) != 2;
	bad += CALL("cuMemCreate", "cuMemCreate", 0, &h, (u64)2 << 20, prop, (u64)0);
	bad += CALL("cuMemMap", "cuMemMap", 0, map, (u64)2 << 20, (u64)0, h, (u64)0);
	bad += CALL("cuMemRelease", "cuMemRelease", 0, h);
	bad += CALL("cuMemUnmap", "cuMemUnmap", 0, map, (u64)2 << 20);
	bad += CALL("cuMemFree", "cuMemFree_v2", 0, (u64)0x66) != 1;
	bad += CALL("cuMemFreeAsync", "cuMemFreeAsync", 0, p[2], (void *)7);
	bad += CALL("cuMemFree", "cuMemFree_v2", 0, p[0]);
	bad += CALL("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", 0, 1);
	return bad;
}

static void begin(void)
{
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver || !(get = dlsym(driver, "cuGetProcAddress_v2")))
		exit(9);
	((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
}

/* for a minute at most */
static void wait_for(const char *path)
{
	for (int i = 0; i < 600 && access(path, F_OK); i++)
		usleep(100000);
}

/* in a file of the recording */
static void write_garbage(void)
{
	char path[4200];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%d.csv", getenv("CUFRAG_RECORD_CUDA"), (int)getpid());
	f = fopen(path, "a");
	fprintf(f, "alloc,x\n");
	fclose(f);
	_exit(0);
}

/* its own file gets the number of another */
static void close_all(void)
{
	FILE *f;

	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	f = fopen("mine.txt", "w");
	for (int i = 0; f && i < 20000; i++)
		take_memory("", 3000);
	fprintf(f, "mine\n");
	fclose(f);
}

static int odd(const char *what, char *self)
{
	char page[64];

	if (!strcmp(what, "dies"))
		raise(SIGKILL);
	begin();
	take_memory("", 1000);
	/* the same process becomes another program */
	if (!strcmp(what, "exec") || (!strcmp(what, "child") && !fork()))
		execl(self, self, "plain", (char *)NULL);
	if (!strcmp(what, "child"))
		wait(NULL);
	if (!strcmp(what, "late")) { /* when it has a shared page */
		printf("%d\n", (int)getpid());
		fflush(stdout);
		snprintf(page, sizeof(page), "/dev/shm/cufrag-%d", (int)getpid());
		wait_for(page);
	}
	if (!strcmp(what, "garbage"))
		write_garbage();
	if (!strcmp(what, "kill") || !strcmp(what, "late"))
		raise(SIGKILL);
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "_exit"))
		_exit(0);
	if (!strcmp(what, "close"))
		close_all();
	if (!strcmp(what, "chdir"))
		return chdir("/") || !take_memory("", 2000);
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	if (!strcmp(way, "next")) /* the C library comes behind the program */
		return dlsym(RTLD_NEXT, "puts") == (void *)puts ? 0 : 1;
#ifdef LINKED
	u64 p;

	cuInit(0);
	return cuMemAlloc_v2(&p, 500) || cuMemFree_v2(p);
#endif
	if (strcmp(way, "proc") != 0 && strcmp(way, "dlsym") != 0)
		return odd(way, argv[0]);
	begin();
	if (!strcmp(way, "proc")) /* as the runtime: itself, by itself */
		get("cuGetProcAddress", (void **)&get, 12000, 0, NULL);
	if (argc > 2) { /* until a file is there: time for a look at the shared page */
		take_memory(way, 3 << 20);
		take_memory(way, 1000);
		wait_for(argv[2]);
		return 0;
	}
	return requests(way);
}
#endif
