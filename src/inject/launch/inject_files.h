/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries and Python files that enter programs. They lie in share/cufrag/inject beside cufrag, where `make` puts them
 * (base/share.h), and are used there. What is made on this machine lies in the user's cache:
 *
 *	$XDG_CACHE_HOME/cufrag (~/.cache/cufrag)
 *	  pretend-<hash of the files>/	made by cufrag_card.py, a folder for each PyTorch
 *	  recordings/			src/pretend/start/kept.c
 *	  configurations/		layout/config.h
 */
#ifndef FRAG_LAUNCH_INJECT_FILES_H
#define FRAG_LAUNCH_INJECT_FILES_H

#include <frag/error.h>

/* Strings are the caller's: release. */
struct frag_inject_files {
	char *root;   /* the cache of all versions */
	char *folder; /* the files */
	char *cache;  /* what is made once for each PyTorch and each version of the files */
};
/* Errors: FRAG_EOUTPUT without the files, or without a cache of this user alone. */
int frag_inject_files_open(struct frag_inject_files *f, struct frag_err *err);
void frag_inject_files_release(struct frag_inject_files *f);

#endif
