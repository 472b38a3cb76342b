/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a card holds for the first kernel: nvcc -arch=native -DWITH=0|1|2 first_kernel.cu && ./a.out [LIMIT BYTES], LIMIT as of
 * cudaDeviceSetLimit (0 stack, 1 printf, 2 heap). Its module has no call (0), a kernel with printf (1) or with assert (2), which
 * does not run. Prints MiB of the card: after the context, after the first kernel.
 */
#include <cassert>
#include <cstdio>
#include <cstdlib>

__global__ void nothing() {}
#if WITH == 1
__global__ void print() { printf("no"); }
#elif WITH == 2
__global__ void check(int n) { assert(!n); }
#endif

static double used()
{
	size_t left, total;

	cudaDeviceSynchronize();
	cudaMemGetInfo(&left, &total);
	return (total - left) / 1048576.0;
}

int main(int argc, char **argv)
{
	cudaFree(0);
	if (argc > 2)
		cudaDeviceSetLimit((cudaLimit)atoi(argv[1]), strtoull(argv[2], NULL, 10));
	printf("context %.2f\n", used());
	nothing<<<1, 1>>>();
	printf("kernel %.2f\n", used());
}
