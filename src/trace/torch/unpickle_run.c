/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcodes. The machine never recurses and reads each byte once.
 *
 * The loop in `run` handles the dozen opcodes that make up 99 % of a snapshot; `rare` handles the
 * others. It decodes without checking for the end of the window, which it checks once per opcode:
 * enough readable bytes for one item follow the window (input.h). Position and stack top are local
 * variables: in memory, each opcode would wait for the store of the previous one.
 */
#include "unpickle_internal.h"

#define ITEM_MAX 512u /* no hot opcode takes more bytes than this */
#define STOPPED 1
#define TAKEN 2

static inline bool has(const struct frag_pickle *p, ptrdiff_t n)
{
	return p->top - p->base >= n;
}

/* ---- marks and memo ------------------------------------------------------------ */

static int push_mark(struct frag_pickle *p)
{
	if (p->mark_top == p->marks_end)
		return frag_pickle_broken(p, "nested too deeply");
	*p->mark_top++ = (uint32_t)(p->top - p->stack);
	p->base = p->top;
	return 0;
}

/* Takes the topmost mark: *from = first value above it; the value below is the container. */
static inline int take_mark(struct frag_pickle *p, bool container, frag_pv **from)
{
	if (FRAG_UNLIKELY(p->mark_top == p->marks))
		return frag_pickle_broken(p, "no mark on the stack");
	*from = p->base;
	p->mark_top--;
	p->base = p->stack + (p->mark_top == p->marks ? 0 : p->mark_top[-1]);
	if (FRAG_UNLIKELY(container && *from <= p->base))
		return frag_pickle_broken(p, "no container below the mark");
	return 0;
}

/* Room for memo entry `index`. */
static int grow_memo(struct frag_pickle *p, size_t index)
{
	size_t n = (size_t)(p->memo_top - p->memo), cap = (size_t)(p->memo_end - p->memo);
	uint32_t *memo;

	if (index < cap)
		return 0;
	FRAG_TRY(frag_pickle_believe(p, index, 3));
	cap = FRAG_MAX(cap ? cap * 2 : 4096, index + 1);
	memo = frag_host_realloc(p->memo, cap, sizeof(*memo));
	FRAG_CHECK_ALLOC(memo, "pickle memo", p->err);
	p->memo = memo;
	p->memo_top = memo + n;
	p->memo_end = memo + cap;
	return 0;
}

static int memoize(struct frag_pickle *p)
{
	if (!has(p, 1))
		return frag_pickle_broken(p, "nothing to remember");
	if (p->memo_top == p->memo_end)
		FRAG_TRY(grow_memo(p, (size_t)(p->memo_top - p->memo)));
	return frag_pickle_pack(p, p->top[-1], p->memo_top++);
}

static int memo_put(struct frag_pickle *p, size_t index)
{
	if (!has(p, 1))
		return frag_pickle_broken(p, "nothing to remember");
	p->templates.off = true; /* they count on a memo that is only appended to */
	if (index >= frag_input_offset(p->in))
		return frag_pickle_broken(p, "implausibly large memo index");
	FRAG_TRY(grow_memo(p, index));
	while ((size_t)(p->memo_top - p->memo) <= index)
		*p->memo_top++ = FRAG_PV_HOLE;
	return frag_pickle_pack(p, p->top[-1], &p->memo[index]);
}

/* ---- rare opcodes ------------------------------------------------------------------ */

/* LONG4: a number longer than the window is kept without its value, which is never used. */
static int long4(struct frag_pickle *p)
{
	uint32_t n = frag_le32(p->in->cur);
	uint64_t index = 0;

	if (n > INT32_MAX)
		return frag_pickle_broken(p, "negative length");
	p->in->cur += 4;
	if (n <= 255) {
		p->in->cur += n;
		return frag_pickle_push_long(p, p->in->cur - n, n);
	}
	if (p->in->cur > p->in->end)
		return frag_pickle_truncated(p);
	p->safe = NULL; /* the window moves */
	p->templates.dict_at = NULL;
	FRAG_TRY(frag_input_skip(p->in, n, p->err));
	FRAG_TRY(frag_pickle_add_big(p, 0, FRAG_BIG_HUGE, &index));
	return frag_pickle_push(p, frag_pv_of(FRAG_PV_BIG, index));
}

static int tuple_from_mark(struct frag_pickle *p)
{
	frag_pv *from = NULL;

	FRAG_TRY(take_mark(p, false, &from));
	return frag_pickle_make_tuple(p, (size_t)(p->top - from));
}

static int append_one(struct frag_pickle *p)
{
	if (!has(p, 2))
		return frag_pickle_broken(p, "stack underflow");
	p->top--;
	return frag_pickle_append(p, p->top[-1], p->top, 1);
}

static int append_many(struct frag_pickle *p)
{
	frag_pv *from = NULL;

	FRAG_TRY(take_mark(p, true, &from));
	FRAG_TRY(frag_pickle_append(p, from[-1], from, (size_t)(p->top - from)));
	p->top = from;
	return 0;
}

static int set_one(struct frag_pickle *p)
{
	if (!has(p, 3))
		return frag_pickle_broken(p, "stack underflow");
	p->top -= 2;
	return frag_pickle_set_items(p, p->top[-1], p->top, 2);
}

static int set_many(struct frag_pickle *p)
{
	frag_pv *from = NULL;

	FRAG_TRY(take_mark(p, true, &from));
	FRAG_TRY(frag_pickle_set_items(p, from[-1], from, p->top - from));
	p->top = from;
	if (p->templates.dict_at && from[-1] == p->templates.dict &&
	    FRAG_DICT_KIND(p->dicts[frag_pv_index(from[-1])]) == FRAG_DICT_RECORD)
		frag_template_learn(p);
	return 0;
}

static int push_list(struct frag_pickle *p, enum frag_pv_tag tag)
{
	frag_pv v = 0;

	FRAG_TRY(frag_pickle_new_list(p, tag, &v));
	return frag_pickle_push(p, v);
}

static int push_dict(struct frag_pickle *p)
{
	if (p->dicts_count == p->dicts_cap)
		FRAG_TRY(frag_pickle_grow(p, &p->dicts, &p->dicts_cap, sizeof(*p->dicts), 4));
	p->dicts[p->dicts_count] = FRAG_DICT_OF(FRAG_DICT_EMPTY, 0);
	return frag_pickle_push(p, frag_pv_of(FRAG_PV_DICT, p->dicts_count++));
}

static int protocol(struct frag_pickle *p)
{
	unsigned version = *p->in->cur++;

	return version < 2 || version > 5
		       ? frag_pickle_broken(p, "unsupported protocol (2 to 5 are read)")
		       : 0;
}

static int tuple_of(struct frag_pickle *p, ptrdiff_t n)
{
	return has(p, n) ? frag_pickle_make_tuple(p, (size_t)n)
			 : frag_pickle_broken(p, "stack underflow");
}

static int stop(struct frag_pickle *p)
{
	if (p->mark_top != p->marks || p->top - p->stack != 1)
		return frag_pickle_broken(p, "STOP with an unfinished stack");
	return STOPPED;
}

/* Takes n bytes of argument. */
static inline const unsigned char *take(struct frag_pickle *p, size_t n)
{
	p->in->cur += n;
	return p->in->cur - n;
}

/* Constants, and new lists, tuples and dicts. */
static int constant_or_container(struct frag_pickle *p, unsigned op)
{
	switch (op) {
	case ']':
		return push_list(p, FRAG_PV_LIST);
	case ')':
		return push_list(p, FRAG_PV_TUPLE);
	case '}':
		return push_dict(p);
	case 't':
		return tuple_from_mark(p);
	case 0x85:
	case 0x86:
	case 0x87:
		return tuple_of(p, op - 0x84);
	case 'N':
		return frag_pickle_push(p, FRAG_PV_NONE);
	case 0x88:
		return frag_pickle_push(p, FRAG_PV_TRUE);
	case 0x89:
		return frag_pickle_push(p, FRAG_PV_FALSE);
	default:
		return frag_pickle_refuse(p, op);
	}
}

/* All other opcodes; op is already consumed. */
static int rare(struct frag_pickle *p, unsigned op)
{
	size_t n;

	switch (op) {
	case 0x80:
		return protocol(p);
	case 0x95:
		take(p, 8);
		return 0; /* FRAME: only a hint for buffering */
	case 'a':
		return append_one(p);
	case 'e':
		return append_many(p);
	case 's':
		return set_one(p);
	case 'u':
		return set_many(p);
	case '(':
		return push_mark(p);
	case 'G':
		return frag_pickle_push_float(p, take(p, 8));
	case 0x8a: /* LONG1 */
		n = *take(p, 1);
		return frag_pickle_push_long(p, take(p, n), n);
	case 0x8b:
		return long4(p);
	case 0x8c: /* SHORT_BINUNICODE */
		n = *take(p, 1);
		return frag_pickle_push_text(p, take(p, n), n);
	case 'X':
		return frag_pickle_push_long_text(p, frag_le32(take(p, 4)));
	case 0x8d:
		return frag_pickle_push_long_text(p, frag_le64(take(p, 8)));
	case 0x94:
		return memoize(p);
	case 'q':
		return memo_put(p, *take(p, 1));
	case 'r':
		return memo_put(p, frag_le32(take(p, 4)));
	case '.':
		return stop(p);
	default:
		return constant_or_container(p, op);
	}
}

/* ---- the hot loop -------------------------------------------------------------------- */

/* Called when the window may be too short for one item, or the stack for one value. */
static int refill(struct frag_pickle *p)
{
	struct frag_input *in = p->in;

	if (in->cur > in->end)
		return frag_pickle_truncated(p);
	if (p->stack_end - p->top < FRAG_PICKLE_STACK_ROOM)
		FRAG_TRY(frag_pickle_grow_stack(p));
	FRAG_TRY(frag_input_fill(in, 8 * ITEM_MAX, p->err));
	if (in->cur == in->end)
		return frag_pickle_truncated(p);
	p->safe = in->at_end ? in->end : in->end - ITEM_MAX;
	p->templates.dict_at = NULL;
	return 0;
}

/* What the memo holds at `index`, HOLE if nothing. */
static inline frag_pv remembered(const struct frag_pickle *p, size_t index)
{
	return FRAG_LIKELY(index < (size_t)(p->memo_top - p->memo)) ? p->memo[index] : FRAG_PV_HOLE;
}

/* A sequence of LONG_BINGETs, such as a stack of frames; the first 'j' is already consumed. False:
 * the memo entry was never set. */
static inline __attribute__((always_inline)) bool
take_references(const struct frag_pickle *p, const unsigned char **cur, frag_pv **top)
{
	--*cur;
	do {
		**top = remembered(p, frag_le32(*cur + 1));
		*cur += 5;
		if (FRAG_UNLIKELY(*(*top)++ == FRAG_PV_HOLE))
			return false;
	} while (**cur == 'j' && *cur < p->safe && *top <= p->stack_end - FRAG_PICKLE_STACK_ROOM);
	return true;
}

/* Tries to read by template the dict whose '}' is consumed and those after: TAKEN, 0, an error. */
static inline int try_templates(struct frag_pickle *p, const unsigned char **cur, frag_pv **top)
{
	const unsigned char *at = *cur - 1;
	int rc;

	if (p->templates.off)
		return 0;
	rc = frag_template_take(p, &at, top);
	if (FRAG_LIKELY(rc > 0)) {
		*cur = at;
		return TAKEN;
	}
	p->templates.dict_at = at;
	p->templates.dict = frag_pv_of(FRAG_PV_DICT, p->dicts_count);
	p->templates.memo_at = (size_t)(p->memo_top - p->memo);
	return rc;
}

/* Opcodes that nearly always come in pairs (key and number, object and MEMOIZE) are handled
 * together: there is room for FRAG_PICKLE_STACK_ROOM values, and ITEM_MAX bytes are readable. */
static inline __attribute__((always_inline)) void number_after(const unsigned char **cur,
							       frag_pv **top)
{
	if (frag_pickle_is_number(**cur) && frag_pickle_number(**cur, *cur + 1, cur, *top))
		++*top;
}

static int __attribute__((cold)) hole(struct frag_pickle *p, const unsigned char *cur)
{
	p->in->cur = cur;
	return frag_pickle_broken(p, "memo entry that was never set");
}

static int refill_at(struct frag_pickle *p, const unsigned char **cur, frag_pv **top)
{
	p->in->cur = *cur;
	p->top = *top;
	FRAG_TRY(refill(p));
	*cur = p->in->cur;
	*top = p->top;
	return 0;
}

int frag_pickle_run(struct frag_pickle *p)
{
	struct frag_input *in = p->in;
	const unsigned char *cur = in->cur;
	frag_pv *top = p->top;
	unsigned op;
	int rc = 0;

	p->safe = NULL;
	p->templates.off = !p->ops;
	while (rc >= 0 && rc != STOPPED) {
		if (FRAG_UNLIKELY(cur >= p->safe || top > p->stack_end - FRAG_PICKLE_STACK_ROOM))
			FRAG_TRY(refill_at(p, &cur, &top));
		op = *cur++;
		switch (op) {
		case 'j': /* LONG_BINGET */
			if (FRAG_UNLIKELY(!take_references(p, &cur, &top)))
				return hole(p, cur);
			number_after(&cur, &top);
			break;
		case 'h': /* BINGET */
			*top = remembered(p, *cur++);
			if (FRAG_UNLIKELY(*top++ == FRAG_PV_HOLE))
				return hole(p, cur);
			number_after(&cur, &top);
			break;
		case 'K':
		case 'M':
		case 'J':
		case 0x8a:
			if (FRAG_UNLIKELY(!frag_pickle_number(op, cur, &cur, top)))
				goto other;
			top++;
			break;
		case '}': /* EMPTY_DICT */
			rc = try_templates(p, &cur, &top);
			if (FRAG_UNLIKELY(!rc))
				goto other;
			break;
		other:
		default:
			in->cur = cur;
			p->top = top;
			rc = op == 'u' ? set_many(p) : rare(p, op);
			cur = in->cur;
			top = p->top;
		}
	}
	return FRAG_MIN(rc, 0);
}
