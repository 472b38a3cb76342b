/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where addresses decide. Two replays of the same events with the same settings, the recorded
 * one and one at other addresses, differ only in addresses until a request is served from another
 * block. Segments correspond by order: the n-th taken in one is the n-th taken in the other.
 * Ignores expandable segments.
 */
#ifndef FRAG_VERIFY_ADDRESS_CHOICE_H
#define FRAG_VERIFY_ADDRESS_CHOICE_H

#include "watch.h"

/* Segments at one moment, by address. */
struct numbered_segment {
	frag_addr_t addr;
	uint64_t bytes;
	uint64_t number; /* in the order in which they were taken */
};

struct numbered_segments {
	struct numbered_segment *items;
	size_t count, cap;
	uint64_t taken;
};

struct tie {
	struct numbered_segments there, here; /* recorded, replayed */
	size_t cursor;			      /* next evidence */
	bool ended;			      /* found, or nothing more can be found: stop */
	bool equal; /* found, and the two blocks had the same size: a tie */
	bool short_of_memory;
	char text[400]; /* the first request served elsewhere; "" = none found */
};

/* After each event of the replay. pre: the trace has evidence. */
void tie_look(struct tie *t, const struct watch *w);
void tie_release(struct tie *t);

#endif
