/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a stream busy for a given time, so that frees which wait for a stream, fences and
 * stream-ordered pools meet work that has not finished.
 *
 * Grid: 1 block of 1 thread, so nearly the whole card stays free for the others.
 * No memory, no shared memory. The time is that of the card's global nanosecond timer,
 * which may advance in steps of up to a microsecond.
 */
static __device__ __forceinline__ unsigned long long now_ns()
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

extern "C" __global__ void frag_delay(unsigned long long ns)
{
	const unsigned long long start = now_ns();

	while (now_ns() - start < ns)
		;
}
