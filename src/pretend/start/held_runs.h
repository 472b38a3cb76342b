/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the pretended card does not change its user's files: what it writes goes to a folder
 * of the recording, by a library that is loaded into it (src/pretend/files). Options of it:
 */
#ifndef FRAG_LAUNCH_HELD_H
#define FRAG_LAUNCH_HELD_H

#include "pretend/pretend.h"

/* The rows of these options, at member `hold` of a struct; the second one is rare or silent. */
#define FRAG_HOLD_ROWS(type, hold, shown) \
	{ FRAG_ARG_TEXT, \
	  "keep-writes", \
	  FRAG_ARG_AT(type, hold.keep), \
	  .value = "DIR", \
	  .bare = "", \
	  .help = "let the program change files, in DIR or everywhere (default: what it writes " \
		  "is held back)" }, \
	{ \
		FRAG_ARG_BYTES, "writes-max", FRAG_ARG_AT(type, hold.most_bytes), \
			.value = "SIZE", .min = FRAG_MIB, .max = UINT64_MAX, .def = "20G", \
			.shown = true, \
			.help = "what the program can write, as long as it is held back" \
	}

/* Empty: folder/held, and folder/tmp for files that are temporary anyway. */
int frag_held_make(const char *folder, uint64_t most_bytes, struct frag_err *err);
/* Around each run of a program, whose recordings go to `folder`. */
int frag_held_begin(const struct frag_hold *h, const char *folder,
		    const struct frag_inject_files *files, struct frag_err *err);
void frag_held_end(const struct frag_hold *h, const char *folder);
/* In the program's process, before it begins. */
void frag_held_put(const struct frag_hold *h, const char *folder,
		   const struct frag_inject_files *files);

#endif
