/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run on the pretended card: its environment (pretend_environment.c), its ranks
 * (pretend_ranks.c), their roles (roles.c), recordings of earlier calls (kept.c), and the whole.
 */
#ifndef FRAG_LAUNCH_PRETEND_INTERNAL_H
#define FRAG_LAUNCH_PRETEND_INTERNAL_H

#include <stdio.h>

#include "pretend/start/held_runs.h"
#include "start.h"

/* ---- recordings of earlier calls (kept.c) ------------------------------------------------ */

/*
 * Cache of recordings without a GPU: two files in the user's cache,
 *
 *	$XDG_CACHE_HOME/cufrag/recordings/KEY.cft
 *	$XDG_CACHE_HOME/cufrag/recordings/KEY.files	"status N", then "SIZE MTIME_NS PATH" for each file read
 *
 * KEY is a hash of all inputs at the start: command line, folder, environment, card, options,
 * release of cufrag. A recording is valid while the files that the program read are unchanged. It
 * is not kept if that cannot be known: standard input is a pipe, the program read a file that
 * changed meanwhile, or a signal ended it. Queries (whether a file exists, time, network) are not
 * tracked.
 */
struct frag_kept {
	char *stem;	  /* path without ending; NULL: nothing is kept */
	char *text;	  /* what .files will hold; NULL: it must not be kept */
	int64_t begun_ns; /* the program's start */
};
/* Computes the key. An unusable cache is no failure. */
void frag_kept_init(struct frag_kept *k, const struct frag_launch *l, const struct frag_pretend *o,
		    char **program, const struct frag_inject_files *files);
void frag_kept_release(struct frag_kept *k);
/* The cached recording, if it is valid; else false. */
bool frag_kept_get(const struct frag_kept *k, const struct frag_launch *l, struct frag_trace **out,
		   int *status);
/* After the run: reads `list`, written by the program's processes; own: folders of cufrag, which do
 * not count. */
void frag_kept_read(struct frag_kept *k, const char *list, int status, const char *const *own);
/* Stores it; drops the oldest beyond 2 GiB in total. */
void frag_kept_put(const struct frag_kept *k, const struct frag_trace *trace);

/* ---- roles (roles.c) ----------------------------------------------------------------------- */

/* The roles of a job's ranks: one rank of each runs, and some more to check it
 * (src/pretend/python/cufrag_roles.py, which writes the file that is read here). */
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
/* No process made a group: ranks are independent, rank 0 stands for all, and the last one checks
 * it. */
int frag_roles_read_alone(const char *folder, struct frag_roles *out, struct frag_err *err);
/* Writes the roles of the job in `folder` to `path`, atomically: only if every check rank equalled
 * its role. note: of its recording. */
void frag_roles_pass_on(const char *folder, const char *note, const char *path);
void frag_roles_release(struct frag_roles *r);
/* The rank against which `rank` is checked; -1: it is no check. */
long frag_roles_checked(const struct frag_roles *r, long rank);
/* Records a check: did it make the same requests? */
int frag_roles_found(struct frag_roles *r, unsigned rank, unsigned role, bool same,
		     struct frag_err *err);
/* Tells the user; and as lines of the note, "role RANK STANDS ALIKE UNLIKE", - for none. */
void frag_roles_tell(const struct frag_launch *l, const struct frag_roles *r);
void frag_roles_put(FILE *to, const struct frag_roles *r);

/* ---- the run --------------------------------------------------------------------------------- */

#define FRAG_PRETEND_RANKS 1024u

struct pretend_job {
	const struct frag_launch *l;
	const struct frag_pretend *o;
	struct frag_inject_files files;
	struct frag_kept kept; /* where a recording may be reused */
	char folder[4096];     /* "" = none yet */
	unsigned ranks[FRAG_PRETEND_RANKS];
	unsigned ranks_count, world, gpus;
	bool roles;	      /* one rank of each, which a scout finds */
	bool roles_known;     /* they are those of another job */
	uint64_t scout_bytes; /* of the host, that it needed */
};

/* In the process of the program, before it begins. */
void frag_pretend_put_all(const struct pretend_job *j);
void frag_pretend_put_rank(const struct pretend_job *j, unsigned rank);

/* The pretended cards, in the process of the program: as many as the user asked for; 0 = not asked, then as many as are needed. */
void frag_pretend_environment(const struct frag_launch *l, const struct frag_inject_files *files,
			      unsigned asked, unsigned needed, const char *values);

/* "0,7", "0-3,8" or "roles": which ranks run, and of how many. */
int frag_pretend_parse_ranks(struct pretend_job *j, struct frag_err *err);
/* Of --values. Errors: FRAG_EUSAGE, FRAG_EINPUT with file and line. */
int frag_pretend_check_values(const char *values, struct frag_err *err);
/* Runs them, or the program itself if there are none. */
int frag_pretend_run_ranks(struct pretend_job *j, char **program, int *status,
			   struct frag_err *err);

#endif
