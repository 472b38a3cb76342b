/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which machine code of a kernel the card runs. nvcc compiles a source file for several
 * architectures and registers the result with the functions that launch its kernels. Libraries such
 * as CUB ask which architecture runs (cudaFuncGetAttributes), look it up in their own list, and
 * fail if it is not there. A card of 8.9 runs code for 8.6 if there is none for 8.9, so the card's
 * capability is the wrong answer.
 *
 * Only the list of architectures, as nvcc 12 and 13 write it, and the names of kernels are read.
 *
 * How many blocks of a kernel a multiprocessor runs at once: Transformer Engine sizes a workspace
 * by it in the backward pass of each norm. The rules of CUDA's occupancy calculator; they agree
 * with all 279 answers of an H200 from which norm_registers.def comes. For kernels of other
 * libraries, the registers are unknown.
 */
#include "card.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/addr_map.h"

#define LIST_MAGIC 0xba55ed50u
#define LIST_HEAD 16u  /* bytes: magic, version, size of head, size of list */
#define ENTRY_HEAD 48u /* bytes up to the end of the flags */
#define KIND_PTX 1u
#define THIS_ONLY (1u << 20) /* flag: runs on exactly this architecture (sm_90a) */

static int capability(void)
{
	return 10 * frag_pretend_card()->major + frag_pretend_card()->minor;
}

/* The loader's preference for an entry: newest machine code, then newest PTX; else the oldest
 * (PyTorch warns of such a card). */
static unsigned rank_of(const unsigned char *entry)
{
	const unsigned cc = (unsigned)capability();
	uint32_t arch, flags;
	uint16_t kind;

	memcpy(&kind, entry, sizeof(kind));
	memcpy(&arch, entry + 28, sizeof(arch));
	memcpy(&flags, entry + 40, sizeof(flags));
	if (arch >= FRAG_PRETEND_ARCHS)
		return 0;
	if (arch > cc || ((flags & THIS_ONLY) && arch != cc) ||
	    (kind != KIND_PTX && arch / 10 != cc / 10))
		return FRAG_PRETEND_ARCHS - arch;
	return (kind == KIND_PTX ? 1 : 2) * FRAG_PRETEND_ARCHS + arch;
}

int frag_pretend_arch_of(const struct frag_pretend_fatbin *f)
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
	return (int)(best > FRAG_PRETEND_ARCHS ? best % FRAG_PRETEND_ARCHS
		     : best		       ? FRAG_PRETEND_ARCHS - best
					       : 0);
}

/* The handle of a source file is its architecture's place in this array. Its functions are
 * registered before the next file. */
static void *handles[FRAG_PRETEND_ARCHS][2];
static _Atomic size_t files;
struct function {
	int arch;
	size_t file;
	const char *kernel; /* its name */
};
static struct frag_addr_map functions; /* -> struct function */

PRETEND_ENTRY(void **, __cudaRegisterFatBinary, (void *fatbin))
{
	files++;
	return handles[frag_pretend_arch_of(fatbin)];
}

/* Zeros: not registered. */
static struct function function_of(const void *launched)
{
	PRETEND_LOCKED;
	const struct frag_addr_cell *cell = frag_addr_map_find(&functions, (uintptr_t)launched);

	return cell ? *(struct function *)(uintptr_t)cell->value : (struct function){ 0 };
}

/* A new entry replaces an old one, whose library was unloaded. */
PRETEND_ENTRY(void, __cudaRegisterFunction,
	      (void **handle, const void *function, const char *mangled, const char *name))
{
	PRETEND_LOCKED;
	size_t arch = (size_t)((void *(*)[2])handle - handles);
	const struct frag_addr_cell *cell = frag_addr_map_find(&functions, (uintptr_t)function);
	struct function *f;

	if (!arch || arch >= FRAG_PRETEND_ARCHS || (!cell && frag_addr_map_reserve(&functions)))
		return;
	f = cell ? (struct function *)(uintptr_t)cell->value : frag_host_calloc(1, sizeof(*f));
	if (f && !cell)
		frag_addr_map_add(&functions, (uintptr_t)function, (uintptr_t)f);
	if (f)
		*f = (struct function){ (int)arch, files, name };
}

const char *frag_pretend_name_of(const void *function)
{
	return function_of(function).kernel;
}

bool frag_pretend_loads(const void *function)
{
	static _Atomic bool loaded[1 << 14]; /* later files count as not loaded */
	size_t file = function_of(function).file;

	return file && file < FRAG_ARRAY_LEN(loaded) && !loaded[file] &&
	       !atomic_exchange(&loaded[file], true);
}

/* ---- kernels of static runtimes (static_runtime.c), which these registered before ----------- */

#define ADOPTED_MAX 1024u
static struct {
	uint64_t first, end;
	int arch;
} adopted[ADOPTED_MAX];
static atomic_size_t adopted_count; /* only grows */

/* The lowest of all source files, because a function cannot be matched to its file. */
void frag_pretend_adopt(uint64_t first, uint64_t end, const struct frag_pretend_fatbin *list,
			size_t count)
{
	size_t n = adopted_count;
	int lowest = 0;

	for (size_t i = 0; i < count; i++) {
		int arch = frag_pretend_arch_of(&list[i]);

		lowest = arch && (!lowest || arch < lowest) ? arch : lowest;
	}
	if (n == ADOPTED_MAX)
		return;
	adopted[n].first = first;
	adopted[n].end = end;
	adopted[n].arch = lowest;
	adopted_count = n + 1;
}

/* ---- attributes ---------------------------------------------------------------------------- */

/* cudaFuncAttributes, the part that every version has: three sizes, then int
 * maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicShared. */
PRETEND_ENTRY(int, cudaFuncGetAttributes, (void *out, const void *function))
{
	const int registers = frag_pretend_registers_by_name(frag_pretend_name_of(function));
	int arch = function_of(function).arch;

	for (size_t i = adopted_count; !arch && i-- > 0;)
		if ((uint64_t)function >= adopted[i].first && (uint64_t)function < adopted[i].end)
			arch = adopted[i].arch;
	if (!arch) /* unregistered functions were compiled for the card */
		arch = capability();
	const int values[] = { 1024, registers, arch, arch, 0, 49152 };

	memset(out, 0, 56);
	memcpy((char *)out + 24, values, sizeof(values));
	return PRETEND_OK;
}

/* ---- occupancy ------------------------------------------------------------------------------ */

#define WARP 32	      /* threads */
#define QUARTER 16384 /* registers: each quarter of a multiprocessor has its own, for whole warps */
#define REGISTER_UNIT 256 /* granularity of a warp's registers */
#define SHARED_UNIT 128	  /* bytes */

static const struct norm {
	const char *kernel;
	int width;
	int registers[3]; /* by the type of the weights */
} norms[] = {
#define NORM(kernel, width, bfloat16, half, single) { #kernel, width, { bfloat16, half, single } },
#include "norm_registers.def"
};

static bool norms_answered;

/* For cufrag_card.py: the release of Transformer Engine that answered, "2.13"; NULL: none did. */
__attribute__((visibility("default"))) const char *frag_pretend_norms_release(void);
const char *frag_pretend_norms_release(void)
{
	return norms_answered ? NORMS_RELEASE : NULL;
}

/* Mangled: "…21rmsnorm_bwd_tuned_kernelINS0_13Kernel_traitsI13__nv_bfloat16…Lj2048E…Lb0EEE…":
 * kernel, type, width, and whether it adds a gradient. */
int frag_pretend_registers_by_name(const char *name)
{
	static const char traits[] = "_kernelINS0_13Kernel_traitsI";
	static const char *const types[] = { "13__nv_bfloat16", "6__half", "f" };
	const char *end = name ? strstr(name, traits) : NULL, *begin = end;
	char kernel[40];
	int width = 0;
	size_t type = 0;

	if (!end)
		return PRETEND_USUAL_REGISTERS;
	while (begin > name && strchr("abcdefghijklmnopqrstuvwxyz_", begin[-1]))
		begin--;
	snprintf(kernel, sizeof(kernel), "%.*s%s", (int)(end - begin), begin,
		 strstr(end, "Lb1E") ? "_add" : "");
	while (type < 3 && strncmp(end + sizeof(traits) - 1, types[type], strlen(types[type])))
		type++;
	end = strstr(end, "Lj");
	if (type == 3 || !end || sscanf(end, "Lj%dE", &width) != 1)
		return PRETEND_USUAL_REGISTERS;
	for (const struct norm *n = norms; n < norms + FRAG_ARRAY_LEN(norms); n++)
		if (n->width == width && !strcmp(n->kernel, kernel)) {
			norms_answered = true;
			return n->registers[type];
		}
	return PRETEND_USUAL_REGISTERS;
}

int frag_pretend_blocks_per_sm(int registers, int threads, uint64_t shared_bytes)
{
	const struct pretend_card *c = frag_pretend_card();
	const int warps = (FRAG_MAX(threads, 1) + WARP - 1) / WARP;
	const int warp = (int)frag_round_up((uint64_t)registers * WARP, REGISTER_UNIT);
	int most = FRAG_MIN(c->blocks_per_sm, c->threads_per_sm / WARP / warps);

	/* from capability 8.0 on, the system reserves 1 KiB per block */
	shared_bytes = frag_round_up(shared_bytes + (c->major >= 8 ? FRAG_KIB : 0), SHARED_UNIT);
	most = FRAG_MIN(most, QUARTER / warp * 4 / warps);
	if (shared_bytes)
		most = (int)FRAG_MIN((uint64_t)most, c->shared_per_sm_bytes / shared_bytes);
	return FRAG_MAX(most, 1);
}
