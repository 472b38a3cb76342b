/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that does a piece of work and tells its answer over a pipe, until its end. What crashes
 * there, hangs or wants all memory takes nothing else with it.
 */
#ifndef FRAG_BASE_WORKER_H
#define FRAG_BASE_WORKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <frag/error.h>

struct frag_worker {
	pid_t pid;    /* 0 = none */
	int from;     /* pipe */
	size_t task;  /* what it works on: the caller's number */
	char *answer; /* as far as it came; ended by a zero once it is whole */
	size_t len, cap;
};

/* Starts a process that calls work(ctx, task, to) and ends. Signals of the terminal are for the
 * caller. Errors: FRAG_ENOMEM and what the system says. */
int frag_worker_start(struct frag_worker *w, size_t task,
		      void (*work)(const void *ctx, size_t task, int to), const void *ctx,
		      struct frag_err *err);
/* Inside of it: no more host memory than this; 0 = a share of this machine's. */
void frag_worker_bound(uint64_t bytes, unsigned share);
/* Inside of it: adds to the answer; ends the process if the caller has ended. */
void frag_worker_tell(int to, const char *text, size_t len);
/* Takes what has come. 1: w->answer is whole; 0: not yet; <0: it failed, why[120]. It has ended
 * then. */
int frag_worker_take(struct frag_worker *w, char *why);
/* Calls look for each, again and again, until all are idle or the user interrupts: it takes
 * what one that works has said, and starts one that does not (pid 0) while there are tasks. */
int frag_workers_run(struct frag_worker *list, size_t count,
		     int (*look)(void *ctx, struct frag_worker *w, struct frag_err *err), void *ctx,
		     struct frag_err *err);
/* Ends it, whatever it does. */
void frag_worker_end(struct frag_worker *w);

#endif
