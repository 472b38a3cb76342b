/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many blocks of a kernel a multiprocessor runs at once: Transformer Engine sizes a workspace
 * by it in the backward pass of each norm. The rules of CUDA's occupancy calculator; they agree
 * with all 279 answers of an H200 from which norm_registers.def comes. For kernels of other
 * libraries, the registers are unknown.
 */
#include "nogpu.h"

#include <stdio.h>
#include <string.h>

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

/* For cufrag_card.py: the release of Transformer Engine whose registers answered, "2.13"; NULL: none did. */
__attribute__((visibility("default"))) const char *frag_nogpu_norms_release(void);
const char *frag_nogpu_norms_release(void)
{
	return norms_answered ? NORMS_RELEASE : NULL;
}

/* Mangled: "…21rmsnorm_bwd_tuned_kernelINS0_13Kernel_traitsI13__nv_bfloat16…Lj2048E…Lb0EEE…":
 * kernel, type, width, and whether it adds a gradient. */
int frag_nogpu_registers_by_name(const char *name)
{
	static const char traits[] = "_kernelINS0_13Kernel_traitsI";
	static const char *const types[] = { "13__nv_bfloat16", "6__half", "f" };
	const char *end = name ? strstr(name, traits) : NULL, *begin = end;
	char kernel[40];
	int width = 0;
	size_t type = 0;

	if (!end)
		return NOGPU_USUAL_REGISTERS;
	while (begin > name && strchr("abcdefghijklmnopqrstuvwxyz_", begin[-1]))
		begin--;
	snprintf(kernel, sizeof(kernel), "%.*s%s", (int)(end - begin), begin,
		 strstr(end, "Lb1E") ? "_add" : "");
	while (type < 3 && strncmp(end + sizeof(traits) - 1, types[type], strlen(types[type])))
		type++;
	end = strstr(end, "Lj");
	if (type == 3 || !end || sscanf(end, "Lj%dE", &width) != 1)
		return NOGPU_USUAL_REGISTERS;
	for (const struct norm *n = norms; n < norms + FRAG_ARRAY_LEN(norms); n++)
		if (n->width == width && !strcmp(n->kernel, kernel)) {
			norms_answered = true;
			return n->registers[type];
		}
	return NOGPU_USUAL_REGISTERS;
}

int frag_nogpu_blocks_per_sm(int registers, int threads, uint64_t shared_bytes)
{
	const struct nogpu_card *c = frag_nogpu_card();
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
