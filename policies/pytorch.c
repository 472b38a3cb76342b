/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's CUDA caching allocator, complete: malloc, free, the policy table.
 *
 * Rules in short (pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp, releases
 * of FRAG_TORCH_RANGE). A request is rounded to 512 B (or to a fraction of a power of two);
 * up to 1 MiB goes to the small pool (2 MiB segments), the rest to the large
 * pool (20 MiB segments, from 10 MiB on a segment of its own). The search takes
 * the first free block of the same stream that is not smaller, and among equals
 * the one that its release puts first, and may give up on it (max_split_size). A miss collects
 * garbage, asks the driver, releases oversize blocks, then everything cached,
 * and asks again; it never searches a second time. Blocks are split from the
 * front. With expandable segments memory comes as pages mapped into a reservation.
 *
 * The recorded moment at which a cross-stream free completed drives `free`; the
 * events that PyTorch polls are therefore not modelled here.
 */
#include "pytorch/pt.h"

static uint64_t round_divisions(const struct pt *a, uint64_t n)
{
	unsigned i = n >> 20 ? FRAG_MIN(frag_log2(n) - 20, PT_ROUNDUPS - 1u) : 0;
	uint64_t d = a->roundup[i], low, step;

	if (d == 1 && a->release < FRAG_TORCH_SINCE_ROUNDS_ONE && n > PT_MIN_BLOCK)
		return n; /* one division was none, and nothing else rounded */
	if (d <= 1 || n <= PT_MIN_BLOCK * d)
		return frag_round_up(n, PT_MIN_BLOCK);
	if (frag_is_pow2(n))
		return n;
	low = 1ull << frag_log2(n);
	step = low >> frag_log2(d);
	return step ? (n + step - 1) & ~(step - 1) : 2 * low;
}

static inline uint64_t round_request(const struct pt *a, uint64_t n)
{
	if (n < PT_MIN_BLOCK)
		return PT_MIN_BLOCK;
	if (FRAG_LIKELY(a->plain_rounding))
		return (n + PT_MIN_BLOCK - 1) & ~(PT_MIN_BLOCK - 1);
	return round_divisions(a, n);
}

/* Among expandable blocks, hop forward while the very next one has the smaller potential. */
static struct pt_block *prefer_inner(struct pt_block *b)
{
	/* one that cannot grow has the smallest potential of all that follow */
	while (b->ranged && b->next && b->next->state == PT_UNMAPPED) {
		struct pt_block *next = pt_next_free(b);

		if (!next || pt_potential(next) >= pt_potential(b))
			break;
		b = next;
	}
	return b;
}

static struct pt_block *skip_ranged(struct pt_block *b)
{
	while (b && b->ranged)
		b = pt_next_free(b);
	return b;
}

/* The best fit, still in the free set; NULL is a miss. */
static inline struct pt_block *search(struct pt *a, struct pt_set *set, uint64_t size)
{
	struct pt_block *b;

	if (FRAG_UNLIKELY(a->ages))
		set->pool->calls++;
	b = pt_of(frag_binset_lower(&set->free, size));
	if (FRAG_UNLIKELY(!b))
		return NULL;
	if (FRAG_UNLIKELY(b->ranged && a->conf.expandable)) {
		struct pt_block *inner = prefer_inner(b);

		b = a->learnt ? pt_learn_walk(a, b, inner) : inner;
	} else {
		if (FRAG_UNLIKELY(a->learnt != NULL))
			b = pt_learn_first(a, b, false);
		if (FRAG_UNLIKELY(b->ranged))
			b = skip_ranged(b);
		if (!b)
			return NULL;
	}
	if (size < a->max_split ? b->size >= a->max_split : b->size >= size + a->non_split_round)
		return NULL;
	return b;
}

/* Nothing cached fits: the driver, then ever more drastic releases. The block is in no set. */
static __attribute__((noinline)) int miss(struct pt *a, struct pt_set *set, uint64_t size,
					  struct pt_block **out, uint8_t *cls, struct frag_err *err)
{
	bool enough = false;
	int rc;

	*cls = a->conf.expandable ? FRAG_CLASS_MAP : FRAG_CLASS_GROW;
	if (a->ages)
		FRAG_TRY(pt_collect_garbage(a, err));
	rc = pt_segment_get(a, set, size, false, out, err);
	if (rc != FRAG_OOM)
		return rc;
	*cls = FRAG_CLASS_RELEASE;
	FRAG_TRY(pt_release_oversize(a, set, size, &enough, err));
	if (enough)
		rc = pt_segment_get(a, set, size, false, out, err);
	/* while a capture or mem-pool context is active nothing may be synchronised */
	if (rc == FRAG_OOM && !set->pool->id) {
		FRAG_TRY(pt_release_all(a, err));
		if (a->conf.search_again && (*out = search(a, set, size))) {
			pt_free_erase(a, *out);
			return 0;
		}
		rc = pt_segment_get(a, set, size, true, out, err);
	}
	if (rc == FRAG_OOM)
		a->st.num_ooms++;
	return rc;
}

/* The low part becomes a new block; `rest` keeps its object and is free. */
static inline struct pt_block *split(struct pt *a, struct pt_block *rest, uint64_t size,
				     bool cached)
{
	uint64_t low_rank = rest->rank, rank = low_rank + size / PT_MIN_BLOCK;
	bool was_split = pt_is_split(rest);
	struct pt_block *low;

	if (FRAG_UNLIKELY(a->order == PT_BY_BLOCK)) {
		rank = low_rank;
		low_rank = ++a->made;
	}
	low = pt_block_ranked(a, rest->seg, rest->addr, size, low_rank);
	FRAG_LINK_BEFORE(rest->seg->first, rest, low);
	if (FRAG_LIKELY(cached)) {
		pt_free_rekey(a, rest, rest->addr + size, rest->size - size, rank);
	} else {
		rest->rank = rank;
		rest->addr += size;
		rest->size -= size;
		pt_free_insert(a, rest);
	}
	if (rest->ranged)
		return low;
	if (FRAG_LIKELY(was_split)) {
		pt_down2(a, rest->kind, PT_INACTIVE_SPLIT_BYTES, (int64_t)size);
	} else {
		pt_up2(a, rest->kind, PT_INACTIVE_SPLIT_BYTES, (int64_t)rest->size);
		pt_up2(a, rest->kind, PT_INACTIVE_SPLIT, 1);
	}
	return low;
}

static inline void take_whole(struct pt *a, struct pt_block *b, bool cached)
{
	if (FRAG_LIKELY(cached))
		pt_free_erase(a, b);
	if (b->ranged || !pt_is_split(b))
		return;
	pt_down2(a, b->kind, PT_INACTIVE_SPLIT_BYTES, (int64_t)b->size);
	pt_down2(a, b->kind, PT_INACTIVE_SPLIT, 1);
}

static int set_of(struct pt *a, const struct frag_request *req, bool small, struct pt_set **out,
		  struct frag_err *err)
{
	uint32_t p = 2u * req->pool + !small;

	if (FRAG_LIKELY(p < a->pools_count && req->stream < a->pools[p].sets_count)) {
		*out = a->pools[p].sets[req->stream];
		if (FRAG_LIKELY(*out != NULL))
			return 0;
	}
	return pt_set_make(a, req->pool, small, req->stream, out, err);
}

static int pt_malloc(void *self, const struct frag_request *req, struct frag_block *out,
		     struct frag_err *err)
{
	struct pt *a = self;
	uint64_t size = round_request(a, req->bytes);
	uint8_t cls = FRAG_CLASS_HIT;
	struct pt_block *b;
	struct pt_set *set;
	bool cached;

	FRAG_TRY(set_of(a, req, size <= PT_SMALL_LIMIT, &set, err));
	/* room for the split before anything changes: a failure leaves all as it was */
	if (FRAG_UNLIKELY(a->blocks.spare_count < 4))
		FRAG_TRY(pt_room(a, 4, err));
	b = search(a, set, size);
	cached = b != NULL;
	if (FRAG_UNLIKELY(!cached))
		FRAG_TRY(miss(a, set, size, &b, &cls, err));
	if (size < set->split_below && b->size - size > set->split_left) {
		b = split(a, b, size, cached);
		if (FRAG_LIKELY(cached))
			cls = FRAG_CLASS_SPLIT;
	} else {
		take_whole(a, b, cached);
	}
	b->state = PT_LIVE;
	b->requested = req->bytes;
	pt_use_up(a, b);
	if (FRAG_UNLIKELY(b->size >= a->max_split))
		pt_up(&a->st.oversize_allocations, 1);
	out->addr = b->addr;
	out->granted = b->size;
	out->handle = (uintptr_t)b;
	out->cls = cls;
	return 0;
}

static void pt_free_requested(void *self, const struct frag_block *block)
{
	struct pt *a = self;
	struct pt_block *b = (struct pt_block *)(uintptr_t)block->handle;
	struct pt_use *u = &a->st.use[b->kind];

	FRAG_ASSERT(b->state == PT_LIVE);
	b->state = PT_WAITING;
	u->waiting[PT_BLOCKS]++;
	u->waiting[PT_BYTES] += (int64_t)b->size;
	if (FRAG_UNLIKELY(b->size >= a->max_split))
		pt_down(&a->st.oversize_allocations, 1);
}

/*
 * A block becomes free: a free neighbour takes it in, and keeps its place among
 * the free blocks where it can. In the source it is the block freed that survives, which
 * matters to PT_BY_BLOCK only: its rank is taken over. *count, *bytes: what was free
 * beside it. Returns the free block.
 */
static inline struct pt_block *set_free(struct pt *a, struct pt_block *b, int64_t *count,
					int64_t *bytes)
{
	struct pt_block *before = b->prev, *after = b->next;
	frag_addr_t addr = b->addr;
	uint64_t size = b->size, rank = b->rank;

	*count = *bytes = 0;
	if (after && after->state == PT_FREE) {
		*count = 1;
		*bytes = (int64_t)after->size;
	} else {
		after = NULL;
	}
	if (before && before->state == PT_FREE) {
		*count += 1;
		*bytes += (int64_t)before->size;
		if (after) {
			size += after->size;
			pt_free_erase(a, after);
			pt_unlink(a, after);
		}
		pt_unlink(a, b);
		if (FRAG_LIKELY(a->order != PT_BY_BLOCK))
			rank = before->rank;
		pt_free_rekey(a, before, before->addr, before->size + size, rank);
		return before;
	}
	if (after) {
		pt_unlink(a, b);
		pt_free_rekey(a, after, addr, after->size + size, rank);
		return after;
	}
	pt_free_insert(a, b);
	return b;
}

/* One net change per free, as the source does: it shows in peaks and totals. */
static inline void count_inactive(struct pt *a, unsigned kind, int64_t count, int64_t bytes)
{
	if (count > 0)
		pt_up2(a, kind, PT_INACTIVE_SPLIT, count);
	else
		pt_down2(a, kind, PT_INACTIVE_SPLIT, -count);
	if (bytes > 0)
		pt_up2(a, kind, PT_INACTIVE_SPLIT_BYTES, bytes);
	else
		pt_down2(a, kind, PT_INACTIVE_SPLIT_BYTES, -bytes);
}

static int pt_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct pt *a = self;
	struct pt_block *b = (struct pt_block *)(uintptr_t)block->handle;
	int64_t near_count, near_bytes, stays;

	(void)err;
	if (FRAG_LIKELY(b->state == PT_LIVE)) {
		if (FRAG_UNLIKELY(b->size >= a->max_split))
			pt_down(&a->st.oversize_allocations, 1);
		pt_use_down(a, b, false);
	} else {
		FRAG_ASSERT(b->state == PT_WAITING);
		pt_use_down(a, b, true);
	}
	b = set_free(a, b, &near_count, &near_bytes);
	if (!b->ranged) {
		stays = pt_is_split(b);
		count_inactive(a, b->kind, stays - near_count,
			       stays * (int64_t)b->size - near_bytes);
	}
	return 0;
}

static int pt_trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct pt *a = self;

	if (!pool)
		return pt_release_all(a, err);
	if (2u * pool + 1 >= a->pools_count)
		return 0;
	/* a private pool gives its small segments back first */
	FRAG_TRY(pt_release_pool(a, &a->pools[2u * pool], err));
	return pt_release_pool(a, &a->pools[2u * pool + 1], err);
}

static int take_settings(struct pt *a, const struct pt_conf *conf, struct frag_err *err)
{
	a->conf = *conf;
	FRAG_TRY(pt_conf_release(conf, a->env.source_release, &a->release, err));
	a->order = a->release < FRAG_TORCH_SINCE_ORDER_BY_BLOCK	    ? PT_BY_ADDRESS
		   : a->release < FRAG_TORCH_SINCE_ORDER_BY_SEGMENT ? PT_BY_BLOCK
								    : PT_BY_SEGMENT;
	/* places of 512 bytes in the largest segment that there can be, with room to spare */
	a->rank_bits = FRAG_MIN(frag_log2(a->env.device_total_bytes >> 9 | 1) + 2, 44u);
	a->max_split =
		conf->max_split_mb == UINT64_MAX ? PT_UNLIMITED : conf->max_split_mb * FRAG_MIB;
	a->large_segment = conf->large_segment_mb * FRAG_MIB;
	a->non_split_round = conf->max_non_split_round_mb == UINT64_MAX
				     ? a->large_segment
				     : conf->max_non_split_round_mb * FRAG_MIB;
	a->limit = a->env.limit_bytes;
	if (a->limit == UINT64_MAX && conf->memory_fraction < 1.0)
		a->limit = (uint64_t)(conf->memory_fraction * (double)a->env.device_total_bytes);
	FRAG_TRY(pt_conf_reserve(conf, a->env.device_total_bytes, &a->range_bytes, err));
	a->ages = a->limit != UINT64_MAX && conf->gc_threshold > 0;
	FRAG_TRY(pt_conf_roundup(conf->roundup_text, a->release, a->roundup, err));
	a->plain_rounding = true;
	for (unsigned i = 0; i < PT_ROUNDUPS; i++)
		if (a->roundup[i] > 1 ||
		    (a->roundup[i] && a->release < FRAG_TORCH_SINCE_ROUNDS_ONE))
			a->plain_rounding = false;
	return 0;
}

static int pt_create(const struct frag_policy_env *env, const void *params, void **self,
		     struct frag_err *err)
{
	FRAG_AUTO_FREE struct pt *a = NULL;

	FRAG_TRY_CALLOC(a, 1, "pytorch", err);
	a->env = *env;
	a->dev = env->dev;
	FRAG_TRY(take_settings(a, params, err));
	frag_slab_init(&a->blocks, sizeof(struct pt_block));
	frag_slab_init(&a->segments, sizeof(struct pt_seg));
	frag_slab_init(&a->sets, sizeof(struct pt_set));
	frag_bset_nodes_init(&a->nodes);
	*self = FRAG_GIVE(a);
	return 0;
}

/* Live blocks or not, every segment goes back. */
static void pt_destroy(void *self)
{
	struct pt *a = self;

	while (a->segs) {
		struct pt_seg *g = a->segs;
		uint64_t done;

		if (!g->page) {
			frag_dev_free(a->dev, g->base, g->bytes, NULL);
		} else {
			/* a page that fails is passed over, the others must still go */
			for (uint64_t at = 0; at < g->handles_count; at++)
				pt_pages_unmap(a, g, g->base + at * g->page, g->page, &done, NULL);
			frag_dev_unreserve(a->dev, g->base, g->bytes, NULL);
		}
		pt_seg_drop(a, g);
	}
	pt_sets_release(a);
	pt_learn_end(a);
	frag_slab_release(&a->segments);
	frag_slab_release(&a->blocks);
	frag_host_free(a);
}

static const struct frag_policy_alias aliases[] = {
	{ "caching", "" },
	{ "expandable", "expandable_segments:True" },
	{ NULL, NULL },
};

const struct frag_policy_ops frag_policy_pytorch = {
	.abi = FRAG_POLICY_ABI,
	.name = "pytorch",
	.summary = "PyTorch's caching allocator, with or without expandable segments",
	.source = "pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp, releases " FRAG_TORCH_RANGE,
	.trims = "wholly free segments, and whole free pages of expandable ones (empty_cache)",
	.checked = "recordings of releases " FRAG_TORCH_RANGE,
	.flags = FRAG_POLICY_STREAMS | FRAG_POLICY_POOLS,
	.needs = FRAG_CAN_MALLOC,
	.opts = pt_opts,
	.params_size = sizeof(struct pt_conf),
	.parse = pt_conf_parse,
	.validate = pt_conf_validate,
	.create = pt_create,
	.destroy = pt_destroy,
	.alloc = pt_malloc,
	.free = pt_free,
	.free_requested = pt_free_requested,
	.trim = pt_trim,
	.visit = pt_visit,
	.check = pt_check,
	.usage = pt_usage,
	.counters = pt_stat_counters,
	.restore = pt_restore,
	.aliases = aliases,
	.conf_variable = "PYTORCH_CUDA_ALLOC_CONF",
	.conf = pt_conf_text,
};
