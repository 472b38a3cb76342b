/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growable segments over virtual memory: data structures of the policy `vmm`.
 *
 *   vm_block.c  blocks of an arena: best fit, split, merge
 *   vm_page.c   pages: which have memory, which could be given back
 *   vm_place.c  places: where a handle is mapped, and which of them is active
 *   vm_epoch.c  which frees the device has completed
 *   vm_move.c   finding memory that can move, giving back
 *   vm_fill.c   new memory, mapping
 *   vm_walk.c   visit, check, usage
 *   ../vmm.c    the policy table: alloc, free, trim
 *
 * Structure. An arena is a line of address space for one stream, pool and size class, cut into
 * pages of one size; it only grows. A chain of blocks covers it: live, waiting, or free. Handles of
 * 1, 2, 4 … pages are mapped into it, each at one or more places. At one of them, the active one,
 * the handle's memory counts: those pages are backed. The other places are parked: the mapping is
 * there, but its memory is in use, or ready for use, elsewhere; it can be made active again without
 * any call of the driver. A page that touches a live or waiting block is backed; one wholly inside
 * a free block is backed or not, and when it is not, a parked place may lie there. `full` holds the
 * free blocks all of whose pages are backed, `part` the others, `whole` those with a handle that
 * could go; the last block of the chain, the tail, is free and reaches to the end of the space.
 *
 * An address may be unmapped only when the work that was queued before its last free is
 * done. Frees of an arena are counted in epochs; a fence on its stream closes an
 * epoch, and a page remembers the epoch in which it was last freed.
 */
#ifndef FRAG_VM_H
#define FRAG_VM_H

#include <bset.h>
#include <environment.h>
#include "lib/slabs.h"

/* held: about to be live, in no set */
enum vm_state { VM_FREE, VM_LIVE, VM_WAITING, VM_HELD };

struct vm_arena;

struct vm_block {
	frag_addr_t addr;
	uint64_t size;
	struct vm_block *prev, *next;
	struct vm_arena *arena;
	uint64_t unmapped; /* free: pages inside without memory */
	uint64_t whole;	   /* free, in a set: pages of handles that lie wholly inside */
	uint8_t state;
};

/* Handles of 1, 2, 4 … pages. */
#define VM_SPANS 8u

struct vm_place;

/* A piece of physical memory. */
struct vm_handle {
	uint64_t id;		 /* the driver's */
	struct vm_place *active; /* where its memory counts; NULL: nowhere, it is spare */
	struct vm_place *places; /* all its mappings */
	struct vm_handle *next;	 /* spare, or about to move: of the same span */
	struct vm_block *from;	 /* about to move: the free block that it lies wholly inside of */
	uint32_t places_count;
	uint8_t span; /* 1 << span pages */
};

/* A handle is mapped here. */
struct vm_place {
	struct vm_handle *handle;
	struct vm_arena *arena;
	size_t page;	       /* the first */
	struct vm_place *next; /* of the same handle */
	bool access;	       /* granted; false: a call failed half-way, of no use */
};

/* So many places of a handle; beyond them a parked one is unmapped for a new one. */
#define VM_PLACES 8u

/* One page of an arena. */
struct vm_page {
	struct vm_place *place; /* what is mapped here; NULL: nothing */
	uint32_t epoch;		/* of the last free that touched it */
	uint8_t span;		/* the handle of the place has 1 << span pages … */
	uint8_t index;		/* … of which this one is the index-th */
	bool backed;		/* the place is the handle's active one */
};

/* Fences of the closed epochs that are not known to be done. */
#define VM_FENCES 64

struct vm_arena {
	frag_addr_t base;
	uint64_t bytes;	       /* of address space */
	unsigned cls, shift;   /* page size is 1 << shift */
	struct vm_page *pages; /* grows to the highest page used */
	size_t pages_count;
	struct vm_block *first;
	struct frag_bset full;	/* free blocks by (size, addr) */
	struct frag_bset part;	/* free blocks by (0, addr) */
	struct frag_bset whole; /* free blocks with whole handles, by (0, addr) */
	uint32_t stream;
	uint16_t pool;
	struct vm_arena *next;
	uint32_t epoch; /* the open one */
	uint32_t epoch_frees;
	uint32_t unasked;	    /* fences of frees since anybody wanted to know */
	uint64_t epoch_ns;	    /* recorded time of its first free */
	uint32_t done_epoch;	    /* all epochs below are done */
	uint64_t fences[VM_FENCES]; /* of epochs done_epoch .. epoch - 1, by epoch modulo */
	size_t parked_count;	    /* places */
};

/* Requests of one class of sizes and the memory for them. */
struct vm_class {
	uint64_t page;
	uint64_t up_to;			   /* requests up to this many bytes */
	struct vm_handle *spare[VM_SPANS]; /* active nowhere; the last one made is the first */
	size_t spare_count[VM_SPANS];
};

#define VM_CLASSES 2u

struct vm_params {
	uint64_t small_page, page, piece, max_page;
	uint64_t small_limit;
	uint64_t coarse, coarse_request;
	bool private_pools;
	double slack;
	uint64_t slack_bytes;
	uint64_t lag_us;
	double budget;
	uint64_t ahead;
	bool alias;
};

/* Time in the driver that may be spent, see vm_fill.c. */
struct vm_budget {
	double credit_ns;  /* below zero: a debt */
	uint64_t spent_ns; /* when it was last looked at, of all time … */
	uint64_t at_ns;	   /* … which was then */
};

struct vm {
	struct frag_policy_env env;
	struct frag_device *dev;
	const struct vm_params *params;
	struct vm_class classes[VM_CLASSES];
	struct vm_arena *arenas;
	struct vm_arena **quick; /* default pool: [stream * VM_CLASSES + class] */
	uint32_t quick_streams;
	struct frag_slab blocks, handles, places;
	struct frag_slab nodes; /* of all sets: two for every block */
	uint64_t live_bytes, waiting_bytes, live_peak_bytes;
	uint64_t mapped_bytes; /* physical, mapped into arenas */
	uint64_t whole_bytes;  /* of these, in handles wholly inside free blocks */
	uint64_t spare_bytes;  /* in spare handles */
	uint64_t space;	       /* addresses of all arenas */
	uint64_t new_handles, moved_handles, revived_handles, released_handles;
	uint64_t early_moves, dropped_places;
	struct vm_handle *claims[VM_SPANS]; /* about to move */
	bool unsure;			    /* vm_fit met work that may be done by now */
	struct vm_budget budget;
};

static inline uint64_t vm_page_bytes(const struct vm_arena *a)
{
	return 1ull << a->shift;
}

/* Pages that [addr, addr + size) touches, as [from, to). */
static inline void vm_touched(const struct vm_arena *a, frag_addr_t addr, uint64_t size,
			      size_t *from, size_t *to)
{
	*from = (addr - a->base) >> a->shift;
	*to = (addr - a->base + size + vm_page_bytes(a) - 1) >> a->shift;
}

/* vm_block.c */
int vm_room(struct vm *v, size_t more, struct frag_err *err);
int vm_arena_get(struct vm *v, unsigned cls, uint32_t stream, uint16_t pool, struct vm_arena **out,
		 struct frag_err *err);
void vm_arena_drop(struct vm *v, struct vm_arena *a);
/* Puts a free block into the sets it belongs to (takes it out). */
void vm_free_insert(struct vm *v, struct vm_block *b);
void vm_free_erase(struct vm *v, struct vm_block *b);
/* Cuts `size` bytes off a free block that is in no set, `skip` bytes (whole pages) from its
 * front; what remains on both sides goes back. The piece counts the pages it lacks. */
struct vm_block *vm_cut(struct vm *v, struct vm_block *b, uint64_t skip, uint64_t size);
/* A block, or a piece that was cut off, becomes free and merges. */
void vm_give(struct vm *v, struct vm_block *b);

/* vm_epoch.c: what the device has done */

int vm_epoch_close(struct vm *v, struct vm_arena *a, struct frag_err *err);
/* Looks which epochs are done. */
int vm_epoch_update(struct vm *v, struct vm_arena *a, struct frag_err *err);
/* Notes a free of [addr, addr + size). */
int vm_touch(struct vm *v, struct vm_arena *a, frag_addr_t addr, uint64_t size,
	     struct frag_err *err);
/* The pages from `page` on belong to the open epoch. */
void vm_young(struct vm *v, struct vm_arena *a, size_t page, size_t n);
/* Waits for the device: every epoch is done. */
int vm_close_epochs(struct vm *v, struct frag_err *err);
/* Is all work done that was queued before the pages of this mapping were last freed? */
bool vm_is_done(const struct vm_arena *a, const struct vm_page *head);

/* vm_place.c: where handles are mapped */

/* Maps a handle at pages that are empty, parked for now. */
int vm_place_map(struct vm *v, struct vm_arena *a, size_t page, struct vm_handle *h,
		 struct vm_place **out, struct frag_err *err);
/* The memory of a handle that is active nowhere counts at this place, under the held block b. */
void vm_place_take(struct vm *v, struct vm_block *b, struct vm_place *pl);
/* Takes a parked mapping down. pre: work before its last free is done, no graph uses it. */
int vm_place_drop(struct vm *v, struct vm_place *pl, struct frag_err *err);
/* The memory of a handle inside the free block b has left: the place is parked. */
void vm_place_park(struct vm *v, struct vm_block *b, struct vm_place *pl);
/*
 * How far into the free block b `size` bytes can get memory: no parked place in the way that can
 * neither be made active again nor unmapped yet. strict: only those that can be unmapped will do.
 * false: nowhere.
 */
bool vm_fit(struct vm *v, const struct vm_block *b, uint64_t size, bool strict, uint64_t *skip);
/* Parked places under the held block b become active where their memory is idle. The
 * others are unmapped; VM_BLOCKED if one of them is too young for that. */
int vm_revive(struct vm *v, struct vm_block *b, struct frag_err *err);

/* vm_page.c: which pages have memory */

/* Pages wholly inside [addr, addr + size). */
size_t vm_inner(const struct vm_arena *a, frag_addr_t addr, uint64_t size);
/* Of these, pages of handles that lie wholly inside; `unmapped` of them have no memory. */
size_t vm_whole(const struct vm_arena *a, frag_addr_t addr, uint64_t size, size_t unmapped);
/* The arena's table has room for pages up to `want`. */
int vm_pages_room(struct vm_arena *a, size_t want, struct frag_err *err);

/* Pages without memory that [addr, addr + size) touches. */
size_t vm_missing(const struct vm_arena *a, frag_addr_t addr, uint64_t size);

/*
 * vm_move.c, vm_fill.c: where memory comes from and goes to.
 *
 * A move has three steps. Claim: choose handles that lie wholly inside free blocks.
 * Map: their memory becomes visible at the new place as well. Commit: the new place is active,
 * the old one parked (vm_place.c). Until then nothing has changed, so that a failure
 * leaves every handle where it was or where it is now.
 */

/* Result of vm_back and vm_revive: a mapping is in the way. */
#define VM_BLOCKED 2

/* Memory under a piece that was cut off. FRAG_OOM, VM_BLOCKED and errors leave the blocks as they
 * were, but for free memory that has moved, become spare or was given back. */
int vm_back(struct vm *v, struct vm_block *b, struct frag_err *err);
/* Every page of a pool that is not needed goes back to the device. */
int vm_release(struct vm *v, uint16_t pool, struct frag_err *err);
/* Unmaps and releases everything; for the end. */
void vm_drop_pages(struct vm *v);

/* What a piece of address space still lacks. slots[k]: how many handles of span k its gaps could
 * hold; used[k]: how many of these are taken by what was provided, of span k or above. */
struct vm_need {
	size_t slots[VM_SPANS], used[VM_SPANS];
	size_t spare[VM_SPANS]; /* how many spare handles are provided */
	size_t from, to;	/* the pages */
	uint64_t size;		/* bytes asked for */
	bool ahead;		/* pages behind these are included */
};

static inline size_t vm_need_left(const struct vm_need *n)
{
	return n->slots[0] - n->used[0];
}

static inline bool vm_need_fits(const struct vm_need *n, unsigned k)
{
	for (unsigned j = 0; j <= k; j++)
		if (n->used[j] + ((size_t)1 << (k - j)) > n->slots[j])
			return false;
	return true;
}

static inline void vm_need_fill(struct vm_need *n, unsigned k)
{
	for (unsigned j = 0; j <= k; j++)
		n->used[j] += (size_t)1 << (k - j);
}

/* A handle that is active nowhere, into the spare ones of its class; out of them, the first. */
void vm_spare_put(struct vm *v, struct vm_class *c, struct vm_handle *h);
void vm_spare_pop(struct vm *v, struct vm_class *c, unsigned span);
/* Claims for arena `to` until `least` pages are left to find: from itself, then from others. */
int vm_claim(struct vm *v, struct vm_arena *to, struct vm_need *n, size_t least,
	     struct frag_err *err);
void vm_unclaim(struct vm *v);
/* All spare handles of a class but those that `keep` (may be NULL) counts go back. */
int vm_release_spares(struct vm *v, struct vm_class *c, const size_t *keep, struct frag_err *err);
/* Handles that are not needed, or do not fit where they are needed, make room for others. */
int vm_make_room(struct vm *v, uint64_t bytes, struct frag_err *err);

/* vm_walk.c */
void vm_visit(void *self, const struct frag_visitor *vis);
int vm_check(void *self, struct frag_err *err);
void vm_usage(void *self, struct frag_usage *out);

#endif
