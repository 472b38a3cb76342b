/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pickle machine: a stack of 8-byte values, an array of mark positions, a
 * memo. It never recurses and sees each byte once.
 *
 * Bounds against hostile files: nothing is allocated for a claimed length
 * before the bytes are there; a memo index must be below the number of bytes
 * read; stack and mark depth are capped. So memory stays within a constant
 * factor of the plain size.
 *
 * Speed. The loop below knows the dozen opcodes that make up 99 % of a
 * snapshot; everything else goes through `rare`. It decodes without looking at
 * the end of the window, which is checked once per opcode: behind the window lie
 * enough readable bytes for one item (input.h). Fields that the loop writes
 * are pointers, so storing a value (an integer) cannot alias them and they stay
 * in registers.
 */
#include "unpickle.h"

#include <string.h>

#include "strings.h"

#define ITEM_MAX 512u		      /* no hot opcode takes more bytes than this */
#define STACK_MAX ((size_t)1 << 24)   /* values; libtorch writes a whole list in one batch */
#define MARKS_MAX 1000u		      /* nesting of real files: below 10 */
#define OBJECTS_MAX ((size_t)1 << 29) /* index plus tag fit 32 bits in the dict table */
#define TEXT_MAX ((size_t)16 << 20)
#define SMALL_TEXTS 256u

enum { DICT_EMPTY, DICT_RECORD, DICT_NODE };
#define DICT_OF(kind, index) ((uint32_t)(kind) << 30 | (index))
#define DICT_KIND(d) ((d) >> 30)
#define DICT_INDEX(d) ((d) & ((1u << 30) - 1))

struct big {
	uint64_t value;
	enum { BIG_POSITIVE, BIG_NEGATIVE, BIG_HUGE } kind;
};

/* Texts of up to 8 bytes, found without hashing: "N/A" comes once per event. */
struct small_text {
	uint64_t bytes;
	uint32_t len, index;
};

struct frag_pickle {
	struct frag_input *in;
	const unsigned char *safe; /* an item may start below here */
	frag_pv *stack, *top, *stack_end;
	uint32_t *memo, *memo_top, *memo_end; /* packed */
	uint32_t *marks, *mark_top, *marks_end;

	struct frag_pickle_list *lists;
	struct frag_pickle_node *nodes;
	uint32_t *dicts;
	struct big *bigs;
	double *floats;
	size_t lists_count, lists_cap, nodes_count, nodes_cap, dicts_count, dicts_cap;
	size_t bigs_count, bigs_cap, floats_count, floats_cap;

	struct frag_strings *strings;
	struct small_text small[SMALL_TEXTS];
	frag_pv pair[2], pair_value; /* last tuple of two integers, shared when it repeats */

	frag_record_fn fn;
	void *ctx;
	struct frag_err *err;
	bool stopped;
};

static inline frag_pv value_of(enum frag_pv_tag tag, uint64_t index)
{
	return index << 3 | tag;
}

/* ---- errors -------------------------------------------------------------- */

static uint64_t offset_of(const struct frag_pickle *p, const unsigned char *at)
{
	return p->in->end_offset - (uint64_t)(p->in->end - at);
}

static int truncated(struct frag_pickle *p)
{
	uint64_t at = p->in->end_offset;

	return frag_fail_at(p->err, FRAG_EINPUT, at,
			    "'%s' is truncated: the pickle goes on behind byte %llu",
			    frag_input_name(p->in), (unsigned long long)at);
}

__attribute__((noinline, cold)) static int broken(struct frag_pickle *p, const char *what)
{
	uint64_t at = offset_of(p, p->in->cur);

	if (p->in->cur > p->in->end) /* it decoded what is not there */
		return truncated(p);
	return frag_fail_at(p->err, FRAG_EINPUT, at, "'%s' is not a sound pickle: %s before byte %llu",
			    frag_input_name(p->in), what, (unsigned long long)at);
}

__attribute__((noinline, cold)) static int refuse(struct frag_pickle *p, unsigned op)
{
	static const struct {
		unsigned char op;
		const char *name;
	} known[] = {
		{ 'c', "GLOBAL" },	 { 0x93, "STACK_GLOBAL" }, { 'R', "REDUCE" },
		{ 'b', "BUILD" },	 { 'i', "INST" },	   { 'o', "OBJ" },
		{ 0x81, "NEWOBJ" },	 { 0x92, "NEWOBJ_EX" },	   { 'P', "PERSID" },
		{ 'Q', "BINPERSID" },	 { 0x82, "EXT1" },	   { 0x83, "EXT2" },
		{ 0x84, "EXT4" },	 { 0x97, "NEXT_BUFFER" },  { 0x96, "BYTEARRAY8" },
	};
	uint64_t at = offset_of(p, p->in->cur - 1);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(known); i++)
		if (known[i].op == op)
			return frag_fail_at(p->err, FRAG_EINPUT, at,
					    "'%s' holds the pickle opcode %s at byte %llu; a snapshot "
					    "is plain data, nothing else is read",
					    frag_input_name(p->in), known[i].name,
					    (unsigned long long)at);
	return frag_fail_at(p->err, FRAG_EINPUT, at, "'%s' holds the unknown pickle opcode 0x%02x "
			    "at byte %llu", frag_input_name(p->in), op, (unsigned long long)at);
}

/* ---- growing arrays -------------------------------------------------------- */

__attribute__((noinline)) static int grow_array(struct frag_pickle *p, void *array, size_t *cap,
						size_t unit)
{
	size_t want = *cap ? *cap * 2 : 256;
	void *old, *new;

	if (want > OBJECTS_MAX)
		return broken(p, "more objects than are believable");
	memcpy(&old, array, sizeof(old));
	new = frag_host_realloc(old, want, unit);
	if (!new)
		return frag_fail_nomem(p->err, "pickle");
	memcpy(array, &new, sizeof(new));
	*cap = want;
	return 0;
}

__attribute__((noinline)) static int grow_stack(struct frag_pickle *p)
{
	size_t n = (size_t)(p->top - p->stack), cap = n ? n * 2 : 4096;
	frag_pv *stack;

	if (n >= STACK_MAX)
		return broken(p, "stack too deep");
	stack = frag_host_realloc(p->stack, cap, sizeof(*stack));
	if (!stack)
		return frag_fail_nomem(p->err, "pickle stack");
	p->stack = stack;
	p->top = stack + n;
	p->stack_end = stack + cap;
	return 0;
}

/* Room for memo entry `index`. */
__attribute__((noinline)) static int grow_memo(struct frag_pickle *p, size_t index)
{
	size_t n = (size_t)(p->memo_top - p->memo), cap = (size_t)(p->memo_end - p->memo);
	uint32_t *memo;

	if (index < cap)
		return 0;
	cap = FRAG_MAX(cap ? cap * 2 : 4096, index + 1);
	memo = frag_host_realloc(p->memo, cap, sizeof(*memo));
	if (!memo)
		return frag_fail_nomem(p->err, "pickle memo");
	p->memo = memo;
	p->memo_top = memo + n;
	p->memo_end = memo + cap;
	return 0;
}

static inline int push(struct frag_pickle *p, frag_pv v)
{
	if (FRAG_UNLIKELY(p->top == p->stack_end))
		FRAG_TRY(grow_stack(p));
	*p->top++ = v;
	return 0;
}

/* Lowest value that an opcode may touch. */
static inline frag_pv *base_of(const struct frag_pickle *p)
{
	return p->stack + (p->mark_top == p->marks ? 0 : p->mark_top[-1]);
}

static inline bool has(const struct frag_pickle *p, ptrdiff_t n)
{
	return p->top - base_of(p) >= n;
}

/* ---- packed values: 32 bits in lists and memo ---------------------------------- */

static int add_big(struct frag_pickle *p, uint64_t value, int kind, uint64_t *index)
{
	if (p->bigs_count == p->bigs_cap)
		FRAG_TRY(grow_array(p, &p->bigs, &p->bigs_cap, sizeof(*p->bigs)));
	p->bigs[p->bigs_count].value = value;
	p->bigs[p->bigs_count].kind = kind;
	*index = p->bigs_count++;
	return 0;
}

/* Indices fit by OBJECTS_MAX; an integer that does not becomes a BIG. */
static inline int pack(struct frag_pickle *p, frag_pv v, uint32_t *out)
{
	if (FRAG_UNLIKELY(v >> 32)) {
		int64_t i = (int64_t)v >> 3;
		uint64_t index;

		FRAG_TRY(add_big(p, (uint64_t)i, i < 0 ? BIG_NEGATIVE : BIG_POSITIVE, &index));
		v = value_of(FRAG_PV_BIG, index);
	}
	*out = (uint32_t)v;
	return 0;
}

/* ---- scalars ---------------------------------------------------------------- */

static int push_big(struct frag_pickle *p, uint64_t value, int kind)
{
	uint64_t index;

	FRAG_TRY(add_big(p, value, kind, &index));
	return push(p, value_of(FRAG_PV_BIG, index));
}

static inline int push_i64(struct frag_pickle *p, int64_t v)
{
	if (FRAG_LIKELY(v >= -((int64_t)1 << 60) && v < (int64_t)1 << 60))
		return push(p, (uint64_t)v << 3 | FRAG_PV_INT);
	return push_big(p, (uint64_t)v, v < 0 ? BIG_NEGATIVE : BIG_POSITIVE);
}

/* n bytes, little-endian two's complement; 8 bytes are readable at b whatever n is. */
static inline int push_long(struct frag_pickle *p, const unsigned char *b, size_t n)
{
	uint64_t v;

	if (FRAG_LIKELY(n <= 8)) {
		if (!n)
			return push(p, FRAG_PV_INT);
		memcpy(&v, b, 8);
		return push_i64(p, (int64_t)(v << (64 - 8 * n)) >> (64 - 8 * n));
	}
	memcpy(&v, b, 8);
	if (n == 9 && !b[8])
		return v >> 60 ? push_big(p, v, BIG_POSITIVE) : push_i64(p, (int64_t)v);
	return push_big(p, 0, BIG_HUGE);
}

static int push_float(struct frag_pickle *p, const unsigned char *b)
{
	uint64_t bits;

	if (p->floats_count == p->floats_cap)
		FRAG_TRY(grow_array(p, &p->floats, &p->floats_cap, sizeof(*p->floats)));
	memcpy(&bits, b, 8);
	bits = __builtin_bswap64(bits);
	memcpy(&p->floats[p->floats_count], &bits, 8);
	return push(p, value_of(FRAG_PV_FLOAT, p->floats_count++));
}

__attribute__((noinline)) static int push_hashed(struct frag_pickle *p, const unsigned char *b,
						 size_t n)
{
	uint32_t index;

	FRAG_TRY(frag_strings_intern(p->strings, (const char *)b, n, &index, p->err));
	return push(p, value_of(FRAG_PV_STR, index));
}

static inline int push_text(struct frag_pickle *p, const unsigned char *b, size_t n)
{
	struct small_text *s;
	uint64_t bytes;

	if (n > 8)
		return push_hashed(p, b, n);
	if (!n)
		return push(p, value_of(FRAG_PV_STR, 0));
	memcpy(&bytes, b, 8);
	bytes &= ~0ull >> (64 - 8 * n);
	s = &p->small[(bytes * 0x9e3779b97f4a7c15ull >> 56) % SMALL_TEXTS];
	if (FRAG_UNLIKELY(s->bytes != bytes || s->len != n)) {
		FRAG_TRY(frag_strings_intern(p->strings, (const char *)b, n, &s->index, p->err));
		s->bytes = bytes;
		s->len = (uint32_t)n;
	}
	return push(p, value_of(FRAG_PV_STR, s->index));
}

/* BINUNICODE and BINUNICODE8: the text may cross the window. */
static int push_long_text(struct frag_pickle *p, uint64_t n)
{
	size_t have = 0, cap = 0;
	unsigned char *text = NULL;
	int rc = 0;

	if (p->in->cur > p->in->end)
		return truncated(p);
	p->safe = NULL; /* the window moves */
	if (n > TEXT_MAX)
		return broken(p, "string longer than is believable");
	if (n <= FRAG_INPUT_PEEK_MAX - 8) {
		FRAG_TRY(frag_input_ensure(p->in, (size_t)n, p->err));
		if (frag_input_left(p->in) < n)
			return truncated(p);
		p->in->cur += n;
		return push_text(p, p->in->cur - n, (size_t)n);
	}
	/* grow with what arrives, not with what is claimed */
	while (!rc && have < n) {
		if (have == cap) {
			unsigned char *more;

			cap = (size_t)FRAG_MIN((uint64_t)FRAG_MAX(cap * 2, FRAG_INPUT_PEEK_MAX), n);
			more = frag_host_realloc(text, cap, 1);
			if (!more) {
				rc = frag_fail_nomem(p->err, "pickle string");
				break;
			}
			text = more;
		}
		rc = frag_input_read(p->in, text + have, cap - have, p->err);
		have = cap;
	}
	if (!rc)
		rc = push_hashed(p, text, (size_t)n);
	frag_host_free(text);
	return rc;
}

/* ---- containers --------------------------------------------------------------- */

static int new_list(struct frag_pickle *p, enum frag_pv_tag tag, frag_pv *out)
{
	if (p->lists_count == p->lists_cap)
		FRAG_TRY(grow_array(p, &p->lists, &p->lists_cap, sizeof(*p->lists)));
	p->lists[p->lists_count] = (struct frag_pickle_list){ 0 };
	*out = value_of(tag, p->lists_count++);
	return 0;
}

static int list_extend(struct frag_pickle *p, struct frag_pickle_list *l, const frag_pv *items,
		       size_t n)
{
	if (n > l->cap - l->count) {
		size_t cap = FRAG_MAX(l->count + n, (size_t)l->cap * 2);
		uint32_t *more;

		if (cap > UINT32_MAX)
			return broken(p, "list longer than is believable");
		more = frag_host_realloc(l->items, cap, sizeof(*more));
		if (!more)
			return frag_fail_nomem(p->err, "pickle list");
		l->items = more;
		l->cap = (uint32_t)cap;
	}
	for (size_t i = 0; i < n; i++)
		FRAG_TRY(pack(p, items[i], &l->items[l->count + i]));
	l->count += (uint32_t)n;
	return 0;
}

static int append(struct frag_pickle *p, frag_pv list, const frag_pv *items, size_t n)
{
	if (frag_pv_tag(list) != FRAG_PV_LIST)
		return broken(p, "items for something that is not a list");
	return list_extend(p, &p->lists[frag_pv_index(list)], items, n);
}

/* Replaces the top n values by a tuple. Equal pairs of integers in a row (pool
 * ids, one per entry in new versions) share one object. */
static int make_tuple(struct frag_pickle *p, size_t n)
{
	frag_pv *items = p->top - n, v;

	if (n == 2 && p->pair_value && items[0] == p->pair[0] && items[1] == p->pair[1]) {
		v = p->pair_value;
	} else {
		FRAG_TRY(new_list(p, FRAG_PV_TUPLE, &v));
		FRAG_TRY(list_extend(p, &p->lists[frag_pv_index(v)], items, n));
		if (n == 2 && frag_pv_tag(items[0]) == FRAG_PV_INT &&
		    frag_pv_tag(items[1]) == FRAG_PV_INT) {
			p->pair_value = v;
			p->pair[0] = items[0];
			p->pair[1] = items[1];
		}
	}
	p->top = items;
	return push(p, v);
}

static int node_extend(struct frag_pickle *p, uint32_t *dict, const frag_pv *pairs, size_t n)
{
	struct frag_pickle_node *node;

	if (DICT_KIND(*dict) == DICT_EMPTY) {
		if (p->nodes_count == p->nodes_cap)
			FRAG_TRY(grow_array(p, &p->nodes, &p->nodes_cap, sizeof(*p->nodes)));
		p->nodes[p->nodes_count] = (struct frag_pickle_node){ 0 };
		*dict = DICT_OF(DICT_NODE, (uint32_t)p->nodes_count++);
	}
	node = &p->nodes[DICT_INDEX(*dict)];
	if (n > node->cap - node->count) {
		size_t cap = FRAG_MAX(node->count + n, (size_t)node->cap * 2);
		frag_pv *more;

		if (cap > UINT32_MAX / 2)
			return broken(p, "dict larger than is believable");
		more = frag_host_realloc(node->pairs, cap, 2 * sizeof(*more));
		if (!more)
			return frag_fail_nomem(p->err, "pickle dict");
		node->pairs = more;
		node->cap = (uint32_t)cap;
	}
	memcpy(node->pairs + 2 * (size_t)node->count, pairs, n * 2 * sizeof(*pairs));
	node->count += (uint32_t)n;
	return 0;
}

static inline int set_items(struct frag_pickle *p, frag_pv target, const frag_pv *pairs,
			    ptrdiff_t values)
{
	size_t n = (size_t)values / 2;
	uint32_t *dict, record = UINT32_MAX;
	int rc = 0;

	if (FRAG_UNLIKELY(frag_pv_tag(target) != FRAG_PV_DICT))
		return broken(p, "items for something that is not a dict");
	if (FRAG_UNLIKELY(values & 1))
		return broken(p, "a key without a value");
	if (FRAG_UNLIKELY(!n))
		return 0;
	dict = &p->dicts[frag_pv_index(target)];
	if (DICT_KIND(*dict) == DICT_RECORD)
		record = DICT_INDEX(*dict);
	if (FRAG_LIKELY(p->fn && DICT_KIND(*dict) != DICT_NODE)) {
		rc = p->fn(p->ctx, pairs, n, &record, p->err);
		if (FRAG_LIKELY(rc == 1)) {
			*dict = DICT_OF(DICT_RECORD, record);
			return 0;
		}
		if (rc < 0)
			return rc;
		if (DICT_KIND(*dict) == DICT_RECORD)
			return broken(p, "a trace entry is given items of the wrong kind");
	}
	return node_extend(p, dict, pairs, n);
}

/* Takes the topmost mark: *from = first value above it; the value below is the container. */
static inline int take_mark(struct frag_pickle *p, bool container, frag_pv **from)
{
	if (FRAG_UNLIKELY(p->mark_top == p->marks))
		return broken(p, "no mark on the stack");
	*from = p->stack + *--p->mark_top;
	if (FRAG_UNLIKELY(container && *from <= base_of(p)))
		return broken(p, "no container below the mark");
	return 0;
}

/* ---- memo ---------------------------------------------------------------------- */

static inline int memoize(struct frag_pickle *p)
{
	if (FRAG_UNLIKELY(!has(p, 1)))
		return broken(p, "nothing to remember");
	if (FRAG_UNLIKELY(p->memo_top == p->memo_end))
		FRAG_TRY(grow_memo(p, (size_t)(p->memo_top - p->memo)));
	return pack(p, p->top[-1], p->memo_top++);
}

static int memo_put(struct frag_pickle *p, size_t index)
{
	if (!has(p, 1))
		return broken(p, "nothing to remember");
	if (index >= offset_of(p, p->in->cur))
		return broken(p, "memo index larger than is believable");
	FRAG_TRY(grow_memo(p, index));
	while ((size_t)(p->memo_top - p->memo) <= index)
		*p->memo_top++ = FRAG_PV_HOLE;
	return pack(p, p->top[-1], &p->memo[index]);
}

static inline int memo_get(struct frag_pickle *p, size_t index)
{
	if (FRAG_UNLIKELY(index >= (size_t)(p->memo_top - p->memo) ||
			  p->memo[index] == FRAG_PV_HOLE))
		return broken(p, "memo entry that was never set");
	return push(p, p->memo[index]);
}

/* ---- the machine ---------------------------------------------------------------- */

static inline uint32_t le16(const unsigned char *b)
{
	return b[0] | (uint32_t)b[1] << 8;
}

static inline uint32_t le32(const unsigned char *b)
{
	return le16(b) | le16(b + 2) << 16;
}

static inline uint64_t le64(const unsigned char *b)
{
	return le32(b) | (uint64_t)le32(b + 4) << 32;
}

static inline int new_dict(struct frag_pickle *p)
{
	if (FRAG_UNLIKELY(p->dicts_count == p->dicts_cap))
		FRAG_TRY(grow_array(p, &p->dicts, &p->dicts_cap, sizeof(*p->dicts)));
	p->dicts[p->dicts_count] = DICT_OF(DICT_EMPTY, 0);
	return push(p, value_of(FRAG_PV_DICT, p->dicts_count++));
}

static inline int push_mark(struct frag_pickle *p)
{
	if (FRAG_UNLIKELY(p->mark_top == p->marks_end))
		return broken(p, "nested too deeply");
	*p->mark_top++ = (uint32_t)(p->top - p->stack);
	return 0;
}

/* LONG4: the number may be longer than the window; nobody needs its value then. */
static int long4(struct frag_pickle *p)
{
	uint32_t n = le32(p->in->cur);

	if (n > INT32_MAX)
		return broken(p, "negative length");
	p->in->cur += 4;
	if (n <= 255) {
		p->in->cur += n;
		return push_long(p, p->in->cur - n, n);
	}
	if (p->in->cur > p->in->end)
		return truncated(p);
	p->safe = NULL; /* the window moves */
	FRAG_TRY(frag_input_skip(p->in, n, p->err));
	return push_big(p, 0, BIG_HUGE);
}

static int tuple_from_mark(struct frag_pickle *p)
{
	frag_pv *from = NULL;

	FRAG_TRY(take_mark(p, false, &from));
	return make_tuple(p, (size_t)(p->top - from));
}

static int append_one(struct frag_pickle *p)
{
	if (!has(p, 2))
		return broken(p, "stack underflow");
	p->top--;
	return append(p, p->top[-1], p->top, 1);
}

static int set_one(struct frag_pickle *p)
{
	if (!has(p, 3))
		return broken(p, "stack underflow");
	p->top -= 2;
	return set_items(p, p->top[-1], p->top, 2);
}

static int new_list_push(struct frag_pickle *p, enum frag_pv_tag tag)
{
	frag_pv v;

	FRAG_TRY(new_list(p, tag, &v));
	return push(p, v);
}

/* Everything that is not in the hot loop; op is taken already. */
__attribute__((noinline)) static int rare(struct frag_pickle *p, unsigned op)
{
	struct frag_input *in = p->in;

	switch (op) {
	case 0x80: /* PROTO */
		if (*in->cur < 2 || *in->cur > 5)
			return broken(p, "protocol that is not 2 to 5");
		in->cur++;
		return 0;
	case 0x95: /* FRAME: only a hint for buffering */
		in->cur += 8;
		return 0;
	case 'a': return append_one(p);
	case 's': return set_one(p);
	case ']': return new_list_push(p, FRAG_PV_LIST);
	case ')': return new_list_push(p, FRAG_PV_TUPLE);
	case 't': return tuple_from_mark(p);
	case 0x85: case 0x86: case 0x87: /* TUPLE1 to TUPLE3 */
		if (!has(p, (ptrdiff_t)op - 0x84))
			return broken(p, "stack underflow");
		return make_tuple(p, op - 0x84);
	case 'N': return push(p, FRAG_PV_NONE);
	case 0x88: return push(p, FRAG_PV_TRUE);
	case 0x89: return push(p, FRAG_PV_FALSE);
	case 'G': /* BINFLOAT */
		in->cur += 8;
		return push_float(p, in->cur - 8);
	case 0x8b: return long4(p);
	case 'X': /* BINUNICODE */
		in->cur += 4;
		return push_long_text(p, le32(in->cur - 4));
	case 0x8d: /* BINUNICODE8 */
		in->cur += 8;
		return push_long_text(p, le64(in->cur - 8));
	case 'q': /* BINPUT */
		in->cur++;
		return memo_put(p, in->cur[-1]);
	case 'r': /* LONG_BINPUT */
		in->cur += 4;
		return memo_put(p, le32(in->cur - 4));
	case '.':
		if (p->mark_top != p->marks || p->top - p->stack != 1)
			return broken(p, "STOP with an unfinished stack");
		p->stopped = true;
		return 0;
	default:
		return refuse(p, op);
	}
}

/* Called when the window may be too short for one item. */
__attribute__((noinline)) static int refill(struct frag_pickle *p)
{
	struct frag_input *in = p->in;

	if (in->cur > in->end)
		return truncated(p);
	FRAG_TRY(frag_input_fill(in, 8 * ITEM_MAX, p->err));
	if (in->cur == in->end)
		return truncated(p);
	p->safe = in->at_end ? in->end : in->end - ITEM_MAX;
	return 0;
}

static int run(struct frag_pickle *p)
{
	struct frag_input *in = p->in;
	frag_pv *from = NULL;
	unsigned op;
	size_t len;
	int rc = 0;

	p->safe = NULL;
	while (!rc && !p->stopped) {
		if (FRAG_UNLIKELY(in->cur >= p->safe))
			FRAG_TRY(refill(p));
		op = *in->cur++;
		switch (op) {
		case 'h': /* BINGET */
			rc = memo_get(p, *in->cur++);
			break;
		case 'j': /* LONG_BINGET */
			in->cur += 4;
			rc = memo_get(p, le32(in->cur - 4));
			break;
		case 'K': /* BININT1 */
			rc = push(p, (uint64_t)*in->cur++ << 3 | FRAG_PV_INT);
			break;
		case 'M': /* BININT2 */
			in->cur += 2;
			rc = push(p, (uint64_t)le16(in->cur - 2) << 3 | FRAG_PV_INT);
			break;
		case 'J': /* BININT */
			in->cur += 4;
			rc = push_i64(p, (int32_t)le32(in->cur - 4));
			break;
		case 0x8a: /* LONG1 */
			len = *in->cur++;
			in->cur += len;
			rc = push_long(p, in->cur - len, len);
			break;
		case 0x8c: /* SHORT_BINUNICODE */
			len = *in->cur++;
			in->cur += len;
			rc = push_text(p, in->cur - len, len);
			break;
		case 0x94: /* MEMOIZE */
			rc = memoize(p);
			break;
		case '}':
			rc = new_dict(p);
			break;
		case '(':
			rc = push_mark(p);
			break;
		case 'u': /* SETITEMS */
			rc = take_mark(p, true, &from);
			if (FRAG_LIKELY(!rc)) {
				rc = set_items(p, from[-1], from, p->top - from);
				p->top = from;
			}
			break;
		case 'e': /* APPENDS */
			rc = take_mark(p, true, &from);
			if (!rc) {
				rc = append(p, from[-1], from, (size_t)(p->top - from));
				p->top = from;
			}
			break;
		default:
			rc = rare(p, op);
		}
	}
	return rc;
}

/* ---- life ------------------------------------------------------------------------ */

static int alloc_parts(struct frag_pickle *p, const char *const *words, size_t words_count)
{
	uint32_t index;

	p->marks = frag_host_alloc(MARKS_MAX * sizeof(*p->marks));
	if (!p->marks)
		return frag_fail_nomem(p->err, "pickle");
	p->mark_top = p->marks;
	p->marks_end = p->marks + MARKS_MAX;
	FRAG_TRY(frag_strings_create(&p->strings, p->err));
	for (size_t i = 0; i < words_count; i++) {
		FRAG_TRY(frag_strings_intern(p->strings, words[i], strlen(words[i]), &index,
					     p->err));
		FRAG_ASSERT(index == i + 1);
	}
	return 0;
}

int frag_pickle_create(const char *const *words, size_t words_count, frag_record_fn fn, void *ctx,
		       struct frag_pickle **out, struct frag_err *err)
{
	struct frag_pickle *p = frag_host_calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return frag_fail_nomem(err, "pickle");
	p->fn = fn;
	p->ctx = ctx;
	p->err = err;
	rc = alloc_parts(p, words, words_count);
	p->err = NULL;
	if (rc)
		frag_pickle_destroy(p);
	else
		*out = p;
	return rc;
}

static void drop_machine(struct frag_pickle *p)
{
	frag_host_free(p->stack);
	frag_host_free(p->memo);
	frag_host_free(p->marks);
	p->stack = p->top = p->stack_end = NULL;
	p->memo = p->memo_top = p->memo_end = NULL;
	p->marks = p->mark_top = p->marks_end = NULL;
}

void frag_pickle_destroy(struct frag_pickle *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->lists_count; i++)
		frag_host_free(p->lists[i].items);
	for (size_t i = 0; i < p->nodes_count; i++)
		frag_host_free(p->nodes[i].pairs);
	frag_host_free(p->lists);
	frag_host_free(p->nodes);
	frag_host_free(p->dicts);
	frag_host_free(p->bigs);
	frag_host_free(p->floats);
	frag_strings_destroy(p->strings);
	drop_machine(p);
	frag_host_free(p);
}

int frag_pickle_read(struct frag_pickle *p, struct frag_input *in, frag_pv *root,
		     struct frag_err *err)
{
	int rc;

	FRAG_ASSERT(!p->in && p->marks);
	p->in = in;
	p->err = err;
	rc = run(p);
	if (!rc) {
		*root = p->top[-1];
		rc = frag_input_fill(in, 1, err);
		if (!rc && frag_input_left(in))
			rc = frag_fail_at(err, FRAG_EINPUT, frag_input_offset(in),
					  "'%s' goes on behind the end of its pickle at byte %llu",
					  frag_input_name(in),
					  (unsigned long long)frag_input_offset(in));
	}
	drop_machine(p);
	p->in = NULL;
	p->err = NULL;
	return rc;
}

/* ---- what was read ------------------------------------------------------------------ */

struct frag_pickle_list *frag_pickle_list(struct frag_pickle *p, frag_pv v)
{
	return frag_pv_tag(v) == FRAG_PV_LIST ? &p->lists[frag_pv_index(v)] : NULL;
}

struct frag_pickle_list *frag_pickle_tuple(struct frag_pickle *p, frag_pv v)
{
	return frag_pv_tag(v) == FRAG_PV_TUPLE ? &p->lists[frag_pv_index(v)] : NULL;
}

uint32_t frag_pickle_lists_count(const struct frag_pickle *p)
{
	return (uint32_t)p->lists_count;
}

const struct frag_pickle_node *frag_pickle_node(struct frag_pickle *p, frag_pv v)
{
	static const struct frag_pickle_node empty;
	uint32_t dict;

	if (frag_pv_tag(v) != FRAG_PV_DICT)
		return NULL;
	dict = p->dicts[frag_pv_index(v)];
	if (DICT_KIND(dict) == DICT_EMPTY)
		return &empty;
	return DICT_KIND(dict) == DICT_NODE ? &p->nodes[DICT_INDEX(dict)] : NULL;
}

uint32_t frag_pickle_note(struct frag_pickle *p, frag_pv v, uint32_t note)
{
	uint32_t dict = frag_pv_tag(v) == FRAG_PV_DICT ? p->dicts[frag_pv_index(v)] : 0;
	uint32_t before = 0;

	if (DICT_KIND(dict) == DICT_NODE) {
		before = p->nodes[DICT_INDEX(dict)].note;
		p->nodes[DICT_INDEX(dict)].note = note;
	}
	return before;
}

uint32_t frag_pickle_record(const struct frag_pickle *p, frag_pv v)
{
	uint32_t dict;

	if (frag_pv_tag(v) != FRAG_PV_DICT)
		return UINT32_MAX;
	dict = p->dicts[frag_pv_index(v)];
	return DICT_KIND(dict) == DICT_RECORD ? DICT_INDEX(dict) : UINT32_MAX;
}

frag_pv frag_node_get(const struct frag_pickle_node *node, uint32_t key)
{
	for (size_t i = node->count; i-- > 0;)
		if (node->pairs[2 * i] == value_of(FRAG_PV_STR, key))
			return node->pairs[2 * i + 1];
	return FRAG_PV_HOLE;
}

bool frag_pickle_i64(const struct frag_pickle *p, frag_pv v, int64_t *out)
{
	const struct big *b;

	if (frag_pv_tag(v) == FRAG_PV_INT) {
		*out = (int64_t)v >> 3;
		return true;
	}
	if (v == FRAG_PV_TRUE || v == FRAG_PV_FALSE) {
		*out = v == FRAG_PV_TRUE;
		return true;
	}
	if (frag_pv_tag(v) != FRAG_PV_BIG)
		return false;
	b = &p->bigs[frag_pv_index(v)];
	if (b->kind == BIG_HUGE || (b->kind == BIG_POSITIVE && b->value > INT64_MAX))
		return false;
	*out = (int64_t)b->value;
	return true;
}

bool frag_pickle_u64(const struct frag_pickle *p, frag_pv v, uint64_t *out)
{
	int64_t i;

	if (frag_pv_tag(v) == FRAG_PV_BIG && p->bigs[frag_pv_index(v)].kind == BIG_POSITIVE) {
		*out = p->bigs[frag_pv_index(v)].value;
		return true;
	}
	if (!frag_pickle_i64(p, v, &i) || i < 0)
		return false;
	*out = (uint64_t)i;
	return true;
}

bool frag_pickle_f64(const struct frag_pickle *p, frag_pv v, double *out)
{
	int64_t i;

	if (frag_pv_tag(v) == FRAG_PV_FLOAT) {
		*out = p->floats[frag_pv_index(v)];
		return true;
	}
	if (!frag_pickle_i64(p, v, &i))
		return false;
	*out = (double)i;
	return true;
}

const char *frag_pickle_text(const struct frag_pickle *p, frag_pv v, size_t *len)
{
	if (frag_pv_tag(v) != FRAG_PV_STR)
		return NULL;
	if (len)
		*len = frag_strings_len(p->strings, frag_pv_index(v));
	return frag_strings_get(p->strings, frag_pv_index(v));
}
