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

/* The signatures are those of struct frag_device_ops: most look at a few of their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

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
	*out = (struct frag_device_info){
		.total_bytes = NULL_TOTAL,
		.granule_bytes = FRAG_PAGE,
		.can = FRAG_CAN_MALLOC | FRAG_CAN_VMM | FRAG_CAN_ASYNC | FRAG_CAN_MANAGED,
		.modelled = true,
	};
	snprintf(out->name, sizeof(out->name), "null");
}

static frag_addr_t take(struct null *null, uint64_t bytes)
{
	null->reserved_bytes += bytes;
	return advance(null, bytes);
}

/* A call with these arguments that succeeds at no cost, after the statement, if there is one. */
#define NO_COST(name, args, ...) \
	static int name args \
	{ \
		*ns = 0; \
		__VA_ARGS__; \
		return 0; \
	}
#define ARGS(...) (void *priv, __VA_ARGS__, uint64_t *ns, struct frag_err *err)

NO_COST(null_alloc, ARGS(uint64_t bytes, frag_addr_t *out), *out = take(priv, bytes))
NO_COST(null_free, ARGS(frag_addr_t addr))
NO_COST(null_reserve, ARGS(uint64_t bytes, frag_addr_t hint, frag_addr_t *out),
	*out = advance(priv, bytes))
NO_COST(null_unreserve, ARGS(frag_addr_t addr, uint64_t bytes))
NO_COST(null_create, ARGS(uint64_t bytes, uint64_t *handle), *handle = ++((struct null *)priv)->ids;
	((struct null *)priv)->reserved_bytes += bytes)
NO_COST(null_release, ARGS(uint64_t handle))
NO_COST(null_map, ARGS(frag_addr_t addr, uint64_t handle))
NO_COST(null_set_access, ARGS(frag_addr_t addr, uint64_t bytes))
NO_COST(null_unmap, ARGS(frag_addr_t addr, uint64_t bytes))
NO_COST(null_mempool_create, ARGS(const struct frag_mempool_attr *attr, uint64_t *pool),
	*pool = ++((struct null *)priv)->ids)
NO_COST(null_mempool_destroy, ARGS(uint64_t pool))
NO_COST(null_mempool_alloc, ARGS(uint64_t pool, uint64_t bytes, uint32_t stream, frag_addr_t *out),
	*out = take(priv, bytes))
NO_COST(null_mempool_free, ARGS(uint64_t pool, frag_addr_t addr, uint32_t stream))
NO_COST(null_mempool_trim, ARGS(uint64_t pool, uint64_t keep_bytes))
NO_COST(null_managed_alloc, ARGS(uint64_t bytes, frag_addr_t *out), *out = take(priv, bytes))
NO_COST(null_managed_free, ARGS(frag_addr_t addr))
NO_COST(null_managed_touch, ARGS(frag_addr_t addr, uint64_t bytes, bool prefetch))
NO_COST(null_fence_record, ARGS(uint32_t stream, uint64_t *fence), *fence = 1)
NO_COST(null_fence_done, ARGS(uint64_t fence, uint64_t lag_ns, bool *done), *done = true)
NO_COST(null_sync, ARGS(uint32_t stream, bool whole_device))
NO_COST(null_mem_info, ARGS(uint64_t *free_bytes, uint64_t *total_bytes), *total_bytes = NULL_TOTAL;
	*free_bytes = NULL_TOTAL - FRAG_MIN(((struct null *)priv)->reserved_bytes, NULL_TOTAL))

static void null_mempool_usage(void *priv, uint64_t pool, struct frag_mempool_usage *out)
{
	*out = (struct frag_mempool_usage){ 0 };
}

static void null_managed_usage(void *priv, struct frag_managed_usage *out)
{
	*out = (struct frag_managed_usage){ 0 };
}

static uint64_t null_reserved(void *priv)
{
	return ((const struct null *)priv)->reserved_bytes;
}

static const struct frag_device_ops null_ops = {
	.name = "null",
	.summary = "unlimited memory, no cost: shows what the simulator itself takes",
	FRAG_DEVICE_OPS(null),
};

int frag_null_open(struct frag_device **out, struct frag_err *err)
{
	FRAG_AUTO_FREE struct null *null = NULL;

	FRAG_TRY_CALLOC(null, 1, "null device", err);
	null->next = FRAG_GIB;
	FRAG_TRY(frag_dev_open(&null_ops, null, out, err));
	null = NULL; /* the device has it */
	return 0;
}
