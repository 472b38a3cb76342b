/* SPDX-License-Identifier: Apache-2.0 */
/* Physical blocks: taken from where they are free, created, mapped. See dali.h. */
#include "dali.h"

#include "environment.h"

static struct dali_block *block_at(const struct dali *d, frag_addr_t addr)
{
	struct dali_region *r = dali_region_of(d, addr);

	return &r->blocks[(addr - r->base) / d->block];
}

/* A block came to be held (sign 1) or not (-1): the number of stretches changes. */
static void note_held(struct dali *d, frag_addr_t addr, int sign)
{
	struct dali_region *r = dali_region_of(d, addr);
	size_t i = (addr - r->base) / d->block;
	int neighbours = (i && r->blocks[i - 1].stage != DALI_NONE) +
			 (i + 1 < r->blocks_count && r->blocks[i + 1].stage != DALI_NONE);

	d->held_count += (uint64_t)sign;
	d->stretches_count += (uint64_t)(sign * (1 - neighbours));
}

/* Unmaps the block at addr, the state of its piece is the caller's. */
static int unmap_block(struct dali *d, frag_addr_t addr, struct frag_err *err)
{
	struct dali_block *b = block_at(d, addr);

	FRAG_TRY(frag_dev_unmap(d->env.dev, addr, d->block, err));
	if (b->stage == DALI_OPEN)
		frag_env_journal(&d->env, FRAG_SEGMENT_UNMAP, addr, d->block, 0);
	b->stage = DALI_CREATED;
	return 0;
}

static int map_block(struct dali *d, frag_addr_t addr, struct frag_err *err)
{
	struct dali_block *b = block_at(d, addr);

	if (b->stage == DALI_CREATED) {
		FRAG_TRY(frag_dev_map(d->env.dev, addr, d->block, b->handle, err));
		b->stage = DALI_PLACED;
	}
	if (b->stage == DALI_PLACED) {
		FRAG_TRY(frag_dev_set_access(d->env.dev, addr, d->block, err));
		b->stage = DALI_OPEN;
		frag_env_journal(&d->env, FRAG_SEGMENT_MAP, addr, d->block, 0);
	}
	return 0;
}

/* Gives the memory of a block back, as far as the driver takes it. Never fails. */
static int drop_block(struct dali *d, frag_addr_t addr, struct frag_err *err)
{
	struct dali_block *b = block_at(d, addr);

	(void)err;
	if (b->stage == DALI_PLACED || b->stage == DALI_OPEN)
		unmap_block(d, addr, NULL);
	if (b->stage == DALI_CREATED && !frag_dev_release(d->env.dev, b->handle, d->block, NULL)) {
		b->stage = DALI_NONE;
		note_held(d, addr, -1);
	}
	return 0;
}

/* The free piece with the first whole block: regions in order, then addresses. */
static struct dali_piece *first_whole(const struct dali *d)
{
	for (size_t i = 0; i < d->regions_count; i++) {
		const struct dali_region *r = &d->regions[i];
		struct frag_bset_node *at = frag_bset_lower(&d->whole, r->base, 0);
		struct dali_piece *p = frag_bset_value(at);

		if (p && p->addr - r->base < r->blocks_count * d->block)
			return p;
	}
	return NULL;
}

/*
 * The first wholly free block loses its place, which becomes a hole; *from is where it was. Its
 * memory is still held there, unmapped. pre: there is one, and room for two pieces.
 */
static int unmap_first(struct dali *d, frag_addr_t *from, struct frag_err *err)
{
	struct dali_piece *p = first_whole(d);
	int rc;

	FRAG_ASSERT(p);
	*from = dali_ceil(d, p->addr);
	dali_take_out(d, p);
	p = dali_cut(d, p, *from, *from + d->block, DALI_MAPPED);
	rc = unmap_block(d, *from, err);
	dali_give(d, p, rc ? DALI_MAPPED : DALI_HOLE);
	return rc;
}

/* Memory from elsewhere for the place at addr, if it has none. */
static int move_in(struct dali *d, frag_addr_t addr, struct frag_err *err)
{
	struct dali_block moved;
	frag_addr_t from;

	if (block_at(d, addr)->stage != DALI_NONE)
		return 0;
	FRAG_CHECK_ALLOC(!dali_room(d, 2), "blocks of dali-vm", err);
	FRAG_TRY(unmap_first(d, &from, err));
	/* one after the other: the two may be neighbours */
	moved = *block_at(d, from);
	block_at(d, from)->stage = DALI_NONE;
	note_held(d, from, -1);
	*block_at(d, addr) = moved;
	note_held(d, addr, 1);
	d->moved_blocks++;
	return 0;
}

/* New memory for the place at addr, unless it has some or a block from elsewhere will come. */
static int create_block(struct dali *d, frag_addr_t addr, struct frag_err *err)
{
	struct dali_block *b = block_at(d, addr);

	if (b->stage != DALI_NONE)
		return 0;
	if (d->moves_left) {
		d->moves_left--;
		return 0;
	}
	if (frag_env_over_limit(&d->env, d->block))
		return FRAG_OOM;
	FRAG_TRY(frag_dev_create(d->env.dev, d->block, &b->handle, err));
	b->stage = DALI_CREATED;
	note_held(d, addr, 1);
	d->created_blocks++;
	return 0;
}

static int count_bare(struct dali *d, frag_addr_t addr, struct frag_err *err)
{
	(void)err;
	d->moves_left += block_at(d, addr)->stage == DALI_NONE;
	return 0;
}

/* ---- backing a stretch -------------------------------------------------------------------- */

/*
 * Takes the pieces over [lo, hi) out, cut at its ends; holes are cut at the borders of blocks, so
 * more may go out. Returns the first and the last. pre: room for two pieces.
 */
static struct dali_piece *take_stretch(struct dali *d, struct dali_piece *p, frag_addr_t lo,
				       frag_addr_t hi, struct dali_piece **last)
{
	struct dali_piece *first;

	while (dali_end(p) <= lo)
		p = p->next;
	dali_take_out(d, p);
	if (p->was == DALI_HOLE)
		lo = dali_floor(d, lo);
	for (first = p = dali_cut(d, p, lo, UINT64_MAX, p->was); dali_end(p) < hi; p = p->next)
		dali_take_out(d, p->next);
	if (p->was == DALI_HOLE)
		hi = dali_ceil(d, hi);
	*last = dali_cut(d, p, p->addr, hi, p->was);
	return first;
}

/* Calls `step` for each block of the holes among the pieces from first to last. */
static int each_block(struct dali *d, struct dali_piece *first, struct dali_piece *last,
		      int (*step)(struct dali *d, frag_addr_t addr, struct frag_err *err),
		      struct frag_err *err)
{
	for (struct dali_piece *p = first;; p = p->next) {
		frag_addr_t at;

		for (at = p->addr; p->was == DALI_HOLE && at < dali_end(p); at += d->block)
			FRAG_TRY(step(d, at, err));
		if (p == last)
			return 0;
	}
}

/* After a failure: new memory goes back, pieces become what they were. */
static void put_back(struct dali *d, struct dali_piece *p, struct dali_piece *last)
{
	struct dali_piece *next;
	bool end;

	each_block(d, p, last, drop_block, NULL);
	do {
		end = p == last;
		next = p->next;
		dali_give(d, p, p->was);
		p = next;
	} while (!end);
}

/* Memory for every place of the stretch, mapped: new blocks first, then those that move. */
static int fill(struct dali *d, struct dali_piece *p, struct dali_piece *last, struct frag_err *err)
{
	uint64_t moves;

	d->moves_left = 0;
	each_block(d, p, last, count_bare, NULL);
	moves = d->moves_left = FRAG_MIN(d->moves_left, d->whole_blocks);
	FRAG_TRY(each_block(d, p, last, create_block, err));
	if (moves) {
		FRAG_TRY(frag_dev_sync_all(d->env.dev, err));
		FRAG_TRY(each_block(d, p, last, move_in, err));
	}
	return each_block(d, p, last, map_block, err);
}

int dali_back(struct dali *d, struct dali_piece *first, frag_addr_t addr, uint64_t bytes,
	      struct dali_piece **out, struct frag_err *err)
{
	struct dali_piece *p, *last;
	int rc;

	FRAG_CHECK_ALLOC(!dali_room(d, 2), "blocks of dali-vm", err);
	p = take_stretch(d, first, addr, addr + bytes, &last);
	rc = fill(d, p, last, err);
	if (!rc && dali_room(d, 2))
		rc = frag_fail_nomem(err, "blocks of dali-vm");
	if (rc) {
		put_back(d, p, last);
		return rc;
	}
	for (bool end = p == last; !end;) {
		end = p->next == last;
		dali_join(d, p);
	}
	*out = dali_cut(d, p, addr, addr + bytes, DALI_MAPPED);
	return 0;
}

/* ---- giving back ------------------------------------------------------------------------ */

static int release_unmapped(struct dali *d, frag_addr_t addr, struct frag_err *err)
{
	struct dali_block *b = block_at(d, addr);

	if (b->stage != DALI_CREATED)
		return 0;
	FRAG_TRY(frag_dev_release(d->env.dev, b->handle, d->block, err));
	b->stage = DALI_NONE;
	note_held(d, addr, -1);
	return 0;
}

int dali_release_unused(struct dali *d, struct frag_err *err)
{
	frag_addr_t from;

	if (!first_whole(d))
		return 0;
	FRAG_TRY(frag_dev_sync_all(d->env.dev, err));
	while (first_whole(d)) {
		FRAG_CHECK_ALLOC(!dali_room(d, 2), "blocks of dali-vm", err);
		FRAG_TRY(unmap_first(d, &from, err));
	}
	for (size_t i = 0; i < d->regions_count; i++)
		for (size_t k = 0; k < d->regions[i].blocks_count; k++)
			FRAG_TRY(release_unmapped(d, d->regions[i].base + k * d->block, err));
	return 0;
}

/* A call that fails is tried once more, so that one failure does not leak the rest. */
void dali_drop_all(struct dali *d)
{
	struct frag_device *dev = d->env.dev;

	for (size_t i = 0; i < d->regions_count; i++) {
		struct dali_region *r = &d->regions[i];

		for (size_t k = 0; k < r->blocks_count; k++) {
			frag_addr_t addr = r->base + k * d->block;

			drop_block(d, addr, NULL);
			if (r->blocks[k].stage != DALI_NONE)
				drop_block(d, addr, NULL);
		}
	}
	for (size_t i = 0; i < d->ranges_count; i++)
		if (frag_dev_unreserve(dev, d->ranges[i].addr, d->ranges[i].bytes, NULL))
			frag_dev_unreserve(dev, d->ranges[i].addr, d->ranges[i].bytes, NULL);
}
