/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive by dlopen: a table of symbols, all of them compulsory. */
#include "archive_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include <frag/base.h>

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
#define FRAG_X_(name) { #name, offsetof(struct frag_archive_lib, name) },
	FRAG_ARCHIVE_FUNCTIONS(FRAG_X_)
#undef FRAG_X_
};

static struct {
	pthread_once_t once;
	bool there;
	struct frag_archive_lib lib;
} shared = { .once = PTHREAD_ONCE_INIT };

static bool find_all(void *library)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(symbols); i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (!symbol)
			return false;
		/* a data pointer holds a function's address on every system that has dlsym */
		memcpy((char *)&shared.lib + symbols[i].offset, &symbol, sizeof(symbol));
	}
	return true;
}

static void start(void)
{
	static const char *const names[] = { "libarchive.so.13", "libarchive.so" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(names) && !shared.there; i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);

		if (!library)
			continue;
		shared.there = find_all(library);
		if (!shared.there)
			dlclose(library);
	}
}

const struct frag_archive_lib *frag_archive_lib(void)
{
	pthread_once(&shared.once, start);
	return shared.there ? &shared.lib : NULL;
}
