/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies/quickpool.c, dynamicpool.c and common/quickcore.c: the rules with values worked out by
 * hand, those that the two share with both, and random runs of quickpool against a model that
 * walks one list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <quickcore.h>

#include "chunk_rig.h"

#define KIB FRAG_KIB
#define MIB FRAG_MIB

static struct crig rig;

/* Tests of both policies have the name of one as their state. */
static const char *named(void **state, const char *options)
{
	static char text[200];

	snprintf(text, sizeof(text), "%s%s", (const char *)*state, options);
	return text;
}

/* ---- by hand ---------------------------------------------------------------------------- */

/* The first chunk is of 512 MiB, later ones of 1 MiB or the request; 16 B on top of each. */
static void chunk_sizes(void **state)
{
	struct frag_block b;

	crig_open(&rig, named(state, ""), 2 * FRAG_GIB, 0);
	b = crig_alloc(&rig, 1, 0);
	assert_int_equal(b.granted, 16);
	assert_int_equal(b.cls, FRAG_CLASS_GROW);
	assert_int_equal(crig_alloc(&rig, 17, 0).granted, 32);
	crig_alloc(&rig, 512 * MIB - 48, 0);
	crig_alloc(&rig, 100, 0);
	crig_alloc(&rig, 3 * MIB, 0);
	assert_int_equal(crig_chunks(&rig), 3);
	assert_int_equal(crig_chunk(&rig, 0)->bytes, 512 * MIB + 16);
	assert_int_equal(crig_chunk(&rig, 1)->bytes, MIB + 16);
	assert_int_equal(crig_chunk(&rig, 2)->bytes, 3 * MIB + 16);
	crig_close(&rig);
}

/* Holes of 2, 1, 1 KiB, freed from the last to the first: among the equal ones the last hole
 * has been free the longest, whatever its address. */
static void oldest_of_equals(void **state)
{
	static const uint64_t kib[] = { 2, 1, 1, 1, 1, 1 };
	struct frag_block b[6];

	(void)state;
	crig_open(&rig, "quickpool:first=7K,next=0", 64 * MIB, 0);
	for (int i = 0; i < 6; i++)
		b[i] = crig_alloc(&rig, kib[i] * KIB, 0);
	for (int i = 4; i >= 0; i -= 2)
		crig_free(&rig, &b[i]);
	assert_int_equal(crig_alloc(&rig, 1000, 0).addr, b[4].addr);
	assert_int_equal(crig_alloc(&rig, 16, 0).addr,
			 b[4].addr + 1008); /* its rest, split exactly */
	assert_int_equal(crig_alloc(&rig, KIB, 0).addr, b[2].addr);
	assert_int_equal(crig_alloc(&rig, KIB, 0).addr, b[0].addr);
	crig_close(&rig);
}

/* Chunks side by side in memory: the second heads its own, so they do not merge. */
static void keeps_chunks_apart(void **state)
{
	struct frag_block a, b;

	crig_open(&rig, named(state, ":first=0,next=0,percent=0"), 64 * MIB, 0);
	a = crig_alloc(&rig, 2 * MIB - 16, 0);
	b = crig_alloc(&rig, 2 * MIB - 16, 0);
	crig_free(&rig, &b);
	crig_free(&rig, &a);
	assert_int_equal(crig_check(&rig).blocks_count, 2);
	assert_int_equal(crig_check(&rig).releasable_bytes, 4 * MIB - 32);
	crig_trim(&rig);
	assert_int_equal(rig.dev->reserved_bytes, 0);
	crig_close(&rig);
}

static void merges_with_both(void **state)
{
	struct frag_block b[4];
	struct frag_usage u;

	crig_open(&rig, named(state, ":first=4K,coalesce=percent,percent=0"), 64 * MIB, 0);
	for (int i = 0; i < 4; i++)
		b[i] = crig_alloc(&rig, KIB, 0);
	crig_free(&rig, &b[0]);
	crig_free(&rig, &b[2]);
	assert_int_equal(crig_check(&rig).largest_free_bytes, KIB);
	crig_free(&rig, &b[1]);
	u = crig_check(&rig);
	assert_int_equal(u.largest_free_bytes, 3 * KIB);
	assert_int_equal(u.releasable_bytes, 0);
	crig_free(&rig, &b[3]);
	assert_int_equal(crig_check(&rig).releasable_bytes, 4 * KIB);
	crig_trim(&rig);
	assert_int_equal(rig.dev->reserved_bytes, 0);
	crig_close(&rig);
}

/*
 * The default: chunks of 4, 3 and 2 MiB. At first 8 MiB are live at once, in the end
 * nothing: all goes back, and the high-water mark of 8 MiB is taken as one chunk.
 */
static void coalesces_to_high_water_mark(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "quickpool:first=4M", 64 * MIB, 0);
	a = crig_alloc(&rig, 3 * MIB, 0);
	b = crig_alloc(&rig, 3 * MIB, 0);
	c = crig_alloc(&rig, 2 * MIB, 0);
	crig_free(&rig, &b);
	crig_free(&rig, &a);
	assert_int_equal(crig_check(&rig).free_bytes, 7 * MIB);
	crig_free(&rig, &c);
	/* taken 4, 3, 2; given back 2, 3, 4, in order of size; taken 8 */
	assert_int_equal(rig.events_count, 7);
	assert_int_equal(crig_event(&rig, 3)->bytes, 2 * MIB + 16);
	assert_int_equal(crig_event(&rig, 4)->bytes, 3 * MIB + 16);
	assert_int_equal(crig_event(&rig, 5)->bytes, 4 * MIB + 16);
	assert_int_equal(crig_event(&rig, 6)->bytes, 8 * MIB + 16);
	assert_int_equal(crig_check(&rig).releasable_bytes, 8 * MIB);
	/* one chunk alone is left as it is */
	a = crig_alloc(&rig, MIB, 0);
	crig_free(&rig, &a);
	assert_int_equal(rig.events_count, 7);
	crig_close(&rig);
}

/* The new chunk is never below `first`, because the pool holds nothing when it is taken. */
static void coalesces_to_first_minimum(void **state)
{
	struct frag_block a, b;

	crig_open(&rig, named(state, ":first=4M"), 64 * MIB, 0);
	a = crig_alloc(&rig, 4 * MIB, 0);
	crig_free(&rig, &a);
	b = crig_alloc(&rig, 5 * MIB, 0);
	a = crig_alloc(&rig, MIB, 0);
	crig_free(&rig, &b);
	crig_free(&rig, &a);
	assert_int_equal(crig_chunk(&rig, 2)->bytes, 6 * MIB + 16); /* mark: 5 + 1 */
	crig_close(&rig);
}

/* percent-hwm with 50: releasable 4 of 9 is too little, 6 of 9 is enough; then 3 stay, and
 * the mark of 9 needs 6 more, as one chunk. */
static void coalesces_at_percent(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "quickpool:first=4M,percent=50", 64 * MIB, 0);
	a = crig_alloc(&rig, 4 * MIB, 0);
	b = crig_alloc(&rig, 2 * MIB, 0);
	c = crig_alloc(&rig, 3 * MIB, 0);
	crig_free(&rig, &a);
	assert_int_equal(rig.events_count, 3);
	crig_free(&rig, &b);
	assert_int_equal(rig.events_count, 6);
	assert_int_equal(crig_event(&rig, 3)->bytes, 2 * MIB + 16);
	assert_int_equal(crig_event(&rig, 4)->bytes, 4 * MIB + 16);
	assert_int_equal(crig_event(&rig, 5)->bytes, 6 * MIB + 16);
	crig_free(&rig, &c);
	crig_close(&rig);
}

/* blocks=2: with the second releasable chunk; to the size held before. */
static void coalesces_at_blocks(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "quickpool:first=4M,coalesce=blocks,blocks=2", 64 * MIB, 0);
	a = crig_alloc(&rig, 4 * MIB, 0);
	b = crig_alloc(&rig, 2 * MIB, 0);
	c = crig_alloc(&rig, 3 * MIB, 0);
	crig_free(&rig, &a);
	assert_int_equal(rig.events_count, 3);
	crig_free(&rig, &c);
	/* 3 and 4 go, 9 were held, 2 stay: 7 are taken */
	assert_int_equal(rig.events_count, 6);
	assert_int_equal(crig_event(&rig, 5)->bytes, 7 * MIB + 16);
	crig_free(&rig, &b);
	crig_close(&rig);
}

/* The size in the mark, not the size held: with blocks-hwm nothing is taken while what
 * stays reaches the mark. */
static void high_water_mark_or_held(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "quickpool:first=8M,next=8M,coalesce=blocks-hwm,blocks=1", 64 * MIB, 0);
	a = crig_alloc(&rig, 8 * MIB, 0);
	b = crig_alloc(&rig, 8 * MIB, 0);
	crig_free(&rig, &a);
	c = crig_alloc(&rig, MIB, 0);
	/* mark 16; held 16; both chunks free at the end: 16 taken as one */
	crig_free(&rig, &c);
	crig_free(&rig, &b);
	assert_int_equal(crig_event(&rig, 4)->bytes, 16 * MIB + 16);
	crig_close(&rig);
	crig_open(&rig, "quickpool:first=8M,next=8M,coalesce=blocks-hwm,blocks=1", 64 * MIB, 0);
	a = crig_alloc(&rig, MIB, 0);
	b = crig_alloc(&rig, 7 * MIB + 16, 0);
	c = crig_alloc(&rig, 7 * MIB + 16, 0);
	/* mark 15 MiB + 32, 24 held. One chunk free: the 16 that stay reach the mark. The next one:
	 * 8 would stay, 7 MiB + 32 are missing, but the smallest chunk is 8, as large as it is */
	crig_free(&rig, &b);
	assert_int_equal(rig.events_count, 4);
	assert_int_equal(crig_event(&rig, 3)->kind, FRAG_SEGMENT_FREE);
	crig_free(&rig, &c);
	assert_int_equal(rig.events_count, 4);
	crig_free(&rig, &a);
	crig_close(&rig);
}

/* One releasable chunk beside other free parts. Chunks of 10 and 10, 9 of the first and 10 of the
 * second in use: mark 19. The second is freed: it is half of what is held, goes, and 19 - 10 come
 * for it. Held then 19, and freeing what is left of the mark changes nothing: 9 would come for
 * 9. */
static void one_chunk_becomes_smaller(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "quickpool:first=10M,next=10M,percent=40,alignment=1", 64 * MIB, 0);
	a = crig_alloc(&rig, 9 * MIB, 0);
	b = crig_alloc(&rig, 10 * MIB, 0);
	crig_free(&rig, &b);
	assert_int_equal(rig.events_count, 2); /* 10 at least are taken: it would be the same */
	crig_free(&rig, &a);
	crig_close(&rig);

	crig_open(&rig, "quickpool:first=10M,next=1M,percent=40,alignment=1", 64 * MIB, 0);
	a = crig_alloc(&rig, 9 * MIB, 0);
	b = crig_alloc(&rig, 10 * MIB, 0);
	crig_free(&rig, &b);
	assert_int_equal(rig.events_count, 4);
	assert_int_equal(crig_event(&rig, 2)->kind, FRAG_SEGMENT_FREE);
	assert_int_equal(crig_event(&rig, 3)->bytes, 9 * MIB + 1);
	b = crig_alloc(&rig, 9 * MIB, 0);
	c = crig_alloc(&rig, MIB, 0); /* the rest of the first chunk: mark 19 as before */
	crig_free(&rig, &c);
	crig_free(&rig, &b);
	assert_int_equal(rig.events_count, 4);
	crig_free(&rig, &a); /* all is free: two chunks become one of 19 */
	assert_int_equal(crig_event(&rig, 6)->bytes, 19 * MIB + 1);
	crig_close(&rig);
}

/* With blocks=1 a chunk goes at once if another part can hold what it held; else it stays. */
static void one_chunk_goes(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "quickpool:first=8M,coalesce=blocks,blocks=1,alignment=1", 64 * MIB, 0);
	a = crig_alloc(&rig, 4 * MIB, 0);
	b = crig_alloc(&rig, 3 * MIB, 0); /* 1 is left of the first chunk */
	c = crig_alloc(&rig, 2 * MIB, 0);
	crig_free(&rig, &c); /* 2 would come for 2 */
	assert_int_equal(rig.events_count, 2);
	c = crig_alloc(&rig, 2 * MIB, 0);
	crig_free(&rig, &b); /* no chunk is free */
	assert_int_equal(rig.events_count, 2);
	crig_free(&rig, &c); /* the 4 that are free there are enough for 2 */
	assert_int_equal(rig.events_count, 3);
	assert_int_equal(crig_event(&rig, 2)->bytes, 2 * MIB + 1);
	crig_free(&rig, &a);
	crig_close(&rig);
}

/* A refusal: wholly free chunks go, then the same size is tried once more. */
static void releases_and_retries(void **state)
{
	struct frag_block a, b, c;

	crig_open(&rig, named(state, ":first=0,next=0,percent=0"), 64 * MIB, 0);
	a = crig_alloc(&rig, 19 * MIB, 0);
	b = crig_alloc(&rig, 20 * MIB, 0);
	crig_free(&rig, &a);
	c = crig_alloc(&rig, 30 * MIB, 0);
	assert_int_equal(c.cls, FRAG_CLASS_RELEASE);
	assert_int_equal(crig_event(&rig, 2)->kind, FRAG_SEGMENT_FREE);
	assert_int_equal(crig_try(&rig, 30 * MIB, 0, &a), FRAG_OOM);
	crig_free(&rig, &b);
	crig_free(&rig, &c);
	crig_close(&rig);
}

/* 512 MiB do not fit: refused, however small the request. */
static void insists_on_the_minimum(void **state)
{
	struct frag_block b;

	crig_open(&rig, named(state, ""), 256 * MIB, 0);
	assert_int_equal(crig_try(&rig, 1, 0, &b), FRAG_OOM);
	crig_close(&rig);
	crig_open(&rig, named(state, ""), FRAG_GIB, 512 * MIB); /* 16 B too many */
	assert_int_equal(crig_try(&rig, 1, 0, &b), FRAG_OOM);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_MALLOC), 0);
	crig_close(&rig);
}

static void heuristics(void **state)
{
	struct frag_coalesce_state s = {
		.actual = 1000, .releasable = 500, .aligned_hwm = 700, .releasable_count = 3
	};
	struct frag_coalesce c = { .rule = FRAG_COALESCE_PERCENT, .percent = 50, .blocks = 3 };

	(void)state;
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

/* Addresses are aligned also where the upstream's are not. */
static void aligns_addresses(void **state)
{
	struct frag_block a, b;

	crig_open(&rig,
		  named(state, ":first=0,next=0,alignment=4K,upstream=(quickpool:first=1M,"
			       "alignment="
			       "16)"),
		  64 * MIB, 0);
	a = crig_alloc(&rig, 100, 0);
	b = crig_alloc(&rig, 5000, 0);
	assert_int_equal(a.addr % 4096, 0);
	assert_int_equal(b.addr % 4096, 0);
	assert_int_equal(b.granted, 8192);
	rig.largest_may_be_unknown = true;
	crig_check(&rig);
	crig_free(&rig, &a);
	crig_free(&rig, &b);
	crig_soak(&rig, 3000, 80, 2, 64 * KIB, 3);
	crig_close(&rig);
}

static void refuses_wrong_options(void **state)
{
	crig_refused_text(named(state, ":alignment=48"), "power of two");
	crig_refused_text(named(state, ":coalesce=percents"), "did you mean 'percent'");
	crig_refused_text(named(state, ":percent=101"), "out of range");
}

/* ---- a model that walks one list -------------------------------------------------------- */

#define PIECES_MAX 4096
#define SLOTS 250

struct piece {
	frag_addr_t addr;
	uint64_t size, stamp;
	bool free, first; /* first: of its chunk */
};

/* All pieces, in order of address. */
static struct piece piece[PIECES_MAX];
static size_t pieces_count;
static uint64_t clock_now;

static void put_piece(struct piece p)
{
	size_t i = 0;

	assert_true(pieces_count < PIECES_MAX);
	while (i < pieces_count && piece[i].addr < p.addr)
		i++;
	memmove(&piece[i + 1], &piece[i], (pieces_count++ - i) * sizeof(p));
	piece[i] = p;
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

static void equals_the_model(void **state)
{
	static struct frag_block slots[SLOTS];
	uint64_t seed = 5;
	size_t chunks = 0;

	(void)state;
	crig_open(&rig, "quickpool:first=2M,percent=0", FRAG_GIB, 0);
	for (unsigned i = 0; i < 30000; i++) {
		struct frag_block *b = &slots[crig_random(&seed) % SLOTS];
		/* few sizes, so that equals are frequent */
		uint64_t bytes =
			(1 + crig_random(&seed) % 12) * (crig_random(&seed) % 5 ? 4096 : 65536);
		size_t best;

		if (b->granted) {
			crig_free(&rig, b);
			free_piece(b->addr);
			b->granted = 0;
			continue;
		}
		*b = crig_alloc(&rig, bytes, 0);
		best = best_piece(bytes);
		if (best == SIZE_MAX) {
			const struct crig_event *c = crig_chunk(&rig, chunks++);

			assert_int_equal(c->bytes, (chunks > 1 ? MIB : 2 * MIB) + 16);
			put_piece((struct piece){ .addr = c->addr,
						  .size = c->bytes - 16,
						  .free = true,
						  .first = true });
			best = 0;
			while (piece[best].addr != c->addr)
				best++;
		}
		assert_int_equal(b->addr, piece[best].addr);
		take_piece(best, bytes);
	}
	assert_int_equal(chunks, crig_chunks(&rig));
	assert_true(chunks > 10);
	crig_close(&rig);
}

static void usage_in_random_runs(void **state)
{
	static const char *const texts[] = {
		":first=8M",
		":first=8M,coalesce=percent,percent=30",
		":first=8M,coalesce=percent-hwm,percent=1",
		":first=1M,coalesce=blocks,blocks=2",
		":first=1M,coalesce=blocks-hwm,blocks=0",
		":first=1M,next=0,upstream=(rmm-pool:initial=4M),coalesce=blocks",
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		crig_open(&rig, named(state, texts[i]), 128 * MIB, 0);
		rig.largest_may_be_unknown =
			i == 5; /* behind each chunk a rest that cannot be used */
		crig_soak(&rig, 6000, 120, 3, 4 * MIB, i);
		crig_trim(&rig);
		assert_int_equal(crig_check(&rig).releasable_bytes, 0);
		crig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(chunk_sizes, "quickpool"),
		cmocka_unit_test_prestate(chunk_sizes, "dynamicpool"),
		cmocka_unit_test(oldest_of_equals),
		cmocka_unit_test_prestate(keeps_chunks_apart, "quickpool"),
		cmocka_unit_test_prestate(keeps_chunks_apart, "dynamicpool"),
		cmocka_unit_test_prestate(merges_with_both, "quickpool"),
		cmocka_unit_test_prestate(merges_with_both, "dynamicpool"),
		cmocka_unit_test(coalesces_to_high_water_mark),
		cmocka_unit_test_prestate(coalesces_to_first_minimum, "quickpool"),
		cmocka_unit_test_prestate(coalesces_to_first_minimum, "dynamicpool"),
		cmocka_unit_test(coalesces_at_percent),
		cmocka_unit_test(coalesces_at_blocks),
		cmocka_unit_test(one_chunk_becomes_smaller),
		cmocka_unit_test(one_chunk_goes),
		cmocka_unit_test(high_water_mark_or_held),
		cmocka_unit_test_prestate(releases_and_retries, "quickpool"),
		cmocka_unit_test_prestate(releases_and_retries, "dynamicpool"),
		cmocka_unit_test_prestate(insists_on_the_minimum, "quickpool"),
		cmocka_unit_test_prestate(insists_on_the_minimum, "dynamicpool"),
		cmocka_unit_test(heuristics),
		cmocka_unit_test_prestate(aligns_addresses, "quickpool"),
		cmocka_unit_test_prestate(aligns_addresses, "dynamicpool"),
		cmocka_unit_test_prestate(refuses_wrong_options, "quickpool"),
		cmocka_unit_test_prestate(refuses_wrong_options, "dynamicpool"),
		cmocka_unit_test(equals_the_model),
		cmocka_unit_test_prestate(usage_in_random_runs, "quickpool"),
		cmocka_unit_test_prestate(usage_in_random_runs, "dynamicpool"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
