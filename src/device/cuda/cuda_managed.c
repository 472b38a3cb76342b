/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory on a real card.
 *
 * It counts when touched or prefetched, by the rule of the simulated card (uvm_resident.h). At most
 * cfg.managed_max_bytes may be live, because a program that requests more than the card has free
 * can hang the card for everyone.
 */
#include "cuda_internal.h"

#define LLU(x) ((unsigned long long)(x))

/* The most managed memory that may be live. */
static int most_bytes(const struct cuda *c, uint64_t *out, struct frag_err *err)
{
	size_t left = 0, total = 0;

	*out = c->cfg.managed_max_bytes;
	if (*out)
		return 0;
	/* what is resident was free when the first piece was requested */
	FRAG_TRY(RT(err, cudaMemGetInfo, &left, &total));
	*out = (left + c->managed.resident_bytes) / 4;
	return 0;
}

static int check_limit(const struct cuda *c, uint64_t bytes, struct frag_err *err)
{
	uint64_t limit;

	FRAG_TRY(most_bytes(c, &limit, err));
	if (bytes <= limit && c->managed_bytes <= limit - bytes)
		return 0;
	return frag_fail(err, FRAG_ENOTSUP,
			 "cudaMallocManaged: %llu bytes on top of %llu would be more managed "
			 "memory than a quarter of what the card has free (%llu); allow more with "
			 "--managed-max",
			 LLU(bytes), LLU(c->managed_bytes), LLU(limit));
}

static int prefetch(struct cuda *c, frag_addr_t addr, uint64_t bytes, struct frag_err *err)
{
#if CUDART_VERSION >= 13000
	struct cudaMemLocation to = { .type = cudaMemLocationTypeDevice, .id = c->cfg.ordinal };

	return RT(err, cudaMemPrefetchAsync, (void *)(uintptr_t)addr, bytes, to, 0, NULL);
#else
	return RT(err, cudaMemPrefetchAsync, (void *)(uintptr_t)addr, bytes, c->cfg.ordinal, NULL);
#endif
}

/* Prefetches it to the card and waits. */
static int bring(struct cuda *c, frag_addr_t addr, uint64_t bytes, bool by_prefetch,
		 struct frag_err *err)
{
	FRAG_TRY(by_prefetch ? prefetch(c, addr, bytes, err)
			     : frag_cuda_touch(c, addr, bytes, NULL, err));
	return RT(err, cudaStreamSynchronize, NULL);
}

/* Off the clock: loads the kernel that touches it, once. */
static int prepare(struct cuda *c, struct frag_err *err)
{
	if (FRAG_LIKELY(c->managed_ready))
		return 0;
	FRAG_TRY(frag_cuda_touch_ready(c, err));
	c->managed_ready = true;
	return 0;
}

/* ---- requests -------------------------------------------------------------------- */

int frag_cuda_managed_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
			    struct frag_err *err)
{
	struct cuda *c = priv;
	uint64_t start;

	FRAG_TRY(check_limit(c, bytes, err));
	FRAG_TRY(prepare(c, err));
	FRAG_CHECK_ALLOC(frag_uvm_resident_reserve(&c->managed), "managed memory of the card", err);
	start = frag_clock_ns();
	FRAG_TRY(FRAG_CARD_ALLOC(&c->card, err, cuMemAllocManaged, out, bytes, 1));
	*ns = frag_clock_ns() - start;
	frag_uvm_resident_add(&c->managed, *out, bytes);
	c->managed_bytes += bytes;
	return 0;
}

int frag_cuda_managed_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	const struct uvm_piece *p = frag_uvm_resident_find(&c->managed, addr);

	if (!p)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaFree: 0x%llx is not the start of live managed memory",
				 LLU(addr));
	FRAG_TRY(RT(err, cudaFree, (void *)(uintptr_t)addr));
	c->managed_bytes -= p->bytes;
	frag_uvm_resident_free(&c->managed, addr);
	c->usage.resident_bytes = c->managed.resident_bytes;
	return 0;
}

int frag_cuda_managed_touch(void *priv, frag_addr_t addr, uint64_t bytes, bool by_prefetch,
			    uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	const struct uvm_piece *p = frag_uvm_resident_find(&c->managed, addr);
	uint64_t start;

	if (!p || bytes > p->bytes)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaMemPrefetchAsync: 0x%llx is not managed memory of %llu bytes",
				 LLU(addr), LLU(bytes));
	if (by_prefetch && !c->concurrent_managed)
		return frag_fail(err, FRAG_ENOTSUP,
				 "this card cannot prefetch managed memory "
				 "(no concurrent managed access)");
	start = frag_clock_ns();
	FRAG_TRY(bring(c, addr, bytes, by_prefetch, err));
	*ns = frag_clock_ns() - start;
	c->usage.moved_ns += *ns;
	frag_uvm_resident_touch(&c->managed, addr, bytes, by_prefetch);
	c->usage.resident_bytes = c->managed.resident_bytes;
	c->usage.resident_peak_bytes =
		FRAG_MAX(c->usage.resident_peak_bytes, c->usage.resident_bytes);
	return 0;
}

void frag_cuda_managed_usage(void *priv, struct frag_managed_usage *out)
{
	*out = ((const struct cuda *)priv)->usage;
}
