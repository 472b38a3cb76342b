/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tlsf: two-level segregated fit, constant time, good fit.
 *
 * Rules (mattconte/tlsf, tlsf.c, version 3.1), with the unit
 * `align` (512 B here instead of 8: block headers are not in device memory) and
 * 32 lists per power of two:
 *  - List of a size: below 32 units list (0, size / unit). Else with f =
 *    floor(log2 size): list (f - log2(32 units) + 1, next five bits of size).
 *  - A request is rounded up to the unit. To search, it is rounded up further to
 *    the next list boundary, so that every block of the list found fits:
 *    up to 1/32 is looked over, and a fitting block in the request's own list is not
 *    seen. The lists are tried upwards by bit search; the head is taken.
 *  - Split if what is left is one unit or more: the low part goes on, the rest
 *    becomes the head of its list.
 *  - Free: merges with the neighbours behind and before at once, becomes the head of
 *    its list (so the block freed last is used first).
 *  - Growth: the source leaves adding pools to the program. Here: a pool of
 *    max(request rounded up as for a search, pool), in whole 2 MiB, so that the
 *    next request of this size finds it again; if that is refused, the request in
 *    whole 2 MiB. The request is cut from it without a search. Pools do not merge.
 *  - Wholly free pools are given back on trim, and, after waiting for pending frees and
 *    looking again, before the policy says out of memory.
 *
 * Structure: common/segheap for pools and blocks; the lists run through the links of
 * the blocks; a bit per list and a bit per first level that has one.
 * Invariants: every free block is in the list of its size; bits agree with the lists;
 * no two neighbours are free.
 */
#include "segheap.h"

#define SECOND_LOG2 5u
#define SECOND (1u << SECOND_LOG2)
#define FIRST 56u /* first levels: sizes up to 2^56 and more */

struct params {
	uint64_t pool_bytes, align;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("pool", struct params, pool_bytes, 64 * FRAG_MIB, 4096, 1ull << 50,
		       "smallest pool taken from the device, bytes", .tune = "2M,20M,64M,256M,1G"),
	FRAG_OPT_BYTES("align", struct params, align, 512, 8, 2 * FRAG_MIB,
		       "unit of sizes and smallest block, bytes, a power of two",
		       .unit = FRAG_OPT_POW2),
	FRAG_OPT_END,
};

struct self {
	struct frag_heap heap; /* first: its hooks are used as they are */
	const struct params *params;
	unsigned align_log2, small_log2; /* small: below this power of two lists are linear */
	uint64_t first_bits;
	uint32_t second_bits[FIRST];
	struct frag_piece *head[FIRST][SECOND];
};

struct place {
	unsigned first, second;
};

static const struct frag_heap_index index;

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_heap_create(env, sizeof(*s), &index, "policy tlsf", out, err));
	s = *out;
	s->params = params;
	s->align_log2 = frag_log2(s->params->align);
	s->small_log2 = s->align_log2 + SECOND_LOG2;
	return 0;
}

/* ---- lists --------------------------------------------------------------------------- */

/* The list that a block of this size is in. */
static struct place place_of(const struct self *s, uint64_t size)
{
	unsigned f;

	if (size < 1ull << s->small_log2)
		return (struct place){ 0, (unsigned)(size >> s->align_log2) };
	f = frag_log2(size);
	return (struct place){ f - s->small_log2 + 1,
			       (unsigned)(size >> (f - SECOND_LOG2)) & (SECOND - 1) };
}

/* The first list all of whose blocks hold `size`. */
static struct place place_to_search(const struct self *s, uint64_t size)
{
	if (size >= 1ull << s->small_log2)
		size += (1ull << (frag_log2(size) - SECOND_LOG2)) - 1;
	return place_of(s, size);
}

/* The smallest block that a search for `size` finds. */
static uint64_t found_bytes(const struct self *s, uint64_t size)
{
	if (size < 1ull << s->small_log2)
		return size;
	return frag_round_up(size, 1ull << (frag_log2(size) - SECOND_LOG2));
}

static void put(void *self, struct frag_piece *p)
{
	struct self *s = self;
	struct place at = place_of(s, p->bytes);
	struct frag_piece **head = &s->head[at.first][at.second];

	p->link[0] = NULL;
	p->link[1] = *head;
	if (*head)
		(*head)->link[0] = p;
	*head = p;
	s->first_bits |= 1ull << at.first;
	s->second_bits[at.first] |= 1u << at.second;
}

static void cut(void *self, struct frag_piece *p)
{
	struct self *s = self;
	struct place at;

	if (p->link[1])
		p->link[1]->link[0] = p->link[0];
	if (p->link[0]) {
		p->link[0]->link[1] = p->link[1];
		return;
	}
	at = place_of(s, p->bytes);
	s->head[at.first][at.second] = p->link[1];
	if (p->link[1])
		return;
	s->second_bits[at.first] &= ~(1u << at.second);
	if (!s->second_bits[at.first])
		s->first_bits &= ~(1ull << at.first);
}

static const struct frag_heap_index index = { cut, put };

static struct frag_piece *find(const void *self, uint64_t bytes)
{
	const struct self *s = self;
	struct place at = place_to_search(s, bytes);
	uint32_t second = s->second_bits[at.first] & ~0u << at.second;
	uint64_t first;

	if (!second) {
		first = s->first_bits & ~1ull << at.first;
		if (!first)
			return NULL;
		at.first = (unsigned)__builtin_ctzll(first);
		second = s->second_bits[at.first];
	}
	return s->head[at.first][__builtin_ctz(second)];
}

/* When no list has a block: a pool that the next search for this size finds again. */
static int make_room(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		     uint8_t *cls, struct frag_err *err)
{
	uint64_t usual = FRAG_MAX(found_bytes(s, bytes), s->params->pool_bytes);
	struct frag_heap_growth g = { .bytes = bytes,
				      .usual = frag_round_up(usual, FRAG_PAGE),
				      .least = frag_round_up(bytes, FRAG_PAGE),
				      .stream = stream,
				      .find = find };

	return frag_heap_make_room(&s->heap, &g, out, cls, err);
}

/* ---- hooks ------------------------------------------------------------------------------- */

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = (FRAG_MAX(req->bytes, 1) + s->params->align - 1) & ~(s->params->align - 1);
	struct frag_piece *p;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	p = find(s, bytes);
	out->cls = FRAG_CLASS_HIT;
	if (FRAG_UNLIKELY(!p))
		FRAG_TRY(make_room(s, bytes, req->stream, &p, &out->cls, err));
	FRAG_CHECK_ALLOC(!frag_heap_reserve(&s->heap, 1), "policy tlsf", err);
	cut(s, p);
	if (p->bytes - bytes >= s->params->align) {
		put(s, frag_heap_split(&s->heap, p, bytes));
		if (out->cls == FRAG_CLASS_HIT)
			out->cls = FRAG_CLASS_SPLIT;
	}
	frag_heap_grant(&s->heap, p, out);
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block);

	(void)err;
	put(s, frag_heap_give_merged(&s->heap, p, cut, s));
	return 0;
}

/* ---- check --------------------------------------------------------------------------------- */

static bool merged(void *ctx, const struct frag_piece *p)
{
	(void)ctx;
	return !frag_piece_free_next(p);
}

/* Free blocks in one list, without those that do not belong there. */
static size_t check_list(const struct self *s, unsigned first, unsigned second)
{
	size_t n = 0;

	for (const struct frag_piece *p = s->head[first][second]; p; p = p->link[1]) {
		struct place at = place_of(s, p->bytes);

		n += at.first == first && at.second == second && frag_piece_is_free(p);
	}
	return n;
}

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	size_t sum = 0;

	for (unsigned first = 0; first < FIRST; first++)
		for (unsigned second = 0; second < SECOND; second++) {
			size_t n = check_list(s, first, second);

			if ((s->first_bits >> first & s->second_bits[first] >> second & 1) != !!n)
				return frag_fail(err, FRAG_ECHECK, "bits of list %u/%u are wrong",
						 first, second);
			sum += n;
		}
	return frag_heap_check(&s->heap, sum, merged, s, err);
}

const struct frag_policy_ops frag_policy_tlsf = {
	.abi = FRAG_POLICY_ABI,
	.name = "tlsf",
	.summary = "two-level segregated fit: constant time, good fit",
	.source = "mattconte/tlsf tlsf.c 3.1",
	.trims = "wholly free regions; upstream has no such call",
	.checked = "TLSF 3.1 (2020-03-29), compiled",
	FRAG_HEAP_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.create = create,
	.destroy = frag_heap_op_destroy,
	.alloc = alloc,
	.free = release,
	.trim = frag_heap_op_trim,
	.usage = frag_heap_op_usage,
	.check = check,
};
