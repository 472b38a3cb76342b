/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA runtime inside of a library of the program: nvcc links it statically unless told otherwise, and CuPy's wheels have it
 * so. It would look for a driver with more than the public calls. So its functions are replaced where they lie in memory: each
 * begins with a jump to the entry that stands for it.
 *
 * What is written into is somebody else's code, hence the rules. A function is replaced if
 *
 *	- its library is none of NVIDIA's own: those are never written into, whatever is in them;
 *	- its library keeps a whole runtime to itself, by its table of symbols: functions with the names of the runtime that it does
 *	  not export, among them those by which programs register kernels. A cudaMalloc that a library exports is its own;
 *	- its name is one that NVIDIA's headers publish (runtime_names.csv), and it is long enough for the jump;
 *	- the memory has the bytes of the file: it is this file that was loaded, and nobody else changed the function.
 *
 * Where the runtime is inside and the table was taken away (strip), the library is left alone, and meets no card.
 *
 * x86-64 only, as all of the pretended card.
 */
#include "nogpu.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATCH_BYTES 24u

/* A library where it was loaded, and its file. */
struct object {
	uint64_t base, first,
		end; /* what addresses of the file are relative to; all of it in memory */
	const unsigned char *file;
	size_t file_bytes;
	const Elf64_Shdr *sections;
	size_t sections_count;
	const Elf64_Sym *symbols;
	size_t symbols_count;
	const char *names;
	size_t names_bytes;
};

/* ---- which libraries and functions ------------------------------------------------------------- */

/* Patterns of fnmatch, with whatever a packager puts before the ending: libcudart-a7b3c2d1.so.12. */
static const char *const nvidias[] = {
	"libcuda.so*",	"libcudart[.-]*", "libcudnn*",	 "libcublas*",	   "libcufft*",
	"libcufile*",	"libcupti*",	  "libcurand*",	 "libcusolver*",   "libcusparse*",
	"libcutensor*", "libcudss*",	  "libnccl*",	 "libnpp[cis]*",   "libnvblas*",
	"libnvcomp*",	"libnvfatbin*",	  "libnvidia-*", "libnvinfer*",	   "libnvjpeg*",
	"libnvperf*",	"libnvrtc*",	  "libnvshmem*", "libnvToolsExt*", "libnv[Jj]it[Ll]ink*",
};

static bool is_nvidias(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(nvidias); i++)
		if (!fnmatch(nvidias[i], name, 0))
			return true;
	return false;
}

/* In the order of strcmp. */
static const char *const published[] = {
#define FRAG_ROW(name) #name,
#include "runtime_list.inc"
#undef FRAG_ROW
};

static int by_name(const void *name, const void *row)
{
	return strcmp(name, *(const char *const *)row);
}

/* ---- the file ------------------------------------------------------------------------------------ */

static bool in_file(const struct object *o, const Elf64_Shdr *s)
{
	return s->sh_offset <= o->file_bytes && s->sh_size <= o->file_bytes - s->sh_offset;
}

static bool read_sections(struct object *o)
{
	const Elf64_Ehdr *head = (const void *)o->file;

	if (o->file_bytes < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shoff > o->file_bytes ||
	    (o->file_bytes - head->e_shoff) / sizeof(*o->sections) < head->e_shnum)
		return false;
	o->sections = (const void *)(o->file + head->e_shoff);
	o->sections_count = head->e_shnum;
	return true;
}

/* The table of symbols that strip takes away. false: none, or not one that can be read. */
static bool read_symbols(struct object *o)
{
	for (size_t i = 0; i < o->sections_count; i++) {
		const Elf64_Shdr *s = &o->sections[i], *text;

		if (s->sh_type != SHT_SYMTAB || s->sh_link >= o->sections_count)
			continue;
		text = &o->sections[s->sh_link];
		if (!in_file(o, s) || !in_file(o, text) || !text->sh_size)
			return false;
		o->symbols = (const void *)(o->file + s->sh_offset);
		o->symbols_count = s->sh_size / sizeof(Elf64_Sym);
		o->names = (const char *)o->file + text->sh_offset;
		o->names_bytes = text->sh_size;
		return !o->names[o->names_bytes - 1];
	}
	return false;
}

/* Name of a function that the runtime publishes and the library keeps to itself; NULL: another symbol. */
static const char *function_of(const struct object *o, const Elf64_Sym *s)
{
	const char *name = s->st_name < o->names_bytes ? o->names + s->st_name : "";
	bool exported = ELF64_ST_BIND(s->st_info) != STB_LOCAL &&
			ELF64_ST_VISIBILITY(s->st_other) == STV_DEFAULT;

	if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF || exported)
		return NULL;
	return bsearch(name, published, FRAG_ARRAY_LEN(published), sizeof(*published), by_name)
		       ? name
		       : NULL;
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

/* What the file has for a function; NULL: not code of the library, or too short for a jump. */
static const unsigned char *code_of(const struct object *o, const Elf64_Sym *s)
{
	const Elf64_Shdr *in = s->st_shndx < o->sections_count ? &o->sections[s->st_shndx] : NULL;
	uint64_t at, memory = o->base + s->st_value;

	if (!in || !(in->sh_flags & SHF_EXECINSTR) || !in_file(o, in) ||
	    s->st_value < in->sh_addr || s->st_size < PATCH_BYTES)
		return NULL;
	at = s->st_value - in->sh_addr;
	if (at > in->sh_size || s->st_size > in->sh_size - at || memory < o->first ||
	    memory > o->end || s->st_size > o->end - memory)
		return NULL;
	return o->file + in->sh_offset + at;
}

/* ---- what is written ------------------------------------------------------------------------------- */

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

static void replace(const struct object *o, int major)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < o->symbols_count; i++) {
		const Elf64_Sym *s = &o->symbols[i];
		const char *name = function_of(o, s);
		const unsigned char *original = name ? code_of(o, s) : NULL;
		unsigned char code[PATCH_BYTES], *at = (unsigned char *)(o->base + s->st_value);
		uint64_t first = frag_round_down((uint64_t)at, page);
		uint64_t end = frag_round_up((uint64_t)at + PATCH_BYTES, page);

		if (!original || memcmp(at, original, PATCH_BYTES) ||
		    mprotect((void *)first, end - first, PROT_READ | PROT_WRITE | PROT_EXEC))
			continue;
		memcpy(at, code, jump(code, name, major));
		mprotect((void *)first, end - first, PROT_READ | PROT_EXEC);
	}
}

/* ---- its kernels ----------------------------------------------------------------------------------- */

#define ADOPTED_MAX 1024u
/* Those whose kernels were registered with the runtime inside, before it was replaced; grows only. */
static struct {
	uint64_t first, end;
	int arch;
} adopted[ADOPTED_MAX];
static atomic_size_t adopted_count;

int frag_nogpu_adopted_arch(const void *function)
{
	const uint64_t at = (uint64_t)function;

	for (size_t i = atomic_load(&adopted_count); i-- > 0;)
		if (at >= adopted[i].first && at < adopted[i].end)
			return adopted[i].arch;
	return 0;
}

/* The lowest of all source files: which of them has a function cannot be told. */
static int arch_of_library(const struct object *o)
{
	const Elf64_Ehdr *head = (const void *)o->file;
	const Elf64_Shdr *names =
		head->e_shstrndx < o->sections_count ? &o->sections[head->e_shstrndx] : NULL;
	int lowest = 0;

	for (size_t i = 0; names && in_file(o, names) && i < o->sections_count; i++) {
		static const char wanted[] = ".nvFatBinSegment";
		const Elf64_Shdr *s = &o->sections[i];
		const struct frag_nogpu_fatbin *f = (const void *)(o->base + s->sh_addr);

		if (s->sh_name > names->sh_size || names->sh_size - s->sh_name < sizeof(wanted) ||
		    memcmp(o->file + names->sh_offset + s->sh_name, wanted, sizeof(wanted)) ||
		    (uint64_t)f < o->first || (uint64_t)f > o->end ||
		    s->sh_size > o->end - (uint64_t)f)
			continue;
		for (const struct frag_nogpu_fatbin *end = f + s->sh_size / sizeof(*f); f < end;
		     f++) {
			int arch = frag_nogpu_arch_of(f);

			lowest = arch && (!lowest || arch < lowest) ? arch : lowest;
		}
	}
	return lowest;
}

static void note_kernels(const struct object *o)
{
	size_t n = atomic_load(&adopted_count);

	if (n == ADOPTED_MAX)
		return;
	adopted[n].first = o->first;
	adopted[n].end = o->end;
	adopted[n].arch = arch_of_library(o);
	atomic_store(&adopted_count, n + 1);
}

/* ---- libraries that were loaded -------------------------------------------------------------------- */

static void adopt(const char *path, struct object o)
{
	void *file = MAP_FAILED;
	struct stat state;
	int fd = is_nvidias(path) ? -1 : open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!fstat(fd, &state) && S_ISREG(state.st_mode) && state.st_size > 0)
		file = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return;
	o.file = file;
	o.file_bytes = (size_t)state.st_size;
	/* CUDA 11's has textures by reference, and properties of another layout */
	if (read_sections(&o) && read_symbols(&o) && has(&o, "__cudaRegisterFatBinary") &&
	    has(&o, "cudaGetDeviceCount") && !has(&o, "cudaBindTexture")) {
		replace(&o, has(&o, "cudaGetDeviceProperties_v2") ? 12 : 13);
		note_kernels(&o);
	}
	munmap(file, o.file_bytes);
}

#define SEEN_MAX 8192u
static struct {
	uint64_t base, first, end; /* as of an object */
	char *path;		   /* until it was looked at */
} seen[SEEN_MAX];
static size_t seen_count;

static int note(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t base = info->dlpi_addr, first = UINT64_MAX, end = 0;

	for (size_t i = 0; i < seen_count; i++)
		if (seen[i].base == base)
			return 0;
	if (seen_count == SEEN_MAX)
		return 1;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		first = FRAG_MIN(first, base + p->p_vaddr);
		end = FRAG_MAX(end, base + p->p_vaddr + p->p_memsz);
	}
	seen[seen_count].base = base;
	seen[seen_count].first = first;
	seen[seen_count].end = end;
	if (info->dlpi_name && *info->dlpi_name)
		seen[seen_count].path = frag_host_strdup(info->dlpi_name);
	seen_count++;
	return 0;
}

/* A relative name was one for the folder that the program was in; the kernel knows the file. NULL: not one. */
static char *whole_path(const char *name, uint64_t first)
{
	FILE *maps = *name == '/' ? NULL : fopen("/proc/self/maps", "r");
	char *line = NULL, *found = NULL;
	size_t room = 0;

	while (maps && !found && getline(&line, &room, maps) > 0) {
		char *path = strchr(line, '/'), *end;

		if (path && strtoull(line, &end, 16) <= first &&
		    strtoull(end + 1, NULL, 16) > first) {
			path[strcspn(path, "\n")] = '\0';
			found = frag_host_strdup(path);
		}
	}
	free(line);
	if (maps)
		fclose(maps);
	return *name == '/' ? frag_host_strdup(name) : found;
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
		struct object o = { .base = seen[i].base,
				    .first = seen[i].first,
				    .end = seen[i].end };
		FRAG_AUTO_FREE char *path = seen[i].path ? whole_path(seen[i].path, o.first) : NULL;

		if (path)
			adopt(path, o);
		FRAG_FREE(seen[i].path);
	}
	pthread_mutex_unlock(&adopting);
}
