/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-pool and rmm-arena in long random runs against models that do everything by walking lists in
 * order of address, as RMM does. Single rules: tests/policies/rmm_*.rules.
 */
#include "test.h"

#include "lib/random.h"
#include "rig.h"

static struct rig rig; /* large: not for the stack */

static uint64_t calls(enum frag_call call)
{
	return rig.dev->stat[call].count;
}

/* ---- free memory: pieces in order of address, neighbours merged ---------------------------- */

#define FREE_MAX 4096

struct piece {
	uint64_t addr, size;
	bool head; /* it begins what was taken as a whole: it does not join the one below */
};

struct free_list {
	struct piece at[FREE_MAX];
	size_t count;
};

static void erase(struct free_list *l, size_t i)
{
	memmove(&l->at[i], &l->at[i + 1], (--l->count - i) * sizeof(l->at[0]));
}

static void insert(struct free_list *l, struct piece p)
{
	struct piece *at = l->at;
	size_t i = 0;

	while (i < l->count && at[i].addr < p.addr)
		i++;
	if (i && at[i - 1].addr + at[i - 1].size == p.addr && !p.head) {
		at[--i].size += p.size;
	} else {
		assert_true(l->count < FREE_MAX);
		memmove(&at[i + 1], &at[i], (l->count++ - i) * sizeof(*at));
		at[i] = p;
	}
	if (i + 1 < l->count && at[i].addr + at[i].size == at[i + 1].addr && !at[i + 1].head) {
		at[i].size += at[i + 1].size;
		erase(l, i + 1);
	}
}

/* ---- rmm-pool: a list for each stream -------------------------------------------------------- */

#define STREAMS 5
#define POOL_SLOTS 300

struct pool {
	struct free_list list[STREAMS];
	size_t chunks, waits, merges;
};

static struct pool m;

/* Does a chunk begin here? */
static bool is_head(frag_addr_t addr)
{
	for (size_t i = 0; i < m.chunks; i++)
		if (rig.taken[i].addr == addr)
			return true;
	return false;
}

/* Best fit of a list, taken out and split; 0 if there is none. */
static frag_addr_t take(struct free_list *l, uint64_t size)
{
	size_t best = SIZE_MAX;
	struct piece p;

	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].size >= size && (best == SIZE_MAX || l->at[i].size < l->at[best].size))
			best = i;
	if (best == SIZE_MAX)
		return 0;
	p = l->at[best];
	erase(l, best);
	if (p.size > size)
		insert(l, (struct piece){ p.addr + size, p.size - size, false });
	return p.addr;
}

/* Where the block of this request must lie; 0 if the pool must grow. */
static frag_addr_t find_in_pool(unsigned stream, uint64_t size)
{
	struct free_list *own = &m.list[stream];
	frag_addr_t addr = take(own, size);

	for (unsigned s = 0; s < STREAMS && !addr; s++) {
		if (s == stream)
			continue;
		addr = take(&m.list[s], size);
		m.waits += addr != 0;
	}
	for (unsigned s = 0; s < STREAMS && !addr; s++) {
		if (s == stream || !m.list[s].count)
			continue;
		m.waits++;
		m.merges++;
		for (; m.list[s].count; erase(&m.list[s], 0))
			insert(own, m.list[s].at[0]);
		addr = take(own, size);
	}
	return addr;
}

static void alloc_of_pool(unsigned slot, uint64_t bytes, uint32_t stream)
{
	int rc = rig_alloc(&rig, slot, bytes, stream, 0);
	uint64_t size = frag_round_up(bytes, 256);
	frag_addr_t want = find_in_pool(stream, size);
	const struct rig_taken *chunk = &rig.taken[m.chunks];

	if (rc == FRAG_OOM) {
		assert_int_equal(want, 0);
		return;
	}
	assert_int_equal(rc, 0);
	if (!want) {
		assert_int_equal(rig.slots[slot].block.cls, FRAG_CLASS_GROW);
		m.chunks++;
		insert(&m.list[stream], (struct piece){ chunk->addr, chunk->bytes, true });
		want = take(&m.list[stream], size);
	}
	assert_int_equal(rig.slots[slot].block.addr, want);
}

/* size_max: of a request. */
static void run_pool(const char *text, uint64_t seed, uint64_t size_max)
{
	memset(&m, 0, sizeof(m));
	must_open_rig(&rig, text, &(struct rig_options){ .total_bytes = 16 * GIB });
	for (unsigned i = 0; i < 60000; i++) {
		unsigned slot = frag_random(&seed) % POOL_SLOTS;
		const struct frag_block *b = &rig.slots[slot].block;
		uint64_t bytes = frag_random(&seed) % (size_max >> i / 1000 % 3 * 2) + 1;
		uint32_t stream = frag_random(&seed) % 8 ? i / 300 % STREAMS : 0;

		/* streams take turns; phases of small requests break up what large ones need */
		if (rig.slots[slot].state == RIG_EMPTY) {
			alloc_of_pool(slot, bytes, stream);
			continue;
		}
		assert_int_equal(rig_free(&rig, slot), 0);
		insert(&m.list[b->stream], (struct piece){ b->addr, b->granted, is_head(b->addr) });
	}
	assert_int_equal(m.chunks, rig.taken_count);
	assert_int_equal(m.waits, calls(FRAG_CALL_FENCE));
	assert_true(m.waits > 1000);
	rig_check_and_close(&rig);
}

TEST(pool_equals_its_model)
{
	run_pool("rmm-pool", 1, 4 * KIB);
	run_pool("rmm-pool", 2, 100 * KIB);
	run_pool("rmm-pool", 3, 4 * MIB);
	/* nearly full: lists are merged time and again */
	run_pool("rmm-pool:maximum=70M,reclaim=false", 4, MIB);
	assert_true(m.merges > 1000);
}

/* ---- rmm-arena: superblocks with their free spans ---------------------------------------- */

#define ARENAS 4
#define GLOBAL (-1)
#define SUPERS_MAX 256
#define ARENA_SLOTS 400

struct super {
	uint64_t addr, size;
	int owner;
	struct free_list free;
};

static struct super *super[SUPERS_MAX]; /* in order of address */
static size_t supers_count, syncs, defragments;

static void put_super(size_t place, uint64_t addr, uint64_t size)
{
	struct super *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_true(supers_count < SUPERS_MAX);
	memmove(&super[place + 1], &super[place], (supers_count++ - place) * sizeof(super[0]));
	*s = (struct super){ .addr = addr, .size = size, .owner = GLOBAL };
	insert(&s->free, (struct piece){ addr, size, false });
	super[place] = s;
}

static bool is_empty(const struct super *s)
{
	return s->free.count == 1 && s->free.at[0].size == s->size;
}

/* Place of the first free span of `size` in the superblocks of an owner. */
static bool find_span(int owner, uint64_t size, size_t *place, size_t *span)
{
	for (*place = 0; *place < supers_count; ++*place)
		for (*span = 0; *span < super[*place]->free.count; ++*span)
			if (super[*place]->owner == owner &&
			    super[*place]->free.at[*span].size >= size)
				return true;
	return false;
}

static uint64_t take_span(struct super *s, size_t i, uint64_t size)
{
	struct piece *p = &s->free.at[i];
	uint64_t addr = p->addr;

	p->addr += size;
	p->size -= size;
	if (!p->size)
		erase(&s->free, i);
	return addr;
}

static bool try_arena(unsigned stream, uint64_t size, uint64_t *addr)
{
	bool large = size > MIB;
	size_t place, span;
	struct super *s;

	if (!large && find_span((int)stream, size, &place, &span)) {
		*addr = take_span(super[place], span, size);
		return true;
	}
	if (!find_span(GLOBAL, size, &place, &span))
		return false;
	s = super[place];
	if (is_empty(s) && s->size >= FRAG_MAX(MIB, size) + MIB) {
		uint64_t head = FRAG_MAX(MIB, size);

		put_super(place + 1, s->addr + head, s->size - head);
		s->size = s->free.at[0].size = head;
	}
	s->owner = large ? GLOBAL : (int)stream;
	*addr = take_span(s, span, size);
	return true;
}

static void merge_empty(void)
{
	for (size_t i = 0; i + 1 < supers_count; i++) {
		struct super *s = super[i], *n = super[i + 1];

		if (s->owner != GLOBAL || n->owner != GLOBAL || !is_empty(s) || !is_empty(n))
			continue;
		s->size += n->size;
		s->free.at[0].size = s->size;
		free(n);
		memmove(&super[i + 1], &super[i + 2], (--supers_count - i - 1) * sizeof(super[0]));
		i--;
	}
}

static bool alloc_of_arena(unsigned stream, uint64_t size, uint64_t *addr)
{
	if (try_arena(stream, size, addr))
		return true;
	defragments++;
	for (size_t i = 0; i < supers_count; i++)
		super[i]->owner = GLOBAL;
	merge_empty();
	return try_arena(stream, size, addr);
}

static void free_of_arena(unsigned stream, uint64_t addr, uint64_t size)
{
	size_t i = 0;
	int owner;

	while (addr >= super[i]->addr + super[i]->size)
		i++;
	owner = super[i]->owner;
	insert(&super[i]->free, (struct piece){ addr, size, false });
	merge_empty();
	if (size > MIB)
		syncs += owner == GLOBAL || owner == (int)stream ? 1 : 2;
	else
		syncs += owner == (int)stream ? 0 : 1;
}

/* Phases of small and of large requests: empty superblocks are where they are not wanted. */
static uint64_t draw_size(uint64_t *seed, unsigned step)
{
	bool small = step / 2000 % 2;

	if (frag_random(seed) % 16 < (small ? 15 : 1))
		return frag_random(seed) % (small ? 2 * MIB : 6 * MIB) + 1;
	return frag_random(seed) % (frag_random(seed) % 4 ? 40 * KIB : 900 * KIB) + 1;
}

TEST(arena_equals_its_model)
{
	uint64_t seed = 11, addr = 0, refused = 0;

	must_open_rig(&rig, "rmm-arena:size=224M",
		      &(struct rig_options){ .total_bytes = 256 * MIB });
	put_super(0, 0, 224 * MIB);
	for (unsigned i = 0; i < 40000; i++) {
		unsigned slot = frag_random(&seed) % ARENA_SLOTS;
		const struct frag_block *b = &rig.slots[slot].block;
		uint64_t bytes = draw_size(&seed, i);
		uint32_t stream = i / 1000 % ARENAS; /* the others keep what they had */
		int rc;

		if (rig.slots[slot].state != RIG_EMPTY) {
			free_of_arena(b->stream, b->addr - rig.taken[0].addr, b->granted);
			assert_int_equal(rig_free(&rig, slot), 0);
			continue;
		}
		rc = rig_alloc(&rig, slot, bytes, stream, 0);
		assert_int_equal(!rc, alloc_of_arena(stream, frag_round_up(bytes, 256), &addr));
		if (!rc)
			assert_int_equal(b->addr - rig.taken[0].addr, addr);
		refused += rc == FRAG_OOM;
		if (i % 64 == 0)
			rig_walk(&rig, NULL);
	}
	assert_int_equal(calls(FRAG_CALL_SYNC), syncs);
	assert_int_equal(calls(FRAG_CALL_DEVICE_SYNC), defragments);
	assert_true(refused > 100 && defragments > refused + 10);
	rig_check_and_close(&rig);
	while (supers_count)
		free(super[--supers_count]);
}
