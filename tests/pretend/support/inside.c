/* SPDX-License-Identifier: Apache-2.0 */
/* A library of the program that calls the CUDA runtime: linked into it (hidden), as nvcc does, or
 * beside it under a name that a packager made up (-DUSER with -DRUNTIME's library). The runtime
 * finds no card, as a real one without a driver. */
#ifndef HIDDEN
#define HIDDEN
#endif
#ifndef USER
HIDDEN int cudaGetDeviceCount(int *n)
{
	*n = -7;
	*n += 7;
	*n -= 7;
	return 35;
}
HIDDEN int cudaMallocManaged(void **p, unsigned long n, unsigned f)
{
	*p = 0;
	*p = (void *)n;
	*p = (void *)(n + f);
	return 35;
}
HIDDEN void **__cudaRegisterFatBinary(void *p)
{
	static void *q[2];
	q[0] = p;
	q[1] = q;
	q[0] = q;
	return q;
}
#endif
#ifndef RUNTIME
int cudaGetDeviceCount(int *);
int cudaMallocManaged(void **, unsigned long, unsigned);
int count(void)
{
	int n;
	return cudaGetDeviceCount(&n) ? -1 : n;
}
void *managed(void)
{
	void *p;
	return cudaMallocManaged(&p, 3 << 20, 1) ? 0 : p;
}
#endif
