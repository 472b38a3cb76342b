/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks blocks of events and of addresses; see cft.h. Sizes of columns are checked before
 * the hot loop, which therefore has no bounds checks; the events themselves are checked in it. */
#include "cft.h"

#include <string.h>

#include "trace/event_words.h"

static int unpack_index(struct frag_cft_coder *c, size_t count, size_t distinct,
			struct frag_cft_columns *u, struct frag_err *err)
{
	uint64_t at = frag_cft_columns_at(u);
	uint8_t *narrow = (uint8_t *)c->number;
	uint16_t highest = 0;

	if (distinct > 256) {
		FRAG_TRY(frag_cft_unpack_raw(u, c->index, count, 2, err));
	} else {
		FRAG_TRY(frag_cft_unpack_raw(u, narrow, count, 1, err));
		for (size_t i = 0; i < count; i++)
			c->index[i] = narrow[i];
	}
	for (size_t i = 0; i < count; i++)
		highest = FRAG_MAX(highest, c->index[i]);
	if (count && highest >= distinct)
		return frag_cft_bad(err, at, "index beyond its table");
	return 0;
}

/* The same back: c->late[*distinct] and c->index[count] (all 0 for one value). */
static int unpack_values(struct frag_cft_coder *c, size_t count, size_t *distinct,
			 struct frag_cft_columns *u, struct frag_err *err)
{
	FRAG_TRY(frag_cft_unpack_count(u, count, distinct, err));
	if (count && !*distinct)
		return frag_cft_bad(err, frag_cft_columns_at(u), "an empty table");
	FRAG_TRY(frag_cft_unpack_numbers(u, c->late, *distinct, err));
	if (*distinct > 1)
		return unpack_index(c, count, *distinct, u, err);
	memset(c->index, 0, count * sizeof(c->index[0]));
	return 0;
}

/* ---- unpacking events -------------------------------------------------------------- */

/* Codes and how much of each column they need. */
static int unpack_codes(struct frag_cft_coder *c, struct frag_cft_columns *u,
			struct frag_cft_counts *n, struct frag_err *err)
{
	uint64_t at = frag_cft_columns_at(u);
	size_t used[FRAG_CFT_CODES_MAX] = { 0 };

	FRAG_TRY(frag_cft_unpack_count(u, FRAG_CFT_CODES_MAX, &c->codes, err));
	FRAG_TRY(frag_cft_unpack_raw(u, c->words, c->codes, 4, err));
	FRAG_TRY(frag_cft_unpack_raw(u, c->code, n->events, 1, err));
	for (size_t i = 0; i < n->events; i++)
		used[c->code[i]]++;
	for (size_t i = c->codes; i < FRAG_CFT_CODES_MAX; i++)
		if (used[i])
			return frag_cft_bad(err, at, "code beyond its table");
	for (size_t i = 0; i < c->codes; i++) {
		unsigned kind = c->words[i] & 0xff, mode = c->words[i] >> 16;

		if (kind >= FRAG_EV_COUNT || mode > (FRAG_CFT_NAMED_SLOT | FRAG_CFT_OWN_REQUEST) ||
		    (!frag_cft_is_free(kind) && !(mode & FRAG_CFT_OWN_REQUEST)))
			return frag_cft_bad(err, at, "unknown kind of event");
		if (mode & FRAG_CFT_OWN_REQUEST)
			n->requests += used[i];
		if (mode & FRAG_CFT_NAMED_SLOT)
			n->named += used[i];
		else if (frag_cft_is_free(kind))
			n->ages += used[i];
	}
	return 0;
}

static int unpack_requests(struct frag_cft_coder *c, const struct frag_cft_model *m, size_t count,
			   struct frag_cft_columns *u, struct frag_err *err)
{
	uint64_t at = frag_cft_columns_at(u);
	size_t distinct;

	FRAG_TRY(frag_cft_unpack_count(u, count, &distinct, err));
	FRAG_TRY(frag_cft_unpack_numbers(u, c->number, distinct, err));
	for (size_t i = 0; i < distinct; i++) {
		if (c->number[i] > FRAG_MAX_REQUEST)
			return frag_cft_bad(err, at, "request above 2^48 bytes");
		c->distinct[i].a = c->number[i];
	}
	FRAG_TRY(frag_cft_unpack_numbers(u, c->number, distinct, err));
	for (size_t i = 0; i < distinct; i++) {
		if (c->number[i] >= m->dev->pools_count)
			return frag_cft_bad(err, at, "pool out of range");
		c->distinct[i].a |= c->number[i] << 48;
	}
	FRAG_TRY(frag_cft_unpack_numbers(u, c->number, distinct, err));
	for (size_t i = 0; i < distinct; i++) {
		if (c->number[i] >= m->dev->streams_count)
			return frag_cft_bad(err, at, "stream out of range");
		c->distinct[i].b = c->number[i];
	}
	return unpack_index(c, count, distinct, u, err);
}

/* Where the columns are read. */
struct cursor {
	const uint16_t *age, *index;
	const uint64_t *late, *named;
};

/* bytes_pool, kind and flags in `word`: as they lie in an event. */
static inline void put_event(struct frag_event *ev, uint64_t bytes_pool, uint64_t time_us,
			     uint32_t slot, uint64_t stream, uint32_t word)
{
	_Static_assert(FRAG_EVENT_FLAGS_SHIFT == FRAG_EVENT_KIND_SHIFT + 8, "as in a word");
	frag_event_put(ev, (struct frag_event_words){
				   .request = bytes_pool,
				   .when = time_us,
				   .what = slot | stream << FRAG_EVENT_STREAM_SHIFT |
					   (uint64_t)(word & 0xffff) << FRAG_EVENT_KIND_SHIFT });
}

/* Whatever the two fast paths leave: deviations, waiting frees, marks, refusals, initial blocks. */
static const char *unpack_other(struct frag_cft_coder *c, struct frag_cft_model *m, uint32_t word,
				struct cursor *cur, uint64_t time_us, struct frag_event *ev)
{
	unsigned kind = word & 0xff, mode = word >> 16;
	uint64_t bytes_pool = 0, stream = 0;
	uint32_t slot = 0;

	if (mode & FRAG_CFT_NAMED_SLOT) {
		if (*cur->named > UINT32_MAX)
			return "slot out of range";
		slot = (uint32_t)*cur->named++;
	} else if (kind == FRAG_EV_ALLOC) {
		slot = frag_cft_model_next(m);
	} else if (frag_cft_is_free(kind)) {
		slot = m->recent[(m->allocs - 1 - *cur->age++) % FRAG_CFT_AGES];
	}
	if (mode & FRAG_CFT_OWN_REQUEST) {
		const struct frag_cft_pair *request = &c->distinct[*cur->index++];

		bytes_pool = request->a;
		stream = request->b;
	} else if (slot < m->count) {
		bytes_pool = m->slots[slot].bytes_pool;
		stream = m->slots[slot].stream;
	}
	put_event(ev, bytes_pool, time_us, slot, stream, word);
	return frag_cft_model_step(m, ev);
}

static inline void plain_alloc_at(struct frag_cft_model *m, uint32_t slot,
				  const struct frag_cft_pair *request, uint64_t time_us,
				  uint32_t word, struct frag_event *ev)
{
	frag_cft_model_take(m, slot, request->a, (uint16_t)request->b);
	put_event(ev, request->a, time_us, slot, request->b, word);
	m->beginning = false;
	m->events++;
}

/* False: not allowed in the state of that slot. */
static inline bool plain_free_of(struct frag_cft_model *m, uint32_t slot, uint64_t time_us,
				 uint32_t word, struct frag_event *ev)
{
	struct frag_cft_slot *s = &m->slots[slot];
	int state = m->count ? frag_cft_free_result(s, word) : -1;

	if (FRAG_UNLIKELY(state < 0))
		return false;
	put_event(ev, s->bytes_pool, time_us, slot, s->stream, word);
	if (FRAG_LIKELY(state == FRAG_CFT_FREE))
		frag_cft_model_give(m, slot);
	else
		s->state = FRAG_CFT_WAITING;
	m->beginning = false;
	m->events++;
	return true;
}

/* The hot loop. Its two fast paths are frag_cft_model_step for a plain alloc and plain frees,
 * without the checks already made for the tables of the block. */
static const char *unpack_each(struct frag_cft_coder *c, struct frag_cft_model *m, size_t count,
			       struct frag_event *out, size_t *at)
{
	struct cursor cur = { c->age, c->index, c->late, c->named };
	const uint32_t plain_alloc = FRAG_EV_ALLOC | FRAG_CFT_OWN_REQUEST << 16;
	uint64_t initial = m->dev->initial.blocks_count, time_us = m->time_us;

	for (size_t i = 0; i < count; i++) {
		uint32_t word = c->words[c->code[i]], slot;
		const char *wrong = NULL;

		time_us =
			(time_us + (c->time[i] < FRAG_CFT_TIME_ESCAPE ? c->time[i] : *cur.late++)) &
			FRAG_CFT_TIME_MASK;
		if (FRAG_UNLIKELY(m->events < initial)) {
			wrong = unpack_other(c, m, word, &cur, time_us, &out[i]);
		} else if (word == plain_alloc) {
			const struct frag_cft_pair *request = &c->distinct[*cur.index++];

			slot = frag_cft_model_next(m);
			if (FRAG_LIKELY(slot < m->cap && request->a & FRAG_MAX_REQUEST))
				plain_alloc_at(m, slot, request, time_us, word, &out[i]);
			else
				wrong = "alloc of 0 bytes or of too many slots";
		} else if (frag_cft_is_free(word)) { /* without flags, by its age */
			slot = m->recent[(m->allocs - 1 - *cur.age++) % FRAG_CFT_AGES];
			if (FRAG_UNLIKELY(!plain_free_of(m, slot, time_us, word, &out[i])))
				wrong = "free of a slot that is not live";
		} else {
			wrong = unpack_other(c, m, word, &cur, time_us, &out[i]);
		}
		if (FRAG_UNLIKELY(wrong != NULL)) {
			*at = i;
			return wrong;
		}
	}
	m->time_us = time_us;
	return NULL;
}

static int unpack_stacks(struct frag_cft_coder *c, const struct frag_cft_model *m,
			 struct frag_cft_columns *u, size_t count, struct frag_event *out,
			 struct frag_err *err)
{
	uint64_t at = frag_cft_columns_at(u);
	size_t distinct;

	FRAG_TRY(unpack_values(c, count, &distinct, u, err));
	for (size_t i = 0; i < distinct; i++)
		if (c->late[i] && (c->late[i] >= m->trace->stacks.count || c->late[i] >> 24))
			return frag_cft_bad(err, at, "stack out of range");
	if (distinct == 1 && !c->late[0])
		return 0;
	for (size_t i = 0; i < count; i++)
		out[i].stack = c->late[c->index[i]] & 0xffffff;
	return 0;
}

int frag_cft_unpack_events(struct frag_cft_coder *c, struct frag_cft_model *m,
			   struct frag_cft_columns *u, size_t count, struct frag_event *out,
			   struct frag_err *err)
{
	struct frag_cft_counts n = { .events = count };
	uint64_t at = frag_cft_columns_at(u);
	const char *wrong;
	size_t i = 0;

	FRAG_ASSERT(count <= FRAG_CFT_BATCH);
	FRAG_TRY(frag_cft_model_reserve(m, err));
	FRAG_TRY(unpack_codes(c, u, &n, err));
	FRAG_TRY(frag_cft_unpack_raw(u, c->time, count, 1, err));
	for (size_t k = 0; k < count; k++)
		n.late += c->time[k] == FRAG_CFT_TIME_ESCAPE;
	FRAG_TRY(frag_cft_unpack_numbers(u, c->late, n.late, err));
	FRAG_TRY(frag_cft_unpack_raw(u, c->age, n.ages, 2, err));
	FRAG_TRY(frag_cft_unpack_numbers(u, c->named, n.named, err));
	FRAG_TRY(unpack_requests(c, m, n.requests, u, err));
	wrong = unpack_each(c, m, count, out, &i);
	if (wrong)
		return frag_cft_bad(err, at, "event %zu of the block: %s", i, wrong);
	return unpack_stacks(c, m, u, count, out, err);
}

/* ---- addresses ---------------------------------------------------------------------- */

_Static_assert(FRAG_NO_ADDR == UINT64_MAX, "all bits set");

int frag_cft_unpack_addrs(struct frag_cft_coder *c, struct frag_cft_columns *u,
			  const struct frag_event *ev, size_t count, frag_addr_t *out,
			  struct frag_err *err)
{
	const uint16_t *index = c->index;
	size_t allocs = 0, distinct;

	for (size_t i = 0; i < count; i++)
		allocs += ev[i].kind == FRAG_EV_ALLOC;
	FRAG_TRY(unpack_values(c, allocs, &distinct, u, err));
	/* without a branch, because allocs and frees follow in no predictable order; the lookup of
	 * a free is always within the arrays */
	for (size_t i = 0; i < count; i++) {
		uint64_t is_alloc = ev[i].kind == FRAG_EV_ALLOC;

		out[i] = c->late[*index] | (is_alloc - 1);
		index += is_alloc;
	}
	return 0;
}
