/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a number in its command line, recorded without a GPU for one value of it after another. */
#ifndef FRAG_CLI_VARY_H
#define FRAG_CLI_VARY_H

#include "record.h"

#define FRAG_VARY_NAME 64u

/* Takes "{NAME}=" off the front of an option's text: what follows it, NULL where it is none.
 * name[FRAG_VARY_NAME]: with its braces. */
const char *frag_vary_name(const char *text, char *name);
/*
 * Records the program with n in place of the name. *refused: requests that the card had no memory
 * for, also those that the program caught. *status: of the program; not 0 only where memory was
 * refused. Errors: FRAG_EINPUT if it failed for another reason; those of recording.
 */
int frag_vary_record(const struct frag_cli *cli, const struct frag_record_options *o,
		     const char *name, uint64_t n, struct frag_trace **out, int *status,
		     uint64_t *refused, struct frag_err *err);

/* The card on which a number is looked for, as sentences say it: "h100", "a card of 4 GiB". */
const char *frag_vary_card(const struct frag_cli *cli, char *buf, size_t cap);

#endif
