/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds room in the expandable segments of a set: the lowest unmapped block that, together with
 * the free and unmapped blocks around it, is long enough. The source walks all of them; with many
 * short holes that walk would take most of the time.
 *
 * Structure. Free and unmapped blocks in turn, without a live one between them, are an
 * idle run. Each unmapped block has a bound, and each segment a tournament over its pages, at
 * which unmapped blocks begin, of these bounds (lib/tournament.h; 0 where none begins). A
 * search that finds a run too short writes its length to all bounds in it; a block that is
 * freed beside unmapped ones makes a nearest bound unknown. Cutting a run in two needs no
 * update: growth on either side of the cut has already marked its bounds. So looking at a run costs
 * its length, but only once after it has grown. The block that has never been mapped may begin
 * behind the leaves.
 *
 * Invariants: leaf p is the bound of the unmapped block that begins at page p; the greatest
 * bound of a run is not below its length.
 */
#include "pt.h"

#include "lib/tournament.h"

#include <string.h>

static bool idle(const struct pt_block *b)
{
	return b->state == PT_FREE || b->state == PT_UNMAPPED;
}

static void set_leaf(struct pt_seg *g, frag_addr_t addr, uint64_t bound)
{
	size_t i = (addr - g->base) / g->page;

	if (i < g->leaves)
		frag_tournament_set(g->max, g->leaves, i, bound);
}

int pt_room_pages(struct pt_block *u, frag_addr_t end, struct frag_err *err)
{
	struct pt_seg *g = u->seg;
	size_t pages = (end - g->base) / g->page;
	size_t leaves = FRAG_MAX(g->leaves, 64u);
	uint64_t *max;

	if (pages <= g->leaves)
		return 0;
	while (leaves < pages)
		leaves *= 2;
	FRAG_TRY_CALLOC(max, 2 * leaves, "pytorch: pages", err);
	if (g->leaves)
		memcpy(max + leaves, g->max + g->leaves, g->leaves * sizeof(*max));
	frag_tournament_build(max, leaves);
	frag_host_free(g->max);
	g->max = max;
	g->leaves = leaves;
	/* it may have been the one behind the leaves */
	set_leaf(g, u->addr, u->bound);
	return 0;
}

static void make_unknown(struct pt_block *u)
{
	u->bound = PT_BOUND_UNKNOWN;
	set_leaf(u->seg, u->addr, u->bound);
}

void pt_unmapped_insert(struct pt_block *b)
{
	b->state = PT_UNMAPPED;
	frag_bset_insert(&b->set->unmapped, 0, b->addr, b);
	make_unknown(b);
}

void pt_unmapped_erase(struct pt_block *b)
{
	frag_bset_erase(&b->set->unmapped, 0, b->addr);
	set_leaf(b->seg, b->addr, 0);
}

void pt_room_grown(struct pt_block *b)
{
	struct pt_block *u = b->next && b->next->state == PT_UNMAPPED ? b->next : b->prev;

	if (u && u->state == PT_UNMAPPED && u->bound != PT_BOUND_UNKNOWN)
		make_unknown(u);
}

static struct pt_block *run_begin(struct pt_block *b)
{
	while (b->prev && idle(b->prev))
		b = b->prev;
	return b;
}

/* Where the idle run that `u` is in begins if it is long enough; else its length is noted. */
static struct pt_block *look(struct pt_block *u, uint64_t size)
{
	struct pt_block *start = run_begin(u);
	uint64_t sum = 0;

	for (struct pt_block *b = start; b && idle(b) && sum < size; b = b->next)
		sum += b->size;
	if (sum >= size)
		return start;
	for (struct pt_block *b = start; b && idle(b); b = b->next) {
		if (b->state != PT_UNMAPPED || b->bound == sum)
			continue;
		b->bound = sum;
		set_leaf(b->seg, b->addr, sum);
	}
	return NULL;
}

static struct pt_block *unmapped_at(const struct pt_set *set, frag_addr_t addr)
{
	struct frag_bset_node *at = frag_bset_lower(&set->unmapped, 0, addr);

	return frag_bset_value(at);
}

static struct pt_block *find_in(struct pt_seg *g, uint64_t size)
{
	struct pt_block *u, *start;

	while (g->leaves && g->max[1] >= size) {
		size_t i = 1;

		while (i < g->leaves) {
			i *= 2;
			i += g->max[i] < size;
		}
		u = unmapped_at(g->set, g->base + (i - g->leaves) * g->page);
		start = look(u, size);
		if (start)
			return start;
	}
	u = unmapped_at(g->set, g->base + g->leaves * g->page);
	return u && u->seg == g ? look(u, size) : NULL;
}

struct pt_block *pt_room_find(struct pt_set *set, uint64_t size)
{
	struct pt_block *u = unmapped_at(set, 0);

	while (u) {
		struct pt_seg *g = u->seg;
		struct pt_block *start = find_in(g, size);

		if (start)
			return start;
		u = unmapped_at(set, g->base + g->bytes);
	}
	return NULL;
}

/* A run from its first block on. */
static bool run_is_sound(const struct pt_seg *g, const struct pt_block *b)
{
	uint64_t sum = 0, greatest = 0;
	bool any = false;

	for (; b && idle(b); b = b->next) {
		size_t i = (b->addr - g->base) / g->page;

		sum += b->size;
		if (b->state != PT_UNMAPPED)
			continue;
		any = true;
		greatest = FRAG_MAX(greatest, b->bound);
		if (i < g->leaves && g->max[g->leaves + i] != b->bound)
			return false;
	}
	return !any || greatest >= sum;
}

const char *pt_room_broken(const struct pt_seg *g)
{
	for (size_t i = g->leaves; i-- > 1;)
		if (g->max[i] != FRAG_MAX(g->max[2 * i], g->max[2 * i + 1]))
			return "the tournament of an expandable segment";
	for (const struct pt_block *b = g->first; b; b = b->next)
		if (idle(b) && !(b->prev && idle(b->prev)) && !run_is_sound(g, b))
			return "the bounds of an idle run";
	return NULL;
}
