/* SPDX-License-Identifier: Apache-2.0 */
/* cudaMalloc and cudaFree; driver_memory.h counts the pages they take. */
#include "cuda_internal.h"

int frag_cuda_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		    struct frag_err *err)
{
	struct cuda *c = priv;
	void *ptr = NULL;
	cudaError_t rc;

	(void)ns;
	if (bytes > SIZE_MAX / 2 || !frag_cuda_room(c, frag_cuda_held(c), bytes))
		return FRAG_OOM;
	FRAG_TRY(frag_drvmem_segment_room(&c->memory, err));
	rc = cudaMalloc(&ptr, bytes);
	if (rc == cudaErrorMemoryAllocation) {
		(void)cudaGetLastError();
		return FRAG_OOM;
	}
	FRAG_TRY(frag_cuda_rt_check(rc, "cudaMalloc", err));
	*out = (uintptr_t)ptr;
	frag_drvmem_segment_add(&c->memory, *out, bytes);
	if (frag_cuda_room(c, frag_cuda_held(c), 0))
		return 0;
	/* the request fits, its pages do not */
	FRAG_TRY(frag_cuda_free(c, *out, ns, err));
	return FRAG_OOM;
}

int frag_cuda_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct frag_addr_cell *segment;
	uint64_t since;

	FRAG_TRY(frag_drvmem_segment_find(&c->memory.segments, "cudaFree", addr, &segment, err));
	since = frag_cuda_quiesce(c);
	FRAG_TRY(RT(err, cudaFree, (void *)(uintptr_t)addr));
	frag_cuda_took(since, ns);
	frag_drvmem_segment_remove(&c->memory, segment);
	return 0;
}

void frag_cuda_free_all(const struct frag_addr_map *map)
{
	for (size_t i = 0; map->mask && i <= map->mask; i++) {
		if (map->cells[i].value)
			(void)cudaFree((void *)(uintptr_t)map->cells[i].addr);
	}
}
