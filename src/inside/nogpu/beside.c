/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a card holds beside the program's own memory and the context: code of libraries, and their buffers. It counts in
 * what is left of the card; it has no addresses here, since those of sim_place.c were fitted without it.
 *
 * Measured on one H100 80 GB HBM3 (driver 580.159.04, CUDA 13.0, PyTorch 2.11.0, 2026-11-23 and 24; results/layout/beside.csv,
 * beside_programs.csv). An H200 holds the same, but for 6 MiB less of NCCL's first group. The card gives 2 MiB at a time, so sums
 * are off by as much where several libraries share them. It holds for cards that run the same machine code, those of compute
 * capability 9; others hold nothing, since they were not measured, and differ: an 8 GB card of 8.9 printed 0.03 GiB where an H100
 * prints 0.16 (results/layout/serving.md). Other releases of PyTorch and CUDA are taken to be alike.
 *
 * Not modelled: NCCL's groups of several ranks, which were not measured; local memory of kernels with more than 1,024 bytes a
 * thread (multiprocessors x threads x the bytes beyond), since kernels are never looked at and none of PyTorch's that were
 * measured has so many; 2 MiB of FP8 products; other libraries.
 */
#include "nogpu.h"

#include <frag/device.h>

static const struct {
	uint64_t first_bytes; /* once a card */
	uint64_t each_bytes;
} figures[NOGPU_BESIDE_COUNT] = {
	/* the first kernel: the code of PyTorch */
	[NOGPU_BESIDE_KERNELS] = { 92 * FRAG_MIB, 0 },
	/* the first matrix product takes 66 MiB, 64 of them the handle's, whose addresses cublasCreate takes */
	[NOGPU_BESIDE_CUBLAS] = { 2 * FRAG_MIB, 64 * FRAG_MIB },
	/* 10 MiB, or 8 behind cuBLAS; 8 for the handle of another thread, as that of the backward pass */
	[NOGPU_BESIDE_CUDNN] = { 2 * FRAG_MIB, 8 * FRAG_MIB },
	[NOGPU_BESIDE_SOLVER] = { 96 * FRAG_MIB, 0 }, /* one handle of cuSOLVER */
	[NOGPU_BESIDE_FFT] = { 8 * FRAG_MIB, 0 },
	[NOGPU_BESIDE_STREAM] = { 0, 0 }, /* streams_bytes */
	/* groups of one rank: the first took 494 MiB, the next two 390 and 388 */
	[NOGPU_BESIDE_NCCL] = { 106 * FRAG_MIB, 388 * FRAG_MIB },
};

static bool counts(void)
{
	return frag_nogpu_card()->major == 9 && frag_nogpu_card()->libraries;
}

/* Of n streams: 0, 2, 2, 4, 8, 16, 34 and 70 MiB for 1, 2, 4, 8, 16, 32, 64 and 128 (PyTorch makes 128 at once). Whether a
 * destroyed stream gives anything back was not measured. */
static uint64_t streams_bytes(uint64_t n)
{
	return 2 * FRAG_MIB * ((n + 2) / 4 + (n - 1) / 32);
}

static uint64_t nth_bytes(enum nogpu_beside what, uint64_t n)
{
	if (what == NOGPU_BESIDE_STREAM && n > 1)
		return streams_bytes(n) - streams_bytes(n - 1);
	return figures[what].each_bytes;
}

void frag_nogpu_beside_take(enum nogpu_beside what, struct nogpu_held *own)
{
	static uint64_t taken[NOGPU_BESIDE_COUNT][NOGPU_CARDS_MAX];
	int device = frag_nogpu_device();
	struct frag_device *sim;
	uint64_t n, each = 0;

	if (!counts())
		return;
	frag_nogpu_lock();
	sim = frag_nogpu_sim(device);
	n = ++taken[what][device];
	if (sim && n == 1)
		frag_sim_occupy(sim, figures[what].first_bytes);
	if (sim)
		each = frag_sim_occupy(sim, nth_bytes(what, n));
	if (own)
		*own = (struct nogpu_held){ each, device };
	frag_nogpu_unlock();
}

void frag_nogpu_beside_give(struct nogpu_held *own)
{
	frag_nogpu_lock();
	if (own->bytes)
		frag_sim_vacate(frag_nogpu_sim(own->device), own->bytes);
	own->bytes = 0;
	frag_nogpu_unlock();
}
