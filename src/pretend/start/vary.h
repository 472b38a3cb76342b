/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a number in its command line, recorded without a GPU for one value of it after another. */
#ifndef FRAG_LAUNCH_VARY_H
#define FRAG_LAUNCH_VARY_H

#include "pretend/start/pretend.h"

#define FRAG_VARY_NAME 64u

/* Takes "{NAME}=" off the front of an option's text and returns what follows it; NULL if it does not begin so.
 * name[FRAG_VARY_NAME]: with its braces. */
const char *frag_vary_name(const char *text, char *name);
/* Is the name in the command line? Errors: FRAG_EUSAGE. */
int frag_vary_check(char *const *program, const char *name, struct frag_err *err);
/*
 * Records the program with n in place of the name. *refused: requests that the card had no memory for, also
 * those that the program caught. *status: of the program; not 0 only where memory was refused.
 * Errors: FRAG_EINPUT if it failed for another reason; those of recording.
 */
int frag_vary_record(const struct frag_launch *l, const struct frag_pretend *o, char **program,
		     const char *name, uint64_t n, struct frag_trace **out, int *status,
		     uint64_t *refused, struct frag_err *err);

/* Requests that the card had no memory for, also those that the program caught. */
uint64_t frag_vary_refusals(const struct frag_trace *trace);

/* The card on which a number is looked for, as sentences say it: "h100", "a card of 4 GiB". */
const char *frag_vary_card(const struct frag_sim_config *card, char *buf, size_t cap);

#endif
