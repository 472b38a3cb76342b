/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the driver and finding its functions. */
#include "cu_table.h"

#include <pthread.h>

#include "base/library.h"

static struct frag_cu found;
static const struct frag_cu *table;
static struct frag_err problem;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define NEEDED(name, args) FRAG_SYMBOL(struct frag_cu, name, #name),
#define MAYBE(name, args) FRAG_SYMBOL_OPTIONAL(struct frag_cu, name, #name),
static const struct frag_symbol symbols[] = { FRAG_CU_LIST(NEEDED) FRAG_CU_OPTIONAL_LIST(MAYBE) };

static void find_all(void)
{
	/* the runtime of the process has opened the same one, or will */
	void *driver = frag_library_open((const char *const[]){ "libcuda.so.1", NULL });
	const char *missing;

	if (!driver) {
		frag_fail(&problem, FRAG_EDEVICE,
			  "no NVIDIA driver: libcuda.so.1 cannot be loaded");
		return;
	}
	missing = FRAG_SYMBOLS_FIND(driver, symbols, &found);
	if (missing)
		frag_fail(&problem, FRAG_EDEVICE, "the NVIDIA driver is too old: it has no %s",
			  missing);
	else
		table = &found;
}

const struct frag_cu *frag_cu_open(struct frag_err *err)
{
	if (!table)
		pthread_once(&once, find_all);
	if (!table && err)
		*err = problem;
	return table;
}

void frag_cu_use(const struct frag_cu *other)
{
	table = other;
}

int frag_cu_check(const struct frag_cu *cu, int rc, const char *call, struct frag_err *err)
{
	const char *name = NULL;

	if (rc == FRAG_CU_OK)
		return 0;
	cu->cuGetErrorName(rc, &name);
	frag_fail(err, FRAG_EDEVICE, "%s: %s (%d)", call, name ? name : "unknown error", rc);
	if (err)
		err->cuda_code = rc;
	return FRAG_EDEVICE;
}
