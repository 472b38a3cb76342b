/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data structures of the policy `gmlake`; the rules are at the head of gmlake.c.
 *
 *   gl_seg.c     segments of separately created pages, their pieces, giving back
 *   gl_stitch.c  stitched blocks: making, taking, dropping
 *   gl_large.c   large requests: the order of the steps
 *   gl_walk.c    visit, check, usage
 *
 * Words. page: 2 MiB of physical memory, one handle, mapped in its segment for good and in any
 * number of stitched blocks. piece: contiguous pages of a segment (the paper's pBlock), free,
 * live, waiting, or in use through a stitched block, its owner. stitch: a second range of
 * addresses over pages of several pieces (sBlock); active, free (all its pages are), or broken
 * (some are in use), or dead (a driver call failed on it; it only waits for its end). extent:
 * the part of a stitch in one segment.
 *
 * Invariants: pieces of a segment are gapless; free neighbours are merged (code); every free
 * piece is in the set of its stream; stitch->free_pages counts its free pages; a stitch is in
 * the set of its stream if and only if it is free; inactive ones are in the list of their
 * stream, in order of their last free. A segment is idle if nothing in it is in use and no
 * active stitch has an extent in it: only then it can go.
 */
#ifndef FRAG_GL_H
#define FRAG_GL_H

#include <frag/policy.h>

#include <bestfit.h>
#include "lib/links.h"
#include "lib/slabs.h"

#define GL_PAGE FRAG_PAGE

struct gl_seg;
struct gl_stitch;

/* The last use of a block: number of the free, and the event recorded for it (0 = none). */
struct gl_event {
	uint64_t number, fence;
};

struct gl_piece {
	frag_addr_t addr;
	uint64_t bytes;
	struct gl_piece *prev, *next;
	struct gl_seg *seg;
	struct gl_stitch *owner;
	struct gl_event event;
	uint8_t state; /* enum frag_block_state; of one with an owner see there */
};

struct gl_extent {
	struct gl_stitch *stitch;
	struct gl_seg *seg;
	struct gl_extent *prev, *next; /* in seg->extents */
	uint32_t from, count;	       /* pages */
};

struct gl_seg {
	frag_addr_t addr; /* 0 = not reserved */
	uint64_t bytes;
	uint32_t pages, created,
		mapped; /* all; with a handle; that are mapped here, from the first */
	uint32_t busy;	/* pieces in use + extents of active stitches */
	uint32_t stream;
	struct gl_piece *first; /* NULL: going, a driver call failed while it was given back */
	struct gl_extent *extents;
	struct gl_piece **at; /* [pages]: the piece that starts there, NULL: none */
	uint64_t handles[];   /* [pages] */
};

enum gl_stitch_state { GL_LIVE, GL_WAITING, GL_INACTIVE, GL_DEAD };

struct gl_stitch {
	frag_addr_t addr; /* 0 = not reserved */
	uint64_t bytes;
	uint32_t pages, mapped, free_pages, used_pages; /* used: from the first */
	uint32_t stream;
	enum gl_stitch_state state;
	struct gl_event event;
	struct gl_stitch *older, *newer; /* in the list of its stream */
	uint32_t extents_count;
	struct gl_extent extents[];
};

struct gl_stream {
	struct frag_bset large;		   /* free pieces by (size, address) */
	uint64_t large_bytes;		   /* sum of `large` */
	struct frag_bset stitches;	   /* free stitches, the same way */
	struct gl_stitch *oldest, *newest; /* inactive and dead ones */
};

enum gl_variant { GL_CODE, GL_PAPER };

struct gl_params {
	uint64_t variant, frag_limit, defrag_level, auto_gc, lag_us;
	double reuse_limit;
	bool stitch, realloc;
};

struct gl {
	struct frag_policy_env env;
	const struct gl_params *params;
	bool paper;
	uint64_t frag_limit, small_max;
	struct frag_best small; /* a set for each stream */
	struct frag_slab pieces;
	struct frag_slab nodes; /* of the sets of the streams */
	struct gl_stream *streams;
	uint32_t streams_count;
	struct frag_bset segs;		   /* by address */
	size_t segs_count;		   /* of these, that have memory */
	uint64_t going_bytes, going_count; /* of these, that are going */
	size_t stitches_count;
	uint64_t stitched_bytes; /* address space of all stitches */
	uint64_t live_bytes, waiting_bytes, large_bytes, idle_bytes;
	uint64_t events;
	uint64_t made_stitches, reused_stitches;
};

static inline uint32_t gl_page_of(const struct gl_piece *p)
{
	return (uint32_t)((p->addr - p->seg->addr) / GL_PAGE);
}

/* What the handle of a block points to, in its low bits. */
enum { GL_KIND_SMALL, GL_KIND_PIECE, GL_KIND_STITCH, GL_KIND_MASK };

/* gl_seg.c */

/* Host memory for `more` large pieces (and one stitch). 0 or FRAG_ENOMEM. */
int gl_room(struct gl *g, size_t more);
/* A new segment, as one free piece that is in no set. 0, FRAG_OOM or an error.
 * *no_space: it was refused for want of address space. */
int gl_seg_new(struct gl *g, uint32_t stream, uint64_t bytes, struct gl_piece **out, bool *no_space,
	       struct frag_err *err);
void gl_free_insert(struct gl *g, struct gl_piece *p);
void gl_free_erase(struct gl *g, struct gl_piece *p);
/* Cuts a free piece that is in no set; returns the rest. pre: room. */
struct gl_piece *gl_split(struct gl *g, struct gl_piece *p, uint64_t bytes);
/* The piece that a page belongs to. */
struct gl_piece *gl_piece_at(const struct gl_seg *seg, uint32_t page);
/* A free piece, out of its set, comes into use, through a stitch or (NULL) by itself. */
void gl_use(struct gl *g, struct gl_piece *p, struct gl_stitch *owner);
/* The contrary: free, merged (code only), in its set. */
void gl_unuse(struct gl *g, struct gl_piece *p);
void gl_busy(struct gl *g, struct gl_seg *seg, int change);
/* Gives back every idle segment, and what earlier failures left. */
int gl_release_idle(struct gl *g, struct frag_err *err);
/* Waits for pending frees; then everything idle goes, large segments first. */
int gl_release_all(struct gl *g, struct frag_err *err);
void gl_drop_segs(struct gl *g);

/* The segments by address; NULL at the end. */
static inline struct gl_seg *gl_seg_from(const struct gl *g, frag_addr_t addr)
{
	return frag_bset_value(frag_bset_lower(&g->segs, addr, 0));
}

static inline struct gl_seg *gl_seg_next(const struct gl *g, const struct gl_seg *seg)
{
	return gl_seg_from(g, seg->addr + 1);
}

/* gl_stitch.c */

/* Pages of a segment came into use (sign -1) or became free (1). */
void gl_toggle(struct gl *g, struct gl_seg *seg, uint32_t from, uint32_t count, int sign);
/*
 * Stitches free pieces of a stream, not below `least`, from the largest down, then `extra` (may
 * be NULL), to just `bytes`, and takes them into use. *out NULL: there are not enough, or no
 * address space. 0 or an error.
 */
int gl_stitch_make(struct gl *g, uint32_t stream, uint64_t bytes, uint64_t least,
		   struct gl_piece *extra, struct gl_stitch **out, struct frag_err *err);
/* Sum of the free pieces that this would use. */
uint64_t gl_stitch_sum(const struct gl *g, uint32_t stream, uint64_t least);
/* A stitch over one free piece, for later: the paper's split. No address space is no error. */
int gl_stitch_keep(struct gl *g, struct gl_piece *p, struct frag_err *err);
/* The first pages of a free stitch come into use. */
int gl_stitch_take(struct gl *g, struct gl_stitch *s, uint32_t pages, struct frag_err *err);
void gl_stitch_free(struct gl *g, struct gl_stitch *s);
/* Unmaps an inactive stitch and forgets it. On an error it is dead. */
int gl_stitch_drop(struct gl *g, struct gl_stitch *s, struct frag_err *err);
void gl_stitch_state(struct gl *g, struct gl_stitch *s, enum gl_stitch_state state);
void gl_link_extents(struct gl_stitch *s);
bool gl_stitch_is_free(const struct gl_stitch *s);
/* Drops inactive stitches, oldest first: of round 0 broken ones only, up to 4 * need;
 * of round 1 up to 16 * need, then all free ones; of round 2 everything. */
int gl_collect(struct gl *g, unsigned round, uint64_t need, struct frag_err *err);
/* Paper: down to the bound, least recently used first. */
int gl_stitch_trim(struct gl *g, struct frag_err *err);
void gl_drop_stitches(struct gl *g);

/* gl_large.c */
int gl_large_alloc(struct gl *g, uint32_t stream, uint64_t bytes, struct frag_block *out,
		   struct frag_err *err);

/* gl_walk.c */
void gl_visit(void *self, const struct frag_visitor *v);
void gl_usage(void *self, struct frag_usage *out);
int gl_check(void *self, struct frag_err *err);

#endif
