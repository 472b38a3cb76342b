/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers and local memory of a kernel, which Inductor asks for. If the registers limit
 * occupancy, it tries smaller blocks and measures both, with a buffer as large as the card's L2
 * cache; kernels that spill more than 16 registers are not measured. ptxas writes them into an ELF
 * section .nv.info, a list of (form, attribute, bytes, value): attribute 0x2f is a function's
 * register count, 0x11 its frame in bytes ("REG" and "STACK" of cuobjdump -res-usage). All kernels
 * of a file get those of the largest.
 *
 * Kernels compiled at run time, as by torch.jit: the image only holds a pointer to the source. They
 * do nothing, and bypass the dispatcher, so what they store must be marked unknown: stale memory
 * would pass for computed values. The source shows what they store: NAME[...] = .
 */
#include "card.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NV_INFO 0x70000000u
#define SIZED_VALUE 4u
#define REGISTER_COUNT 0x2fu
#define FRAME_SIZE 0x11u
#define MARK 0x6375667261676b72u

/* Header of module and kernel handles. */
struct code {
	uint64_t mark;
	int registers, local_bytes;
	const char *source; /* of a module compiled at run time, else NULL */
	uint64_t stored;    /* of a kernel: bit set of the parameters it stores to */
};

static const struct code unknown = { .registers = PRETEND_USUAL_REGISTERS };

static void take(struct code *code, unsigned attribute, uint32_t value)
{
	if (attribute == REGISTER_COUNT)
		code->registers = FRAG_MAX(code->registers, (int)(value & 0x3ff));
	if (attribute == FRAME_SIZE && value <= INT_MAX)
		code->local_bytes = FRAG_MAX(code->local_bytes, (int)value);
}

static void take_list(struct code *code, const unsigned char *at, uint64_t left)
{
	while (left >= 4) {
		uint16_t bytes = 0;
		uint32_t value;

		if (at[0] == SIZED_VALUE)
			memcpy(&bytes, at + 2, sizeof(bytes));
		if (left < 4u + bytes)
			break;
		if (bytes == 8) {
			memcpy(&value, at + 8, sizeof(value));
			take(code, at[1], value);
		}
		at += 4 + bytes;
		left -= 4u + bytes;
	}
}

/* The size of an image in the program's memory is unknown; like the driver, trust its header. */
static struct code read_code(const void *image, uint64_t image_bytes)
{
	const Elf64_Ehdr *head = image;
	struct code code = { 0 };

	if (!image || image_bytes < sizeof(*head) || memcmp(image, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_CUDA ||
	    head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff > image_bytes ||
	    head->e_shnum > (image_bytes - head->e_shoff) / sizeof(Elf64_Shdr))
		return unknown;
	for (unsigned i = 0; i < head->e_shnum; i++) {
		Elf64_Shdr s;

		memcpy(&s, (const char *)image + head->e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type == NV_INFO && !s.sh_info && s.sh_offset <= image_bytes &&
		    s.sh_size <= image_bytes - s.sh_offset)
			take_list(&code, (const unsigned char *)image + s.sh_offset, s.sh_size);
	}
	return code.registers ? code : unknown;
}

/* ---- compiled at run time ---------------------------------------------------------------- */

#define COMPILED "cufragRT"
#define COMPILED_BYTES (sizeof(COMPILED) - 1)
#define NAME_BYTES 128
#define PARAMETERS_MAX 64

PRETEND_ENTRY(int, nvrtcCreateProgram, (void **out, const char *source))
{
	int rc = frag_pretend_handle(out);

	if (!rc)
		*(char **)*out = strdup(source); /* modules keep a pointer to it */
	return rc;
}

PRETEND_ENTRY(int, nvrtcGetCUBIN, (void *program, char *image))
{
	const char *source = *(char **)program;

	memset(image, 0, PRETEND_CUBIN_BYTES);
	memcpy(image, COMPILED, COMPILED_BYTES);
	memcpy(image + COMPILED_BYTES, &source, sizeof(source));
	return PRETEND_OK;
}

static const char *source_of(const void *image)
{
	const char *source = NULL;

	if (image && !strncmp(image, COMPILED, COMPILED_BYTES))
		memcpy(&source, (const char *)image + COMPILED_BYTES, sizeof(source));
	return source;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Pointer past the next occurrence of the word, or NULL. */
static const char *behind_word(const char *begin, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = begin; (at = strstr(at, word)); at += length)
		if ((at == begin || !in_word(at[-1])) && !in_word(at[length]))
			return at + length;
	return NULL;
}

static const char *behind_blanks(const char *at)
{
	return at + strspn(at, " \t\n");
}

static bool stores(const char *body, const char *name)
{
	for (const char *at = body; (at = behind_word(at, name));) {
		int depth = 0;

		at = behind_blanks(at);
		if (*at != '[')
			continue;
		do
			depth += (*at == '[') - (*at == ']');
		while (*at++ && depth);
		at = behind_blanks(at);
		if (at[0] == '=' && at[1] != '=')
			return true;
	}
	return false;
}

/* The name of a parameter, its last word, if it is a pointer. */
static bool pointer_name(const char *from, const char *to, char name[NAME_BYTES])
{
	const char *begin;

	while (to > from && !in_word(to[-1]))
		to--;
	for (begin = to; begin > from && in_word(begin[-1]); begin--)
		;
	if (!memchr(from, '*', (size_t)(begin - from)) || to - begin >= NAME_BYTES)
		return false;
	memcpy(name, begin, (size_t)(to - begin));
	name[to - begin] = '\0';
	return true;
}

/* The parameters that a kernel of this source stores to, as a bit set. */
static uint64_t stored_by(const char *source, const char *kernel)
{
	const char *at = behind_word(source, "__global__"), *body, *end;
	uint64_t stored = 0;
	char name[NAME_BYTES];

	at = at ? behind_word(at, kernel) : NULL;
	at = at ? behind_blanks(at) : NULL;
	body = at && *at == '(' ? strchr(at, ')') : NULL;
	for (unsigned i = 0; body && at < body && i < PARAMETERS_MAX; i++, at = end) {
		end = at + 1 + strcspn(at + 1, ",)");
		if (pointer_name(at + 1, end, name) && stores(body, name))
			stored |= 1ull << i;
	}
	return stored;
}

/* ---- handles ------------------------------------------------------------------------------- */

static int give(void **out, struct code code)
{
	int rc = frag_pretend_handle(out);

	code.mark = MARK;
	if (!rc)
		*(struct code *)*out = code;
	return rc;
}

static struct code code_of(const void *handle)
{
	struct code code = { 0 };

	if ((uintptr_t)handle >= 4096) /* foreign handles may be small numbers */
		memcpy(&code, handle, sizeof(code));
	return code.mark == MARK ? code : unknown;
}

int frag_pretend_load_code(void **out, const void *image)
{
	struct code code = read_code(image, UINT64_MAX);

	code.source = source_of(image);
	return give(out, code);
}

int frag_pretend_load_code_file(void **out, const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct code code = unknown;
	struct stat state;
	void *image;

	if (fd >= 0 && !fstat(fd, &state) && state.st_size > 0) {
		image = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (image != MAP_FAILED) {
			code = read_code(image, (uint64_t)state.st_size);
			munmap(image, (size_t)state.st_size);
		}
	}
	if (fd >= 0)
		close(fd);
	return give(out, code);
}

int frag_pretend_kernel_of(void **out, const void *module, const char *name)
{
	struct code code = code_of(module);

	if (code.source)
		code.stored = stored_by(code.source, name);
	return give(out, code);
}

int frag_pretend_registers(const void *handle)
{
	return code_of(handle).registers;
}

int frag_pretend_frame_bytes(const void *handle)
{
	return code_of(handle).local_bytes;
}

/* Marks what a kernel compiled at run time stores to as unknown. */
PRETEND_ENTRY(int, cuLaunchKernel,
	      (const void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
	       void *stream, void **parameters))
{
	uint64_t stored = parameters ? code_of(kernel).stored : 0;
	const void *p;

	for (unsigned i = 0; stored; i++, stored >>= 1)
		if (stored & 1) {
			memcpy(&p, parameters[i], sizeof(p));
			frag_pretend_origin_set(p, 1, PRETEND_UNKNOWN, false);
		}
	return PRETEND_OK;
}
