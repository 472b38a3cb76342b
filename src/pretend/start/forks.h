/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One Python process from which the processes of many runs are forked
 * (src/pretend/python/cufrag_forks.py). Files in a folder of the caller's:
 *
 *	first	the first process that was to become a Python: its command and environment
 *	modules	the modules that it had imported at its first use of a card
 *	ask	the socket of the server
 *	read	files that the server read
 *
 * Order: frag_forks_note in the processes of the first run, begin, then frag_forks_use in those of
 * every other run. Processes that the server cannot fork are started as usual, with the same
 * result.
 */
#ifndef FRAG_LAUNCH_FORKS_H
#define FRAG_LAUNCH_FORKS_H

#include <stdbool.h>
#include <sys/types.h>

#define FRAG_FORKS_LOST 125 /* exit status of a process whose server was killed */

/* For this process and its children: Python processes are described in `folder` (note) or forked by
 * the server there (use). */
void frag_forks_note(const char *folder);
void frag_forks_use(const char *folder);
/* Starts the server, if a process was described; returns its pid, 0 = none. It ends with this
 * process. */
pid_t frag_forks_begin(const char *folder);
void frag_forks_end(pid_t server);

/* Acts for a process that the server forks, and ends with its status. Returns if the server does
 * not fork. */
void frag_forks_become(char *const *program);

#endif
