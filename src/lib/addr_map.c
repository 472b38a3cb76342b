/* SPDX-License-Identifier: Apache-2.0 */
#include "addr_map.h"

#include <frag/error.h>

#define FIRST_BITS 8u

void frag_addr_map_release(struct frag_addr_map *map)
{
	frag_host_free(map->cells);
	*map = (struct frag_addr_map){ 0 };
}

int frag_addr_map_grow(struct frag_addr_map *map)
{
	unsigned bits = map->mask ? 64 - map->shift + 1 : FIRST_BITS;
	struct frag_addr_map grown = { .mask = ((size_t)1 << bits) - 1, .shift = 64 - bits };

	grown.cells = frag_host_calloc(grown.mask + 1, sizeof(*grown.cells));
	if (!grown.cells)
		return FRAG_ENOMEM;
	for (size_t i = 0; map->mask && i <= map->mask; i++)
		if (map->cells[i].value)
			frag_addr_map_add(&grown, map->cells[i].addr, map->cells[i].value);
	frag_host_free(map->cells);
	*map = grown;
	return 0;
}

void frag_addr_map_shift(struct frag_addr_map *map, struct frag_addr_cell *cell)
{
	size_t hole = (size_t)(cell - map->cells), at = hole;

	for (;;) {
		size_t home;

		at = (at + 1) & map->mask;
		if (!map->cells[at].value)
			break;
		/* the entry at `at` may move to the hole only if its home is not after the hole */
		home = frag_addr_home(map, map->cells[at].addr);
		if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
			map->cells[hole] = map->cells[at];
			hole = at;
		}
	}
	map->cells[hole].value = 0;
}
