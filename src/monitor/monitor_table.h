/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a round on the screen: sorted, one chosen, which stays so where it moves. */
#ifndef FRAG_MONITOR_TABLE_H
#define FRAG_MONITOR_TABLE_H

#include "monitor.h"
#include "paint.h"

struct frag_monitor_table {
	unsigned column; /* by which it is sorted; 0: as cards list them */
	bool reverse;
	bool chosen; /* a process is: this one on this card */
	unsigned pid, card;
	int top, shift; /* first row, and first column of the command line, that is seen */
	int room;	/* rows seen the last time */
};

/* Into `room` rows from the row in hand on, the head included. */
void frag_monitor_table_draw(struct frag_monitor_table *t, struct frag_paint *paint,
			     const struct frag_monitor_round *r, int room);
/* True: the key was for the table. */
bool frag_monitor_table_key(struct frag_monitor_table *t, const struct frag_monitor_round *r,
			    uint32_t key);
/* The chosen process; NULL: none is, or it has ended. */
const struct frag_monitor_process *frag_monitor_table_chosen(const struct frag_monitor_table *t,
							     const struct frag_monitor_round *r);
unsigned frag_monitor_table_count(const struct frag_monitor_round *r);

#endif
