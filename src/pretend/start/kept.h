/* SPDX-License-Identifier: Apache-2.0 */
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
#ifndef FRAG_LAUNCH_KEPT_H
#define FRAG_LAUNCH_KEPT_H

#include "pretend/pretend.h"

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

#endif
