/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs on the pretended card do not change their user's files: a preloaded library
 * (src/pretend/files) redirects writes to a folder of the recording. Its options:
 */
#ifndef FRAG_LAUNCH_HELD_H
#define FRAG_LAUNCH_HELD_H

#include "base/args.h"
#include "inject/launch/inside_files.h"

struct frag_hold {
	const char
		*keep; /* NULL: everything is held; "": nothing; else nothing below this folder */
	uint64_t most_bytes; /* limit of held bytes */
};

/* The rows of these options, at member `hold` of a struct. */
#define FRAG_HOLD_ROWS(type, hold) \
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
			.rare = true, \
			.help = "what the program can write, as long as it is held back" \
	}

/* Call before a command, so that held writes are reported once, also by forked processes. */
void frag_held_watch(void);
/* Held writes since then, as sentences that end with a newline; "": none. */
void frag_held_say(char *text, size_t cap);

/* Makes empty folders: folder/held, and folder/tmp for temporary files. */
int frag_held_make(const char *folder, uint64_t most_bytes, struct frag_err *err);
/* Call before and after each run of a program with recordings in `folder`. */
int frag_held_begin(const struct frag_hold *h, const char *folder,
		    const struct frag_inside_files *files, struct frag_err *err);
void frag_held_end(const struct frag_hold *h, const char *folder);
/* In the program's process, before it begins. */
void frag_held_put(const struct frag_hold *h, const char *folder,
		   const struct frag_inside_files *files);

#endif
