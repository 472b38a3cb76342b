/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies templates: the hot loop of reading a snapshot. A dict is a few masked comparisons; its
 * values are copied from known places into a row, and the next dict begins after it. No key is
 * looked up, no opcode dispatched. Rows are handed over many at a time. Whatever does not match is
 * read by unpickle_run.c, opcode by opcode.
 */
#include "unpickle_internal.h"

/* What a batch reads from, in one place: nothing of it changes while rows are matched. */
struct matcher {
	const unsigned char *safe;
	const uint32_t *memo;
	size_t memo_count;
};

static inline frag_lane load_lane(const unsigned char *b)
{
	frag_lane v;

	memcpy(&v, b, sizeof(v));
	return v;
}

/* ---- values ------------------------------------------------------------------------ */

/* HOLE: the memo has no such entry (yet: see frag_template_take). */
static inline frag_pv remembered(const struct matcher *m, uint64_t index)
{
	return FRAG_LIKELY(index < m->memo_count) ? m->memo[index] : FRAG_PV_HOLE;
}

/* A value of any width. */
static inline bool any_value(const struct matcher *m, const unsigned char **cur, frag_pv *v)
{
	const unsigned char *b = *cur;

	if (FRAG_LIKELY(frag_pickle_is_number(*b)))
		return frag_pickle_number(*b, b + 1, cur, v);
	if (*b != 'h' && *b != 'j')
		return false;
	*v = remembered(m, *b == 'h' ? b[1] : frag_le32(b + 1));
	*cur = b + (*b == 'h' ? 2 : 5);
	return *v != FRAG_PV_HOLE;
}

/* Fills the row. Returns the end of the dict, or NULL if it does not match the template. pre: the
 * bytes of the longest dict are readable at cur. */
static const unsigned char *match(const struct matcher *m, const struct frag_template *t,
				  const unsigned char *cur, struct frag_row *row)
{
	const struct frag_template_field *n = t->numbers, *r = t->refs;
	const frag_lane *bytes = t->bytes, *mask = t->mask;

	for (const struct frag_template_part *part = t->parts;; part++) {
		const struct frag_template_field *end = n + part->numbers;
		frag_lane differs = { 0 };
		uint64_t wrong;

		for (unsigned i = 0; i < part->lanes; i++)
			differs |= (load_lane(cur + i * sizeof(frag_lane)) & *mask++) ^ *bytes++;
		wrong = differs[0] | differs[1];
		for (; n < end; n++) {
			uint64_t bits = frag_le64(cur + n->at) & n->mask;

			wrong |= bits & n->negative;
			row->v[n->column] = bits << 3 | FRAG_PV_INT; /* of 56 bits at most */
		}
		if (FRAG_UNLIKELY(wrong))
			return NULL;
		for (end = r + part->refs; r < end; r++) {
			frag_pv v = remembered(m, frag_le64(cur + r->at) & r->mask);

			if (FRAG_UNLIKELY(v == FRAG_PV_HOLE))
				return NULL;
			row->v[r->column] = v;
		}
		cur += part->len;
		if (part->then == FRAG_TEMPLATE_NONE)
			return cur;
		if (FRAG_UNLIKELY(!any_value(m, &cur, &row->v[part->then])))
			return NULL;
	}
}

/* ---- many of them ------------------------------------------------------------------ */

struct frag_pickle_batch {
	struct frag_row rows[FRAG_TEMPLATE_ROWS];
	const unsigned char *at[FRAG_TEMPLATE_ROWS + 1]; /* where each begins */
	uint32_t records[FRAG_TEMPLATE_ROWS];
	unsigned count;
	uint8_t of[FRAG_TEMPLATE_ROWS]; /* the template of the constants in a row, or NONE */
};

void frag_template_changed(struct frag_pickle *p, unsigned number)
{
	struct frag_pickle_batch *b = p->templates.batch;

	for (unsigned i = 0; b && i < FRAG_TEMPLATE_ROWS; i++)
		if (b->of[i] == number)
			b->of[i] = FRAG_TEMPLATE_NONE;
}

void frag_template_release(struct frag_pickle *p)
{
	frag_host_free(p->templates.batch);
	p->templates.batch = NULL;
}

/* Dicts like template `number` that follow each other from `at` on, at most `most`. */
static void match_many(const struct matcher *m, const struct frag_templates *ts, unsigned number,
		       const unsigned char *at, unsigned most, struct frag_pickle_batch *b)
{
	const struct frag_template *t = &ts->list[number];
	unsigned n = 0;

	b->at[0] = at;
	while (t->parts_count && n < most && at < m->safe) {
		if (FRAG_UNLIKELY(b->of[n] != number)) {
			b->rows[n] = t->row;
			b->of[n] = (uint8_t)number;
		}
		at = match(m, t, at, &b->rows[n]);
		if (!at)
			break;
		b->at[++n] = at;
	}
	b->count = n;
}

/* By the template expected after the last one, else any that fits. */
static const struct frag_template *match_best(struct frag_templates *ts, const struct matcher *m,
					      const unsigned char *at, unsigned most,
					      struct frag_pickle_batch *b)
{
	unsigned expected = ts->list[ts->last].next;

	match_many(m, ts, expected, at, most, b);
	for (unsigned i = 0; !b->count && i < FRAG_MIN(ts->count, FRAG_TEMPLATES); i++) {
		match_many(m, ts, i, at, most, b);
		expected = i;
	}
	if (!b->count)
		return NULL;
	ts->list[ts->last].next = (uint8_t)expected;
	ts->last = expected;
	return &ts->list[expected];
}

/* The first n rows are records: dicts, on the stack and in the memo. */
static void push_dicts(struct frag_pickle *p, const struct frag_template *t,
		       const struct frag_pickle_batch *b, unsigned n, frag_pv *out)
{
	uint32_t *memo = p->memo_top, *dicts = p->dicts + p->dicts_count;
	frag_pv dict = frag_pv_of(FRAG_PV_DICT, p->dicts_count), one = frag_pv_of(0, 1);
	unsigned step = t->memo_count;

	for (unsigned i = 0; i < n; i++) {
		out[i] = dict + i * one;
		dicts[i] = FRAG_DICT_OF(FRAG_DICT_RECORD, b->records[i]);
	}
	for (unsigned k = 0; k < step; k++) { /* the dict itself comes first */
		if (t->memo[k] == FRAG_PV_HOLE)
			for (unsigned i = 0; i < n; i++)
				memo[i * step + k] = (uint32_t)out[i];
		else
			for (unsigned i = 0; i < n; i++)
				memo[i * step + k] = t->memo[k];
	}
	p->memo_top += n * step;
	p->dicts_count += n;
}

/* How many more dicts there is room for. */
static unsigned room(const struct frag_pickle *p, const frag_pv *top)
{
	size_t n = FRAG_TEMPLATE_ROWS;

	n = FRAG_MIN(n, (size_t)(p->stack_end - top));
	n = FRAG_MIN(n, (size_t)(p->memo_end - p->memo_top) / FRAG_TEMPLATE_MEMO);
	return (unsigned)FRAG_MIN(n, p->dicts_cap - p->dicts_count);
}

static struct frag_pickle_batch *batch_of(struct frag_pickle *p)
{
	struct frag_pickle_batch *b = p->templates.batch;

	if (FRAG_LIKELY(b != NULL))
		return b;
	b = p->templates.batch = frag_host_alloc(sizeof(*b));
	if (b)
		memset(b->of, FRAG_TEMPLATE_NONE, sizeof(b->of));
	return b;
}

/* A dict that refers to a memo entry of its batch does not match: it ends the batch, then again. */
int frag_template_take(struct frag_pickle *p, const unsigned char **cur, frag_pv **top)
{
	struct frag_pickle_batch *b = batch_of(p);
	int taken = 0, n;

	FRAG_CHECK_ALLOC(b, "pickle", p->err);
	do {
		struct matcher m = { p->safe, p->memo, (size_t)(p->memo_top - p->memo) };
		unsigned most = room(p, *top);
		const struct frag_template *t;

		if (*cur >= p->safe || **cur != '}' || !most)
			break;
		t = match_best(&p->templates, &m, *cur, most, b);
		if (!t)
			break;
		p->in->cur = b->at[b->count]; /* for messages */
		n = p->ops->take_rows(p->ctx, b->rows, b->count, b->records);
		if (FRAG_UNLIKELY(n < 0))
			return n;
		push_dicts(p, t, b, (unsigned)n, *top);
		*top += n;
		*cur = b->at[n];
		taken += n;
	} while ((unsigned)n == b->count);
	p->templates.hits += (unsigned)taken;
	return taken;
}
