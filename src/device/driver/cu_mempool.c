/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of the driver (cudaMallocAsync); the driver is asked what they hold. */
#include "cu_card.h"

#include <frag/clock.h>

static struct frag_cu_mempool *find(const struct frag_cu_card *c, uint64_t id)
{
	struct frag_cu_mempool *p = c->pools;

	while (p && (uintptr_t)p->pool != id)
		p = p->next;
	return p;
}

static int look_up(struct frag_cu_card *c, uint64_t id, const char *call,
		   struct frag_cu_mempool **out, struct frag_err *err)
{
	*out = find(c, id);
	return *out ? 0 : frag_fail(err, FRAG_EDEVICE, "%s: unknown pool", call);
}

int frag_cu_card_mempool_create(void *priv, const struct frag_mempool_attr *attr, uint64_t *pool,
				uint64_t *ns, struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_cu_pool_props props = { .type = 1, .location = { 1, c->device } };
	struct frag_cu_mempool *p = frag_host_calloc(1, sizeof(*p));
	struct {
		int which;
		uint64_t value; /* the flags are ints: the low half on this machine */
	} settings[] = {
		{ FRAG_CU_POOL_THRESHOLD, attr->release_threshold },
		{ FRAG_CU_POOL_FOLLOW_EVENTS, attr->reuse_follow_event_dependencies },
		{ FRAG_CU_POOL_OPPORTUNISTIC, attr->reuse_allow_opportunistic },
		{ FRAG_CU_POOL_INTERNAL, attr->reuse_allow_internal_dependencies },
	};
	uint64_t start;
	int rc;

	FRAG_CHECK_ALLOC(p, "pool", err);
	start = frag_clock_ns();
	rc = FRAG_CU(c->cu, err, cuMemPoolCreate, &p->pool, &props);
	*ns = frag_clock_ns() - start; /* without the attributes */
	for (size_t i = 0; !rc && i < FRAG_ARRAY_LEN(settings); i++)
		rc = FRAG_CU(c->cu, err, cuMemPoolSetAttribute, p->pool, settings[i].which,
			     &settings[i].value);
	if (rc) {
		if (p->pool)
			c->cu->cuMemPoolDestroy(p->pool);
		frag_host_free(p);
		return rc;
	}
	p->next = c->pools;
	c->pools = p;
	*pool = (uintptr_t)p->pool;
	return 0;
}

int frag_cu_card_mempool_destroy(void *priv, uint64_t pool, uint64_t *ns, struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_cu_mempool *p, **link = &c->pools;
	uint64_t start;

	FRAG_TRY(look_up(c, pool, "cuMemPoolDestroy", &p, err));
	/* destroying a pool with queued frees crashed a later synchronise inside the driver
	 * (580.159.04), although the documentation allows it */
	FRAG_TRY(FRAG_CARD_CALL(c, err, cuCtxSynchronize));
	start = frag_clock_ns();
	FRAG_TRY(FRAG_CARD_CALL(c, err, cuMemPoolDestroy, p->pool));
	*ns = frag_clock_ns() - start;
	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	frag_host_free(p);
	return 0;
}

int frag_cu_card_mempool_alloc(void *priv, uint64_t pool, uint64_t bytes, uint32_t stream,
			       frag_addr_t *out, uint64_t *ns, struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_cu_mempool *p;

	FRAG_TRY(look_up(c, pool, "cuMemAllocFromPoolAsync", &p, err));
	return FRAG_CARD_ALLOC(c, err, cuMemAllocFromPoolAsync, out, bytes, p->pool,
			       c->streams[stream]);
}

int frag_cu_card_mempool_free(void *priv, uint64_t pool, frag_addr_t addr, uint32_t stream,
			      uint64_t *ns, struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_cu_mempool *p;

	FRAG_TRY(look_up(c, pool, "cuMemFreeAsync", &p, err));
	return FRAG_CARD_CALL(c, err, cuMemFreeAsync, addr, c->streams[stream]);
}

int frag_cu_card_mempool_trim(void *priv, uint64_t pool, uint64_t keep_bytes, uint64_t *ns,
			      struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	struct frag_cu_mempool *p;

	FRAG_TRY(look_up(c, pool, "cuMemPoolTrimTo", &p, err));
	return c->dead ? 0 : FRAG_CU(c->cu, err, cuMemPoolTrimTo, p->pool, keep_bytes);
}

static uint64_t ask(const struct frag_cu_card *c, void *pool, int which)
{
	uint64_t value = 0;

	return !c->dead && c->cu->cuMemPoolGetAttribute(pool, which, &value) == FRAG_CU_OK ? value
											   : 0;
}

void frag_cu_card_mempool_usage(void *priv, uint64_t pool, struct frag_mempool_usage *out)
{
	const struct frag_cu_card *c = priv;
	const struct frag_cu_mempool *p = find(c, pool);

	if (!p)
		return;
	*out = (struct frag_mempool_usage){
		.reserved_bytes = ask(c, p->pool, FRAG_CU_POOL_RESERVED),
		.reserved_peak_bytes = ask(c, p->pool, FRAG_CU_POOL_RESERVED_HIGH),
		.used_bytes = ask(c, p->pool, FRAG_CU_POOL_USED),
		.used_peak_bytes = ask(c, p->pool, FRAG_CU_POOL_USED_HIGH),
	};
}

uint64_t frag_cu_mempool_bytes(struct frag_cu_card *c)
{
	uint64_t sum = 0;

	for (struct frag_cu_mempool *p = c->pools; p; p = p->next)
		sum += ask(c, p->pool, FRAG_CU_POOL_RESERVED);
	return sum;
}
