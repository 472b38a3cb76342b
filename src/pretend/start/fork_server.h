/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One Python process, from which those of many runs are forked
 * (src/pretend/python/cufrag_fork_server.py). In a folder of the caller's:
 *
 *	first	a process that was to become a Python: its request, as below
 *	modules	what that process had imported when it asked for a card
 *	ask	the socket of the server
 *	read	files that the server read
 *
 * Order: frag_forks_note in the processes of the first run, begin, then frag_forks_use in those of
 * every other. What the server cannot fork is started anew, with the same result.
 *
 * A process that would become a Python connects and sends, with its standard files,
 *
 *	BYTES PYTHON WORDS GROUP UMASK\n  bytes that follow, words of Python and its options, all words, process group
 *
 * then the words, NAME=VALUE for each variable, and the working directory, a zero byte behind each.
 * The answer is "no", or "pid N" and, when that process has ended, "end STATUS" as of waitpid. If the
 * other side goes away first, the process is killed.
 */
#ifndef FRAG_LAUNCH_FORKS_H
#define FRAG_LAUNCH_FORKS_H

#include <stdbool.h>
#include <sys/types.h>

#define FRAG_FORKS_LOST 125 /* status of a process of which the server was ended */

/* In this process and its children: a Python of theirs is described in `folder` (note) or comes from the server there (use). */
void frag_forks_note(const char *folder);
void frag_forks_use(const char *folder);
/* Starts the server, if a process was described: its process, 0 = none. It ends with this one. */
pid_t frag_forks_begin(const char *folder);
void frag_forks_end(pid_t server);

#endif
