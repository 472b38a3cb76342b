/* SPDX-License-Identifier: Apache-2.0 */
/* Where the command line wants an answer: --json, --csv, --out, and the terminal. */
#ifndef FRAG_CLI_SHOW_ANSWER_H
#define FRAG_CLI_SHOW_ANSWER_H

#include "answer/answer.h"
#include "common.h"
#include "recording/written.h"

/*
 * Writes --json, --csv and --out DIR (DIR/COMMAND.html), then prints the text, unless one of them
 * goes to standard output. Each is complete or absent; one that cannot be written takes nothing
 * from the others. Errors: FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_cli_show_answer(const struct frag_cli *cli, struct frag_answer *a, struct frag_err *err);

/* The same without --out, for a command that writes pages of its own. */
int frag_cli_print_answer(const struct frag_cli *cli, struct frag_answer *a, struct frag_err *err);

/* What was written: printed, or as notes where the trace itself goes to standard output. */
int frag_cli_show_written(const struct frag_cli *cli, const struct frag_written *w,
			  struct frag_err *err);

/* The command line as a shell takes it: "cufrag fit run.cft". Errors: out->failed. */
void frag_cli_add_command_line(const struct frag_cli *cli, struct frag_text *out);

#endif
