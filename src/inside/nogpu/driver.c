/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own interface, as far as frameworks and Triton use it, kernels and modules,
 * and finding entries by name. Modules and functions are empty boxes: loading succeeds,
 * launching does nothing.
 */
#include "nogpu.h"

#include <stdlib.h>
#include <string.h>

/* One for each card; nobody looks into it. */
#define CONTEXT(device) ((void *)(uintptr_t)(0x100 + (device)))

static int box(void **out)
{
	*out = calloc(1, 64);
	return *out ? NOGPU_OK : NOGPU_OUT_OF_MEMORY;
}

/* Whoever wants to hear of errors hears of none. */
NOGPU_ENTRY(int, cuLogsRegisterCallback, (void *told, void *context, void **out))
{
	(void)told, (void)context;
	return box(out);
}

/* ---- devices and contexts ---------------------------------------------------------------- */

NOGPU_ENTRY(int, cuDriverGetVersion, (int *version))
{
	*version = 13000;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuDeviceGet, (int *device, int ordinal))
{
	*device = ordinal;
	return ordinal >= 0 && ordinal < frag_nogpu_visible() ? NOGPU_OK : NOGPU_INVALID_DEVICE;
}
NOGPU_ENTRY(int, cuDeviceGetCount, (int *count))
{
	*count = frag_nogpu_visible();
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuDeviceGetName, (char *text, int len, int device))
{
	(void)device;
	if (len > 0) {
		strncpy(text, frag_nogpu_card()->name, (size_t)len - 1);
		text[len - 1] = '\0';
	}
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuDeviceTotalMem_v2, (size_t * bytes, int device))
{
	(void)device;
	*bytes = frag_nogpu_card()->total_bytes;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuCtxGetCurrent, (void **out))
{
	*out = CONTEXT(frag_nogpu_device());
	return NOGPU_OK;
}
#define PUSHED_MAX 16
static _Thread_local int pushed[PUSHED_MAX], pushed_count;

NOGPU_ENTRY(int, cuCtxPushCurrent_v2, (void *context))
{
	if (pushed_count == PUSHED_MAX)
		return NOGPU_INVALID_VALUE;
	pushed[pushed_count++] = frag_nogpu_device();
	return frag_nogpu_device_set((int)((uintptr_t)context - 0x100));
}
NOGPU_ENTRY(int, cuCtxPopCurrent_v2, (void **out))
{
	if (!pushed_count)
		return NOGPU_INVALID_VALUE;
	if (out)
		*out = CONTEXT(frag_nogpu_device());
	return frag_nogpu_device_set(pushed[--pushed_count]);
}
NOGPU_ENTRY(int, cuCtxSynchronize, (void))
{
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuCtxGetDevice, (int *device))
{
	*device = frag_nogpu_device();
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuCtxCreate_v2, (void **out, unsigned flags, int device))
{
	(void)flags;
	*out = CONTEXT(device);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuCtxGetLimit, (size_t * value, int limit))
{
	(void)limit;
	*value = FRAG_MIB;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuDevicePrimaryCtxRetain, (void **out, int device))
{
	*out = CONTEXT(device);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active))
{
	(void)device;
	if (flags)
		*flags = 0;
	if (active)
		*active = 1;
	return NOGPU_OK;
}
/* CUpointer_attribute: 1 = context, 2 = memory type, 9 = device ordinal; the rest reads 0. */
NOGPU_ENTRY(int, cuPointerGetAttribute, (void *out, int which, const void *p))
{
	int owner = frag_nogpu_owner(p);

	if (which == 1)
		*(void **)out = CONTEXT(FRAG_MAX(owner, 0));
	else if (which == 2)
		*(unsigned *)out = owner >= 0 ? 2 : 1;
	else if (which == 9)
		*(int *)out = FRAG_MAX(owner, 0);
	else
		memset(out, 0, 8);
	return NOGPU_OK;
}

/* ---- modules and kernels ------------------------------------------------------------------ */

NOGPU_ENTRY(int, cuModuleLoadData, (void **out, const void *image))
{
	(void)image;
	return box(out);
}
NOGPU_ENTRY(int, cuModuleLoadDataEx,
	    (void **out, const void *image, unsigned count, int *options, void **values))
{
	(void)image, (void)count, (void)options, (void)values;
	return box(out);
}
NOGPU_ENTRY(int, cuModuleLoad, (void **out, const char *path))
{
	(void)path;
	return box(out);
}
NOGPU_ENTRY(int, cuModuleGetFunction, (void **out, void *module, const char *name))
{
	(void)module, (void)name;
	return box(out);
}
/* Libraries of kernels, CUDA 12's form of modules. */
NOGPU_ENTRY(int, cuLibraryLoadData,
	    (void **out, const void *image, void *options, void **values, unsigned count,
	     void *more, void **more_values, unsigned more_count))
{
	(void)image, (void)options, (void)values, (void)count;
	(void)more, (void)more_values, (void)more_count;
	return box(out);
}
NOGPU_ENTRY(int, cuLibraryLoadFromFile,
	    (void **out, const char *path, void *options, void **values, unsigned count, void *more,
	     void **more_values, unsigned more_count))
{
	return frag_nogpu_cuLibraryLoadData(out, path, options, values, count, more, more_values,
					    more_count);
}
NOGPU_ENTRY(int, cuLibraryGetKernel, (void **out, void *library, const char *name))
{
	(void)library, (void)name;
	return box(out);
}
NOGPU_ENTRY(int, cuLibraryGetModule, (void **out, void *library))
{
	*out = library;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuKernelGetFunction, (void **out, void *kernel))
{
	*out = kernel;
	return NOGPU_OK;
}
/* CUfunction_attribute: 0 = threads per block, 4 = registers */
NOGPU_ENTRY(int, cuFuncGetAttribute, (int *value, int which, void *function))
{
	(void)function;
	*value = which == 0 ? 1024 : which == 4 ? 32 : 0;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuKernelGetAttribute, (int *value, int which, void *kernel, int device))
{
	(void)device;
	return frag_nogpu_cuFuncGetAttribute(value, which, kernel);
}
NOGPU_ENTRY(int, cuOccupancyMaxActiveBlocksPerMultiprocessor,
	    (int *count, void *function, int threads, size_t shared_bytes))
{
	(void)function, (void)shared_bytes;
	*count = FRAG_MAX(frag_nogpu_card()->threads_per_sm / FRAG_MAX(threads, 1), 1);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cuOccupancyMaxActiveClusters, (int *count, void *function, const void *config))
{
	(void)function, (void)config;
	*count = 16;
	return NOGPU_OK;
}

/* cudaFuncAttributes, the part that every version has: three sizes, then int
 * maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicShared. */
NOGPU_ENTRY(int, cudaFuncGetAttributes, (void *out, const void *function))
{
	const struct nogpu_card *c = frag_nogpu_card();
	const int values[] = { 1024, 32, c->ptx, c->ptx, 0, 49152 };

	(void)function;
	memset(out, 0, 56);
	memcpy((char *)out + 24, values, sizeof(values));
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaOccupancyMaxActiveBlocksPerMultiprocessor,
	    (int *count, const void *function, int threads, size_t shared_bytes))
{
	return frag_nogpu_cuOccupancyMaxActiveBlocksPerMultiprocessor(
		count, (void *)(uintptr_t)function, threads, shared_bytes);
}
NOGPU_ENTRY(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	    (int *count, const void *function, int threads, size_t shared_bytes, unsigned flags))
{
	(void)flags;
	return frag_nogpu_cudaOccupancyMaxActiveBlocksPerMultiprocessor(count, function, threads,
									shared_bytes);
}
NOGPU_ENTRY(int, cudaGetSymbolAddress, (void **out, const void *symbol))
{
	*out = (void *)(uintptr_t)symbol;
	return NOGPU_OK;
}
/* What nvcc puts around kernels. The handle is one for all. */
NOGPU_ENTRY(void **, __cudaRegisterFatBinary, (void *image))
{
	static void *handle[2];

	(void)image;
	return handle;
}
NOGPU_ENTRY(char, __cudaInitModule, (void **handle))
{
	(void)handle;
	return 1;
}
NOGPU_ENTRY(int, __cudaGetKernel, (void **out, const void *function))
{
	*out = (void *)(uintptr_t)function;
	return NOGPU_OK;
}
/* What stands between <<< and >>> waits here for the launch, per thread. */
struct dim3 {
	unsigned x, y, z;
};
static _Thread_local struct {
	struct dim3 grid, block;
	size_t shared_bytes;
	void *stream;
} launch;

NOGPU_ENTRY(unsigned, __cudaPushCallConfiguration,
	    (struct dim3 grid, struct dim3 block, size_t shared_bytes, void *stream))
{
	launch.grid = grid;
	launch.block = block;
	launch.shared_bytes = shared_bytes;
	launch.stream = stream;
	return 0;
}
NOGPU_ENTRY(int, __cudaPopCallConfiguration,
	    (struct dim3 * grid, struct dim3 *block, size_t *shared_bytes, void **stream))
{
	*grid = launch.grid;
	*block = launch.block;
	*shared_bytes = launch.shared_bytes;
	*stream = launch.stream;
	return NOGPU_OK;
}

/* ---- entries by name ------------------------------------------------------------------------ */

/* cudaDriverEntryPointQueryResult: 0 found, 1 not found */
static int entry(const char *name, void **out, int *status)
{
	*out = frag_nogpu_find(name);
	if (status)
		*status = *out ? 0 : 1;
	return NOGPU_OK;
}

NOGPU_ENTRY(int, cuGetProcAddress, (const char *name, void **out, int version, uint64_t flags))
{
	(void)version, (void)flags;
	return entry(name, out, NULL);
}
NOGPU_ENTRY(int, cuGetProcAddress_v2,
	    (const char *name, void **out, int version, uint64_t flags, int *status))
{
	(void)version, (void)flags;
	return entry(name, out, status);
}
NOGPU_ENTRY(int, cudaGetDriverEntryPoint,
	    (const char *name, void **out, uint64_t flags, int *status))
{
	(void)flags;
	return entry(name, out, status);
}
NOGPU_ENTRY(int, cudaGetDriverEntryPointByVersion,
	    (const char *name, void **out, unsigned version, uint64_t flags, int *status))
{
	(void)version, (void)flags;
	return entry(name, out, status);
}
