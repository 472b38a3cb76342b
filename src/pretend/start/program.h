/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program in place of a recording: recorded on a pretended card, and again as often as an answer needs it.
 *
 * Ownership: a plain value, whose pointers are borrowed; what frag_program_launch makes borrows the program.
 */
#ifndef FRAG_PROGRAM_PROGRAM_H
#define FRAG_PROGRAM_PROGRAM_H

#include "inject/launch/launch.h"
#include "pretend/start/pretend.h"
#include "recording/target.h"

struct frag_program {
	char **words; /* as execvp(3) takes them */
	const struct frag_pretend *pretend;
	struct frag_target target; /* the card, the limit, the seed */
	const char *gpu;	   /* name of the card; NULL: h200 */
	/* What is no failure; may be NULL. */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

/* Starts it with this card, limit and seed. */
struct frag_launch frag_program_launch(const struct frag_program *p);
/* Records it, named as the program; what it prints goes to standard error. *status: of the program. */
int frag_program_record(const struct frag_program *p, struct frag_trace **out, int *status,
			struct frag_err *err);
/* The same with n in place of a name in its words, like frag_vary_record (pretend/start/vary.h). */
int frag_program_vary(const struct frag_program *p, const char *name, uint64_t n,
		      struct frag_trace **out, int *status, uint64_t *refused,
		      struct frag_err *err);

#endif
