/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace entries of a PyTorch snapshot: dicts become records of 32 bytes as soon
 * as the unpickler has read them. A free_completed that directly follows its
 * free_requested (the common case) shares its record.
 */
#include "trace/pages.h"
#include "torch_parts.h"

/* Values of one entry by word number; all entry keys lie below FRAG_W_ALLOC. */
#define ENTRY_KEYS FRAG_W_ALLOC
#define RECORD_MAX (1u << 30)

static const uint8_t actions[FRAG_W_COUNT] = {
	[FRAG_W_ALLOC] = FRAG_RAW_ALLOC,
	[FRAG_W_FREE_REQUESTED] = FRAG_RAW_FREE_REQUESTED,
	[FRAG_W_FREE_COMPLETED] = FRAG_RAW_FREE_COMPLETED,
	[FRAG_W_SEGMENT_ALLOC] = FRAG_RAW_SEGMENT_ALLOC,
	[FRAG_W_SEGMENT_FREE] = FRAG_RAW_SEGMENT_FREE,
	[FRAG_W_SEGMENT_MAP] = FRAG_RAW_SEGMENT_MAP,
	[FRAG_W_SEGMENT_UNMAP] = FRAG_RAW_SEGMENT_UNMAP,
	[FRAG_W_OOM] = FRAG_RAW_OOM,
	[FRAG_W_SNAPSHOT] = FRAG_RAW_SNAPSHOT,
};

static inline bool as_u64(const struct frag_torch *t, frag_pv v, uint64_t *out)
{
	if (FRAG_LIKELY((v & 7) == FRAG_PV_INT && (int64_t)v >= 0)) {
		*out = v >> 3;
		return true;
	}
	return frag_pickle_u64(t->pickle, v, out);
}

/* The fields of an entry, written to memory at once in whole words. */
struct fields {
	uint64_t addr, bytes, time_us;
	uint32_t stack;
	uint16_t stream, pool;
	uint8_t action;
};

static inline struct frag_raw_entry entry_of(const struct fields *f)
{
	return (struct frag_raw_entry){ .addr = f->addr,
					.bytes = f->bytes,
					.when = FRAG_RAW_WHEN(f->time_us, f->action),
					.stack = f->stack,
					.stream = f->stream,
					.pool = f->pool };
}

/* Action, time and rare fields. as_u64 has a variable of its own, so *f can stay in registers. */
static inline int fill_others(struct frag_torch *t, const frag_pv *v, unsigned seen,
			      struct fields *f)
{
	uint64_t n;
	uint32_t word;

	if (seen & 1u << FRAG_W_ACTION) {
		if (frag_pv_tag(v[FRAG_W_ACTION]) != FRAG_PV_STR)
			return 0;
		word = frag_pv_index(v[FRAG_W_ACTION]);
		f->action = word < FRAG_W_COUNT ? actions[word] : FRAG_RAW_OTHER;
	}
	if (seen & 1u << FRAG_W_TIME_US) {
		if (!as_u64(t, v[FRAG_W_TIME_US], &n))
			return 0;
		f->time_us = FRAG_MIN(n, FRAG_RAW_TIME_MAX);
	}
	if (FRAG_UNLIKELY(seen & 1u << FRAG_W_FRAMES) &&
	    frag_pv_tag(v[FRAG_W_FRAMES]) == FRAG_PV_LIST) {
		f->stack = frag_pv_index(v[FRAG_W_FRAMES]) + 1;
		t->has_stacks = true;
	}
	if (FRAG_UNLIKELY(seen & 1u << FRAG_W_POOL_ID)) {
		uint16_t pool;

		FRAG_TRY(frag_torch_pool(t, v[FRAG_W_POOL_ID], &pool));
		f->pool = pool;
	}
	return 1;
}

/* Stores the values v[k] for which bit k of seen is set in f. 0: a value of the wrong kind. */
static inline int fill(struct frag_torch *t, const frag_pv *v, unsigned seen, struct fields *f)
{
	uint64_t n;

	if (seen & 1u << FRAG_W_ADDR) {
		if (!as_u64(t, v[FRAG_W_ADDR], &n))
			return 0;
		f->addr = n;
	}
	if (FRAG_UNLIKELY(seen & 1u << FRAG_W_DEVICE_FREE)) {
		if (!as_u64(t, v[FRAG_W_DEVICE_FREE], &n))
			return 0;
		f->addr = n;
	}
	if (seen & 1u << FRAG_W_SIZE) {
		if (!as_u64(t, v[FRAG_W_SIZE], &n))
			return 0;
		f->bytes = n;
	}
	if (seen & 1u << FRAG_W_STREAM) {
		uint16_t stream = 0;

		if (!as_u64(t, v[FRAG_W_STREAM], &n))
			return 0;
		if (FRAG_LIKELY(n == t->last_stream))
			stream = t->last_stream_index;
		else
			FRAG_TRY(frag_torch_stream(t, n, &stream));
		f->stream = stream;
	}
	return fill_others(t, v, seen, f);
}

static inline unsigned gather(const frag_pv *pairs, size_t n, frag_pv *v)
{
	unsigned seen = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t key = pairs[2 * i] >> 3;

		if (frag_pv_tag(pairs[2 * i]) == FRAG_PV_STR && key < ENTRY_KEYS) {
			v[key] = pairs[2 * i + 1];
			seen |= 1u << key;
		}
	}
	return seen;
}

/* A completion that belongs to the request before it? Two dicts, one record. */
static inline bool folds(const struct frag_torch *t, const struct fields *f)
{
	const struct frag_raw_entry *before;

	if (f->action != FRAG_RAW_FREE_COMPLETED || t->entries_count <= t->fold_from)
		return false;
	before = &t->entries[t->entries_count - 1];
	return before->action == FRAG_RAW_FREE_REQUESTED && before->addr == f->addr &&
	       before->stream == f->stream;
}

static int grow_entries(struct frag_torch *t)
{
	size_t cap = t->entries_cap ? t->entries_cap * 2 : 1024;
	struct frag_raw_entry *entries =
		frag_pages_grow(t->entries, t->entries_cap, cap, sizeof(*entries));

	FRAG_CHECK_ALLOC(entries, "entries", t->err);
	t->entries = entries;
	t->entries_cap = cap;
	return 0;
}

static inline int new_entry(struct frag_torch *t, const frag_pv *v, unsigned seen, uint32_t *record)
{
	struct fields f = { .pool = FRAG_RAW_NO_POOL };
	int rc = fill(t, v, seen, &f);

	if (FRAG_UNLIKELY(rc != 1))
		return rc;
	if (folds(t, &f)) {
		t->entries[t->entries_count - 1].action = FRAG_RAW_FREE;
		*record = (uint32_t)t->entries_count - 1;
		return 1;
	}
	if (FRAG_UNLIKELY(t->entries_count == t->entries_cap)) {
		if (t->entries_count == RECORD_MAX)
			return frag_fail(t->err, FRAG_EINPUT, "more than %u entries", RECORD_MAX);
		FRAG_TRY(grow_entries(t));
	}
	*record = (uint32_t)t->entries_count;
	t->entries[t->entries_count++] = entry_of(&f);
	return 1;
}

/* Items in several batches: no known writer does that, but a pickle may. */
static int change_entry(struct frag_torch *t, const frag_pv *v, unsigned seen, uint32_t record)
{
	struct frag_raw_entry *e = &t->entries[record];
	struct fields f = { e->addr,   e->bytes, e->time_us,	    e->stack,
			    e->stream, e->pool,	 (uint8_t)e->action };
	int rc;

	if (e->action == FRAG_RAW_FREE)
		return 0; /* it is two already */
	rc = fill(t, v, seen, &f);
	if (rc == 1)
		*e = entry_of(&f);
	return rc;
}

int frag_torch_take_entry(void *ctx, const frag_pv *pairs, size_t n, uint32_t *record,
			  struct frag_err *err)
{
	struct frag_torch *t = ctx;
	frag_pv v[ENTRY_KEYS];
	unsigned seen = gather(pairs, n, v);

	(void)err; /* the same as t->err */
	if (FRAG_UNLIKELY(!t->entries_count && seen & 1u << FRAG_W_ACTION))
		frag_torch_note_entry(&t->seen, pairs, n);
	if (FRAG_UNLIKELY(*record != UINT32_MAX))
		return change_entry(t, v, seen, *record);
	if (!(seen & 1u << FRAG_W_ACTION))
		return 0;
	return new_entry(t, v, seen, record);
}

/* ---- entries of a known shape ----------------------------------------------------- */

enum { COL_ADDR, COL_SIZE, COL_STREAM, COL_TIME, COL_ACTION, COL_FRAMES, COL_POOL };

int frag_torch_shape(void *ctx, unsigned shape, const frag_pv *pairs, size_t n, uint8_t *column,
		     struct frag_row *row)
{
	static const uint8_t column_of[ENTRY_KEYS] = {
		[FRAG_W_NOTHING_] = FRAG_COLUMN_UNWANTED,
		[FRAG_W_ACTION] = COL_ACTION,
		[FRAG_W_ADDR] = COL_ADDR,
		[FRAG_W_SIZE] = COL_SIZE,
		[FRAG_W_STREAM] = COL_STREAM,
		[FRAG_W_TIME_US] = COL_TIME,
		[FRAG_W_FRAMES] = COL_FRAMES,
		[FRAG_W_POOL_ID] = COL_POOL,
	};
	unsigned seen = 0;

	(void)ctx;
	(void)shape;
	for (size_t i = 0; i < n; i++) {
		uint64_t key = pairs[2 * i] >> 3;

		if (frag_pv_tag(pairs[2 * i]) != FRAG_PV_STR || key >= ENTRY_KEYS)
			continue;
		if (seen & 1u << key)
			return 0; /* which one counts depends on their order */
		seen |= 1u << key;
		column[i] = column_of[key];
	}
	row->v[COL_FRAMES] = row->v[COL_POOL] = FRAG_PV_NONE;
	/* an oom is too rare to be worth a second way */
	return seen & 1u << FRAG_W_ACTION && !(seen & 1u << FRAG_W_DEVICE_FREE);
}

/* Can `take` handle it? All integers, none negative. */
static inline bool row_fits(const frag_pv *v)
{
	_Static_assert(FRAG_PV_INT == 0, "any other tag has a bit set");
	return !((v[COL_ADDR] | v[COL_SIZE] | v[COL_STREAM] | v[COL_TIME]) & (1ull << 63 | 7)) &&
	       frag_pv_tag(v[COL_ACTION]) == FRAG_PV_STR;
}

/* Fields of an entry that show whether the next one completes it. */
struct tail {
	frag_pv addr;
	unsigned stream, action;
};

static struct tail tail_of(const struct frag_torch *t)
{
	const struct frag_raw_entry *e = &t->entries[t->entries_count - 1];

	/* rows hold small integers only: this address is left to the slow path */
	return (struct tail){ .addr = e->addr << 3 | FRAG_PV_INT,
			      .stream = e->stream,
			      .action = e->addr >> 60 ? FRAG_RAW_OTHER : (unsigned)e->action };
}

/* The same as take_entry and new_entry. A completion that folds into the request before it is
 * written, but not counted: no branch depends on what the program does next, and no row waits for
 * the previous one to be written. */
int frag_torch_take_rows(void *ctx, unsigned shape, const struct frag_row *rows, unsigned n,
			 uint32_t *records)
{
	struct frag_torch *t = ctx;
	uint16_t stream = 0, pool = FRAG_RAW_NO_POOL;
	frag_pv pool_value = FRAG_PV_NONE, stream_value = FRAG_PV_NONE;
	uint32_t stacks = 0, next = (uint32_t)t->entries_count;
	struct tail before;
	unsigned i;

	(void)shape;
	_Static_assert(FRAG_RAW_FREE_REQUESTED - FRAG_RAW_FREE == 1, "one less is both");
	if (!t->entries_count)
		return 0;
	n = (unsigned)FRAG_MIN(n, t->entries_cap - t->entries_count);
	before = tail_of(t);
	for (i = 0; i < n; i++) {
		const frag_pv *v = rows[i].v;
		struct frag_raw_entry *e = &t->entries[next];
		uint64_t word = v[COL_ACTION] >> 3;
		unsigned action = word < FRAG_W_COUNT ? actions[word] : FRAG_RAW_OTHER;
		uint32_t stack = 0;
		uint64_t folds;

		if (FRAG_UNLIKELY(!row_fits(v)))
			break;
		if (FRAG_UNLIKELY(v[COL_STREAM] != stream_value)) {
			stream_value = v[COL_STREAM];
			FRAG_TRY(frag_torch_stream(t, stream_value >> 3, &stream));
		}
		if (FRAG_UNLIKELY(v[COL_POOL] != pool_value)) {
			pool_value = v[COL_POOL];
			pool = FRAG_RAW_NO_POOL;
			if (pool_value != FRAG_PV_NONE)
				FRAG_TRY(frag_torch_pool(t, pool_value, &pool));
		}
		if (FRAG_UNLIKELY(frag_pv_tag(v[COL_FRAMES]) == FRAG_PV_LIST))
			stacks |= stack = frag_pv_index(v[COL_FRAMES]) + 1;
		*e = (struct frag_raw_entry){ .addr = v[COL_ADDR] >> 3,
					      .bytes = v[COL_SIZE] >> 3,
					      .when = FRAG_RAW_WHEN(
						      FRAG_MIN(v[COL_TIME] >> 3, FRAG_RAW_TIME_MAX),
						      action),
					      .stack = stack,
					      .stream = stream,
					      .pool = pool };
		folds = (action == FRAG_RAW_FREE_COMPLETED) &
			(before.action == FRAG_RAW_FREE_REQUESTED) & (before.addr == v[COL_ADDR]) &
			(before.stream == stream);
		e[-1].when -= folds << FRAG_RAW_TIME_BITS;
		next += !folds;
		records[i] = next - 1;
		before = (struct tail){ v[COL_ADDR], stream, action };
	}
	t->entries_count = next;
	t->has_stacks |= stacks != 0;
	return (int)i;
}

int frag_torch_entry(struct frag_torch *t, frag_pv item, size_t at, uint32_t *record)
{
	const struct frag_pickle_node *node;
	frag_pv v[ENTRY_KEYS];
	unsigned seen;
	int rc;

	*record = frag_pickle_record(t->pickle, item);
	if (FRAG_LIKELY(*record != UINT32_MAX))
		return 0;
	node = frag_pickle_node(t->pickle, item);
	if (!node)
		return frag_fail_at(t->err, FRAG_EINPUT, at, "trace entry %zu is not a dict", at);
	seen = gather(node->pairs, node->count, v);
	if (!(seen & 1u << FRAG_W_ACTION))
		return frag_fail_at(t->err, FRAG_EINPUT, at, "trace entry %zu has no action", at);
	if (!t->entries_count)
		frag_torch_note_entry(&t->seen, node->pairs, node->count);
	if (frag_pickle_note(t->pickle, item, 1))
		return frag_fail_at(t->err, FRAG_EINPUT, at, "trace entry %zu is listed twice", at);
	rc = new_entry(t, v, seen, record);
	if (!rc)
		rc = frag_fail_at(t->err, FRAG_EINPUT, at,
				  "trace entry %zu has a value of the wrong kind", at);
	return rc < 0 ? rc : 0;
}
