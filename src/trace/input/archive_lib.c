/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive by dlopen: a table of symbols, all of them compulsory. */
#include "archive_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include <frag/base.h>

static struct {
	pthread_once_t once;
	bool there;
	char fault[256]; /* the loader's first message */
	struct frag_archive_lib lib;
} shared = { .once = PTHREAD_ONCE_INIT };

static void start(void)
{
	static const char *const files[] = { "libarchive.so.13", "libarchive.so" };
	static const char *const names[] = { FRAG_ARCHIVE_FUNCTIONS(FRAG_LIBRARY_NAME) };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(files) && !shared.there; i++) {
		const char *said;

		shared.there =
			frag_library_open(files[i], names, FRAG_ARRAY_LEN(names), &shared.lib);
		said = shared.there ? NULL : dlerror();
		/* report the first reason: the second name is only a fallback */
		if (!shared.there && !*shared.fault)
			snprintf(shared.fault, sizeof(shared.fault), "%s",
				 said ? said : "no reason given");
	}
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
