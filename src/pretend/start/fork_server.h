/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One Python process, from which those of many runs are forked
 * (src/pretend/python/cufrag_fork_server.py, which has the messages). In a folder of the caller's:
 *
 *	first	how the first Python was started, as a command of a shell that starts the server
 *	modules	what a process had imported when it asked for a card; modules.late: what at its end
 *	ask	the socket of the server
 *	read	files that the server read
 *
 * The first run has CUFRAG_PRETEND_MODULES in its environment, FOLDER/modules; then the server begins, and every other run has
 * CUFRAG_PRETEND_FORKS, FOLDER/ask. What the server cannot fork is started anew, with the same result.
 */
#ifndef FRAG_LAUNCH_FORKS_H
#define FRAG_LAUNCH_FORKS_H

#include <sys/types.h>

/* Starts the server, if a Python was described: its process, 0 = none. It ends with this one. */
pid_t frag_forks_begin(const char *folder);
void frag_forks_end(pid_t server);

#endif
