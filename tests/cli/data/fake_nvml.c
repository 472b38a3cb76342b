/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up libnvidia-ml.so.1 for the tests of monitor: FAKE_NVML names the scenario, a look is a step of it. With
 * -DOLD one of a driver before 510.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (1ull << 30)

struct memory {
	unsigned long long total, free, used;
};
struct rates {
	unsigned gpu, memory;
};
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

static int looks[64], instances[7], lists;

static int is(const char *scenario)
{
	const char *now = getenv("FAKE_NVML");

	return now && !strcmp(now, scenario);
}

static int is_instance(const void *card)
{
	return card >= (void *)instances && card < (void *)(instances + 7);
}

/* an entry of NVML that does this and gives that */
#define ENTRY(name, params, does, gives) \
	int name params \
	{ \
		does; \
		return gives; \
	}
ENTRY(nvmlInit_v2, (void), , is("nodriver") ? 9 : 0)
ENTRY(nvmlShutdown, (void), , 0)
ENTRY(nvmlDeviceGetCount_v2, (unsigned *count), *count = is("eight") ? 8 : !is("none"), 0)
ENTRY(nvmlDeviceGetHandleByIndex_v2, (unsigned i, void **card), *card = &looks[i], 0)
/* mig: the second instance is there for the first two looks only */
ENTRY(nvmlDeviceGetMigMode, (void *card, unsigned *now, unsigned *pending),
      *now = *pending = is("mig"), 0)
ENTRY(nvmlDeviceGetMigDeviceHandleByIndex, (void *card, unsigned k, void **out), static int asked;
      *out = &instances[k], k > 1 || (k == 1 && ++asked > 2) ? 6 : 0)
ENTRY(nvmlDeviceGetName, (void *card, char *name, unsigned len),
      snprintf(name, len, "%s",
	       is_instance(card) ? "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
	       : is("hostile")	 ? "H100 \033[31m\"a,b\""
				 : "NVIDIA H100 80GB HBM3"),
      0)
ENTRY(nvmlDeviceGetUtilizationRates, (void *card, struct rates *out),
      *out = ((struct rates){ 98, 40 }), is("noprocesses") ? 3 : 0)

const char *nvmlErrorString(int rc)
{
	return rc == 9 ? "Driver Not Loaded" : rc == 15 ? "GPU is lost" : "Unknown Error";
}

/* growth: 50, 60, 70, 80, 90, 80, 70 GiB of 100; lost: the second and third look fail. */
#ifndef OLD
int nvmlDeviceGetMemoryInfo(void *card, struct memory *out)
{
	static const int growth[] = { 50, 60, 70, 80, 90, 80, 70 };
	int *at = card, step = (*at)++;

	out->total = 100 * GIB;
	out->used = 10 * GIB;
	if (is("growth"))
		out->used = (unsigned long long)growth[step % 7] * GIB;
	if (is("eight"))
		out->used = (unsigned long long)(10 + (at - looks)) * GIB;
	out->free = out->total - out->used;
	if (is_instance(card)) {
		out->total = 40 * GIB;
		out->used = (unsigned long long)(1 + (at - instances)) * GIB;
		out->free = out->total - out->used;
	}
	return is("lost") && (step == 1 || step == 2) ? 15 : 0;
}

/* As nvidia-smi shows it: what the driver keeps for itself is not used. */
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
int nvmlDeviceGetMemoryInfo_v2(void *card, struct memory_v2 *out)
{
	if (!is("reserved") || out->version != (sizeof(*out) | 2u << 24))
		return 13;
	(void)card;
	out->total = 100 * GIB;
	out->reserved = GIB;
	out->used = 9 * GIB;
	out->free = 90 * GIB;
	return 0;
}
#endif

/* dies: the second process is there for the first two looks; self: the process of FAKE_PID; these:
 * those of FAKE_PIDS, "pid:GiB pid:GiB" */
int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, struct process *list)
{
	const char *pid = getenv("FAKE_PID");

	(void)card;
	if (is("noprocesses"))
		return 4;
	*count = is("processes") ? 2 : is("dies") ? (++lists > 2 ? 1 : 2) : 0;
	list[0] = (struct process){ 4000001, 3 * GIB, 0, 0 };
	list[1] = (struct process){ 4000002, ~0ull, 0, 0 };
	if (is("self") && pid) {
		*count = 1;
		list[0].pid = (unsigned)atoi(pid);
	}
	if (is("these")) {
		const char *at = getenv("FAKE_PIDS");
		int n;

		for (*count = 0;
		     at && sscanf(at, "%u:%llu%n", &list[*count].pid, &list[*count].used, &n) == 2;
		     at += n)
			list[(*count)++].used *= GIB;
	}
	return 0;
}
