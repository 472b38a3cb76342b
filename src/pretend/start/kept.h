/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings without a GPU, kept for the next call that asks for the same: two files in the user's cache,
 *
 *	$XDG_CACHE_HOME/cufrag/recordings/KEY.cft
 *	$XDG_CACHE_HOME/cufrag/recordings/KEY.files	"status N", then "SIZE MTIME_NS PATH" for each file that the program read
 *
 * KEY is a hash of everything that the program was started with: its command line, folder and environment, the card, the options, the
 * release of cufrag. A recording is used while all files are as they were. It is not kept where that
 * cannot be known: standard input is a pipe, the program read what was written while it ran, or a signal ended it. What a
 * program only looks at (whether a file exists, the time, the network) is not seen.
 */
#ifndef FRAG_LAUNCH_KEPT_H
#define FRAG_LAUNCH_KEPT_H

#include "pretend/pretend.h"

struct frag_kept {
	char *stem;	  /* path without ending; NULL: nothing is kept */
	char *text;	  /* what .files will hold; NULL: it must not be kept */
	int64_t begun_ns; /* the program's start */
};
/* Finds the key. A cache that cannot be used is no failure. */
void frag_kept_init(struct frag_kept *k, const struct frag_launch *l, const struct frag_pretend *o,
		    char **program, const struct frag_inject_files *files);
void frag_kept_release(struct frag_kept *k);
/* The recording, if there is one and it is still true; else false. */
bool frag_kept_get(const struct frag_kept *k, const struct frag_launch *l, struct frag_trace **out,
		   int *status);
/* After the run: reads `list`, which the program's processes wrote; own: folders of cufrag, whose files do not count. */
void frag_kept_read(struct frag_kept *k, const char *list, int status, const char *const *own);
/* Keeps it; the oldest go where all take over 2 GiB. */
void frag_kept_put(const struct frag_kept *k, const struct frag_trace *trace);

#endif
