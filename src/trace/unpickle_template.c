/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates. A snapshot is a million dicts that differ in a few numbers: their
 * bytes are the same but for those. When a dict was read opcode by opcode and
 * became a record, its bytes are kept as a template: constant pieces, compared
 * 16 bytes at a time, and between them the numbers. A dict whose
 * constant bytes equal a template's means what that one meant, because
 * what they refer to cannot change: memo entries that are only ever appended
 * (a file that uses BINPUT gets no templates).
 *
 * Halves the time of reading a snapshot.
 */
#include "unpickle_internal.h"

#include <string.h>

#define DICT_HERE FRAG_PV_HOLE /* in memo[]: the dict itself */
#define NO_PAIR UINT8_MAX
/* A template that matches takes no more bytes than the window has to hold: see ITEM_MAX. */
#define BYTES_MAX 400u

/* ---- learning -------------------------------------------------------------------- */

struct learner {
	struct frag_pickle *p;
	struct frag_template *t;
	const unsigned char *at, *end;
	const unsigned char *piece; /* constant bytes from here on are not in a step yet */
};

/* Puts [piece, at) into steps; the number of pair `pair` follows. */
static bool close_piece(struct learner *l, unsigned pair)
{
	do {
		struct frag_template_step *s = &l->t->steps[l->t->steps_count];
		size_t n = FRAG_MIN((size_t)(l->at - l->piece), 16u);

		if (l->t->steps_count++ == FRAG_TEMPLATE_STEPS)
			return false;
		*s = (struct frag_template_step){ .len = (uint8_t)n, .pair = NO_PAIR };
		memcpy(s->bytes, l->piece, n);
		memset(s->mask, 0xff, n);
		l->piece += n;
		if (l->piece == l->at)
			s->pair = (uint8_t)pair;
	} while (l->piece != l->at);
	return true;
}

static bool remember(struct learner *l, uint32_t packed)
{
	if (l->t->memo_count == FRAG_TEMPLATE_MEMO)
		return false;
	l->t->memo[l->t->memo_count++] = packed;
	return true;
}

/* BINGET or LONG_BINGET. */
static bool fetched(struct learner *l, frag_pv *v)
{
	size_t index;

	if (*l->at == 'h') {
		index = l->at[1];
		l->at += 2;
	} else if (*l->at == 'j') {
		index = frag_le32(l->at + 1);
		l->at += 5;
	} else {
		return false;
	}
	if (index >= (size_t)(l->p->memo_top - l->p->memo))
		return false;
	*v = l->p->memo[index];
	return true;
}

/* SHORT_BINUNICODE MEMOIZE; the text was interned when the dict was read. */
static bool text(struct learner *l, frag_pv *v)
{
	size_t n = l->at[1];
	uint32_t index;

	if (*l->at != 0x8c || n > 32 || l->at[2 + n] != 0x94 ||
	    frag_strings_intern(l->p->strings, (const char *)l->at + 2, n, &index, NULL))
		return false;
	l->at += 3 + n;
	*v = frag_pv_of(FRAG_PV_STR, index);
	return remember(l, (uint32_t)*v);
}

static bool pair(struct learner *l)
{
	struct frag_template *t = l->t;
	frag_pv *v = &t->pairs[2 * t->pairs_count];
	unsigned number = t->pairs_count;

	if (t->pairs_count++ == FRAG_TEMPLATE_PAIRS || (!fetched(l, &v[0]) && !text(l, &v[0])))
		return false;
	if (frag_pickle_is_number(*l->at)) {
		if (!close_piece(l, number) ||
		    !frag_pickle_number(*l->at, l->at + 1, &l->at, &v[1]))
			return false;
		l->piece = l->at;
		return true;
	}
	return fetched(l, &v[1]) || text(l, &v[1]);
}

static bool learn(struct learner *l)
{
	if (l->end - l->at > (ptrdiff_t)BYTES_MAX / 2 || memcmp(l->at, "}\x94(", 3))
		return false;
	l->at += 3;
	if (!remember(l, DICT_HERE))
		return false;
	while (l->at < l->end && *l->at != 'u')
		if (!pair(l))
			return false;
	l->at++;
	return l->at == l->end && close_piece(l, NO_PAIR);
}

void frag_template_learn(struct frag_pickle *p)
{
	struct frag_templates *ts = &p->templates;
	struct frag_template *t = &ts->list[ts->count % FRAG_TEMPLATES];
	struct learner l = {
		.p = p, .t = t, .at = ts->dict_at, .end = p->in->cur, .piece = ts->dict_at
	};

	if (!ts->dict_at || ts->off)
		return;
	/* where nothing repeats, do not look any longer */
	ts->off = ++ts->misses > 4096 && ts->misses > ts->hits;
	memset(t, 0, sizeof(*t));
	/* a half-made template must not match */
	if (!learn(&l))
		t->steps_count = 0;
	else if (ts->count++ && ts->last < FRAG_TEMPLATES)
		ts->list[ts->last].next = (uint8_t)(t - ts->list);
	ts->last = (unsigned)(t - ts->list);
}

/* ---- matching ----------------------------------------------------------------------- */

static inline uint64_t load64(const unsigned char *b)
{
	uint64_t v;

	memcpy(&v, b, 8);
	return v;
}

/* A number written in another width than before. */
static bool other_number(struct frag_template_step *s, const unsigned char **cur, frag_pv *v)
{
	const unsigned char *b = *cur;

	if (!frag_pickle_is_number(*b) || !frag_pickle_number(*b, b + 1, cur, v))
		return false;
	s->op = *b;
	s->is_long = *b == 0x8a;
	s->is_signed = s->is_long || *b == 'J';
	s->total = (uint8_t)(*cur - b);
	s->n = (uint8_t)(s->total - 1 - s->is_long);
	s->shift = (uint8_t)(64 - 8 * s->n);
	return true;
}

/*
 * The number at *cur. It is taken to be as wide as the one before, and that is
 * checked on the side: so the place of what follows does not wait for a load.
 */
static inline bool number(struct frag_template_step *s, const unsigned char **cur, frag_pv *v)
{
	const unsigned char *b = *cur;
	uint64_t bits;

	if (FRAG_UNLIKELY(b[0] != s->op || (s->is_long && b[1] != s->n)))
		return other_number(s, cur, v);
	bits = frag_le64(b + 1 + s->is_long) << s->shift;
	bits = s->is_signed ? (uint64_t)((int64_t)bits >> s->shift) : bits >> s->shift;
	if (FRAG_UNLIKELY((bits + (1ull << 60)) >> 61))
		return false;
	*v = bits << 3 | FRAG_PV_INT;
	*cur = b + s->total;
	return true;
}

/* pre: BYTES_MAX readable bytes at cur. Fills the numbers in; NULL if the bytes differ. */
static inline const unsigned char *match(struct frag_template *t, const unsigned char *cur)
{
	if (!t->steps_count)
		return NULL;
	for (unsigned i = 0; i < t->steps_count; i++) {
		struct frag_template_step *s = &t->steps[i];

		if (((load64(cur) ^ s->bytes[0]) & s->mask[0]) |
		    ((load64(cur + 8) ^ s->bytes[1]) & s->mask[1]))
			return NULL;
		cur += s->len;
		if (s->pair != NO_PAIR && !number(s, &cur, &t->pairs[2 * s->pair + 1]))
			return NULL;
	}
	return cur;
}

/* The template expected after the last one, else any that fits. */
static struct frag_template *find(struct frag_templates *ts, const unsigned char *cur,
				  const unsigned char **end)
{
	unsigned expected = ts->list[ts->last].next, n = FRAG_MIN(ts->count, FRAG_TEMPLATES);

	*end = match(&ts->list[expected], cur);
	if (FRAG_LIKELY(*end != NULL)) {
		ts->last = expected;
		return &ts->list[expected];
	}
	for (unsigned i = 0; i < n; i++) {
		*end = match(&ts->list[i], cur);
		if (!*end)
			continue;
		ts->list[ts->last].next = (uint8_t)i;
		ts->last = i;
		return &ts->list[i];
	}
	return NULL;
}

int frag_template_take(struct frag_pickle *p, const unsigned char **cur, frag_pv *dict)
{
	struct frag_templates *ts = &p->templates;
	const unsigned char *end;
	struct frag_template *t;
	uint32_t record = UINT32_MAX;
	int rc;

	t = find(ts, *cur, &end);
	if (FRAG_UNLIKELY(!t || p->memo_end - p->memo_top < FRAG_TEMPLATE_MEMO ||
			  p->dicts_count == p->dicts_cap))
		return 0;
	p->in->cur = end; /* for messages */
	rc = p->fn(p->ctx, t->pairs, t->pairs_count, &record, p->err);
	if (FRAG_UNLIKELY(rc != 1))
		return rc;
	ts->hits++;
	*dict = frag_pv_of(FRAG_PV_DICT, p->dicts_count);
	for (unsigned i = 0; i < t->memo_count; i++)
		*p->memo_top++ = t->memo[i] == DICT_HERE ? (uint32_t)*dict : t->memo[i];
	p->dicts[p->dicts_count++] = FRAG_DICT_OF(FRAG_DICT_RECORD, record);
	*cur = end;
	return 1;
}
