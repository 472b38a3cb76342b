/* SPDX-License-Identifier: Apache-2.0 */
/* A card: opening, its context, cudaMalloc, managed memory, its counts. */
#include "cu_card.h"

#include <stdio.h>
#include <string.h>

/* ---- the context ---------------------------------------------------------------------- */

struct frag_cu_scope frag_cu_enter(const struct frag_cu_card *c)
{
	struct frag_cu_scope s = { .card = c, .mode = FRAG_CU_CAPTURE_RELAXED };
	void *now = NULL;

	if (FRAG_UNLIKELY(c->dead || c->own_thread))
		return s;
	if (c->cu->cuCtxGetCurrent(&now) != FRAG_CU_OK || now != c->context)
		s.pushed = c->cu->cuCtxPushCurrent_v2(c->context) == FRAG_CU_OK;
	c->cu->cuThreadExchangeStreamCaptureMode(&s.mode);
	return s;
}

void frag_cu_leave(struct frag_cu_scope *s)
{
	void *popped;

	if (FRAG_UNLIKELY(s->card->dead || s->card->own_thread))
		return;
	s->card->cu->cuThreadExchangeStreamCaptureMode(&s->mode);
	if (s->pushed)
		s->card->cu->cuCtxPopCurrent_v2(&popped);
}

/* ---- cudaMalloc ------------------------------------------------------------------------- */

int frag_cu_card_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		       struct frag_err *err)
{
	struct frag_cu_card *c = priv;

	FRAG_TRY(frag_drvmem_segment_room(&c->memory, err));
	FRAG_TRY(FRAG_CARD_ALLOC(c, err, cuMemAlloc_v2, out, bytes));
	frag_drvmem_segment_add(&c->memory, *out, bytes);
	return 0;
}

/* Frees a segment; its cell is still there. */
static int give_back(struct frag_cu_card *c, const struct frag_addr_map *map, frag_addr_t addr,
		     struct frag_addr_cell **cell, struct frag_err *err)
{
	FRAG_TRY(frag_drvmem_segment_find(map, "cuMemFree", addr, cell, err));
	return FRAG_CARD_CALL(c, err, cuMemFree_v2, addr);
}

int frag_cu_card_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_addr_cell *cell;

	FRAG_TRY(give_back(c, &c->memory.segments, addr, &cell, err));
	frag_drvmem_segment_remove(&c->memory, cell);
	return 0;
}

/* ---- managed memory: evictions are unknown, so all of it counts as resident ---------------- */

int frag_cu_card_managed_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
			       struct frag_err *err)
{
	struct frag_cu_card *c = priv;

	if (frag_addr_map_reserve(&c->managed))
		return frag_fail_nomem(err, "managed memory");
	FRAG_TRY(FRAG_CARD_ALLOC(c, err, cuMemAllocManaged, out, bytes, 1));
	frag_addr_map_add(&c->managed, *out, bytes);
	c->managed_bytes += bytes;
	return 0;
}

int frag_cu_card_managed_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_addr_cell *cell;

	FRAG_TRY(give_back(c, &c->managed, addr, &cell, err));
	c->managed_bytes -= cell->value;
	frag_addr_map_remove(&c->managed, cell);
	return 0;
}

/* The program's kernels touch it themselves. */
int frag_cu_card_managed_touch(void *priv, frag_addr_t addr, uint64_t bytes, bool prefetch,
			       uint64_t *ns, struct frag_err *err)
{
	return 0;
}

void frag_cu_card_managed_usage(void *priv, struct frag_managed_usage *out)
{
	const struct frag_cu_card *c = priv;

	out->resident_bytes = c->managed_bytes;
}

/* ---- what the front asks --------------------------------------------------------------------- */

uint64_t frag_cu_card_reserved(void *priv)
{
	struct frag_cu_card *c = priv;

	return c->memory.bytes + c->managed_bytes + frag_cu_mempool_bytes(c);
}

int frag_cu_card_mem_info(void *priv, uint64_t *free_bytes, uint64_t *total_bytes, uint64_t *ns,
			  struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	size_t left = 0, total = 0;
	int rc = FRAG_CARD_CALL(c, err, cuMemGetInfo_v2, &left, &total);

	*free_bytes = left;
	*total_bytes = total;
	return rc;
}

void frag_cu_card_info(void *priv, struct frag_device_info *out)
{
	const struct frag_cu_card *c = priv;

	*out = (struct frag_device_info){
		.total_bytes = c->total_bytes,
		.context_bytes = c->context_bytes,
		.granule_bytes = c->granule_bytes,
		.can = c->can,
	};
	memcpy(out->name, c->name, sizeof(out->name));
	snprintf(out->driver, sizeof(out->driver), "CUDA %d.%d", c->driver_version / 1000,
		 c->driver_version % 100 / 10);
}

void frag_cu_card_forget(struct frag_cu_card *c)
{
	frag_drvmem_release(&c->memory);
	frag_addr_map_release(&c->managed);
	while (c->pools) {
		struct frag_cu_mempool *p = c->pools;

		c->pools = p->next;
		frag_host_free(p);
	}
	FRAG_FREE(c->streams, c->fences, c->events);
}

void frag_cu_card_close(void *priv)
{
	frag_cu_card_forget(priv);
	frag_host_free(priv);
}

static const struct frag_device_ops card_ops = {
	.name = "live",
	.summary = "a card of a running PyTorch, by the CUDA driver",
	FRAG_DEVICE_OPS(frag_cu_card),
};

/* ---- opening ---------------------------------------------------------------------------- */

static int attribute(const struct frag_cu_card *c, int which)
{
	int value = 0;

	return c->cu->cuDeviceGetAttribute(&value, which, c->device) == FRAG_CU_OK ? value : 0;
}

static void ask_abilities(struct frag_cu_card *c)
{
	const struct frag_cu *cu = c->cu;
	bool vmm = cu->cuMemAddressReserve && cu->cuMemAddressFree && cu->cuMemCreate &&
		   cu->cuMemRelease && cu->cuMemMap && cu->cuMemUnmap && cu->cuMemSetAccess &&
		   cu->cuMemGetAllocationGranularity;
	bool pools = cu->cuMemPoolCreate && cu->cuMemPoolDestroy && cu->cuMemPoolSetAttribute &&
		     cu->cuMemPoolGetAttribute && cu->cuMemPoolTrimTo &&
		     cu->cuMemAllocFromPoolAsync && cu->cuMemFreeAsync;
	struct frag_cu_allocation prop = frag_cu_on_card(c);
	size_t bytes = 0;

	c->granule_bytes = FRAG_PAGE;
	c->can = FRAG_CAN_MALLOC |
		 (pools && attribute(c, FRAG_CU_ATTR_POOLS) ? FRAG_CAN_ASYNC : 0) |
		 (cu->cuMemAllocManaged && attribute(c, FRAG_CU_ATTR_MANAGED) ? FRAG_CAN_MANAGED
									      : 0);
	if (!vmm || !attribute(c, FRAG_CU_ATTR_VMM) ||
	    cu->cuMemGetAllocationGranularity(&bytes, &prop, 0) != FRAG_CU_OK)
		return;
	c->can |= FRAG_CAN_VMM;
	c->granule_bytes = bytes;
}

int frag_cu_card_init(struct frag_cu_card *c, int ordinal, struct frag_err *err)
{
	uint64_t left = 0, total = 0, ns;

	c->cu = frag_cu_open(err);
	if (!c->cu)
		return FRAG_EDEVICE;
	c->ordinal = ordinal;
	frag_drvmem_init(&c->memory);
	FRAG_TRY(FRAG_CU(c->cu, err, cuInit, 0));
	FRAG_TRY(FRAG_CU(c->cu, err, cuDeviceGet, &c->device, c->ordinal));
	FRAG_TRY(FRAG_CU(c->cu, err, cuDevicePrimaryCtxRetain, &c->context, c->device));
	FRAG_TRY(FRAG_CU(c->cu, err, cuDeviceGetName, c->name, (int)sizeof(c->name), c->device));
	c->cu->cuDriverGetVersion(&c->driver_version);
	FRAG_TRY(frag_cu_card_mem_info(c, &left, &total, &ns, err));
	c->total_bytes = total;
	c->context_bytes = total - left;
	ask_abilities(c);
	return 0;
}

int frag_cu_card_open(int ordinal, struct frag_cu_card **out, struct frag_err *err)
{
	struct frag_cu_card *c;
	int rc;

	FRAG_TRY_CALLOC(c, 1, "card", err);
	rc = frag_cu_card_init(c, ordinal, err) ?: frag_dev_open(&card_ops, c, &c->dev, err);
	if (rc)
		frag_cu_card_close(c);
	else
		*out = c;
	return rc;
}
