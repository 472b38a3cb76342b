/* SPDX-License-Identifier: Apache-2.0 */
/* The roles of a job's ranks: one rank of each runs, and some more to check it
 * (src/pretend/python/cufrag_roles.py, which writes the file that is read here). */
#ifndef FRAG_LAUNCH_ROLES_H
#define FRAG_LAUNCH_ROLES_H

#include <stdio.h>

#include <frag/error.h>
#include <frag/trace.h>

struct frag_launch;

struct frag_role {
	unsigned rank;
	char *stands; /* for these ranks, "0-7,64" */
	char *alike;  /* of these, ranks that ran as checks and made the same requests; "" = none */
	char *unlike; /* … and other requests */
};

struct frag_role_check {
	unsigned rank, role;
};

struct frag_roles {
	unsigned *runs;	 /* a process each */
	unsigned *order; /* all of the job; ranks connected by pipelines are adjacent */
	struct frag_role *list;
	struct frag_role_check *checks;
	char groups[64]; /* "COUNT HASH" of the job's groups; "" = not known */
	size_t runs_count, runs_room, order_count, order_room, count, room, checks_count,
		checks_room;
};

void frag_roles_path(char *path, size_t room, const char *folder);
/* Reads the file in the folder; no file: no roles. */
int frag_roles_read(const char *folder, struct frag_roles *out, struct frag_err *err);
/* Writes the file for a turn in which these ranks run. */
int frag_roles_write(const struct frag_roles *r, const char *folder, const unsigned *ranks,
		     size_t count, struct frag_err *err);
/* Roles known from a job with the same groups, without check ranks. False: none. */
bool frag_roles_know(struct frag_roles *out, const char *path);
/* Rank 0 stands for all. */
int frag_roles_alike(struct frag_roles *out, unsigned world, struct frag_err *err);
/* No process made a group: ranks are independent, rank 0 stands for all, and the last one checks
 * it. */
int frag_roles_read_alone(const char *folder, struct frag_roles *out, struct frag_err *err);
/* Writes the roles of the job in `folder` to `path`, atomically, and to `alike` if there is one
 * role: only if every check rank equalled its role. note: of its recording. */
void frag_roles_pass_on(const char *folder, const char *note, const char *path, const char *alike);
void frag_roles_release(struct frag_roles *r);
/* The rank against which `rank` is checked; -1: it is no check. */
long frag_roles_checked(const struct frag_roles *r, long rank);
/* Records a check: did it make the same requests? */
int frag_roles_found(struct frag_roles *r, unsigned rank, unsigned role, bool same,
		     struct frag_err *err);
/* Tells the user; and as lines of the note, "role RANK STANDS ALIKE UNLIKE", - for none. */
void frag_roles_tell(const struct frag_launch *l, const struct frag_roles *r);
void frag_roles_put(FILE *to, const struct frag_roles *r);

#endif
