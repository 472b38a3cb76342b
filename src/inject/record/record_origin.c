/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers that request memory. cuDNN and cuBLAS allocate from the driver when a handle is made
 * (cuBLAS 64 MiB on an H200), outside of a framework's pool, so a recording of the framework's
 * requests must leave that out.
 *
 * After the frames of the recorder, CUPTI, the driver and the runtime, the stack has the caller:
 * one of these libraries, or other code. A library linked statically into a program cannot be
 * recognized.
 */
#include <dlfcn.h>
#include <string.h>

#include "recorder.h"

#define CACHE_SIZE 256u

enum kind {
	KIND_OTHER,
	KIND_PASSED, /* between the caller and us */
	KIND_LIBRARY,
};

static const char *const passed[] = { "libcufrag_record.", "libcupti.", "libcuda.", "libcudart.",
				      "libnvperf" };
static const char *const libraries[] = { "libcublas",	"libcudnn",    "libcufft",    "libcurand",
					 "libcusolver", "libcusparse", "libcutensor", "libnccl.",
					 "libnvinfer",	"libnvjpeg",   "libnvshmem" };

static bool begins_with_one(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}

static enum kind look_up(void *frame, const char **path)
{
	const char *slash, *name;
	Dl_info info;

	*path = "";
	if (!dladdr((char *)frame - 1, &info) || !info.dli_fname)
		return KIND_OTHER;
	slash = strrchr(info.dli_fname, '/');
	name = slash ? slash + 1 : info.dli_fname;
	*path = info.dli_fname;
	if (begins_with_one(name, passed, sizeof(passed) / sizeof(*passed)))
		return KIND_PASSED;
	return begins_with_one(name, libraries, sizeof(libraries) / sizeof(*libraries))
		       ? KIND_LIBRARY
		       : KIND_OTHER;
}

const char *frag_rec_origin_library(void *const *frames, int count)
{
	static _Thread_local struct {
		void *frame;
		const char *path;
		enum kind kind;
	} cache[CACHE_SIZE];

	for (int i = 0; i < count; i++) {
		size_t at = ((uintptr_t)frames[i] >> 2) % CACHE_SIZE;

		if (cache[at].frame != frames[i]) {
			cache[at].kind = look_up(frames[i], &cache[at].path);
			cache[at].frame = frames[i];
		}
		if (cache[at].kind != KIND_PASSED)
			return cache[at].kind == KIND_LIBRARY ? cache[at].path : NULL;
	}
	return NULL;
}
