/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares all bytes of a block with its pattern. Every wrong piece of 16 bytes is
 * counted; the first one that any thread reports is kept, with what was found there
 * and, if that is another block's pattern, whose.
 *
 * Grid: any number of blocks of 256 threads, stride of the grid, four loads of 16 bytes in
 * flight per thread before the first is looked at; the rest byte by byte. No shared
 * memory. Aliasing: `addr` is only read; `fault` is 64 bytes elsewhere, zeroed by
 * the host once, touched only where something is wrong. Effect: reads every byte.
 */
#include "pattern.cuh"

/* As struct fault of cuda_content.c. */
struct fault {
	unsigned long long count;
	unsigned long long offset, other_offset;
	unsigned id, generation, other_id, other_generation;
	unsigned found[4];
	unsigned foreign, spare;
};

static __device__ __noinline__ void report(fault *f, unsigned id, unsigned generation,
					   unsigned long long offset, uint4 v)
{
	if (atomicAdd(&f->count, 1ull))
		return;
	f->offset = offset;
	f->id = id;
	f->generation = generation;
	f->found[0] = v.x;
	f->found[1] = v.y;
	f->found[2] = v.z;
	f->found[3] = v.w;
	f->foreign = v.w == pattern_sum(v.x, v.y, v.z) && (v.x | v.y | v.z);
	f->other_id = v.x;
	f->other_generation = v.y;
	f->other_offset = 16ull * v.z;
}

static __device__ __forceinline__ void compare(fault *f, unsigned id, unsigned generation,
					       unsigned long long piece, uint4 v)
{
	const uint4 p = pattern_piece(id, generation, piece);

	if ((v.x ^ p.x) | (v.y ^ p.y) | (v.z ^ p.z) | (v.w ^ p.w))
		report(f, id, generation, piece * 16, v);
}

extern "C" __global__ void __launch_bounds__(256)
frag_verify(const unsigned char *__restrict__ addr, unsigned long long bytes, unsigned id,
	    unsigned generation, fault *__restrict__ f)
{
	const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
	const unsigned long long me = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	const unsigned long long pieces = (unsigned long long)addr % 16 ? 0 : bytes / 16;
	const uint4 *in = reinterpret_cast<const uint4 *>(addr);
	unsigned long long i = me;

	for (; i + 3 * threads < pieces; i += 4 * threads) {
		uint4 v[4];

#pragma unroll
		for (int k = 0; k < 4; k++)
			v[k] = __ldcs(in + i + k * threads);
#pragma unroll
		for (int k = 0; k < 4; k++)
			compare(f, id, generation, i + k * threads, v[k]);
	}
	for (; i < pieces; i += threads)
		compare(f, id, generation, i, __ldcs(in + i));
	for (unsigned long long b = pieces * 16 + me; b < bytes; b += threads) {
		unsigned char found = addr[b];

		if (found != pattern_byte(id, generation, b))
			report(f, id, generation, b, make_uint4(found, 0, 0, 0));
	}
}
