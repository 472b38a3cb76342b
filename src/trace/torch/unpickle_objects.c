/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the pickle machine: errors, numbers, texts, lists, tuples, dicts. */
#include "unpickle_internal.h"

#include <string.h>

/* ---- errors -------------------------------------------------------------- */

static uint64_t offset_of(const struct frag_pickle *p, const unsigned char *at)
{
	return p->in->end_offset - (uint64_t)(p->in->end - at);
}

__attribute__((cold)) int frag_pickle_truncated(struct frag_pickle *p)
{
	uint64_t at = p->in->end_offset;

	return frag_fail_at(p->err, FRAG_EINPUT, at,
			    "'%s' is truncated: the pickle continues after byte %llu",
			    frag_input_name(p->in), (unsigned long long)at);
}

__attribute__((cold)) int frag_pickle_broken(struct frag_pickle *p, const char *what)
{
	uint64_t at = offset_of(p, p->in->cur);

	if (p->in->cur > p->in->end) /* it decoded bytes after the end */
		return frag_pickle_truncated(p);
	return frag_fail_at(p->err, FRAG_EINPUT, at,
			    "'%s' is a malformed pickle: %s before byte %llu",
			    frag_input_name(p->in), what, (unsigned long long)at);
}

__attribute__((cold)) int frag_pickle_refuse(struct frag_pickle *p, unsigned op)
{
	static const struct {
		unsigned char op;
		const char *name;
	} known[] = {
		{ 'c', "GLOBAL" },    { 0x93, "STACK_GLOBAL" }, { 'R', "REDUCE" },
		{ 'b', "BUILD" },     { 'i', "INST" },		{ 'o', "OBJ" },
		{ 0x81, "NEWOBJ" },   { 0x92, "NEWOBJ_EX" },	{ 'P', "PERSID" },
		{ 'Q', "BINPERSID" }, { 0x82, "EXT1" },		{ 0x83, "EXT2" },
		{ 0x84, "EXT4" },     { 0x97, "NEXT_BUFFER" },	{ 0x96, "BYTEARRAY8" },
	};
	uint64_t at = offset_of(p, p->in->cur - 1);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(known); i++)
		if (known[i].op == op)
			return frag_fail_at(
				p->err, FRAG_EINPUT, at,
				"'%s' holds the pickle opcode %s at byte %llu; a snapshot "
				"is plain data, and only that is read",
				frag_input_name(p->in), known[i].name, (unsigned long long)at);
	return frag_fail_at(p->err, FRAG_EINPUT, at,
			    "'%s' holds the unknown pickle opcode 0x%02x at byte %llu",
			    frag_input_name(p->in), op, (unsigned long long)at);
}

/* ---- growing arrays -------------------------------------------------------- */

int frag_pickle_believe(struct frag_pickle *p, size_t count, unsigned bytes)
{
	if (count <= 65536 || count <= frag_input_offset(p->in) / bytes)
		return 0;
	return frag_pickle_broken(p, "implausibly many objects");
}

int frag_pickle_grow(struct frag_pickle *p, void *array_ptr, size_t *cap, size_t unit,
		     unsigned bytes)
{
	size_t want = *cap ? *cap * 2 : 256;
	void *old, *new;

	FRAG_TRY(frag_pickle_believe(p, *cap, bytes));
	if (want > FRAG_PICKLE_OBJECTS_MAX)
		return frag_pickle_broken(p, "implausibly many objects");
	memcpy(&old, array_ptr, sizeof(old));
	new = frag_host_realloc(old, want, unit);
	FRAG_CHECK_ALLOC(new, "pickle", p->err);
	memcpy(array_ptr, &new, sizeof(new));
	*cap = want;
	return 0;
}

int frag_pickle_grow_stack(struct frag_pickle *p)
{
	size_t n = (size_t)(p->top - p->stack), cap = FRAG_MAX(n * 2, 4096u);
	frag_pv *stack;

	if (n >= FRAG_PICKLE_STACK_MAX)
		return frag_pickle_broken(p, "stack too deep");
	FRAG_TRY(frag_pickle_believe(p, n, 8));
	stack = frag_host_realloc(p->stack, cap, sizeof(*stack));
	FRAG_CHECK_ALLOC(stack, "pickle stack", p->err);
	p->stack = stack;
	p->top = stack + n;
	p->base = stack + (p->mark_top == p->marks ? 0 : p->mark_top[-1]);
	p->stack_end = stack + cap;
	return 0;
}

int frag_pickle_add_big(struct frag_pickle *p, uint64_t value, enum frag_big_kind kind,
			uint64_t *index)
{
	if (p->bigs_count == p->bigs_cap)
		FRAG_TRY(frag_pickle_grow(p, &p->bigs, &p->bigs_cap, sizeof(*p->bigs), 8));
	p->bigs[p->bigs_count].value = value;
	p->bigs[p->bigs_count].kind = kind;
	*index = p->bigs_count++;
	return 0;
}

/* ---- scalars ---------------------------------------------------------------- */

static int push_big(struct frag_pickle *p, uint64_t value, enum frag_big_kind kind)
{
	uint64_t index = 0;

	FRAG_TRY(frag_pickle_add_big(p, value, kind, &index));
	return frag_pickle_push(p, frag_pv_of(FRAG_PV_BIG, index));
}

static int push_i64(struct frag_pickle *p, int64_t v)
{
	if (FRAG_LIKELY(v >= -((int64_t)1 << 60) && v < (int64_t)1 << 60))
		return frag_pickle_push(p, (uint64_t)v << 3 | FRAG_PV_INT);
	return push_big(p, (uint64_t)v, v < 0 ? FRAG_BIG_NEGATIVE : FRAG_BIG_POSITIVE);
}

int frag_pickle_push_long(struct frag_pickle *p, const unsigned char *b, size_t n)
{
	uint64_t v;

	if (FRAG_LIKELY(n <= 8)) {
		if (!n)
			return frag_pickle_push(p, FRAG_PV_INT);
		memcpy(&v, b, 8);
		return push_i64(p, (int64_t)(v << (64 - 8 * n)) >> (64 - 8 * n));
	}
	memcpy(&v, b, 8);
	if (n == 9 && !b[8])
		return v >> 60 ? push_big(p, v, FRAG_BIG_POSITIVE) : push_i64(p, (int64_t)v);
	return push_big(p, 0, FRAG_BIG_HUGE);
}

int frag_pickle_push_float(struct frag_pickle *p, const unsigned char *b)
{
	uint64_t bits;

	memcpy(&bits, b, 8);
	return push_big(p, __builtin_bswap64(bits), FRAG_BIG_FLOAT);
}

int frag_pickle_push_text(struct frag_pickle *p, const unsigned char *b, size_t n)
{
	/* "N/A" comes once per event */
	if (n != p->text_len || memcmp(b, p->text, n)) {
		FRAG_TRY(frag_strings_intern(p->strings, (const char *)b, n, &p->text_index,
					     p->err));
		p->text_len = n;
		p->text = frag_strings_get(p->strings, p->text_index);
	}
	return frag_pickle_push(p, frag_pv_of(FRAG_PV_STR, p->text_index));
}

/* BINUNICODE and BINUNICODE8: the text may cross the window. */
int frag_pickle_push_long_text(struct frag_pickle *p, uint64_t n)
{
	size_t have = 0, cap = 0;
	FRAG_AUTO_FREE unsigned char *text = NULL;

	if (p->in->cur > p->in->end)
		return frag_pickle_truncated(p);
	p->safe = NULL; /* the window moves */
	p->templates.dict_at = NULL;
	if (n > FRAG_PICKLE_TEXT_MAX)
		return frag_pickle_broken(p, "implausibly long string");
	if (n <= FRAG_INPUT_PEEK_MAX - 8) {
		FRAG_TRY(frag_input_ensure(p->in, (size_t)n, p->err));
		if (frag_input_left(p->in) < n)
			return frag_pickle_truncated(p);
		p->in->cur += n;
		return frag_pickle_push_text(p, p->in->cur - n, (size_t)n);
	}
	/* grows with the bytes read, not with the declared length */
	while (have < n) {
		if (have == cap) {
			unsigned char *more;

			cap = (size_t)FRAG_MIN((uint64_t)FRAG_MAX(cap * 2, FRAG_INPUT_PEEK_MAX), n);
			more = frag_host_realloc(text, cap, 1);
			FRAG_CHECK_ALLOC(more, "pickle string", p->err);
			text = more;
		}
		FRAG_TRY(frag_input_read(p->in, text + have, cap - have, p->err));
		have = cap;
	}
	return frag_pickle_push_text(p, text, (size_t)n);
}

/* ---- containers --------------------------------------------------------------- */

int frag_pickle_new_list(struct frag_pickle *p, enum frag_pv_tag tag, frag_pv *out)
{
	if (p->lists_count == p->lists_cap)
		FRAG_TRY(frag_pickle_grow(p, &p->lists, &p->lists_cap, sizeof(*p->lists), 6));
	p->lists[p->lists_count] = (struct frag_pickle_list){ 0 };
	*out = frag_pv_of(tag, p->lists_count++);
	return 0;
}

/* Room for n more items. */
static int grow_items(struct frag_pickle *p, struct frag_pickle_list *l, size_t n)
{
	size_t cap = FRAG_MAX(l->count + n, (size_t)l->cap * 2);
	uint32_t *more;

	if (cap > UINT32_MAX)
		return frag_pickle_broken(p, "implausibly long list");
	more = frag_host_realloc(l->items, cap, sizeof(*more));
	FRAG_CHECK_ALLOC(more, "pickle list", p->err);
	l->items = more;
	l->cap = (uint32_t)cap;
	return 0;
}

static int list_extend(struct frag_pickle *p, struct frag_pickle_list *l, const frag_pv *items,
		       size_t n)
{
	if (l->count + n > l->cap)
		FRAG_TRY(grow_items(p, l, n));
	for (size_t i = 0; i < n; i++)
		FRAG_TRY(frag_pickle_pack(p, items[i], &l->items[l->count + i]));
	l->count += (uint32_t)n;
	return 0;
}

int frag_pickle_append(struct frag_pickle *p, frag_pv list, const frag_pv *items, size_t n)
{
	if (frag_pv_tag(list) != FRAG_PV_LIST)
		return frag_pickle_broken(p, "items for something that is not a list");
	return list_extend(p, &p->lists[frag_pv_index(list)], items, n);
}

/* Equal pairs of integers in a row (pool ids, one per entry in new versions) share an object. */
int frag_pickle_make_tuple(struct frag_pickle *p, size_t n)
{
	frag_pv *items = p->top - n, v;

	if (n == 2 && p->pair_value && items[0] == p->pair[0] && items[1] == p->pair[1]) {
		v = p->pair_value;
	} else {
		FRAG_TRY(frag_pickle_new_list(p, FRAG_PV_TUPLE, &v));
		FRAG_TRY(list_extend(p, &p->lists[frag_pv_index(v)], items, n));
		if (n == 2 && frag_pv_tag(items[0]) == FRAG_PV_INT &&
		    frag_pv_tag(items[1]) == FRAG_PV_INT) {
			p->pair_value = v;
			p->pair[0] = items[0];
			p->pair[1] = items[1];
		}
	}
	p->top = items;
	return frag_pickle_push(p, v);
}

static int node_extend(struct frag_pickle *p, uint32_t *dict, const frag_pv *pairs, size_t n)
{
	struct frag_pickle_node *node;

	if (FRAG_DICT_KIND(*dict) == FRAG_DICT_EMPTY) {
		if (p->nodes_count == p->nodes_cap)
			FRAG_TRY(frag_pickle_grow(p, &p->nodes, &p->nodes_cap, sizeof(*p->nodes),
						  12));
		p->nodes[p->nodes_count] = (struct frag_pickle_node){ 0 };
		*dict = FRAG_DICT_OF(FRAG_DICT_NODE, (uint32_t)p->nodes_count++);
	}
	node = &p->nodes[FRAG_DICT_INDEX(*dict)];
	if (n > node->cap - node->count) {
		size_t cap = FRAG_MAX(node->count + n, (size_t)node->cap * 2);
		frag_pv *more;

		if (cap > UINT32_MAX / 2)
			return frag_pickle_broken(p, "implausibly large dict");
		more = frag_host_realloc(node->pairs, cap, 2 * sizeof(*more));
		FRAG_CHECK_ALLOC(more, "pickle dict", p->err);
		node->pairs = more;
		node->cap = (uint32_t)cap;
	}
	memcpy(node->pairs + 2 * (size_t)node->count, pairs, n * 2 * sizeof(*pairs));
	node->count += (uint32_t)n;
	return 0;
}

int frag_pickle_set_items(struct frag_pickle *p, frag_pv target, const frag_pv *pairs,
			  ptrdiff_t values)
{
	size_t n = (size_t)values / 2;
	uint32_t *dict, record;
	int rc = 0;

	if (FRAG_UNLIKELY(frag_pv_tag(target) != FRAG_PV_DICT))
		return frag_pickle_broken(p, "items for something that is not a dict");
	if (FRAG_UNLIKELY(values & 1))
		return frag_pickle_broken(p, "a key without a value");
	if (FRAG_UNLIKELY(!n))
		return 0;
	dict = &p->dicts[frag_pv_index(target)];
	if (FRAG_DICT_KIND(*dict) == FRAG_DICT_RECORD)
		return frag_pickle_broken(p, "a trace entry is given more items");
	if (FRAG_LIKELY(p->ops && FRAG_DICT_KIND(*dict) == FRAG_DICT_EMPTY)) {
		rc = p->ops->take(p->ctx, pairs, n, &record);
		if (FRAG_LIKELY(rc == 1))
			*dict = FRAG_DICT_OF(FRAG_DICT_RECORD, record);
		if (rc)
			return FRAG_MIN(rc, 0);
	}
	return node_extend(p, dict, pairs, n);
}

struct frag_pickle_list *frag_pickle_list(struct frag_pickle *p, frag_pv v)
{
	return frag_pv_tag(v) == FRAG_PV_LIST ? &p->lists[frag_pv_index(v)] : NULL;
}

const struct frag_pickle_node *frag_pickle_node(struct frag_pickle *p, frag_pv v)
{
	static const struct frag_pickle_node empty;
	uint32_t dict;

	if (frag_pv_tag(v) != FRAG_PV_DICT)
		return NULL;
	dict = p->dicts[frag_pv_index(v)];
	if (FRAG_DICT_KIND(dict) == FRAG_DICT_EMPTY)
		return &empty;
	return FRAG_DICT_KIND(dict) == FRAG_DICT_NODE ? &p->nodes[FRAG_DICT_INDEX(dict)] : NULL;
}
