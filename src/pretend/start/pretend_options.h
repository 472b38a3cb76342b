/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a run on the pretended card. */
#ifndef FRAG_LAUNCH_PRETEND_OPTIONS_H
#define FRAG_LAUNCH_PRETEND_OPTIONS_H

#include "pretend/start/held.h"

struct frag_pretend {
	bool no_gpu;
	unsigned gpus;	   /* 0 = as many as the ranks need, else 1 */
	const char *ranks; /* "0,7", "0-3" or "roles", NULL = no job of several */
	unsigned world;	   /* 0 = that of the ranks */
	const char *values;
	uint64_t memory_bytes; /* of the host, for all ranks that run at a time; 0 = any */
	struct frag_hold hold;
	bool again;	  /* a second time with other values */
	bool warm_caches; /* torch.compile's are kept from one run to the next */
	bool reuse;	  /* a recording of an earlier call will do (kept.h) */
	bool scout_prints; /* what the scout of a job's roles prints is shown, else only if it fails */
	bool trial;	   /* with reuse: neither taken from there nor put there */
	/* a file in which the roles of such a job are, or will be once they were checked; NULL = none */
	const char *known_roles;
	/* a file that is there, or will be once it was checked, where all ranks of a job that differs only in their number are alike */
	const char *alike_roles;
};

/* The rows of these options, for the tables of a command that has the struct at offset 0. */
extern const struct frag_arg frag_pretend_rows[];

#endif
