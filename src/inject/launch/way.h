/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to record a program: one file way_<name>.c with one constant
 *
 *	const struct frag_record_way frag_record_way_<name> = { … };
 *
 * and make finds it. The file has the options of its way, too; `cufrag record` takes those of all.
 */
#ifndef FRAG_LAUNCH_WAY_H
#define FRAG_LAUNCH_WAY_H

#include "base/args.h"
#include "inject/launch/launch.h"

#define FRAG_WAY_OPTIONS_BYTES 128u /* at most, of the struct of a way's options */

struct frag_record_way {
	const char *name;    /* as messages call it: the option that asks for it */
	const char *heading; /* of its options in --help */
	/* The flag that asks for it, a bool first in the struct; NULL: if no way is asked for. */
	const struct frag_arg *asks;
	const struct frag_arg *rows; /* its other options */
	size_t options_size;	     /* of the struct that the rows fill; it begins as zeros */
	/* Runs the program and makes a trace of what it did. *status as of frag_launch_run.
	 * Errors: FRAG_EINPUT if nothing was recorded, and those of the program's start. */
	int (*run)(const struct frag_launch *l, const void *options, char **program,
		   struct frag_trace **out, int *status, struct frag_err *err);
};

/* All of them by name, NULL-terminated. */
const struct frag_record_way *const *frag_record_ways(void);

#endif
