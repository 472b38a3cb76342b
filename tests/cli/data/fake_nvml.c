/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up libnvidia-ml.so.1 for the tests of monitor: FAKE_NVML names the scenario, a look is a step of it. */
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

static int looks[64];

static int is(const char *scenario)
{
	const char *now = getenv("FAKE_NVML");

	return now && !strcmp(now, scenario);
}

int nvmlInit_v2(void)
{
	return is("nodriver") ? 9 : 0;
}

int nvmlShutdown(void)
{
	return 0;
}

const char *nvmlErrorString(int rc)
{
	return rc == 9 ? "Driver Not Loaded" : rc == 15 ? "GPU is lost" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = is("eight") ? 8 : is("none") ? 0 : 1;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **card)
{
	*card = &looks[i];
	return 0;
}

int nvmlDeviceGetName(void *card, char *name, unsigned len)
{
	(void)card;
	snprintf(name, len, "%s", is("hostile") ? "H100 \033[31m\"a,b\"" : "NVIDIA H100 80GB HBM3");
	return 0;
}

/* growth: 50, 60, 70, 80, 90, 80, 70 GiB of 100; lost: the second and third look fail. */
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
	return is("lost") && (step == 1 || step == 2) ? 15 : 0;
}

int nvmlDeviceGetUtilizationRates(void *card, struct rates *out)
{
	(void)card;
	out->gpu = 98;
	out->memory = 40;
	return is("noprocesses") ? 3 : 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, struct process *list)
{
	(void)card;
	if (is("noprocesses"))
		return 4;
	*count = is("processes") ? 2 : 0;
	list[0] = (struct process){ 4000001, 3 * GIB, 0, 0 };
	list[1] = (struct process){ 4000002, ~0ull, 0, 0 };
	return 0;
}
