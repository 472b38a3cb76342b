/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of events and of addresses. The byte layout is in docs/trace-format.md.
 *
 * What an event is (kind, flags, and whether it follows the rule of its kind) is one
 * byte per event. An alloc that takes the slot freed last stores no slot; a
 * free stores its alloc's age, which repeats from step to step far better than
 * slots do (a tenth of the size), and takes size, stream and pool from it. Size,
 * pool and stream of the others are one index into a table of the block; a
 * time is one byte, or an exception.
 */
#include "cft.h"

#include <stdlib.h>
#include <string.h>

#define TIME_MASK ((1ull << 40) - 1)
#define TIME_ESCAPE 255u
#define CODES_MAX 256u

/* mode bits of a code */
#define NAMED_SLOT 1u  /* the slot is stored */
#define OWN_REQUEST 2u /* size, pool and stream are stored */

/* size and pool, stream; or one number and 0 */
struct pair {
	uint64_t a, b;
};

#define HASH_SIZE (4u * FRAG_CFT_BATCH) /* at most half full */

struct frag_cft_coder {
	uint8_t code[FRAG_CFT_BATCH], time[FRAG_CFT_BATCH];
	uint16_t age[FRAG_CFT_BATCH], index[FRAG_CFT_BATCH];
	uint64_t late[FRAG_CFT_BATCH];	/* times that do not fit into a byte */
	uint64_t named[FRAG_CFT_BATCH]; /* slots that are stored */
	uint64_t number[FRAG_CFT_BATCH];
	struct pair pair[FRAG_CFT_BATCH], distinct[FRAG_CFT_BATCH];
	uint32_t hash[HASH_SIZE]; /* packing: place in distinct + 1 */
	uint32_t hash_mask;	  /* what of it is in use */
	uint32_t words[CODES_MAX];	/* kind | flags << 8 | mode << 16 */
	size_t codes;
	uint16_t code_of[1u << 13]; /* packing: code + 1 by kind, flags, mode */
};

int frag_cft_coder_create(struct frag_cft_coder **out, struct frag_err *err)
{
	*out = frag_host_alloc(sizeof(**out));
	return *out ? 0 : frag_fail_nomem(err, "trace block");
}

void frag_cft_coder_destroy(struct frag_cft_coder *c)
{
	frag_host_free(c);
}

static bool is_free(unsigned kind)
{
	return kind >= FRAG_EV_FREE && kind <= FRAG_EV_FREE_COMPLETED;
}

/* ---- tables of distinct values ------------------------------------------------- */

static int compare_pairs(const void *x, const void *y)
{
	const struct pair *p = x, *q = y;

	if (p->b != q->b)
		return p->b < q->b ? -1 : 1;
	return p->a < q->a ? -1 : p->a > q->a;
}

static void clear_hash(struct frag_cft_coder *c, size_t count)
{
	c->hash_mask = (4u << frag_log2(count | 1)) - 1;
	memset(c->hash, 0, ((size_t)c->hash_mask + 1) * sizeof(c->hash[0]));
}

static uint32_t *find(struct frag_cft_coder *c, const struct pair *p)
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
		      struct frag_cft_packer *p, struct frag_err *err)
{
	if (distinct > 256)
		return frag_cft_pack_raw(p, c->index, count, 2, err);
	for (size_t i = 0; i < count; i++)
		c->code[i] = (uint8_t)c->index[i];
	return frag_cft_pack_raw(p, c->code, count, 1, err);
}

static int unpack_index(struct frag_cft_coder *c, size_t count, size_t distinct,
			struct frag_cft_unpacker *u, struct frag_err *err)
{
	uint64_t at = frag_cft_unpacker_at(u);
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

/* Packs table and indices of c->pair[count] where b is 0; nothing but the table if it is one value. */
static int pack_values(struct frag_cft_coder *c, size_t count, struct frag_cft_packer *p,
		       struct frag_err *err)
{
	size_t distinct = make_table(c, count);

	for (size_t i = 0; i < distinct; i++)
		c->number[i] = c->distinct[i].a;
	FRAG_TRY(frag_cft_pack_numbers(p, c->number, distinct, true, err));
	return distinct > 1 ? pack_index(c, count, distinct, p, err) : 0;
}

/* The same back: c->late[*distinct] and c->index[count] (all 0 for one value). */
static int unpack_values(struct frag_cft_coder *c, size_t count, size_t *distinct,
			 struct frag_cft_unpacker *u, struct frag_err *err)
{
	FRAG_TRY(frag_cft_unpack_count(u, count, distinct, err));
	if (count && !*distinct)
		return frag_cft_bad(err, frag_cft_unpacker_at(u), "an empty table");
	FRAG_TRY(frag_cft_unpack_numbers(u, c->late, *distinct, err));
	if (*distinct > 1)
		return unpack_index(c, count, *distinct, u, err);
	memset(c->index, 0, count * sizeof(c->index[0]));
	return 0;
}

/* ---- packing events -------------------------------------------------------------- */

/* How the event deviates from what the model predicts. Any event, also a wrong one. */
static unsigned mode_of(const struct frag_cft_model *m, const struct frag_event *ev)
{
	const struct frag_cft_slot *s;
	unsigned mode = 0;
	uint32_t age;

	if (ev->kind == FRAG_EV_ALLOC)
		return OWN_REQUEST | (ev->slot != frag_cft_model_next(m) ? NAMED_SLOT : 0);
	if (!is_free(ev->kind))
		return OWN_REQUEST | (ev->slot || ev->kind == FRAG_EV_MARK ? NAMED_SLOT : 0);
	if (ev->slot >= m->count)
		return NAMED_SLOT;
	s = &m->slots[ev->slot];
	age = (uint32_t)m->allocs - 1 - s->prev;
	if (age >= FRAG_CFT_AGES || m->recent[s->prev % FRAG_CFT_AGES] != ev->slot)
		mode |= NAMED_SLOT;
	if (s->stream != ev->stream || s->bytes_pool >> 48 != ev->pool)
		mode |= OWN_REQUEST;
	return mode;
}

/* The code for this word, or -1 if the block has no room for another one. */
static int code_for(struct frag_cft_coder *c, uint32_t word)
{
	unsigned key = (word & 7) | (word >> 8 & 0xff) << 3 | word >> 16 << 11;

	if (!c->code_of[key]) {
		if (c->codes == CODES_MAX)
			return -1;
		c->words[c->codes++] = word;
		c->code_of[key] = (uint16_t)c->codes;
	}
	return c->code_of[key] - 1;
}

struct counts {
	size_t events, late, ages, named, requests;
};

/* Fills the scratch columns from ev[0 .. n->events), which may become fewer. */
static const char *gather(struct frag_cft_coder *c, struct frag_cft_model *m,
			  const struct frag_event *ev, struct counts *n)
{
	for (size_t i = 0; i < n->events; i++, ev++) {
		unsigned mode = mode_of(m, ev);
		uint64_t elapsed = (ev->time_us - m->time_us) & TIME_MASK;
		const char *wrong;
		uint32_t age = 0;
		int code;

		code = code_for(c, ev->kind | (uint32_t)ev->flags << 8 | mode << 16);
		if (code < 0) {
			n->events = i;
			break;
		}
		if (is_free(ev->kind) && !(mode & NAMED_SLOT))
			age = (uint32_t)m->allocs - 1 - m->slots[ev->slot].prev;
		wrong = frag_cft_model_step(m, ev);
		if (wrong)
			return wrong;
		c->code[i] = (uint8_t)code;
		c->time[i] = (uint8_t)FRAG_MIN(elapsed, TIME_ESCAPE);
		if (elapsed >= TIME_ESCAPE)
			c->late[n->late++] = elapsed;
		if (mode & NAMED_SLOT)
			c->named[n->named++] = ev->slot;
		else if (is_free(ev->kind))
			c->age[n->ages++] = (uint16_t)age;
		if (mode & OWN_REQUEST)
			c->pair[n->requests++] = (struct pair){
				ev->bytes | (uint64_t)ev->pool << 48, ev->stream };
	}
	return NULL;
}

static int pack_requests(struct frag_cft_coder *c, size_t count, struct frag_cft_packer *p,
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
			 const struct frag_event *ev, size_t count, struct frag_cft_packer *p,
			 size_t *taken, struct frag_err *err)
{
	struct counts n = { .events = FRAG_MIN(count, (size_t)FRAG_CFT_BATCH) };
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
		c->pair[i] = (struct pair){ ev[i].stack, 0 };
	FRAG_TRY(pack_values(c, n.events, p, err));
	*taken = n.events;
	return 0;
}

/* ---- unpacking events -------------------------------------------------------------- */

/* Codes and how much of each column they need. */
static int unpack_codes(struct frag_cft_coder *c, struct frag_cft_unpacker *u, struct counts *n,
			struct frag_err *err)
{
	uint64_t at = frag_cft_unpacker_at(u);
	size_t used[CODES_MAX] = { 0 };

	FRAG_TRY(frag_cft_unpack_count(u, CODES_MAX, &c->codes, err));
	FRAG_TRY(frag_cft_unpack_raw(u, c->words, c->codes, 4, err));
	FRAG_TRY(frag_cft_unpack_raw(u, c->code, n->events, 1, err));
	for (size_t i = 0; i < n->events; i++)
		used[c->code[i]]++;
	for (size_t i = c->codes; i < CODES_MAX; i++)
		if (used[i])
			return frag_cft_bad(err, at, "code beyond its table");
	for (size_t i = 0; i < c->codes; i++) {
		unsigned kind = c->words[i] & 0xff, mode = c->words[i] >> 16;

		if (kind >= FRAG_EV_COUNT || mode > (NAMED_SLOT | OWN_REQUEST) ||
		    (!is_free(kind) && !(mode & OWN_REQUEST)))
			return frag_cft_bad(err, at, "unknown kind of event");
		if (mode & OWN_REQUEST)
			n->requests += used[i];
		if (mode & NAMED_SLOT)
			n->named += used[i];
		else if (is_free(kind))
			n->ages += used[i];
	}
	return 0;
}

static int unpack_requests(struct frag_cft_coder *c, const struct frag_cft_model *m, size_t count,
			   struct frag_cft_unpacker *u, struct frag_err *err)
{
	uint64_t at = frag_cft_unpacker_at(u);
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

static inline void put_event(struct frag_event *ev, uint64_t bytes_pool, uint64_t time_us,
			     uint32_t slot, uint64_t stream, uint32_t word)
{
	ev->bytes = bytes_pool & FRAG_MAX_REQUEST;
	ev->pool = bytes_pool >> 48;
	ev->time_us = time_us;
	ev->stack = 0;
	ev->slot = slot;
	ev->stream = (uint16_t)stream;
	ev->kind = (uint8_t)word;
	ev->flags = (uint8_t)(word >> 8);
}

/* Whatever the two fast paths leave: deviations, waiting frees, marks, refusals, seeds. */
static const char *unpack_other(struct frag_cft_coder *c, struct frag_cft_model *m, uint32_t word,
				struct cursor *cur, uint64_t time_us, struct frag_event *ev)
{
	unsigned kind = word & 0xff, mode = word >> 16;
	uint64_t bytes_pool = 0, stream = 0;
	uint32_t slot = 0;

	if (mode & NAMED_SLOT) {
		if (*cur->named >= FRAG_CFT_NO_SLOT)
			return "slot out of range";
		slot = (uint32_t)*cur->named++;
	} else if (kind == FRAG_EV_ALLOC) {
		slot = frag_cft_model_next(m);
	} else if (is_free(kind)) {
		slot = m->recent[(m->allocs - 1 - *cur->age++) % FRAG_CFT_AGES];
	}
	if (mode & OWN_REQUEST) {
		const struct pair *request = &c->distinct[*cur->index++];

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
				  const struct pair *request, uint64_t time_us, uint32_t word,
				  struct frag_event *ev)
{
	frag_cft_model_take(m, slot, request->a, (uint16_t)request->b);
	put_event(ev, request->a, time_us, slot, request->b, word);
	m->seeding = false;
	m->events++;
}

static inline void plain_free_of(struct frag_cft_model *m, uint32_t slot, uint64_t time_us,
				 uint32_t word, struct frag_event *ev)
{
	const struct frag_cft_slot *s = &m->slots[slot];

	put_event(ev, s->bytes_pool, time_us, slot, s->stream, word);
	frag_cft_model_give(m, slot);
	m->seeding = false;
	m->events++;
}

/*
 * The hot loop. Its two fast paths are frag_cft_model_step for a plain alloc and a
 * plain free, without the checks that the tables of the block already made.
 */
static const char *unpack_each(struct frag_cft_coder *c, struct frag_cft_model *m, size_t count,
			       struct frag_event *out, size_t *at)
{
	struct cursor cur = { c->age, c->index, c->late, c->named };
	const uint32_t plain_alloc = FRAG_EV_ALLOC | OWN_REQUEST << 16, plain_free = FRAG_EV_FREE;
	uint64_t seeds = m->dev->seed.blocks_count, time_us = m->time_us;

	for (size_t i = 0; i < count; i++) {
		uint32_t word = c->words[c->code[i]], slot;
		const char *wrong = NULL;

		time_us = (time_us + (c->time[i] < TIME_ESCAPE ? c->time[i] : *cur.late++)) &
			  TIME_MASK;
		if (FRAG_UNLIKELY(m->events < seeds)) {
			wrong = unpack_other(c, m, word, &cur, time_us, &out[i]);
		} else if (word == plain_alloc) {
			const struct pair *request = &c->distinct[*cur.index++];

			slot = frag_cft_model_next(m);
			if (FRAG_LIKELY(slot < m->cap && request->a & FRAG_MAX_REQUEST))
				plain_alloc_at(m, slot, request, time_us, word, &out[i]);
			else
				wrong = "alloc of 0 bytes or of too many slots";
		} else if (word == plain_free) {
			slot = m->recent[(m->allocs - 1 - *cur.age++) % FRAG_CFT_AGES];
			if (FRAG_LIKELY(m->count && m->slots[slot].state == FRAG_CFT_LIVE))
				plain_free_of(m, slot, time_us, word, &out[i]);
			else
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
			 struct frag_cft_unpacker *u, size_t count, struct frag_event *out,
			 struct frag_err *err)
{
	uint64_t at = frag_cft_unpacker_at(u);
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
			   struct frag_cft_unpacker *u, size_t count, struct frag_event *out,
			   struct frag_err *err)
{
	struct counts n = { .events = count };
	uint64_t at = frag_cft_unpacker_at(u);
	const char *wrong;
	size_t i = 0;

	FRAG_ASSERT(count <= FRAG_CFT_BATCH);
	FRAG_TRY(frag_cft_model_reserve(m, err));
	FRAG_TRY(unpack_codes(c, u, &n, err));
	FRAG_TRY(frag_cft_unpack_raw(u, c->time, count, 1, err));
	for (size_t k = 0; k < count; k++)
		n.late += c->time[k] == TIME_ESCAPE;
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

int frag_cft_pack_addrs(struct frag_cft_coder *c, const struct frag_event *ev,
			const frag_addr_t *addrs, size_t count, struct frag_cft_packer *p,
			struct frag_err *err)
{
	size_t allocs = 0;

	FRAG_ASSERT(count <= FRAG_CFT_BATCH);
	for (size_t i = 0; i < count; i++) {
		if (ev[i].kind == FRAG_EV_ALLOC)
			c->pair[allocs++] = (struct pair){ addrs[i], 0 };
		else if (addrs[i] != FRAG_NO_ADDR)
			return frag_fail(err, FRAG_EINPUT,
					 "an address that belongs to no alloc cannot be stored");
	}
	return pack_values(c, allocs, p, err);
}

int frag_cft_unpack_addrs(struct frag_cft_coder *c, struct frag_cft_unpacker *u,
			  const struct frag_event *ev, size_t count, frag_addr_t *out,
			  struct frag_err *err)
{
	const uint16_t *index = c->index;
	size_t allocs = 0, distinct;

	for (size_t i = 0; i < count; i++)
		allocs += ev[i].kind == FRAG_EV_ALLOC;
	FRAG_TRY(unpack_values(c, allocs, &distinct, u, err));
	for (size_t i = 0; i < count; i++)
		out[i] = ev[i].kind == FRAG_EV_ALLOC ? c->late[*index++] : FRAG_NO_ADDR;
	return 0;
}
