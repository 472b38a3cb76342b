/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a sweep, as `cufrag fleet` and --merge read them: refused with a message, or sound. */
#include "fleet/fleet.h"
#include "fleet/results.h"
#include "fleet/results_internal.h"

#include "fuzz.h"

/* SQLite wants a file with a name of its own. */
static void write_file(char *path, const uint8_t *data, size_t size)
{
	int fd = mkstemp(path);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static void load(const char *path)
{
	FRAG_AUTO(frag_fleet_release) struct frag_fleet f = { 0 };
	struct frag_err err = { 0 };

	must(!frag_catalog_init(&f.catalog, NULL, NULL, &err));
	if (frag_fleet_load(&f, path, &err))
		must(err.code == FRAG_EINPUT && err.msg[0]);
	else
		frag_fleet_advise(&f, NULL);
}

static void merge(const char *path)
{
	FRAG_AUTO(frag_store_close_at) struct frag_store *into = NULL;
	struct frag_err err = { 0 };

	must(!frag_db_open_memory(&into, &err));
	if (frag_store_add(into, path, &err))
		must(err.code && err.msg[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/dev/shm/fuzz-store.XXXXXX";

	if (size > LENGTH_MAX)
		return 0;
	write_file(path, data, size);
	load(path);
	merge(path);
	unlink(path);
	return 0;
}
