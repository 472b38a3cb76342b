/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage for the simulated card: a slab of equal objects, and a hash from a
 * number that is never zero (address, handle) to a pointer.
 *
 * Ownership: objects belong to their slab and are given back to it; release
 * ends all. Both can reserve in advance, so that a call which must not fail
 * (a free) needs no memory. Objects do not move.
 */
#ifndef FRAG_DEVICE_SIM_STORE_H
#define FRAG_DEVICE_SIM_STORE_H

#include <frag/base.h>

struct slab_block;

struct slab {
	size_t bytes; /* of one object, at least a pointer */
	void *free;   /* list through the first word of each */
	size_t free_count, total_count;
	struct slab_block *blocks;
};

void frag_simslab_init(struct slab *s, size_t bytes);
void frag_simslab_release(struct slab *s);
/* At least `count` objects are free afterwards. False: host memory exhausted. */
bool frag_simslab_reserve(struct slab *s, size_t count);

/* Contents undefined. pre: one is free (reserved before). */
static inline void *frag_simslab_take(struct slab *s)
{
	void *obj = s->free;

	FRAG_ASSERT(obj != NULL);
	s->free = *(void **)obj;
	s->free_count--;
	return obj;
}

static inline void frag_simslab_give(struct slab *s, void *obj)
{
	*(void **)obj = s->free;
	s->free = obj;
	s->free_count++;
}

struct addr_slot {
	uint64_t key; /* 0 = empty */
	void *value;
};

struct addr_map {
	struct addr_slot *slots;
	size_t mask; /* slots - 1; 0 = no table yet */
	size_t count;
	unsigned shift;
};

void frag_simmap_release(struct addr_map *m);
/* Room for one more. False: host memory exhausted. */
bool frag_simmap_reserve(struct addr_map *m);

static inline size_t frag_simmap_home(const struct addr_map *m, uint64_t key)
{
	return (size_t)(key * 0x9e3779b97f4a7c15ull >> m->shift);
}

/* pre: reserved, key is not in and not 0. */
static inline void frag_simmap_put(struct addr_map *m, uint64_t key, void *value)
{
	size_t i = frag_simmap_home(m, key);

	while (m->slots[i].key)
		i = (i + 1) & m->mask;
	m->slots[i] = (struct addr_slot){ key, value };
	m->count++;
}

static inline struct addr_slot *frag_simmap_slot(const struct addr_map *m, uint64_t key)
{
	if (!m->mask || !key)
		return NULL;
	for (size_t i = frag_simmap_home(m, key); m->slots[i].key; i = (i + 1) & m->mask) {
		if (m->slots[i].key == key)
			return &m->slots[i];
	}
	return NULL;
}

static inline void *frag_simmap_find(const struct addr_map *m, uint64_t key)
{
	const struct addr_slot *slot = frag_simmap_slot(m, key);

	return slot ? slot->value : NULL;
}

/* Removes and returns the value, NULL where there is none. */
void *frag_simmap_take(struct addr_map *m, uint64_t key);

#endif
