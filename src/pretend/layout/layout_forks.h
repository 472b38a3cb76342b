/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the processes of a layout start. The first layout starts Python itself; the modules that it
 * had imported at its first use of a card are then loaded once, in a server from which processes of
 * later layouts are forked (start/fork_server.h). The server also re-runs a known layout; forked
 * results are used only if it matches.
 */
#ifndef FRAG_LAYOUT_LAYOUT_FORKS_H
#define FRAG_LAYOUT_LAYOUT_FORKS_H

#include <sys/types.h>

#include "pretend/layout/layouts.h"

enum frag_layout_way {
	FRAG_LAYOUT_ANEW,
	FRAG_LAYOUT_FIRST, /* a new Python, described for the server */
	FRAG_LAYOUT_FORKED,
	FRAG_LAYOUT_TRIAL, /* forked, to compare results */
};

struct frag_layout_forks {
	const char *folder;
	enum frag_layout_way
		way;  /* FORKED once forked results are known to be valid; else not yet */
	size_t point; /* of the trial; SIZE_MAX = it has started */
	pid_t server; /* 0 = none */
	bool scouted; /* the first layout has a scout; the server starts after it */
};

void frag_layout_forks_init(struct frag_layout_forks *f, const struct frag_layouts *x,
			    const char *folder);
/* In the process of a layout. */
void frag_layout_forks_enter(const struct frag_layout_forks *f, enum frag_layout_way way,
			     struct frag_layouts *x);
/* How this point starts. */
enum frag_layout_way frag_layout_forks_way(struct frag_layout_forks *f,
					   const struct frag_layouts *x, size_t point);
/* Wait: a new Python would load everything again, and soon it can be forked. */
bool frag_layout_forks_hold(const struct frag_layout_forks *f);
/* While the first layout runs: true once the server has begun. */
bool frag_layout_forks_begin(struct frag_layout_forks *f, const struct frag_layouts *x);
/* Was it forked before the trial validated forks? */
bool frag_layout_forks_early(const struct frag_layout_forks *f, enum frag_layout_way way);
/* A layout has ended. False: discard its result; it may run again. */
bool frag_layout_forks_ended(struct frag_layout_forks *f, enum frag_layout_way way,
			     const struct frag_layouts *x, size_t point,
			     const struct frag_layout_result *r);
void frag_layout_forks_end(struct frag_layout_forks *f);

/* Path of the roles for jobs with the same ranks: equal values, except along ordered names and
 * recomputation. any_world: independent of the number of ranks. */
void frag_layout_roles_path(const struct frag_layouts *x, size_t layout, bool any_world, char *path,
			    size_t cap);

#endif
