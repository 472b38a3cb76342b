/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive by dlopen: a table of symbols, all of them compulsory. */
#include "archive_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct {
	pthread_once_t once;
	bool there;
	char fault[256]; /* what the loader said */
	struct frag_archive_lib lib;
} shared = { .once = PTHREAD_ONCE_INIT };

static void start(void)
{
	static const char *const files[] = { "libarchive.so.13", "libarchive.so", NULL };
	static const struct frag_symbol symbols[] = {
#define X(name) FRAG_SYMBOL(struct frag_archive_lib, name, #name),
		FRAG_ARCHIVE_FUNCTIONS(X)
#undef X
	};
	void *library = frag_library_open(files);
	const char *said = library ? NULL : dlerror();
	const char *missing = library ? FRAG_SYMBOLS_FIND(library, symbols, &shared.lib) : NULL;

	shared.there = library && !missing;
	if (missing)
		snprintf(shared.fault, sizeof(shared.fault), "it has no %s", missing);
	else if (!library)
		snprintf(shared.fault, sizeof(shared.fault), "%s", said ? said : "no reason given");
}

const struct frag_archive_lib *frag_archive_lib(void)
{
	pthread_once(&shared.once, start);
	return shared.there ? &shared.lib : NULL;
}

const char *frag_archive_lib_fault(void)
{
	return shared.fault;
}
