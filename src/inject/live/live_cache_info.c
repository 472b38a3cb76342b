/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers a question for which CUDAPluggableAllocator has no hook: how much could be allocated now
 * (cacheInfo). cuDNN's search for the fastest convolution (torch.backends.cudnn.benchmark) skips
 * plans with a larger workspace. PyTorch's own function raises, so its entry in the class's virtual
 * table is replaced. Names and table follow the Itanium C++ ABI, the same in all releases.
 */
#include "live_core.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
