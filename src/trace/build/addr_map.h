/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address -> number, for what is live: open addressing, linear probing, at most
 * a quarter full, removal by shifting back (no tombstones, so a long history costs
 * no more than its live blocks).
 */
#ifndef FRAG_TRACE_ADDR_MAP_H
#define FRAG_TRACE_ADDR_MAP_H

#include <frag/base.h>
#include <frag/error.h>

struct frag_addr_cell {
	frag_addr_t addr;
	uint32_t value; /* FRAG_ADDR_EMPTY = no entry */
};
#define FRAG_ADDR_EMPTY UINT32_MAX

struct frag_addr_map {
	struct frag_addr_cell *cells;
	size_t count, mask;
	unsigned shift; /* 64 - log2(cells) */
};

int frag_addr_map_init(struct frag_addr_map *map, struct frag_err *err);
void frag_addr_map_release(struct frag_addr_map *map); /* zeroed is allowed */
/* pre: absent (checked by find), value != FRAG_ADDR_EMPTY. */
int frag_addr_map_put(struct frag_addr_map *map, frag_addr_t addr, uint32_t value,
		      struct frag_err *err);
int frag_addr_map_grow(struct frag_addr_map *map, struct frag_err *err);
/* For frag_addr_map_remove, where others lie behind the cell. */
void frag_addr_map_shift(struct frag_addr_map *map, struct frag_addr_cell *cell);

/* Makes room for one more entry: the next frag_addr_map_add cannot fail. */
static inline int frag_addr_map_reserve(struct frag_addr_map *map, struct frag_err *err)
{
	return FRAG_LIKELY(map->count * 4 <= map->mask) ? 0 : frag_addr_map_grow(map, err);
}

/* pre: cell comes from find and nothing changed since. */
static inline void frag_addr_map_remove(struct frag_addr_map *map, struct frag_addr_cell *cell)
{
	size_t behind = ((size_t)(cell - map->cells) + 1) & map->mask;

	map->count--;
	if (FRAG_LIKELY(map->cells[behind].value == FRAG_ADDR_EMPTY))
		cell->value = FRAG_ADDR_EMPTY;
	else
		frag_addr_map_shift(map, cell);
}

/* Blocks are multiples of 512: the low bits say nothing. */
static inline size_t frag_addr_home(const struct frag_addr_map *map, frag_addr_t addr)
{
	return (size_t)(((addr >> 9 | addr << 55) * 0x9e3779b97f4a7c15ull) >> map->shift);
}

/* The cell of addr, NULL if absent. Borrowed until the next change. */
static inline struct frag_addr_cell *frag_addr_map_find(const struct frag_addr_map *map,
							frag_addr_t addr)
{
	size_t at = frag_addr_home(map, addr);

	for (;; at = (at + 1) & map->mask) {
		struct frag_addr_cell *cell = &map->cells[at];

		if (cell->value == FRAG_ADDR_EMPTY)
			return NULL;
		if (cell->addr == addr)
			return cell;
	}
}

/* Enters addr unless it is there; false if it is. pre: frag_addr_map_reserve. */
static inline bool frag_addr_map_add(struct frag_addr_map *map, frag_addr_t addr, uint32_t value)
{
	size_t at = frag_addr_home(map, addr);

	for (; map->cells[at].value != FRAG_ADDR_EMPTY; at = (at + 1) & map->mask)
		if (map->cells[at].addr == addr)
			return false;
	map->cells[at] = (struct frag_addr_cell){ addr, value };
	map->count++;
	return true;
}

#endif
