/* SPDX-License-Identifier: Apache-2.0 */
/* Live bytes by whole stack, for flamegraph.pl, speedscope.app and pprof. */
#ifndef FRAG_TRACE_STACKS_H
#define FRAG_TRACE_STACKS_H

#include "explain/replay_cursor.h"
#include "recording/sites.h"

struct frag_live_stacks {
	const char *name; /* of the profile */
	const struct frag_sites *sites;
	const struct frag_heap_view *view;
};

/* Each into a file, complete or absent; "-": standard output. Errors: FRAG_EOUTPUT, FRAG_ENOMEM. */
/* "outermost;…;innermost bytes", as flamegraph.pl and inferno read it. */
int frag_live_stacks_put_folded(const struct frag_live_stacks *s, const char *path,
				struct frag_err *err);
int frag_live_stacks_put_speedscope(const struct frag_live_stacks *s, const char *path,
				    struct frag_err *err);
/* A profile of one type: live bytes. */
int frag_live_stacks_put_pprof(const struct frag_live_stacks *s, const char *path,
			       struct frag_err *err);

#endif
