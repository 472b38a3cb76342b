/* SPDX-License-Identifier: Apache-2.0 */
/* NVML, opened at run time; see nvml.h. */
#include "nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/library.h"

/* Types of NVML's ABI since driver 510. */
struct memory {
	unsigned long long total, free, used;
};
struct memory_v2 { /* since driver 510: the figures of nvidia-smi */
	unsigned version;
	unsigned long long total, reserved, free, used;
};
#define MEMORY_V2 (sizeof(struct memory_v2) | 2u << 24)
struct rates {
	unsigned gpu, memory;
};
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

struct frag_nvml {
	void *lib;
	unsigned count;
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_string)(int rc);
	int (*get_count)(unsigned *count);
	int (*by_index)(unsigned i, void **card);
	int (*get_name)(void *card, char *name, unsigned len);
	int (*get_memory)(void *card, struct memory *out);
	char driver[80];
	/* optional functions */
	int (*get_driver)(char *out, unsigned len);
	int (*get_rates)(void *card, struct rates *out);
	int (*get_processes)(void *card, unsigned *count, struct process *list);
	int (*get_memory_v2)(void *card, struct memory_v2 *out);
	int (*get_mig_mode)(void *card, unsigned *now, unsigned *pending);
	int (*get_instance)(void *card, unsigned k, void **instance);
	int (*get_clock)(void *card, int which, unsigned *mhz);
	int (*get_throttle)(void *card, unsigned long long *reasons);
};
#define CLOCK_SM 1
#define THROTTLE_IDLE 1ull /* slow for want of work: no reason */

#define NEEDED(member, name) FRAG_SYMBOL(struct frag_nvml, member, name)
#define MAYBE(member, name) FRAG_SYMBOL_OPTIONAL(struct frag_nvml, member, name)

static const struct frag_symbol symbols[] = {
	NEEDED(init, "nvmlInit_v2"),
	NEEDED(shutdown, "nvmlShutdown"),
	NEEDED(error_string, "nvmlErrorString"),
	NEEDED(get_count, "nvmlDeviceGetCount_v2"),
	NEEDED(by_index, "nvmlDeviceGetHandleByIndex_v2"),
	NEEDED(get_name, "nvmlDeviceGetName"),
	NEEDED(get_memory, "nvmlDeviceGetMemoryInfo"),
	MAYBE(get_rates, "nvmlDeviceGetUtilizationRates"),
	MAYBE(get_processes, "nvmlDeviceGetComputeRunningProcesses_v3"),
	MAYBE(get_memory_v2, "nvmlDeviceGetMemoryInfo_v2"),
	MAYBE(get_mig_mode, "nvmlDeviceGetMigMode"),
	MAYBE(get_instance, "nvmlDeviceGetMigDeviceHandleByIndex"),
	MAYBE(get_driver, "nvmlSystemGetDriverVersion"),
	MAYBE(get_clock, "nvmlDeviceGetClockInfo"),
	MAYBE(get_throttle, "nvmlDeviceGetCurrentClocksThrottleReasons"),
};

static int start(struct frag_nvml *n, struct frag_err *err)
{
	int rc;

	n->lib = frag_library_open((const char *const[]){ "libnvidia-ml.so.1", NULL });
	if (!n->lib)
		return frag_fail(err, FRAG_EDEVICE,
				 "libnvidia-ml.so.1 not found; it comes with NVIDIA's driver "
				 "(without a GPU: cufrag record --no-gpu)");
	if (FRAG_SYMBOLS_FIND(n->lib, symbols, n)) {
		dlclose(n->lib);
		n->lib = NULL;
		return frag_fail(err, FRAG_EDEVICE,
				 "libnvidia-ml.so.1 is too old; driver 510 or newer is needed");
	}
	rc = n->init() ?: n->get_count(&n->count);
	if (rc)
		return frag_fail(err, FRAG_EDEVICE, "cannot query the driver: %.100s",
				 n->error_string(rc));
	if (!n->count)
		return frag_fail(err, FRAG_EDEVICE,
				 "the driver has no card (without a GPU: cufrag record --no-gpu)");
	if (n->get_driver && n->get_driver(n->driver, sizeof(n->driver)))
		n->driver[0] = '\0';
	return 0;
}

int frag_nvml_open(struct frag_nvml **out, struct frag_err *err)
{
	struct frag_nvml *n;
	int rc;

	FRAG_TRY_CALLOC(n, 1, "NVML", err);
	rc = start(n, err);
	if (rc)
		frag_nvml_close(n);
	else
		*out = n;
	return rc;
}

unsigned frag_nvml_count(const struct frag_nvml *n)
{
	return n->count;
}

static void read_processes(struct frag_nvml *n, void *card, struct frag_nvml_card *out)
{
	struct process list[FRAG_NVML_PROCESSES];
	unsigned count = FRAG_NVML_PROCESSES;

	if (!n->get_processes || n->get_processes(card, &count, list))
		return;
	out->processes_known = true;
	out->processes_count = FRAG_MIN(count, FRAG_NVML_PROCESSES);
	for (unsigned i = 0; i < out->processes_count; i++)
		out->processes[i] = (struct frag_nvml_process){ list[i].pid, list[i].used };
}

/* used memory without the driver's own, if the driver separates them */
static int read_memory(struct frag_nvml *n, void *card, struct frag_nvml_card *out)
{
	struct memory_v2 v2 = { .version = MEMORY_V2 };
	struct memory v1 = { 0 };
	int rc;

	if (n->get_memory_v2 && !n->get_memory_v2(card, &v2)) {
		out->total_bytes = v2.total;
		out->used_bytes = v2.used;
		out->free_bytes = v2.free;
		return 0;
	}
	rc = n->get_memory(card, &v1);
	out->total_bytes = v1.total;
	out->used_bytes = v1.used;
	out->free_bytes = v1.free;
	return rc;
}

/* rc: result of the calls that found the card. */
static void read_card(struct frag_nvml *n, void *card, int rc, struct frag_nvml_card *out)
{
	struct rates rates;
	unsigned now = 0, pending;

	if (!rc && n->get_name(card, out->name, sizeof(out->name)))
		out->name[0] = '\0';
	out->name[sizeof(out->name) - 1] = '\0';
	if (!rc)
		rc = read_memory(n, card, out);
	if (rc) {
		snprintf(out->fault, sizeof(out->fault), "%s", n->error_string(rc));
		return;
	}
	out->known = true;
	out->is_split =
		n->get_instance && n->get_mig_mode && !n->get_mig_mode(card, &now, &pending) && now;
	if (n->get_rates && !n->get_rates(card, &rates))
		out->utilization_percent = (int)FRAG_MIN(rates.gpu, 100u);
	if (!out->is_split)
		read_processes(n, card, out);
}

void frag_nvml_read(struct frag_nvml *n, unsigned i, struct frag_nvml_card *out)
{
	void *card = NULL;
	int rc;

	memset(out, 0, sizeof(*out));
	out->utilization_percent = -1;
	rc = n->by_index(i, &card);
	read_card(n, card, rc, out);
}

bool frag_nvml_read_instance(struct frag_nvml *n, unsigned i, unsigned k,
			     struct frag_nvml_card *out)
{
	void *card, *instance;

	memset(out, 0, sizeof(*out));
	out->utilization_percent = -1;
	if (!n->get_instance || n->by_index(i, &card) || n->get_instance(card, k, &instance))
		return false;
	read_card(n, instance, 0, out);
	out->is_split = false;
	return true;
}

struct frag_nvml_pace frag_nvml_pace(struct frag_nvml *n, unsigned i)
{
	struct frag_nvml_pace pace = { .clock_mhz = UINT64_MAX };
	unsigned long long reasons = 0;
	unsigned mhz;
	void *card;

	if (n->by_index(i, &card))
		return pace;
	if (n->get_clock && !n->get_clock(card, CLOCK_SM, &mhz))
		pace.clock_mhz = mhz;
	pace.throttled =
		n->get_throttle && !n->get_throttle(card, &reasons) && reasons & ~THROTTLE_IDLE;
	return pace;
}

void frag_nvml_close(struct frag_nvml *n)
{
	if (!n)
		return;
	if (n->lib) {
		n->shutdown();
		dlclose(n->lib);
	}
	frag_host_free(n);
}

static struct {
	pthread_mutex_t lock;
	struct frag_nvml *nvml;
	pid_t pid; /* NVML does not follow into a child: it opens its own */
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct frag_nvml *frag_nvml_shared(void)
{
	pthread_mutex_lock(&shared.lock);
	if (shared.pid != getpid()) {
		shared.pid = getpid();
		if (frag_nvml_open(&shared.nvml, NULL))
			shared.nvml = NULL;
	}
	pthread_mutex_unlock(&shared.lock);
	return shared.nvml;
}

const char *frag_nvml_driver(const struct frag_nvml *n)
{
	return n->driver;
}
