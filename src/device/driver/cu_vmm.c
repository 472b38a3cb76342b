/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management; device/driver_memory.h counts handles and mappings.
 *
 * Access is granted to the card itself and to the cards of the process that can reach it: PyTorch
 * enables peer access for memory from cudaMalloc only.
 */
#include "cu_card.h"

#define READ_WRITE 3
#define AT_DEVICE 1

struct frag_cu_allocation frag_cu_on_card(const struct frag_cu_card *c)
{
	return (struct frag_cu_allocation){ .type = 1, .location = { AT_DEVICE, c->device } };
}

int frag_cu_card_reserve(void *priv, uint64_t bytes, frag_addr_t hint, frag_addr_t *out,
			 uint64_t *ns, struct frag_err *err)
{
	struct frag_cu_card *c = priv;

	return FRAG_CARD_ALLOC(c, err, cuMemAddressReserve, out, bytes, 0, hint, 0);
}

int frag_cu_card_unreserve(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			   struct frag_err *err)
{
	struct frag_cu_card *c = priv;

	return c->dead ? 0 : FRAG_CU(c->cu, err, cuMemAddressFree, addr, bytes);
}

int frag_cu_card_create(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
			struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_cu_allocation prop = frag_cu_on_card(c);
	uint64_t raw = 0;

	FRAG_TRY(frag_drvmem_handle_room(&c->memory, err));
	FRAG_TRY(FRAG_CARD_ALLOC(c, err, cuMemCreate, &raw, bytes, &prop, 0));
	*handle = frag_drvmem_handle_add(&c->memory, raw, bytes);
	return 0;
}

int frag_cu_card_release(void *priv, uint64_t handle, uint64_t *ns, struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_drvmem_handle *h;

	FRAG_TRY(frag_drvmem_handle_find(&c->memory, "cuMemRelease", handle, &h, err));
	if (!c->dead)
		FRAG_TRY(FRAG_CU(c->cu, err, cuMemRelease, h->raw));
	frag_drvmem_handle_released(&c->memory, handle);
	return 0;
}

int frag_cu_card_map(void *priv, frag_addr_t addr, uint64_t handle, uint64_t *ns,
		     struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_drvmem_handle *h;

	FRAG_TRY(frag_drvmem_handle_find(&c->memory, "cuMemMap", handle, &h, err));
	FRAG_TRY(frag_drvmem_mapping_room(&c->memory, err));
	FRAG_TRY(FRAG_CARD_CALL(c, err, cuMemMap, addr, h->bytes, 0, h->raw, 0));
	frag_drvmem_mapped(&c->memory, addr, h);
	return 0;
}

static int give_access(const struct frag_cu_card *c, frag_addr_t addr, uint64_t bytes, int device)
{
	struct frag_cu_access access = { { AT_DEVICE, device }, READ_WRITE };

	return c->cu->cuMemSetAccess(addr, bytes, &access, 1);
}

int frag_cu_card_set_access(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			    struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	FRAG_CU_ENTERED(c);
	int rc = give_access(c, addr, bytes, c->device);

	for (unsigned i = 0; i < c->peers_count && rc == FRAG_CU_OK; i++)
		rc = give_access(c, addr, bytes, c->peers[i]);
	return frag_cu_check(c->cu, rc, "cuMemSetAccess", err);
}

void frag_cu_card_peer(struct frag_cu_card *c, const struct frag_cu_card *peer)
{
	const struct frag_addr_map *mappings = &c->memory.mappings;
	int can = 0;

	if (!(c->can & FRAG_CAN_VMM) || !c->cu->cuDeviceCanAccessPeer ||
	    c->peers_count == FRAG_ARRAY_LEN(c->peers) ||
	    c->cu->cuDeviceCanAccessPeer(&can, peer->device, c->device) != FRAG_CU_OK || !can)
		return;
	c->peers[c->peers_count++] = peer->device;
	FRAG_CU_ENTERED(c);
	/* what has no access yet is refused, and gets it later with the peer in the list */
	for (size_t i = 0; mappings->mask && i <= mappings->mask; i++) {
		const struct frag_drvmem_handle *h = (void *)(uintptr_t)mappings->cells[i].value;

		if (h)
			give_access(c, mappings->cells[i].addr, h->bytes, peer->device);
	}
}

int frag_cu_card_unmap(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
		       struct frag_err *err)
{
	struct frag_cu_card *c = priv;

	/* unlike cudaFree this does not wait for what still runs there */
	if (!c->fenced && !c->idle)
		FRAG_TRY(frag_cu_card_sync(c, 0, true, ns, err));
	FRAG_TRY(FRAG_CARD_CALL(c, err, cuMemUnmap, addr, bytes));
	return frag_drvmem_unmapped(&c->memory, addr, bytes, err);
}
