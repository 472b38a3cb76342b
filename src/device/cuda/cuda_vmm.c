/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management on a real card. The driver checks ranges and mappings; this table knows
 * the size of every handle and where it is mapped, to count memory: a handle's memory is returned
 * when it is released and its last mapping is gone.
 */
#include "cuda_internal.h"

#define LLU(x) ((unsigned long long)(x))

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
	struct cuda_handle *h = NULL;
	CUresult rc;

	(void)ns;
	if (!frag_cuda_room(c, frag_cuda_held(c), bytes))
		return FRAG_OOM;
	if (frag_slab_reserve(&c->handle_slab, 1) || frag_addr_map_reserve(&c->handles))
		return frag_fail_nomem(err, "physical handle");
	rc = c->cu.cuMemCreate(&raw, bytes, &prop, 0);
	if (rc == CUDA_ERROR_OUT_OF_MEMORY)
		return FRAG_OOM;
	FRAG_TRY(frag_cuda_cu_check(c, rc, "cuMemCreate", err));
	h = frag_slab_alloc(&c->handle_slab);
	*h = (struct cuda_handle){ .handle = raw, .bytes = bytes };
	frag_addr_map_put(&c->handles, ++c->last_handle, h);
	c->handle_bytes += bytes;
	*handle = c->last_handle;
	return 0;
}

static void drop_if_unused(struct cuda *c, struct cuda_handle *h)
{
	if (!h->released || h->mappings)
		return;
	c->handle_bytes -= h->bytes;
	frag_slab_free(&c->handle_slab, h);
}

static int find_handle(struct cuda *c, const char *call, uint64_t handle, struct cuda_handle **out,
		       struct frag_err *err)
{
	*out = frag_addr_map_get(&c->handles, handle);
	if (*out)
		return 0;
	return frag_fail(err, FRAG_EDEVICE, "%s: unknown or released handle %llu", call,
			 LLU(handle));
}

int frag_cuda_release(void *priv, uint64_t handle, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_handle *h = NULL;

	(void)ns;
	FRAG_TRY(find_handle(c, "cuMemRelease", handle, &h, err));
	FRAG_TRY(CU(c, err, cuMemRelease, h->handle));
	frag_addr_map_take(&c->handles, handle);
	h->released = true;
	drop_if_unused(c, h);
	return 0;
}

int frag_cuda_map(void *priv, frag_addr_t addr, uint64_t handle, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_handle *h = NULL;

	(void)ns;
	FRAG_TRY(find_handle(c, "cuMemMap", handle, &h, err));
	if (frag_addr_map_reserve(&c->mappings))
		return frag_fail_nomem(err, "mapping");
	FRAG_TRY(CU(c, err, cuMemMap, addr, h->bytes, 0, h->handle, 0));
	frag_addr_map_put(&c->mappings, addr, h);
	h->mappings++;
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
	for (uint64_t at = 0; at < bytes;) {
		struct cuda_handle *h = frag_addr_map_take(&c->mappings, addr + at);

		if (!h)
			return frag_fail(err, FRAG_EDEVICE,
					 "cuMemUnmap: nothing was mapped at 0x%llx",
					 LLU(addr + at));
		at += h->bytes;
		h->mappings--;
		drop_if_unused(c, h);
	}
	return 0;
}

/* Frees what a policy left behind; the front reports the leak. */
void frag_cuda_vmm_release(struct cuda *c)
{
	for (size_t i = 0; c->mappings.mask && i <= c->mappings.mask; i++) {
		const struct frag_addr_cell *s = &c->mappings.cells[i];

		if (s->value)
			(void)c->cu.cuMemUnmap(s->addr,
					       ((struct cuda_handle *)(uintptr_t)s->value)->bytes);
	}
	for (size_t i = 0; c->handles.mask && i <= c->handles.mask; i++) {
		const struct frag_addr_cell *s = &c->handles.cells[i];

		if (s->value)
			(void)c->cu.cuMemRelease(
				((struct cuda_handle *)(uintptr_t)s->value)->handle);
	}
	frag_addr_map_release(&c->mappings);
	frag_addr_map_release(&c->handles);
	frag_slab_release(&c->handle_slab);
}
