/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which machine code of a kernel the card runs. nvcc compiles a source file for several architectures and registers the
 * result together with the functions that launch its kernels. Libraries such as CUB ask which of these architectures runs
 * (cudaFuncGetAttributes), look it up among those that they were compiled for, and fail if it is another one. A card of
 * 8.9 runs the code for 8.6 where there is none for 8.9, so the capability of the card is no answer.
 *
 * Only the list of architectures is read, as nvcc 12 and 13 write it; kernels are never looked at.
 */
#include "nogpu.h"

#include <dlfcn.h>
#include <string.h>

#include "entries.h"
#include "lib/addr_map.h"

#define LIST_MAGIC 0xba55ed50u
#define LIST_HEAD 16u  /* bytes: magic, version, bytes of the head, bytes behind it */
#define ENTRY_HEAD 48u /* bytes up to the end of the flags */
#define KIND_PTX 1u
#define THIS_ONLY (1u << 20) /* flag: code for exactly this architecture, as sm_90a */

/* Of one source file: the architectures that the card can take. 0: none. */
struct choice {
	int code, ptx, lowest;
};

static void consider(struct choice *c, const unsigned char *entry)
{
	const struct nogpu_card *card = frag_nogpu_card();
	const int cc = 10 * card->major + card->minor;
	uint32_t arch, flags;
	uint16_t kind;

	memcpy(&kind, entry, sizeof(kind));
	memcpy(&arch, entry + 28, sizeof(arch));
	memcpy(&flags, entry + 40, sizeof(flags));
	if (arch >= FRAG_NOGPU_ARCHS)
		return;
	c->lowest = c->lowest ? FRAG_MIN(c->lowest, (int)arch) : (int)arch;
	if ((int)arch > cc || ((flags & THIS_ONLY) && (int)arch != cc))
		return;
	if (kind == KIND_PTX)
		c->ptx = FRAG_MAX(c->ptx, (int)arch);
	else if ((int)arch / 10 == card->major)
		c->code = FRAG_MAX(c->code, (int)arch);
}

int frag_nogpu_arch_of(const struct frag_nogpu_fatbin *f)
{
	struct choice c = { 0 };
	uint64_t left, bytes;
	uint32_t magic, head;
	const unsigned char *at = f->list;

	if (at)
		memcpy(&magic, at, sizeof(magic));
	if (!at || magic != LIST_MAGIC)
		return 0;
	memcpy(&left, at + 8, sizeof(left));
	for (at += LIST_HEAD; left >= ENTRY_HEAD; at += head + bytes, left -= head + bytes) {
		memcpy(&head, at + 4, sizeof(head));
		memcpy(&bytes, at + 8, sizeof(bytes));
		if (head < ENTRY_HEAD || head > left || bytes > left - head)
			break;
		consider(&c, at);
	}
	/* what is too new for the card would not run: it is taken for the oldest that there is (PyTorch warns of such a card) */
	return c.code ? c.code : c.ptx ? c.ptx : c.lowest;
}

/* The handle of a source file is its architecture: its place in this array. */
static void *handles[FRAG_NOGPU_ARCHS][2];
static struct frag_addr_map functions; /* that launch a kernel -> architecture */

NOGPU_ENTRY(void **, __cudaRegisterFatBinary, (void *fatbin))
{
	return handles[frag_nogpu_arch_of(fatbin)];
}

NOGPU_ENTRY(void, __cudaRegisterFunction, (void **handle, const void *function))
{
	size_t arch = (size_t)((void *(*)[2])handle - handles);
	struct frag_addr_cell *cell;

	if (!arch || arch >= FRAG_NOGPU_ARCHS)
		return;
	frag_nogpu_lock();
	cell = frag_addr_map_find(&functions, (uintptr_t)function);
	if (cell) /* of a library that is gone */
		cell->value = arch;
	else if (!frag_addr_map_reserve(&functions))
		frag_addr_map_add(&functions, (uintptr_t)function, arch);
	frag_nogpu_unlock();
}

/* Of a kernel; whatever was never registered here was compiled for the card. */
static int arch_of_kernel(const void *function)
{
	const struct nogpu_card *card = frag_nogpu_card();
	const struct frag_addr_cell *cell;
	int arch;

	frag_nogpu_lock();
	cell = frag_addr_map_find(&functions, (uintptr_t)function);
	arch = cell ? (int)cell->value : 0;
	frag_nogpu_unlock();
	arch = arch ? arch : frag_nogpu_adopted_arch(function);
	return arch ? arch : 10 * card->major + card->minor;
}

/* cudaFuncAttributes, the part that every version has: three sizes, then int
 * maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicShared. */
NOGPU_ENTRY(int, cudaFuncGetAttributes, (void *out, const void *function))
{
	const int arch = arch_of_kernel(function);
	const int values[] = { 1024, 32, arch, arch, 0, 49152 };

	memset(out, 0, 56);
	memcpy((char *)out + 24, values, sizeof(values));
	return NOGPU_OK;
}
