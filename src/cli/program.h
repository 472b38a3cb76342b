/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a command line, for every command that starts one (cmd_record.c). */
#ifndef FRAG_CLI_PROGRAM_H
#define FRAG_CLI_PROGRAM_H

#include "cli/common.h"
#include "pretend/pretend.h"

/* Its card, limit and seed, for whichever way it is started. */
struct frag_launch frag_cli_launch(const struct frag_cli *cli);
/* The card of the command line, as sentences say it: "h100", "a card of 4 GiB". */
const char *frag_cli_card(const struct frag_cli *cli, char *buf, size_t cap);
/* The program of the command line on its card; notes and progress are those of the command. */
struct frag_program frag_cli_program(const struct frag_cli *cli,
				     const struct frag_pretend *pretend);

/*
 * For commands that take traces, or a program to record: after it the operands are there in any
 * case, those of a program as a temporary .cft. Errors: FRAG_EUSAGE if both or neither were given.
 */
struct frag_program_operand {
	char *folder;	 /* NULL = none */
	char path[4096]; /* of the .cft in it */
};
int frag_program_operand(struct frag_cli *cli, const struct frag_pretend *o,
			 struct frag_program_operand *out, struct frag_err *err);
void frag_program_operand_release(struct frag_program_operand *o);

#endif
