/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quickpool, dynamicpool and buddy in random runs against models that search everything; and the
 * rule by which Umpire's pools make chunks one. Their single rules: tests/policies/.
 */
#include "test.h"

#include <quickcore.h>

#include "lib/random.h"
#include "rig.h"

static struct rig rig; /* large: not for the stack */

TEST(coalescing)
{
	struct frag_coalesce_state s = {
		.actual = 1000, .releasable = 500, .aligned_hwm = 700, .releasable_count = 3
	};
	struct frag_coalesce c = { .rule = FRAG_COALESCE_PERCENT, .percent = 50, .blocks = 3 };

	assert_int_equal(frag_coalesce_size(&c, &s), 1000);
	c.percent = 51;
	assert_int_equal(frag_coalesce_size(&c, &s), 0);
	c.percent = 0;
	s.releasable = 1000;
	assert_int_equal(frag_coalesce_size(&c, &s), 0);
	c.percent = 100;
	assert_int_equal(frag_coalesce_size(&c, &s), 1000);
	c.rule = FRAG_COALESCE_PERCENT_HWM;
	assert_int_equal(frag_coalesce_size(&c, &s), 700);
	s.releasable = 999;
	assert_int_equal(frag_coalesce_size(&c, &s), 0);
	c.rule = FRAG_COALESCE_BLOCKS;
	assert_int_equal(frag_coalesce_size(&c, &s), 1000); /* 3 are enough for 3 */
	c.blocks = 4;
	assert_int_equal(frag_coalesce_size(&c, &s), 0);
	c.blocks = 2;
	c.rule = FRAG_COALESCE_BLOCKS_HWM;
	assert_int_equal(frag_coalesce_size(&c, &s), 700);
}

/* ---- quickpool: one list of all pieces -------------------------------------------------- */

#define PIECES_MAX 4096

struct piece {
	frag_addr_t addr;
	uint64_t size, stamp;
	bool free, first; /* first: of its chunk */
};

static struct piece piece[PIECES_MAX]; /* in order of address */
static size_t pieces_count;
static uint64_t clock_now;

/* Returns its place. */
static size_t put_piece(struct piece p)
{
	size_t i = 0;

	assert_true(pieces_count < PIECES_MAX);
	while (i < pieces_count && piece[i].addr < p.addr)
		i++;
	memmove(&piece[i + 1], &piece[i], (pieces_count++ - i) * sizeof(p));
	piece[i] = p;
	return i;
}

static void cut_piece(size_t i)
{
	memmove(&piece[i], &piece[i + 1], (--pieces_count - i) * sizeof(piece[0]));
}

/* Smallest, then oldest. SIZE_MAX: none. */
static size_t best_piece(uint64_t size)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < pieces_count; i++) {
		if (!piece[i].free || piece[i].size < size)
			continue;
		if (best == SIZE_MAX || piece[i].size < piece[best].size ||
		    (piece[i].size == piece[best].size && piece[i].stamp < piece[best].stamp))
			best = i;
	}
	return best;
}

static void take_piece(size_t i, uint64_t size)
{
	struct piece rest = piece[i];

	piece[i].free = false;
	if (rest.size == size)
		return;
	piece[i].size = size;
	rest.addr += size;
	rest.size -= size;
	rest.first = false;
	rest.stamp = clock_now++;
	put_piece(rest);
}

static void free_piece(frag_addr_t addr)
{
	size_t i = 0;

	while (piece[i].addr != addr)
		i++;
	piece[i].free = true;
	piece[i].stamp = clock_now++;
	if (i && piece[i - 1].free && !piece[i].first) {
		piece[i - 1].size += piece[i].size;
		piece[i - 1].stamp = piece[i].stamp;
		cut_piece(i--);
	}
	if (i + 1 < pieces_count && piece[i + 1].free && !piece[i + 1].first) {
		piece[i].size += piece[i + 1].size;
		cut_piece(i + 1);
	}
}

TEST(quickpool_equals_its_model)
{
	uint64_t seed = 5;
	size_t chunks = 0;

	must_open_rig(&rig, "quickpool:first=2M,percent=0",
		      &(struct rig_options){ .total_bytes = GIB });
	for (unsigned i = 0; i < 30000; i++) {
		unsigned slot = frag_random(&seed) % 250;
		const struct frag_block *b = &rig.slots[slot].block;
		/* few sizes, so that equals are frequent */
		uint64_t bytes =
			(1 + frag_random(&seed) % 12) * (frag_random(&seed) % 5 ? 4096 : 65536);
		size_t best;

		if (rig.slots[slot].state != RIG_EMPTY) {
			assert_int_equal(rig_free(&rig, slot), 0);
			free_piece(b->addr);
			continue;
		}
		assert_int_equal(rig_alloc(&rig, slot, bytes, 0, 0), 0);
		best = best_piece(bytes);
		if (best == SIZE_MAX) {
			const struct rig_taken *c = &rig.taken[chunks++];

			assert_int_equal(c->bytes, (chunks > 1 ? 1 : 2) * MIB + 16);
			best = put_piece((struct piece){ .addr = c->addr,
							 .size = c->bytes - 16,
							 .free = true,
							 .first = true });
		}
		assert_int_equal(b->addr, piece[best].addr);
		take_piece(best, bytes);
	}
	assert_int_equal(chunks, rig.taken_count);
	assert_true(chunks > 10);
	rig_check_and_close(&rig);
}

/* ---- dynamicpool: one chunk as a map of units of 4 KiB ----------------------------------- */

#define UNITS 2048u

static bool used[UNITS];

/* First of the shortest runs of free units that has `n`; UNITS if there is none. */
static unsigned best_run(unsigned n)
{
	unsigned best = UNITS, best_length = UNITS + 1;

	for (unsigned i = 0, end; i < UNITS; i = end + 1) {
		for (end = i; end < UNITS && !used[end]; end++)
			;
		if (end - i >= n && end - i < best_length) {
			best = i;
			best_length = end - i;
		}
	}
	return best;
}

TEST(dynamicpool_equals_its_model)
{
	uint64_t seed = 5;
	unsigned refused = 0;

	/* a second chunk does not fit */
	must_open_rig(&rig, "dynamicpool:first=8M,next=64M",
		      &(struct rig_options){ .total_bytes = 64 * MIB });
	for (unsigned i = 0; i < 20000; i++) {
		unsigned slot = frag_random(&seed) % 200;
		unsigned n = 1 + frag_random(&seed) % 40, at;
		const struct frag_block *b = &rig.slots[slot].block;

		if (rig.slots[slot].state != RIG_EMPTY) {
			assert_int_equal(rig_free(&rig, slot), 0);
			memset(&used[(b->addr - rig.taken[0].addr) / 4096], 0, b->granted / 4096);
			continue;
		}
		at = best_run(n);
		if (rig_alloc(&rig, slot, n * 4096, 0, 0) == FRAG_OOM) {
			assert_int_equal(at, UNITS);
			refused++;
			continue;
		}
		assert_int_equal((b->addr - rig.taken[0].addr) / 4096, at);
		memset(&used[at], 1, n);
	}
	assert_int_equal(rig.taken_count, 1);
	assert_true(refused > 100);
	rig_check_and_close(&rig);
}

/* ---- buddy: arenas come and go ------------------------------------------------------------ */

/* The half of an arena of 2M that is free below a live one: the lowest there is, or 0. */
static frag_addr_t lowest_half(void)
{
	frag_addr_t lowest = 0;

	for (size_t i = 0; i < rig.count; i++) {
		const struct frag_block *b = &rig.slots[rig.by_addr[i]].block;
		frag_addr_t half = b->addr ^ MIB;
		bool taken = b->granted != MIB;

		for (size_t j = 0; j < rig.count && !taken; j++)
			taken = rig.slots[rig.by_addr[j]].block.addr == half;
		if (!taken && (!lowest || half < lowest))
			lowest = half;
	}
	return lowest;
}

/* Always the lowest free half serves, and then no other arena is opened. */
TEST(buddy_in_many_arenas)
{
	uint64_t seed = 1;

	must_open_rig(&rig, "buddy:arena=2M,give-back=free",
		      &(struct rig_options){ .total_bytes = 64 * GIB });
	for (unsigned i = 0; i < 4000; i++) {
		bool half = frag_random(&seed) & 1;
		unsigned slot = frag_random(&seed) % 256;
		const struct frag_block *b = &rig.slots[slot].block;
		frag_addr_t at;

		/* tides, so that many arenas are open, and then few */
		if (rig.slots[slot].state != RIG_EMPTY) {
			if (i / 500 & 1 || frag_random(&seed) % 8 == 0)
				assert_int_equal(rig_free(&rig, slot), 0);
			continue;
		}
		if (i / 500 & 1 && frag_random(&seed) % 8)
			continue;
		at = half ? lowest_half() : 0;
		assert_int_equal(rig_alloc(&rig, slot, half ? MIB : 2 * MIB, 0, 0), 0);
		if (at)
			assert_int_equal(b->addr, at);
		else
			assert_int_equal(b->cls, FRAG_CLASS_GROW);
		rig_check(&rig);
	}
	rig_check_and_close(&rig);
}
