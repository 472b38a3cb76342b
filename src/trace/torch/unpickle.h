/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pickles of plain data (protocols 2 to 5, and libtorch's protocol 2): None, bool, int, float, str,
 * tuple, list, dict. Opcodes that name, build or call anything are refused with their offset.
 *
 * Values are 8 bytes: a tag in the low three bits, an index or a 61-bit integer above. Lists and
 * dicts are shared objects: what is fetched twice from the memo is one object, and cycles are
 * possible. To walk the result, go down a fixed number of levels, and use `note` to visit each
 * object once.
 *
 * Records. A snapshot is a million small dicts of one shape. When the first items are put into a
 * new dict, the user may store them in a record of its own; the dict then costs 4 bytes here,
 * and takes no more items. All other dicts keep their pairs.
 *
 * Ownership: the pickle is the caller's and owns everything reached from it.
 */
#ifndef FRAG_TRACE_UNPICKLE_H
#define FRAG_TRACE_UNPICKLE_H

#include <frag/base.h>
#include <frag/error.h>

#include "trace/input/input.h"

typedef uint64_t frag_pv;

enum frag_pv_tag {
	FRAG_PV_INT, /* above: signed, 61 bits */
	FRAG_PV_STR, /* index of an interned string */
	FRAG_PV_LIST,
	FRAG_PV_DICT,
	FRAG_PV_TUPLE,
	FRAG_PV_BIG,   /* an integer that does not fit 61 bits, or a float */
	FRAG_PV_CONST, /* one of the four below */
};
#define FRAG_PV_NONE ((frag_pv)FRAG_PV_CONST)
#define FRAG_PV_FALSE ((frag_pv)FRAG_PV_CONST | 1 << 3)
#define FRAG_PV_TRUE ((frag_pv)FRAG_PV_CONST | 2 << 3)
#define FRAG_PV_HOLE (FRAG_PV_CONST | 3u << 3) /* unset memo entry; never a result */

static inline enum frag_pv_tag frag_pv_tag(frag_pv v)
{
	return (enum frag_pv_tag)(v & 7);
}

/* Index of a STR, LIST, DICT or TUPLE. */
static inline uint32_t frag_pv_index(frag_pv v)
{
	return (uint32_t)(v >> 3);
}

struct frag_pickle_list { /* and tuple */
	uint32_t *items;  /* values, all of which fit 32 bits here */
	uint32_t count, cap;
	uint32_t note; /* the reader's, 0 at first */
};

struct frag_pickle_node {
	frag_pv *pairs;	     /* key, value, key, value, … in order of arrival */
	uint32_t count, cap; /* pairs */
	uint32_t note;	     /* the reader's, 0 at first */
};

/*
 * Records. take takes n pairs that were put into a new dict, which are borrowed: 1 and *record (below
 * 2^30), 0 to have the pairs kept, or an error.
 *
 * A faster way for dicts with the same keys: rows of values. shape assigns a column to the value of
 * each pair of such a dict (UNWANTED before); *row: what columns without a pair hold. False declines
 * such dicts. take_rows returns how many it took from the front, with a record for each, or an
 * error. Rows that it does not take are read the slow way.
 */
#define FRAG_COLUMNS 8u
#define FRAG_COLUMN_UNWANTED (FRAG_COLUMNS - 1)
struct frag_row {
	frag_pv v[FRAG_COLUMNS];
};
struct frag_record_ops {
	int (*take)(void *ctx, const frag_pv *pairs, size_t n, uint32_t *record);
	bool (*shape)(const frag_pv *pairs, size_t n, uint8_t *column, struct frag_row *row);
	int (*take_rows)(void *ctx, const struct frag_row *rows, unsigned n, uint32_t *records);
};

struct frag_pickle;

/* Empty pickle; words[i] get the string index 1 + i, so that keys can be told by number. ops: NULL,
 * if all dicts keep their pairs. */
int frag_pickle_create(const char *const *words, size_t words_count,
		       const struct frag_record_ops *ops, void *ctx, struct frag_pickle **out,
		       struct frag_err *err);
void frag_pickle_destroy(struct frag_pickle *p); /* NULL is allowed */
/* Reads up to STOP, the end of the input. Once per pickle. Errors: FRAG_EINPUT with the offset. */
int frag_pickle_read(struct frag_pickle *p, struct frag_input *in, frag_pv *root,
		     struct frag_err *err);

/* NULL if v is not a list (a tuple). */
struct frag_pickle_list *frag_pickle_list(struct frag_pickle *p, frag_pv v);
struct frag_pickle_list *frag_pickle_tuple(struct frag_pickle *p, frag_pv v);
/* NULL if v is not a dict, or one that became a record. An empty dict gives an empty node. */
const struct frag_pickle_node *frag_pickle_node(struct frag_pickle *p, frag_pv v);
/* Marks a node; returns its previous mark. */
uint32_t frag_pickle_note(struct frag_pickle *p, frag_pv v, uint32_t note);
/* Record number of a dict that became one, else UINT32_MAX. */
uint32_t frag_pickle_record(const struct frag_pickle *p, frag_pv v);
/* Value of the last pair with that key, FRAG_PV_HOLE if the key is absent. O(pairs). */
frag_pv frag_node_get(const struct frag_pickle_node *node, uint32_t key);

/* True and the value if v is an integer in range (a bool counts as 0 or 1). */
bool frag_pickle_u64(const struct frag_pickle *p, frag_pv v, uint64_t *out);
bool frag_pickle_i64(const struct frag_pickle *p, frag_pv v, int64_t *out);
/* True if v is a float or an integer. */
bool frag_pickle_f64(const struct frag_pickle *p, frag_pv v, double *out);
/* Text and length of a string, NULL if v is something else. */
const char *frag_pickle_text(const struct frag_pickle *p, frag_pv v, size_t *len);

#endif
