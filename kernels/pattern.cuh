/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pattern that fill writes and verify expects: 16 bytes for every 16 bytes of a
 * block, made of the block's id, its generation, and the number of the piece in
 * the block; the last word is a checksum of the three. A piece found in a wrong place
 * thus says which block wrote it, in which of its lives, and where in that block.
 * A block beyond 64 GiB repeats piece numbers, but not checksums.
 */
#ifndef FRAG_KERNELS_PATTERN_CUH
#define FRAG_KERNELS_PATTERN_CUH

static __device__ __forceinline__ unsigned pattern_sum(unsigned id, unsigned generation,
						       unsigned long long piece)
{
	unsigned h = id * 0x9e3779b1u ^ generation * 0x85ebca77u;

	h ^= (unsigned)piece * 0xc2b2ae3du ^ (unsigned)(piece >> 32) * 0x27d4eb2fu;
	h ^= h >> 15;
	return h * 0x2c1b3c6du;
}

static __device__ __forceinline__ uint4 pattern_piece(unsigned id, unsigned generation,
						      unsigned long long piece)
{
	return make_uint4(id, generation, (unsigned)piece, pattern_sum(id, generation, piece));
}

/* Byte i of the pattern; for what is left over at a block's end. */
static __device__ __forceinline__ unsigned char pattern_byte(unsigned id, unsigned generation,
							     unsigned long long i)
{
	uint4 p = pattern_piece(id, generation, i / 16);
	unsigned word = (unsigned)(i / 4) % 4;

	word = word == 0 ? p.x : word == 1 ? p.y : word == 2 ? p.z : p.w;
	return (unsigned char)(word >> (i % 4) * 8);
}

#endif
