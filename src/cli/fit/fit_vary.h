/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag fit --vary: how much of something a card takes, found by recording. */
#ifndef FRAG_CLI_FIT_VARY_H
#define FRAG_CLI_FIT_VARY_H

#include "cli/common.h"
#include "launch/pretend.h"

/* text: "{NAME}=A..B". Returns an exit status (1: not even A completes) or an error. */
int frag_fit_vary(const struct frag_cli *cli, const struct frag_pretend *o, const char *text,
		  struct frag_err *err);

#endif
