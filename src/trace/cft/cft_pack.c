/* SPDX-License-Identifier: Apache-2.0 */
/* Packing blocks of events and of addresses; see cft.h. */
#include "cft.h"

#include <stdlib.h>
#include <string.h>

/* ---- tables of distinct values ------------------------------------------------- */

static int compare_pairs(const void *x, const void *y)
{
	const struct frag_cft_pair *p = x, *q = y;

	/* branches, not FRAG_ORDER: half the instructions of a sort of all pairs */
	if (p->b != q->b)
		return p->b < q->b ? -1 : 1;
	return p->a < q->a ? -1 : p->a > q->a;
}

static void clear_hash(struct frag_cft_coder *c, size_t count)
{
	c->hash_mask = (4u << frag_log2(count | 1)) - 1;
	memset(c->hash, 0, ((size_t)c->hash_mask + 1) * sizeof(c->hash[0]));
}

static uint32_t *find(struct frag_cft_coder *c, const struct frag_cft_pair *p)
{
	uint64_t h = (p->a ^ p->b << 40) * 0x9E3779B97F4A7C15ull;
	uint32_t at = (uint32_t)(h >> 40) & c->hash_mask;

	while (c->hash[at] && compare_pairs(&c->distinct[c->hash[at] - 1], p))
		at = (at + 1) & c->hash_mask;
	return &c->hash[at];
}

/*
 * c->pair[count] -> c->distinct in ascending order (it packs much smaller than in order of
 * appearance) and c->index[count]. Returns how many are distinct.
 */
static size_t make_table(struct frag_cft_coder *c, size_t count)
{
	size_t distinct = 0;

	clear_hash(c, count);
	for (size_t i = 0; i < count; i++) {
		uint32_t *place = find(c, &c->pair[i]);

		if (!*place) {
			c->distinct[distinct++] = c->pair[i];
			*place = (uint32_t)distinct;
		}
	}
	qsort(c->distinct, distinct, sizeof(c->distinct[0]), compare_pairs);
	clear_hash(c, distinct);
	for (size_t i = 0; i < distinct; i++)
		*find(c, &c->distinct[i]) = (uint32_t)i + 1;
	for (size_t i = 0; i < count; i++)
		c->index[i] = (uint16_t)(*find(c, &c->pair[i]) - 1);
	return distinct;
}

/* One byte per index where that is enough. */
static int pack_index(struct frag_cft_coder *c, size_t count, size_t distinct,
		      struct frag_cft_columns *p, struct frag_err *err)
{
	if (distinct > 256)
		return frag_cft_pack_raw(p, c->index, count, 2, err);
	for (size_t i = 0; i < count; i++)
		c->code[i] = (uint8_t)c->index[i];
	return frag_cft_pack_raw(p, c->code, count, 1, err);
}

/* Packs table and indices of c->pair[count] where b is 0; only the table if it is one value. */
static int pack_values(struct frag_cft_coder *c, size_t count, struct frag_cft_columns *p,
		       struct frag_err *err)
{
	size_t distinct = make_table(c, count);

	for (size_t i = 0; i < distinct; i++)
		c->number[i] = c->distinct[i].a;
	FRAG_TRY(frag_cft_pack_numbers(p, c->number, distinct, true, err));
	return distinct > 1 ? pack_index(c, count, distinct, p, err) : 0;
}

/* ---- packing events -------------------------------------------------------------- */

/* Where the event differs from the prediction of the model. Accepts invalid events, too. */
static unsigned mode_of(const struct frag_cft_model *m, const struct frag_event *ev)
{
	const struct frag_cft_slot *s;
	unsigned mode = 0;
	uint32_t age;

	if (ev->kind == FRAG_EV_ALLOC)
		return FRAG_CFT_OWN_REQUEST |
		       (ev->slot != frag_cft_model_next(m) ? FRAG_CFT_NAMED_SLOT : 0);
	if (!frag_cft_is_free(ev->kind))
		return FRAG_CFT_OWN_REQUEST |
		       (ev->slot || ev->kind == FRAG_EV_MARK ? FRAG_CFT_NAMED_SLOT : 0);
	if (ev->slot >= m->count)
		return FRAG_CFT_NAMED_SLOT;
	s = &m->slots[ev->slot];
	age = (uint32_t)m->allocs - 1 - s->prev;
	if (age >= FRAG_CFT_AGES || m->recent[s->prev % FRAG_CFT_AGES] != ev->slot)
		mode |= FRAG_CFT_NAMED_SLOT;
	if (s->stream != ev->stream || s->bytes_pool >> 48 != ev->pool)
		mode |= FRAG_CFT_OWN_REQUEST;
	return mode;
}

/* The code for this word, or -1 if the block has no room for another one. */
static int code_for(struct frag_cft_coder *c, uint32_t word)
{
	unsigned key = (word & 7) | (word >> 8 & 0xff) << 3 | word >> 16 << 11;

	if (!c->code_of[key]) {
		if (c->codes == FRAG_CFT_CODES_MAX)
			return -1;
		c->words[c->codes++] = word;
		c->code_of[key] = (uint16_t)c->codes;
	}
	return c->code_of[key] - 1;
}

/* Fills the scratch columns from ev[0 .. n->events), which may become fewer. */
static const char *gather(struct frag_cft_coder *c, struct frag_cft_model *m,
			  const struct frag_event *ev, struct frag_cft_counts *n)
{
	for (size_t i = 0; i < n->events; i++, ev++) {
		unsigned mode = mode_of(m, ev);
		uint64_t elapsed = (ev->time_us - m->time_us) & FRAG_CFT_TIME_MASK;
		const char *wrong;
		uint32_t age = 0;
		int code;

		code = code_for(c, ev->kind | (uint32_t)ev->flags << 8 | mode << 16);
		if (code < 0) {
			n->events = i;
			break;
		}
		if (frag_cft_is_free(ev->kind) && !(mode & FRAG_CFT_NAMED_SLOT))
			age = (uint32_t)m->allocs - 1 - m->slots[ev->slot].prev;
		wrong = frag_cft_model_step(m, ev);
		if (wrong)
			return wrong;
		c->code[i] = (uint8_t)code;
		c->time[i] = (uint8_t)FRAG_MIN(elapsed, FRAG_CFT_TIME_ESCAPE);
		if (elapsed >= FRAG_CFT_TIME_ESCAPE)
			c->late[n->late++] = elapsed;
		if (mode & FRAG_CFT_NAMED_SLOT)
			c->named[n->named++] = ev->slot;
		else if (frag_cft_is_free(ev->kind))
			c->age[n->ages++] = (uint16_t)age;
		if (mode & FRAG_CFT_OWN_REQUEST)
			c->pair[n->requests++] =
				(struct frag_cft_pair){ ev->bytes | (uint64_t)ev->pool << 48,
							ev->stream };
	}
	return NULL;
}

static int pack_requests(struct frag_cft_coder *c, size_t count, struct frag_cft_columns *p,
			 struct frag_err *err)
{
	size_t distinct = make_table(c, count);

	for (size_t i = 0; i < distinct; i++)
		c->number[i] = c->distinct[i].a & FRAG_MAX_REQUEST;
	FRAG_TRY(frag_cft_pack_numbers(p, c->number, distinct, true, err));
	for (size_t i = 0; i < distinct; i++)
		c->number[i] = c->distinct[i].a >> 48;
	FRAG_TRY(frag_cft_pack_numbers(p, c->number, distinct, false, err));
	for (size_t i = 0; i < distinct; i++)
		c->number[i] = c->distinct[i].b;
	FRAG_TRY(frag_cft_pack_numbers(p, c->number, distinct, true, err));
	return pack_index(c, count, distinct, p, err);
}

int frag_cft_pack_events(struct frag_cft_coder *c, struct frag_cft_model *m,
			 const struct frag_event *ev, size_t count, struct frag_cft_columns *p,
			 size_t *taken, struct frag_err *err)
{
	struct frag_cft_counts n = { .events = FRAG_MIN(count, (size_t)FRAG_CFT_BATCH) };
	const char *wrong;

	FRAG_TRY(frag_cft_model_reserve(m, err));
	memset(c->code_of, 0, sizeof(c->code_of));
	c->codes = 0;
	wrong = gather(c, m, ev, &n);
	if (wrong)
		return frag_fail_at(err, FRAG_EINPUT, m->events,
				    "event %llu of device %u cannot be stored: %s",
				    (unsigned long long)m->events, m->dev->ordinal, wrong);
	FRAG_TRY(frag_cft_pack_raw(p, c->words, c->codes, 4, err));
	FRAG_TRY(frag_cft_pack_raw(p, c->code, n.events, 1, err));
	FRAG_TRY(frag_cft_pack_raw(p, c->time, n.events, 1, err));
	FRAG_TRY(frag_cft_pack_numbers(p, c->late, n.late, false, err));
	FRAG_TRY(frag_cft_pack_raw(p, c->age, n.ages, 2, err));
	FRAG_TRY(frag_cft_pack_numbers(p, c->named, n.named, true, err));
	FRAG_TRY(pack_requests(c, n.requests, p, err));
	for (size_t i = 0; i < n.events; i++)
		c->pair[i] = (struct frag_cft_pair){ ev[i].stack, 0 };
	FRAG_TRY(pack_values(c, n.events, p, err));
	*taken = n.events;
	return 0;
}

/* ---- addresses ---------------------------------------------------------------------- */

int frag_cft_pack_addrs(struct frag_cft_coder *c, const struct frag_event *ev,
			const frag_addr_t *addrs, size_t count, struct frag_cft_columns *p,
			struct frag_err *err)
{
	size_t allocs = 0;

	FRAG_ASSERT(count <= FRAG_CFT_BATCH);
	for (size_t i = 0; i < count; i++) {
		if (ev[i].kind == FRAG_EV_ALLOC)
			c->pair[allocs++] = (struct frag_cft_pair){ addrs[i], 0 };
		else if (addrs[i] != FRAG_NO_ADDR)
			return FRAG_INPUT(err, "an address without an alloc cannot be stored");
	}
	return pack_values(c, allocs, p, err);
}
