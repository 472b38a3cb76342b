/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a card besides the program's own and the context: code and buffers of libraries. It
 * reduces the free memory; it has no addresses here, because those of sim_place.c were fitted
 * without it.
 *
 * Measured on one H100 80 GB HBM3 (driver 580.159.04, CUDA 13.0, PyTorch 2.11.0, 2026-11-23 and 24;
 * results/layout/beside.csv, beside_programs.csv). An H200 differs by 6 MiB less for NCCL's first
 * group. The card allocates 2 MiB at a time, so sums are off by as much where several libraries
 * share a piece. Other releases of PyTorch and CUDA are assumed to be the same.
 *
 * Other compute capabilities were not measured. Three parts are derived for them (kernels_bytes,
 * handle_bytes, NCCL's groups in beside_nccl.c); the first two agree with what vLLM printed on nine
 * such cards (results/layout/serving.md). The rest counts as 0.
 *
 * Not modelled: local memory of kernels with more than 1,024 bytes per thread (multiprocessors x
 * threads x the excess), because kernels are not inspected and no measured kernel of PyTorch uses
 * more; 2 MiB for FP8 products; other libraries.
 */
#include "card.h"

#include <frag/device.h>

/* Others: kernels_bytes, streams_bytes. */
static const struct {
	uint64_t first_bytes; /* once a card */
	uint64_t each_bytes;
} figures[PRETEND_BESIDE_COUNT] = {
	/* the first matrix product takes 66 MiB, of which the handle has 64; cublasCreate reserves
	 * their addresses */
	[PRETEND_BESIDE_CUBLAS] = { 2 * FRAG_MIB, 0 }, /* handle_bytes */
	/* 10 MiB, or 8 after cuBLAS; 8 for the handle of another thread, such as autograd's */
	[PRETEND_BESIDE_CUDNN] = { 2 * FRAG_MIB, 8 * FRAG_MIB },
	[PRETEND_BESIDE_SOLVER] = { 96 * FRAG_MIB, 0 }, /* one handle of cuSOLVER */
	[PRETEND_BESIDE_FFT] = { 8 * FRAG_MIB, 0 },
	/* code of the kernels: for groups of one rank, the first took 494 MiB, the next two 390 and
	 * 388 (beside_nccl.c). An RTX 3090 printed 484 (NVIDIA/nccl pull request 2366) */
	[PRETEND_BESIDE_NCCL] = { PRETEND_NCCL_CODE_BYTES, 0 },
};

static bool counts(enum pretend_beside what)
{
	return frag_pretend_card()->libraries &&
	       (frag_pretend_card()->major == 9 || what == PRETEND_BESIDE_KERNELS ||
		what == PRETEND_BESIDE_CUBLAS || what == PRETEND_BESIDE_NCCL);
}

/*
 * The first kernel took 92 MiB. A program with a single kernel takes as much if that kernel can
 * fail an assertion, as many of PyTorch's can, whatever the limits of stack, heap and printf
 * (results/layout/serving.md). Assumed to be proportional to the threads that the card can
 * hold; in steps of 2 MiB, 350 to 356 bytes give 92 MiB.
 */
#define ASSERT_BYTES 352u

static uint64_t kernels_bytes(const struct pretend_card *c)
{
	const uint64_t threads = (uint64_t)c->sms * (uint64_t)c->threads_per_sm;

	return frag_round_up(threads * ASSERT_BYTES, 2 * FRAG_MIB);
}

/* 64 MiB were measured: twice the workspace that cuBLAS's manual recommends for the capability. */
static uint64_t handle_bytes(const struct pretend_card *c)
{
	if (c->major == 9 || c->major == 10)
		return 2 * 32 * FRAG_MIB;
	return 2 * (c->major == 12 ? 12 : 4) * FRAG_MIB;
}

/* Bytes of n streams: 0, 2, 2, 4, 8, 16, 34 and 70 MiB for 1, 2, 4, 8, 16, 32, 64 and 128 (PyTorch
 * makes 128 at once). Not measured: whether destroying a stream frees any. */
static uint64_t streams_bytes(uint64_t n)
{
	return 2 * FRAG_MIB * ((n + 2) / 4 + (n - 1) / 32);
}

static uint64_t nth_bytes(enum pretend_beside what, uint64_t n)
{
	if (what == PRETEND_BESIDE_STREAM && n > 1)
		return streams_bytes(n) - streams_bytes(n - 1);
	if (what == PRETEND_BESIDE_CUBLAS)
		return handle_bytes(frag_pretend_card());
	if (what == PRETEND_BESIDE_KERNELS && n == 1)
		return kernels_bytes(frag_pretend_card());
	return figures[what].each_bytes;
}

void frag_pretend_beside_take(enum pretend_beside what, uint64_t more_bytes,
			      struct pretend_held *own)
{
	static uint64_t taken[PRETEND_BESIDE_COUNT][PRETEND_CARDS_MAX];
	PRETEND_LOCKED;
	int device = frag_pretend_device();
	struct frag_device *sim;
	uint64_t n, each;

	if (!counts(what))
		return;
	sim = frag_pretend_sim(device);
	n = ++taken[what][device];
	if (n == 1)
		frag_sim_occupy(sim, figures[what].first_bytes);
	each = frag_sim_occupy(sim, nth_bytes(what, n) + more_bytes);
	if (own)
		*own = (struct pretend_held){ each, device };
}

void frag_pretend_beside_more(struct pretend_held *own, uint64_t bytes)
{
	PRETEND_LOCKED;

	if (own->bytes)
		own->bytes += frag_sim_occupy(frag_pretend_sim(own->device), bytes);
}

void frag_pretend_beside_give(struct pretend_held *own)
{
	PRETEND_LOCKED;

	if (own->bytes)
		frag_sim_vacate(frag_pretend_sim(own->device), own->bytes);
	own->bytes = 0;
}

/* ---- addresses of libraries -------------------------------------------------------------- */

/*
 * Mapped by NVIDIA's libraries, which are absent here, at their first work: by cuBLAS at its first
 * handle, by cuDNN at its first plan (engines, heuristics, run-time engines, graphs). Measured with
 * CUDA 13.0, cuDNN 9.19 (results/pretend/local_memory.md).
 */
static const uint64_t mapped[PRETEND_LOADED_COUNT][4] = {
	[PRETEND_LOADED_CUBLAS] = { 43 * FRAG_MIB, 32 * FRAG_MIB },
	[PRETEND_LOADED_CUDNN] = { 241 * FRAG_MIB, 65 * FRAG_MIB, 35 * FRAG_MIB, 7 * FRAG_MIB },
};

void frag_pretend_host_load(enum pretend_loaded what)
{
	static bool done[PRETEND_LOADED_COUNT];
	PRETEND_LOCKED;
	const int ordinal = frag_pretend_device();
	struct frag_device *sim = frag_pretend_places(ordinal);

	if (done[what] || !sim)
		return;
	done[what] = true;
	frag_pretend_host_look(frag_pretend_host_space(ordinal));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(mapped[what]) && mapped[what][i]; i++)
		frag_sim_host_take(sim, mapped[what][i]);
}
