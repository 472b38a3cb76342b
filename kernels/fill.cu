/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the pattern of a block into all its bytes.
 *
 * Grid: any number of blocks of 256 threads; every thread walks the block with the
 * stride of the grid, four stores of 16 bytes a turn, so that a few thousand
 * threads keep the memory busy whatever the size. What is left over below 16 bytes,
 * and all of a block that is not aligned to 16, goes byte by byte. No shared memory.
 * Aliasing: `addr` is the only memory, write only. Effect: every byte of
 * [addr, addr + bytes) is dirty, hence populated where the memory is managed.
 */
#include "pattern.cuh"

extern "C" __global__ void __launch_bounds__(256)
frag_fill(unsigned char *__restrict__ addr, unsigned long long bytes, unsigned id,
	  unsigned generation)
{
	const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
	const unsigned long long me = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	const unsigned long long pieces = (unsigned long long)addr % 16 ? 0 : bytes / 16;
	uint4 *out = reinterpret_cast<uint4 *>(addr);
	unsigned long long i = me;

	for (; i + 3 * threads < pieces; i += 4 * threads) {
#pragma unroll
		for (int k = 0; k < 4; k++)
			out[i + k * threads] = pattern_piece(id, generation, i + k * threads);
	}
	for (; i < pieces; i += threads)
		out[i] = pattern_piece(id, generation, i);
	for (unsigned long long b = pieces * 16 + me; b < bytes; b += threads)
		addr[b] = pattern_byte(id, generation, b);
}
