/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of following a recording, only for follow*.c. */
#ifndef FRAG_VERIFY_FOLLOW_INTERNAL_H
#define FRAG_VERIFY_FOLLOW_INTERNAL_H

#include "follow.h"
#include "replay/run.h"

struct follow {
	const struct frag_trace_dev *td;
	struct frag_device *dev;
	struct frag_run *run;
	struct follow_report *r;
	size_t cursor; /* next segment event of the evidence */
	uint64_t event;
	bool restoring;
	size_t restored; /* initial segments placed so far */
	struct {
		frag_addr_t base;
		uint64_t bytes;
		uint64_t mapped;
	} * ranges; /* existing reservations */
	size_t ranges_count, ranges_cap;
	uint64_t syncs_before, begin_bytes;
	bool short_of_memory;
};

/* The segment event that the recording shows next for the current event, NULL if none. */
static inline const struct frag_evidence *expected(const struct follow *f)
{
	const struct frag_evidence *e = &f->td->seen[f->cursor];

	return f->cursor < f->td->seen_count && e->before == f->event ? e : NULL;
}

/* follow_card.c: the card's place hook (frag_sim_config.place); FRAG_OOM: refused. */
int follow_place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr);
/* Updates the pages of a reservation, which ends with its last page. */
void follow_note_pages(struct follow *f, enum frag_segment_event kind, frag_addr_t addr,
		       uint64_t bytes);

/* Index of the reservation with this address; ranges_count if there is none. */
size_t follow_range_at(const struct follow *f, frag_addr_t addr);

/* follow_late.c: can the unknown part of the initial state cause the difference? pre: a difference,
 * with the policy in that state. */
bool follow_is_open(const struct follow *f);

#endif
