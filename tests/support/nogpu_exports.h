/* SPDX-License-Identifier: Apache-2.0 */
/* Launches and exported handles of the pretended card, which no line of calls (test_calls.c) can say. */
#ifndef NOGPU_EXPORTS_H
#define NOGPU_EXPORTS_H

#include <stddef.h>
#include <stdint.h>

struct dim3 {
	unsigned x, y, z;
};
int frag_nogpu_cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block,
				void **parameters, size_t shared_bytes, void *stream);
/* CUmemAllocationProp */
struct kind {
	int type, handle_types, location_type, location_id;
	char more[16];
};
int frag_nogpu_cuMemCreate(uint64_t *out, size_t bytes, const struct kind *kind, uint64_t flags);
int frag_nogpu_cuMemExportToShareableHandle(int *out, uint64_t handle, int type, uint64_t flags);
int frag_nogpu_cuMemImportFromShareableHandle(uint64_t *out, void *file, int type);
#define FILES 1 /* kinds of exported handles */
#define FABRIC 8

#endif
