/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device that does nothing: unlimited memory, no cost, addresses that only grow. A replay on it
 * shows what the simulator itself costs.
 *
 * It keeps no records, so it cannot detect a wrong free, and reserved is the sum of all memory
 * taken: it never falls. All addresses come from one counter and never overlap.
 */

#include <frag/device.h>

#include <stdio.h>

/* The reported capacity. Policies size reservations by it, so it is not the largest number. */
#define NULL_TOTAL (1024 * FRAG_GIB)

struct null {
	frag_addr_t next;
	uint64_t reserved_bytes;
	uint64_t ids;
};

static frag_addr_t advance(struct null *null, uint64_t bytes)
{
	frag_addr_t addr = null->next;

	null->next += frag_round_up(FRAG_MIN(bytes, 1ull << 62), FRAG_PAGE);
	return addr;
}

static void null_close(void *priv)
{
	frag_host_free(priv);
}

static void null_info(void *priv, struct frag_device_info *out)
{
	(void)priv;
	*out = (struct frag_device_info){
		.total_bytes = NULL_TOTAL,
		.granule_bytes = FRAG_PAGE,
		.can = FRAG_CAN_MALLOC | FRAG_CAN_VMM | FRAG_CAN_ASYNC | FRAG_CAN_MANAGED,
		.modelled = true,
	};
	snprintf(out->name, sizeof(out->name), "null");
}

static int take(struct null *null, uint64_t bytes, frag_addr_t *out, uint64_t *ns)
{
	*ns = 0;
	*out = advance(null, bytes);
	null->reserved_bytes += bytes;
	return 0;
}

static int null_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		      struct frag_err *err)
{
	(void)err;
	return take(priv, bytes, out, ns);
}

static int null_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	(void)priv, (void)addr, (void)err;
	*ns = 0;
	return 0;
}

static int null_reserve(void *priv, uint64_t bytes, frag_addr_t hint, frag_addr_t *out,
			uint64_t *ns, struct frag_err *err)
{
	(void)hint, (void)err;
	*ns = 0;
	*out = advance(priv, bytes);
	return 0;
}

static int null_range(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
		      struct frag_err *err)
{
	(void)priv, (void)addr, (void)bytes, (void)err;
	*ns = 0;
	return 0;
}

static int null_create(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
		       struct frag_err *err)
{
	struct null *null = priv;

	(void)err;
	*ns = 0;
	*handle = ++null->ids;
	null->reserved_bytes += bytes;
	return 0;
}

static int null_release(void *priv, uint64_t handle, uint64_t *ns, struct frag_err *err)
{
	(void)priv, (void)handle, (void)err;
	*ns = 0;
	return 0;
}

static int null_map(void *priv, frag_addr_t addr, uint64_t handle, uint64_t *ns,
		    struct frag_err *err)
{
	(void)priv, (void)addr, (void)handle, (void)err;
	*ns = 0;
	return 0;
}

static int null_mempool_create(void *priv, const struct frag_mempool_attr *attr, uint64_t *pool,
			       uint64_t *ns, struct frag_err *err)
{
	struct null *null = priv;

	(void)attr, (void)err;
	*ns = 0;
	*pool = ++null->ids;
	return 0;
}

static int null_mempool_alloc(void *priv, uint64_t pool, uint64_t bytes, uint32_t stream,
			      frag_addr_t *out, uint64_t *ns, struct frag_err *err)
{
	(void)pool, (void)stream, (void)err;
	return take(priv, bytes, out, ns);
}

static int null_mempool_free(void *priv, uint64_t pool, frag_addr_t addr, uint32_t stream,
			     uint64_t *ns, struct frag_err *err)
{
	(void)priv, (void)pool, (void)addr, (void)stream, (void)err;
	*ns = 0;
	return 0;
}

static int null_mempool_trim(void *priv, uint64_t pool, uint64_t keep_bytes, uint64_t *ns,
			     struct frag_err *err)
{
	(void)priv, (void)pool, (void)keep_bytes, (void)err;
	*ns = 0;
	return 0;
}

static void null_mempool_usage(void *priv, uint64_t pool, struct frag_mempool_usage *out)
{
	(void)priv, (void)pool;
	*out = (struct frag_mempool_usage){ 0 };
}

static int null_managed_touch(void *priv, frag_addr_t addr, uint64_t bytes, bool prefetch,
			      uint64_t *ns, struct frag_err *err)
{
	(void)priv, (void)addr, (void)bytes, (void)prefetch, (void)err;
	*ns = 0;
	return 0;
}

static void null_managed_usage(void *priv, struct frag_managed_usage *out)
{
	(void)priv;
	*out = (struct frag_managed_usage){ 0 };
}

static int null_fence_record(void *priv, uint32_t stream, uint64_t *fence, uint64_t *ns,
			     struct frag_err *err)
{
	(void)priv, (void)stream, (void)err;
	*ns = 0;
	*fence = 1;
	return 0;
}

static int null_fence_done(void *priv, uint64_t fence, uint64_t lag_ns, bool *done, uint64_t *ns,
			   struct frag_err *err)
{
	(void)priv, (void)fence, (void)lag_ns, (void)err;
	*ns = 0;
	*done = true;
	return 0;
}

static int null_sync(void *priv, uint32_t stream, bool whole_device, uint64_t *ns,
		     struct frag_err *err)
{
	(void)priv, (void)stream, (void)whole_device, (void)err;
	*ns = 0;
	return 0;
}

static int null_mem_info(void *priv, uint64_t *free_bytes, uint64_t *total_bytes, uint64_t *ns,
			 struct frag_err *err)
{
	const struct null *null = priv;

	(void)err;
	*ns = 0;
	*total_bytes = NULL_TOTAL;
	*free_bytes = *total_bytes - FRAG_MIN(null->reserved_bytes, *total_bytes);
	return 0;
}

static uint64_t null_reserved(void *priv)
{
	return ((const struct null *)priv)->reserved_bytes;
}

static const struct frag_device_ops null_ops = {
	.name = "null",
	.summary = "unlimited memory, no cost: shows what the simulator itself takes",
	.close = null_close,
	.info = null_info,
	.alloc = null_alloc,
	.free = null_free,
	.reserve = null_reserve,
	.unreserve = null_range,
	.create = null_create,
	.release = null_release,
	.map = null_map,
	.set_access = null_range,
	.unmap = null_range,
	.mempool_create = null_mempool_create,
	.mempool_destroy = null_release,
	.mempool_alloc = null_mempool_alloc,
	.mempool_free = null_mempool_free,
	.mempool_trim = null_mempool_trim,
	.mempool_usage = null_mempool_usage,
	.managed_alloc = null_alloc,
	.managed_free = null_free,
	.managed_touch = null_managed_touch,
	.managed_usage = null_managed_usage,
	.fence_record = null_fence_record,
	.fence_done = null_fence_done,
	.sync = null_sync,
	.mem_info = null_mem_info,
	.reserved = null_reserved,
};

int frag_null_open(struct frag_device **out, struct frag_err *err)
{
	struct null *null;
	int rc;

	FRAG_TRY_CALLOC(null, 1, "null device", err);
	null->next = FRAG_GIB;
	rc = frag_dev_open(&null_ops, null, out, err);
	if (rc)
		frag_host_free(null);
	return rc;
}
