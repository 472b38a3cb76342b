/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the first byte of every page of a block, so that managed memory becomes resident
 * by faults and ordinary memory is known to be writable from end to end.
 *
 * Grid: any number of blocks of 256 threads, stride of the grid, one page a turn.
 * No shared memory. Aliasing: `addr` is the only memory, write only; what was in
 * those bytes is lost. Effect on managed memory: a page fault for every page that is not there.
 */
extern "C" __global__ void __launch_bounds__(256)
frag_touch(unsigned char *__restrict__ addr, unsigned long long bytes, unsigned page_bytes)
{
	const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
	const unsigned long long me = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	/* pages are those of the address space: a block need not begin with one */
	const unsigned long long head = (unsigned long long)addr % page_bytes;
	const unsigned long long pages = (head + bytes + page_bytes - 1) / page_bytes;

	for (unsigned long long i = me; i < pages; i += threads)
		addr[i ? i * page_bytes - head : 0] = (unsigned char)i;
}
