/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts, addresses and kernels, as the driver and nvcc's launch stubs ask for them. Modules and
 * functions are opaque handles (entries.def): loading succeeds, launching does nothing.
 */
#include "nogpu.h"

#include <string.h>

/* ---- contexts ------------------------------------------------------------------------------- */

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
		*out = NOGPU_CONTEXT(frag_nogpu_device());
	return frag_nogpu_device_set(pushed[--pushed_count]);
}
NOGPU_ENTRY(int, cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active))
{
	if (flags)
		*flags = 0;
	if (active)
		*active = 1;
	return NOGPU_OK;
}
/* CUpointer_attribute: 1 = context, 2 = memory type, 9 = device ordinal, 11 and 12 = start and size
 * of the allocation; all others are 0. */
NOGPU_ENTRY(int, cuPointerGetAttribute, (void *out, int which, const void *p))
{
	int owner = frag_nogpu_owner(p);
	struct nogpu_range r;

	if (which == 1)
		*(void **)out = NOGPU_CONTEXT(FRAG_MAX(owner, 0));
	else if (which == 2)
		*(unsigned *)out = owner >= 0 ? 2 : 1;
	else if (which == 9)
		*(int *)out = FRAG_MAX(owner, 0);
	else if (which == 11 || which == 12)
		if (frag_nogpu_range(p, &r))
			*(uint64_t *)out = which == 11 ? r.base : r.bytes;
		else
			return NOGPU_INVALID_VALUE;
	else
		memset(out, 0, 8);
	return NOGPU_OK;
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* The launch configuration (<<< >>>) is kept here until the launch, per thread. */
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
