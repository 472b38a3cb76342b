/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slab and address hash of the simulated card (see sim_store.h).
 *
 * Hash: open addressing, linear probing, at most half full, deletion shifts
 * the following entries back, so there are no tombstones and a look-up of a
 * missing key stays short whatever happened before.
 */
#include "sim_store.h"

struct slab_block {
	struct slab_block *next;
	_Alignas(max_align_t) char bytes[];
};

/* Blocks double from the first number of objects to the last. */
#define SLAB_FIRST 64u
#define SLAB_LAST 8192u

void frag_simslab_init(struct slab *s, size_t bytes)
{
	*s = (struct slab){ .bytes = frag_round_up(FRAG_MAX(bytes, sizeof(void *)), 16) };
}

void frag_simslab_release(struct slab *s)
{
	struct slab_block *b = s->blocks;

	while (b) {
		struct slab_block *next = b->next;

		frag_host_free(b);
		b = next;
	}
	frag_simslab_init(s, s->bytes);
}

static bool grow(struct slab *s, size_t least)
{
	size_t n = FRAG_MIN(FRAG_MAX(s->total_count, SLAB_FIRST), SLAB_LAST);
	struct slab_block *b;

	n = FRAG_MAX(n, least);
	b = frag_host_alloc(sizeof(*b) + n * s->bytes);
	if (!b)
		return false;
	b->next = s->blocks;
	s->blocks = b;
	s->total_count += n;
	/* the first object of the block comes out first: neighbours stay neighbours */
	for (size_t i = n; i-- > 0;)
		frag_simslab_give(s, b->bytes + i * s->bytes);
	return true;
}

bool frag_simslab_reserve(struct slab *s, size_t count)
{
	return FRAG_LIKELY(s->free_count >= count) || grow(s, count - s->free_count);
}

void frag_simmap_release(struct addr_map *m)
{
	frag_host_free(m->slots);
	*m = (struct addr_map){ 0 };
}

bool frag_simmap_reserve(struct addr_map *m)
{
	struct addr_map bigger = { .mask = m->mask ? m->mask * 2 + 1 : 255 };

	if (FRAG_LIKELY(m->count * 2 < m->mask))
		return true;
	bigger.shift = 63 - frag_log2(bigger.mask);
	bigger.slots = frag_host_calloc(bigger.mask + 1, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; m->mask && i <= m->mask; i++) {
		if (m->slots[i].key)
			frag_simmap_put(&bigger, m->slots[i].key, m->slots[i].value);
	}
	frag_host_free(m->slots);
	*m = bigger;
	return true;
}

void *frag_simmap_take(struct addr_map *m, uint64_t key)
{
	struct addr_slot *slot = frag_simmap_slot(m, key);
	size_t hole, i;
	void *value;

	if (!slot)
		return NULL;
	value = slot->value;
	hole = i = (size_t)(slot - m->slots);
	for (;;) {
		i = (i + 1) & m->mask;
		if (!m->slots[i].key)
			break;
		/* an entry may move back only to a place at or after its home */
		if (((i - frag_simmap_home(m, m->slots[i].key)) & m->mask) >=
		    ((i - hole) & m->mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].key = 0;
	m->count--;
	return value;
}
