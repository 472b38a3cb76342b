/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A static CUDA runtime in one of the program's libraries: its functions are patched in memory,
 * each with a jump to its entry. Which functions, and why: python/cufrag_static.py.
 *
 * x86-64 only, as is all of the pretended card.
 */
#include "card.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATCH_BYTES 24u

/* Machine code that jumps to a function's entry, or reports its name and returns the error. Returns
 * its length. */
static size_t jump(unsigned char *code, const char *name, int major)
{
	const void *to = frag_pretend_entry(name, major);
	size_t at = 0;

	if (!to && frag_pretend_is_nothing(name))
		to = (const void *)(uintptr_t)frag_pretend_nothing;
	if (!to) {
		const char *kept = frag_host_strdup(name);

		to = (const void *)(uintptr_t)frag_pretend_unknown;
		memcpy(code, "\x48\xbf", 2); /* mov $kept, %rdi */
		memcpy(code + 2, &kept, 8);
		at = 10;
	}
	memcpy(code + at, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	memcpy(code + at + 6, &to, 8);
	return at + 14;
}

bool frag_pretend_replace(void *function, const void *original, size_t bytes, const char *name,
			  int major)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = (uint64_t)function;
	const uint64_t first = frag_round_down(at, page),
		       end = frag_round_up(at + PATCH_BYTES, page);
	unsigned char code[PATCH_BYTES];
	size_t length;
	Dl_info info;

	if (bytes < PATCH_BYTES || !dladdr(function, &info) ||
	    !dladdr((char *)function + PATCH_BYTES - 1, &info) ||
	    memcmp(function, original, PATCH_BYTES) ||
	    mprotect((void *)first, end - first, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	length = jump(code, name, major);
	memcpy(function, code, length);
	mprotect((void *)first, end - first, PROT_READ | PROT_EXEC);
	return true;
}

/* ---- which libraries are there ---------------------------------------------------------------- */

static int tell_loaded(struct dl_phdr_info *info, size_t size, void *out)
{
	fprintf(out, "%lx %s\n", (unsigned long)info->dlpi_addr, info->dlpi_name);
	return 0;
}

const char *frag_pretend_loaded(void)
{
	static char *text;
	FILE *out;

	free(text);
	text = NULL;
	out = open_memstream(&text, &(size_t){ 0 });
	if (!out)
		return "";
	dl_iterate_phdr(tell_loaded, out);
	return fclose(out) ? "" : text;
}
