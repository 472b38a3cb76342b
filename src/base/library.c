/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

bool frag_library_open(const char *file, const char *const *names, size_t count, void *to)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL), *symbol;

	for (size_t i = 0; library && i < count; i++) {
		symbol = dlsym(library, names[i]);
		if (!symbol)
			return false;
		/* a data pointer holds a function's address on every system that has dlsym */
		memcpy((char *)to + i * sizeof(symbol), &symbol, sizeof(symbol));
	}
	return library != NULL;
}
