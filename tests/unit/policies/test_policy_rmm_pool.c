/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies/rmm_pool.c: the rules with values worked out by hand, and long random
 * runs against a model that does everything by walking lists, as RMM does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chunk_rig.h"

#define MIB FRAG_MIB

static struct crig rig;

/* ---- by hand ------------------------------------------------------------------------- */

static void rounds_to_256(void **state)
{
	struct frag_block a, b;

	(void)state;
	crig_open(&rig, "rmm-pool:initial=1M", 64 * MIB, 0);
	a = crig_alloc(&rig, 1, 0);
	b = crig_alloc(&rig, 257, 0);
	assert_int_equal(a.granted, 256);
	assert_int_equal(b.granted, 512);
	assert_int_equal(b.addr, a.addr + 256);
	assert_int_equal(b.cls, FRAG_CLASS_SPLIT);
	assert_int_equal(crig_check(&rig).largest_free_bytes, MIB - 768);
	crig_close(&rig);
}

/* Holes of 4, 2, 2 and 3 KiB: a request of 1.75 KiB takes the first of the two smallest,
 * and a quarter KiB of it is left. */
static void best_fit_lowest_address(void **state)
{
	static const uint64_t kib[] = { 4, 1, 2, 1, 2, 1, 3, 1 };
	struct frag_block b[8], got;

	(void)state;
	crig_open(&rig, "rmm-pool:initial=15K", 64 * MIB, 0);
	for (int i = 0; i < 8; i++)
		b[i] = crig_alloc(&rig, kib[i] * FRAG_KIB, 0);
	assert_int_equal(crig_check(&rig).free_bytes, 0);
	for (int i = 6; i >= 0; i -= 2)
		crig_free(&rig, &b[i]);
	got = crig_alloc(&rig, 1792, 0);
	assert_int_equal(got.addr, b[2].addr);
	assert_int_equal(got.cls, FRAG_CLASS_SPLIT);
	got = crig_alloc(&rig, 256, 0); /* the rest of it is the best fit now */
	assert_int_equal(got.addr, b[2].addr + 1792);
	assert_int_equal(got.cls, FRAG_CLASS_HIT);
	got = crig_alloc(&rig, 2560, 0);
	assert_int_equal(got.addr, b[6].addr);
	crig_close(&rig);
}

/* Without a maximum each chunk is the larger of request and pool: 1, 1, 2, then 4 of which
 * the request of 3 leaves 1, then 9 because the request is above the pool of 8. */
static void doubles(void **state)
{
	static const uint64_t request[] = { 1, 1, 1, 1, 3, 1, 9 }, chunk[] = { 1, 1, 2, 4, 9 };

	(void)state;
	crig_open(&rig, "rmm-pool", 64 * MIB, 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(request); i++)
		crig_alloc(&rig, request[i] * MIB, 0);
	assert_int_equal(crig_chunks(&rig), FRAG_ARRAY_LEN(chunk));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(chunk); i++)
		assert_int_equal(crig_chunk(&rig, i)->bytes, chunk[i] * MIB);
	crig_close(&rig);
}

/* With a maximum of 16: half of what is left, 8; then 8 are left, so 4; then 4, so a request of 3
 * gets 3; then 1 is left, and 2 do not fit. */
static void grows_to_maximum(void **state)
{
	static const uint64_t request[] = { 8, 1, 3, 3 }, chunk[] = { 8, 4, 3 };
	struct frag_block b;

	(void)state;
	crig_open(&rig, "rmm-pool:maximum=16M", 64 * MIB, 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(request); i++)
		crig_alloc(&rig, request[i] * MIB, 0);
	assert_int_equal(crig_chunks(&rig), FRAG_ARRAY_LEN(chunk));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(chunk); i++)
		assert_int_equal(crig_chunk(&rig, i)->bytes, chunk[i] * MIB);
	assert_int_equal(crig_try(&rig, 2 * MIB, 0, &b), FRAG_OOM);
	assert_int_equal(crig_alloc(&rig, MIB, 0).granted, MIB);
	assert_int_equal(crig_try(&rig, 1, 0, &b), FRAG_OOM);
	crig_close(&rig);
}

/* A maximum of 16 and chunks of 8, 4 and 2, all free but 1 of the last: 9 do not fit the 2 that
 * are left. The first chunk goes, then 10 are left; the larger of 9 and 5 is taken. */
static void reclaims_at_the_maximum(void **state)
{
	struct frag_block a, b, c, d, e;

	(void)state;
	crig_open(&rig, "rmm-pool:maximum=16M", 64 * MIB, 0);
	a = crig_alloc(&rig, 8 * MIB, 0);
	b = crig_alloc(&rig, 4 * MIB, 1);
	c = crig_alloc(&rig, MIB, 0);
	d = crig_alloc(&rig, MIB, 0);
	assert_int_equal(crig_chunk(&rig, 2)->bytes, 2 * MIB);
	crig_free(&rig, &a);
	crig_free(&rig, &b);
	crig_free(&rig, &c);
	e = crig_alloc(&rig, 9 * MIB, 1);
	assert_int_equal(rig.events_count, 5);
	assert_int_equal(crig_event(&rig, 3)->kind, FRAG_SEGMENT_FREE);
	assert_int_equal(crig_event(&rig, 3)->addr, a.addr);
	assert_int_equal(crig_event(&rig, 4)->bytes, 9 * MIB);
	crig_check(&rig);
	/* 15 held: without the 4 of the second chunk 5 are left, and the 2 are in use */
	assert_int_equal(crig_try(&rig, 6 * MIB, 0, &a), FRAG_OOM);
	assert_int_equal(rig.events_count, 6);
	assert_int_equal(crig_event(&rig, 5)->addr, b.addr);
	/* what is above the maximum gives nothing back */
	crig_free(&rig, &e);
	assert_int_equal(crig_try(&rig, 17 * MIB, 0, &a), FRAG_OOM);
	assert_int_equal(rig.events_count, 6);
	crig_free(&rig, &d);
	crig_close(&rig);

	/* the driver fails to take a chunk back: an error, and everything is as it was */
	crig_open(&rig, "rmm-pool:maximum=16M", 64 * MIB, 0);
	a = crig_alloc(&rig, 8 * MIB, 0);
	crig_free(&rig, &a);
	rig.dev->fail_call = rig.dev->driver_calls + 1;
	assert_true(crig_try(&rig, 9 * MIB, 0, &b) < 0);
	assert_int_equal(crig_check(&rig).free_bytes, 8 * MIB);
	b = crig_alloc(&rig, 9 * MIB, 0);
	assert_int_equal(crig_check(&rig).free_bytes, 0);
	crig_free(&rig, &b);
	crig_close(&rig);

	crig_open(&rig, "rmm-pool:maximum=16M,reclaim=false", 64 * MIB, 0);
	a = crig_alloc(&rig, 8 * MIB, 0);
	crig_free(&rig, &a);
	assert_int_equal(crig_try(&rig, 9 * MIB, 0, &b), FRAG_OOM);
	assert_int_equal(rig.events_count, 1);
	crig_close(&rig);
}

static uint64_t asked[16];
static size_t asked_count;

static void on_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	(void)ctx, (void)result;
	if (call == FRAG_CALL_MALLOC && asked_count < FRAG_ARRAY_LEN(asked))
		asked[asked_count++] = bytes;
}

/* A card of 100: a pool of 64 is full, 36 are left. 64 is refused, 32 granted; then 96, 48, 24, 12,
 * 6 and at last the request of 5 are refused. */
static void halves_refused_attempts(void **state)
{
	static const uint64_t mib[] = { 64, 64, 32, 96, 48, 24, 12, 6, 5 };
	struct frag_block b;

	(void)state;
	crig_open(&rig, "rmm-pool", 100 * MIB, 0);
	asked_count = 0;
	rig.dev->log = on_call;
	crig_alloc(&rig, 64 * MIB, 0);
	crig_alloc(&rig, 32 * MIB, 0);
	assert_int_equal(crig_try(&rig, 5 * MIB, 0, &b), FRAG_OOM);
	assert_int_equal(asked_count, FRAG_ARRAY_LEN(mib));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(mib); i++)
		assert_int_equal(asked[i], mib[i] * MIB);
	crig_close(&rig);
}

/* The same under a limit of the process: the device is not even asked. */
static void keeps_the_limit(void **state)
{
	struct frag_block b;

	(void)state;
	crig_open(&rig, "rmm-pool", 200 * MIB, 100 * MIB);
	crig_alloc(&rig, 64 * MIB, 0);
	crig_alloc(&rig, 32 * MIB, 0);
	assert_int_equal(crig_try(&rig, 5 * MIB, 0, &b), FRAG_OOM);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_MALLOC), 2);
	assert_int_equal(rig.dev->reserved_bytes, 96 * MIB);
	crig_close(&rig);
}

/* Stream 1 takes from stream 0's list: one wait, and the rest stays in that list. */
static void steals_and_leaves_the_rest(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "rmm-pool", 64 * MIB, 0);
	a = crig_alloc(&rig, 4 * MIB, 0);
	crig_free(&rig, &a);
	b = crig_alloc(&rig, MIB, 1);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), 1);
	c = crig_alloc(&rig, MIB, 0); /* its own list: no wait */
	assert_int_equal(c.addr, a.addr + MIB);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), 1);
	crig_free(&rig, &b); /* into the list of stream 1 */
	b = crig_alloc(&rig, MIB, 1);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), 1);
	crig_close(&rig);
}

/* The first list in order of streams serves, although a later one fits better. */
static void steals_in_order_of_streams(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "rmm-pool:initial=12M", 64 * MIB, 0);
	a = crig_alloc(&rig, 8 * MIB, 1);
	b = crig_alloc(&rig, 4 * MIB, 2);
	crig_free(&rig, &b);
	crig_free(&rig, &a);
	c = crig_alloc(&rig, 4 * MIB, 3);
	assert_int_equal(c.addr, a.addr);
	crig_close(&rig);
}

/* Neighbours of different lists do not merge; when no list fits, they are moved
 * into one, in order, until there is a fit: stream 2's list is left alone. */
static void merges_lists_at_need(void **state)
{
	struct frag_block a, b, c, d, got;
	uint64_t fences;

	(void)state;
	crig_open(&rig, "rmm-pool:initial=4M", 64 * MIB, 0);
	a = crig_alloc(&rig, MIB, 0);
	b = crig_alloc(&rig, MIB, 1);
	c = crig_alloc(&rig, MIB, 2);
	d = crig_alloc(&rig, MIB, 3);
	crig_free(&rig, &a);
	crig_free(&rig, &b);
	crig_free(&rig, &c);
	assert_int_equal(crig_check(&rig).largest_free_bytes, MIB);
	fences = crig_calls(&rig, FRAG_CALL_FENCE);
	got = crig_alloc(&rig, 2 * MIB, 3);
	assert_int_equal(got.addr, a.addr);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), fences + 2);
	assert_int_equal(crig_chunks(&rig), 1);
	got = crig_alloc(&rig, MIB, 2); /* still its own: no wait */
	assert_int_equal(got.addr, c.addr);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), fences + 2);
	crig_free(&rig, &d);
	crig_close(&rig);
}

/* Neighbours in memory, but the later one heads its chunk: two blocks. */
static void keeps_chunks_apart(void **state)
{
	struct frag_block a, b;
	struct frag_usage u;

	(void)state;
	crig_open(&rig, "rmm-pool", 64 * MIB, 0);
	a = crig_alloc(&rig, 2 * MIB, 0);
	b = crig_alloc(&rig, 2 * MIB, 0);
	crig_free(&rig, &a);
	crig_free(&rig, &b);
	u = crig_check(&rig);
	assert_int_equal(u.blocks_count, 2);
	assert_int_equal(u.largest_free_bytes, 2 * MIB);
	crig_close(&rig);
}

/* The initial chunk belongs to the default stream; nothing is ever given back. */
static void never_shrinks(void **state)
{
	struct frag_block a;
	struct frag_usage u;

	(void)state;
	crig_open(&rig, "rmm-pool:initial=8M", 64 * MIB, 0);
	a = crig_alloc(&rig, MIB, 5);
	assert_int_equal(crig_chunk(&rig, 0)->bytes, 8 * MIB);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), 1); /* stolen */
	crig_free(&rig, &a);
	crig_trim(&rig);
	u = crig_check(&rig);
	assert_int_equal(u.releasable_bytes, 0);
	assert_int_equal(u.non_releasable_bytes, 8 * MIB);
	assert_int_equal(rig.dev->reserved_bytes, 8 * MIB);
	crig_close(&rig);
}

/* A pool over a pool: the outer one's chunks are blocks of the inner one. */
static void composes(void **state)
{
	struct frag_block a, b;
	struct frag_usage u;

	(void)state;
	crig_open(&rig, "rmm-pool:upstream=(rmm-pool:initial=16M)", 64 * MIB, 0);
	a = crig_alloc(&rig, 2 * MIB, 0);
	b = crig_alloc(&rig, MIB, 1);
	assert_int_equal(crig_chunks(&rig), 1);
	u = crig_check(&rig);
	assert_int_equal(u.allocated_bytes, 3 * MIB);
	assert_int_equal(u.free_bytes, 13 * MIB);
	assert_int_equal(u.largest_free_bytes, 12 * MIB);
	assert_int_equal(u.segments_count, 1);
	assert_int_equal(u.blocks_count, 4); /* 2, 1, 1 in chunks, 12 behind them */
	crig_free(&rig, &a);
	crig_free(&rig, &b);
	crig_soak(&rig, 3000, 60, 3, MIB, 5);
	crig_close(&rig);
}

static void refuses_wrong_options(void **state)
{
	(void)state;
	crig_refused_text("rmm-pool:initial=1000", "multiples of 256");
	crig_refused_text("rmm-pool:maximum=1000", "multiples of 256");
	crig_refused_text("rmm-pool:initial=2M,maximum=1M", "initial is above maximum");
}

/* ---- a model that walks lists ----------------------------------------------------------- */

#define STREAMS 5
#define SLOTS 300
#define FREE_MAX 4096

struct piece {
	frag_addr_t addr;
	uint64_t size;
	bool head;
};

struct model {
	struct piece list[STREAMS][FREE_MAX]; /* in order of address */
	size_t count[STREAMS];
	frag_addr_t heads[CRIG_EVENTS];
	size_t heads_count;
	size_t waits, merges;
};

static struct model m;

static bool is_head(frag_addr_t addr)
{
	for (size_t i = 0; i < m.heads_count; i++)
		if (m.heads[i] == addr)
			return true;
	return false;
}

static void erase(unsigned s, size_t i)
{
	memmove(&m.list[s][i], &m.list[s][i + 1], (--m.count[s] - i) * sizeof(struct piece));
}

static void insert(unsigned s, struct piece p)
{
	struct piece *l = m.list[s];
	size_t i = 0;

	while (i < m.count[s] && l[i].addr < p.addr)
		i++;
	if (i && l[i - 1].addr + l[i - 1].size == p.addr && !p.head) {
		l[i - 1].size += p.size;
		i--;
	} else {
		assert_true(m.count[s] < FREE_MAX);
		memmove(&l[i + 1], &l[i], (m.count[s]++ - i) * sizeof(*l));
		l[i] = p;
	}
	if (i + 1 < m.count[s] && l[i].addr + l[i].size == l[i + 1].addr && !l[i + 1].head) {
		l[i].size += l[i + 1].size;
		erase(s, i + 1);
	}
}

/* Best fit of a list, taken out and split; 0 if there is none. */
static frag_addr_t take(unsigned s, uint64_t size)
{
	size_t best = SIZE_MAX;
	struct piece p;

	for (size_t i = 0; i < m.count[s]; i++)
		if (m.list[s][i].size >= size &&
		    (best == SIZE_MAX || m.list[s][i].size < m.list[s][best].size))
			best = i;
	if (best == SIZE_MAX)
		return 0;
	p = m.list[s][best];
	erase(s, best);
	if (p.size > size)
		insert(s, (struct piece){ p.addr + size, p.size - size, false });
	return p.addr;
}

/* Where the block of this request must lie; 0 if the pool must grow. */
static frag_addr_t model_find(unsigned stream, uint64_t size)
{
	frag_addr_t addr = take(stream, size);

	for (unsigned s = 0; s < STREAMS && !addr; s++) {
		if (s == stream)
			continue;
		addr = take(s, size);
		m.waits += addr != 0;
	}
	for (unsigned s = 0; s < STREAMS && !addr; s++) {
		if (s == stream || !m.count[s])
			continue;
		m.waits++;
		m.merges++;
		while (m.count[s]) {
			struct piece p = m.list[s][0];

			erase(s, 0);
			insert(stream, p);
		}
		addr = take(stream, size);
	}
	return addr;
}

static void model_alloc(const struct frag_block *b, int rc, size_t *chunks)
{
	uint64_t size = frag_round_up(b->requested, 256);
	frag_addr_t want = model_find(b->stream, size);

	if (rc == FRAG_OOM) {
		assert_int_equal(want, 0);
		return;
	}
	assert_int_equal(rc, 0);
	if (!want) {
		const struct crig_event *c = crig_chunk(&rig, (*chunks)++);

		assert_int_equal(b->cls, FRAG_CLASS_GROW);
		m.heads[m.heads_count++] = c->addr;
		insert(b->stream, (struct piece){ c->addr, c->bytes, true });
		want = take(b->stream, size);
	}
	assert_int_equal(b->addr, want);
}

/* size_max: of a request. */
static void run_model(const char *text, uint64_t seed, uint64_t size_max)
{
	static struct frag_block slots[SLOTS];
	size_t chunks = 0;

	memset(&m, 0, sizeof(m));
	memset(slots, 0, sizeof(slots));
	crig_open(&rig, text, 16 * FRAG_GIB, 0);
	for (unsigned i = 0; i < 60000; i++) {
		struct frag_block *b = &slots[crig_random(&seed) % SLOTS];
		uint64_t bytes = crig_random(&seed) % (size_max >> i / 1000 % 3 * 2) + 1;
		uint32_t stream = crig_random(&seed) % 8 ? i / 300 % STREAMS : 0;

		/* streams take turns; phases of small requests break up what large ones need */
		if (!b->granted) {
			model_alloc(b, crig_try(&rig, bytes, stream, b), &chunks);
			continue;
		}
		crig_free(&rig, b);
		insert(b->stream, (struct piece){ b->addr, b->granted, is_head(b->addr) });
		b->granted = 0;
	}
	assert_int_equal(chunks, crig_chunks(&rig));
	assert_int_equal(m.waits, crig_calls(&rig, FRAG_CALL_FENCE));
	assert_true(m.waits > 1000);
	crig_close(&rig);
}

static void equals_the_model(void **state)
{
	(void)state;
	run_model("rmm-pool", 1, 4 * FRAG_KIB);
	run_model("rmm-pool", 2, 100 * FRAG_KIB);
	run_model("rmm-pool", 3, 4 * MIB);
	/* nearly full: lists are merged time and again */
	run_model("rmm-pool:maximum=70M,reclaim=false", 4, MIB);
	assert_true(m.merges > 1000);
}

static void usage_in_random_runs(void **state)
{
	(void)state;
	crig_open(&rig, "rmm-pool", 256 * MIB, 0);
	crig_soak(&rig, 8000, 200, 4, 8 * MIB, 7);
	crig_close(&rig);
	crig_open(&rig, "rmm-pool:maximum=20M", 256 * MIB, 0); /* chunks come and go */
	crig_soak(&rig, 8000, 30, 4, 8 * MIB, 8);
	crig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_to_256),
		cmocka_unit_test(best_fit_lowest_address),
		cmocka_unit_test(doubles),
		cmocka_unit_test(grows_to_maximum),
		cmocka_unit_test(reclaims_at_the_maximum),
		cmocka_unit_test(halves_refused_attempts),
		cmocka_unit_test(keeps_the_limit),
		cmocka_unit_test(steals_and_leaves_the_rest),
		cmocka_unit_test(steals_in_order_of_streams),
		cmocka_unit_test(merges_lists_at_need),
		cmocka_unit_test(keeps_chunks_apart),
		cmocka_unit_test(never_shrinks),
		cmocka_unit_test(composes),
		cmocka_unit_test(refuses_wrong_options),
		cmocka_unit_test(equals_the_model),
		cmocka_unit_test(usage_in_random_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
