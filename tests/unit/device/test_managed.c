/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory on the simulated card: random touches. Call by call: test_card.c. */
#include "test.h"

#include <frag/device.h>

#include "must.h"

static frag_addr_t managed(struct frag_device *d, uint64_t bytes)
{
	frag_addr_t a = 0;

	assert_int_equal(frag_dev_managed_alloc(d, bytes, &a, NULL), 0);
	return a;
}

static void prefetch(struct frag_device *d, frag_addr_t a, uint64_t bytes)
{
	assert_int_equal(frag_dev_managed_touch(d, a, bytes, true, NULL), 0);
}

static struct frag_managed_usage usage(struct frag_device *d)
{
	struct frag_managed_usage u;

	frag_dev_managed_usage(d, &u);
	assert_int_equal(u.resident_bytes, d->reserved_bytes); /* nothing else is on the card */
	return u;
}

/* ---- random touches against a plain list of groups -------------------------- */

#define BLOCKS 24
#define CARD_BLOCKS 10

struct model {
	bool resident[BLOCKS], out[BLOCKS];
	unsigned when[BLOCKS], clock;
	uint64_t in_bytes, out_bytes, evictions;
};

static void model_prefetch(struct model *m, int b)
{
	int count = 0, oldest = -1;

	if (m->resident[b])
		return;
	for (int i = 0; i < BLOCKS; i++) {
		count += m->resident[i];
		if (m->resident[i] && (oldest < 0 || m->when[i] < m->when[oldest]))
			oldest = i;
	}
	if (count == CARD_BLOCKS) {
		m->resident[oldest] = false;
		m->out[oldest] = true;
		m->out_bytes += 2 * MIB;
		m->evictions++;
	}
	m->in_bytes += m->out[b] ? 2 * MIB : 0;
	m->out[b] = false;
	m->resident[b] = true;
	m->when[b] = ++m->clock;
}

TEST(test_random)
{
	FRAG_AUTO(frag_dev_close_at)
	struct frag_device *d =
		must_open_sim(&(struct frag_sim_config){ .total_bytes = CARD_BLOCKS * 2 * MIB });
	frag_addr_t a = managed(d, BLOCKS * 2 * MIB);
	struct model m = { 0 };
	uint64_t seed = 3;

	for (int n = 0; n < 5000; n++) {
		struct frag_managed_usage u;
		int first, count;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		first = (int)(seed >> 40) % BLOCKS;
		count = (int)(seed >> 50) % 3 + 1;
		count = first + count > BLOCKS ? BLOCKS - first : count;
		prefetch(d, a + (uint64_t)first * 2 * MIB, (uint64_t)count * 2 * MIB);
		for (int i = 0; i < count; i++)
			model_prefetch(&m, first + i);
		u = usage(d);
		assert_int_equal(u.moved_in_bytes, m.in_bytes);
		assert_int_equal(u.moved_out_bytes, m.out_bytes);
		assert_int_equal(u.evictions, m.evictions);
	}
	assert_true(m.evictions > 1000);
	assert_int_equal(frag_dev_managed_free(d, a, 1, NULL), 0);
	assert_int_equal(usage(d).resident_bytes, 0);
}
