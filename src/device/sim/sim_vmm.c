/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management of the simulated card: address ranges, physical handles, and mappings
 * of the second into the first.
 *
 * Rules of the driver: sizes and addresses are multiples of the granule; a handle is mapped whole,
 * at any number of places; its memory is returned when it is released and its last mapping is gone;
 * unmapping and granting access cover whole mappings without a hole between them; a range with a
 * mapping cannot be freed.
 *
 * Invariants: mappings do not overlap and lie inside one range each; range->mappings and
 * handle->mappings count them; a handle is in the hash until it is released.
 *
 * Cost: creating and releasing cost per handle, granting access and unmapping by the number of
 * handles in the call (measured: 512 handles of 2 MiB in one call cost about 512 times one). The
 * call that ends the last use of a handle returns its memory and pays for it: releasing a mapped
 * handle is cheap, unmapping a released one is not.
 */
#include "sim.h"

struct range {
	struct frag_tree_node node; /* key: address */
	uint64_t bytes;
	uint64_t mappings;
};

struct handle {
	uint64_t id;
	uint64_t bytes;
	uint64_t mappings;
	bool released;
};

struct mapping {
	struct frag_tree_node node; /* key: address */
	struct handle *handle;
	struct range *range;
};

#define LLU(x) ((unsigned long long)(x))

void frag_sim_vmm_init(struct sim *sim)
{
	frag_slab_init(&sim->vmm.range_slab, sizeof(struct range));
	frag_slab_init(&sim->vmm.mapping_slab, sizeof(struct mapping));
	frag_slab_init(&sim->vmm.handle_slab, sizeof(struct handle));
}

void frag_sim_vmm_release(struct sim *sim)
{
	frag_slab_release(&sim->vmm.range_slab);
	frag_slab_release(&sim->vmm.mapping_slab);
	frag_slab_release(&sim->vmm.handle_slab);
	frag_addr_map_release(&sim->vmm.handles);
}

static int check_granule(enum frag_call call, frag_addr_t addr, uint64_t bytes,
			 struct frag_err *err)
{
	if (bytes && !((addr | bytes) % FRAG_PAGE) && addr + bytes >= addr)
		return 0;
	return frag_fail(err, FRAG_EDEVICE,
			 "%s: address 0x%llx and size %llu must be multiples of %llu",
			 frag_call_name(call), LLU(addr), LLU(bytes), LLU(FRAG_PAGE));
}

/* The range that holds [addr, addr + bytes), or NULL. */
static struct range *range_of(const struct sim_vmm *v, frag_addr_t addr, uint64_t bytes)
{
	struct frag_tree_node *n = frag_tree_floor(&v->ranges, addr);
	struct range *r = n ? FRAG_TREE_OF(n, struct range, node) : NULL;

	return r && bytes <= r->bytes && addr - n->key <= r->bytes - bytes ? r : NULL;
}

static struct mapping *mapping_of(struct frag_tree_node *n)
{
	return n ? FRAG_TREE_OF(n, struct mapping, node) : NULL;
}

/* ---- ranges ----------------------------------------------------------------- */

static int place_range(struct sim *sim, uint64_t bytes, frag_addr_t hint, frag_addr_t *out,
		       struct frag_err *err)
{
	frag_addr_t addr = 0;
	int rc = frag_sim_hook(sim, FRAG_CALL_RESERVE, bytes, &addr);

	if (rc == FRAG_OOM)
		return rc;
	if (rc == FRAG_PLACE_WISH)
		hint = addr;
	if (!rc) {
		FRAG_TRY(check_granule(FRAG_CALL_RESERVE, addr, bytes, err));
		FRAG_TRY(frag_simplace_reserve_at(&sim->place, addr, bytes, err));
		*out = addr;
		return 0;
	}
	/* a hint is a suggestion: if it does not fit, the driver chooses */
	if (hint && !(hint % FRAG_PAGE)) {
		rc = frag_simplace_reserve_at(&sim->place, hint, bytes, NULL);
		*out = hint;
		if (rc != FRAG_EDEVICE)
			return rc ? frag_fail_nomem(err, "address range") : 0;
	}
	return frag_simplace_reserve(&sim->place, bytes, out, err);
}

int frag_sim_reserve(void *priv, uint64_t bytes, frag_addr_t hint, frag_addr_t *out, uint64_t *ns,
		     struct frag_err *err)
{
	struct sim *sim = priv;
	struct range *r;

	*ns = frag_sim_cost(sim, FRAG_CALL_RESERVE, bytes);
	FRAG_TRY(check_granule(FRAG_CALL_RESERVE, 0, bytes, err));
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&sim->vmm.range_slab, 1), "address range", err);
	FRAG_TRY(place_range(sim, bytes, hint, out, err));
	r = frag_slab_alloc(&sim->vmm.range_slab);
	*r = (struct range){ .node.key = *out, .bytes = bytes };
	frag_tree_insert(&sim->vmm.ranges, &r->node);
	return 0;
}

int frag_sim_unreserve(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
		       struct frag_err *err)
{
	struct sim *sim = priv;
	struct range *r = range_of(&sim->vmm, addr, 1);

	*ns = frag_sim_cost(sim, FRAG_CALL_UNRESERVE, bytes);
	if (!r || r->node.key != addr || r->bytes != bytes)
		return frag_fail(err, FRAG_EDEVICE,
				 "cuMemAddressFree: 0x%llx with %llu bytes is not a whole reserved "
				 "range",
				 LLU(addr), LLU(bytes));
	if (r->mappings)
		return frag_fail(err, FRAG_EDEVICE,
				 "cuMemAddressFree: range 0x%llx still has %llu mappings; unmap "
				 "first",
				 LLU(addr), LLU(r->mappings));
	frag_tree_remove(&sim->vmm.ranges, &r->node);
	frag_slab_free(&sim->vmm.range_slab, r);
	frag_simplace_unreserve(&sim->place, addr);
	return 0;
}

/* ---- handles ---------------------------------------------------------------- */

int frag_sim_create(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
		    struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_vmm *v = &sim->vmm;
	frag_addr_t unused = 0;
	struct handle *h;
	int rc;

	*ns = 0;
	FRAG_TRY(check_granule(FRAG_CALL_CREATE, 0, bytes, err));
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&v->handle_slab, 1) &&
				 !frag_addr_map_reserve(&v->handles),
			 "physical handle", err);
	rc = frag_sim_hook(sim, FRAG_CALL_CREATE, bytes, &unused);
	if (rc != FRAG_OOM)
		rc = frag_sim_take(sim, bytes, ns);
	if (rc) {
		*ns += frag_sim_cost(sim, FRAG_COST_CREATE_REFUSED, bytes);
		return rc;
	}
	h = frag_slab_alloc(&v->handle_slab);
	*h = (struct handle){ .id = ++v->last_handle, .bytes = bytes };
	frag_addr_map_put(&v->handles, h->id, h);
	*handle = h->id;
	*ns += frag_sim_cost(sim, FRAG_CALL_CREATE, bytes);
	return 0;
}

/* Returns the time to return the memory; 0: it is still in use. */
static uint64_t drop_if_unused(struct sim *sim, struct handle *h)
{
	uint64_t bytes = h->bytes;

	if (!h->released || h->mappings)
		return 0;
	frag_sim_give(sim, bytes);
	frag_slab_free(&sim->vmm.handle_slab, h);
	return frag_sim_cost(sim, FRAG_CALL_RELEASE, bytes);
}

int frag_sim_release(void *priv, uint64_t handle, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct handle *h = frag_addr_map_take(&sim->vmm.handles, handle);

	*ns = 0;
	if (!h)
		return frag_fail(err, FRAG_EDEVICE, "cuMemRelease: unknown or released handle %llu",
				 LLU(handle));
	h->released = true;
	*ns = h->mappings ? frag_sim_cost(sim, FRAG_COST_RELEASE_MAPPED, h->bytes)
			  : drop_if_unused(sim, h);
	return 0;
}

/* ---- mappings --------------------------------------------------------------- */

static int check_map(const struct sim_vmm *v, frag_addr_t addr, const struct handle *h,
		     struct frag_err *err)
{
	const struct mapping *before;

	FRAG_TRY(check_granule(FRAG_CALL_MAP, addr, h->bytes, err));
	if (!range_of(v, addr, h->bytes))
		return frag_fail(err, FRAG_EDEVICE,
				 "cuMemMap: 0x%llx with %llu bytes is not inside one reserved "
				 "range",
				 LLU(addr), LLU(h->bytes));
	before = mapping_of(frag_tree_floor(&v->mappings, addr + h->bytes - 1));
	if (before && before->node.key + before->handle->bytes > addr)
		return frag_fail(err, FRAG_EDEVICE,
				 "cuMemMap: 0x%llx with %llu bytes overlaps the mapping at 0x%llx",
				 LLU(addr), LLU(h->bytes), LLU(before->node.key));
	return 0;
}

int frag_sim_map(void *priv, frag_addr_t addr, uint64_t handle, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_vmm *v = &sim->vmm;
	struct handle *h = frag_addr_map_get(&v->handles, handle);
	struct mapping *m;

	*ns = 0;
	if (!h)
		return frag_fail(err, FRAG_EDEVICE, "cuMemMap: unknown or released handle %llu",
				 LLU(handle));
	FRAG_TRY(check_map(v, addr, h, err));
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&v->mapping_slab, 1), "mapping", err);
	m = frag_slab_alloc(&v->mapping_slab);
	*m = (struct mapping){ .node.key = addr,
			       .handle = h,
			       .range = range_of(v, addr, h->bytes) };
	frag_tree_insert(&v->mappings, &m->node);
	h->mappings++;
	m->range->mappings++;
	*ns = frag_sim_cost(sim, FRAG_CALL_MAP, h->bytes);
	return 0;
}

/*
 * Checks that [addr, addr + bytes) is whole mappings without a hole. Sums the price: `first` for
 * the first handle of the call, `next` for each further one.
 */
static int check_whole(const struct sim *sim, enum frag_call call, unsigned next, frag_addr_t addr,
		       uint64_t bytes, uint64_t *ns, struct frag_err *err)
{
	const struct frag_tree *t = &sim->vmm.mappings;
	frag_addr_t at = addr, end = addr + bytes;
	unsigned item = call;

	*ns = 0;
	FRAG_TRY(check_granule(call, addr, bytes, err));
	for (const struct frag_tree_node *n = frag_tree_find(t, addr, 0); at < end;
	     n = frag_tree_next(t, n)) {
		const struct mapping *m = n ? FRAG_TREE_OF(n, struct mapping, node) : NULL;

		if (!m || n->key != at || m->handle->bytes > end - at)
			return frag_fail(err, FRAG_EDEVICE,
					 "%s: 0x%llx with %llu bytes is not whole mappings (at "
					 "0x%llx)",
					 frag_call_name(call), LLU(addr), LLU(bytes), LLU(at));
		*ns += frag_sim_cost(sim, item, m->handle->bytes);
		item = next;
		at += m->handle->bytes;
	}
	return 0;
}

int frag_sim_set_access(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
			struct frag_err *err)
{
	return check_whole(priv, FRAG_CALL_SET_ACCESS, FRAG_COST_SET_ACCESS_NEXT, addr, bytes, ns,
			   err);
}

int frag_sim_unmap(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns, struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_vmm *v = &sim->vmm;

	FRAG_TRY(check_whole(sim, FRAG_CALL_UNMAP, FRAG_COST_UNMAP_NEXT, addr, bytes, ns, err));
	for (frag_addr_t at = addr; at < addr + bytes;) {
		struct mapping *m = mapping_of(frag_tree_find(&v->mappings, at, 0));
		struct handle *h = m->handle;

		at += h->bytes;
		frag_tree_remove(&v->mappings, &m->node);
		m->range->mappings--;
		h->mappings--;
		frag_slab_free(&v->mapping_slab, m);
		*ns += drop_if_unused(sim, h);
	}
	return 0;
}
