/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace entries of a PyTorch snapshot: dicts become records of 32 bytes as soon
 * as the unpickler has read them. A free_completed that directly follows its
 * free_requested (the common case) shares its record.
 */
#include <frag/torch.h>

#include "torch_parts.h"

/* All keys of entries lie below it. */
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
	[FRAG_W_EMPTY_CACHE] = FRAG_RAW_EMPTY_CACHE, /* scripts/record_torch.py */
	[FRAG_W_LIMIT] = FRAG_RAW_LIMIT,
};

/* Columns of a row. What an entry lacks is 0, its frames and pool are NONE. */
enum { COL_ADDR, COL_SIZE, COL_STREAM, COL_TIME, COL_ACTION, COL_FRAMES, COL_POOL };
static const struct frag_row empty_row = {
	.v = { [COL_FRAMES] = FRAG_PV_NONE, [COL_POOL] = FRAG_PV_NONE }
};
static const uint8_t column_of[ENTRY_KEYS] = {
	[FRAG_W_NOTHING_] = FRAG_COLUMN_UNWANTED,
	[FRAG_W_ACTION] = COL_ACTION,
	[FRAG_W_ADDR] = COL_ADDR,
	[FRAG_W_DEVICE_FREE] = COL_ADDR,
	[FRAG_W_SIZE] = COL_SIZE,
	[FRAG_W_STREAM] = COL_STREAM,
	[FRAG_W_TIME_US] = COL_TIME,
	[FRAG_W_FRAMES] = COL_FRAMES,
	[FRAG_W_POOL_ID] = COL_POOL,
};

/* Is the key of a pair one of an entry? */
static inline bool is_entry_key(frag_pv key)
{
	return frag_pv_tag(key) == FRAG_PV_STR && key >> 3 < ENTRY_KEYS;
}

/* Room for n more entries. */
static int grow_entries(struct frag_torch *t, unsigned n)
{
	size_t cap = t->entries_cap ? t->entries_cap * 2 : 1024;
	struct frag_raw_entry *entries;

	if (FRAG_LIKELY(t->entries_count + n <= t->entries_cap))
		return 0;
	if (cap > RECORD_MAX)
		return frag_fail(t->err, FRAG_EINPUT, "more than %u entries", RECORD_MAX);
	entries = frag_host_realloc(t->entries, cap, sizeof(*entries));
	FRAG_CHECK_ALLOC(entries, "entries", t->err);
	t->entries = entries;
	t->entries_cap = cap;
	return 0;
}

/* 1: the entry of a row is added; 0: a value of the wrong kind; or an error. pre: there is room. A
 * completion that belongs to the request before it is written, but not counted: two dicts, one
 * record, and no branch depends on what the program does next. */
static inline int take_row(struct frag_torch *t, const frag_pv *v, uint32_t *record)
{
	struct frag_raw_entry *e = &t->entries[t->entries_count];
	uint64_t n[COL_TIME + 1], word = v[COL_ACTION] >> 3, folds = 0;
	unsigned action = word < FRAG_W_COUNT ? actions[word] : FRAG_RAW_OTHER;

	_Static_assert(FRAG_PV_INT == 0, "any other tag has a bit set");
	_Static_assert(FRAG_RAW_FREE_REQUESTED - FRAG_RAW_FREE == 1, "one less is both");
	for (unsigned c = 0; c <= COL_TIME; c++) {
		n[c] = v[c] >> 3;
		if (FRAG_UNLIKELY(v[c] & (1ull << 63 | 7)) &&
		    !frag_pickle_u64(t->pickle, v[c], &n[c]))
			return 0;
	}
	if (FRAG_UNLIKELY(frag_pv_tag(v[COL_ACTION]) != FRAG_PV_STR))
		return 0;
	*e = (struct frag_raw_entry){ .addr = n[COL_ADDR],
				      .bytes = n[COL_SIZE],
				      .when = FRAG_RAW_WHEN(
					      FRAG_MIN(n[COL_TIME], FRAG_RAW_TIME_MAX), action),
				      .pool = FRAG_RAW_NO_POOL };
	if (FRAG_UNLIKELY(frag_pv_tag(v[COL_FRAMES]) == FRAG_PV_LIST))
		e->stack = frag_pv_index(v[COL_FRAMES]) + 1;
	FRAG_TRY(frag_torch_stream(t, n[COL_STREAM], &e->stream));
	if (v[COL_POOL] != FRAG_PV_NONE)
		FRAG_TRY(frag_torch_pool(t, v[COL_POOL], &e->pool));
	if (FRAG_LIKELY(t->entries_count > t->fold_from))
		folds = (action == FRAG_RAW_FREE_COMPLETED) &
			(e[-1].action == FRAG_RAW_FREE_REQUESTED) & (e[-1].addr == e->addr) &
			(e[-1].stream == e->stream);
	if (FRAG_LIKELY(t->entries_count > 0))
		e[-1].when -= folds << FRAG_RAW_TIME_BITS;
	t->entries_count += !folds;
	*record = (uint32_t)t->entries_count - 1;
	return 1;
}

static int take_entry(void *ctx, const frag_pv *pairs, size_t n, uint32_t *record)
{
	struct frag_torch *t = ctx;
	struct frag_row row = empty_row;

	for (size_t i = 0; i < n; i++)
		if (is_entry_key(pairs[2 * i]))
			row.v[column_of[pairs[2 * i] >> 3]] = pairs[2 * i + 1];
	if (!row.v[COL_ACTION])
		return 0;
	if (FRAG_UNLIKELY(!t->entries_count))
		frag_torch_note(&t->seen, FRAG_TORCH_OF_ENTRY, pairs, n);
	FRAG_TRY(grow_entries(t, 1));
	return take_row(t, row.v, record);
}

/* ---- entries of a known shape ----------------------------------------------------- */

static bool shape(const frag_pv *pairs, size_t n, uint8_t *column, struct frag_row *row)
{
	unsigned seen = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t key = pairs[2 * i] >> 3;

		if (!is_entry_key(pairs[2 * i]))
			continue;
		if (seen & 1u << key)
			return false; /* which one counts depends on their order */
		seen |= 1u << key;
		column[i] = column_of[key];
	}
	*row = empty_row;
	/* an oom is too rare to be worth a second way */
	return seen & 1u << FRAG_W_ACTION && !(seen & 1u << FRAG_W_DEVICE_FREE);
}

static int take_rows(void *ctx, const struct frag_row *rows, unsigned n, uint32_t *records)
{
	struct frag_torch *t = ctx;

	FRAG_TRY(grow_entries(t, n));
	for (unsigned i = 0; i < n; i++) {
		int rc = take_row(t, rows[i].v, &records[i]);

		if (FRAG_UNLIKELY(rc != 1))
			return rc ? rc : (int)i;
	}
	return (int)n;
}

const struct frag_record_ops frag_torch_records = { take_entry, shape, take_rows };

int frag_torch_entry(struct frag_torch *t, frag_pv item, size_t at, uint32_t *record)
{
	const struct frag_pickle_node *node;
	int rc;

	*record = frag_pickle_record(t->pickle, item);
	if (FRAG_LIKELY(*record != UINT32_MAX))
		return 0;
	node = frag_pickle_node(t->pickle, item);
	if (!node)
		return frag_fail_at(t->err, FRAG_EINPUT, at, "trace entry %zu is not a dict", at);
	if (frag_node_get(node, FRAG_W_ACTION) == FRAG_PV_HOLE)
		return frag_fail_at(t->err, FRAG_EINPUT, at, "trace entry %zu has no action", at);
	if (frag_pickle_note(t->pickle, item, 1))
		return frag_fail_at(t->err, FRAG_EINPUT, at, "trace entry %zu is listed twice", at);
	rc = take_entry(t, node->pairs, node->count, record);
	if (!rc)
		rc = frag_fail_at(t->err, FRAG_EINPUT, at,
				  "trace entry %zu has a value of the wrong kind", at);
	return FRAG_MIN(rc, 0);
}

/* ---- which release of PyTorch wrote the file --------------------------------------
 *
 * The file does not name it, but releases added keys: a key that is there sets the oldest possible
 * release, a key that is missing the newest. Releases that added no key cannot be told apart (2.10
 * and 2.11, for example), unless the settings use a key that only the newer one knows. */

/* In order: the release that brought a mark, and where it is. */
#define SETTINGS_THERE (1u << 1)
static const struct {
	unsigned since;
	enum frag_torch_place of;
	uint32_t word;
} marks[] = {
	{ FRAG_TORCH(2, 2), FRAG_TORCH_OF_ENTRY, FRAG_W_TIME_US },
	{ FRAG_TORCH(2, 3), FRAG_TORCH_OF_FILE, FRAG_W_NOTHING_ }, /* settings that say something */
	{ FRAG_TORCH(2, 5), FRAG_TORCH_OF_FILE, FRAG_W_EXTERNAL_ANNOTATIONS },
	{ FRAG_TORCH(2, 8), FRAG_TORCH_OF_ENTRY, FRAG_W_COMPILE_CONTEXT },
	{ FRAG_TORCH(2, 9), FRAG_TORCH_OF_SETTINGS, FRAG_W_STREAM_REUSE },
	{ FRAG_TORCH(2, 10), FRAG_TORCH_OF_ENTRY, FRAG_W_USER_METADATA },
	{ FRAG_TORCH(2, 12), FRAG_TORCH_OF_ENTRY, FRAG_W_POOL_ID },
	{ FRAG_TORCH(2, 13), FRAG_TORCH_OF_SETTINGS, FRAG_W_MAX_ROUND_THRESHOLD },
	{ FRAG_TORCH(2, 14), FRAG_TORCH_OF_FILE, FRAG_W_HOST_SEGMENTS },
	{ FRAG_TORCH(2, 14), FRAG_TORCH_OF_FILE, FRAG_W_HOST_TRACES },
};

void frag_torch_note(struct frag_torch_seen *seen, enum frag_torch_place of, const frag_pv *pairs,
		     size_t n)
{
	seen->looked |= 1u << of;
	seen->there |= of == FRAG_TORCH_OF_SETTINGS ? SETTINGS_THERE : 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < FRAG_ARRAY_LEN(marks); k++)
			if (marks[k].of == of &&
			    pairs[2 * i] == ((frag_pv)marks[k].word << 3 | FRAG_PV_STR))
				seen->there |= 1u << k;
}

void frag_torch_releases(const struct frag_torch_seen *seen, const char *conf, unsigned *first,
			 unsigned *last)
{
	*first = FRAG_TORCH_OLDEST;
	*last = FRAG_TORCH_NEWEST;
	for (size_t k = 0; k < FRAG_ARRAY_LEN(marks); k++)
		if (seen->there >> k & 1)
			*first = marks[k].since;
	/* a missing mark means nothing if a later one is there */
	for (size_t k = FRAG_ARRAY_LEN(marks); k-- > 0 && marks[k].since > *first;)
		if (seen->looked >> marks[k].of & 1)
			*last = marks[k].since - 1;
	/* a release refuses settings that it does not know */
	if (conf && frag_torch_conf_since(conf) <= *last)
		*first = FRAG_MAX(*first, frag_torch_conf_since(conf));
}
