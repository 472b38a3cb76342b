/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared libraries that need not be there: opened when they are needed, and never closed.
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

/* A symbol, and the member of a struct that takes its address. */
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
/* For a list X(function): the member that has its name and type. */
#define FRAG_SYMBOL_MEMBER(name) __typeof__(name) *name;

/* The first of these files that can be opened; the list ends with NULL. NULL: none, and dlerror() says why for
 * the first. */
void *frag_library_open(const char *const *files);
/* The first of them that the process has loaded already. NULL: none. */
void *frag_library_loaded(const char *const *files);

/*
 * Looks the symbols up in a library, or in RTLD_DEFAULT; what has an address already keeps it, so several libraries
 * can be asked in turn. Returns the name of the first one missing that is not optional; NULL: none is missing.
 */
const char *frag_symbols_find(void *library, const struct frag_symbol *symbols, size_t count,
			      void *to);
#define FRAG_SYMBOLS_FIND(library, symbols, to) \
	frag_symbols_find((library), (symbols), sizeof(symbols) / sizeof(*(symbols)), (to))

#endif
