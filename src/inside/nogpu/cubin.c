/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers of a kernel, which Inductor asks for: where they are more than leave the card full, it tries smaller blocks and
 * measures both, with a buffer of the size of the card's cache. They stand in what ptxas writes, an ELF file: section .nv.info has a list of
 * (form, attribute, bytes, value), in which attribute 0x2f counts the registers of a function ("REG" of cuobjdump -res-usage). Of a
 * file with several kernels, all have those of the largest.
 */
#include "nogpu.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NV_INFO 0x70000000u
#define SIZED_VALUE 4u
#define REGISTER_COUNT 0x2fu
#define MARK 0x6375667261676b72u

/* What handles of modules and kernels begin with. */
struct code {
	uint64_t mark;
	int registers;
	const char *source; /* of a module (nvrtc.c), else NULL */
	uint64_t stored;    /* of a kernel: parameters that it stores to */
};

static int most_of(const unsigned char *at, uint64_t left)
{
	int most = 0;

	while (left >= 4) {
		uint16_t bytes = 0;
		uint32_t count;

		if (at[0] == SIZED_VALUE)
			memcpy(&bytes, at + 2, sizeof(bytes));
		if (left < 4u + bytes)
			break;
		if (at[0] == SIZED_VALUE && at[1] == REGISTER_COUNT && bytes == 8) {
			memcpy(&count, at + 8, sizeof(count));
			most = FRAG_MAX(most, (int)(count & 0x3ff));
		}
		at += 4 + bytes;
		left -= 4u + bytes;
	}
	return most;
}

/* Bytes of an image that a program has in its memory are not known: the driver believes it, too. */
static int registers_of(const void *image, uint64_t image_bytes)
{
	const Elf64_Ehdr *head = image;
	int most = 0;

	if (!image || image_bytes < sizeof(*head) || memcmp(image, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_CUDA ||
	    head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff > image_bytes ||
	    head->e_shnum > (image_bytes - head->e_shoff) / sizeof(Elf64_Shdr))
		return NOGPU_USUAL_REGISTERS;
	for (unsigned i = 0; i < head->e_shnum; i++) {
		Elf64_Shdr s;

		memcpy(&s, (const char *)image + head->e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type == NV_INFO && !s.sh_info && s.sh_offset <= image_bytes &&
		    s.sh_size <= image_bytes - s.sh_offset)
			most = FRAG_MAX(most, most_of((const unsigned char *)image + s.sh_offset,
						      s.sh_size));
	}
	return most ?: NOGPU_USUAL_REGISTERS;
}

static int give(void **out, struct code code)
{
	int rc = frag_nogpu_handle(out);

	code.mark = MARK;
	if (!rc)
		*(struct code *)*out = code;
	return rc;
}

static struct code code_of(const void *handle)
{
	struct code code = { 0 };

	if ((uintptr_t)handle >= 4096) /* others than ours may be small numbers */
		memcpy(&code, handle, sizeof(code));
	return code.mark == MARK ? code : (struct code){ .registers = NOGPU_USUAL_REGISTERS };
}

int frag_nogpu_load_code(void **out, const void *image)
{
	return give(out, (struct code){ .registers = registers_of(image, UINT64_MAX),
					.source = frag_nogpu_source_of(image) });
}

int frag_nogpu_load_code_file(void **out, const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1, registers = NOGPU_USUAL_REGISTERS;
	struct stat state;
	void *image;

	if (fd >= 0 && !fstat(fd, &state) && state.st_size > 0) {
		image = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (image != MAP_FAILED) {
			registers = registers_of(image, (uint64_t)state.st_size);
			munmap(image, (size_t)state.st_size);
		}
	}
	if (fd >= 0)
		close(fd);
	return give(out, (struct code){ .registers = registers });
}

int frag_nogpu_kernel_of(void **out, const void *module, const char *name)
{
	struct code code = code_of(module);

	if (code.source)
		code.stored = frag_nogpu_stored_by(code.source, name);
	return give(out, code);
}

int frag_nogpu_registers(const void *handle)
{
	return code_of(handle).registers;
}

uint64_t frag_nogpu_stored(const void *handle)
{
	return code_of(handle).stored;
}
