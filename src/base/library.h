/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optional shared libraries: opened when needed, never closed.
 *
 *	static const struct frag_symbol symbols[] = {
 *		FRAG_SYMBOL(struct table, init, "nvmlInit_v2"),
 *		FRAG_SYMBOL_OPTIONAL(struct table, rates, "nvmlDeviceGetUtilizationRates"),
 *	};
 *	void *library = frag_library_open((const char *const[]){ "libnvidia-ml.so.1", NULL });
 *	const char *missing = library ? FRAG_SYMBOLS_FIND(library, symbols, &table) : NULL;
 */
#ifndef FRAG_BASE_LIBRARY_H
#define FRAG_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A symbol, and the struct member for its address. */
struct frag_symbol {
	const char *name;
	size_t offset;
	bool optional;
};
#define FRAG_SYMBOL(type, member, name) \
	{ \
		name, offsetof(type, member), false \
	}
#define FRAG_SYMBOL_OPTIONAL(type, member, name) \
	{ \
		name, offsetof(type, member), true \
	}
/* For a list X(function): a member with its name and type. */
#define FRAG_SYMBOL_MEMBER(name) __typeof__(name) *name;

/* Opens the first of these files that can be opened; the list ends with NULL. NULL: none; dlerror()
 * says why for the first. */
void *frag_library_open(const char *const *files);
/* The first of these that the process has already loaded. NULL: none. */
void *frag_library_loaded(const char *const *files);

/*
 * Looks up symbols in a library, or in RTLD_DEFAULT. Members with an address keep it, so several
 * libraries can be searched in turn. Returns the first missing symbol that is not optional; NULL:
 * none is missing.
 */
const char *frag_symbols_find(void *library, const struct frag_symbol *symbols, size_t count,
			      void *to);
#define FRAG_SYMBOLS_FIND(library, symbols, to) \
	frag_symbols_find((library), (symbols), sizeof(symbols) / sizeof(*(symbols)), (to))

#endif
