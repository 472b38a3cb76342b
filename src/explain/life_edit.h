/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits of the blocks in a range of a device's events: gone, smaller, freed earlier, requested again later. `advise` edits a whole
 * recording so, the remedies of `explain` the events up to a moment.
 *
 * A block is named by its request (born). Ownership: an edit borrows the events, and owns its lists.
 */
#ifndef FRAG_EXPLAIN_LIFE_EDIT_H
#define FRAG_EXPLAIN_LIFE_EDIT_H

#include <frag/trace.h>

#define FRAG_NEVER UINT64_MAX

struct frag_edit {
	const struct frag_event *events; /* [count], the first is number `first` */
	size_t count;
	uint64_t first;
	uint32_t slots; /* more of them as blocks are added */
	bool edited;
	/* inside */
	struct frag_change_of *of; /* [count]: of the block that is requested there; NULL: none */
	struct frag_insert *list;
	size_t inserts, cap;
};

/* Changes its size; 0: there is no such block. Errors of all: FRAG_ENOMEM. */
int frag_edit_resize(struct frag_edit *e, uint64_t born, uint64_t bytes, struct frag_err *err);
/* Frees it before event `at`, if that is earlier than recorded (died). */
int frag_edit_end(struct frag_edit *e, uint64_t born, uint64_t died, uint64_t at,
		  struct frag_err *err);
/* Adds a block like it, requested before event `from` and freed before event `to` (FRAG_NEVER: never). Nothing is added behind the
 * last event; additions at one event keep the order of the calls. */
int frag_edit_add(struct frag_edit *e, uint64_t born, uint64_t from, uint64_t to,
		  struct frag_err *err);
/* One half of it: the request or free, in this slot. A new slot is e->slots++. */
int frag_edit_half(struct frag_edit *e, uint64_t born, uint8_t kind, uint32_t slot, uint64_t at,
		   struct frag_err *err);
/* Adds an event, which follows the size of a block (FRAG_NEVER: of none). */
int frag_edit_insert(struct frag_edit *e, uint64_t at, uint64_t born, struct frag_event event,
		     struct frag_err *err);
/* The edited events, in new memory. */
int frag_edit_apply(struct frag_edit *e, struct frag_event **out, size_t *count,
		    struct frag_err *err);
void frag_edit_release(struct frag_edit *e);

#endif
