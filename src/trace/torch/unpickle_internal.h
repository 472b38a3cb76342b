/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the pickle machine, shared by unpickle.c (create, destroy, results),
 * unpickle_objects.c (values and containers), unpickle_run.c (opcodes), unpickle_template.c and
 * unpickle_match.c (dicts that repeat).
 *
 * Limits against hostile files: no memory is allocated for a declared length before the bytes are
 * read; a memo index must be below the number of bytes read; the depth of stack and marks is
 * limited, and so is the number of objects per byte read (frag_pickle_believe). Memory is therefore
 * at most a small multiple of the decompressed size.
 *
 * Functions that set p->err are called with in->cur just after the opcode at fault, whose offset
 * the message has.
 */
#ifndef FRAG_TRACE_UNPICKLE_INTERNAL_H
#define FRAG_TRACE_UNPICKLE_INTERNAL_H

#include <string.h>

#include "trace/strings.h"
#include "unpickle.h"

#define FRAG_PICKLE_STACK_MAX ((size_t)1 << 24)	  /* values; libtorch writes a list in one batch */
#define FRAG_PICKLE_MARKS_MAX 1000u		  /* nesting of real files: below 10 */
#define FRAG_PICKLE_OBJECTS_MAX ((size_t)1 << 29) /* an index and a tag fit 32 bits */
#define FRAG_PICKLE_TEXT_MAX ((size_t)16 << 20)

enum { FRAG_DICT_EMPTY, FRAG_DICT_RECORD, FRAG_DICT_NODE };
#define FRAG_DICT_OF(kind, index) ((uint32_t)(kind) << 30 | (index))
#define FRAG_DICT_KIND(d) ((d) >> 30)
#define FRAG_DICT_INDEX(d) ((d) & ((1u << 30) - 1))

enum frag_big_kind { FRAG_BIG_POSITIVE, FRAG_BIG_NEGATIVE, FRAG_BIG_HUGE, FRAG_BIG_FLOAT };
struct frag_big {
	uint64_t value; /* two's complement; nothing for HUGE; the bits of a FLOAT */
	enum frag_big_kind kind;
};

/*
 * Templates of dicts that repeat: unpickle_template.c learns them, unpickle_match.c applies them. A
 * template has the bytes of a sample dict; another dict matches if it differs in the values only.
 * It is compiled into parts: bytes to compare under a mask that excludes values of known width. A
 * value of varying width ends a part.
 */
#define FRAG_TEMPLATES 16u
#define FRAG_TEMPLATE_BYTES 200u /* of a sample */
#define FRAG_TEMPLATE_PAIRS 16u
#define FRAG_TEMPLATE_PARTS (FRAG_TEMPLATE_PAIRS + 1)
#define FRAG_TEMPLATE_LANES (FRAG_TEMPLATE_BYTES / 16 + FRAG_TEMPLATE_PARTS)
#define FRAG_TEMPLATE_MEMO 16u
#define FRAG_TEMPLATE_NONE UINT8_MAX
#define FRAG_TEMPLATE_ROWS 64u /* matched before they are stored */

typedef uint64_t frag_lane __attribute__((vector_size(16)));

struct frag_template_value {
	uint8_t at, len; /* in the sample, with the opcode */
	uint8_t column;
	bool varies; /* in width */
};
/* A value of known width: a number, or a reference to the memo. */
struct frag_template_field {
	uint64_t mask;	   /* of its bits */
	uint64_t negative; /* its sign, if it has one */
	uint8_t at;	   /* of its bytes, in the part */
	uint8_t column;
};
struct frag_template_part {
	uint8_t lanes, len; /* of 16 bytes; bytes */
	uint8_t numbers, refs;
	uint8_t then; /* column of the value of any width that follows, or NONE */
};
struct frag_template {
	unsigned parts_count; /* 0: not in use */
	unsigned memo_count;
	struct frag_row row; /* of values that are always the same */
	struct frag_template_part parts[FRAG_TEMPLATE_PARTS];
	/* of all parts, in their order */
	frag_lane bytes[FRAG_TEMPLATE_LANES], mask[FRAG_TEMPLATE_LANES];
	struct frag_template_field numbers[FRAG_TEMPLATE_PAIRS], refs[FRAG_TEMPLATE_PAIRS];
	uint32_t memo[FRAG_TEMPLATE_MEMO]; /* what is appended to the memo; HOLE: the dict */
	uint8_t next;			   /* the template that came next the last time */
	/* what it was compiled from */
	unsigned char sample[FRAG_TEMPLATE_BYTES];
	struct frag_template_value values[FRAG_TEMPLATE_PAIRS];
	unsigned sample_len, values_count;
};
struct frag_templates {
	struct frag_template list[FRAG_TEMPLATES];
	unsigned count; /* learnt so far; a new one replaces the oldest */
	unsigned last;
	struct frag_pickle_batch
		*batch;	       /* of rows, see unpickle_match.c; NULL until one is needed */
	uint64_t hits, misses; /* records taken whole, records read opcode by opcode */
	bool off;
	const unsigned char *dict_at; /* start of the last dict; NULL: no longer in the window */
	frag_pv dict;
	size_t memo_at; /* of that dict */
};

struct frag_pickle {
	struct frag_input *in;
	const unsigned char *safe; /* an item may start below here; NULL: look first */
	frag_pv *stack, *top, *stack_end;
	frag_pv *base; /* lowest value that opcodes may touch: above the last mark */
	uint32_t *memo, *memo_top, *memo_end;	/* packed values */
	uint32_t *marks, *mark_top, *marks_end; /* stack positions */

	struct frag_pickle_list *lists;
	struct frag_pickle_node *nodes;
	uint32_t *dicts; /* FRAG_DICT_OF */
	struct frag_big *bigs;
	size_t lists_count, lists_cap, nodes_count, nodes_cap, dicts_count, dicts_cap;
	size_t bigs_count, bigs_cap;

	struct frag_strings *strings;
	const char *text; /* the last one that was not fetched; "" at first */
	size_t text_len;
	uint32_t text_index;
	frag_pv pair[2], pair_value; /* last tuple of two integers, shared when it repeats */

	struct frag_templates templates;
	const struct frag_record_ops *ops; /* NULL: no records */
	void *ctx;			   /* of them */
	struct frag_err *err;
};

static inline frag_pv frag_pv_of(enum frag_pv_tag tag, uint64_t index)
{
	return index << 3 | tag;
}

/* Little-endian, as all of a pickle but its floats. */
static inline uint32_t frag_le16(const unsigned char *b)
{
	return b[0] | (uint32_t)b[1] << 8;
}

static inline uint32_t frag_le32(const unsigned char *b)
{
	return frag_le16(b) | frag_le16(b + 2) << 16;
}

static inline uint64_t frag_le64(const unsigned char *b)
{
	return frag_le32(b) | (uint64_t)frag_le32(b + 4) << 32;
}

/* ---- numbers ------------------------------------------------------------------ */

/*
 * BININT1, BININT2, BININT and LONG1 of up to 8 bytes in one, without a branch
 * per width: sizes and times come in all of them. False: not that simple.
 */
static inline bool frag_pickle_number(unsigned op, const unsigned char *b,
				      const unsigned char **cur, frag_pv *v)
{
	bool is_long = op == 0x8a, is_signed = is_long || op == 'J';
	unsigned n = is_long ? *b : op == 'J' ? 4 : op == 'M' ? 2 : 1;
	uint64_t bits = frag_le64(b + is_long);

	if (FRAG_UNLIKELY(n - 1 > 7))
		return false;
	bits <<= 64 - 8 * n;
	bits = is_signed ? (uint64_t)((int64_t)bits >> (64 - 8 * n)) : bits >> (64 - 8 * n);
	if (FRAG_UNLIKELY((bits + (1ull << 60)) >> 61))
		return false;
	*v = bits << 3 | FRAG_PV_INT;
	*cur = b + is_long + n;
	return true;
}

static inline bool frag_pickle_is_number(unsigned op)
{
	return op == 'K' || op == 'M' || op == 'J' || op == 0x8a;
}

/* ---- errors: all return FRAG_EINPUT ---------------------------------------- */

int frag_pickle_broken(struct frag_pickle *p, const char *what);
int frag_pickle_truncated(struct frag_pickle *p);
int frag_pickle_refuse(struct frag_pickle *p, unsigned op);

/* ---- objects ------------------------------------------------------------------ */

int frag_pickle_grow_stack(struct frag_pickle *p);
/* Doubles an array of objects, of which a file has at most one per `bytes`. */
int frag_pickle_grow(struct frag_pickle *p, void *array_ptr, size_t *cap, size_t unit,
		     unsigned bytes);
/* FRAG_EINPUT if there is more than one object per `bytes` bytes read, which no writer makes.
 * 65,536 are always allowed. Checked when an array grows. */
int frag_pickle_believe(struct frag_pickle *p, size_t count, unsigned bytes);

static inline int frag_pickle_push(struct frag_pickle *p, frag_pv v)
{
	if (FRAG_UNLIKELY(p->top == p->stack_end))
		FRAG_TRY(frag_pickle_grow_stack(p));
	*p->top++ = v;
	return 0;
}

int frag_pickle_add_big(struct frag_pickle *p, uint64_t value, enum frag_big_kind kind,
			uint64_t *index);

/* To 32 bits. Indices always fit (OBJECTS_MAX); an integer that does not becomes a BIG. */
static inline int frag_pickle_pack(struct frag_pickle *p, frag_pv v, uint32_t *out)
{
	if (FRAG_UNLIKELY(v >> 32)) {
		int64_t i = (int64_t)v >> 3;
		uint64_t index = 0;

		FRAG_TRY(frag_pickle_add_big(
			p, (uint64_t)i, i < 0 ? FRAG_BIG_NEGATIVE : FRAG_BIG_POSITIVE, &index));
		v = frag_pv_of(FRAG_PV_BIG, index);
	}
	*out = (uint32_t)v;
	return 0;
}

/* n bytes, two's complement; 8 bytes are readable at b whatever n is. */
int frag_pickle_push_long(struct frag_pickle *p, const unsigned char *b, size_t n);
int frag_pickle_push_float(struct frag_pickle *p, const unsigned char *b);
int frag_pickle_push_text(struct frag_pickle *p, const unsigned char *b, size_t n);
/* n bytes that begin at in->cur and may cross the window. */
int frag_pickle_push_long_text(struct frag_pickle *p, uint64_t n);
int frag_pickle_new_list(struct frag_pickle *p, enum frag_pv_tag tag, frag_pv *out);
int frag_pickle_append(struct frag_pickle *p, frag_pv list, const frag_pv *items, size_t n);
/* Replaces the top n values by a tuple. */
int frag_pickle_make_tuple(struct frag_pickle *p, size_t n);
/* pairs: `values` of them, key and value in turn. */
int frag_pickle_set_items(struct frag_pickle *p, frag_pv target, const frag_pv *pairs,
			  ptrdiff_t values);

/* Makes a template of the dict that just became a record. pre: in->cur is after it. */
void frag_template_learn(struct frag_pickle *p);
/*
 * Reads the dicts from the '}' at *cur on for as long as they match a template and lie in the
 * window. Their values go on the stack at *top; both move on. Returns how many dicts it read, or an
 * error of take_rows.
 */
int frag_template_take(struct frag_pickle *p, const unsigned char **cur, frag_pv **top);
/* The template has changed: rows prepared for it are no longer valid. */
void frag_template_changed(struct frag_pickle *p, unsigned number);
void frag_template_release(struct frag_pickle *p);

/* ---- opcodes -------------------------------------------------------------------- */

#define FRAG_PICKLE_STACK_ROOM 8 /* no hot opcode pushes more values */
/* Runs up to STOP: one value is left on the stack. */
int frag_pickle_run(struct frag_pickle *p);

#endif
