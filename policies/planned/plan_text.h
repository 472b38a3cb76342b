/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as `cufrag plan -o` writes it: phases of requests with their sizes and offsets.
 * Phase 0 is the beginning; the others repeat, one after the other. See docs/choose.md.
 */
#ifndef FRAG_PLANNED_PLAN_TEXT_H
#define FRAG_PLANNED_PLAN_TEXT_H

#include <frag/base.h>
#include <frag/error.h>

struct plan_entry {
	uint64_t bytes, offset; /* UINT64_MAX: left to the fallback */
};

/* Requests of equal size, in their order: entries[first .. first + count). */
struct plan_size {
	uint64_t bytes;
	uint32_t first, count;
	uint32_t cursor; /* of the run: the next one to take */
};

struct plan_phase {
	uint32_t first, count; /* in entries */
	uint32_t sizes_first, sizes_count;
};

struct plan {
	uint64_t reserve_bytes;
	uint32_t prefix_marks;	    /* calls of mark before the first repeated phase */
	uint32_t phase_marks;	    /* and for each of these */
	uint32_t skip;		    /* requests after the mark that belong to the phase before */
	struct plan_entry *entries; /* phase by phase, by size, then in order */
	struct plan_size *sizes;
	struct plan_phase *phases;
	uint32_t entries_count, sizes_count, phases_count;
};

/* Errors: FRAG_EINPUT with the line, FRAG_ENOMEM; nothing is left behind. */
int plan_read(const char *path, struct plan *out, struct frag_err *err);
void plan_release(struct plan *p);
/* The requests of this size in a phase, or NULL. O(log sizes). */
struct plan_size *plan_find(struct plan *p, uint32_t phase, uint64_t bytes);

#endif
