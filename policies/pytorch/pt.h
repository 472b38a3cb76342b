/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's CUDA caching allocator: data structures shared by its parts.
 *
 *   pt_conf.c     settings text (PYTORCH_CUDA_ALLOC_CONF), which release knows which key
 *   pt_words.c    the words of that text
 *   pt_roundup.c  the value of roundup_power2_divisions
 *   pt_block.c    blocks, sets and segments as objects
 *   pt_segment.c  new segments, giving memory back, garbage collection
 *   pt_range.c    expandable segments
 *   pt_stat.c     memory_stats()
 *   pt_restore.c     starting from the state of a recording
 *   pt_walk.c     visit, check, usage
 *   ../pytorch.c  malloc, free, the policy table
 *
 * Structure. A block is a contiguous piece of a segment (or of an expandable
 * reservation, a "range"); prev/next link neighbours by address. Free blocks
 * are in the set of their (pool, stream), by size then rank; unmapped pieces of
 * ranges in another, by address. Live and waiting blocks are in neither.
 *
 * Order. Which of several free blocks of one size comes first has changed twice
 * (enum pt_order). Every block therefore has a rank, kept up to date also while it is
 * live: the free sets sort by (size, rank), and nothing else asks for the order.
 *
 * Invariants: two free mapped neighbours never coexist, nor two unmapped ones;
 * a block without neighbours is a whole segment (or a whole range).
 *
 * Source of the rules: pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp and
 * c10/core/AllocatorConfig.cpp, all releases of FRAG_TORCH_RANGE.
 */
#ifndef FRAG_PT_H
#define FRAG_PT_H

#include <environment.h>
#include <frag/torch.h>

#include <binset.h>
#include "lib/links.h"
#include "lib/slabs.h"
#include "torch_rule_list.inc"

#define PT_MIN_BLOCK 512ull
#define PT_SMALL_LIMIT FRAG_MIB /* rounded size <= this: small pool */
#define PT_SMALL_SEGMENT (2 * FRAG_MIB)
#define PT_MIN_LARGE (10 * FRAG_MIB) /* sizes >= this get a segment of their own size */
#define PT_LARGE_ROUND (2 * FRAG_MIB)
#define PT_UNLIMITED UINT64_MAX
#define PT_ROUNDUPS 16
#define PT_SETS_FAST 256u /* sets with a table of bins; see frag_binset_init */

/* Settings; the struct that the option table fills. */
struct pt_conf {
	uint64_t max_split_mb;		 /* UINT64_MAX = unlimited */
	uint64_t max_non_split_round_mb; /* UINT64_MAX = large_segment_size_mb */
	uint64_t large_segment_mb;
	double gc_threshold;	/* 0 = off */
	double memory_fraction; /* 1 = no limit of its own */
	bool expandable;
	bool search_again; /* not PyTorch: search the free blocks again after a release */
	char roundup_text[FRAG_OPT_STRING_MAX];
	char reserve_text[FRAG_OPT_STRING_MAX]; /* expandable_segments_reserve, "" = all */
	char version_text[FRAG_OPT_STRING_MAX]; /* "" = not given */
	const struct pt_key *newest; /* of the keys that were given as text; see pt_conf.c */
};
extern const struct frag_opt pt_opts[];
int pt_conf_parse(const char *text, void *params, struct frag_err *err);
/* As PYTORCH_CUDA_ALLOC_CONF takes it; SIZE_MAX: it does not. */
size_t pt_conf_text(const void *params, char *buf, size_t cap);
int pt_conf_validate(const void *params, struct frag_err *err);
/* The release whose rules hold. recorded: of the recording, 0 = not known. Errors: FRAG_EUSAGE
 * for a key that this release does not know, and for sizes that it refuses. */
int pt_conf_release(const struct pt_conf *c, unsigned recorded, unsigned *release,
		    struct frag_err *err);
/* Bytes of address space that an expandable segment takes, before rounding to pages. */
int pt_conf_reserve(const struct pt_conf *c, uint64_t total, uint64_t *bytes, struct frag_err *err);
/* Divisions per power of two from 1 MiB up: table has PT_ROUNDUPS places. "" = all off. */
int pt_conf_roundup(const char *text, unsigned release, uint32_t *table, struct frag_err *err);

/* Among free blocks of one size on one stream. */
enum pt_order {
	PT_BY_ADDRESS, /* up to 2.11 */
	PT_BY_BLOCK,   /* 2.12: in the order in which the source made its Block objects */
	PT_BY_SEGMENT, /* from 2.13: in the order in which segments were made, then by address */
};

enum pt_state { PT_FREE, PT_LIVE, PT_WAITING, PT_UNMAPPED };

struct pt_set;

#define PT_HANDLE_GONE UINT64_MAX /* in pt_seg.handles: given back, but still mapped */

/* A cudaMalloc'd segment, or an expandable one: a reservation with pages mapped into it. */
struct pt_seg {
	frag_addr_t base;
	uint64_t bytes;
	uint64_t page;	   /* 0: cudaMalloc'd */
	uint64_t *handles; /* expandable: by page, 0 = not mapped; grows to the highest used */
	size_t handles_count;
	struct pt_set *set;
	uint64_t rank;		    /* of a block: this plus address / 512; see pt_rank_at */
	uint8_t kind;		    /* of its pool */
	struct pt_block *first;	    /* the rest by block->next */
	struct pt_seg *prev, *next; /* all segments of the allocator */
};

struct pt_block {
	union {
		struct frag_bin_node bin; /* its place in `free`; the key are size and rank */
		struct {
			uint64_t rank;
			uint64_t size;
			struct frag_bin_node *bin_[2];
			uint16_t bin_number_;
			uint8_t bin_bit_;
			uint8_t state; /* enum pt_state */
			uint8_t kind;  /* of its pool: PT_SMALL or PT_LARGE */
			bool ranged;   /* its segment is expandable */
		};
	};
	frag_addr_t addr;
	struct pt_block *prev, *next;
	union {
		uint64_t requested; /* while live or waiting */
		uint64_t gc_base;   /* while free: pool->calls when it was put into `free` */
	};
	uint64_t releasable; /* while free: bytes that a release would give back */
	struct pt_set *set;
	struct pt_seg *seg;
};
_Static_assert(offsetof(struct pt_block, state) == offsetof(struct frag_bin_node, owner),
	       "small fields lie where the set does not look");

/* The free and unmapped blocks of one stream in one pool. */
struct pt_set {
	struct frag_binset free;   /* (size, rank) */
	struct frag_bset unmapped; /* (0, addr) */
	struct pt_pool *pool;
	/* a block is split for a request below the one if more than the other is left */
	uint64_t split_below, split_left;
	uint32_t stream;
};

struct pt_pool {
	struct pt_set **sets; /* by stream, NULL where never used */
	uint32_t sets_count;
	bool small;
	bool no_split;	/* every request takes a whole free block */
	uint16_t id;	/* 0 = default */
	uint64_t calls; /* searches, while garbage collection is possible */
};

/* One counter of memory_stats(): current is peak - slack, freed is allocated - current. */
struct pt_count {
	int64_t peak;
	int64_t slack;	   /* below the peak, so that most changes are one addition */
	int64_t allocated; /* sum of the increases */
};

enum pt_family {
	PT_SEGMENT,
	PT_RESERVED_BYTES,
	PT_INACTIVE_SPLIT,
	PT_INACTIVE_SPLIT_BYTES,
	PT_FAMILIES
};

enum pt_sum { PT_BLOCKS, PT_BYTES, PT_REQUESTED, PT_SUMS };

enum pt_use_family {
	PT_ALLOCATION,
	PT_ALLOCATED_BYTES,
	PT_ACTIVE,
	PT_ACTIVE_BYTES,
	PT_REQUESTED_BYTES,
	PT_USE_FAMILIES
};

/*
 * What the five families of use are made of: sums since the start, of one kind of pool. As long
 * as neither room is below zero no peak can have been exceeded: an alloc takes 1 and its
 * size from them, a free gives 1 and the bytes requested (at most its size) back. Where
 * one is, pt_use_peaks looks at the peaks and measures the room again.
 */
struct pt_use {
	int64_t room_count, room_bytes;
	int64_t handed[PT_SUMS], freed[PT_SUMS]; /* out; back, completely */
	int64_t waiting[PT_SUMS];		 /* now: let go, not completed */
	int64_t begun_waiting[PT_SUMS];		 /* did so when the history began */
	int64_t peak[PT_USE_FAMILIES];
};

/* The first index: all, small pools, large pools. */
enum pt_kind { PT_ALL, PT_SMALL, PT_LARGE, PT_KINDS };

struct pt_stats {
	struct pt_use use[PT_KINDS]; /* of PT_ALL only the rooms and peaks */
	struct pt_count f[PT_KINDS][PT_FAMILIES];
	struct pt_count oversize_allocations, oversize_segments;
	int64_t num_alloc_retries, num_ooms, num_sync_all_streams;
	int64_t num_device_alloc, num_device_free;
};

struct pt {
	struct frag_policy_env env;
	struct frag_device *dev;
	struct pt_conf conf;
	uint64_t max_split, non_split_round, large_segment; /* bytes */
	uint64_t limit;					    /* bytes, UINT64_MAX = none in force */
	uint64_t range_bytes; /* of an expandable segment, before rounding to pages */
	bool ages;	      /* gc can run: count searches */
	bool plain_rounding;  /* no divisions anywhere */
	enum pt_order order;
	unsigned release;	       /* of PyTorch, a FRAG_TORCH number */
	unsigned rank_bits;	       /* PT_BY_SEGMENT: of the places in a segment */
	uint64_t made;		       /* PT_BY_SEGMENT: segments, PT_BY_BLOCK: blocks */
	struct pt_learnt *learnt;      /* pt_learn.c; NULL: the order is known */
	uint32_t roundup[PT_ROUNDUPS]; /* divisions from 1 MiB up, 0/1 = off; ROUNDS_ONE */
	uint64_t total;		       /* bytes held, all pools */
	uint64_t releasable;	       /* sum over the free blocks */
	struct pt_pool *pools;	       /* [2 * id] small, [2 * id + 1] large */
	uint32_t pools_count;
	uint32_t sets_count; /* ever made */
	struct pt_seg *segs;
	size_t segs_count;
	struct frag_slab blocks, segments, sets;
	struct frag_slab nodes; /* of all free and unmapped sets: enough for every block */
	struct pt_stats st;
};

/* pt_stat.c */
void pt_stat_counters(void *self, frag_counter_fn fn, void *ctx);
/* Brings the peaks of one kind and of all up to date, and the room that is left below them. */
void pt_use_peaks(struct pt_stats *st, unsigned kind);
/* Current value of a family of use. */
int64_t pt_use_current(const struct pt_stats *st, unsigned kind, enum pt_use_family f);

/* ---- small helpers used by all parts ---- */

static inline bool pt_is_split(const struct pt_block *b)
{
	return b->prev || b->next;
}

/* A node of `free` as its block; NULL stays NULL. */
static inline struct pt_block *pt_of(struct frag_bin_node *n)
{
	return (struct pt_block *)n;
}

static inline struct pt_block *pt_next_free(const struct pt_block *b)
{
	return pt_of(frag_binset_next(&b->set->free, &b->bin));
}

static inline struct pt_block *pt_prev_free(const struct pt_block *b)
{
	return pt_of(frag_binset_prev(&b->set->free, &b->bin));
}

static inline unsigned pt_kind_of(const struct pt_pool *pool)
{
	return pool->small ? PT_SMALL : PT_LARGE;
}

static inline void pt_up(struct pt_count *c, int64_t x)
{
	c->allocated += x;
	c->slack -= x;
	if (FRAG_UNLIKELY(c->slack < 0)) {
		c->peak -= c->slack;
		c->slack = 0;
	}
}

static inline void pt_down(struct pt_count *c, int64_t x)
{
	c->slack += x;
}

static inline void pt_up2(struct pt *a, unsigned kind, enum pt_family f, int64_t x)
{
	pt_up(&a->st.f[0][f], x);
	pt_up(&a->st.f[kind][f], x);
}

static inline void pt_down2(struct pt *a, unsigned kind, enum pt_family f, int64_t x)
{
	pt_down(&a->st.f[0][f], x);
	pt_down(&a->st.f[kind][f], x);
}

/* A block is handed out. */
static inline void pt_use_up(struct pt *a, const struct pt_block *b)
{
	struct pt_use *u = &a->st.use[b->kind], *all = &a->st.use[PT_ALL];
	int64_t size = (int64_t)b->size;

	u->handed[PT_BLOCKS]++;
	u->handed[PT_BYTES] += size;
	u->handed[PT_REQUESTED] += (int64_t)b->requested;
	u->room_count--;
	u->room_bytes -= size;
	all->room_count--;
	all->room_bytes -= size;
	if (FRAG_UNLIKELY((u->room_count | u->room_bytes | all->room_count | all->room_bytes) < 0))
		pt_use_peaks(&a->st, b->kind);
}

/* A block is free again. waits: it was let go before. */
static inline void pt_use_down(struct pt *a, const struct pt_block *b, bool waits)
{
	struct pt_use *u = &a->st.use[b->kind], *all = &a->st.use[PT_ALL];
	int64_t requested = (int64_t)b->requested;

	u->freed[PT_BLOCKS]++;
	u->freed[PT_BYTES] += (int64_t)b->size;
	u->freed[PT_REQUESTED] += requested;
	u->room_count++;
	u->room_bytes += requested;
	all->room_count++;
	all->room_bytes += requested;
	if (FRAG_UNLIKELY(waits)) {
		u->waiting[PT_BLOCKS]--;
		u->waiting[PT_BYTES] -= (int64_t)b->size;
	}
}

/* Bytes of whole pages (of the grid that starts at the base) inside a block of an
 * expandable segment; *lo: where they begin. */
static inline uint64_t pt_whole_pages(const struct pt_block *b, frag_addr_t *lo)
{
	const struct pt_seg *g = b->seg;
	uint64_t from, to;

	if (b->size < g->page)
		return 0;
	from = frag_round_up(b->addr - g->base, g->page);
	to = frag_round_down(b->addr - g->base + b->size, g->page);
	*lo = g->base + from;
	return to > from ? to - from : 0;
}

/* Bytes that a release would give back of this free block. */
static inline uint64_t pt_releasable(const struct pt_block *b)
{
	frag_addr_t lo;

	if (b->ranged)
		return pt_whole_pages(b, &lo);
	return pt_is_split(b) ? 0 : b->size;
}

/* It is free with these neighbours and this size from now on; its age starts. */
static inline void pt_free_note(struct pt *a, struct pt_block *b)
{
	b->state = PT_FREE;
	b->gc_base = b->set->pool->calls;
	b->releasable = pt_releasable(b);
	a->releasable += b->releasable;
}

/* What a block could grow to: its size and the unmapped piece behind it. */
static inline uint64_t pt_potential(const struct pt_block *b)
{
	const struct pt_block *n = b->next;

	return b->size + (n && n->state == PT_UNMAPPED ? n->size : 0);
}

/* Into the free set of its pool and stream. */
static inline void pt_free_insert(struct pt *a, struct pt_block *b)
{
	pt_free_note(a, b);
	frag_binset_insert(&b->set->free, &b->bin);
}

static inline void pt_free_erase(struct pt *a, struct pt_block *b)
{
	a->releasable -= b->releasable;
	frag_binset_erase(&b->set->free, &b->bin);
}

/* Erase, another place and size, and insert, in one. Its neighbours are linked already. */
static inline void pt_free_rekey(struct pt *a, struct pt_block *b, frag_addr_t addr, uint64_t size,
				 uint64_t rank)
{
	a->releasable -= b->releasable;
	b->addr = addr;
	frag_binset_rekey(&b->set->free, &b->bin, rank, size);
	pt_free_note(a, b);
}

/* Rank of a new block at addr. */
static inline uint64_t pt_rank_at(struct pt *a, const struct pt_seg *seg, frag_addr_t addr)
{
	if (FRAG_UNLIKELY(a->order == PT_BY_BLOCK))
		return ++a->made;
	return seg->rank + addr / PT_MIN_BLOCK;
}

/* Rank of `b` when `bytes` at its front are no longer its. */
static inline uint64_t pt_rank_behind(const struct pt *a, const struct pt_block *b, uint64_t bytes)
{
	return FRAG_UNLIKELY(a->order == PT_BY_BLOCK) ? b->rank : b->rank + bytes / PT_MIN_BLOCK;
}

static inline void pt_journal(struct pt *a, enum frag_segment_event kind, frag_addr_t addr,
			      uint64_t bytes, uint32_t stream)
{
	frag_env_journal(&a->env, kind, addr, bytes, stream);
}

/* pre: pt_room. Linked nowhere, PT_FREE but in no set; pt_block_ranked sets the rest. */
static inline struct pt_block *pt_block_ranked(struct pt *a, struct pt_seg *seg, frag_addr_t addr,
					       uint64_t size, uint64_t rank)
{
	struct pt_block *b = frag_slab_alloc(&a->blocks);

	FRAG_ASSERT(b);
	b->addr = addr;
	b->size = size;
	b->rank = rank;
	b->prev = b->next = NULL;
	b->state = PT_FREE;
	b->kind = seg->kind;
	b->ranged = seg->page != 0;
	b->set = seg->set;
	b->seg = seg;
	return b;
}

static inline struct pt_block *pt_block_new(struct pt *a, struct pt_seg *seg, frag_addr_t addr,
					    uint64_t size)
{
	struct pt_block *b = pt_block_ranked(a, seg, addr, size, pt_rank_at(a, seg, addr));

	b->requested = b->releasable = 0;
	return b;
}

/* Cuts a block that is in no set in two, which are of one state; the other part, in no set either.
 * pre: pt_room. The one in front is new, or the one behind. */
static inline struct pt_block *pt_cut_front(struct pt *a, struct pt_block *b, frag_addr_t at)
{
	struct pt_block *low = pt_block_new(a, b->seg, b->addr, at - b->addr);

	FRAG_LINK_BEFORE(b->seg->first, b, low);
	b->rank = pt_rank_behind(a, b, low->size);
	b->addr = at;
	b->size -= low->size;
	return low;
}

static inline struct pt_block *pt_cut_tail(struct pt *a, struct pt_block *b, frag_addr_t at)
{
	struct pt_block *tail = pt_block_new(a, b->seg, at, b->addr + b->size - at);

	FRAG_LINK_AFTER(b, tail);
	b->size -= tail->size;
	return tail;
}

static inline void pt_block_drop(struct pt *a, struct pt_block *b)
{
	frag_slab_free(&a->blocks, b);
}

/* Takes a block that is in no set out of the chain of its segment, and drops it. */
static inline void pt_unlink(struct pt *a, struct pt_block *b)
{
	FRAG_UNLINK(b->seg->first, b);
	pt_block_drop(a, b);
}

/* pt_block.c: blocks, sets, segments as objects; no rules here. */

/* Room for `more` further blocks in the sets and in host memory; afterwards neither inserts
 * nor pt_block_new fail for that many. */
int pt_room(struct pt *a, size_t more, struct frag_err *err);
/* The set of a stream in a pool, made on first use. */
int pt_set_make(struct pt *a, uint16_t pool, bool small, uint32_t stream, struct pt_set **out,
		struct frag_err *err);
void pt_sets_release(struct pt *a);
/* Absorbs a neighbour of `b`; both are in no set. PT_BY_BLOCK: `b` keeps its rank. */
void pt_absorb(struct pt *a, struct pt_block *b, struct pt_block *n);
/* pt_seg_place follows. */
struct pt_seg *pt_seg_new(struct pt *a, struct pt_set *set, uint64_t bytes, uint64_t page);
/* Where it lies: from now on its blocks have ranks. The segments of an allocator are placed in
 * the order in which they are made. */
void pt_seg_place(struct pt *a, struct pt_seg *g, frag_addr_t base);
/* Forgets a segment whose blocks are gone. */
void pt_seg_drop(struct pt *a, struct pt_seg *g);

/* pt_segment.c. Results: 0, FRAG_OOM, or an error. */

/* A segment of just these bytes, one free block that is in no set; not counted as a driver call. */
int pt_segment_add(struct pt *a, struct pt_set *set, uint64_t bytes, struct pt_block **out,
		   struct frag_err *err);
/* A new block of at least `size`, in no set. */
int pt_segment_get(struct pt *a, struct pt_set *set, uint64_t size, bool retry,
		   struct pt_block **out, struct frag_err *err);
int pt_release_oversize(struct pt *a, struct pt_set *set, uint64_t size, bool *enough,
			struct frag_err *err);
/* Synchronises, then empties the default pools: large, then small. */
int pt_release_all(struct pt *a, struct frag_err *err);
int pt_release_pool(struct pt *a, struct pt_pool *pool, struct frag_err *err);
int pt_collect_garbage(struct pt *a, struct frag_err *err);

/* pt_range.c: expandable segments. */

/* Page and length of a reservation, bytes. */
uint64_t pt_range_page(const struct pt *a, bool small);
uint64_t pt_range_bytes(const struct pt *a, bool small);
int pt_range_get(struct pt *a, struct pt_set *set, uint64_t size, struct pt_block **out,
		 struct frag_err *err);
/* Maps the front of an unmapped block: it is free then, as one with its free neighbours, and the
 * object stays. bytes: whole pages. Not counted as a driver call. */
int pt_range_map(struct pt *a, struct pt_block *u, uint64_t bytes, struct frag_err *err);
/* Unmaps the whole pages inside a free block. */
int pt_range_unmap(struct pt *a, struct pt_block *b, struct frag_err *err);
/* A reservation, at its own place (base 0) or around a known base; one unmapped block. */
int pt_range_add(struct pt *a, struct pt_set *set, frag_addr_t base, uint64_t bytes,
		 struct pt_block **out, struct frag_err *err);
/* Unmaps and gives back the pages of [addr, addr + bytes). *done: bytes from addr on that are gone,
 * also on failure. */
int pt_pages_unmap(struct pt *a, struct pt_seg *g, frag_addr_t addr, uint64_t bytes, uint64_t *done,
		   struct frag_err *err);

/* An unmapped block from now on (no longer). pre of insert: pt_room, in no set. */
static inline void pt_unmapped_insert(struct pt_block *b)
{
	b->state = PT_UNMAPPED;
	frag_bset_insert(&b->set->unmapped, 0, b->addr, b);
}

static inline void pt_unmapped_erase(struct pt_block *b)
{
	frag_bset_erase(&b->set->unmapped, 0, b->addr);
}

/*
 * pt_learn.c: a restored state in which the order of equals is not known. Of the free blocks
 * from `b` on that are as large and could as well come first, the one that the recording shows;
 * `b` where it shows none. release: what it shows being given back.
 */
struct pt_block *pt_learn_first(struct pt *a, struct pt_block *b, bool release);
/* The same backwards: `b` is the last of its size, and what is given back stands behind. */
struct pt_block *pt_learn_last(struct pt *a, struct pt_block *b);
/* pre: learnt. The walk over expandable blocks that begins at `b` ends on `chosen` in the order
 * that is kept: where it ends in the recording, if it can. */
struct pt_block *pt_learn_walk(struct pt *a, struct pt_block *b, struct pt_block *chosen);
/* Puts what the recording shows next to the front of a list of free blocks. */
void pt_learn_list(struct pt *a, struct pt_block **list, size_t n);
/* Has the block been free since before the history began, and so is of unknown age? */
bool pt_learn_ageless(const struct pt *a, const struct pt_block *b);
/* pre: learnt. Does the recording show that it is given back now? */
bool pt_learn_collected(const struct pt *a, const struct pt_block *b);
/* What the state was restored with is all that is unknown. */
int pt_learn_begin(struct pt *a, struct frag_err *err);
void pt_learn_end(struct pt *a);

/* pt_restore.c */
int pt_restore(void *self, const struct frag_initial_state *initial, uint64_t *handles,
	       struct frag_err *err);

/* pt_walk.c */
void pt_visit(void *self, const struct frag_visitor *v);
int pt_check(void *self, struct frag_err *err);
void pt_usage(void *self, struct frag_usage *out);

#endif
