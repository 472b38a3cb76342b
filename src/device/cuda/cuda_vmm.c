/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management on a real card; driver_memory.h counts handles and mappings. */
#include "cuda_internal.h"

static CUmemAllocationProp on_card(const struct cuda *c)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->cfg.ordinal },
	};
}

int frag_cuda_granule(struct cuda *c, struct frag_err *err)
{
	CUmemAllocationProp prop = on_card(c);
	size_t bytes = 0;

	FRAG_TRY(CU(c, err, cuMemGetAllocationGranularity, &bytes, &prop,
		    CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	c->granule_bytes = bytes;
	return 0;
}

int frag_cuda_reserve(void *priv, uint64_t bytes, frag_addr_t hint, frag_addr_t *out, uint64_t *ns,
		      struct frag_err *err)
{
	struct cuda *c = priv;
	CUdeviceptr ptr = 0;
	CUresult rc;

	(void)ns;
	rc = c->cu.cuMemAddressReserve(&ptr, bytes, 0, hint, 0);
	if (rc == CUDA_ERROR_OUT_OF_MEMORY)
		return FRAG_OOM;
	FRAG_TRY(frag_cuda_cu_check(c, rc, "cuMemAddressReserve", err));
	*out = ptr;
	return 0;
}

int frag_cuda_unreserve(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			struct frag_err *err)
{
	struct cuda *c = priv;

	(void)ns;
	return CU(c, err, cuMemAddressFree, addr, bytes);
}

int frag_cuda_create(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
		     struct frag_err *err)
{
	struct cuda *c = priv;
	CUmemAllocationProp prop = on_card(c);
	CUmemGenericAllocationHandle raw;
	CUresult rc;

	(void)ns;
	if (!frag_cuda_room(c, frag_cuda_held(c), bytes))
		return FRAG_OOM;
	FRAG_TRY(frag_drvmem_handle_room(&c->memory, err));
	rc = c->cu.cuMemCreate(&raw, bytes, &prop, 0);
	if (rc == CUDA_ERROR_OUT_OF_MEMORY)
		return FRAG_OOM;
	FRAG_TRY(frag_cuda_cu_check(c, rc, "cuMemCreate", err));
	*handle = frag_drvmem_handle_add(&c->memory, raw, bytes);
	return 0;
}

int frag_cuda_release(void *priv, uint64_t handle, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct frag_drvmem_handle *h;

	(void)ns;
	FRAG_TRY(frag_drvmem_handle_find(&c->memory, "cuMemRelease", handle, &h, err));
	FRAG_TRY(CU(c, err, cuMemRelease, h->raw));
	frag_drvmem_handle_released(&c->memory, handle);
	return 0;
}

int frag_cuda_map(void *priv, frag_addr_t addr, uint64_t handle, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct frag_drvmem_handle *h;

	(void)ns;
	FRAG_TRY(frag_drvmem_handle_find(&c->memory, "cuMemMap", handle, &h, err));
	FRAG_TRY(frag_drvmem_mapping_room(&c->memory, err));
	FRAG_TRY(CU(c, err, cuMemMap, addr, h->bytes, 0, h->raw, 0));
	frag_drvmem_mapped(&c->memory, addr, h);
	return 0;
}

int frag_cuda_set_access(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			 struct frag_err *err)
{
	struct cuda *c = priv;
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->cfg.ordinal },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	(void)ns;
	return CU(c, err, cuMemSetAccess, addr, bytes, &access, 1);
}

int frag_cuda_unmap(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
		    struct frag_err *err)
{
	struct cuda *c = priv;
	uint64_t since = frag_cuda_quiesce(c);

	/* the driver refuses ranges that are not whole mappings, and then does nothing */
	FRAG_TRY(CU(c, err, cuMemUnmap, addr, bytes));
	frag_cuda_took(since, ns);
	return frag_drvmem_unmapped(&c->memory, addr, bytes, err);
}

/* Frees what a policy left behind; the front reports the leak. */
void frag_cuda_vmm_release(struct cuda *c)
{
	const struct frag_addr_map *mappings = &c->memory.mappings, *handles = &c->memory.handles;
	const struct frag_drvmem_handle *h;

	for (size_t i = 0; mappings->mask && i <= mappings->mask; i++) {
		h = (void *)(uintptr_t)mappings->cells[i].value;
		if (h)
			(void)c->cu.cuMemUnmap(mappings->cells[i].addr, h->bytes);
	}
	for (size_t i = 0; handles->mask && i <= handles->mask; i++) {
		h = (void *)(uintptr_t)handles->cells[i].value;
		if (h)
			(void)c->cu.cuMemRelease(h->raw);
	}
}
