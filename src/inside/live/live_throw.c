/* SPDX-License-Identifier: Apache-2.0 */
/* Raising torch.OutOfMemoryError and RuntimeError from C. */
#include "live_throw.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT_BYTES 1024u /* of the exception: 72 to 168 in the releases there are */

struct source_location { /* c10::SourceLocation: 24 bytes, passed in memory */
	const char *function, *file;
	uint32_t line;
};

typedef void (*error_fn)(void *self, struct source_location where, void *text);
typedef void (*string_fn)(void *self, const char *text, const void *allocator);
typedef void (*drop_fn)(void *self);

static struct {
	void *type, *table;
	error_fn error;
	string_fn string;
	drop_fn drop;
	void *(*allocate)(size_t bytes);
	void (*throw)(void *object, void *type, void (*destroy)(void *));
	void (*check_fail)(const char *function, const char *file, uint32_t line, const char *text);
	const char *missing;
} names;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(const char *name)
{
	static const char *const libraries[] = { "libc10_cuda.so", "libc10.so", "libtorch_cuda.so",
						 "libstdc++.so.6" };

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
		void *found = library ? dlsym(library, name) : NULL;

		if (found)
			return found;
	}
	return dlsym(RTLD_DEFAULT, name);
}

static void need(void *field, const char *name)
{
	void *found = find(name);

	memcpy(field, &found, sizeof(found));
	if (!found && !names.missing)
		names.missing = name;
}
#define FIND(field, name) need(&names.field, (name))

static void find_all(void)
{
	FIND(allocate, "__cxa_allocate_exception");
	FIND(throw, "__cxa_throw");
	FIND(type, "_ZTIN3c1016OutOfMemoryErrorE");
	FIND(table, "_ZTVN3c1016OutOfMemoryErrorE");
	*(void **)&names.error = find("_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_"
				      "stringIcSt11char_traitsIcESaIcEEE");
	if (names.error) {
		FIND(string, "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1EPKcRKS3_");
		FIND(drop, "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev");
	} else { /* wheels up to 2.6: the string of before C++11 */
		FIND(error, "_ZN3c105ErrorC1ENS_14SourceLocationESs");
		FIND(string, "_ZNSsC1EPKcRKSaIcE");
		FIND(drop, "_ZNSsD1Ev");
	}
	*(void **)&names.check_fail = find("_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
}

bool frag_live_throw_ready(char *why, size_t cap)
{
	pthread_once(&once, find_all);
	if (names.missing && cap)
		snprintf(why, cap, "this PyTorch has no %.150s", names.missing);
	return !names.missing;
}

void frag_live_throw_error(const char *text)
{
	pthread_once(&once, find_all);
	if (names.check_fail)
		names.check_fail("frag_live_alloc", "cufrag", 0, text);
	fprintf(stderr, "cufrag: %s\n", text);
	abort();
}

void frag_live_throw_oom(const char *text)
{
	const struct source_location where = { "frag_live_alloc", "cufrag", 0 };
	char string[64], allocator = 0; /* a std::string has 8 or 32 bytes */
	void **object;

	if (!frag_live_throw_ready(NULL, 0))
		frag_live_throw_error(text);
	object = names.allocate(OBJECT_BYTES);
	memset(object, 0, OBJECT_BYTES);
	names.string(string, text, &allocator);
	names.error(object, where, string);
	names.drop(string);
	/* an OutOfMemoryError is an Error with another table; its destructor is the first entry */
	*object = (void **)names.table + 2;
	names.throw(object, names.type, *(void (**)(void *)) & ((void **)names.table)[2]);
	abort(); /* never reached */
}
