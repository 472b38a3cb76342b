/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process: opening it gives an address range of its own, which takes no memory of the card and holds
 * none of the other process's values.
 */
#include "entries.h"

#include <string.h>

union handle {
	uint64_t memory_bytes;
	char bytes[64]; /* as long as CUDA's, which go by value */
};

NOGPU_ENTRY(int, cudaIpcGetMemHandle, (union handle * out, void *p))
{
	uint64_t base, bytes;
	int device;

	memset(out, 0, sizeof(*out));
	if (!frag_nogpu_range(p, &base, &bytes, &device))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	out->memory_bytes = bytes;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaIpcOpenMemHandle, (void **out, union handle h, unsigned flags))
{
	uint64_t bytes = frag_round_up(h.memory_bytes, FRAG_PAGE);

	if (!bytes || frag_nogpu_cuMemAddressReserve(out, bytes, 0, 0, 0))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, cudaIpcCloseMemHandle, (void *p))
{
	uint64_t base, bytes;
	int device;

	if (!frag_nogpu_range(p, &base, &bytes, &device))
		return frag_nogpu_error(NOGPU_INVALID_VALUE);
	frag_nogpu_forget(p, bytes);
	return frag_nogpu_cuMemAddressFree(p, bytes);
}
/* Work takes no time: an event of another process has happened. */
NOGPU_ANSWER(cudaIpcGetEventHandle, (union handle * out, void *event), memset(out, 0, sizeof(*out)))
NOGPU_VALUE(int, cudaIpcOpenEventHandle, (void **out, union handle h),
	    frag_nogpu_cudaEventCreateWithFlags(out, 0))
