/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of PyTorch itself is reached by name; names and tables are those of the Itanium C++ ABI, the
 * same in all known releases.
 *
 * - Raising its own exceptions from C: c10::OutOfMemoryError is built in the memory of
 *   __cxa_allocate_exception by c10::Error's constructor, gets the virtual table of its class and is
 *   thrown with that class's type information.
 * - How much could be allocated now (cacheInfo), for which CUDAPluggableAllocator has no hook.
 *   cuDNN's search for the fastest convolution (torch.backends.cudnn.benchmark) skips plans with a
 *   larger workspace. PyTorch's own function raises, so its entry in the class's virtual table is
 *   replaced.
 */
#include "live_core.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/library.h"

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

#define AT(member, name) FRAG_SYMBOL(__typeof__(names), member, name)

static const struct frag_symbol always[] = {
	AT(allocate, "__cxa_allocate_exception"),
	AT(throw, "__cxa_throw"),
	AT(type, "_ZTIN3c1016OutOfMemoryErrorE"),
	AT(table, "_ZTVN3c1016OutOfMemoryErrorE"),
	FRAG_SYMBOL_OPTIONAL(__typeof__(names), check_fail,
			     "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"),
};
static const struct frag_symbol with_string[] = {
	AT(error, "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_"
		  "traitsIcESaIcEEE"),
	AT(string, "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1EPKcRKS3_"),
	AT(drop, "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev"),
};
static const struct frag_symbol with_old_string[] = {
	/* wheels up to 2.6: the string of before C++11 */
	AT(error, "_ZN3c105ErrorC1ENS_14SourceLocationESs"),
	AT(string, "_ZNSsC1EPKcRKSaIcE"),
	AT(drop, "_ZNSsD1Ev"),
};

/* In the libraries of PyTorch, then wherever the process has it. What is missing. */
#define FIND_EVERYWHERE(symbols) find_everywhere(symbols, sizeof(symbols) / sizeof(*(symbols)))
static const char *find_everywhere(const struct frag_symbol *symbols, size_t count)
{
	static const char *const libraries[] = { "libc10_cuda.so", "libc10.so", "libtorch_cuda.so",
						 "libstdc++.so.6" };

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		void *library = frag_library_loaded((const char *const[]){ libraries[i], NULL });

		if (library)
			frag_symbols_find(library, symbols, count, &names);
	}
	return frag_symbols_find(RTLD_DEFAULT, symbols, count, &names);
}

static void find_all(void)
{
	const char *missing = FIND_EVERYWHERE(always), *string = FIND_EVERYWHERE(with_string);

	if (string && !names.error) {
		names.string = NULL;
		names.drop = NULL;
		string = FIND_EVERYWHERE(with_old_string);
	}
	names.missing = missing ? missing : string;
}

bool frag_live_throw_ready(void)
{
	pthread_once(&once, find_all);
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

	if (!frag_live_throw_ready())
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

/* ---- cacheInfo --------------------------------------------------------------------------- */

#define CLASS "N5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator"

/* CUDAAllocator::cacheInfo: what the card has left (0 asks for it), or the largest free piece. */
static void cache_info(void *self, int device, size_t *largest)
{
	struct frag_live_stats st = { .size = sizeof(st) };

	(void)self;
	frag_live_stats((int8_t)device, &st); /* a c10::DeviceIndex */
	if (!*largest)
		*largest = (size_t)st.free_bytes;
	*largest = FRAG_MAX(*largest, (size_t)st.largest_free_bytes);
}

static bool replace(void **table, size_t slots, const void *old)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void (*answer)(void *, int, size_t *) = cache_info;

	for (size_t i = 0; i < slots; i++) {
		if (table[i] != old)
			continue;
		if (mprotect((void *)((uintptr_t)(table + i) & ~(page - 1)), page,
			     PROT_READ | PROT_WRITE))
			return false;
		memcpy(table + i, &answer, sizeof(answer));
		return true;
	}
	return false;
}

int frag_live_answer_cache_info(void)
{
	void *library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
	void **table = library ? dlsym(library, "_ZTV" CLASS "E") : NULL;
	void *old = library ? dlsym(library, "_Z" CLASS "9cacheInfoEaPm") : NULL;
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (library && !old) /* up to 2.2: an int */
		old = dlsym(library, "_Z" CLASS "9cacheInfoEiPm");
	if (library)
		dlclose(library); /* PyTorch keeps it */
	if (!table || !old || !dladdr1(table, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return -1;
	return replace(table, symbol->st_size / sizeof(*table), old) ? 0 : -1;
}
