/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory on a real card.
 *
 * It counts when touched or prefetched, by the rule of the simulated card (uvm_resident.h). At most
 * cfg.managed_max_bytes may be live, because a program that requests more than the card has free
 * can hang the card for everyone.
 *
 * The driver takes memory for it from the card in batches (uvm_roots.h). Earlier devices of this
 * process may have left a rest: roots that cudaMemGetInfo and NVML count as taken already. Also,
 * when several pages fault together, the card serves them in no repeatable order; with another
 * order of 4 KiB and 64 KiB pages, the rest differs, although as much is in use. So before the
 * first request of a device, and before every query of the counters, the rest is used up: allocate
 * pieces of 2 MiB, one root each, until free memory falls. Then a batch has begun with 63 roots
 * left; 63 more pieces use them up. Returned roots do not stay with the driver.
 */
#include "cuda_internal.h"

#define LLU(x) ((unsigned long long)(x))

#define BATCH_BYTES (UVM_BATCH * UVM_BLOCK)
#define DRAIN_BYTES (2 * BATCH_BYTES) /* most live pieces at a time */
/* skip cards with less free memory; DRAIN_BYTES is a quarter of it */
#define DRAIN_FREE_BYTES FRAG_GIB

struct drain {
	void *at[2 * UVM_BATCH];
	unsigned count;
};

static int free_bytes(uint64_t *out, struct frag_err *err)
{
	size_t left = 0, total = 0;

	FRAG_TRY(RT(err, cudaMemGetInfo, &left, &total));
	*out = left;
	return 0;
}

/* The most managed memory that may be live. */
static int most_bytes(const struct cuda *c, uint64_t *out, struct frag_err *err)
{
	uint64_t left;

	*out = c->cfg.managed_max_bytes;
	if (*out)
		return 0;
	/* the driver's memory for it was free when the first piece was requested */
	FRAG_TRY(free_bytes(&left, err));
	*out = (left + frag_uvmroots_taken(&c->managed.roots)) / 4;
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

/* ---- the rest of a batch ------------------------------------------------------------ */

static int drain_one(struct cuda *c, struct drain *d, struct frag_err *err)
{
	void **at = &d->at[d->count];

	FRAG_TRY(RT(err, cudaMallocManaged, at, UVM_BLOCK, cudaMemAttachGlobal));
	d->count++;
	return bring(c, (uintptr_t)*at, UVM_BLOCK, c->concurrent_managed, err);
}

/* A driver that takes no batch within a batch's length does not use batches: nothing to use up. */
static int drain_spare(struct cuda *c, struct drain *d, uint64_t left, struct frag_err *err)
{
	bool fell = false;

	for (unsigned i = 0; i < UVM_BATCH && !fell; i++) {
		uint64_t before = left;

		FRAG_TRY(drain_one(c, d, err));
		FRAG_TRY(free_bytes(&left, err));
		/* a page taken by another program meanwhile is not a batch */
		fell = left + BATCH_BYTES / 2 <= before;
	}
	for (unsigned i = 1; i < UVM_BATCH && fell; i++)
		FRAG_TRY(drain_one(c, d, err));
	if (fell)
		c->managed.roots.spare_count = 0;
	return 0;
}

static int drain_free(struct drain *d, struct frag_err *err)
{
	int rc = 0;

	while (d->count) {
		int one = RT(rc ? NULL : err, cudaFree, d->at[--d->count]);

		rc = rc ? rc : one;
	}
	return rc;
}

static int drain(struct cuda *c, struct frag_err *err)
{
	struct drain d = { .count = 0 };
	uint64_t left, most;
	int rc, undo;

	FRAG_TRY(free_bytes(&left, err));
	FRAG_TRY(most_bytes(c, &most, err));
	if (left < DRAIN_FREE_BYTES || most < DRAIN_BYTES || c->managed_bytes > most - DRAIN_BYTES)
		return 0;
	rc = drain_spare(c, &d, left, err);
	undo = drain_free(&d, rc ? NULL : err);
	return rc ? rc : undo;
}

int frag_cuda_managed_use_up(struct cuda *c)
{
	return c->managed_ready ? drain(c, NULL) : 0;
}

/* Brings the driver and the observed counts into a known state, once, off the clock. */
static int prepare(struct cuda *c, struct frag_err *err)
{
	if (FRAG_LIKELY(c->managed_ready))
		return 0;
	FRAG_TRY(frag_cuda_touch_ready(c, err));
	FRAG_TRY(drain(c, err));
	FRAG_TRY(frag_cuda_count_from_here(c, err));
	c->managed_ready = true;
	return 0;
}

/* ---- requests -------------------------------------------------------------------- */

static int room(struct cuda *c, struct frag_err *err)
{
	if (FRAG_LIKELY(frag_uvm_resident_reserve(&c->managed)))
		return 0;
	return frag_fail_nomem(err, "managed memory of the card");
}

int frag_cuda_managed_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
			    struct frag_err *err)
{
	struct cuda *c = priv;
	uint64_t start;
	void *ptr = NULL;
	cudaError_t rc;

	FRAG_TRY(check_limit(c, bytes, err));
	FRAG_TRY(prepare(c, err));
	FRAG_TRY(room(c, err));
	start = frag_clock_ns();
	rc = cudaMallocManaged(&ptr, bytes, cudaMemAttachGlobal);
	*ns = frag_clock_ns() - start;
	if (rc == cudaErrorMemoryAllocation) {
		(void)cudaGetLastError();
		return FRAG_OOM;
	}
	FRAG_TRY(frag_cuda_rt_check(rc, "cudaMallocManaged", err));
	*out = (uintptr_t)ptr;
	frag_uvm_resident_add(&c->managed, *out, bytes);
	c->managed_bytes += bytes;
	return 0;
}

int frag_cuda_managed_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	const struct uvm_piece *p = frag_uvm_resident_find(&c->managed, addr);
	uint64_t since;

	if (!p)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaFree: 0x%llx is not the start of live managed memory",
				 LLU(addr));
	since = frag_cuda_quiesce(c);
	FRAG_TRY(RT(err, cudaFree, (void *)(uintptr_t)addr));
	frag_cuda_took(since, ns);
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
	FRAG_TRY(room(c, err));
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

void frag_cuda_managed_release(struct cuda *c)
{
	frag_cuda_free_all(&c->managed.live);
	frag_uvm_resident_release(&c->managed);
}
