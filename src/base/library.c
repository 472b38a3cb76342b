/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

static void *first_of(const char *const *files, int flags)
{
	void *library = NULL;

	for (size_t i = 0; files[i] && !library; i++)
		library = dlopen(files[i], RTLD_NOW | flags);
	return library;
}

void *frag_library_open(const char *const *files)
{
	void *library = first_of(files, RTLD_LOCAL);

	/* the other names are fallbacks: dlerror should report the first */
	return library ? library : dlopen(files[0], RTLD_NOW | RTLD_LOCAL);
}

void *frag_library_loaded(const char *const *files)
{
	return first_of(files, RTLD_NOLOAD);
}

const char *frag_symbols_find(void *library, const struct frag_symbol *symbols, size_t count,
			      void *to)
{
	const char *missing = NULL;

	for (size_t i = 0; i < count; i++) {
		char *place = (char *)to + symbols[i].offset;
		void *address;

		/* on every system with dlsym, a data pointer can hold a function's address */
		memcpy(&address, place, sizeof(address));
		if (!address)
			address = dlsym(library, symbols[i].name);
		if (!address && !symbols[i].optional && !missing)
			missing = symbols[i].name;
		memcpy(place, &address, sizeof(address));
	}
	return missing;
}
