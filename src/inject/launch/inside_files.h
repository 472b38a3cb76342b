/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries and Python files of src/inject, which cufrag carries in itself, as files in the user's cache:
 *
 *	$XDG_CACHE_HOME/cufrag (~/.cache/cufrag)
 *	  nogpu-<hash of the files>/		written once, complete or not at all
 *	  nogpu-<hash of the files>/wheels/	made by cufrag_card.py for each PyTorch
 *	  recordings/				kept.h
 *	  configurations/			layout/config.h
 */
#ifndef FRAG_LAUNCH_INSIDE_FILES_H
#define FRAG_LAUNCH_INSIDE_FILES_H

#include <frag/error.h>

/* Strings are the caller's: release. */
struct frag_inside_files {
	char *root;   /* of all versions */
	char *folder; /* the same for all programs of this version of cufrag */
	char *cache;  /* what is made once for each PyTorch */
};
int frag_inside_files_open(struct frag_inside_files *f, struct frag_err *err);
void frag_inside_files_release(struct frag_inside_files *f);

#endif
