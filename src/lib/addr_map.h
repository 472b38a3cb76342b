/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps live addresses (or handles) to numbers or pointers: open addressing, linear probing, at most
 * a quarter full, removal by shifting back (no tombstones, so a long history costs no more than its
 * live blocks).
 *
 * A value is never 0. A zeroed struct is an empty map. Ownership: the map owns its cells; the
 * caller owns what pointers point to. Removal and look-up need no memory; frag_addr_map_reserve
 * makes room for the next entry, so that inserting it cannot fail.
 */
#ifndef FRAG_LIB_ADDR_MAP_H
#define FRAG_LIB_ADDR_MAP_H

#include <frag/base.h>

struct frag_addr_cell {
	uint64_t addr;
	uint64_t value; /* 0 = no entry */
};

struct frag_addr_map {
	struct frag_addr_cell *cells;
	size_t count, mask; /* mask: cells - 1, 0 = no table yet */
	unsigned shift;	    /* 64 - log2(cells) */
};

void frag_addr_map_release(struct frag_addr_map *map);
/* 0 or FRAG_ENOMEM. */
int frag_addr_map_grow(struct frag_addr_map *map);
/* For frag_addr_map_remove, if other entries follow the cell. */
void frag_addr_map_shift(struct frag_addr_map *map, struct frag_addr_cell *cell);

/* Makes room for one more entry. 0 or FRAG_ENOMEM. */
static inline int frag_addr_map_reserve(struct frag_addr_map *map)
{
	return FRAG_LIKELY(map->count * 4 < map->mask) ? 0 : frag_addr_map_grow(map);
}

/* Addresses are multiples of 512, so the low bits carry no information. */
static inline size_t frag_addr_home(const struct frag_addr_map *map, uint64_t addr)
{
	return (size_t)(((addr >> 9 | addr << 55) * 0x9e3779b97f4a7c15ull) >> map->shift);
}

/* The cell of addr, NULL if absent. Borrowed until the next change. */
static inline struct frag_addr_cell *frag_addr_map_find(const struct frag_addr_map *map,
							uint64_t addr)
{
	if (FRAG_UNLIKELY(!map->mask))
		return NULL;
	for (size_t at = frag_addr_home(map, addr);; at = (at + 1) & map->mask) {
		struct frag_addr_cell *cell = &map->cells[at];

		if (!cell->value)
			return NULL;
		if (cell->addr == addr)
			return cell;
	}
}

/* Inserts addr; false if it is already there. pre: reserved. */
static inline bool frag_addr_map_add(struct frag_addr_map *map, uint64_t addr, uint64_t value)
{
	size_t at = frag_addr_home(map, addr);

	for (; map->cells[at].value; at = (at + 1) & map->mask)
		if (map->cells[at].addr == addr)
			return false;
	map->cells[at] = (struct frag_addr_cell){ addr, value };
	map->count++;
	return true;
}

/* pre: cell comes from find and nothing changed since. */
static inline void frag_addr_map_remove(struct frag_addr_map *map, struct frag_addr_cell *cell)
{
	size_t behind = ((size_t)(cell - map->cells) + 1) & map->mask;

	map->count--;
	if (FRAG_LIKELY(!map->cells[behind].value))
		cell->value = 0;
	else
		frag_addr_map_shift(map, cell);
}

/* ---- values are numbers from 0 on ---- */

static inline uint32_t frag_addr_number(const struct frag_addr_cell *cell)
{
	return (uint32_t)(cell->value - 1);
}

/* 0 or FRAG_ENOMEM. pre: addr is absent. */
static inline int frag_addr_map_number(struct frag_addr_map *map, uint64_t addr, uint64_t number)
{
	int rc = frag_addr_map_reserve(map);

	if (!rc)
		frag_addr_map_add(map, addr, number + 1);
	return rc;
}

/* ---- values are pointers ---- */

static inline void *frag_addr_map_get(const struct frag_addr_map *map, uint64_t addr)
{
	const struct frag_addr_cell *cell = frag_addr_map_find(map, addr);

	return cell ? (void *)(uintptr_t)cell->value : NULL;
}

/* pre: reserved, addr is absent, value is not NULL. */
static inline void frag_addr_map_put(struct frag_addr_map *map, uint64_t addr, void *value)
{
	frag_addr_map_add(map, addr, (uintptr_t)value);
}

/* Removes and returns the value, NULL if absent. */
static inline void *frag_addr_map_take(struct frag_addr_map *map, uint64_t addr)
{
	struct frag_addr_cell *cell = frag_addr_map_find(map, addr);
	void *value = cell ? (void *)(uintptr_t)cell->value : NULL;

	if (cell)
		frag_addr_map_remove(map, cell);
	return value;
}

#endif
