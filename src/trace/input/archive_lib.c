/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive by dlopen: a table of symbols, all of them compulsory. */
#include "archive_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
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
	char fault[256]; /* what the loader said last */
	struct frag_archive_lib lib;
} shared = { .once = PTHREAD_ONCE_INIT };

/* The first reason is the telling one: the second name is a mere fallback. */
static void note_fault(void)
{
	const char *said = dlerror();

	if (!*shared.fault)
		snprintf(shared.fault, sizeof(shared.fault), "%s", said ? said : "no reason given");
}

static bool find_all(void *library)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(symbols); i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (!symbol) {
			note_fault();
			return false;
		}
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

		if (!library) {
			note_fault();
			continue;
		}
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

const char *frag_archive_lib_fault(void)
{
	return shared.fault;
}
