/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns templates. A snapshot is a million dicts that differ only in a few numbers and in which of
 * a few words they refer to. When a dict was read opcode by opcode and became a record, its bytes
 * are kept as a sample, with the place of each value. Another dict with the same other bytes means
 * the same, because the memo entries that it refers to cannot change: they are only appended (a
 * file that uses BINPUT gets no templates).
 *
 * A dict that differs from a template only in the width of values widens that template instead of
 * adding one, so that the next template need not be guessed.
 */
#include "unpickle_internal.h"

/* ---- taking a dict apart ----------------------------------------------------------- */

struct learner {
	struct frag_pickle *p;
	struct frag_template *t;
	const unsigned char *begin, *at, *end;
	frag_pv pairs[2 * FRAG_TEMPLATE_PAIRS];
	uint8_t value_of[FRAG_TEMPLATE_PAIRS]; /* number of a pair's value, or NONE */
	unsigned pairs_count;
	const uint32_t *memo; /* appended by the dict, in order */
};

/* The next thing the dict remembered; its value is that of the dict it was read from. */
static bool remembered(struct learner *l, frag_pv *v)
{
	struct frag_template *t = l->t;

	if (*l->at != 0x94 || t->memo_count == FRAG_TEMPLATE_MEMO ||
	    l->memo + t->memo_count == l->p->memo_top)
		return false;
	l->at++;
	*v = l->memo[t->memo_count];
	t->memo[t->memo_count++] = (uint32_t)*v;
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

/* SHORT_BINUNICODE MEMOIZE, or a tuple of two numbers that fit a byte (the ids of pools). */
static bool constant(struct learner *l, frag_pv *v)
{
	if (*l->at == 0x8c)
		l->at += 2 + l->at[1];
	else if (l->at[0] == 'K' && l->at[2] == 'K' && l->at[4] == 0x86)
		l->at += 5;
	else
		return false;
	return l->at < l->end && remembered(l, v);
}

static bool pair(struct learner *l)
{
	struct frag_template *t = l->t;
	frag_pv *v = &l->pairs[2 * l->pairs_count];
	struct frag_template_value *value = &t->values[t->values_count];

	if (l->pairs_count == FRAG_TEMPLATE_PAIRS || (!fetched(l, &v[0]) && !constant(l, &v[0])))
		return false;
	l->value_of[l->pairs_count++] = FRAG_TEMPLATE_NONE;
	value->at = (uint8_t)(l->at - l->begin);
	if (constant(l, &v[1]))
		return true;
	if (frag_pickle_is_number(*l->at)) {
		if (!frag_pickle_number(*l->at, l->at + 1, &l->at, &v[1]))
			return false;
	} else if (!fetched(l, &v[1])) {
		return false;
	}
	value->len = (uint8_t)(l->at - l->begin - value->at);
	/* such a number may be too large for a value: look at each */
	value->varies = l->begin[value->at] == 0x8a && value->len > 2 + 7;
	l->value_of[l->pairs_count - 1] = (uint8_t)t->values_count++;
	return true;
}

static bool take_apart(struct learner *l)
{
	frag_pv dict;

	if (l->end - l->at > (ptrdiff_t)FRAG_TEMPLATE_BYTES || memcmp(l->at, "}\x94(", 3))
		return false;
	l->t->sample_len = (unsigned)(l->end - l->begin);
	memcpy(l->t->sample, l->begin, l->t->sample_len);
	l->at++;
	if (!remembered(l, &dict))
		return false;
	l->t->memo[0] = FRAG_PV_HOLE;
	l->at++;
	while (l->at < l->end && *l->at != 'u')
		if (!pair(l))
			return false;
	return ++l->at == l->end;
}

/* ---- compiling --------------------------------------------------------------------- */

struct compiler {
	struct frag_template *t;
	unsigned from; /* where the current part begins in the sample */
	unsigned char mask[FRAG_TEMPLATE_BYTES + 16]; /* of its bytes */
	unsigned lanes, numbers, refs;		      /* so far, of all parts */
	struct frag_template_part part;
};

/* Ends the current part before byte `to` of the sample, where the value for `then` begins. */
static void close_part(struct compiler *c, unsigned to, unsigned then)
{
	struct frag_template *t = c->t;
	unsigned n = to - c->from;

	c->part.len = (uint8_t)n;
	c->part.lanes = (uint8_t)((n + 15) / 16);
	c->part.then = (uint8_t)then;
	memset(c->mask + n, 0, 16);
	memcpy(&t->bytes[c->lanes], t->sample + c->from, n);
	memcpy(&t->mask[c->lanes], c->mask, c->part.lanes * sizeof(frag_lane));
	for (unsigned i = 0; i < c->part.lanes; i++)
		t->bytes[c->lanes + i] &= t->mask[c->lanes + i];
	c->lanes += c->part.lanes;
	t->parts[t->parts_count++] = c->part;
	c->part = (struct frag_template_part){ 0 };
	memset(c->mask, 0xff, sizeof(c->mask));
}

static void add_field(struct compiler *c, const struct frag_template_value *v)
{
	struct frag_template *t = c->t;
	unsigned op = t->sample[v->at], head = op == 0x8a ? 2 : 1, bits = 8 * (v->len - head);
	struct frag_template_field f = { .mask = ~0ull >> (64 - bits),
					 .at = (uint8_t)(v->at + head - c->from),
					 .column = v->column };

	if (op == 0x8a || op == 'J')
		f.negative = 1ull << (bits - 1);
	if (frag_pickle_is_number(op)) {
		t->numbers[c->numbers++] = f;
		c->part.numbers++;
	} else {
		t->refs[c->refs++] = f;
		c->part.refs++;
	}
	memset(c->mask + f.at, 0, v->len - head);
}

static void compile(struct frag_template *t)
{
	struct compiler c = { .t = t };

	memset(c.mask, 0xff, sizeof(c.mask));
	memset(t->bytes, 0, sizeof(t->bytes));
	t->parts_count = 0;
	for (unsigned i = 0; i < t->values_count; i++) {
		const struct frag_template_value *v = &t->values[i];

		if (!v->varies) {
			add_field(&c, v);
			continue;
		}
		close_part(&c, v->at, v->column);
		c.from = v->at + v->len;
	}
	close_part(&c, t->sample_len, FRAG_TEMPLATE_NONE);
}

/* ---- learning ---------------------------------------------------------------------- */

/* The bytes before value i, or those after the last one. */
static const unsigned char *gap(const struct frag_template *t, unsigned i, unsigned *len)
{
	unsigned from = i ? t->values[i - 1].at + t->values[i - 1].len : 0;
	unsigned to = i < t->values_count ? t->values[i].at : t->sample_len;

	*len = to - from;
	return t->sample + from;
}

/* Does `n` differ from `t` in how values are written only? Then t shall take both. */
static bool widen(struct frag_template *t, const struct frag_template *n)
{
	bool wider = false;

	if (!t->parts_count || t->values_count != n->values_count)
		return false;
	for (unsigned i = 0; i <= t->values_count; i++) {
		unsigned a_len, b_len;
		const unsigned char *a = gap(t, i, &a_len), *b = gap(n, i, &b_len);

		if (a_len != b_len || memcmp(a, b, a_len))
			return false;
	}
	for (unsigned i = 0; i < t->values_count; i++) {
		struct frag_template_value *x = &t->values[i];
		const struct frag_template_value *y = &n->values[i];

		if (x->varies || (x->len == y->len && t->sample[x->at] == n->sample[y->at]))
			continue;
		x->varies = wider = true;
	}
	if (wider)
		compile(t);
	return true;
}

/* Replaces the oldest template by the new one, unless its rows are not wanted. */
static void add(struct frag_pickle *p, struct learner *l)
{
	struct frag_templates *ts = &p->templates;
	unsigned number = ts->count % FRAG_TEMPLATES;
	struct frag_template *t = l->t;
	uint8_t column[FRAG_TEMPLATE_PAIRS];

	memset(column, FRAG_COLUMN_UNWANTED, sizeof(column));
	if (!p->ops->shape(l->pairs, l->pairs_count, column, &t->row))
		return;
	for (unsigned i = 0; i < l->pairs_count; i++) {
		if (l->value_of[i] == FRAG_TEMPLATE_NONE)
			t->row.v[column[i]] = l->pairs[2 * i + 1];
		else
			t->values[l->value_of[i]].column = column[i];
	}
	frag_template_changed(p, number);
	ts->list[number] = *t;
	compile(&ts->list[number]);
	if (ts->count++)
		ts->list[ts->last].next = (uint8_t)number;
	ts->last = number;
}

void frag_template_learn(struct frag_pickle *p)
{
	struct frag_templates *ts = &p->templates;
	struct frag_template new = { 0 };
	struct learner l = { .p = p,
			     .t = &new,
			     .begin = ts->dict_at,
			     .at = ts->dict_at,
			     .end = p->in->cur,
			     .memo = p->memo + ts->memo_at };

	if (!ts->dict_at || ts->off)
		return;
	/* where nothing repeats, do not look any longer */
	ts->off = ++ts->misses > 4096 && ts->misses > ts->hits;
	if (!take_apart(&l))
		return;
	for (unsigned i = 0; i < FRAG_MIN(ts->count, FRAG_TEMPLATES); i++) {
		if (!widen(&ts->list[i], &new))
			continue;
		ts->last = i;
		return;
	}
	add(p, &l);
}
