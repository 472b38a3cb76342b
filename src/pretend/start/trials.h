/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program run several times on the pretended card: as it is, then with changes in its process
 * (src/pretend/python/cufrag_changes).
 *
 * What the run as it is had imported is loaded once more, in a server from which the others are
 * forked (fork_server.h). Run number N leaves its recordings in FOLDER/N.
 *
 *	frag_trials_begin(&t, err);  … the run as it is has ended: number 0
 *	frag_trials_start(&t, "checkpoint+fused", seconds, &n, err);
 *	while (!frag_trials_ended(&t, n, &status, &late)) …
 *	frag_trials_end(&t);
 */
#ifndef FRAG_LAUNCH_TRIALS_H
#define FRAG_LAUNCH_TRIALS_H

#include <sys/types.h>

#include "pretend/start/start.h"

#define FRAG_TRIALS_MAX 128u

/* launch, pretend and program are the caller's, borrowed. Zero: nothing to end. */
struct frag_trials {
	struct frag_launch launch;
	const struct frag_pretend *pretend;
	char **program;
	char folder[3000];
	unsigned seconds; /* that the run as it is may take; 0 = any */
	unsigned count;
	pid_t pids[FRAG_TRIALS_MAX]; /* 0: it has ended */
	uint64_t until_ns[FRAG_TRIALS_MAX];
	pid_t server;	  /* 0 = none */
	int status;	  /* of the run as it is, */
	uint64_t took_ns; /* and its time */
};

/* Runs it as it is, to its end. Errors: FRAG_EUSAGE if it cannot be started; FRAG_EINTR. */
int frag_trials_begin(struct frag_trials *t, struct frag_err *err);
int frag_trials_start(struct frag_trials *t, const char *changes, unsigned seconds, unsigned *n,
		      struct frag_err *err);
/* late: it was ended after its time. */
bool frag_trials_ended(struct frag_trials *t, unsigned n, int *status, bool *late);
/* Path of a file or folder of run n. */
void frag_trials_path(const struct frag_trials *t, unsigned n, const char *name, char *path,
		      size_t room);
/* Ends what runs, removes the folder. */
void frag_trials_end(struct frag_trials *t);

#endif
