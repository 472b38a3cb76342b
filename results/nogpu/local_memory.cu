/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel does to the addresses of a card: one kernel, then 24 segments of 2 MiB, whose addresses show where the driver put
 * its local memory and what it left. KIND: 0 plain, 1 prints, 2 asserts, 3 recursion, 4 calls by a pointer, 5 and 6 a stack of N bytes
 * (6 asserts, too), 7 malloc, 9 plain, but another kernel of the file asserts.
 *
 *	nvcc -O2 -DKIND=2 -DN=64 local_memory.cu -o one && ./one [STACK_LIMIT]
 */
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#ifndef N
#define N 64
#endif

#define FILL \
	char a[N]; \
	for (int i = 0; i < N; i++) \
		a[i] = p[(i * 7) % n]
#if KIND == 0 || KIND == 9
__global__ void k(char *p, int n)
{
	p[threadIdx.x] = n;
}
#elif KIND == 1
__global__ void k(char *p, int n)
{
	if (n == 12345)
		printf("%d\n", p[0]);
}
#elif KIND == 2
__global__ void k(char *p, int n)
{
	assert(n != 12345);
}
#elif KIND == 3
__device__ __noinline__ int rec(char *p, int n)
{
	return n <= 0 ? p[0] : p[n] + rec(p, n - 1) * rec(p, n - 2);
}
__global__ void k(char *p, int n)
{
	p[0] = rec(p, n < 5 ? n : 0);
}
#elif KIND == 4
__device__ __noinline__ int f1(char *p, int n)
{
	FILL;
	return a[p[3] % N];
}
__device__ __noinline__ int f2(char *p, int n)
{
	return p[n];
}
__device__ int (*table[2])(char *, int) = { f1, f2 };
__global__ void k(char *p, int n)
{
	p[0] = table[n & 1](p, n);
}
#elif KIND == 7
__global__ void k(char *p, int n)
{
	char *q = (char *)malloc(n == 12345);

	if (q)
		p[0] = q[0];
}
#else
__global__ void k(char *p, int n)
{
	FILL;
	for (int i = 0; i < n; i++)
		p[i] = a[(p[i] * i) % N];
#if KIND == 6
	assert(n != 12345);
#endif
}
#endif
#if KIND == 9
__global__ void other(char *p, int n)
{
	assert(n != 12345);
}
#endif

int main(int argc, char **argv)
{
	char *p = NULL, *q = NULL;
	int n = 64;
	size_t limit;
	cudaFuncAttributes a;
	void *args[] = { &p, &n };

	cudaMalloc(&p, 1 << 20);
	if (argc > 1)
		cudaDeviceSetLimit(cudaLimitStackSize, strtoul(argv[1], NULL, 10));
	cudaLaunchKernel((void *)k, 1, 32, args, 0, 0);
	if (cudaDeviceSynchronize())
		return 1;
	cudaDeviceGetLimit(&limit, cudaLimitStackSize);
	cudaFuncGetAttributes(&a, (void *)k);
	printf("kind %d: stack %zu bytes, limit %zu; segments", KIND, a.localSizeBytes, limit);
	for (int i = 0; i < 24 && !cudaMalloc(&q, 2 << 20); i++)
		printf(" %llx", (unsigned long long)(uintptr_t)q);
	printf("\n");
	return 0;
}
