/* SPDX-License-Identifier: Apache-2.0 */
/* A process of cufrag's own, in which it records a program beside others; advise and layout have several at a time. */
#ifndef FRAG_LAUNCH_CHILD_H
#define FRAG_LAUNCH_CHILD_H

#include <frag/error.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct frag_child {
	pid_t pid; /* 0: none */
	uint64_t begin_ns;
	uint64_t asked_ns; /* to end; 0: not */
	char log[4200];	   /* of its output */
};

/*
 * Starts one, in a process group of its own; c->log is set. In the child c->pid is 0, standard
 * input is empty, and output goes to the log; it ends with frag_child_leave. Errors: FRAG_ENOMEM.
 */
int frag_child_begin(struct frag_child *c, struct frag_err *err);
void frag_child_leave(int status) __attribute__((noreturn));
/* To be called until it has ended: asks for it, and kills all of it after a grace period. */
void frag_child_end(struct frag_child *c);
/* True: it has ended, so c->pid is 0. *state as of waitpid. What it started is killed. */
bool frag_child_ended(struct frag_child *c, int *state);

/*
 * One Python process, from which those of many runs are forked
 * (src/pretend/python/cufrag_fork_server.py, which has the messages). In a folder of the caller's:
 *
 *	first	how the first Python was started, as a command of a shell that starts the server
 *	modules	what a process had imported when it asked for a card; modules.late: what at its end
 *	ask	the socket of the server
 *	read	files that the server read
 *
 * The first run has CUFRAG_PRETEND_MODULES in its environment, FOLDER/modules; then the server
 * begins, and every other run has CUFRAG_PRETEND_FORKS, FOLDER/ask. What the server cannot fork is
 * started anew, with the same result.
 *
 * Starts the server, if a Python was described: its process, 0 = none. It ends with this one.
 */
pid_t frag_forks_begin(const char *folder);
void frag_forks_end(pid_t server);

#endif
