/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML: the cards exist, idle and cool, and nobody else is on them. Memory is that of the card as
 * this process uses it.
 */
#include "nogpu.h"

#include <stdio.h>
#include <string.h>

#include <frag/device.h>

#define NVML_NOT_SUPPORTED 3

/* A handle is the card's number plus one. */
static int number_of(const void *handle)
{
	return (int)(uintptr_t)handle - 1;
}

static int text(char *out, unsigned room, const char *value)
{
	if (room)
		snprintf(out, room, "%s", value);
	return NOGPU_OK;
}

NOGPU_ENTRY(int, nvmlInitWithFlags, (unsigned flags))
{
	(void)flags;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlInit_v2, (void))
{
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlInit, (void))
{
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlShutdown, (void))
{
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlSystemGetDriverVersion, (char *out, unsigned room))
{
	return text(out, room, "580.159.04");
}
NOGPU_ENTRY(int, nvmlSystemGetNVMLVersion, (char *out, unsigned room))
{
	return text(out, room, "13.580.159.04");
}
NOGPU_ENTRY(int, nvmlSystemGetCudaDriverVersion_v2, (int *version))
{
	*version = 13000;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetCount_v2, (unsigned *count))
{
	*count = (unsigned)frag_nogpu_card()->count;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetCount, (unsigned *count))
{
	return frag_nogpu_nvmlDeviceGetCount_v2(count);
}
NOGPU_ENTRY(int, nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **handle))
{
	*handle = (void *)(uintptr_t)(index + 1);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetHandleByUUID, (const char *uuid, void **handle))
{
	unsigned index = 0;

	sscanf(uuid, "GPU-%*8x-0000-0000-0000-%12x", &index);
	*handle = (void *)(uintptr_t)(index + 1);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **handle))
{
	unsigned number = 1;

	sscanf(bus, "%*x:%x", &number);
	*handle = (void *)(uintptr_t)number;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetComputeRunningProcesses, (void *handle, unsigned *count, void *out))
{
	(void)handle, (void)out;
	*count = 0;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetComputeRunningProcesses_v3,
	    (void *handle, unsigned *count, void *out))
{
	return frag_nogpu_nvmlDeviceGetComputeRunningProcesses(handle, count, out);
}
NOGPU_ENTRY(int, nvmlDeviceGetNvLinkRemoteDeviceType, (void *handle, unsigned link, unsigned *type))
{
	(void)handle, (void)link, (void)type;
	return NVML_NOT_SUPPORTED;
}
NOGPU_ENTRY(int, nvmlDeviceGetName, (void *handle, char *out, unsigned room))
{
	(void)handle;
	return text(out, room, frag_nogpu_card()->name);
}
NOGPU_ENTRY(int, nvmlDeviceGetUUID, (void *handle, char *out, unsigned room))
{
	char uuid[64];

	snprintf(uuid, sizeof(uuid), "GPU-00000000-0000-0000-0000-%012x", number_of(handle));
	return text(out, room, uuid);
}
NOGPU_ENTRY(int, nvmlDeviceGetIndex, (void *handle, unsigned *out))
{
	*out = (unsigned)number_of(handle);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetMinorNumber, (void *handle, unsigned *out))
{
	*out = (unsigned)number_of(handle);
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetCudaComputeCapability, (void *handle, int *major, int *minor))
{
	(void)handle;
	*major = frag_nogpu_card()->major;
	*minor = frag_nogpu_card()->minor;
	return NOGPU_OK;
}

/* ---- memory and load ------------------------------------------------------------------------ */

static uint64_t free_bytes(const void *handle)
{
	uint64_t total = frag_nogpu_card()->total_bytes, left = total;
	struct frag_device *sim = NULL;

	frag_nogpu_lock();
	for (int i = 0; i < frag_nogpu_visible(); i++)
		sim = frag_nogpu_number(i) == number_of(handle) ? frag_nogpu_sim(i) : sim;
	if (sim)
		frag_dev_mem_info(sim, &left, &total, NULL);
	frag_nogpu_unlock();
	return left;
}

NOGPU_ENTRY(int, nvmlDeviceGetMemoryInfo, (void *handle, uint64_t out[3]))
{
	out[0] = frag_nogpu_card()->total_bytes;
	out[1] = free_bytes(handle);
	out[2] = out[0] - out[1];
	return NOGPU_OK;
}
/* version, total, reserved, free, used */
NOGPU_ENTRY(int, nvmlDeviceGetMemoryInfo_v2, (void *handle, uint64_t out[5]))
{
	out[1] = frag_nogpu_card()->total_bytes;
	out[2] = 0;
	out[3] = free_bytes(handle);
	out[4] = out[1] - out[3];
	return NOGPU_OK;
}
/* Percent of the multiprocessors, and of the memory's time. */
NOGPU_ENTRY(int, nvmlDeviceGetUtilizationRates, (void *handle, unsigned out[2]))
{
	(void)handle;
	out[0] = out[1] = 0;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetTemperature, (void *handle, int sensor, unsigned *out))
{
	(void)handle, (void)sensor;
	*out = 30;
	return NOGPU_OK;
}
/* version, sensor, degrees */
NOGPU_ENTRY(int, nvmlDeviceGetTemperatureV, (void *handle, int out[3]))
{
	(void)handle;
	out[2] = 30;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetPowerUsage, (void *handle, unsigned *milliwatts))
{
	(void)handle;
	*milliwatts = 70000;
	return NOGPU_OK;
}
NOGPU_ENTRY(int, nvmlDeviceGetClockInfo, (void *handle, int which, unsigned *mhz))
{
	(void)handle, (void)which;
	*mhz = (unsigned)frag_nogpu_card()->clock_khz / 1000;
	return NOGPU_OK;
}
NOGPU_ENTRY(const char *, nvmlErrorString, (int code))
{
	return code ? "not supported by the pretended card of cufrag" : "success";
}
