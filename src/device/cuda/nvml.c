/* SPDX-License-Identifier: Apache-2.0 */
/* NVML by dlopen. A table of symbols; without a compulsory one there is no NVML. */
#include "nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* nvmlMemory_t */
struct memory {
	unsigned long long total, free, used;
};

struct entries {
	int (*init)(void);
	int (*by_pci)(const char *pci, void **device);
	int (*memory_info)(void *device, void *out);
	int (*driver_version)(char *out, unsigned cap);
};

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
	{ "nvmlInit_v2", offsetof(struct entries, init) },
	{ "nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct entries, by_pci) },
	{ "nvmlDeviceGetMemoryInfo", offsetof(struct entries, memory_info) },
	{ "nvmlSystemGetDriverVersion", offsetof(struct entries, driver_version) },
};

static bool find_all(void *library, struct entries *out)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (!symbol)
			return false;
		/* a data pointer holds a function's address on every system that has dlsym */
		memcpy((char *)out + symbols[i].offset, &symbol, sizeof(symbol));
	}
	return true;
}

/* Once for the process: starting NVML takes tens of milliseconds, and cards are opened often. */
static struct {
	pthread_once_t once;
	bool there;
	struct entries e;
	char driver[80];
} shared = { .once = PTHREAD_ONCE_INIT };

static void start(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	if (!find_all(library, &shared.e) || shared.e.init()) {
		dlclose(library);
		return;
	}
	if (shared.e.driver_version(shared.driver, sizeof(shared.driver)))
		shared.driver[0] = '\0';
	shared.there = true; /* to the end of the process */
}

void frag_nvml_open(struct nvml *n, const char *pci, char *driver, size_t cap)
{
	*n = (struct nvml){ 0 };
	pthread_once(&shared.once, start);
	snprintf(driver, cap, "%s", shared.driver);
	if (!shared.there || shared.e.by_pci(pci, &n->device))
		n->device = NULL;
	n->memory_info = shared.e.memory_info;
}

bool frag_nvml_used(const struct nvml *n, uint64_t *used_bytes)
{
	struct memory m;

	if (!n->device || n->memory_info(n->device, &m))
		return false;
	*used_bytes = m.used;
	return true;
}
