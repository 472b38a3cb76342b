/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI, as PyTorch's profiler asks it: it may subscribe, and no record of a kernel ever comes. So a
 * profile has what the host did.
 */
#include "nogpu.h"

#include <frag/clock.h>

#define NO_MORE_RECORDS 12 /* CUPTI_ERROR_MAX_LIMIT_REACHED */

NOGPU_ENTRY(int, cuptiGetResultString, (int code, const char **text))
{
	*text = code ? "not supported by the pretended card of cufrag" : "CUPTI_SUCCESS";
	return 0;
}
NOGPU_ENTRY(int, cuptiGetVersion, (uint32_t * version))
{
	*version = 130000;
	return 0;
}
NOGPU_ENTRY(int, cuptiGetTimestamp, (uint64_t * ns))
{
	*ns = frag_clock_ns();
	return 0;
}
NOGPU_ENTRY(int, cuptiSubscribe, (void **out, void *callback, void *data))
{
	(void)callback, (void)data;
	*out = (void *)(uintptr_t)1;
	return 0;
}
NOGPU_ENTRY(int, cuptiActivityGetNextRecord, (void *buffer, size_t bytes, void **record))
{
	(void)buffer, (void)bytes;
	*record = NULL;
	return NO_MORE_RECORDS;
}
NOGPU_ENTRY(int, cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *count))
{
	(void)context, (void)stream;
	*count = 0;
	return 0;
}
