/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which machine code of a kernel the card runs. nvcc compiles a source file for several architectures and registers the
 * result together with the functions that launch its kernels. Libraries such as CUB ask which of these architectures runs
 * (cudaFuncGetAttributes), look it up among those that they were compiled for, and fail if it is another one. A card of
 * 8.9 runs the code for 8.6 where there is none for 8.9, so the capability of the card is no answer.
 *
 * Only the list of architectures is read, as nvcc 12 and 13 write it, and the names of kernels; kernels are never looked at.
 */
#include "nogpu.h"

#include <stdatomic.h>
#include <string.h>

#include "lib/addr_map.h"

#define LIST_MAGIC 0xba55ed50u
#define LIST_HEAD 16u  /* bytes: magic, version, bytes of the head, bytes behind it */
#define ENTRY_HEAD 48u /* bytes up to the end of the flags */
#define KIND_PTX 1u
#define THIS_ONLY (1u << 20) /* flag: code for exactly this architecture, as sm_90a */

static int capability(void)
{
	return 10 * frag_nogpu_card()->major + frag_nogpu_card()->minor;
}

/* How much the card likes an entry: newest machine code, then newest PTX; else the oldest (PyTorch warns of such a card). */
static unsigned rank_of(const unsigned char *entry)
{
	const unsigned cc = (unsigned)capability();
	uint32_t arch, flags;
	uint16_t kind;

	memcpy(&kind, entry, sizeof(kind));
	memcpy(&arch, entry + 28, sizeof(arch));
	memcpy(&flags, entry + 40, sizeof(flags));
	if (arch >= FRAG_NOGPU_ARCHS)
		return 0;
	if (arch > cc || ((flags & THIS_ONLY) && arch != cc) ||
	    (kind != KIND_PTX && arch / 10 != cc / 10))
		return FRAG_NOGPU_ARCHS - arch;
	return (kind == KIND_PTX ? 1 : 2) * FRAG_NOGPU_ARCHS + arch;
}

int frag_nogpu_arch_of(const struct frag_nogpu_fatbin *f)
{
	const unsigned char *at = f->list;
	uint32_t magic = 0, head;
	uint64_t left, bytes;
	unsigned best = 0;

	if (at)
		memcpy(&magic, at, sizeof(magic));
	if (magic != LIST_MAGIC)
		return 0;
	memcpy(&left, at + 8, sizeof(left));
	for (at += LIST_HEAD; left >= ENTRY_HEAD; at += head + bytes, left -= head + bytes) {
		memcpy(&head, at + 4, sizeof(head));
		memcpy(&bytes, at + 8, sizeof(bytes));
		if (head < ENTRY_HEAD || head > left || bytes > left - head)
			break;
		best = FRAG_MAX(best, rank_of(at));
	}
	return (int)(best > FRAG_NOGPU_ARCHS ? best % FRAG_NOGPU_ARCHS
		     : best		     ? FRAG_NOGPU_ARCHS - best
					     : 0);
}

/* The handle of a source file is its architecture: its place in this array. Its functions follow before the next file's. */
static void *handles[FRAG_NOGPU_ARCHS][2];
static _Atomic size_t files;
/* That launch a kernel -> architecture + FRAG_NOGPU_ARCHS * file; -> the kernel's name. */
static struct frag_addr_map functions, names;

NOGPU_ENTRY(void **, __cudaRegisterFatBinary, (void *fatbin))
{
	files++;
	return handles[frag_nogpu_arch_of(fatbin)];
}

/* The last one of a function is kept: another was of a library that is gone. */
static void keep(struct frag_addr_map *m, const void *function, uint64_t value)
{
	struct frag_addr_cell *cell = frag_addr_map_find(m, (uintptr_t)function);

	if (cell)
		cell->value = value;
	else if (!frag_addr_map_reserve(m))
		frag_addr_map_add(m, (uintptr_t)function, value);
}

/* 0: it was never registered. */
static uint64_t kept(const struct frag_addr_map *m, const void *function)
{
	NOGPU_LOCKED;
	const struct frag_addr_cell *cell = frag_addr_map_find(m, (uintptr_t)function);

	return cell ? cell->value : 0;
}

NOGPU_ENTRY(void, __cudaRegisterFunction,
	    (void **handle, const void *function, const char *mangled, const char *name))
{
	NOGPU_LOCKED;
	size_t arch = (size_t)((void *(*)[2])handle - handles);

	if (!arch || arch >= FRAG_NOGPU_ARCHS)
		return;
	keep(&functions, function, arch + FRAG_NOGPU_ARCHS * files);
	keep(&names, function, (uintptr_t)name);
}

const char *frag_nogpu_name_of(const void *function)
{
	return (const char *)(uintptr_t)kept(&names, function);
}

bool frag_nogpu_loads(const void *function)
{
	static _Atomic bool loaded[1 << 14]; /* files beyond never are */
	uint64_t file = kept(&functions, function) / FRAG_NOGPU_ARCHS;

	return file && file < FRAG_ARRAY_LEN(loaded) && !loaded[file] &&
	       !atomic_exchange(&loaded[file], true);
}

/* cudaFuncAttributes, the part that every version has: three sizes, then int
 * maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicShared. */
NOGPU_ENTRY(int, cudaFuncGetAttributes, (void *out, const void *function))
{
	/* what was never registered was compiled for the card */
	int arch = (int)(kept(&functions, function) % FRAG_NOGPU_ARCHS)
			   ?: frag_nogpu_adopted_arch(function) ?: capability();
	const int registers = frag_nogpu_registers_by_name(frag_nogpu_name_of(function));
	const int values[] = { 1024, registers, arch, arch, 0, 49152 };

	memset(out, 0, 56);
	memcpy((char *)out + 24, values, sizeof(values));
	return NOGPU_OK;
}
