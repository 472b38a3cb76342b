/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a real card's managed memory is resident: what is taken, against sequences measured on an
 * H200; what is resident, against the simulated card; chunks of tails, against what the rule says.
 */
#include "test.h"

#include <frag/device.h>

#include "device/sim/uvm_resident.h"
#include "must.h"

#define BASE (1ull << 40)

static uint64_t taken_mib(const struct uvm_resident *b)
{
	return frag_uvmroots_taken(&b->roots) / MIB;
}

static void add(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes)
{
	assert_true(frag_uvm_resident_reserve(b));
	frag_uvm_resident_add(b, addr, bytes);
}

static void touch(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes, bool prefetch)
{
	assert_true(frag_uvm_resident_reserve(b));
	frag_uvm_resident_touch(b, addr, bytes, prefetch);
}

/* The driver's places: whole pages, or as many to a page as fit. */
static frag_addr_t place(uint64_t bytes, unsigned i)
{
	uint64_t to_a_page = UVM_BLOCK / bytes;

	if (!to_a_page)
		return BASE + i * frag_round_up(bytes, UVM_BLOCK);
	return BASE + i / to_a_page * UVM_BLOCK + i % to_a_page * bytes;
}

/* ---- taken: recorded on an H200, driver 580.159.04 ------------------------------ */

/* MiB by which free memory fell until all was touched, and until all was freed again: by touches,
 * and by prefetches from another state. */
struct line {
	uint64_t bytes, touched;
	unsigned count;
	struct {
		int64_t took, net;
	} by[2];
};

static const struct line measured[] = {
	{ 3 * MIB, 3 * MIB, 64, { { 128, -64 }, { 128, -64 } } },
	{ 2 * MIB + 64 * KIB, 2 * MIB + 64 * KIB, 64, { { 128, -4 }, { 128, -4 } } },
	{ 2 * MIB + 4 * KIB, 2 * MIB + 4 * KIB, 64, { { 128, -8 }, { 128, -8 } } },
	{ 100 * KIB, 100 * KIB, 128, { { 0, -14 }, { 128, 114 } } },
	{ 512, 512, 512, { { 0, -2 }, { 0, -2 } } },
	{ 2 * MIB, 2 * MIB, 64, { { 128, 0 }, { 128, 0 } } },
	{ 1 * MIB, 1 * MIB, 64, { { 128, 64 }, { 0, -64 } } },
	{ 1536 * KIB, 1536 * KIB, 64, { { 128, 0 }, { 128, 0 } } },
	{ 64 * MIB, 1, 8, { { 0, -16 }, { 0, -16 } } },
	{ 64 * MIB, 3 * MIB, 8, { { 0, -32 }, { 0, -32 } } },
	{ 7 * MIB, 7 * MIB, 32, { { 256, 32 }, { 256, 32 } } },
	{ 1024 * MIB, 1024 * MIB, 4, { { 4096, 0 }, { 4096, 0 } } },
};

static void play(struct uvm_resident *b, const struct line *l, bool prefetch)
{
	int64_t before = (int64_t)taken_mib(b);

	for (unsigned i = 0; i < l->count; i++) {
		add(b, place(l->bytes, i), l->bytes);
		touch(b, place(l->bytes, i), l->touched, prefetch);
	}
	assert_int_equal((int64_t)taken_mib(b) - before, l->by[prefetch].took);
	for (unsigned i = 0; i < l->count; i++)
		frag_uvm_resident_free(b, place(l->bytes, i));
	assert_int_equal((int64_t)taken_mib(b) - before, l->by[prefetch].net);
	assert_int_equal(b->resident_bytes, 0);
	assert_int_equal(b->roots.used_count, 0);
}

TEST(test_measured)
{
	FRAG_AUTO(frag_uvm_resident_release) struct uvm_resident b = { 0 };

	frag_uvm_resident_init(&b);
	for (unsigned prefetch = 0; prefetch < 2; prefetch++) {
		add(&b, BASE, 4 * MIB);
		touch(&b, BASE, 4 * MIB, prefetch);
		assert_int_equal(taken_mib(&b), prefetch ? 124 : 128);
		frag_uvm_resident_free(&b, BASE);
		assert_int_equal(taken_mib(&b), prefetch ? 120 : 124);
	}
	for (unsigned prefetch = 0; prefetch < 2; prefetch++)
		for (size_t i = 0; i < FRAG_ARRAY_LEN(measured); i++)
			play(&b, &measured[i], prefetch);
	assert_int_equal(taken_mib(&b), 32); /* "end: 32 MiB less than start" */
}

/* ---- taken: after each step of two recordings ------------------------------------ */

struct step {
	frag_addr_t addr;
	uint64_t bytes; /* 0: freed */
	uint64_t taken_mib;
};

#include "h200_managed.inc"

static void replay_steps(const struct step *steps, size_t count)
{
	FRAG_AUTO(frag_uvm_resident_release) struct uvm_resident b = { 0 };

	frag_uvm_resident_init(&b);
	for (size_t i = 0; i < count; i++) {
		if (steps[i].bytes) {
			add(&b, BASE + steps[i].addr, steps[i].bytes);
			touch(&b, BASE + steps[i].addr, steps[i].bytes, true);
		} else {
			frag_uvm_resident_free(&b, BASE + steps[i].addr);
		}
		if (taken_mib(&b) != steps[i].taken_mib)
			fail_msg("step %zu: %llu MiB are taken, not %llu", i, (ull)taken_mib(&b),
				 (ull)steps[i].taken_mib);
	}
}

TEST(test_recorded)
{
	replay_steps(mempool, FRAG_ARRAY_LEN(mempool));
	replay_steps(streams, FRAG_ARRAY_LEN(streams));
}

/* ---- chunks of tails ------------------------------------------------------------ */

/* Free chunks are used in the order in which they became free; a root goes with its last one. */
TEST(test_tails)
{
	const uint64_t half = 3 * MIB; /* a block, and a tail of half a root */
	FRAG_AUTO(frag_uvm_resident_release) struct uvm_resident b = { 0 };

	frag_uvm_resident_init(&b);
	for (unsigned i = 0; i < 4; i++) {
		add(&b, place(half, i), half);
		touch(&b, place(half, i), half, true);
	}
	assert_int_equal(b.roots.used_count, 4 + 2);
	frag_uvm_resident_free(&b, place(half, 0)); /* half of the first root */
	frag_uvm_resident_free(&b, place(half, 2)); /* half of the second one */
	assert_int_equal(b.roots.used_count, 2 + 2);
	/* a tail of 24 groups: half of the first root, a quarter of the second */
	add(&b, BASE + 64 * MIB, 3584 * KIB);
	touch(&b, BASE + 64 * MIB, 3584 * KIB, true);
	assert_int_equal(b.roots.used_count, 3 + 2);
	frag_uvm_resident_free(&b, place(half, 1));
	assert_int_equal(b.roots.used_count, 2 + 2); /* the first root still has half a tail */
	frag_uvm_resident_free(&b, BASE + 64 * MIB);
	assert_int_equal(b.roots.used_count, 1 + 1); /* the second one is the last one's */
	frag_uvm_resident_free(&b, place(half, 3));
	assert_int_equal(b.roots.used_count, 0);
	assert_int_equal(b.roots.spare_count, 64 - 6 - 1);
}

/* What is touched of a tail takes a chunk for each group; the rest takes none. */
TEST(test_part_of_a_tail)
{
	FRAG_AUTO(frag_uvm_resident_release) struct uvm_resident b = { 0 };

	frag_uvm_resident_init(&b);
	add(&b, BASE, 3 * MIB);
	touch(&b, BASE, 1, true);
	assert_int_equal(b.roots.used_count, 1);
	touch(&b, BASE, 2 * MIB, true);
	assert_int_equal(b.roots.used_count, 1);
	assert_int_equal(b.resident_bytes, 2 * MIB);
	touch(&b, BASE, 2 * MIB + 1, true);
	assert_int_equal(b.roots.used_count, 2);
	assert_int_equal(b.resident_bytes, 2 * MIB + 64 * KIB);
	/* nine of the 16 groups that there are: more than 51 % */
	touch(&b, BASE, 2 * MIB + 9 * 64 * KIB, false);
	assert_int_equal(b.resident_bytes, 3 * MIB);
	assert_int_equal(b.roots.used_count, 2);
	frag_uvm_resident_free(&b, BASE);
	assert_int_equal(frag_uvmroots_taken(&b.roots), (64 - 2) * UVM_BLOCK);
}

/* One byte less than a page of the host makes no tail of a block; a whole page less does, of 32. */
TEST(test_almost_a_block)
{
	FRAG_AUTO(frag_uvm_resident_release) struct uvm_resident b = { 0 };

	frag_uvm_resident_init(&b);
	add(&b, BASE, 4 * MIB - 4 * KIB);
	touch(&b, BASE, 4 * MIB - 4 * KIB, true);
	assert_non_null(frag_uvm_resident_find(&b, BASE)->tail.first);
	assert_int_equal(b.resident_bytes, 4 * MIB);
	assert_int_equal(b.roots.used_count, 2);
	assert_null(b.roots.free[UVM_CHUNK_GROUP].first);
	add(&b, BASE + 4 * MIB, 4 * MIB - 4 * KIB + 1);
	touch(&b, BASE + 4 * MIB, 3 * MIB, true);
	assert_null(frag_uvm_resident_find(&b, BASE + 4 * MIB)->tail.first);
	assert_int_equal(b.roots.used_count, 4);
	frag_uvm_resident_free(&b, BASE + 4 * MIB);
	frag_uvm_resident_free(&b, BASE);
	assert_int_equal(b.roots.used_count + b.resident_bytes, 0);
}

/* A request that lies across two pages, as no known card places one, stands alone. */
TEST(test_across_pages)
{
	FRAG_AUTO(frag_uvm_resident_release) struct uvm_resident b = { 0 };

	frag_uvm_resident_init(&b);
	add(&b, BASE + MIB, 1536 * KIB);
	assert_null(frag_uvm_resident_find(&b, BASE + MIB)->page);
	touch(&b, BASE + MIB, 1536 * KIB, false);
	assert_int_equal(b.resident_bytes, 1536 * KIB);
	assert_int_equal(b.roots.used_count, 1);
	frag_uvm_resident_free(&b, BASE + MIB);
	assert_null(frag_uvm_resident_find(&b, BASE + MIB));
	assert_int_equal(b.roots.used_count + b.resident_bytes, 0);
}

/* ---- resident: as on the simulated card ------------------------------------------ */

#define LIVE 60

struct both {
	struct uvm_resident resident;
	struct frag_device *card;
	frag_addr_t at[LIVE];
	uint64_t bytes[LIVE];
	uint64_t seed;
};

static uint64_t random_bytes(struct both *s)
{
	uint64_t n = test_roll(&s->seed);

	switch (test_roll(&s->seed) % 4) {
	case 0:
		return n % (512 * KIB) + 1;
	case 1:
		return n % (4 * MIB) + 1;
	case 2:
		return (n % 40 + 1) * 64 * KIB;
	default:
		return n % (40 * MIB) + 1;
	}
}

static void check_both(const struct both *s)
{
	const struct uvm_resident *b = &s->resident;

	assert_int_equal(b->resident_bytes, s->card->reserved_bytes);
	assert_true(b->resident_bytes <= b->roots.used_count * UVM_BLOCK);
	assert_true(b->roots.spare_count < UVM_BATCH);
}

static void random_step(struct both *s)
{
	unsigned i = (unsigned)(test_roll(&s->seed) % LIVE);
	bool prefetch = test_roll(&s->seed) % 2;
	uint64_t bytes;

	if (!s->bytes[i]) {
		s->bytes[i] = random_bytes(s);
		assert_int_equal(frag_dev_managed_alloc(s->card, s->bytes[i], &s->at[i], NULL), 0);
		add(&s->resident, s->at[i], s->bytes[i]);
	} else if (test_roll(&s->seed) % 4 == 0) {
		assert_int_equal(frag_dev_managed_free(s->card, s->at[i], s->bytes[i], NULL), 0);
		frag_uvm_resident_free(&s->resident, s->at[i]);
		s->bytes[i] = 0;
	} else {
		bytes = test_roll(&s->seed) % 3 ? test_roll(&s->seed) % s->bytes[i] + 1
						: s->bytes[i];
		assert_int_equal(frag_dev_managed_touch(s->card, s->at[i], bytes, prefetch, NULL),
				 0);
		touch(&s->resident, s->at[i], bytes, prefetch);
	}
	check_both(s);
}

TEST(test_resident_as_simulated)
{
	struct frag_sim_config cfg = { .total_bytes = 16 * GIB };
	struct both s = { .seed = 11 };

	frag_uvm_resident_init(&s.resident);
	s.card = must_open_sim(&cfg);
	for (int n = 0; n < 20000; n++)
		random_step(&s);
	for (unsigned i = 0; i < LIVE; i++) {
		if (s.bytes[i])
			frag_uvm_resident_free(&s.resident, s.at[i]);
	}
	assert_int_equal(s.resident.resident_bytes, 0);
	assert_int_equal(s.resident.roots.used_count, 0);
	assert_null(s.resident.roots.free[UVM_CHUNK_GROUP].first);
	assert_null(s.resident.roots.free[UVM_CHUNK_PAGE].first);
	frag_uvm_resident_release(&s.resident);
	frag_dev_close(s.card);
}

TEST(test_out_of_memory)
{
	struct uvm_resident b;

	frag_uvm_resident_init(&b);
	for (uint64_t n = 1; n <= 5; n++) {
		frag_host_fail_after(n);
		assert_false(frag_uvm_resident_reserve(&b));
		frag_host_fail_after(0);
		frag_uvm_resident_release(&b);
	}
	add(&b, BASE, 512);
	touch(&b, BASE, 512, false);
	assert_int_equal(b.resident_bytes, 64 * KIB);
	frag_uvm_resident_release(&b);
}
