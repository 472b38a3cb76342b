/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local memory: stacks for as many threads as the card can run at once. A kernel that needs more
 * than all before makes the driver move all of it, which leaves a hole in the address space
 * (sim_place.c).
 *
 * Measured on H100 (driver 580.159.04, CUDA 13.0, PyTorch 2.11.0, NCCL 2.28.9, 2026-11-27;
 * results/nogpu/local_memory.md). A thread takes its stack, 1,024 bytes at first, and 576 more; if
 * any kernel of the same source file can fail an assertion or print, another 352. Names tell which
 * of PyTorch's can: not those that draw random numbers, concatenate, count or work on lists of
 * tensors, but most others. A kernel with a larger stack raises it for all; the few that do
 * (igamma) are ignored.
 *
 * Kernels loaded by the driver (Triton, CuPy) and those of CUDA's libraries are assumed to need
 * nothing; NCCL's need more than PyTorch's.
 */
#include "nogpu.h"

#include <stdatomic.h>
#include <string.h>

#include <frag/device.h>

/* Bytes per thread, including the 576 and 352, and allocations that come with the kernel, placed
 * after it. */
static const struct {
	unsigned thread_bytes;
	uint64_t behind_bytes;
} needs[NOGPU_LOCAL_COUNT] = {
	[NOGPU_LOCAL_ASSERTS] = { 1952, 2 * FRAG_MIB },
	[NOGPU_LOCAL_COLLECTIVE] = { 2672, 10 * FRAG_MIB },
	[NOGPU_LOCAL_BROADCAST] = { 2720, 2 * FRAG_MIB },
	[NOGPU_LOCAL_SENDS] = { 2944, 2 * FRAG_MIB },
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

bool frag_nogpu_asserts(const char *kernel)
{
	if (!kernel || strstr(kernel, "DistributionBernoulli"))
		return true;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(calm); i++)
		if (strstr(kernel, calm[i]))
			return false;
	return true;
}

void frag_nogpu_local(enum nogpu_local need)
{
	static atomic_bool done[NOGPU_CARDS_MAX][NOGPU_LOCAL_COUNT];
	const struct nogpu_card *c = frag_nogpu_card();
	const uint64_t threads = (uint64_t)c->sms * (uint64_t)c->threads_per_sm;
	const int device = frag_nogpu_device();
	struct frag_device *sim;

	if (atomic_exchange(&done[device][need], true))
		return;
	NOGPU_LOCKED;
	sim = frag_nogpu_places(device);
	if (sim)
		frag_sim_local(sim, threads * needs[need].thread_bytes, needs[need].behind_bytes);
}

/* PyTorch's first kernel also loads the code of all. */
static int launched(const void *function, void **parameters, void *stream)
{
	static atomic_bool done[2][NOGPU_CARDS_MAX];
	const int device = frag_nogpu_device();

	if (*frag_nogpu_streams() && frag_nogpu_loads(function))
		frag_nogpu_wait_idle();
	if (!atomic_load_explicit(&done[0][device], memory_order_relaxed) &&
	    !atomic_exchange(&done[0][device], true)) {
		frag_nogpu_beside_take(NOGPU_BESIDE_KERNELS, 0, NULL);
		frag_nogpu_hold(2 * FRAG_MIB);
	}
	if (!atomic_load_explicit(&done[1][device], memory_order_relaxed) &&
	    frag_nogpu_asserts(frag_nogpu_name_of(function))) {
		atomic_store(&done[1][device], true);
		frag_nogpu_local(NOGPU_LOCAL_ASSERTS);
	}
	return frag_nogpu_ranks.symmetric ? frag_nogpu_ranks.symmetric(function, parameters, stream)
					  : NOGPU_OK;
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
NOGPU_VALUE(int, cudaLaunchKernel,
	    (const void *function, struct size grid, struct size block, void **parameters,
	     size_t shared_bytes, void *stream),
	    launched(function, parameters, stream))
NOGPU_SAME(cudaLaunchCooperativeKernel, cudaLaunchKernel)
NOGPU_SAME(__cudaLaunchKernel, cudaLaunchKernel)
NOGPU_SAME(__cudaLaunchKernel_ptsz, cudaLaunchKernel)
NOGPU_VALUE(int, cudaLaunchKernelExC,
	    (const struct config *config, const void *function, void **parameters),
	    launched(function, parameters, config->stream))
