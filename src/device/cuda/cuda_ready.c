/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings a real card into the state in which measurements begin.
 *
 * Measured on an H200 (driver 580.159.04): returned memory is cleared in the background, at about
 * 390 GiB a second, before it is reused. A cudaMalloc of 70 GiB right after a cudaFree of 70 GiB
 * took 200 ms; 200 ms later it took 17 ms. The first request after that takes over the cleared
 * pages, at about 0.25 ms per GiB. A card that was idle for 10 ms or more answers its first calls
 * up to eight times slower than the next. The first cudaMalloc of 32 MiB or more takes 25 us more
 * than the second, whatever smaller ones came before. None of this belongs to the next replay. Nor
 * does the host's other work (cuda_core.c).
 */
#include "cuda_internal.h"

#include <time.h>

#define BYTES_PER_NS 300.0 /* below the measurement */
#define WAIT_MAX_NS 1000000000.0
#define GRACE_NS 5000000u
#define ROUNDS 24u
/* Sizes of the first rounds, in pages; later rounds take 1, every fourth 10. */
static const unsigned big_rounds[] = { 256, 64, 32 };

static void wait_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	while (nanosleep(&t, &t))
		;
}

static unsigned pages_of(unsigned round)
{
	if (round < FRAG_ARRAY_LEN(big_rounds))
		return big_rounds[round];
	return round % 4 ? 1 : 10;
}

/* Allocates and frees a segment and a mapped handle. */
static int one_round(struct cuda *c, uint64_t bytes, struct frag_err *err)
{
	frag_addr_t at = 0;
	uint64_t handle = 0, ns;
	int rc = frag_cuda_alloc(c, bytes, &at, &ns, err) ?: frag_cu_card_free(c, at, &ns, err);

	if (rc || !(c->card.can & FRAG_CAN_VMM))
		return FRAG_MIN(rc, 0); /* a full card is awake already */
	rc = frag_cu_card_reserve(&c->card, bytes, 0, &at, &ns, err);
	if (rc)
		return FRAG_MIN(rc, 0);
	rc = frag_cuda_create(c, bytes, &handle, &ns, err);
	if (!rc) {
		rc = frag_cu_card_map(&c->card, at, handle, &ns, err)
			     ?: frag_cu_card_set_access(&c->card, at, bytes, &ns, err);
		if (!rc)
			rc = frag_cu_card_unmap(c, at, bytes, &ns, err);
		if (frag_cu_card_release(&c->card, handle, &ns, rc ? NULL : err) && !rc)
			rc = FRAG_EDEVICE;
	}
	if (frag_cu_card_unreserve(&c->card, at, bytes, &ns, rc ? NULL : err) && !rc)
		rc = FRAG_EDEVICE;
	return FRAG_MIN(rc, 0);
}

/* The first pool of a process takes 7 ms more than later ones. */
static int one_pool(struct cuda *c, struct frag_err *err)
{
	struct frag_mempool_attr attr = { 0 };
	frag_addr_t at = 0;
	uint64_t pool = 0, ns;
	int rc;

	FRAG_TRY(frag_cu_card_mempool_create(&c->card, &attr, &pool, &ns, err));
	rc = frag_cuda_mempool_alloc(c, pool, 1, 0, &at, &ns, err)
		     ?: frag_cuda_mempool_free(c, pool, at, 0, &ns, err);
	if (frag_cu_card_mempool_destroy(&c->card, pool, &ns, rc < 0 ? NULL : err) && rc >= 0)
		rc = FRAG_EDEVICE;
	return FRAG_MIN(rc, 0);
}

int frag_cuda_make_ready(void *priv, uint64_t given_back_bytes, struct frag_err *err)
{
	struct cuda *c = priv;
	uint64_t bytes = FRAG_MIN(given_back_bytes, c->card.total_bytes);

	FRAG_TRY(RT(err, cudaDeviceSynchronize));
	if (bytes)
		wait_ns((uint64_t)FRAG_MIN((double)bytes / BYTES_PER_NS, WAIT_MAX_NS) + GRACE_NS);
	if (c->card.can & FRAG_CAN_ASYNC)
		FRAG_TRY(one_pool(c, err));
	frag_cuda_core_choose(c);
	for (unsigned i = 0; i < ROUNDS; i++)
		FRAG_TRY(one_round(c, pages_of(i) * frag_round_up(FRAG_PAGE, c->card.granule_bytes),
				   err));
	return 0;
}
