/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local memory: stacks for as many threads as the card can run at once. A kernel that needs more
 * than all before makes the driver move all of it, which leaves a hole in the address space
 * (sim_place.c).
 *
 * Measured on H100 (driver 580.159.04, CUDA 13.0, PyTorch 2.11.0, NCCL 2.28.9, 2026-11-27;
 * results/pretend/local_memory.md). A thread takes its stack, 1,024 bytes at first, and 576 more;
 * if any kernel of the same source file can fail an assertion or print, another 352. Names tell
 * which of PyTorch's can: not those that draw random numbers, concatenate, count or work on lists
 * of tensors, but most others. A kernel with a larger stack raises it for all; the few that do
 * (igamma) are ignored.
 *
 * Kernels loaded by the driver (Triton, CuPy) and those of CUDA's libraries are assumed to need
 * nothing; NCCL's need more than PyTorch's.
 */
#include "card.h"

#include <stdatomic.h>
#include <string.h>

#include <frag/device.h>

/* Bytes per thread, including the 576 and 352, and allocations that come with the kernel, placed
 * after it. */
static const struct {
	unsigned thread_bytes;
	uint64_t behind_bytes;
} needs[PRETEND_LOCAL_COUNT] = {
	[PRETEND_LOCAL_ASSERTS] = { 1952, 2 * FRAG_MIB },
	[PRETEND_LOCAL_COLLECTIVE] = { 2672, 10 * FRAG_MIB },
	[PRETEND_LOCAL_BROADCAST] = { 2720, 2 * FRAG_MIB },
	[PRETEND_LOCAL_SENDS] = { 2944, 2 * FRAG_MIB },
};

/* Parts of names of kernels whose files have no assertion, and which many programs launch first. */
static const char *const calm[] = { "distribution_elementwise",
				    "multi_tensor_apply",
				    "CatArray",
				    "kernel_with_index",
				    "SoftMax",
				    "softmax",
				    "flash_",
				    "fmha_",
				    "3cub",
				    "upsample_",
				    "triu_tril" };

bool frag_pretend_asserts(const char *kernel)
{
	if (!kernel || strstr(kernel, "DistributionBernoulli"))
		return true;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(calm); i++)
		if (strstr(kernel, calm[i]))
			return false;
	return true;
}

void frag_pretend_local(enum pretend_local need)
{
	static atomic_bool done[PRETEND_CARDS_MAX][PRETEND_LOCAL_COUNT];
	const struct pretend_card *c = frag_pretend_card();
	const uint64_t threads = (uint64_t)c->sms * (uint64_t)c->threads_per_sm;
	const int device = frag_pretend_device();
	struct frag_device *sim;

	if (atomic_exchange(&done[device][need], true))
		return;
	PRETEND_LOCKED;
	sim = frag_pretend_places(device);
	if (sim)
		frag_sim_local(sim, threads * needs[need].thread_bytes, needs[need].behind_bytes);
}

/* PyTorch's first kernel also loads the code of all. */
static int launched(const void *function, void **parameters, void *stream)
{
	static atomic_bool done[2][PRETEND_CARDS_MAX];
	const int device = frag_pretend_device();

	if (*frag_pretend_streams() && frag_pretend_loads(function))
		frag_pretend_wait_idle();
	if (!atomic_load_explicit(&done[0][device], memory_order_relaxed) &&
	    !atomic_exchange(&done[0][device], true)) {
		frag_pretend_beside_take(PRETEND_BESIDE_KERNELS, 0, NULL);
		frag_pretend_hold(2 * FRAG_MIB);
	}
	if (!atomic_load_explicit(&done[1][device], memory_order_relaxed) &&
	    frag_pretend_asserts(frag_pretend_name_of(function))) {
		atomic_store(&done[1][device], true);
		frag_pretend_local(PRETEND_LOCAL_ASSERTS);
	}
	return frag_pretend_ranks.symmetric
		       ? frag_pretend_ranks.symmetric(function, parameters, stream)
		       : PRETEND_OK;
}

struct size {
	unsigned x, y, z;
};
/* cudaLaunchConfig_t */
struct config {
	struct size grid, block;
	size_t shared_bytes;
	void *stream;
};
PRETEND_VALUE(int, cudaLaunchKernel,
	      (const void *function, struct size grid, struct size block, void **parameters,
	       size_t shared_bytes, void *stream),
	      launched(function, parameters, stream))
PRETEND_SAME(cudaLaunchCooperativeKernel, cudaLaunchKernel)
PRETEND_SAME(__cudaLaunchKernel, cudaLaunchKernel)
PRETEND_SAME(__cudaLaunchKernel_ptsz, cudaLaunchKernel)
PRETEND_VALUE(int, cudaLaunchKernelExC,
	      (const struct config *config, const void *function, void **parameters),
	      launched(function, parameters, config->stream))
