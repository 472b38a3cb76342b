/* SPDX-License-Identifier: Apache-2.0 */
/* One run on the pretended card: its environment (pretend_environment.c), its ranks (pretend_ranks.c), and the whole. */
#ifndef FRAG_LAUNCH_PRETEND_INTERNAL_H
#define FRAG_LAUNCH_PRETEND_INTERNAL_H

#include "pretend/start/held_runs.h"
#include "pretend/start/kept.h"
#include "start.h"

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
