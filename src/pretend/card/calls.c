/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls without an entry. A table lists those that succeed by doing nothing: launches, arithmetic,
 * setters, releases. All others return their library's "not supported", and each name is written
 * once to the file CUFRAG_PRETEND_CALLS. Nothing is guessed: a function that returns something
 * through a pointer has an entry or fails.
 */
#include "card.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Patterns for fnmatch of calls that succeed; behind a "!", of those that do not. The first match
 * counts. Of the libraries, getters fail, computations and setters do nothing. */
static const char behaviours[] =
	"cudaLaunch* __cudaLaunchKernel* __cudaRegister* __cudaUnregister* cudaStreamQuery "
	"cudaStreamDestroy cudaGraphLaunch cudaGraphUpload cudaFuncSet* cudaDeviceSet* "
	"cudaDeviceReset cudaInitDevice cudaSetDeviceFlags cudaDeviceEnablePeerAccess "
	"cudaHostRegister cudaHostUnregister cudaMemAdvise* cudaMemPrefetchAsync* "
	"cudaMemcpyToSymbol* cudaMemPoolSetAccess cudaProfiler* "
	"cudaThreadExchangeStreamCaptureMode cudaStreamUpdateCaptureDependencies* "
	"cuInit cuLaunch* cuLogsUnregisterCallback cuFuncSet* cuCtxSet* cuCtxPushCurrent* "
	"cuCtxDestroy* cuCtxSynchronize cuDevicePrimaryCtxRelease* cuDevicePrimaryCtxReset* "
	"cuDevicePrimaryCtxSetFlags* cuModuleUnload cuMemHostRegister* cuMemHostUnregister "
	"cuMemPrefetchAsync* cuMemAdvise* cuStreamQuery cuLibraryUnload cuMemSetAccess "
	"cuStreamDestroy* cuStreamWriteValue* cuStreamWaitValue* cuEventDestroy* "
	"cuTensorMapEncode* cuTensorMapReplace* "
	"!cublas*Get* !cublas*Create* cublas* "
	"!cudnn*Get* !cudnn*Find* !cudnn*Create* cudnn* "
	"!cusparseLt* cusparseCreateIdentityPermutation !cusparse*Create* !cusparse*Get* "
	"!cusparse*ufferSize* cusparse* "
	"!cusolver*Create* !cusolver*Get* !cusolver*ufferSize* cusolver* "
	"cufftDestroy cufftSet* cufft*Exec* "
	"curandSet* curandDestroy* curandGenerate* "
	"nvrtcCompileProgram nvrtcAddNameExpression nvrtcDestroyProgram "
	"!nccl*Get* !ncclCommInit* !nccl*Create* !ncclCommGrow !ncclCommMemStats "
	"!ncclCommShrink !ncclCommWindowRegister nccl* "
	"nvmlInit* nvmlShutdown "
	"nvtx* "
	"cuptiActivity* cuptiEnable* cuptiUnsubscribe cuptiFinalize";

/* Each library's "not supported", by prefix of the name; the first match counts. */
static const struct {
	const char *prefix;
	int code;
} refusals[] = {
	{ "cublas", 15 },
	{ "cudnn", 3000 },
	{ "cusparse", 10 },
	{ "cusolver", 9 },
	{ "cufft", 16 },
	{ "curand", 999 },
	{ "cupti", 8 },
	{ "nccl", 5 },
	{ "nvml", 3 },
	{ "nvrtc", 3 },
	{ "nvshmem", 7 },
	{ "cuFile", 5001 },
	{ "", PRETEND_NOT_SUPPORTED },
};

/* ---- names are written down once ----------------------------------------------------------- */

#define SEEN_MAX 4096u
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *seen[SEEN_MAX];
static size_t seen_count;

static bool is_fresh(const char *name)
{
	FRAG_LOCKED(&mutex);

	for (size_t i = 0; i < seen_count; i++)
		if (seen[i] && !strcmp(seen[i], name))
			return false;
	if (seen_count < SEEN_MAX)
		seen[seen_count++] = frag_host_strdup(name);
	return seen_count < SEEN_MAX;
}

static void write_down(const char *name)
{
	const char *path = getenv(CUFRAG_PRETEND_CALLS);
	int fd;

	if (!is_fresh(name) || !path)
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", name); /* if it cannot be written, the program goes on */
	close(fd);
}

bool frag_pretend_is_nothing(const char *name)
{
	char pattern[64];
	int length;

	for (const char *at = behaviours; sscanf(at, " %63s%n", pattern, &length) == 1;
	     at += length)
		if (!fnmatch(pattern + (*pattern == '!'), name, 0))
			return *pattern != '!';
	return false;
}

int frag_pretend_nothing(void)
{
	return 0;
}

void frag_pretend_no_card(int device)
{
	char line[16];

	snprintf(line, sizeof(line), "card %d", device);
	write_down(line);
}

int frag_pretend_unknown(const char *name)
{
	write_down(name);
	for (size_t i = 0;; i++)
		if (!strncmp(name, refusals[i].prefix, strlen(refusals[i].prefix)))
			return refusals[i].code;
}

/* ---- entries by name ------------------------------------------------------------------------ */

/* A handle of this library, which may be loaded without RTLD_GLOBAL. */
static void *this_library(void)
{
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)frag_pretend_unknown, &info))
		return RTLD_DEFAULT;
	return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

void *frag_pretend_entry(const char *name, int major)
{
	void *self = this_library(), *found;
	char symbol[256];

	snprintf(symbol, sizeof(symbol), "frag_pretend%d_%s", major, name);
	found = dlsym(self, symbol);
	snprintf(symbol, sizeof(symbol), "frag_pretend_%s", name);
	return found ? found : dlsym(self, symbol);
}

/* The libraries that stand for CUDA's export all known names; the plain name of a versioned
 * function means its newest version. */
void *frag_pretend_find(const char *name)
{
	static const char *const forms[] = { "frag_pretend_%s", "frag_pretend_%s_v2", "%s",
					     "%s_v2" };
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *self = this_library(), *found = NULL;
	char symbol[256];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(forms) && !found; i++) {
		void *where = i < 2 ? self : driver;

		snprintf(symbol, sizeof(symbol), forms[i], name);
		if (where)
			found = dlsym(where, symbol);
	}
	return found; /* a lookup is no call yet */
}
