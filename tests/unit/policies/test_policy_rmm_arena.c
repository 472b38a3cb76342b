/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies/rmm_arena.c: the rules with values worked out by hand, and random runs
 * against a model that walks superblocks and free spans in order of address.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chunk_rig.h"

#define KIB FRAG_KIB
#define MIB FRAG_MIB

static struct crig rig;
static frag_addr_t base; /* of the arena */

static void start(const char *text, uint64_t total)
{
	crig_open(&rig, text, total, 0);
	base = 0;
}

/* Offset of a new block in the arena. */
static uint64_t at(struct frag_block *b, uint64_t bytes, uint32_t stream)
{
	*b = crig_alloc(&rig, bytes, stream);
	base = crig_chunk(&rig, 0)->addr;
	return b->addr - base;
}

/* ---- by hand --------------------------------------------------------------------------- */

static void rounds_to_classes(void **state)
{
	static const uint64_t vector[][2] = {
		{ 1, 256 },
		{ 257, 512 },
		{ 2048, 2048 },
		{ 2049, 2560 },
		{ 4097, 5 * 1024 },
		{ 48 * 1024, 48 * 1024 },
		{ 48 * 1024 + 1, 54 * 1024 },
		{ 54 * 1024, 54 * 1024 },
		{ 54 * 1024 + 1, 64 * 1024 },
		{ 56 * 1024, 64 * 1024 },
		{ 112 * 1024, 112 * 1024 },
		{ (1 << 20) + 1, 1280 * 1024 },
	};
	struct frag_block b;

	(void)state;
	start("rmm-arena:size=16M,size-classes=true", 64 * MIB);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(vector); i++) {
		b = crig_alloc(&rig, vector[i][0], 0);
		assert_int_equal(b.granted, vector[i][1]);
	}
	crig_close(&rig);
	start("rmm-arena:size=16M", 64 * MIB);
	b = crig_alloc(&rig, 48 * KIB + 1, 0);
	assert_int_equal(b.granted, 48 * KIB + 256);
	crig_close(&rig);
}

/* Half of what the card, or the limit of the process, has left; one chunk for good. */
static void takes_half(void **state)
{
	struct frag_block b;

	(void)state;
	crig_open(&rig, "rmm-arena", 64 * MIB, 0);
	crig_alloc(&rig, 1000, 0);
	assert_int_equal(crig_chunk(&rig, 0)->bytes, 32 * MIB);
	assert_int_equal(crig_try(&rig, 33 * MIB, 0, &b), FRAG_OOM);
	assert_int_equal(crig_chunks(&rig), 1);
	crig_trim(&rig);
	assert_int_equal(rig.dev->reserved_bytes, 32 * MIB);
	crig_close(&rig);
	crig_open(&rig, "rmm-arena", 64 * MIB, 40 * MIB);
	crig_alloc(&rig, 1000, 0);
	assert_int_equal(crig_chunk(&rig, 0)->bytes, 20 * MIB);
	crig_close(&rig);
}

/* Each stream cuts its own superblock of 1 MiB; above 1 MiB one of the size. */
static void streams_have_superblocks(void **state)
{
	struct frag_block b;

	(void)state;
	start("rmm-arena:size=8M", 64 * MIB);
	assert_int_equal(at(&b, 256, 0), 0);
	assert_int_equal(b.cls, FRAG_CLASS_GROW);
	assert_int_equal(at(&b, 256, 1), MIB);
	assert_int_equal(b.cls, FRAG_CLASS_SPLIT);
	assert_int_equal(at(&b, 256, 0), 256);
	assert_int_equal(at(&b, 3 * MIB, 1), 2 * MIB);
	assert_int_equal(at(&b, MIB, 0), 5 * MIB); /* exactly 1 MiB is small */
	assert_int_equal(b.cls, FRAG_CLASS_HIT);
	assert_int_equal(at(&b, MIB + 1, 0), 6 * MIB);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), 0);
	crig_close(&rig);
}

/* Holes of 64, 16 and 32 KiB: 16 KiB go into the first, not into the best. */
static void first_fit(void **state)
{
	static const uint64_t kib[] = { 64, 1, 16, 1, 32, 1 };
	struct frag_block b[6], got;

	(void)state;
	start("rmm-arena:size=8M", 64 * MIB);
	for (int i = 0; i < 6; i++)
		b[i] = crig_alloc(&rig, kib[i] * KIB, 0);
	for (int i = 0; i < 6; i += 2)
		crig_free(&rig, &b[i]);
	got = crig_alloc(&rig, 16 * KIB, 0);
	assert_int_equal(got.addr, b[0].addr);
	got = crig_alloc(&rig, 64 * KIB, 0); /* behind all holes */
	assert_int_equal(got.addr, b[5].addr + KIB);
	crig_close(&rig);
}

/* A large block is freed after a synchronise; empty superblocks merge again. */
static void large_blocks_merge(void **state)
{
	struct frag_block a, b, c, d;

	(void)state;
	start("rmm-arena:size=8M", 64 * MIB);
	at(&a, 2 * MIB, 0);
	at(&b, 2 * MIB, 1);
	at(&c, 2 * MIB, 0);
	crig_free(&rig, &a);
	crig_free(&rig, &c);
	crig_free(&rig, &b);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), 3);
	assert_int_equal(at(&d, 8 * MIB, 0), 0);
	assert_int_equal(d.cls, FRAG_CLASS_HIT);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_DEVICE_SYNC), 0);
	crig_close(&rig);
}

/* Superblocks of 1 MiB stay with their stream, also empty, until nothing else fits. */
static void hands_back_at_need(void **state)
{
	struct frag_block a, b;

	(void)state;
	start("rmm-arena:size=8M", 64 * MIB);
	at(&a, 1000, 0);
	crig_free(&rig, &a);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), 0);
	assert_int_equal(at(&b, 7 * MIB, 1), MIB);
	crig_free(&rig, &b);
	assert_int_equal(at(&b, 8 * MIB, 1), 0);
	assert_int_equal(b.cls, FRAG_CLASS_RELEASE);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_DEVICE_SYNC), 1);
	assert_int_equal(crig_try(&rig, 256, 0, &a), FRAG_OOM);
	crig_close(&rig);
}

/*
 * 4 MiB: a large block of 2.5 cuts its superblock; 1.5 are left, too little for a cut of
 * 1, so stream 0 takes all 1.5. Stream 1 finds nothing, all superblocks are handed
 * back, and it takes the one with stream 0's block in it. That block's free now
 * finds it elsewhere and synchronises.
 */
static void small_block_elsewhere(void **state)
{
	struct frag_block large, a, b;

	(void)state;
	start("rmm-arena:size=4M", 64 * MIB);
	assert_int_equal(at(&large, 5 * MIB / 2, 0), 0);
	assert_int_equal(at(&a, 256, 0), 5 * MIB / 2);
	assert_int_equal(at(&b, 256, 1), 5 * MIB / 2 + 256);
	assert_int_equal(b.cls, FRAG_CLASS_RELEASE);
	crig_free(&rig, &a);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), 1);
	crig_free(&rig, &b); /* its own arena: no wait */
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), 1);
	crig_close(&rig);
}

/*
 * 2 MiB: a large block of 1.5 gets the whole superblock, because less than 1 MiB would
 * be left. A small one of stream 0 takes this superblock with the large block in it. Its
 * free by stream 1 synchronises twice: before it looks into the global arena, and
 * before it looks into other arenas than its own.
 */
static void large_block_elsewhere(void **state)
{
	struct frag_block large, a;

	(void)state;
	start("rmm-arena:size=2M", 64 * MIB);
	assert_int_equal(at(&large, 3 * MIB / 2, 1), 0);
	assert_int_equal(at(&a, 256, 0), 3 * MIB / 2);
	crig_free(&rig, &large);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), 2);
	/* the superblock is stream 0's: the same again must have it handed back */
	assert_int_equal(at(&large, 3 * MIB / 2, 0), 0);
	assert_int_equal(large.cls, FRAG_CLASS_RELEASE);
	crig_free(&rig, &large);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), 3);
	crig_free(&rig, &a);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), 4);
	crig_close(&rig);
}

/* Before the second try everything that waits is done. */
static void waits_before_second_try(void **state)
{
	struct frag_block a, b;
	struct frag_usage u;

	(void)state;
	start("rmm-arena:size=4M", 64 * MIB);
	at(&a, 4 * MIB, 0);
	crig_request(&rig, &a);
	u = crig_check(&rig);
	assert_int_equal(u.waiting_bytes, 4 * MIB);
	assert_int_equal(at(&b, 3 * MIB, 1), 0);
	assert_int_equal(b.cls, FRAG_CLASS_RELEASE);
	crig_close(&rig);
}

static void refuses_wrong_options(void **state)
{
	(void)state;
	crig_refused_text("rmm-arena:size=1000K", "below 1 MiB");
}

/* ---- a model that walks -------------------------------------------------------------------- */

#define STREAMS 4
#define GLOBAL (-1)
#define SUPERS_MAX 256
#define SPANS_MAX 2048
#define SLOTS 400

struct span {
	uint64_t addr, size;
};

struct super {
	uint64_t addr, size;
	int owner;
	size_t count; /* free spans */
	struct span span[SPANS_MAX];
};

static struct super *super[SUPERS_MAX]; /* in order of address */
static size_t supers_count;

static void put_span(struct super *s, uint64_t addr, uint64_t size)
{
	size_t i = 0;

	while (i < s->count && s->span[i].addr < addr)
		i++;
	if (i && s->span[i - 1].addr + s->span[i - 1].size == addr) {
		s->span[--i].size += size;
	} else {
		assert_true(s->count < SPANS_MAX);
		memmove(&s->span[i + 1], &s->span[i], (s->count++ - i) * sizeof(s->span[0]));
		s->span[i] = (struct span){ addr, size };
	}
	if (i + 1 < s->count && s->span[i].addr + s->span[i].size == s->span[i + 1].addr) {
		s->span[i].size += s->span[i + 1].size;
		memmove(&s->span[i + 1], &s->span[i + 2],
			(--s->count - i - 1) * sizeof(s->span[0]));
	}
}

static struct super *put_super(size_t place, uint64_t addr, uint64_t size)
{
	struct super *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_true(supers_count < SUPERS_MAX);
	memmove(&super[place + 1], &super[place], (supers_count++ - place) * sizeof(super[0]));
	*s = (struct super){ .addr = addr, .size = size, .owner = GLOBAL };
	put_span(s, addr, size);
	super[place] = s;
	return s;
}

static bool empty(const struct super *s)
{
	return s->count == 1 && s->span[0].size == s->size;
}

/* Place of the first free span of `size` in the superblocks of an owner. */
static bool find(int owner, uint64_t size, size_t *place, size_t *span)
{
	for (*place = 0; *place < supers_count; ++*place)
		for (*span = 0; *span < super[*place]->count; ++*span)
			if (super[*place]->owner == owner &&
			    super[*place]->span[*span].size >= size)
				return true;
	return false;
}

static uint64_t take_span(struct super *s, size_t i, uint64_t size)
{
	uint64_t addr = s->span[i].addr;

	s->span[i].addr += size;
	s->span[i].size -= size;
	if (!s->span[i].size)
		memmove(&s->span[i], &s->span[i + 1], (--s->count - i) * sizeof(s->span[0]));
	return addr;
}

static bool model_try(unsigned stream, uint64_t size, uint64_t *addr)
{
	bool large = size > MIB;
	size_t place, span;
	struct super *s;

	if (!large && find((int)stream, size, &place, &span)) {
		*addr = take_span(super[place], span, size);
		return true;
	}
	if (!find(GLOBAL, size, &place, &span))
		return false;
	s = super[place];
	if (empty(s) && s->size >= FRAG_MAX(MIB, size) + MIB) {
		uint64_t head = FRAG_MAX(MIB, size);

		put_super(place + 1, s->addr + head, s->size - head);
		s->size = s->span[0].size = head;
	}
	s->owner = large ? GLOBAL : (int)stream;
	*addr = take_span(s, span, size);
	return true;
}

static void merge_empty(void)
{
	for (size_t i = 0; i + 1 < supers_count; i++) {
		struct super *s = super[i], *n = super[i + 1];

		if (s->owner != GLOBAL || n->owner != GLOBAL || !empty(s) || !empty(n))
			continue;
		s->size += n->size;
		s->span[0].size = s->size;
		free(n);
		memmove(&super[i + 1], &super[i + 2], (--supers_count - i - 1) * sizeof(super[0]));
		i--;
	}
}

static bool model_alloc(unsigned stream, uint64_t size, uint64_t *addr, size_t *defragments)
{
	if (model_try(stream, size, addr))
		return true;
	++*defragments;
	for (size_t i = 0; i < supers_count; i++)
		super[i]->owner = GLOBAL;
	merge_empty();
	return model_try(stream, size, addr);
}

static void model_free(unsigned stream, uint64_t addr, uint64_t size, size_t *syncs)
{
	size_t i = 0;
	int owner;

	while (addr >= super[i]->addr + super[i]->size)
		i++;
	owner = super[i]->owner;
	put_span(super[i], addr, size);
	merge_empty();
	if (size > MIB)
		*syncs += owner == GLOBAL || owner == (int)stream ? 1 : 2;
	else
		*syncs += owner == (int)stream ? 0 : 1;
}

/* Phases of small and of large requests, so that empty superblocks are where they are not
 * wanted. */
static uint64_t draw_size(uint64_t *seed, unsigned step)
{
	if (crig_random(seed) % 16 < (step / 2000 % 2 ? 15 : 1))
		return crig_random(seed) % (step / 2000 % 2 ? 2 * MIB : 6 * MIB) + 1;
	return crig_random(seed) % (crig_random(seed) % 4 ? 40 * KIB : 900 * KIB) + 1;
}

static void equals_the_model(void **state)
{
	static struct frag_block slots[SLOTS];
	uint64_t seed = 11, addr = 0, refused = 0;
	size_t syncs = 0, defragments = 0;

	(void)state;
	start("rmm-arena:size=224M", 256 * MIB);
	put_super(0, 0, 224 * MIB);
	for (unsigned i = 0; i < 40000; i++) {
		struct frag_block *b = &slots[crig_random(&seed) % SLOTS];
		uint64_t bytes = draw_size(&seed, i);
		uint32_t stream = i / 1000 % STREAMS; /* the others keep what they had */
		int rc;

		if (b->granted) {
			model_free(b->stream, b->addr - base, b->granted, &syncs);
			crig_free(&rig, b);
			b->granted = 0;
			continue;
		}
		rc = crig_try(&rig, bytes, stream, b);
		base = crig_chunk(&rig, 0)->addr;
		assert_int_equal(
			!rc, model_alloc(stream, frag_round_up(bytes, 256), &addr, &defragments));
		if (!rc)
			assert_int_equal(b->addr - base, addr);
		refused += rc == FRAG_OOM;
		if (i % 64 == 0)
			crig_check(&rig);
	}
	assert_int_equal(crig_calls(&rig, FRAG_CALL_SYNC), syncs);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_DEVICE_SYNC), defragments);
	assert_true(refused > 100 && defragments > refused + 10);
	crig_close(&rig);
	while (supers_count)
		free(super[--supers_count]);
}

static void usage_in_random_runs(void **state)
{
	(void)state;
	crig_open(&rig, "rmm-arena:upstream=(rmm-pool:initial=64M)", 256 * MIB, 0);
	crig_soak(&rig, 8000, 200, 4, 3 * MIB, 7);
	crig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_to_classes),	    cmocka_unit_test(takes_half),
		cmocka_unit_test(streams_have_superblocks), cmocka_unit_test(first_fit),
		cmocka_unit_test(large_blocks_merge),	    cmocka_unit_test(hands_back_at_need),
		cmocka_unit_test(small_block_elsewhere),    cmocka_unit_test(large_block_elsewhere),
		cmocka_unit_test(waits_before_second_try),  cmocka_unit_test(refuses_wrong_options),
		cmocka_unit_test(equals_the_model),	    cmocka_unit_test(usage_in_random_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
