/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of entries.def, and helpers for their answers. Contexts, addresses and launch
 * configurations, as the driver and nvcc's launch stubs ask for them.
 */
#include "card.h"

#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <frag/clock.h>
#include <frag/device.h>

#define DRIVER_VERSION 13000
#define REFUSED "not supported by the pretended card of cufrag"
#define NVML_P2P_NOT_SUPPORTED 5 /* NVML's answer for links that do not exist */
#define NVML_NOT_SUPPORTED 3
#define CUPTI_NO_MORE_RECORDS 12 /* CUPTI_ERROR_MAX_LIMIT_REACHED */
#define LT_RESULT_BYTES 96u	 /* cublasLtMatmulHeuristicResult_t */

/* supported by nvrtc of CUDA 13.0 */
static const int architectures[] = { 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121 };

/* cuBLAS loads its kernels with the first handle: 79 to 113 ms in seven processes on H100s. */
#define CUBLAS_NS 95000000u

static int make_cublas(void **out)
{
	static atomic_bool loaded;
	int rc = frag_pretend_handle(out);

	frag_pretend_host_load(PRETEND_LOADED_CUBLAS);
	frag_pretend_wait_idle();
	if (!atomic_exchange(&loaded, true))
		frag_pretend_host_takes(CUBLAS_NS);
	frag_pretend_hold(64 * FRAG_MIB);
	if (!rc)
		frag_pretend_beside_take(PRETEND_BESIDE_CUBLAS, 0, *out);
	return rc;
}

static void give_text(char *out, unsigned room, const char *value)
{
	if (room)
		snprintf(out, room, "%s", value);
}

static void give_bus(char *text, int len, int device)
{
	snprintf(text, (size_t)len, "0000:%02x:00.0", frag_pretend_number(device) + 1);
}

/* CUfunction_attribute: 0 = threads per block, 3 = bytes of local memory, 4 = registers, 5 and 6 =
 * PTX and binary version */
static int kernel_attribute(int which, const void *kernel)
{
	const struct pretend_card *c = frag_pretend_card();

	return which == 0		  ? 1024
	       : which == 3		  ? frag_pretend_frame_bytes(kernel)
	       : which == 4		  ? frag_pretend_registers(kernel)
	       : which == 5 || which == 6 ? 10 * c->major + c->minor
					  : 0;
}

/* NULL: not asked for. */
static void give(int *out, int value)
{
	if (out)
		*out = value;
}

/* cudaDriverEntryPointQueryResult: 0 found, 1 not found */
static void find_entry(const char *name, void **out, int *status)
{
	*out = frag_pretend_find(name);
	give(status, !*out);
}

static int nvml_number(const void *handle)
{
	return (int)(uintptr_t)handle - 1;
}

static void nvml_memory(const void *handle, uint64_t *total, uint64_t *left, uint64_t *used)
{
	PRETEND_LOCKED;
	struct frag_device *sim = NULL;
	uint64_t all = frag_pretend_card()->total_bytes;

	*total = *left = all;
	for (int i = 0; i < frag_pretend_visible(); i++)
		sim = frag_pretend_number(i) == nvml_number(handle) ? frag_pretend_sim(i) : sim;
	if (sim)
		frag_dev_mem_info(sim, left, &all, NULL);
	*used = *total - *left;
}

/*
 * A single machine is in no fabric; cards before Hopper do not support the query. After the
 * version, nvmlGpuFabricInfoV_t has 16 bytes of cluster UUID, status, clique, and a byte of state,
 * where 0 is "not supported".
 */
static int fabric_of_one(unsigned char *out)
{
	if (frag_pretend_card()->major < 9)
		return NVML_NOT_SUPPORTED;
	memset(out + 4, 0, 25);
	return PRETEND_OK;
}

/* ---- contexts ------------------------------------------------------------------------------- */

#define PUSHED_MAX 16
static _Thread_local int pushed[PUSHED_MAX], pushed_count;

PRETEND_ENTRY(int, cuCtxPushCurrent_v2, (void *context))
{
	if (pushed_count == PUSHED_MAX)
		return PRETEND_INVALID_VALUE;
	pushed[pushed_count++] = frag_pretend_device();
	return frag_pretend_device_set((int)((uintptr_t)context - 0x100));
}
PRETEND_ENTRY(int, cuCtxPopCurrent_v2, (void **out))
{
	if (!pushed_count)
		return PRETEND_INVALID_VALUE;
	if (out)
		*out = PRETEND_CONTEXT(frag_pretend_device());
	return frag_pretend_device_set(pushed[--pushed_count]);
}
/* CUpointer_attribute: 1 = context, 2 = memory type, 9 = device ordinal, 11 and 12 = start and size
 * of the allocation; all others are 0. */
PRETEND_ENTRY(int, cuPointerGetAttribute, (void *out, int which, const void *p))
{
	int owner = frag_pretend_owner(p);
	struct pretend_range r;

	if (which == 1)
		*(void **)out = PRETEND_CONTEXT(FRAG_MAX(owner, 0));
	else if (which == 2)
		*(unsigned *)out = owner >= 0 ? 2 : 1;
	else if (which == 9)
		*(int *)out = FRAG_MAX(owner, 0);
	else if (which == 11 || which == 12)
		if (frag_pretend_range(p, &r))
			*(uint64_t *)out = which == 11 ? r.base : r.bytes;
		else
			return PRETEND_INVALID_VALUE;
	else
		memset(out, 0, 8);
	return PRETEND_OK;
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* The launch configuration (<<< >>>) is kept here until the launch, per thread. */
struct dim3 {
	unsigned x, y, z;
};
struct launch {
	struct dim3 grid, block;
	size_t shared_bytes;
	void *stream;
};
static _Thread_local struct launch launch;

PRETEND_ENTRY(unsigned, __cudaPushCallConfiguration,
	      (struct dim3 grid, struct dim3 block, size_t shared_bytes, void *stream))
{
	launch = (struct launch){ grid, block, shared_bytes, stream };
	return 0;
}
PRETEND_ENTRY(int, __cudaPopCallConfiguration,
	      (struct dim3 * grid, struct dim3 *block, size_t *shared_bytes, void **stream))
{
	*grid = launch.grid;
	*block = launch.block;
	*shared_bytes = launch.shared_bytes;
	*stream = launch.stream;
	return PRETEND_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

#define NOTHING(name) PRETEND_ANSWER(name, (void), )
#define HANDLE(name, args) PRETEND_VALUE(int, name, args, frag_pretend_handle(out))
#define ANSWER PRETEND_ANSWER
#define VALUE PRETEND_VALUE
#define SAME PRETEND_SAME
#include "entries.def"
