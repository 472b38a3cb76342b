/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what a command line would overwrite, before anything runs. */
#ifndef FRAG_CLI_OUTPUTS_H
#define FRAG_CLI_OUTPUTS_H

#include "common.h"

/*
 * Errors: FRAG_EUSAGE if a file to be written is one that is read, is a recording already, or is to
 * be written twice (standard output as well).
 */
int frag_outputs_check(const struct frag_cli *cli, const struct frag_arg_table *tables,
		       struct frag_err *err);

#endif
