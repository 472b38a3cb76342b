/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA runtime inside of a library of the program: nvcc links it statically unless told otherwise, and CuPy's wheels have it
 * so; others bring the runtime's own library under a name of theirs. It would look for a driver with more than the public
 * calls. So its functions, which the library's tables of symbols name, are replaced where they lie in memory: each begins with a
 * jump to the entry that stands for it. Where the runtime is inside and the table was taken away (strip), the library is left
 * alone, and meets no card.
 *
 * x86-64 only, as all of the pretended card.
 */
#include "nogpu.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATCH_BYTES 24u

struct object {
	const unsigned char *file;
	size_t file_bytes;
	const Elf64_Sym *symbols;
	size_t symbols_count;
	const char *names;
	size_t names_bytes;
};

/* A table of symbols of a mapped file. false: none, or not one that can be read. */
static bool read_symbols(struct object *o, uint32_t kind)
{
	const Elf64_Ehdr *head = (const void *)o->file;
	const Elf64_Shdr *s;

	if (o->file_bytes < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shoff > o->file_bytes ||
	    (o->file_bytes - head->e_shoff) / sizeof(*s) < head->e_shnum)
		return false;
	s = (const void *)(o->file + head->e_shoff);
	for (size_t i = 0; i < head->e_shnum; i++) {
		const Elf64_Shdr *text;

		if (s[i].sh_type != kind || s[i].sh_link >= head->e_shnum)
			continue;
		text = &s[s[i].sh_link];
		if (s[i].sh_offset > o->file_bytes ||
		    s[i].sh_size > o->file_bytes - s[i].sh_offset ||
		    text->sh_offset > o->file_bytes || !text->sh_size ||
		    text->sh_size > o->file_bytes - text->sh_offset)
			return false;
		o->symbols = (const void *)(o->file + s[i].sh_offset);
		o->symbols_count = s[i].sh_size / sizeof(Elf64_Sym);
		o->names = (const char *)o->file + text->sh_offset;
		o->names_bytes = text->sh_size;
		return !o->names[o->names_bytes - 1];
	}
	return false;
}

/* Name of a function of the runtime that the object has itself; NULL: another symbol. */
static const char *function_of(const struct object *o, const Elf64_Sym *s)
{
	const char *name = s->st_name < o->names_bytes ? o->names + s->st_name : "";

	if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF)
		return NULL;
	return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6) ? name : NULL;
}

static bool has(const struct object *o, const char *wanted)
{
	for (size_t i = 0; i < o->symbols_count; i++) {
		const char *name = function_of(o, &o->symbols[i]);

		if (name && !strcmp(name, wanted))
			return true;
	}
	return false;
}

/* Code that goes to the entry for a function, or says its name and gives the error. Returns its length. */
static size_t jump(unsigned char *code, const char *name, int major)
{
	const void *to = frag_nogpu_entry(name, major);
	size_t at = 0;

	if (!to && frag_nogpu_is_nothing(name))
		to = (const void *)(uintptr_t)frag_nogpu_nothing;
	if (!to) {
		const char *kept = frag_host_strdup(name);

		to = (const void *)(uintptr_t)frag_nogpu_unknown;
		memcpy(code, "\x48\xbf", 2); /* mov $kept, %rdi */
		memcpy(code + 2, &kept, 8);
		at = 10;
	}
	memcpy(code + at, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	memcpy(code + at + 6, &to, 8);
	return at + 14;
}

static void replace(const struct object *o, uint64_t base, int major)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < o->symbols_count; i++) {
		const Elf64_Sym *s = &o->symbols[i];
		const char *name = function_of(o, s);
		unsigned char code[PATCH_BYTES];
		uint64_t first = frag_round_down(base + s->st_value, page);
		uint64_t end = frag_round_up(base + s->st_value + PATCH_BYTES, page);
		size_t bytes;

		/* what is shorter is none of the interface */
		if (!name || s->st_size < PATCH_BYTES)
			continue;
		bytes = jump(code, name, major);
		if (mprotect((void *)first, end - first, PROT_READ | PROT_WRITE | PROT_EXEC))
			continue;
		memcpy((void *)(base + s->st_value), code, bytes);
		mprotect((void *)first, end - first, PROT_READ | PROT_EXEC);
	}
}

static void adopt(const char *path, uint64_t base)
{
	struct object o = { 0 };
	void *file = MAP_FAILED;
	struct stat state;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!fstat(fd, &state) && state.st_size > 0)
		file = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return;
	o.file = file;
	o.file_bytes = (size_t)state.st_size;
	/* CUDA 11's has textures by reference, and properties of another layout */
	if ((read_symbols(&o, SHT_SYMTAB) || read_symbols(&o, SHT_DYNSYM)) &&
	    has(&o, "__cudaRegisterFatBinary") && has(&o, "cudaGetDeviceCount") &&
	    !has(&o, "cudaBindTexture"))
		replace(&o, base, has(&o, "cudaGetDeviceProperties_v2") ? 12 : 13);
	munmap(file, o.file_bytes);
}

#define SEEN_MAX 8192u
static struct {
	uint64_t base;
	char *path; /* until it was looked at */
} seen[SEEN_MAX];
static size_t seen_count;

static int note(struct dl_phdr_info *info, size_t size, void *data)
{
	for (size_t i = 0; i < seen_count; i++)
		if (seen[i].base == info->dlpi_addr)
			return 0;
	if (seen_count == SEEN_MAX)
		return 1;
	seen[seen_count].base = info->dlpi_addr;
	if (info->dlpi_name && *info->dlpi_name == '/')
		seen[seen_count].path = frag_host_strdup(info->dlpi_name);
	seen_count++;
	return 0;
}

/* A lock of its own: the loader's is taken inside, which other threads hold while they wait for the card's. */
static pthread_mutex_t adopting = PTHREAD_MUTEX_INITIALIZER;

/* What is replaced asks the loader for symbols, hence not inside of dl_iterate_phdr. */
void frag_nogpu_adopt(void)
{
	size_t first;

	pthread_mutex_lock(&adopting);
	first = seen_count;
	dl_iterate_phdr(note, NULL);
	for (size_t i = first; i < seen_count; i++) {
		if (seen[i].path)
			adopt(seen[i].path, seen[i].base);
		FRAG_FREE(seen[i].path);
	}
	pthread_mutex_unlock(&adopting);
}
