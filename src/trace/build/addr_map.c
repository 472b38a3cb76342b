/* SPDX-License-Identifier: Apache-2.0 */
#include "addr_map.h"

static int set_size(struct frag_addr_map *map, unsigned bits, struct frag_err *err)
{
	size_t n = (size_t)1 << bits;
	struct frag_addr_cell *cells = frag_host_alloc(n * sizeof(*cells));

	if (!cells)
		return frag_fail_nomem(err, "address map");
	for (size_t i = 0; i < n; i++)
		cells[i].value = FRAG_ADDR_EMPTY;
	map->cells = cells;
	map->mask = n - 1;
	map->shift = 64 - bits;
	return 0;
}

static void insert(struct frag_addr_map *map, frag_addr_t addr, uint32_t value)
{
	size_t at = frag_addr_home(map, addr);

	while (map->cells[at].value != FRAG_ADDR_EMPTY)
		at = (at + 1) & map->mask;
	map->cells[at] = (struct frag_addr_cell){ addr, value };
}

int frag_addr_map_init(struct frag_addr_map *map, struct frag_err *err)
{
	map->count = 0;
	return set_size(map, 8, err);
}

void frag_addr_map_release(struct frag_addr_map *map)
{
	frag_host_free(map->cells);
	*map = (struct frag_addr_map){ 0 };
}

int frag_addr_map_grow(struct frag_addr_map *map, struct frag_err *err)
{
	struct frag_addr_map old = *map;

	FRAG_TRY(set_size(map, 64 - map->shift + 1, err));
	for (size_t i = 0; i <= old.mask; i++)
		if (old.cells[i].value != FRAG_ADDR_EMPTY)
			insert(map, old.cells[i].addr, old.cells[i].value);
	frag_host_free(old.cells);
	return 0;
}

int frag_addr_map_put(struct frag_addr_map *map, frag_addr_t addr, uint32_t value,
		      struct frag_err *err)
{
	FRAG_TRY(frag_addr_map_reserve(map, err));
	insert(map, addr, value);
	map->count++;
	return 0;
}

void frag_addr_map_shift(struct frag_addr_map *map, struct frag_addr_cell *cell)
{
	size_t hole = (size_t)(cell - map->cells), at = hole;

	for (;;) {
		size_t home;

		at = (at + 1) & map->mask;
		if (map->cells[at].value == FRAG_ADDR_EMPTY)
			break;
		/* may the entry at `at` move to the hole? Only if its home is not behind the hole */
		home = frag_addr_home(map, map->cells[at].addr);
		if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
			map->cells[hole] = map->cells[at];
			hole = at;
		}
	}
	map->cells[hole].value = FRAG_ADDR_EMPTY;
}
