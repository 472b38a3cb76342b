/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the processes of a layout start. The first layout starts Python itself; the modules that it
 * had imported are then loaded once, in a server from which processes of later layouts are forked
 * (start/fork_server.h), if a fork of that layout, its trial, gives the same result.
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
	enum frag_layout_way way; /* of the next layout; TRIAL: anew, until the trial has ended */
	size_t trial;		  /* point of a trial that has to start; SIZE_MAX = none */
	pid_t server;		  /* 0 = none */
};

void frag_layout_forks_init(struct frag_layout_forks *f, const struct frag_layouts *x,
			    const char *folder);
/* In the process of a layout. */
void frag_layout_forks_enter(const struct frag_layout_forks *f, enum frag_layout_way way,
			     struct frag_layouts *x);
/* How this point starts. */
enum frag_layout_way frag_layout_forks_way(const struct frag_layout_forks *f,
					   const struct frag_layouts *x, size_t point);
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
