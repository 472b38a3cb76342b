/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the processes of a layout begin. Python starts anew for the first; what it had imported when it asked for a card is then
 * loaded once, in a process from which those of later layouts are forked (start/fork_server.h). That one runs a layout
 * whose result is known, too; results of the others count only if its result is the same.
 */
#ifndef FRAG_LAYOUT_LAYOUT_FORKS_H
#define FRAG_LAYOUT_LAYOUT_FORKS_H

#include <sys/types.h>

#include "pretend/layout/layouts.h"

enum frag_layout_way {
	FRAG_LAYOUT_ANEW,
	FRAG_LAYOUT_FIRST, /* anew, and described */
	FRAG_LAYOUT_FORKED,
	FRAG_LAYOUT_TRIAL, /* forked, to compare */
};

struct frag_layout_forks {
	const char *folder;
	enum frag_layout_way way; /* of forks it is known that they count: FORKED; else not yet */
	size_t point;		  /* of the trial; SIZE_MAX = it has begun */
	pid_t server;		  /* 0 = none */
	bool scouted;		  /* the first layout has a scout, after which the server begins */
};

void frag_layout_forks_init(struct frag_layout_forks *f, const struct frag_layouts *x,
			    const char *folder);
/* In the process of a layout. */
void frag_layout_forks_enter(const struct frag_layout_forks *f, enum frag_layout_way way,
			     struct frag_layouts *x);
/* How this point begins. */
enum frag_layout_way frag_layout_forks_way(struct frag_layout_forks *f,
					   const struct frag_layouts *x, size_t point);
/* Nothing else begins yet: Python would load everything once more, and soon it can be forked. */
bool frag_layout_forks_hold(const struct frag_layout_forks *f);
/* While the first layout runs: true once the server has begun. */
bool frag_layout_forks_begin(struct frag_layout_forks *f, const struct frag_layouts *x);
/* Was it forked before the trial has shown whether it counts? */
bool frag_layout_forks_early(const struct frag_layout_forks *f, enum frag_layout_way way);
/* A layout came to its end. False: its result is not to be taken, and it may run again. */
bool frag_layout_forks_ended(struct frag_layout_forks *f, enum frag_layout_way way,
			     const struct frag_layouts *x, size_t point,
			     const struct frag_layout_result *r);
void frag_layout_forks_end(struct frag_layout_forks *f);

/* The file for the roles of jobs that have the ranks of this one: all with the same values but of what rises or falls, and of
 * recomputation. any_world: whatever the number of ranks is. */
void frag_layout_roles_path(const struct frag_layouts *x, size_t layout, bool any_world, char *path,
			    size_t cap);

#endif
