/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management for live policies. A handle's memory counts until it is released and mapped nowhere.
 *
 * Access is granted to the card itself and to the cards of the process that can reach it: PyTorch enables peer access
 * for memory from cudaMalloc only.
 */
#include "live_card.h"

#define LLU(x) ((unsigned long long)(x))
#define READ_WRITE 3
#define AT_DEVICE 1

struct handle {
	uint64_t raw, bytes;
	uint32_t mappings;
	bool released;
};
_Static_assert(sizeof(struct handle) <= 32, "see handle_slab in live_card.c");

struct frag_cu_allocation frag_live_on_card(const struct frag_live_card *c)
{
	return (struct frag_cu_allocation){ .type = 1, .location = { AT_DEVICE, c->device } };
}

/* Handles of the driver are pointers or small numbers: tables want multiples of 512. */
static uint64_t key_of(uint64_t raw)
{
	return raw << 9 | raw >> 55;
}

int frag_live_card_reserve(void *priv, uint64_t bytes, frag_addr_t hint, frag_addr_t *out,
			   uint64_t *ns, struct frag_err *err)
{
	struct frag_live_card *c = priv;

	(void)ns;
	return FRAG_CARD_ALLOC(c, err, cuMemAddressReserve, out, bytes, 0, hint, 0);
}

int frag_live_card_unreserve(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			     struct frag_err *err)
{
	struct frag_live_card *c = priv;

	(void)ns;
	return c->dead ? 0 : FRAG_CU(c->cu, err, cuMemAddressFree, addr, bytes);
}

int frag_live_card_create(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
			  struct frag_err *err)
{
	struct frag_live_card *c = priv;
	struct frag_cu_allocation prop = frag_live_on_card(c);
	struct handle *h;
	uint64_t raw = 0;

	(void)ns;
	if (frag_slab_reserve(&c->handle_slab, 1) || frag_addr_map_reserve(&c->handles))
		return frag_fail_nomem(err, "physical handle");
	FRAG_TRY(FRAG_CARD_ALLOC(c, err, cuMemCreate, &raw, bytes, &prop, 0));
	h = frag_slab_alloc(&c->handle_slab);
	*h = (struct handle){ .raw = raw, .bytes = bytes };
	frag_addr_map_put(&c->handles, key_of(raw), h);
	c->handle_bytes += bytes;
	*handle = raw;
	return 0;
}

static void drop_if_unused(struct frag_live_card *c, struct handle *h)
{
	if (!h->released || h->mappings)
		return;
	c->handle_bytes -= h->bytes;
	frag_slab_free(&c->handle_slab, h);
}

static int find_handle(const struct frag_live_card *c, const char *call, uint64_t raw,
		       struct handle **out, struct frag_err *err)
{
	*out = frag_addr_map_get(&c->handles, key_of(raw));
	return *out ? 0 : frag_fail(err, FRAG_EDEVICE, "%s: unknown handle %llu", call, LLU(raw));
}

int frag_live_card_release(void *priv, uint64_t raw, uint64_t *ns, struct frag_err *err)
{
	struct frag_live_card *c = priv;
	struct handle *h;

	(void)ns;
	FRAG_TRY(find_handle(c, "cuMemRelease", raw, &h, err));
	if (!c->dead)
		FRAG_TRY(FRAG_CU(c->cu, err, cuMemRelease, raw));
	/* the driver may give the number again while old mappings live */
	frag_addr_map_take(&c->handles, key_of(raw));
	h->released = true;
	drop_if_unused(c, h);
	return 0;
}

int frag_live_card_map(void *priv, frag_addr_t addr, uint64_t raw, uint64_t *ns,
		       struct frag_err *err)
{
	struct frag_live_card *c = priv;
	struct handle *h;

	(void)ns;
	FRAG_TRY(find_handle(c, "cuMemMap", raw, &h, err));
	if (frag_addr_map_reserve(&c->mappings))
		return frag_fail_nomem(err, "mapping");
	FRAG_TRY(FRAG_CARD_CALL(c, err, cuMemMap, addr, h->bytes, 0, raw, 0));
	frag_addr_map_put(&c->mappings, addr, h);
	h->mappings++;
	return 0;
}

static int give_access(const struct frag_live_card *c, frag_addr_t addr, uint64_t bytes, int device)
{
	struct frag_cu_access access = { { AT_DEVICE, device }, READ_WRITE };

	return c->cu->cuMemSetAccess(addr, bytes, &access, 1);
}

int frag_live_card_set_access(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			      struct frag_err *err)
{
	struct frag_live_card *c = priv;
	struct frag_live_scope s;
	int rc;

	(void)ns;
	frag_live_enter(c, &s);
	rc = give_access(c, addr, bytes, c->device);
	for (unsigned i = 0; i < c->peers_count && rc == FRAG_CU_OK; i++)
		rc = give_access(c, addr, bytes, c->peers[i]);
	frag_live_leave(&s);
	return frag_cu_check(c->cu, rc, "cuMemSetAccess", err);
}

void frag_live_vmm_peer(struct frag_live_card *c, const struct frag_live_card *peer)
{
	struct frag_live_scope s;
	int can = 0;

	if (!(c->can & FRAG_CAN_VMM) || !c->cu->cuDeviceCanAccessPeer ||
	    c->peers_count == FRAG_ARRAY_LEN(c->peers) ||
	    c->cu->cuDeviceCanAccessPeer(&can, peer->device, c->device) != FRAG_CU_OK || !can)
		return;
	c->peers[c->peers_count++] = peer->device;
	frag_live_enter(c, &s);
	/* what has no access yet is refused, and gets it later with the peer in the list */
	for (size_t i = 0; c->mappings.mask && i <= c->mappings.mask; i++) {
		const struct frag_addr_cell *cell = &c->mappings.cells[i];

		if (cell->value)
			give_access(c, cell->addr, ((struct handle *)(uintptr_t)cell->value)->bytes,
				    peer->device);
	}
	frag_live_leave(&s);
}

int frag_live_card_unmap(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			 struct frag_err *err)
{
	struct frag_live_card *c = priv;

	/* unlike cudaFree this does not wait for what still runs there */
	if (!c->fenced && !c->idle)
		FRAG_TRY(frag_live_card_sync(c, 0, true, ns, err));
	FRAG_TRY(FRAG_CARD_CALL(c, err, cuMemUnmap, addr, bytes));
	for (uint64_t at = 0; at < bytes;) {
		struct handle *h = frag_addr_map_take(&c->mappings, addr + at);

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
