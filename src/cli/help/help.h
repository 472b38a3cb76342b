/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of the tables of all commands besides --help: manual pages and completion. */
#ifndef FRAG_CLI_HELP_H
#define FRAG_CLI_HELP_H

#include <stdio.h>

#include "cli/common.h"

/* A manual page in roff: of a command, or of the program (NULL). */
void frag_help_man(const struct frag_cmd *cmd, FILE *to);
/* Completion of the whole program. */
void frag_help_bash(FILE *to);
void frag_help_zsh(FILE *to);
void frag_help_fish(FILE *to);

#endif
