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

#endif
