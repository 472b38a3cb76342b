/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of a slab, and which slab of a class comes next. */
#include "sizeclass.h"

#include <string.h>

void frag_sc_class_init(struct frag_sc_class *c, uint64_t bytes, uint64_t page,
			struct frag_slab *nodes)
{
	*c = (struct frag_sc_class){ .bytes = bytes, .slots = (uint32_t)(page / bytes) };
	c->words = (c->slots + 63) / 64;
	frag_bset_init_shared(&c->partial, nodes);
}

/* ---- records ------------------------------------------------------------------------------ */

static const uint64_t *waiting_bits(const struct frag_sc_slab *l)
{
	return l->bits + l->class->words;
}

struct frag_sc_slab *frag_sc_slab_new(struct frag_sc_class *c)
{
	struct frag_sc_slab *l =
		frag_host_calloc(1, sizeof(*l) + 2ul * c->words * sizeof(l->bits[0]));

	if (!l)
		return NULL;
	l->class = c;
	l->free_count = c->slots;
	memset(l->bits, 0xff, c->words * sizeof(l->bits[0]));
	if (c->slots % 64)
		l->bits[c->words - 1] = (1ull << c->slots % 64) - 1;
	l->summary = c->words == 64 ? ~0ull : (1ull << c->words) - 1;
	return l;
}

/* ---- slots ---------------------------------------------------------------------------------- */

struct frag_sc_slab *frag_sc_next(struct frag_sc_class *c)
{
	struct frag_bset_node *at = frag_bset_first(&c->partial);

	c->current = NULL;
	if (at) {
		c->current = at->value;
		frag_bset_erase_at(&c->partial, at);
	}
	return c->current;
}

/* A slab that was full has a free slot now. */
static void not_full(struct frag_sc_class *c, struct frag_sc_slab *l)
{
	struct frag_sc_slab *cur = c->current;

	/* without a current slab the next request looks for the lowest */
	if (!cur || l->piece->addr > cur->piece->addr) {
		frag_bset_insert(&c->partial, 0, l->piece->addr, l);
		return;
	}
	if (cur->free_count)
		frag_bset_insert(&c->partial, 0, cur->piece->addr, cur);
	c->current = l;
}

bool frag_sc_put_slot(struct frag_sc_slab *l, uint32_t slot)
{
	struct frag_sc_class *c = l->class;

	l->bits[slot / 64] |= 1ull << slot % 64;
	l->summary |= 1ull << slot / 64;
	if (!l->free_count++ && l != c->current)
		not_full(c, l);
	if (FRAG_LIKELY(l->free_count < c->slots))
		return false;
	if (l == c->current)
		c->current = NULL;
	else
		frag_bset_erase(&c->partial, 0, l->piece->addr);
	return true;
}

bool frag_sc_wait_slot(struct frag_sc_slab *l, uint32_t slot)
{
	uint64_t *word = l->bits + l->class->words + slot / 64, bit = 1ull << slot % 64;

	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

bool frag_sc_unwait_slot(struct frag_sc_slab *l, uint32_t slot)
{
	uint64_t *word = l->bits + l->class->words + slot / 64, bit = 1ull << slot % 64;

	if (FRAG_LIKELY(!(*word & bit)))
		return false;
	*word &= ~bit;
	return true;
}

/* ---- walk and check ------------------------------------------------------------- */

static enum frag_block_state slot_state(const struct frag_sc_slab *l, uint32_t slot)
{
	uint64_t bit = 1ull << slot % 64;

	if (l->bits[slot / 64] & bit)
		return FRAG_STATE_FREE;
	return waiting_bits(l)[slot / 64] & bit ? FRAG_STATE_WAITING : FRAG_STATE_LIVE;
}

void frag_sc_visit(const struct frag_sc_slab *l, const struct frag_visitor *v)
{
	uint64_t bytes = l->class->bytes;
	frag_addr_t at = l->piece->addr, end = at + l->piece->bytes, from = at;
	uint32_t slot;

	for (slot = 0; slot < l->class->slots; slot++, at += bytes) {
		enum frag_block_state state = slot_state(l, slot);

		if (state == FRAG_STATE_FREE)
			continue;
		if (from < at)
			v->block(v->ctx, from, at - from, FRAG_STATE_FREE, 0);
		v->block(v->ctx, at, bytes, state, 0);
		from = at + bytes;
	}
	if (from < end)
		v->block(v->ctx, from, end - from, FRAG_STATE_FREE, 0);
}

bool frag_sc_is_sound(const struct frag_sc_slab *l, size_t *in_set)
{
	const struct frag_sc_class *c = l->class;
	bool listed = frag_bset_has(&c->partial, 0, l->piece->addr, l);
	uint32_t free_count = 0;

	for (uint32_t slot = 0; slot < c->slots; slot++)
		free_count += slot_state(l, slot) == FRAG_STATE_FREE;
	*in_set += listed;
	return free_count == l->free_count && free_count < c->slots &&
	       listed == (free_count && l != c->current) &&
	       !(listed && c->current && c->current->piece->addr > l->piece->addr);
}
