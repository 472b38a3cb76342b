/* SPDX-License-Identifier: Apache-2.0 */
/* A process and all its descendants. */
#ifndef FRAG_LAUNCH_FAMILY_H
#define FRAG_LAUNCH_FAMILY_H

#include <stdint.h>
#include <sys/types.h>

/* Resident bytes of the host that lie in no file; 0: nothing could be read. */
uint64_t frag_launch_family_bytes(pid_t pid);

/*
 * Kills the other processes of pid's group, and the descendants of all, also those that began a
 * session of their own; those whose parents have ended only where pid takes them over
 * (PR_SET_CHILD_SUBREAPER). pid itself must not start any meanwhile.
 */
void frag_launch_family_kill(pid_t pid);

/* Asks all descendants to end (SIGTERM), but not pid itself. */
void frag_launch_family_ask(pid_t pid);

#endif
